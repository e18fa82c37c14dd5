# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""contract() and reduce() against NumPy."""

import numpy as np
import pytest

import rigel_semirings as rs
from rigel_semirings import epilogue

OPERATIONS = {
    "plus_times": (np.multiply, np.sum), "min_plus": (np.add, np.min), "max_plus": (np.add, np.max), "max_min": (np.minimum, np.max),
    "min_max": (np.maximum, np.min), "max_times": (np.multiply, np.max), "min_times": (np.multiply, np.min),
    "log_plus": (np.add, np.logaddexp.reduce), "l1": (lambda a, b: abs(a - b), np.sum), "l2_squared": (lambda a, b: (a - b)**2, np.sum),
    "linf": (lambda a, b: abs(a - b), np.max), "hamming": (lambda a, b: (a != b).astype(float), np.sum),
}


def scores(a, b, semiring):
    multiply, add = OPERATIONS[semiring]
    return add(multiply(a[..., :, :, None], b[..., None, :, :]), axis=-2)


@pytest.mark.parametrize("semiring", OPERATIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_semirings(rng, semiring, dtype):
    a, b = rng.random((7, 9)).astype(dtype), rng.random((9, 5)).astype(dtype)
    c = rs.contract(a, b, semiring)
    assert c.dtype == dtype
    # Nine terms below 2, each rounded, and transcendental functions within four units in the last place.
    np.testing.assert_allclose(c, scores(a.astype("float64"), b.astype("float64"), semiring), rtol=16 * np.finfo(dtype).eps)


def test_hyperparameters(rng):
    a, b = rng.random((4, 6)), rng.random((6, 3))
    expected = (abs(a[:, :, None] - b[None])**3).sum(1)
    np.testing.assert_allclose(rs.contract(a, b, "lp", parameters={"p": 3}), expected, rtol=1e-14)
    with pytest.raises(rs.NotFound, match="lp' has no hyperparameter 'q', expected p"):
        rs.contract(a, b, "lp", parameters={"q": 3})
    with pytest.raises(TypeError, match="p is 'x', expected a number"):
        rs.contract(a, b, "lp", parameters={"p": "x"})
    with pytest.raises(TypeError, match="parameters are 3, expected a dict"):
        rs.contract(a, b, "lp", parameters=3)


@pytest.mark.parametrize("dtype, result", [("int8", "int32"), ("uint8", "int32"), ("int32", "int32"), ("int64", "int64")])
def test_integers(rng, dtype, result):
    a, b = rng.integers(0, 100, (3, 4)).astype(dtype), rng.integers(0, 100, (4, 5)).astype(dtype)
    c = rs.contract(a, b, "plus_times")
    assert c.dtype == result
    np.testing.assert_array_equal(c, a.astype("int64") @ b.astype("int64"))
    half = rs.contract(a, b, "plus_times", epilogue=epilogue.scale(0.5))
    assert half.dtype == "float64"
    np.testing.assert_array_equal(half, (a.astype("int64") @ b.astype("int64")) / 2)


def test_half(rng):
    a = rng.random((3, 4)).astype("float16")
    c = rs.contract(a, a.T, "plus_times")
    assert c.dtype == "float16"
    np.testing.assert_array_equal(c, (a.astype("float32") @ a.T.astype("float32")).astype("float16"))
    assert rs.contract(a, a.T, "plus_times", dtype="float32").dtype == "float32"
    assert rs.contract(a, a.T, "plus_times", dtype=np.float64).dtype == "float64"


def test_booleans(rng):
    a, b = rng.random((6, 8)) < 0.3, rng.random((8, 7)) < 0.3
    c = rs.contract(a, b, "or_and")
    assert c.dtype == bool
    np.testing.assert_array_equal(c, (a[:, :, None] & b[None]).any(1))
    c = rs.contract(a, b, "xor_and")
    np.testing.assert_array_equal(c, (a[:, :, None] & b[None]).sum(1) % 2 == 1)


def test_layouts(rng):
    a, b = rng.random((6, 8)), rng.random((8, 5))
    expected = scores(a, b, "min_plus")
    np.testing.assert_array_equal(rs.contract(np.asfortranarray(a), b.T.copy().T), expected)
    wide = rng.random((12, 24))
    wide[::2, 1::3] = a
    np.testing.assert_array_equal(rs.contract(wide[::2, 1::3], b), expected)
    np.testing.assert_array_equal(rs.contract(a[::-1], b), expected[::-1])
    np.testing.assert_array_equal(rs.contract(a[:, ::-1], b[::-1]), expected)
    a.flags.writeable = False
    np.testing.assert_array_equal(rs.contract(a, b), expected)
    records = np.zeros((6, 8), [("flag", "u1"), ("x", "<f8")])
    records["x"] = a
    np.testing.assert_array_equal(rs.contract(records["x"], b), expected)
    np.testing.assert_array_equal(rs.contract(a.tolist(), b), expected)


def test_batches_broadcast(rng):
    a, b = rng.random((3, 1, 2, 4, 5)), rng.random((6, 1, 5, 3))
    np.testing.assert_array_equal(rs.contract(a, b), scores(a, b, "min_plus"))
    swapped = np.swapaxes(rng.random((2, 6, 3, 4, 5)), 0, 2)
    np.testing.assert_array_equal(rs.contract(swapped, b), scores(swapped, b, "min_plus"))
    np.testing.assert_array_equal(rs.contract(a[0, 0], b[0, 0]), scores(a[0, 0], b[0, 0], "min_plus"))
    everywhere = np.broadcast_to(b[0, 0], (2, 5, 3))
    np.testing.assert_array_equal(rs.contract(a[0, 0], everywhere), scores(a[0, 0], everywhere, "min_plus"))
    assert rs.contract(np.zeros((0, 2, 3)), np.zeros((3, 4))).shape == (0, 2, 4)
    with pytest.raises(ValueError, match=r"b of shape \(3, 5, 2\) does not broadcast with the batch \(2,\)"):
        rs.contract(np.zeros((2, 4, 5)), np.zeros((3, 5, 2)))


def test_empty_extents():
    np.testing.assert_array_equal(rs.contract(np.zeros((2, 0)), np.zeros((0, 3))), np.full((2, 3), np.inf))
    np.testing.assert_array_equal(rs.contract(np.zeros((2, 0)), np.zeros((0, 3)), "plus_times"), np.zeros((2, 3)))
    assert rs.contract(np.zeros((0, 4)), np.zeros((4, 3))).shape == (0, 3)
    assert rs.contract(np.zeros((2, 4)), np.zeros((4, 0))).shape == (2, 0)


def test_special_numbers():
    a = np.array([[np.nan, 1], [np.inf, 1], [-np.inf, 0]])
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(rs.contract(a, np.eye(2), "plus_times"), a @ np.eye(2))
        np.testing.assert_array_equal(rs.contract(a, np.zeros((2, 1)), "min_plus"), a.min(1, keepdims=True))
        np.testing.assert_array_equal(rs.contract(a, np.zeros((2, 1)), "log_plus")[1:], [[np.inf], [0]])


def test_out_and_accumulate(rng):
    a, b, c = rng.random((3, 4)), rng.random((4, 5)), rng.random((3, 5))
    before = c.copy()
    assert rs.contract(a, b, "plus_times", out=c, accumulate=True) is c
    np.testing.assert_allclose(c, before + a @ b, rtol=1e-15)
    flipped = np.zeros((3, 5))
    assert rs.contract(a, b, "plus_times", out=flipped[::-1, ::-1]) is not None
    np.testing.assert_allclose(flipped, (a @ b)[::-1, ::-1], rtol=1e-15)
    rs.contract(a, b, "plus_times", out=flipped[::-1, ::-1], accumulate=True)
    np.testing.assert_allclose(flipped, 2 * (a @ b)[::-1, ::-1], rtol=1e-15)
    floats = np.zeros((3, 5), "float32")
    rs.contract(a, b, "plus_times", out=floats)
    np.testing.assert_array_equal(floats, rs.contract(a, b, "plus_times").astype("float32"))


def test_epilogue(rng):
    a, b = rng.random((3, 4)), rng.random((4, 5))
    row, column, residual = rng.random(5), rng.random((3, 1)), rng.random((3, 5))
    c = rs.contract(a, b, "plus_times", epilogue=epilogue.scale(column) | epilogue.add(row) | epilogue.add(residual) | epilogue.tanh())
    np.testing.assert_allclose(c, np.tanh((a @ b) * column + row + residual), rtol=1e-14)
    batched = rng.random((2, 1, 5))
    c = rs.contract(a, b, "plus_times", epilogue=epilogue.add(batched))
    np.testing.assert_allclose(c, a @ b + batched, rtol=1e-15)
    np.testing.assert_allclose(rs.contract(a, b, "plus_times", epilogue=epilogue.add(np.array(2.0))), a @ b + 2, rtol=1e-15)
    with pytest.raises(ValueError, match="the epilogue has 9 steps, expected at most 8"):
        program = epilogue.relu()
        for _ in range(8):
            program = program | epilogue.relu()
        rs.contract(a, b, epilogue=program)
    with pytest.raises(ValueError, match="the epilogue reads more than 4 arrays"):
        program = epilogue.add(row)
        for _ in range(4):
            program = program | epilogue.add(row)
        rs.contract(a, b, epilogue=program)
    with pytest.raises(ValueError, match="sources"):
        rs.contract(a, b, epilogue=epilogue.add(rng.random(4)))
    with pytest.raises(TypeError, match="epilogue is a str"):
        rs.contract(a, b, epilogue="relu")


def test_refusals(rng):
    a, b = rng.random((3, 4)), rng.random((4, 5))
    with pytest.raises(rs.InvalidArgument, match="B is 3x4, expected 4 rows"):
        rs.contract(a, a)
    with pytest.raises(rs.InvalidArgument, match=r"a has the shape \(4,\), expected dimensions, at least 2"):
        rs.contract(a[0], b)
    with pytest.raises(rs.InvalidArgument, match="B is 4x5 of f32, expected f64 as A"):
        rs.contract(a, b.astype("float32"))
    with pytest.raises(rs.NotFound, match="'nothing' is no semiring, expected one of .*min_plus"):
        rs.contract(a, b, "nothing")
    with pytest.raises(rs.Unsupported, match="log_plus' of i32"):
        rs.contract(a.astype("int32"), b.astype("int32"), "log_plus")
    with pytest.raises(rs.Unsupported, match="semiring is 3, expected a str"):
        rs.contract(a, b, 3)
    with pytest.raises(rs.Unsupported, match="a holds '>f8', numbers in the byte order of another machine"):
        rs.contract(a.astype(">f8"), b)
    with pytest.raises(rs.Unsupported, match="a holds complex128"):
        rs.contract(a + 0j, b)
    with pytest.raises(rs.Unsupported, match="a holds object"):
        rs.contract(a.astype(object), b)
    with pytest.raises(rs.Unsupported, match="a holds <U1"):
        rs.contract([["x"]], b)
    with pytest.raises(rs.Unsupported, match="a is a dict, expected an array"):
        rs.contract({}, b)
    with pytest.raises(rs.InvalidArgument, match="a is no array"):
        rs.contract([[1.0], [1.0, 2.0]], b)
    with pytest.raises(rs.InvalidArgument, match=r"out has the shape \(5, 3\), expected \(3, 5\)"):
        rs.contract(a, b, out=np.zeros((5, 3)))
    frozen = np.zeros((3, 5))
    frozen.flags.writeable = False
    with pytest.raises(rs.InvalidArgument, match="out is read-only"):
        rs.contract(a, b, out=frozen)
    with pytest.raises(rs.InvalidArgument, match="out is no array that results can be written to"):
        rs.contract(a, b, out=[[0.0] * 5] * 3)
    with pytest.raises(rs.InvalidArgument, match="accumulate is True and out is None"):
        rs.contract(a, b, accumulate=True)
    with pytest.raises(rs.InvalidArgument, match="precision is 'more', expected one of automatic"):
        rs.contract(a, b, precision="more")
    with pytest.raises(rs.InvalidArgument, match="require is 'luck', expected one of reference_bits"):
        rs.contract(a, b, require="luck")
    with pytest.raises(rs.NotFound, match="no.such"):
        rs.contract(a, b, kernel="no.such")
    with pytest.raises(TypeError, match="dtype is 'complex64'"):
        rs.contract(a, b, dtype="complex64")


def test_overlap_writes_nothing(rng):
    memory = rng.random(40)
    a, out = memory[:12].reshape(3, 4), memory[8:17].reshape(3, 3)
    before = memory.copy()
    with pytest.raises(ValueError, match="overlap"):
        rs.contract(a, rng.random((4, 3)), out=out)
    np.testing.assert_array_equal(memory, before)


def test_out_of_several_batches_may_overlap(rng):
    memory = rng.random((3, 3, 4, 4))
    b = rng.random((4, 4))
    expected = memory[:2, :2] @ b
    rs.contract(memory[:2, :2], b, "plus_times", out=memory[1:, :2])
    np.testing.assert_allclose(memory[1:, :2], expected, rtol=1e-14)


def test_out_that_overlaps_itself_is_refused(rng):
    a, b = rng.random((2, 2, 3, 3)), rng.random((3, 3))
    memory = np.zeros(200)
    for strides, text in (((8, 8, 24, 8), r"out overlaps itself \(strides \(1, 1, 3, 1\) of shape \(2, 2, 3, 3\)\)"),
                          ((400, 0, 24, 8), "out overlaps itself"), ((400, 40, 24, 8), "out overlaps itself"),
                          ((400, 200, -16, 32), "out overlaps itself")):
        out = np.lib.stride_tricks.as_strided(memory[60:], (2, 2, 3, 3), strides)
        with pytest.raises(ValueError, match=text):
            rs.contract(a, b, "plus_times", out=out)
        assert not memory.any()
    # Rows among each other's elements, at 0, 2 and at 3, 5.
    for strides in ((800, 400, 24, 16), (800, 400, -24, 16)):
        memory = np.zeros(400)
        out = np.lib.stride_tricks.as_strided(memory[200:], (2, 2, 2, 2), strides)
        rs.contract(a[:, :, :2], b[:, :2], "plus_times", out=out)
        np.testing.assert_allclose(out, a[:, :, :2] @ b[:, :2], rtol=1e-14)


def test_out_of_bool(rng):
    with pytest.raises(ValueError, match="out holds bool, expected numbers"):
        rs.contract(np.array([[2]], "u1"), np.array([[3]], "u1"), "plus_times", out=np.empty((1, 1), bool))


def test_promises(rng):
    a, b = rng.random((3, 4)), rng.random((4, 5))
    exact = rs.contract(a, b, "plus_times", require=("reference_bits", "repeatable"))
    np.testing.assert_array_equal(exact, rs.contract(a, b, "plus_times", kernel="reference"))


@pytest.mark.parametrize("reducer", ["minimum", "maximum", "sum", "log_sum_exp"])
def test_reduce(rng, reducer):
    a, b = rng.random((2, 7, 4)), rng.random((4, 9))
    s = scores(a, b, "min_plus")
    values, indices = rs.reduce(a, b, "min_plus", reducer)
    of = {"minimum": np.min, "maximum": np.max, "sum": np.sum, "log_sum_exp": np.logaddexp.reduce}[reducer]
    np.testing.assert_allclose(values, of(s, axis=-1), rtol=1e-14)
    if reducer in ("minimum", "maximum"):
        np.testing.assert_array_equal(indices, {"minimum": np.argmin, "maximum": np.argmax}[reducer](s, axis=-1))
    else:
        assert indices is None


def test_reduce_best_and_counts(rng):
    a, b = rng.random((7, 4)), rng.random((4, 9))
    s = scores(a, b, "max_min")
    values, indices = rs.reduce(a, b, "max_min", "largest", k=3)
    np.testing.assert_array_equal(values, -np.sort(-s)[:, :3])
    np.testing.assert_array_equal(indices, np.argsort(-s, kind="stable")[:, :3])
    counts = rs.reduce(a, b, "max_min", "count_below", threshold=float(s[2, 3])).values
    assert counts.dtype == "int64"
    np.testing.assert_array_equal(counts, (s < s[2, 3]).sum(1))
    np.testing.assert_array_equal(rs.reduce(a, b, "max_min", "count_below", threshold=float(s[2, 3]), or_equal=True).values,
                                  (s <= s[2, 3]).sum(1))
    sums = rs.reduce(np.full((1, 1), 2**30, "int32"), np.ones((1, 5), "int32"), "plus_times", "sum").values
    assert sums.dtype == "int64" and sums[0] == 5 * 2**30
    values, indices = rs.reduce(np.zeros((2, 3)), np.zeros((3, 0)), "min_plus", "smallest", k=2)
    np.testing.assert_array_equal(values, np.full((2, 2), np.inf))
    np.testing.assert_array_equal(indices, np.full((2, 2), -1))


def test_reduce_refusals(rng):
    a, b = rng.random((7, 4)), rng.random((4, 9))
    with pytest.raises(ValueError, match="reducer is 'median', expected one of minimum"):
        rs.reduce(a, b, reducer="median")
    with pytest.raises(ValueError, match="k is None, expected a number"):
        rs.reduce(a, b, reducer="smallest")
    with pytest.raises(ValueError, match="k is 3, expected a number for"):
        rs.reduce(a, b, reducer="sum", k=3)
    with pytest.raises(ValueError, match="k is 5000, expected 1 to 4096"):
        rs.reduce(a, b, reducer="smallest", k=5000)
    with pytest.raises(TypeError, match="k is 1.5, expected an integer"):
        rs.reduce(a, b, reducer="smallest", k=1.5)
    with pytest.raises(ValueError, match="threshold is None"):
        rs.reduce(a, b, reducer="count_below")
    with pytest.raises(ValueError, match="exclude_self"):
        rs.reduce(a, b, exclude_self=True)


def test_arguments_of_other_types(rng):
    a, b = rng.random((3, 4)), rng.random((4, 5))
    out = np.zeros((3, 5))
    rs.contract(a, b, "plus_times", out=out, accumulate=np.True_)
    np.testing.assert_allclose(out, a @ b, rtol=1e-15)
    np.testing.assert_array_equal(rs.contract(a, b, epilogue=epilogue.scale(np.float32(2))), 2 * rs.contract(a, b))
    np.testing.assert_array_equal(rs.contract(a, b, epilogue=epilogue.scale(np.array([2.0]))), 2 * rs.contract(a, b))
    np.testing.assert_array_equal(rs.contract(a, b, epilogue=epilogue.add([1.0, 2.0, 3.0, 4.0, 5.0])), rs.contract(a, b) + np.arange(1, 6))
    assert rs.reduce(a, b, reducer="smallest", k=np.int64(2)).values.shape == (3, 2)
    assert rs.reduce(np.ones((2, 1)), np.ones((1, 2)), "plus_times", "count_below", threshold=1, or_equal=np.True_).values.tolist() == [2, 2]
    assert rs.nearest(a, k=1, exclude_self=np.int64(1)).distances.all()
    with pytest.raises(TypeError, match=r"b is a masked array, whose mask a call does not see, expected b.filled\("):
        rs.contract(a, np.ma.masked_greater(b, 0.5))
    with pytest.raises(TypeError, match="out is a masked array"):
        rs.contract(a, b, out=np.ma.zeros((3, 5)))
    with pytest.raises(TypeError, match="an array of the epilogue is a NoneType"):
        rs.contract(a, b, epilogue=epilogue.scale(None))
    with pytest.raises(ValueError, match="a step of the epilogue has a number and an array"):
        rs.contract(a, b, epilogue=epilogue.clamp(0, np.ones(5)))
    with pytest.raises(TypeError, match="semiring is None, expected a str"):
        rs.contract(a, b, None)
    with pytest.raises(TypeError, match="^contract: semiring 'plus_times' of i16"):
        rs.contract(a.astype("int16"), b.astype("int16"), "plus_times")
    with pytest.raises(ValueError, match="a has 17 dimensions, expected at most 16"):
        rs.contract(np.zeros((1,) * 17), b)


def test_memory_is_given_back(rng):
    resource = pytest.importorskip("resource", reason="this system has no resource module")
    a, out = rng.random((200, 200)), np.empty((200, 200))
    for _ in range(10):
        rs.contract(a, a[::-1], out=out[::-1], epilogue=epilogue.add(a))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(300):  # each leak would be 320 kB
        rs.contract(a, a[::-1], out=out[::-1], epilogue=epilogue.add(a))
        rs.contract(a, a)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000


EMPTY = {
    "contract": (lambda z: rs.contract(z(0, 2, 3), z(0, 4, 5)), "contract: B is 4x5, expected 3 rows to match A 2x3"),
    "name": (lambda z: rs.contract(z(0, 2, 3), z(0, 3, 5), "nonsense"), "contract: 'nonsense' is no semiring"),
    "reduce": (lambda z: rs.reduce(z(0, 2, 3), z(0, 4, 5)), "reduce: B is 4x5"),
    "cdist": (lambda z: rs.cdist(z(0, 2, 3), z(0, 3, 5)), "cdist: Z is 3x5, expected 3 columns to match X 2x3"),
    "nearest": (lambda z: rs.nearest(z(0, 2, 3), z(0, 3, 3), 9999), "smallest's k is 9999, expected 1 to 4096"),
    "kernel_matrix": (lambda z: rs.kernel_matrix(z(0, 2, 3), bandwidth=-1.0), "^kernel_matrix: the kernel's bandwidth is -1"),
    "kernel_matvec": (lambda z: rs.kernel_matvec(z(0, 2, 3), v=z(5), bandwidth=1.0), "V is 5x1, expected 2 rows"),
    "softmax_matvec": (lambda z: rs.softmax_matvec(z(0, 2, 3), z(4, 3), z(5, 2)), "V is 5x2, expected 4 rows"),
    "kernel_matrix_gradient": (lambda z: rs.kernel_matrix_gradient(z(0, 2, 3), g=z(0, 2, 4), bandwidth=1.0), "G is 2x4"),
    "closure": (lambda z: rs.closure(z(0, 2, 3)), "^closure: D is 2x3, expected a square matrix"),
    "cholesky_solve": (lambda z: rs.cholesky_solve(z(0, 2, 3), z(0, 2, 1)), "A is 2x3, expected a square matrix"),
    "cholesky_factor": (lambda z: rs.cholesky_factor(z(0, 2, 3)), "A is 2x3, expected a square matrix"),
    "cholesky_solve_factored": (lambda z: rs.cholesky_solve_factored(z(0, 2, 3), z(0, 2, 1)), "L is 2x3, expected a square matrix"),
    "lu_solve": (lambda z: rs.lu_solve(z(0, 2, 2), z(0, 3, 1)), "B is 3x1, expected 2x1"),
    "eigh": (lambda z: rs.eigh(z(0, 2, 3)), "A is 2x3, expected a square matrix"),
    "log_determinant": (lambda z: rs.log_determinant(z(0, 2, 3)), r"l of shape \(0, 2, 3\), expected square matrices"),
    "linear_forward": (lambda z: rs.linear_forward(z(0, 2, 3, dtype="float32"), z(4, 5, dtype="float32")), "W is 5x4, expected 3 rows"),
    "linear_backward_input": (lambda z: rs.linear_backward_input(z(0, 2, 3, dtype="float32"), z(4, 5, dtype="float32")),
                              "W is 5x4, expected 3 columns"),
}


@pytest.mark.parametrize("name", EMPTY)
def test_batches_of_no_matrices_are_checked(name):
    call, message = EMPTY[name]
    with pytest.raises(ValueError, match=message):
        call(lambda *shape, dtype="float64": np.zeros(shape, dtype))


def test_batches_of_no_matrices():
    assert rs.contract(np.zeros((4, 0, 2, 3)), np.zeros((3, 5))).shape == (4, 0, 2, 5)
    assert rs.kernel_matrix(np.zeros((0, 2, 3)), bandwidth=1.0).shape == (0, 2, 2)
    assert rs.nearest(np.zeros((0, 2, 3)), k=1).indices.shape == (0, 2, 1)
    assert rs.cdist(np.zeros((0, 2, 3)), metric="mahalanobis", VI=np.eye(3)).shape == (0, 2, 2)
    assert rs.lu_solve(np.zeros((0, 2, 2)), np.zeros((0, 2, 1))).shape == (0, 2, 1)
    assert rs.log_determinant(np.zeros((0, 2, 2))).shape == (0,)
    assert rs.shortest_paths(np.zeros((0, 3, 3))).predecessors.shape == (0, 3, 3)
