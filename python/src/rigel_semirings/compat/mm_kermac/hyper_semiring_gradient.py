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

from ..._derivative import Derivative, contract_gradient
from ..._errors import InvalidArgument
from .. import kermac
from .._arrays import batch_of, batch_of_out, matrices, numbers, result, spread
from ._kernels import Programs, checked_hypers, of_one, values_of
from ._programs import texts_of_gradient

__all__ = ["HyperSemiringGradientKernel", "NormL1", "NormL2", "NormLp"]

class HyperSemiringGradientKernel:
    """out(l,o,n,m) = epilogue( e ), where e = 0 at first and then, k ascending, accumulate( c(l,o,k), t(n,k,m), e ), and
    t(n,k,m) = multiply( d(l,n,m), b(l,n,k), a(l,k,m) ).

    The programs become a derivative's text, which Rigel compiles when it is first called.

    Parameters
    ----------
    multiply_lambda : function of registers (d, b, a, hyperparameters by name), which returns a list of instructions that leaves t
    accumulate_lambda : function of registers (c, t, e, hyperparameters by name), whose list leaves the new e
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
        def expression(name, registers):
            return self._programs.result(name, [named[one] for one in registers], hypers)

        of_texts = {named[register]: text for register, text in zip("abcdte", "abcdvx")}
        of_hypers = [one.value for one in hypers.values()]
        texts = texts_of_gradient(expression("multiply_lambda", "dba"), expression("accumulate_lambda", "cte"), expression("epilogue_lambda", "e"),
                                  of_texts, named["e"], of_hypers)
        return Derivative(**texts, name="hyper_semiring_gradient", **dict.fromkeys(of_hypers, 0.0))

    def __call__(self, a, b, c, d, hyper_dict=None, out=None, debug=False):
        """Of a (K, M), b (N, K), c (O, K) and d (N, M), into out (O, N, M), each with a batch in front or without. Hyperparameters are numbers, or
        arrays of one for each of a batch; those on a GPU are waited for."""
        hypers = checked_hypers(hyper_dict)
        derivative = self._programs.of(hypers, "abcdet", self._build)
        given = {name: matrices(one, name) for name, one in (("a", a), ("b", b), ("c", c), ("d", d))}
        a, b, c, d = given.values()
        (k, m), n = a.shape[-2:], b.shape[-2]
        for name, shape in (("b", (n, k)), ("c", (c.shape[-2], k)), ("d", (n, m))):
            if tuple(given[name].shape[-2:]) != shape:
                raise InvalidArgument(f"{name} has the shape {tuple(given[name].shape[-2:])}, expected {shape}, because a has {(k, m)}"
                                      f"{'' if name == 'b' else f' and b {(n, b.shape[-1])}'}")
        batch = batch_of({**hypers, **given, "out": batch_of_out(out, 3)})
        whole, places = result(out, a, (batch, c.shape[-2], n, m))
        if all(isinstance(value, float) for value in hypers.values()):
            others = max(one.shape[0] for one in (b, c, d))
            contract_gradient(spread(a, batch, others), b, c, d, derivative, out=places, parameters=values_of(hypers))
            return whole
        for i in range(batch):
            of_i = (one[i % one.shape[0]] for one in (a, b, c, d))
            contract_gradient(*of_i, derivative, out=places[i], parameters=values_of(of_one(hypers, i)))
        return whole


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
