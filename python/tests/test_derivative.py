# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients with functors from text and from functions, against NumPy."""

import copy
import pickle

import numpy as np
import pytest

import rigel_semirings as rs
from rigel_semirings import Derivative


def operands(rng, dtype, batch=(), outputs=3, n=4, m=7, k=9):
    return [rng.uniform(-1, 1, (*batch, *shape)).astype(dtype) for shape in ((k, m), (n, k), (outputs, k), (n, m))]


def expected(a, b, c, d, multiply):
    """Σ_k c(…,o,k)·multiply(d(…,n,m), b(…,n,k), a(…,k,m)) in float64."""
    a, b, c, d = (one.astype("float64") for one in (a, b, c, d))
    terms = multiply(d[..., :, None, :], b[..., :, :, None], a[..., None, :, :])  # (…, N, K, M)
    return np.einsum("...ok,...nkm->...onm", c, terms)


@pytest.mark.parametrize("dtype, u", [("float32", 2.0**-24), ("float64", 2.0**-53)])
@pytest.mark.parametrize("text, multiply", [
    ("a * (d - b)", lambda d, b, a: a * (d - b)),
    ("a * copysign(1, d - b)", lambda d, b, a: a * np.copysign(1.0, d - b)),
    ("a * b", lambda d, b, a: a * b),
    ("a * copysign(abs(d - b)**q, d - b)", lambda d, b, a: a * np.copysign(abs(d - b)**0.5, d - b)),
])
def test_text(compiles, rng, dtype, u, text, multiply):
    of = operands(rng, dtype)
    derivative = Derivative(text, q=0.5)
    out = rs.contract_gradient(*of, derivative)
    assert out.dtype == dtype and out.shape == (3, 4, 7)
    # Nine terms below 2, each with eight roundings, and double's own.
    np.testing.assert_allclose(out, expected(*of, multiply), rtol=0, atol=9 * 2 * (9 + 8) * u + 1e-14)


def test_half_has_sums_of_floats(compiles, rng):
    of = operands(rng, "float16")
    out = rs.contract_gradient(*of, Derivative("a * (d - b)"))
    assert out.dtype == "float32"
    np.testing.assert_allclose(out, expected(*of, lambda d, b, a: a * (d - b)), rtol=0, atol=9 * 2 * 17 * 2.0**-24)


def test_integers(compiles):
    a, b, c, d = np.array([[2, 1]], "int32").T, np.array([[1, -5]], "int32"), np.array([[3, -1]], "int32"), np.array([[4]], "int32")
    largest = Derivative("abs(d - b) + a", "max(x, abs(c) * v)", "max(x, y)", identity="-100", result="x << 1")
    assert rs.contract_gradient(a, b, c, d, largest).tolist() == [[[30]]]  # 3·(3 + 2) and 1·(9 + 1)


def test_functions(compiles, rng):
    of = operands(rng, "float64")

    def slope(d, b, a, eps=0.25):
        t = d - b
        return np.where(np.abs(t) < eps, 0.0, a * t)

    derivative = Derivative(slope, lambda x, c, v: x + c * v, lambda x, y: x + y, result=lambda x, w=2.0: w * x)
    assert derivative.name == "slope" and derivative.parameters == {"eps": 0.25, "w": 2.0}
    out = rs.contract_gradient(*of, derivative)
    plain = expected(*of, lambda d, b, a: np.where(abs(d - b) < 0.25, 0.0, a * (d - b)))
    np.testing.assert_allclose(out, 2 * plain, rtol=0, atol=1e-13)
    derivative.eps = 0.0
    derivative.w = 1.0
    np.testing.assert_allclose(rs.contract_gradient(*of, derivative), expected(*of, lambda d, b, a: a * (d - b)), rtol=0, atol=1e-13)
    np.testing.assert_allclose(rs.contract_gradient(*of, derivative, parameters={"eps": 0.25}), plain, rtol=0, atol=1e-13)


