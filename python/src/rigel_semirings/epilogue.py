# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Epilogues: steps that change each result before it is stored, composed by ``|``.

A parameter is a number, or an array that broadcasts to the results as in NumPy: a bias of shape (N,), one number for each row of shape
(M, 1), a residual of shape (M, N). There are at most eight steps and four arrays.

>>> import numpy as np, rigel_semirings as rs
>>> from rigel_semirings import epilogue
>>> a, bias = np.array([[1.0, -2.0]]), np.array([0.5, 1.0])
>>> rs.contract(a, np.eye(2), "plus_times", epilogue=epilogue.add(bias) | epilogue.relu())
array([[1.5, 0. ]])
"""

from ._errors import Unsupported

__all__ = ["Program", "scale", "add", "power", "exponential", "laplace", "gaussian", "reciprocal", "clamp", "threshold", "add_diagonal",
           "relu", "sigmoid", "tanh", "silu", "gelu", "gelu_tanh", "any_bit", "parity", "matern32", "matern52", "rational_quadratic"]


class Program:
    """Steps, the first one first. Programs compose: ``scale(2) | add(1)``."""

    __slots__ = ("_names", "steps")

    def __init__(self, steps=(), names=()):
        self.steps = tuple(steps)
        self._names = tuple(names)

    def __or__(self, other):
        if not isinstance(other, Program):
            return NotImplemented
        return Program(self.steps + other.steps, self._names + other._names)

    def __repr__(self):
        return " | ".join(self._names) if self.steps else "epilogue.Program()"


def steps_of(program):
    """The steps of an epilogue argument, None if there are none."""
    if program is None:
        return None
    if not isinstance(program, Program):
        raise Unsupported(f"epilogue is a {type(program).__name__}, expected steps of rigel_semirings.epilogue, such as scale(2) | relu()")
    return program.steps or None


def _step(kind, name, x=0.0, y=0.0, offset=0):
    return Program([(kind, x, y, offset)], [name])


def scale(x):
    """v·x"""
    return _step(1, "scale(…)", x)


def add(x):
    """v + x: a bias, a residual."""
    return _step(2, "add(…)", x)


def power(x):
    """v^x"""
    return _step(3, "power(…)", x)


def exponential(x=1.0):
    """exp(x·v)"""
    return _step(4, "exponential(…)", x)


def laplace(length):
    """exp(−v / length)"""
    return _step(5, "laplace(…)", length)


def gaussian(bandwidth):
    """exp(−v / (2·bandwidth²)), of squared distances."""
    return _step(6, "gaussian(…)", bandwidth)


def reciprocal(x=0.0, y=1.0):
    """y / (x + v)"""
    return _step(7, "reciprocal(…)", x, y)


def clamp(least, most):
    """min(max(v, least), most)"""
    return _step(8, "clamp(…)", least, most)


def threshold(x):
    """0 if abs(v) < x, else v."""
    return _step(9, "threshold(…)", x)


def add_diagonal(x, offset=0):
    """v + x where n − m = offset, else v."""
    return _step(10, "add_diagonal(…)", x, 0.0, offset)


def relu():
    """max(v, 0)"""
    return _step(11, "relu()")


def sigmoid():
    """1 / (1 + exp(−v))"""
    return _step(12, "sigmoid()")


def tanh():
    """tanh(v)"""
    return _step(13, "tanh()")


def silu():
    """v·sigmoid(v)"""
    return _step(14, "silu()")


def gelu():
    """v·Φ(v), Φ the normal distribution."""
    return _step(15, "gelu()")


def gelu_tanh():
    """GELU by its approximation with tanh."""
    return _step(16, "gelu_tanh()")


def any_bit():
    """1 if any bit of an integer is set, else 0."""
    return _step(17, "any_bit()")


def parity():
    """The number of set bits of an integer modulo 2; the first step."""
    return _step(18, "parity()")


def matern32(length):
    """(1 + u)·exp(−u), u = √3·v/length"""
    return _step(19, "matern32(…)", length)


def matern52(length):
    """(1 + u + u²/3)·exp(−u), u = √5·v/length"""
    return _step(20, "matern52(…)", length)


def rational_quadratic(alpha):
    """(1 + v/alpha)^−alpha"""
    return _step(21, "rational_quadratic(…)", alpha)
