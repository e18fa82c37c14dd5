# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Semirings from text and from functions, against NumPy."""

import copy
import math
import pickle
import threading

import numpy as np
import pytest

import rigel_semirings as rs
from rigel_semirings import Semiring, epilogue, semiring
from rigel_semirings._semiring import without_powers


def scores(a, b, multiply, add):
    return add(multiply(a[..., :, :, None], b[..., None, :, :]), axis=-2)


# ---- powers in texts ----


def test_powers_of_powers_stay_short():
    text = "a"
    for _ in range(20):
        text = f"({text})**4"
    assert len(without_powers(text)) < 1000


@pytest.mark.parametrize("text, expected", [
    ("a**2", "(a * a)"), ("a ** p + b", "power(a, p) + b"), ("-a**2", "-(a * a)"), ("a**-2", "pow(a, -2)"), ("a**1", "a"),
    ("a**b**c", "power(a, power(b, c))"), ("(a - b)**2", "((a - b) * (a - b))"), ("abs(a - b)**p", "power(abs(a - b), p)"),
    ("abs((a - b)**2)**(1 / p)", "power(abs(((a - b) * (a - b))), (1 / p))"), ("fast::sqrt(a)**3", "((fast::sqrt(a)) * (fast::sqrt(a)) * (fast::sqrt(a)))"),
    ("a**fast::exp2(b)", "power(a, fast::exp2(b))"), ("1e-6**0.5", "power(1e-6, 0.5)"), ("0x1p-3 ** a", "power(0x1p-3, a)"),
    (".5**a", "power(.5, a)"), ("2.**a", "power(2., a)"), ("return (a)**5;", "return pow((a), 5);"), ("a**(4)", "((a * a) * (a * a))"), ("a**2.0", "(a * a)"),
    ("a**-1e1", "pow(a, -10)"), ("a**infinity", "power(a, infinity)"),
    ("a * b  // a**b", "a * b  // a**b"), ("abs (a) ** p", "power(abs (a), p)"), ("a*b", "a*b"), ("a ** abs(b) * 2", "power(a, abs(b)) * 2"),
])
def test_powers(text, expected):
    assert without_powers(text) == expected


@pytest.mark.parametrize("text", ["**2", "a**", "a + ** b", "a**)", "a**(b"])
def test_powers_without_operands(text):
    with pytest.raises(rs.InvalidArgument, match=r"line 1 of .*: '\*\*' stands between two operands"):
        without_powers(text)


# ---- texts ----


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_text(compiles, rng, dtype):
    a, b = rng.random((7, 9)).astype(dtype), rng.random((9, 5)).astype(dtype)
    s = Semiring(multiply="abs(a - b)**p", add="x + y", p=3.0, commutative=True)
    c = rs.contract(a, b, s)
    assert c.dtype == dtype
    # Nine terms below 1, each rounded, and powers within four units in the last place.
    np.testing.assert_allclose(c, scores(a.astype("float64"), b.astype("float64"), lambda x, y: abs(x - y)**3, np.sum),
                               rtol=16 * np.finfo(dtype).eps)