def test_batches_broadcast_and_out_accumulates(compiles, rng):
    a, b, c, d = operands(rng, "float64", (2, 3))
    derivative = Derivative("a * (d - b)")
    out = rs.contract_gradient(a[:, :1], b[0], c[1, 2], d, derivative)
    whole = expected(a[:, :1], b[0], c[1, 2], d, lambda d, b, a: a * (d - b))
    assert out.shape == (2, 3, 3, 4, 7)
    np.testing.assert_allclose(out, whole, rtol=0, atol=1e-13)
    rs.contract_gradient(a[:, :1], b[0], c[1, 2], d, derivative, out=out, accumulate=True)
    np.testing.assert_allclose(out, 2 * whole, rtol=0, atol=1e-13)
    turned = np.full((2, 3, 7, 4, 3), np.nan).transpose(0, 1, 4, 3, 2)
    assert rs.contract_gradient(a[:, :1], b[0], c[1, 2], d, derivative, out=turned) is turned
    np.testing.assert_array_equal(turned, rs.contract_gradient(a[:, :1], b[0], c[1, 2], d, derivative))


def test_new_values_compile_nothing(compiles, rng):
    of = operands(rng, "float32")
    derivative = Derivative("w * a * (d - b)", w=1.0)
    first = rs.contract_gradient(*of, derivative)
    before = rs.Semiring.statistics()
    for i in range(100):
        derivative.w = 2.0**(i % 20)
        np.testing.assert_array_equal(rs.contract_gradient(*of, derivative), derivative.w * first)
    assert rs.Semiring.statistics() == before


def test_explained(compiles, rng):
    of = operands(rng, "float32")
    explained = rs.explain(rs.contract_gradient, *of, Derivative("a * (d - b)", name="mine"))
    assert explained.problem.startswith("mine f32, 3x4x7, k 9")
    assert ".mine.f32." in explained.chosen


def test_copies():
    derivative = Derivative("a * w", "max(x, c * v)", identity="-infinity", name="mine", w=3.0)
    for other in (copy.copy(derivative), copy.deepcopy(derivative), pickle.loads(pickle.dumps(derivative))):
        assert repr(other) == repr(derivative) == "Derivative(multiply='a * w', accumulate='max(x, c * v)', identity='-infinity', w=3.0)"
        assert other.name == "mine"
        other.w = 4.0
        assert derivative.w == 3.0


@pytest.mark.parametrize("given, message", [
    ({"multiply": "a * k"}, r"multiply, line 1, column 5: 'k' is not known here(.|\n)*\^"),
    ({"multiply": "a", "accumulate": "x + a"}, "accumulate, line 1, column 5: 'a' is not known here"),
    ({"multiply": "a", "accumulate": "max(x, c * v)"}, "identity, line 1, column 1"),
    ({"multiply": "a", "d": 1.0}, "hyperparameter 1 is called 'd'"),
    ({"multiply": "a", "compile": 1.0}, "a hyperparameter is called 'compile'"),
    ({"multiply": lambda a, b: a}, r"Derivative: multiply takes \(a, b\), expected \(d, b, a, …\)"),
    ({"multiply": lambda d, b, a, k: a}, "multiply takes 'k' after"),
])
def test_refused(given, message):
    with pytest.raises(rs.InvalidArgument, match=message):
        Derivative(**given)


def test_refused_calls(compiles, rng):
    a, b, c, d = operands(rng, "float64")
    derivative = Derivative("a * (d - b) * w", name="mine", w=1.0)
    with pytest.raises(rs.Unsupported, match="derivative is 'l1', expected a Derivative"):
        rs.contract_gradient(a, b, c, d, "l1")
    with pytest.raises(rs.InvalidArgument, match="accumulate is True and out is None"):
        rs.contract_gradient(a, b, c, d, derivative, accumulate=True)
    with pytest.raises(rs.InvalidArgument, match=r"B is 4x8, expected 4x9 \(N x K\)"):
        rs.contract_gradient(a, b[:, :8], c, d, derivative)
    with pytest.raises(rs.InvalidArgument, match="B holds elements of type f32, expected f64"):
        rs.contract_gradient(a, b.astype("float32"), c, d, derivative)
    with pytest.raises(rs.NotFound, match="derivative 'mine' has no hyperparameter 'q', expected w"):
        rs.contract_gradient(a, b, c, d, derivative, parameters={"q": 1.0})
    with pytest.raises(AttributeError, match="derivative 'mine' has no hyperparameter 'q', expected w"):
        derivative.q = 1.0
    with pytest.raises(rs.Unsupported, match="w is 'x', expected a number"):
        derivative.w = "x"
