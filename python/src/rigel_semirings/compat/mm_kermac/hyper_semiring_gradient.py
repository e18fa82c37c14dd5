# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mm_kermac.hyper_semiring_gradient: `HyperSemiringGradientKernel` has programs of your own, and the zoo computes
out(o,n,m) = Σ_k coefs(o,k)·grad_kernel_matrix(k,m)·f(z(n,m) − x(n,k)).

x is (N, K), z (N, M), coefs (O, K), grad_kernel_matrix (K, M), and out (O, N, M), each with a batch in front or without; a new result has one.
`debug` does nothing.

>>> import numpy as np
>>> import rigel_semirings.compat.mm_kermac.hyper_semiring_gradient as hsg
>>> one = np.array([[1.0]])
>>> hsg.NormL2()(x=one, z=4 * one, coefs=one, grad_kernel_matrix=2 * one)
array([[[[6.]]]])
"""

from ..._arrays import namespace
from ..._errors import InvalidArgument
from ..._products import contract
from .. import kermac
from .._arrays import batch_of, batch_of_out, matrices, numbers, result
from ._kernels import Programs, checked_hypers, of_one, semiring_of, values_of
from ._programs import evaluated

__all__ = ["HyperSemiringGradientKernel", "NormL1", "NormL2", "NormLp"]

_AT_ONCE = 1 << 24  # numbers of differences that are stored at a time


class HyperSemiringGradientKernel:
    """out(l,o,n,m) = epilogue( e ), where e = 0 at first and then, k ascending, accumulate( c(l,o,k), t(n,k,m), e ), and
    t(n,k,m) = multiply( d(l,n,m), b(l,n,k), a(l,k,m) ).

    The arrays' own library computes t, 2²⁴ numbers at a time; the rest becomes a semiring's text.

    Parameters
    ----------
    multiply_lambda : function of registers (d, b, a, hyperparameters by name), which returns a list of instructions that leaves t
    accumulate_lambda : function of registers (c, t, e, hyperparameters by name), whose list leaves the new e: e ⊕ (c ⊗ t), as in
        `HyperSemiringKernel`
    epilogue_lambda : function of a register (e, hyperparameters by name), whose list leaves what is stored
    execution_limit : int
        Instructions beyond it do not run.
    max_ast_size, max_ast_to_visit_stack_depth, stack_size, max_frame_depth : do nothing

    Raises
    ------
    As `HyperSemiringKernel`.

    Examples
    --------
    >>> import numpy as np
    >>> from rigel_semirings.compat.mm_kermac import PtxInstruction as Ptx
    >>> from rigel_semirings.compat.mm_kermac.hyper_semiring_gradient import HyperSemiringGradientKernel
    >>> kernel = HyperSemiringGradientKernel(
    ...     multiply_lambda=lambda d, b, a, reg: [b, d, Ptx.sub_ftz_f32, a, Ptx.mul_ftz_f32],
    ...     accumulate_lambda=lambda c, t, e, reg: [e, c, t, Ptx.fma_rn_ftz_f32],
    ...     epilogue_lambda=lambda e, reg: [e, reg["scale"], Ptx.mul_ftz_f32])
    >>> one = np.array([[1.0]])
    >>> kernel(a=2 * one, b=one, c=one, d=4 * one, hyper_dict={"scale": 0.5})
    array([[[[3.]]]])
    """

    def __init__(self, multiply_lambda, accumulate_lambda, epilogue_lambda, execution_limit=100, max_ast_size=100,
                 max_ast_to_visit_stack_depth=20, stack_size=128, max_frame_depth=4):
        self._programs = Programs({"multiply_lambda": multiply_lambda, "accumulate_lambda": accumulate_lambda,
                                   "epilogue_lambda": epilogue_lambda}, execution_limit)

    def _build(self, named, hypers):
        product = self._programs.result("multiply_lambda", [named[one] for one in "dba"], hypers)
        return product, [named[one] for one in "dba"], list(hypers.values()), semiring_of(self._programs, "accumulate_lambda", "ct", "e", named,
                                                                                         hypers)

    def __call__(self, a, b, c, d, hyper_dict=None, out=None, debug=False):
        """Of a (K, M), b (N, K), c (O, K) and d (N, M), into out (O, N, M), each with a batch in front or without. Hyperparameters are numbers, or
        arrays of one for each of a batch; those on a GPU are waited for."""
        hypers = checked_hypers(hyper_dict)
        build = self._programs.of(hypers, "abcdet", self._build)
        given = {name: matrices(one, name) for name, one in (("a", a), ("b", b), ("c", c), ("d", d))}
        a, b, c, d = given.values()
        (k, m), n = a.shape[-2:], b.shape[-2]
        for name, shape in (("b", (n, k)), ("c", (c.shape[-2], k)), ("d", (n, m))):
            if tuple(given[name].shape[-2:]) != shape:
                raise InvalidArgument(f"{name} has the shape {tuple(given[name].shape[-2:])}, expected {shape}, because a has {(k, m)}"
                                      f"{'' if name == 'b' else f' and b {(n, b.shape[-1])}'}")
        batch = batch_of({**hypers, **given, "out": batch_of_out(out, 3)})
        whole, places = result(out, a, (batch, c.shape[-2], n, m))
        for i in range(batch):
            self._one(build, *(one[i % one.shape[0]] for one in (a, b, c, d)), places[i], of_one(hypers, i))
        return whole

    @staticmethod
    def _one(build, a, b, c, d, out, hypers):
        product, registers, hyper_registers, semiring = build
        step = max(1, _AT_ONCE // max(1, a.shape[0] * a.shape[1]))
        for begin in range(0, b.shape[0], step):
            rows = slice(begin, begin + step)
            values = dict(zip(registers, (d[rows, None, :], b[rows, :, None], a[None])))
            values.update(zip(hyper_registers, hypers.values()))
            terms = namespace(a).broadcast_to(evaluated(product, values, a), (min(step, b.shape[0] - begin), *a.shape))
            contract(c, terms, semiring, out=out[:, rows].swapaxes(0, 1), parameters=values_of(hypers))


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