def test_hyperparameters_compile_nothing(compiles, rng):
    a, b = rng.random((4, 6)), rng.random((6, 3))
    s = Semiring(multiply="w * abs(a - b) + shift", add="max(x, y)", w=2, shift=0)
    expected = scores(a, b, lambda x, y: abs(x - y), np.max)
    np.testing.assert_array_equal(rs.contract(a, b, s), 2 * expected)
    before = Semiring.statistics()
    for w in (0.5, 4.0, 8.0):
        s.w = w
        np.testing.assert_array_equal(rs.contract(a, b, s), w * expected)
    np.testing.assert_array_equal(rs.contract(a, b, s, parameters={"w": 16}), 16 * expected)
    np.testing.assert_array_equal(rs.contract(a, b, s), 8 * expected)
    after = Semiring.statistics()
    assert after == before
    assert s.parameters == {"w": 8.0, "shift": 0.0}
    with pytest.raises(AttributeError, match="has no hyperparameter 'v', expected w, shift"):
        s.v = 1
    with pytest.raises(AttributeError, match="'Semiring' object has no attribute 'v'"):
        s.v
    with pytest.raises(TypeError, match="w is 'x', expected a number"):
        s.w = "x"
    with pytest.raises(rs.NotFound, match="contract: semiring 'text' has no hyperparameter 'v', expected w, shift"):
        rs.contract(a, b, s, parameters={"v": 1})
    with pytest.raises(TypeError, match="parameters are 3, expected a dict"):
        rs.contract(a, b, s, parameters=3)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integers(compiles, rng, dtype):
    a, b = rng.integers(0, 1000, (5, 8)).astype(dtype), rng.integers(0, 1000, (8, 6)).astype(dtype)
    s = Semiring(multiply="(a ^ b) & mask", add="x + y", mask=255)
    c = rs.contract(a, b, s)
    assert c.dtype == dtype
    np.testing.assert_array_equal(c, scores(a, b, lambda x, y: (x ^ y) & 255, np.sum))
    assert rs.contract(a, b, s, epilogue=epilogue.scale(0.5)).dtype == "float64"
    with pytest.raises(rs.InvalidArgument, match=r"(?s)contract.*|Semiring: multiply, line 1.*\^"):
        rs.contract(a.astype(float), b.astype(float), s)


def test_batches_out_and_half(compiles, rng):
    s = Semiring(multiply="a + b", add="min(x, y)")
    a, b = rng.random((2, 1, 5, 4)), rng.random((3, 4, 6))
    expected = scores(a, b, np.add, np.min)
    np.testing.assert_array_equal(rs.contract(a, b, s), expected)
    out = np.zeros((2, 3, 5, 6))
    assert rs.contract(a, b, s, out=out) is out
    np.testing.assert_array_equal(out, expected)
    out[...] = 0.5
    rs.contract(a, b, s, out=out, accumulate=True)
    np.testing.assert_array_equal(out, np.minimum(expected, 0.5))
    half = a[0, 0].astype("float16")
    c = rs.contract(half, half.T, s)
    assert c.dtype == "float16"
    np.testing.assert_array_equal(c, scores(half.astype("float32"), half.T.astype("float32"), np.add, np.min).astype("float16"))


def test_all_texts(compiles, rng):
    a, b = rng.random((3, 5)), rng.random((5, 4))
    # The number of terms over a threshold, as its square root.
    s = Semiring(multiply="a * b > t ? 1 : 0", add="x + y", identity="0", step="a * b > t ? x + 1 : x", result="sqrt(x)", t=0.25, name="over")
    np.testing.assert_array_equal(rs.contract(a, b, s), np.sqrt(scores(a, b, np.multiply, lambda x, axis: (x > 0.25).sum(axis))))
    why = rs.explain(rs.contract, a, b, s)
    assert why.problem.startswith("over f64")
    assert ".over.f64." in why.chosen


# ---- functions ----


