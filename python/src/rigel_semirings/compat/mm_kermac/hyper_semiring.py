# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mm_kermac.hyper_semiring's zoo: kernels of x (M, K) or (L, M, K) and z (N, K) or (L, N, K) into out (M, N), or new ones of shape (L, M, N).

`try_to_align` and `debug` do nothing.

>>> import numpy as np
>>> import rigel_semirings.compat.mm_kermac.hyper_semiring as hs
>>> hs.NormL2()(x=np.array([[0.0, 0.0]]), z=np.array([[3.0, 4.0]]))
array([[[5.]]])
"""

from ... import epilogue
from ..._products import contract
from .. import kermac
from .._arrays import matrices, numbers, result

__all__ = ["Gemm", "NormL1", "NormL2", "NormLp"]

_descriptor = kermac.KernelDescriptor
_DIFF, _POWERS, _NONE = kermac.InnerOperator.DIFF, kermac.PowerType, kermac.KernelType.NONE


class Gemm:
    """Σ_k x(m,k)·z(n,k)"""

    def __call__(self, x, z, out=None, try_to_align=False, debug=False):
        return kermac.run_kernel(kermac.kernel_descriptor_mma, x, z, out)


class NormL1:
    """Σ_k |x(m,k) − z(n,k)|"""

    def __call__(self, x, z, out=None, try_to_align=False, debug=False):
        return kermac.run_kernel(kermac.kernel_descriptor_l1_norm, x, z, out)


class NormL2:
    """√( Σ_k (x(m,k) − z(n,k))² )"""

    def __call__(self, x, z, out=None, try_to_align=False, debug=False):
        return kermac.run_kernel(kermac.kernel_descriptor_l2_norm, x, z, out)


class NormLp:
    """( Σ_k |x(m,k) − z(n,k)|^p_inner )^p_outer; results below epsilon become 0."""

    def __init__(self, epsilon):
        self._epsilon = float(epsilon)

    def __call__(self, x, z, p_inner, p_outer, out=None, try_to_align=False, debug=False):
        p_inner, p_outer = numbers(p_inner, "p_inner"), numbers(p_outer, "p_outer")
        if self._epsilon == 0 or not (isinstance(p_inner, float) and isinstance(p_outer, float)):
            whole = kermac.run_kernel(kermac.kernel_descriptor_p_norm, x, z, out, inner_p=p_inner, outer_p=p_outer)
            if self._epsilon != 0:
                whole[whole < self._epsilon] = 0
            return whole
        x, z = matrices(x, "x"), matrices(z, "z")
        whole, places = result(out, x, (max(x.shape[0], z.shape[0]), x.shape[-2], z.shape[-2]))
        contract(x, z.swapaxes(-1, -2), "lp", epilogue=epilogue.power(p_outer) | epilogue.threshold(self._epsilon), out=places,
                 parameters={"p": p_inner})
        return whole
