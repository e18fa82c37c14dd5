# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums of derivatives with a functor of the user's own, from text or from Python functions."""

from . import _core
from ._arrays import type_code
from ._errors import InvalidArgument, Unsupported
from ._options import number, options
from ._semiring import _name_of, _texts_of, _WithParameters


class Derivative(_WithParameters):
    """A functor of `contract_gradient`: out(…,o,n,m) = result( ⊕_k accumulate(c(…,o,k), multiply(d(…,n,m), b(…,n,k), a(…,k,m))) ), from text, or
    from functions.

    Rigel compiles it in process when a call first needs it, and keeps what it has compiled on disk. docs/runtime.md has the language.

    Parameters
    ----------
    multiply : str or function
        v, the derivative of one distance by one coordinate, times a weight: over `d`, `b` and `a`. Each text is an expression, or statements that
        end with ``return``. As of `Semiring`, ``x**n`` is a power.
    accumulate : str or function
        x ⊕ c·v, over `x`, `c` and `v`; by default ``fma(c, v, x)``.
    add : str or function
        x ⊕ y, which joins the sums of parts of K; by default x + y if `accumulate` is not given either, else K is one part.
    identity : str or function
        The identity of ⊕, a constant; may be left out if `accumulate` and `add` are, or if `add` is ``x + y``, ``min(x, y)`` or ``max(x, y)``.
    result : str or function
        What the output receives of a sum, over `x`.
    name : str
        In explanations and messages: letters, digits and '_'; by default that of the function `multiply`.
    **parameters : numbers
        Hyperparameters, at most 16, that all texts but identity may read. They are attributes: ``g.eps = 1e-6`` compiles nothing. Those of a
        function have their values as defaults.

    Raises
    ------
    InvalidArgument (a ValueError), Unsupported (a TypeError)
        As of `Semiring`.

    Examples
    --------
    >>> import numpy as np, rigel_semirings as rs
    >>> sign = rs.Derivative("d == b ? 0 : w * a * copysign(1, d - b)", w=2.0)
    >>> sign.w = 3.0
    >>> sign
    Derivative(multiply='d == b ? 0 : w * a * copysign(1, d - b)', w=3.0)
    >>> rs.Derivative(lambda d, b, a, eps=0.5: np.where(np.abs(d - b) < eps, 0.0, a * (d - b))).multiply
    '(abs((d - b)) < eps) ? 0.0 : (a * (d - b))'
    """

    __slots__ = ()

    @staticmethod
    def _value(name, value):
        return float(number(value, name))

    def __init__(self, multiply, accumulate="", add="", *, identity="", result="", name=None, **parameters):
        given = {"multiply": multiply, "accumulate": accumulate, "add": add, "identity": identity, "result": result}
        texts = _texts_of(given, parameters, owner="Derivative")
        set_ = object.__setattr__
        set_(self, "_texts", texts)
        set_(self, "_name", _name_of(name, multiply))
        set_(self, "_parameters", {one: self._value(one, value) for one, value in parameters.items()})
        set_(self, "_core", _core.TextDerivative(self._name, tuple(texts.values()), self._parameters))
        self._check()

    def __reduce__(self):
        return _restored, (self._texts, self._name, self._parameters)

    def compile(self, dtype="float32", like=None):
        """Compiles it for a type of elements, and for the device of the array `like` or for the host, so that no call has to.

        Raises Unsupported (a TypeError) if librigel_runtime.so, which compiles texts, is missing.
        """
        self._core.compile(type_code(dtype, "dtype"), like)


def _restored(texts, name, parameters):
    return Derivative(**texts, name=name, **parameters)


def contract_gradient(a, b, c, d, derivative, *, out=None, accumulate=False, parameters=None, kernel=None, require=(), precision="automatic"):
    """out(…,o,n,m) = result( ⊕_k accumulate(c(…,o,k), multiply(d(…,n,m), b(…,n,k), a(…,k,m))) ) of a `Derivative`: sums of derivatives of distances,
    without the N·M·K of them.

    In a kernel machine `d` holds M points and `b` K training points, one coordinate a row; `a` a weight for each pair of points, `c` the
    coefficients of O outputs; `out` is the gradient of each output at each point.

    Parameters
    ----------
    a, b, c, d : arrays of shapes (…, K, M), (…, N, K), (…, O, K) and (…, N, M), of one type
        The leading dimensions broadcast as in NumPy.
    derivative : Derivative
    out : array of shape (…, O, N, M)
        Where results go: of the operands' type, float32 of 16 bits. It overlaps no operand.
    accumulate : bool
        ⊕ starts with what `out` holds.
    parameters : dict
        Hyperparameters; those that are not named have the values that the derivative has.
    kernel, require, precision : as in `contract`

    Returns
    -------
    An array of shape (…, O, N, M), of the library of `a`, or `out`.

    Raises
    ------
    As `contract`.

    Examples
    --------
    >>> import numpy as np, rigel_semirings as rs
    >>> one = np.array([[1.0]])
    >>> rs.contract_gradient(2 * one, one, 3 * one, 4 * one, rs.Derivative("a * (d - b)"))
    array([[[18.]]])
    """
    if not isinstance(derivative, Derivative):
        raise Unsupported(f"derivative is {derivative!r}, expected a Derivative")
    if accumulate and out is None:
        raise InvalidArgument("accumulate is True and out is None, expected what the sums start with")
    if parameters is None or isinstance(parameters, dict):
        parameters = {**derivative._parameters, **(parameters or {})}
    return _core.contract_gradient(a, b, c, d, out, derivative._core, parameters, accumulate, options(kernel, require, precision))
