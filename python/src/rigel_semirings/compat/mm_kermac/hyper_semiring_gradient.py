# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mm_kermac.hyper_semiring_gradient's zoo: out(o,n,m) = Σ_k coefs(o,k)·grad_kernel_matrix(k,m)·f(z(n,m) − x(n,k)).

x is (N, K), z (N, M), coefs (O, K), grad_kernel_matrix (K, M), and out (O, N, M), each with a batch in front or without; a new result has one.
`debug` does nothing.

>>> import numpy as np
>>> import rigel_semirings.compat.mm_kermac.hyper_semiring_gradient as hsg
>>> one = np.array([[1.0]])
>>> hsg.NormL2()(x=one, z=4 * one, coefs=one, grad_kernel_matrix=2 * one)
array([[[[6.]]]])
"""

from .. import kermac
from .._arrays import numbers

__all__ = ["NormL1", "NormL2", "NormLp"]


class NormL1:
    """f(t) = sign(t), 0 of 0 (in mm-kermac 1 of 0)"""

    def __call__(self, x, z, coefs, grad_kernel_matrix, out=None, debug=False):
        return kermac.cdist_grad(grad_kernel_matrix, x, coefs, z, out, 1.0)


class NormL2:
    """f(t) = t"""

    def __call__(self, x, z, coefs, grad_kernel_matrix, out=None, debug=False):
        return kermac.cdist_grad(grad_kernel_matrix, x, coefs, z, out, 2.0)


class NormLp:
    """f(t) = sign(t)·|t|^p_power_grad, 0 of |t| < epsilon"""

    def __init__(self, epsilon):
        self._epsilon = float(epsilon)

    def __call__(self, x, z, coefs, grad_kernel_matrix, p_power_grad, out=None, debug=False):
        return kermac.cdist_grad(grad_kernel_matrix, x, coefs, z, out, numbers(p_power_grad, "p_power_grad") + 1.0, self._epsilon)