@pytest.mark.parametrize("function, text", [
    (lambda a, b: abs(a - b), "abs((a - b))"), (lambda a, b: -a + 2 * b, "(-a) + (2 * b)"), (lambda a, b: a / b - 1, "(a / b) - 1"),
    (lambda a, b: 1 - a, "1 - a"), (lambda a, b: a**2 * b, "(a * a) * b"), (lambda a, b: a**0.5 + a**-2, "power(a, 0.5) + pow(a, -2)"), (lambda a, b: 2**a, "power(2, a)"),
    (lambda a, b: np.minimum(a, b), "min(a, b)"), (np.minimum, "min(a, b)"), (np.multiply, "a * b"), (lambda a, b: np.maximum(a, -3), "max(a, (-3))"),
    (lambda a, b: np.where(a < b, a, 0.5), "(a < b) ? a : 0.5"), (lambda a, b: a != b, "(a != b) ? 1 : 0"),
    (lambda a, b: (a < b) & ~(a == 0), "((a < b) && (!(a == 0))) ? 1 : 0"), (lambda a, b: a & b | ~a, "(a & b) | (~a)"),
    (lambda a, b: (a < b) * b, "((a < b) ? 1 : 0) * b"), (lambda a, b: np.exp(a) + np.log1p(b), "exp(a) + log1p(b)"),
    (lambda a, b: np.float64(0.5) * a, "0.5 * a"), (lambda a, b: np.array(0.5) * a, "0.5 * a"), (lambda a, b: a * np.int32(3), "a * 3"),
    (lambda a, b: np.clip(a, 0, 1), "min(max(a, 0), 1)"), (lambda a, b: a + math.inf, "a + infinity"),
    (lambda a, b: a - -math.inf, "a - (-infinity)"), (lambda a, b: 1e-06 + a, "1e-06 + a"), (lambda a, b: np.square(a), "a * a"),
    (lambda a, b: np.copysign(a, b) + np.isnan(a), "copysign(a, b) + (isnan(a) ? 1 : 0)"), (lambda a, b: 3, "3"),
    (lambda a, b: np.logical_and(a, b), "((a != 0) && (b != 0)) ? 1 : 0"), (lambda a, b: a << 2 ^ b >> 1, "(a << 2) ^ (b >> 1)"),
    (lambda x, y: x * y, "a * b"), (lambda a, b, k: a * b * (k + 1), "(a * b) * (k + 1)"), (lambda a, b, *, k: np.where(k > 2, a, b), "(k > 2) ? a : b"),
])
def test_traced(function, text):
    assert Semiring(function).multiply == text


def test_functions_of_the_index(compiles, rng):
    a, b = rng.random((4, 6)), rng.random((6, 3))

    @rs.semiring(commutative=True)
    def weighted(a, b, k, rate=0.5):
        return a * b * (1 + rate * k)

    assert weighted.parameters == {"rate": 0.5}
    np.testing.assert_allclose(rs.contract(a, b, weighted), (a * (1 + 0.5 * np.arange(6))) @ b, rtol=1e-14)
    step = Semiring(multiply=lambda a, b, k: a * b * k, step=lambda x, a, b, k: x + a * b * k)
    assert step.step == "x + ((a * b) * k)"
    np.testing.assert_allclose(rs.contract(a, b, step), (a * np.arange(6)) @ b, rtol=1e-14)
    with pytest.raises(ValueError, match="add takes 'k' after"):
        Semiring(multiply="a", add=lambda x, y, k: x + y)


def test_shared_values_have_variables():
    def f(a, b, t2=1.0):
        d = a - b
        e = d * d
        return e + e * t2

    assert Semiring(f).multiply == "auto t1 = a - b;\nauto t3 = t1 * t1;\nreturn t3 + (t3 * t2);"

    def deep(a, b):
        for _ in range(60):
            a = a + b * 0.5
        return a

    assert Semiring(deep).multiply.count("auto") == 7


