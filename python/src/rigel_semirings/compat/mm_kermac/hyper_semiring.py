# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mm_kermac.hyper_semiring: kernels of x (M, K) or (L, M, K) and z (N, K) or (L, N, K) into out (M, N), or new ones of shape (L, M, N).

`HyperSemiringKernel` has programs of your own, the zoo those that there are. `try_to_align` and `debug` do nothing.

>>> import numpy as np
>>> import rigel_semirings.compat.mm_kermac.hyper_semiring as hs
>>> hs.NormL2()(x=np.array([[0.0, 0.0]]), z=np.array([[3.0, 4.0]]))
array([[[5.]]])
"""

from ... import epilogue
from ..._errors import InvalidArgument
from ..._products import contract
from .. import kermac
from .._arrays import batch_of, batch_of_out, matrices, numbers, result, spread
from ._kernels import Programs, checked_hypers, of_one, semiring_of, values_of

__all__ = ["Gemm", "HyperSemiringKernel", "NormL1", "NormL2", "NormLp"]

_descriptor = kermac.KernelDescriptor
_DIFF, _POWERS, _NONE = kermac.InnerOperator.DIFF, kermac.PowerType, kermac.KernelType.NONE


class HyperSemiringKernel:
    """out(l,m,n) = epilogue( c ), where c = 0 at first and then, k ascending, mma( a(l,m,k), b(l,n,k), c ).

    The programs become a semiring's text, which Rigel compiles when it is first called.

    Parameters
    ----------
    mma_lambda : function of registers (a, b, c, hyperparameters by name)
        Returns a list of instructions (`PtxInstruction`, `Stack`, registers), which leaves the new c: c ⊕ (a ⊗ b) of an associative ⊕, in
        which a and b meet c once, or the fused multiply-add of c. The rows of the first array are in a.
    epilogue_lambda : function of a register (e, hyperparameters by name)
        Returns the list that leaves what is stored of the sum e.
    execution_limit : int
        Instructions beyond it do not run.
    max_ast_size, max_ast_to_visit_stack_depth, stack_size, max_frame_depth : do nothing

    An instruction without its operands is skipped, as in mm-kermac. What differs: `min` and `max` take two operands and are NaN of NaN, and
    numbers below the normal ones are kept.

    Raises
    ------
    Unsupported (a TypeError) if c is not read as above, of a special register, and of what is no instruction; InvalidArgument (a ValueError)
    if a program leaves no result.

    Examples
    --------
    >>> import numpy as np
    >>> from rigel_semirings.compat.mm_kermac import PtxInstruction as Ptx
    >>> from rigel_semirings.compat.mm_kermac.hyper_semiring import HyperSemiringKernel
    >>> largest = HyperSemiringKernel(
    ...     mma_lambda=lambda a, b, c, reg: [a, b, Ptx.sub_ftz_f32, Ptx.abs_ftz_f32, reg["w"], Ptx.mul_ftz_f32, c, Ptx.max_ftz_f32],
    ...     epilogue_lambda=lambda e, reg: [e])
    >>> largest(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]), {"w": 2.0})
    array([[[8.]]])
    """

    def __init__(self, mma_lambda, epilogue_lambda, execution_limit=100, max_ast_size=100, max_ast_to_visit_stack_depth=20, stack_size=128,
                 max_frame_depth=4):
        self._programs = Programs({"mma_lambda": mma_lambda, "epilogue_lambda": epilogue_lambda}, execution_limit)

    def __call__(self, a, b, hyper_dict=None, out=None, try_to_align=False, debug=False):
        """Hyperparameters are numbers, or arrays of one for each of a batch; those on a GPU are waited for."""
        hypers = checked_hypers(hyper_dict)
        semiring = self._programs.of(hypers, "abce",
                                     lambda named, own: semiring_of(self._programs, "mma_lambda", "ab", "c", named, own))
        a, b = matrices(a, "a"), matrices(b, "b")
        if a.shape[-1] != b.shape[-1]:
            raise InvalidArgument(f"a has {a.shape[-1]} columns and b {b.shape[-1]}, expected the same")
        batch = batch_of({**hypers, "a": a, "b": b, "out": batch_of_out(out, 2)})
        whole, places = result(out, a, (batch, a.shape[-2], b.shape[-2]))
        transposed = b.swapaxes(-1, -2)
        if all(isinstance(value, float) for value in hypers.values()):
            contract(spread(a, batch, b.shape[0]), transposed, semiring, out=places, parameters=values_of(hypers))
            return whole
        for i in range(batch):
            contract(a[i % a.shape[0]], transposed[i % b.shape[0]], semiring, out=places[i], parameters=values_of(of_one(hypers, i)))
        return whole


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
        batch = batch_of({"x": x, "z": z, "out": batch_of_out(out, 2)})
        whole, places = result(out, x, (batch, x.shape[-2], z.shape[-2]))
        steps = epilogue.power(p_outer) | epilogue.threshold(self._epsilon)
        contract(spread(x, batch, z.shape[0]), z.swapaxes(-1, -2), "lp", epilogue=steps, out=places, parameters={"p": p_inner})
        return whole