FUNCTIONS = {
    "l1": (lambda a, b: abs(a - b), lambda a, b: abs(a - b)),
    "canberra": (lambda a, b: np.where(a + b > 0, abs(a - b) / (a + b), 0.0), lambda a, b: abs(a - b) / (a + b)),
    "hamming": (lambda a, b: np.floor(4 * a) != np.floor(4 * b), lambda a, b: np.floor(4 * a) != np.floor(4 * b)),
    "entropy": (lambda a, b: a * np.log(a / b) - a + b, lambda a, b: a * np.log(a / b) - a + b),
    "huber": (lambda a, b: np.where(abs(a - b) < 0.25, (a - b)**2, 0.5 * abs(a - b) - 0.0625),
              lambda a, b: np.where(abs(a - b) < 0.25, (a - b)**2, 0.5 * abs(a - b) - 0.0625)),
    "cubes": (lambda a, b: (a - b)**3 + (b - a)**4 + (a - b)**5, lambda a, b: (a - b)**3 + (b - a)**4 + (a - b)**5),
    "waves": (lambda a, b: np.sin(a) * np.cos(b) + np.tanh(a - b), lambda a, b: np.sin(a) * np.cos(b) + np.tanh(a - b)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(compiles, rng, name):
    function, expected = FUNCTIONS[name]
    a, b = rng.random((6, 10)) + 0.01, rng.random((10, 7)) + 0.01
    # Ten terms of magnitude below 5, of a few operations each within four units in the last place.
    np.testing.assert_allclose(rs.contract(a, b, Semiring(function)), scores(a, b, expected, np.sum), rtol=1e-14, atol=1e-13)


def test_decorator(compiles, rng):
    @semiring
    def l1(a, b):
        return abs(a - b)

    @semiring(add=lambda x, y: np.maximum(x, y), result=lambda x: 2 * x, commutative=True)
    def weighted(a, b, w=3.0):
        return w * abs(a - b)

    a, b = rng.random((4, 5)), rng.random((5, 6))
    assert l1.name == "l1" and weighted.commutative and not l1.commutative
    np.testing.assert_allclose(rs.contract(a, b, l1), scores(a, b, lambda x, y: abs(x - y), np.sum), rtol=1e-15)
    expected = scores(a, b, lambda x, y: abs(x - y), np.max)
    np.testing.assert_allclose(rs.contract(a, b, weighted), 6 * expected, rtol=1e-15)
    weighted.w = 0.5
    np.testing.assert_array_equal(rs.contract(a, b, weighted), expected)
    assert repr(weighted) == "Semiring(multiply='w * abs((a - b))', add='max(x, y)', result='2 * x', w=0.5)"


def test_copies(compiles):
    s = Semiring(multiply="abs(a - b)**p", p=2.0, name="named")
    for other in (copy.copy(s), copy.deepcopy(s), pickle.loads(pickle.dumps(s))):
        other.p = 1.0
        assert (s.p, other.p, other.name, other.multiply) == (2.0, 1.0, "named", s.multiply)
        assert {"p", "multiply", "compile"} <= set(dir(other))
        np.testing.assert_allclose(rs.contract([[1.0]], [[4.0]], other), [[3.0]], rtol=1e-15)


def test_threads(compiles, rng):
    a, b = rng.random((8, 8)), rng.random((8, 8))
    s = Semiring(multiply="w * abs(a - b)", w=1.0)
    one = rs.contract(a, b, s)
    results = {}

    def work(w):
        for _ in range(20):
            results.setdefault(w, []).append(rs.contract(a, b, s, parameters={"w": w}))

    threads = [threading.Thread(target=work, args=(2.0**i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for w, found in results.items():
        for c in found:
            np.testing.assert_array_equal(c, w * one)


# ---- hyperparameters in arrays ----


def test_arrays_of_a_batch(compiles, rng):
    a, b = rng.random((3, 4, 6)), rng.random((6, 5))
    s = Semiring("w * abs(a - b) + shift", "max(x, y)", w=np.array([1.0, 2.0, 4.0]), shift=0)
    base = scores(a, b, lambda x, y: abs(x - y), np.max)
    c = rs.contract(a, b, s)
    np.testing.assert_array_equal(c, base * np.array([1.0, 2.0, 4.0])[:, None, None])
    before = Semiring.statistics()
    w, shift = s.w, np.array(0.0)
    s.shift = shift
    w[:] = (8.0, 0.5, 16.0)  # the arrays are read at each call
    shift[...] = 2.0
    np.testing.assert_array_equal(rs.contract(a, b, s), base * w[:, None, None] + 2)
    np.testing.assert_array_equal(rs.contract(a, b, s, parameters={"shift": np.array([0.0, 4.0, 0.0])}),
                                  base * w[:, None, None] + np.array([0.0, 4.0, 0.0])[:, None, None])
    s.w = 2
    np.testing.assert_array_equal(rs.contract(a, b, s), base * 2 + 2)
    np.testing.assert_array_equal(rs.contract(a[0], b, s, parameters={"w": w[::-1]}), base[0] * w[::-1, None, None] + 2)  # which makes the batch
    assert Semiring.statistics() == before
    for other in (copy.copy(s), pickle.loads(pickle.dumps(s))):
        np.testing.assert_array_equal(rs.contract(a, b, other), base * 2 + 2)
    assert s.parameters == {"w": 2.0, "shift": shift} and copy.copy(s).shift is shift


@pytest.mark.parametrize("dtype, sums", [("float32", "float32"), ("float64", "float64"), ("float16", "float32"), ("int32", "int32"), ("int64", "int64")])
def test_arrays_of_any_shape(compiles, rng, dtype, sums):
    a, b = rng.integers(0, 4, (2, 3, 4, 6)).astype(dtype), rng.integers(0, 4, (3, 6, 5)).astype(dtype)
    product = a.astype("int64") @ b.astype("int64")
    s = Semiring("a * b * p", "x + y", p=1)
    many = np.arange(-36, 36).astype(sums).reshape(2, 3, 12)
    for p in (many[:, :, 3], many[::-1, ::-1, 5], many[:, :1, 2], many[0, :, 7], many[0, ::-1, 1], many[1, 2, 4:5], many[1, 2, 4].reshape(())):
        expected = product * (p[..., None, None] if p.ndim else p)
        np.testing.assert_array_equal(rs.contract(a, b, s, parameters={"p": p}), expected)
        e = rs.Epilogue("x * p + m", p=p)
        for semiring in ("plus_times", Semiring("a * b", "x + y")):
            np.testing.assert_array_equal(rs.contract(a, b, semiring, epilogue=e), expected + np.arange(4)[:, None])


def test_arrays_of_fields_and_of_torch(compiles, rng, torch):
    a, b = rng.integers(0, 50, (2, 6, 9)).astype("float32"), rng.integers(0, 50, (9, 5)).astype("float32")
    nearest = Semiring("{abs(a - p * b), k}", "y.value < x.value ? y : x", p=torch.tensor([1.0, 3.0]), **NEAREST)
    c = rs.contract(torch.from_numpy(a), torch.from_numpy(b), nearest)
    expected = np.argmin(abs(a[..., :, None] - np.array([1, 3])[:, None, None, None] * b), axis=-2)
    np.testing.assert_array_equal(c, expected)
    np.testing.assert_array_equal(rs.contract(a, b, nearest), expected)  # arrays of two libraries
    nearest.p.fill_(3.0)
    np.testing.assert_array_equal(rs.contract(a, b, nearest)[1], expected[1])
    nearest.p.requires_grad_()
    with pytest.raises(rs.Unsupported, match="p requires a gradient, which this call does not record"):
        rs.contract(a, b, nearest)


def test_arrays_that_a_call_keeps(compiles):
    s = Semiring("a * b * p", "x + y", p=np.full(3, 2.0))  # no other name holds the array
    filler = [np.full(3, -1.0) for _ in range(100)]
    assert (rs.contract(np.ones((3, 2, 2)), np.ones((2, 2)), s) == 4).all() and filler


def test_refused_arrays(compiles):
    a, b = np.ones((2, 3, 4), "float32"), np.ones((4, 5), "float32")
    s, e = Semiring("a * b * p", "x + y", p=1.0, name="mine"), rs.Epilogue("x * q", q=1.0, name="own")
    with pytest.raises(rs.InvalidArgument, match="^contract: the view that is hyperparameter 'p' of 'mine' holds elements of type f64, expected f32$"):
        rs.contract(a, b, s, parameters={"p": np.ones(2)})
    with pytest.raises(rs.InvalidArgument, match=r"^p of shape \(3,\) does not broadcast with the batch \(2,\)$"):
        rs.contract(a, b, s, parameters={"p": np.ones(3, "float32")})
    with pytest.raises(rs.InvalidArgument, match="out has the shape .*, expected"):
        rs.contract(a[0], b, s, parameters={"p": np.ones(3, "float32")}, out=np.zeros((3, 5), "float32"))
    with pytest.raises(rs.NotFound, match="'mine' has no hyperparameter 'q', expected p"):
        rs.contract(a, b, s, parameters={"q": np.ones(2, "float32")})
    with pytest.raises(rs.Unsupported, match="p holds complex"):
        rs.contract(a, b, s, parameters={"p": np.ones(2, "complex64")})
    e.q = np.ones(2)
    with pytest.raises(rs.InvalidArgument, match="^contract: the view that is hyperparameter 'q' of 'own' holds elements of type f64, expected f32$"):
        rs.contract(a, b, s, epilogue=e)
    e.q = np.ones(3, "float32")
    with pytest.raises(rs.InvalidArgument, match=r"^q of shape \(3,\) does not broadcast"):
        rs.contract(a, b, "plus_times", epilogue=e)
    with pytest.raises(TypeError, match="expected a number, or an array with __dlpack__"):
        e.q = [1.0, 2.0]
    with pytest.raises(TypeError, match="p is array.*, expected a number"):
        rs.contract(a, b, "lp", parameters={"p": np.ones(2)})
    assert rs.contract(np.ones((0, 3, 4), "float32"), b, s, parameters={"p": np.ones(1, "float32")}).shape == (0, 3, 5)


# ---- what is refused ----


def test_refused_texts():
    with pytest.raises(ValueError, match=r"^Semiring: multiply, line 1, column 9: 'c' is not known here(?s:.*)\n  abs\(a - c\)\n          \^$"):
        Semiring("abs(a - c)")
    with pytest.raises(rs.InvalidArgument, match="Semiring: identity, line 1, column 1: expected the identity of add"):
        Semiring("a * b", "x * y")
    with pytest.raises(rs.InvalidArgument, match="hyperparameter 1 is called 'a'"):
        Semiring("a * b", a=1)
    with pytest.raises(rs.InvalidArgument, match="a hyperparameter is called 'compile', which has another meaning"):
        Semiring("a * b", compile=1)
    with pytest.raises(TypeError, match="multiply is 3, expected a str or a function"):
        Semiring(3)
    with pytest.raises(TypeError, match="p is None, expected a number"):
        Semiring("a * p", p=None)
    with pytest.raises(TypeError, match="semiring is called with 'a', expected a function"):
        semiring("a")
    with pytest.raises(rs.InvalidArgument, match="17 hyperparameters, expected at most 16"):
        Semiring("a * b", **{f"p{i}": i for i in range(17)})
    with pytest.raises(TypeError, match="semiring is Semiring.*, expected a str"):
        rs.reduce([[1.0]], [[1.0]], Semiring("a * b"))


def refuse_if(a, b):
    return a if a < b else b


@pytest.mark.parametrize("function, message", [
    (refuse_if, r"calls bool\(\)"), (lambda a, b: min(a, b), r"calls bool\(\)"), (lambda a, b: math.exp(a), r"calls float\(\)"),
    (lambda a, b: [0, 1][a], r"calls int\(\)"), (lambda a, b: sum(a), r"calls iter\(\)"), (lambda a, b: np.tan(a), "calls np.tan, expected one of"),
    (lambda a, b: np.add(a, b, dtype=float), "np.add has options"), (lambda a, b: "a", "has 'a' among its values, expected a number"),
    (lambda a, b: a + np.ones(3), "among its values, expected a number"), (lambda a, b: None, "has None among its values"),
    (lambda a, b: a + math.nan, "has NaN among its numbers"), (lambda a: a, r"multiply takes \(a\), expected \(a, b, …\)"),
    (lambda a, b, c: a, "takes 'c' after"), (lambda a, b, *c: a, r"takes '\*c' after"), (min, "whose arguments are not known"),
])
def test_refused_functions(function, message):
    with pytest.raises((rs.Unsupported, rs.InvalidArgument), match=message):
        Semiring(function)


# ---- accumulators of several fields ----

NEAREST = {"fields": {"value": float, "index": int}, "result_type": int, "result": "x.index", "identity": "{infinity, -1}"}


@pytest.mark.parametrize("dtype, index", [("float32", "int32"), ("float64", "int64"), ("float16", "int32")])
def test_fields(compiles, rng, dtype, index):
    a, b = rng.integers(0, 50, (2, 6, 9)).astype(dtype), rng.integers(0, 50, (9, 5)).astype(dtype)
    nearest = Semiring("{a + b, k}", "y.value < x.value ? y : x", **NEAREST)
    traced = Semiring(lambda a, b, k: (a + b, k),
                      lambda x, y: {"index": np.where(y.value < x.value, y.index, x.index), "value": np.minimum(x.value, y.value)}, **NEAREST)
    for s in (nearest, traced, pickle.loads(pickle.dumps(nearest))):
        c = rs.contract(a, b, s)
        assert c.dtype == index
        np.testing.assert_array_equal(c, np.argmin(a[..., :, None] + b, axis=-2))
        assert s.fields == NEAREST["fields"] and s.result_type is int
    assert "fields={'value': float, 'index': int}, result_type=int" in repr(nearest)
    with pytest.raises(rs.InvalidArgument, match="accumulate is not defined"):
        rs.contract(a, b, nearest, out=np.zeros((2, 6, 5), index), accumulate=True)


def test_fields_of_integers_give_floats(compiles, rng):
    a, b = rng.integers(1, 9, (4, 6)).astype("int32"), rng.integers(1, 9, (6, 3)).astype("int32")
    mean = Semiring("{a * b, 1}", "{x.total + y.total, x.count + y.count}", identity="{0, 0}", result="float(x.total) / x.count",
                    fields={"total": int, "count": int}, result_type=float)
    c = rs.contract(a, b, mean)
    assert c.dtype == "float32"
    np.testing.assert_array_equal(c, (a @ b).astype("float32") / np.float32(6))


def test_refused_fields():
    with pytest.raises(TypeError, match="fields are 3, expected a dict"):
        Semiring("a * b", fields=3)
    with pytest.raises(TypeError, match="field 'value' is 'float', expected float or int"):
        Semiring("{a, b}", fields={"value": "float", "index": int})
    with pytest.raises(TypeError, match="result_type is 'f', expected float or int"):
        Semiring("a * b", result_type="f")
    with pytest.raises(rs.InvalidArgument, match="expected"):
        Semiring("{a}", fields={"value": float}, identity="{0}", result="x.value")
    with pytest.raises(rs.InvalidArgument, match="result is empty"):
        Semiring("{a, k}", "x", fields={"value": float, "index": int}, identity="{0, 0}")
    with pytest.raises(rs.InvalidArgument, match="returns .*, expected a number for each field: value, index"):
        Semiring(lambda a, b: a, "x", **NEAREST)
    with pytest.raises(rs.InvalidArgument, match="returns .*, expected a number for each field: value, index"):
        Semiring("{a, k}", lambda x, y: {"value": x.value}, **NEAREST)


# ---- epilogues ----


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "int64"])
def test_epilogue(compiles, rng, dtype):
    a, b = rng.integers(0, 4, (3, 5, 7)).astype(dtype), rng.integers(0, 4, (7, 6)).astype(dtype)
    expected = 3 * (a.astype("int64") @ b.astype("int64")) + 10 * np.arange(5)[:, None] - np.arange(6)
    e = rs.Epilogue("x * w + 10 * m - n", w=3)
    for s in ("plus_times", Semiring("a * b", "x + y")):
        c = rs.contract(a, b, s, epilogue=e)
        assert c.dtype == dtype
        np.testing.assert_array_equal(c, expected)
    np.testing.assert_array_equal(rs.contract(a, b, "plus_times", epilogue=rs.Epilogue(lambda x, m, n, w=3.0: x * w + 10 * m - n)), expected)
    assert rs.contract(a, b, "plus_times", epilogue=e, dtype="float64").dtype == "float64"


def test_epilogue_of_indices(compiles, rng):
    a, b = rng.integers(0, 50, (6, 9)).astype("float32"), rng.integers(0, 50, (9, 5)).astype("float32")
    nearest = Semiring("{a + b, k}", "y.value < x.value ? y : x", **NEAREST)
    out = np.zeros((6, 5), "float32")
    rs.contract(a, b, nearest, epilogue=rs.Epilogue("x + 0.5"), out=out)
    np.testing.assert_array_equal(out, np.argmin(a[:, :, None] + b, axis=1) + 0.5)


def test_epilogue_values_compile_nothing(compiles, rng):
    a, b = rng.integers(0, 4, (5, 7)).astype(float), rng.integers(0, 4, (7, 6)).astype(float)
    leaky = rs.Epilogue(lambda x, slope=0.5: np.where(x > 30, x, slope * x), name="leaky")
    c = a @ b
    np.testing.assert_array_equal(rs.contract(a, b, "plus_times", epilogue=leaky), np.where(c > 30, c, 0.5 * c))
    before = Semiring.statistics()
    leaky.slope = 0.25
    np.testing.assert_array_equal(rs.contract(a, b, "plus_times", epilogue=leaky), np.where(c > 30, c, 0.25 * c))
    leaky.compile(dtype="float64")
    assert {**Semiring.statistics(), "from_memory": 0} == {**before, "from_memory": 0}
    other = pickle.loads(pickle.dumps(leaky))
    assert (other.name, other.slope, other.body, repr(other)) == ("leaky", 0.25, leaky.body, repr(leaky))
    with pytest.raises(AttributeError, match="epilogue 'leaky' has no hyperparameter 'v', expected slope"):
        leaky.v = 1
    why = rs.explain(rs.contract, a, b, "plus_times", epilogue=leaky)
    facts = next(one["facts"] for one in why.candidates if one["chosen"])
    assert facts["name"] == why.chosen and facts["operation"] == "contract" and set(facts["operands"]) == {"A", "B", "C"}


def test_refused_epilogues(compiles):
    with pytest.raises(ValueError, match=r"^Epilogue: body, line 1, column 5: 'c' is not known here(?s:.*)\n  x \* c\n      \^$"):
        rs.Epilogue("x * c")
    with pytest.raises(rs.InvalidArgument, match="Epilogue: body reads 'batch'"):
        rs.Epilogue("x + batch")
    with pytest.raises(TypeError, match="Epilogue: body is None, expected a str or a function"):
        rs.Epilogue(None)
    with pytest.raises(TypeError, match="p is 'x', expected a number"):
        rs.Epilogue("x * p", p="x")
    one, double = [[1.0]], rs.Epilogue("x * 2")
    with pytest.raises(rs.Unsupported, match="an epilogue from text does not go with semiring 'min_plus' of f64"):
        rs.contract(one, one, "min_plus", epilogue=double)
    with pytest.raises(rs.Unsupported, match="expected steps of rigel_semirings.epilogue"):
        rs.reduce(one, one, epilogue=double)
    with pytest.raises(rs.InvalidArgument, match="the result type is u8"):
        rs.contract(one, one, "plus_times", epilogue=double, dtype="uint8")
    with pytest.raises(rs.Unsupported, match="semiring is 'plus_times', expected a Semiring, or None"):
        double.compile("plus_times")
