# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays on a GPU, of torch, CuPy and JAX, against results of the same calls on the host and of torch."""

import threading

import numpy as np
import pytest

import rigel_semirings as rs
from rigel_semirings import epilogue


@pytest.fixture
def torch():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if not torch.cuda.is_available():
        pytest.skip("torch finds no GPU")
    if not any("cuda" in kernel["spaces"] for kernel in rs.kernels("cuda")):
        pytest.skip("librigel_c is built without CUDA")
    torch.manual_seed(1)
    return torch


@pytest.fixture
def cupy(torch):
    return pytest.importorskip("cupy", reason="CuPy is not installed")


def on_gpu(torch, *shape, dtype=None):
    return torch.rand(*shape, device="cuda", dtype=dtype or torch.float32)


def close(torch, actual, expected, tolerance=3e-5):
    """Equal to what the host computes, but for sums in another order, and distances that may be off by 1.01e-5 on tensor cores."""
    assert actual.is_cuda
    torch.testing.assert_close(actual.cpu(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("semiring", ["plus_times", "min_plus", "max_plus", "max_min", "max_times", "log_plus", "l1", "l2_squared", "linf"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_contract(torch, semiring, dtype):
    a, b = on_gpu(torch, 70, 90, dtype=getattr(torch, dtype)), on_gpu(torch, 90, 50, dtype=getattr(torch, dtype))
    c = rs.contract(a, b, semiring)
    assert c.is_cuda and c.dtype == a.dtype
    close(torch, c, rs.contract(a.cpu(), b.cpu(), semiring), 3e-5 if dtype.endswith(("32", "64")) else 1e-2)


def test_types_and_layouts(torch):
    a = torch.randint(0, 100, (6, 40, 30), device="cuda")
    for dtype in (torch.int8, torch.uint8, torch.int32, torch.int64):
        x = a.to(dtype)
        c = rs.contract(x, x.mT, "plus_times")
        assert c.is_cuda
        torch.testing.assert_close(c.cpu().long(), x.cpu().long() @ x.cpu().long().mT)
    bits = a > 90
    torch.testing.assert_close(rs.contract(bits, bits.mT, "or_and").cpu(), (bits.cpu().long() @ bits.cpu().long().mT) > 0)
    wide = on_gpu(torch, 80, 120)
    close(torch, rs.contract(wide[::2, 1::3], wide.T[:40, ::2], "min_plus"), rs.contract(wide.cpu()[::2, 1::3], wide.cpu().T[:40, ::2], "min_plus"))
    x = on_gpu(torch, 3, 1, 2, 14, 15)
    y = on_gpu(torch, 6, 1, 15, 13)
    close(torch, rs.contract(x, y), rs.contract(x.cpu(), y.cpu()))
    swapped = on_gpu(torch, 2, 6, 3, 14, 15).transpose(0, 2)
    close(torch, rs.contract(swapped, y), rs.contract(swapped.cpu(), y.cpu()))
    assert rs.contract(on_gpu(torch, 0, 3), on_gpu(torch, 3, 2)).shape == (0, 2)
    assert rs.contract(on_gpu(torch, 0, 2, 3), on_gpu(torch, 0, 3, 2)).is_cuda


@pytest.fixture
def compiles():
    try:
        rs.Semiring("a * b").compile()
    except rs.Unsupported as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("dtype, index", [("float32", "int32"), ("float64", "int64"), ("bfloat16", "int32")])
def test_fields_of_texts(torch, compiles, dtype, index):
    nearest = rs.Semiring("{a + b, k}", "y.value < x.value ? y : x", identity="{infinity, -1}", result="x.index",
                          fields={"value": float, "index": int}, result_type=int)
    a, b = (torch.randint(0, 50, shape, device="cuda").to(getattr(torch, dtype)) for shape in ((3, 70, 40), (40, 30)))
    c = rs.contract(a, b, nearest)
    assert c.is_cuda and c.dtype == getattr(torch, index)
    np.testing.assert_array_equal(c.cpu(), np.argmin(a.cpu().float().numpy()[..., :, None] + b.cpu().float().numpy(), axis=-2))
    scaled = rs.contract(a, b, nearest, epilogue=rs.Epilogue("x * w + m", w=0.5), dtype=dtype if dtype != "bfloat16" else "float32")
    np.testing.assert_array_equal(scaled.cpu(), c.cpu() * 0.5 + torch.arange(70)[:, None])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int32"])
def test_epilogue_from_text(torch, compiles, dtype):
    a, b = (torch.randint(0, 4, shape, device="cuda").to(getattr(torch, dtype)) for shape in ((256, 64), (64, 128)))
    e = rs.Epilogue("x > t ? x - m : w * x + n", t=100, w=0.5 if dtype != "int32" else 2)
    x, m, n = a.cpu().double() @ b.cpu().double(), torch.arange(256)[:, None], torch.arange(128)
    for t in (100, 140):
        e.t = t
        expected = torch.where(x > t, x - m, e.w * x + n).to(getattr(torch, dtype))
        for semiring in ("plus_times", rs.Semiring("a * b", "x + y", step="fma(a, b, x)", commutative=True)):
            c = rs.contract(a, b, semiring, epilogue=e)
            assert c.is_cuda and c.dtype == a.dtype
            torch.testing.assert_close(c.cpu(), expected, rtol=0, atol=0)  # integers below 2^24 are exact, and are rounded once
    with pytest.raises(rs.Unsupported, match="does not go with semiring 'min_plus'"):
        rs.contract(a, b, "min_plus", epilogue=e)


@pytest.mark.parametrize("dtype, sums", [("float32", "float32"), ("float64", "float64"), ("bfloat16", "float32"), ("int32", "int32")])
def test_hyperparameters_in_tensors(torch, compiles, dtype, sums):
    a, b = (torch.randint(0, 4, shape, device="cuda").to(getattr(torch, dtype)) for shape in ((2, 3, 64, 40), (40, 32)))
    product = a.cpu().double() @ b.cpu().double()
    p, q = torch.ones(2, 3, dtype=getattr(torch, sums), device="cuda"), torch.ones((), dtype=getattr(torch, sums), device="cuda")
    s = rs.Semiring("a * b * p", "x + y", p=p, commutative=True)
    e = rs.Epilogue("x * p + q + m", p=p, q=q)
    before = None
    for values in (torch.arange(6), torch.arange(6).flip(0) - 3):
        p.copy_(values.view(2, 3))  # on the stream
        q.fill_(int(values[1]))
        own = values.view(2, 3, 1, 1)
        torch.testing.assert_close(rs.contract(a, b, s).cpu().double(), product * own, rtol=2**-8 if dtype == "bfloat16" else 0, atol=0)
        for semiring in ("plus_times", rs.Semiring("a * b", "x + y")):
            c = rs.contract(a, b, semiring, epilogue=e, dtype=dtype if dtype != "bfloat16" else "float32")
            expected = product * own + values[1] + torch.arange(64)[:, None]
            torch.testing.assert_close(c.cpu().double(), expected, rtol=0, atol=0)
        after = {**rs.Semiring.statistics(), "from_memory": 0}
        assert before in (None, after)
        before = after
    one = rs.contract(a, b, s, parameters={"p": p[1, 2]})
    torch.testing.assert_close(one.cpu().double(), product * int(p[1, 2]), rtol=2**-8 if dtype == "bfloat16" else 0, atol=0)
    with pytest.raises(ValueError, match="p is on the host and a on CUDA device 0, expected all arrays on one device"):
        rs.contract(a, b, s, parameters={"p": p.cpu()})
    with pytest.raises(ValueError, match="hyperparameter 'p' of 'text' holds elements of type i64, expected"):
        rs.contract(a, b, s, parameters={"p": p.long()})
    with pytest.raises(ValueError, match=r"p of shape \(4,\) does not broadcast with the batch \(2, 3\)"):
        rs.contract(a, b, s, parameters={"p": p.new_ones(4)})


def test_hyperparameters_of_graphs(torch, compiles):
    a, b, p, q = on_gpu(torch, 3, 64, 48), on_gpu(torch, 48, 32), on_gpu(torch, 3), on_gpu(torch, ())
    s = rs.Semiring("max(a * p, b)", "x + y", p=p)
    e = rs.Epilogue("x > q ? x : q * x", q=q)
    calls = [lambda: rs.contract(a, b, s, epilogue=e), lambda: rs.contract(a, b, "plus_times", epilogue=e), lambda: rs.contract(a, b, s)]
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for call in calls:
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = [call() for call in calls]
    for value in (0.5, 30.0):
        p.copy_(on_gpu(torch, 3))
        q.fill_(value)
        graph.replay()
        for result, call in zip(results, calls, strict=True):
            torch.testing.assert_close(result, call(), rtol=0, atol=0)
        expected = torch.maximum(a[..., None] * p[:, None, None, None], b).double().sum(-2)
        torch.testing.assert_close(results[2].double(), expected, rtol=1e-5, atol=0)  # 48 terms that are not negative


def test_hyperparameters_of_cupy(cupy, compiles):
    a, b, p = cupy.random.random((3, 20, 30)), cupy.random.random((30, 10)), cupy.arange(6.0)
    for own in (p[:3], p[::-2], p[1:2], p[2]):
        c = rs.contract(a, b, rs.Semiring("a * b * p", "x + y", p=own))
        assert isinstance(c, cupy.ndarray)
        np.testing.assert_allclose(c.get(), (a.get() @ b.get()) * own.get().reshape(-1, 1, 1), rtol=1e-13)


def test_out_and_epilogues(torch):
    a, b, bias = on_gpu(torch, 40, 30), on_gpu(torch, 30, 20), on_gpu(torch, 20)
    out = torch.zeros(40, 20, device="cuda")
    steps = epilogue.scale(0.5) | epilogue.add(bias)
    assert rs.contract(a, b, "plus_times", out=out, epilogue=steps) is out
    torch.testing.assert_close(out, a @ b / 2 + bias)
    before = out.clone()
    rs.contract(a, b, "plus_times", out=out, accumulate=True)
    torch.testing.assert_close(out, before + a @ b)
    batched = torch.zeros(2, 3, 40, 20, device="cuda")
    rs.contract(a.expand(2, 3, 40, 30), b, "plus_times", out=batched)
    torch.testing.assert_close(batched, (a @ b).expand(2, 3, 40, 20))


def test_distances(torch):
    x, z = on_gpu(torch, 300, 20), on_gpu(torch, 200, 20)
    for metric in ("euclidean", "cityblock", "chebyshev", "cosine", "canberra", "jensenshannon", "seuclidean", "mahalanobis"):
        close(torch, rs.cdist(x, z, metric), rs.cdist(x.cpu(), z.cpu(), metric), 1e-4)
    weights = on_gpu(torch, 20)
    close(torch, rs.cdist(x, z, "minkowski", p=3, w=weights), rs.cdist(x.cpu(), z.cpu(), "minkowski", p=3, w=weights.cpu()))
    torch.testing.assert_close(rs.cdist(x, z), torch.cdist(x, z, compute_mode="donot_use_mm_for_euclid_dist"), rtol=3e-5, atol=3e-5)
    near, expected = rs.nearest(x, z, 5), rs.nearest(x.cpu(), z.cpu(), 5)
    close(torch, near.distances, expected.distances)
    assert near.indices.dtype == torch.int64 and (near.indices.cpu() == expected.indices).float().mean() > 0.99
    found, expected = rs.radius_neighbors(x, z, 1.0), rs.radius_neighbors(x.cpu(), z.cpu(), 1.0)
    assert found.indices.is_cuda and abs(len(found.indices) - len(expected.indices)) < 20
    close(torch, rs.kernel_matrix(x, bandwidth=1.0), rs.kernel_matrix(x.cpu(), bandwidth=1.0))
    close(torch, rs.logsumexp(x, z, epilogue=epilogue.scale(-1)), rs.logsumexp(x.cpu(), z.cpu(), epilogue=epilogue.scale(-1)))
    assert (rs.assign(x, z).indices.cpu() == rs.assign(x.cpu(), z.cpu()).indices).float().mean() > 0.99
    assert rs.explain(rs.cdist, x, z).chosen.startswith("cuda")


def blocks():
    """Ranges of 8 blocks of rows and columns, of which some rows meet none."""
    mask = np.random.default_rng(5).random((8, 8)) < 0.4
    mask[3] = False
    return rs.Ranges.from_mask(mask, np.arange(9) * 130, np.arange(9) * 90)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("k", [3, 24])
def test_ranges(torch, dtype, k):
    ranges = blocks()
    x, z, v = (on_gpu(torch, *shape, dtype=getattr(torch, dtype)) for shape in ((1040, k), (720, k), (720, 2)))
    bound = 3e-5 if dtype == "float32" else 1e-11
    for call in (lambda x, z, v: rs.kernel_matvec(x, z, v, bandwidth=1.0, ranges=ranges),
                 lambda x, z, v: rs.kernel_matvec(x, z, v, "laplace", metric="cityblock", length=2.0, ranges=ranges),
                 lambda x, z, v: rs.logsumexp(x, z, epilogue=epilogue.scale(-1), ranges=ranges),
                 lambda x, z, v: rs.nearest(x, z, 5, ranges=ranges).distances, lambda x, z, v: rs.assign(x, z, ranges=ranges).distances,
                 lambda x, z, v: rs.reduce(x, z.mT, "l1", "sum", ranges=ranges).values,
                 lambda x, z, v: rs.softmax_matvec(x, z, v, ranges=ranges).nan_to_num()):
        close(torch, call(x, z, v), call(x.cpu(), z.cpu(), v.cpu()), bound)
    indices = rs.nearest(x, z, 5, ranges=ranges).indices
    assert (indices[3 * 130:4 * 130] == -1).all()
    of_host = rs.nearest(x.cpu(), z.cpu(), 5, ranges=ranges).indices
    assert (indices.cpu() == of_host).float().mean() > 0.99
    found, expected = rs.radius_neighbors(x, z, 0.3, ranges=ranges), rs.radius_neighbors(x.cpu(), z.cpu(), 0.3, ranges=ranges)
    assert abs(len(found.indices) - len(expected.indices)) < 20
    if torch.cuda.device_count() > 1:
        other = rs.kernel_matvec(x.to("cuda:1"), z.to("cuda:1"), v.to("cuda:1"), bandwidth=1.0, ranges=ranges)
        close(torch, other, rs.kernel_matvec(x.cpu(), z.cpu(), v.cpu(), bandwidth=1.0, ranges=ranges), bound)


def test_paths_and_solves(torch):
    weights = on_gpu(torch, 60, 60)
    paths, expected = rs.shortest_paths(weights), rs.shortest_paths(weights.cpu())
    close(torch, paths.distances, expected.distances)
    assert paths.path(3, 17)[0] == 3
    with pytest.raises(ValueError, match="lies on a cycle"):
        rs.closure(-weights)
    a = on_gpu(torch, 4, 50, 50, dtype=torch.float64)
    spd, b = a @ a.mT + 50 * torch.eye(50, device="cuda", dtype=torch.float64), on_gpu(torch, 4, 50, 3, dtype=torch.float64)
    torch.testing.assert_close(rs.cholesky_solve(spd, b), torch.linalg.solve(spd, b))
    torch.testing.assert_close(rs.lu_solve(spd, b), torch.linalg.solve(spd, b))
    torch.testing.assert_close(rs.cholesky_factor(spd), torch.linalg.cholesky(spd))
    torch.testing.assert_close(rs.log_determinant(rs.cholesky_factor(spd)), torch.logdet(spd))
    w, v = rs.eigh(spd)
    torch.testing.assert_close(v @ torch.diag_embed(w) @ v.mT, spd)
    with pytest.raises(ValueError, match="cholesky_solve"):
        rs.cholesky_solve(-spd, b)


def test_linear_layer(torch):
    x, w, bias = on_gpu(torch, 60, 40) - 0.5, on_gpu(torch, 30, 40), on_gpu(torch, 30)
    y, z = rs.linear_forward(x, w, bias, activation="relu", return_preactivation=True)
    expected = rs.linear_forward(x.cpu(), w.cpu(), bias.cpu(), activation="relu")
    assert torch.equal(y.cpu(), expected)  # the same bits on every machine
    dy = on_gpu(torch, 60, 30)
    dw, db = rs.linear_backward_weight(x, dy)
    assert dw.is_cuda and db.is_cuda
    on_host = rs.linear_backward_weight(x.cpu(), dy.cpu())
    assert torch.equal(dw.cpu(), on_host[0]) and torch.equal(db.cpu(), on_host[1])
    assert torch.equal(rs.linear_backward_input(dy, w, z[:, :1].expand(60, 40), activation="relu").cpu(),
                       rs.linear_backward_input(dy.cpu(), w.cpu(), z[:, :1].expand(60, 40).cpu(), activation="relu"))
    halves = rs.linear_forward(x.bfloat16(), w.bfloat16(), bias, tier="tensor")
    torch.testing.assert_close(halves.float(), x.bfloat16().float() @ w.bfloat16().float().T + bias, rtol=2e-2, atol=2e-2)


def test_devices_do_not_mix(torch):
    x = on_gpu(torch, 4, 3)
    with pytest.raises(ValueError, match="z is on the host and x on CUDA device 0, expected all arrays on one device"):
        rs.cdist(x, x.cpu())
    with pytest.raises(ValueError, match="out is on the host and x on CUDA device 0"):
        rs.cdist(x, out=torch.zeros(4, 4))
    with pytest.raises(ValueError, match="the metric's matrix is on the host and x on CUDA device 0"):
        rs._core.cdist(x, None, None, "seuclidean", None, np.ones(3, "float32"), False, False, None, 0, None)
    if torch.cuda.device_count() > 1:
        y = x.to("cuda:1")
        with pytest.raises(ValueError, match="z is on CUDA device 1 and x on CUDA device 0"):
            rs.cdist(x, y)
        assert rs.cdist(y).device == y.device
        assert torch.cuda.current_device() == 0


# ---- streams ----


def busy(torch, milliseconds=50):
    """Keeps the current stream busy, so that what follows on it is late."""
    torch.cuda._sleep(int(milliseconds * 1.5e6))


def test_calls_are_asynchronous_and_in_order(torch):
    x = on_gpu(torch, 500, 16)
    expected = rs.cdist(x)
    torch.cuda.synchronize()
    for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            y = torch.zeros_like(x)
            rs.cdist(y)  # makes the handle
            busy(torch)
            y.copy_(x)  # late
            done = torch.cuda.Event()
            d = rs.cdist(y)
            done.record()
            assert not done.query()
            late = d.sum()
        stream.synchronize()
        assert torch.equal(d, expected) and late == expected.sum()


def test_memory_that_python_frees_while_a_call_waits(torch):
    """The caching allocator gives memory of the same stream to what comes later on it."""
    n = 1 << 10
    expected = rs.contract(torch.ones(n, n, device="cuda"), torch.ones(n, n, device="cuda"), "plus_times")
    torch.cuda.synchronize()
    busy(torch)
    a, b = torch.ones(n, n, device="cuda"), torch.ones(n, n, device="cuda")
    places = {a.data_ptr(), b.data_ptr()}
    c = rs.contract(a, b, "plus_times")
    del a, b
    others = [torch.full((n, n), 7.0, device="cuda") for _ in range(8)]
    assert places & {other.data_ptr() for other in others}
    torch.cuda.synchronize()
    assert torch.equal(c, expected)


def test_ranges_that_python_frees_while_a_call_waits(torch):
    x, z, v = on_gpu(torch, 1040, 3), on_gpu(torch, 720, 3), on_gpu(torch, 720)
    ranges = blocks()
    expected = rs.kernel_matvec(x, z, v, bandwidth=1.0, ranges=ranges)
    torch.cuda.synchronize()
    busy(torch)
    found = rs.kernel_matvec(x, z, v, bandwidth=1.0, ranges=ranges)
    del ranges
    for _ in range(4):
        rs.kernel_matvec(x, z, v, bandwidth=1.0, ranges=rs.Ranges(1040, 720, [], [], []))
    torch.cuda.synchronize()
    assert torch.equal(found, expected)


def test_a_function_that_is_told_of_steps_calls_on_the_same_stream(torch):
    x, y = on_gpu(torch, 200, 3), on_gpu(torch, 200)
    seen = []
    rs.kernel_solve(x, y, bandwidth=0.5, regularisation=0.1, rank=0, progress=lambda i, r: seen.append(rs.cdist(x).sum()))
    assert seen and all(torch.isclose(one, rs.cdist(x).sum()) for one in seen)


def test_threads(torch):
    x = on_gpu(torch, 200, 16)
    expected = rs.cdist(x)
    torch.cuda.synchronize()
    right = []

    def work(own):
        with torch.cuda.stream(torch.cuda.Stream() if own else torch.cuda.default_stream()):
            for _ in range(50):
                right.append(bool(torch.equal(rs.cdist(x), expected)))

    threads = [threading.Thread(target=work, args=(i % 2 == 1,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(right) == 300 and all(right)


@pytest.mark.parametrize("call", [
    lambda x: rs.contract(x, x, "min_plus"), lambda x: rs.contract(x, x, "plus_times"), lambda x: rs.cdist(x), lambda x: rs.cdist(x, metric="cosine"),
    lambda x: rs.nearest(x, k=3).distances, lambda x: rs.kernel_matrix(x, bandwidth=1.0), lambda x: rs.lu_solve(x, x, check=False),
    lambda x: rs.closure(x, check=False), lambda x: rs.linear_forward(x, x), lambda x: rs.logsumexp(x), lambda x: rs.reduce(x, x).indices
], ids=["min_plus", "plus_times", "cdist", "cosine", "nearest", "kernel_matrix", "lu_solve", "closure", "linear", "logsumexp", "reduce"])
def test_graphs(torch, call):
    """As torch's documentation captures: a call on another stream first, then the capture on a stream of torch's own."""
    x = on_gpu(torch, 64, 64)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        call(x)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = call(x)
    for _ in range(3):
        x.copy_(on_gpu(torch, 64, 64))
        graph.replay()
        torch.testing.assert_close(result, call(x), rtol=1e-4, atol=1e-4)


def test_a_graph_with_ranges(torch):
    x, z, v = on_gpu(torch, 1040, 3), on_gpu(torch, 720, 3), on_gpu(torch, 720)
    ranges = blocks()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        rs.kernel_matvec(x, z, v, bandwidth=1.0)
    torch.cuda.current_stream().wait_stream(side)
    with pytest.raises(ValueError, match="ranges are not on CUDA device 0 yet, whose stream is being captured in a graph"):
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            rs.kernel_matvec(x, z, v, bandwidth=1.0, ranges=ranges)
    rs.kernel_matvec(x, z, v, bandwidth=1.0, ranges=ranges)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = rs.kernel_matvec(x, z, v, bandwidth=1.0, ranges=ranges)
    for _ in range(3):
        v.copy_(on_gpu(torch, 720))
        graph.replay()
        torch.testing.assert_close(result, rs.kernel_matvec(x, z, v, bandwidth=1.0, ranges=ranges), rtol=0, atol=0)


def test_a_graph_of_a_training_step(torch):
    """The backward pass is in a thread of torch's, on the stream of the capture."""
    rt = pytest.importorskip("rigel_semirings.torch")
    torch.manual_seed(2)
    net = torch.nn.Sequential(rt.Linear(16, 32, activation="relu"), rt.Linear(32, 4)).cuda()
    x, target = on_gpu(torch, 64, 16), on_gpu(torch, 64, 4)

    def step():
        net.zero_grad(set_to_none=True)
        loss = torch.nn.functional.mse_loss(net(x), target) + rt.cdist(net(x), target).mean()
        loss.backward()
        return [p.grad for p in net.parameters()]

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    x.copy_(on_gpu(torch, 64, 16))
    graph.replay()
    captured = [gradient.clone() for gradient in captured]
    for one, other in zip(captured, step(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_a_capture_on_a_new_stream(torch):
    x = on_gpu(torch, 64, 64)
    rs.cdist(x)
    new = torch.cuda.Stream(priority=-1)
    with pytest.raises(ValueError, match="x is on a stream of CUDA device 0 that is being captured in a graph, expected a call on this stream"):
        with torch.cuda.graph(torch.cuda.CUDAGraph(), stream=new):
            rs.cdist(x)
    torch.cuda.synchronize()
    assert rs.cdist(x).is_cuda


# ---- CuPy and JAX ----


def test_cupy(torch, cupy):
    x = cupy.random.random((50, 7))
    d = rs.cdist(x)
    assert isinstance(d, cupy.ndarray) and d.dtype == np.float64
    np.testing.assert_allclose(d.get(), rs.cdist(x.get()), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(rs.cdist(x[::-1]).get(), rs.cdist(x.get()[::-1]), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(rs.cdist(x, metric="seuclidean").get(), rs.cdist(x.get(), metric="seuclidean"), rtol=1e-12)
    out = cupy.zeros((50, 50))
    assert rs.cdist(x, out=out) is out
    with cupy.cuda.Stream(non_blocking=True) as stream:
        y = x + 1
        d = rs.cdist(y)
        stream.synchronize()
    np.testing.assert_allclose(d.get(), rs.cdist(x.get()), rtol=1e-12, atol=1e-12)
    # Two libraries in one call.
    near = rs.nearest(torch.as_tensor(x.get(), device="cuda"), x, k=1)
    assert isinstance(near.indices, torch.Tensor) and near.indices.flatten().tolist() == list(range(50))
    assert isinstance(rs.cdist(x, torch.as_tensor(x.get(), device="cuda")), cupy.ndarray)
    assert rs.radius_neighbors(x, radius=0.5).offsets.get()[-1] > 50
    ranges = rs.Ranges.from_labels(cupy.arange(50) // 10)
    assert (rs.nearest(x, k=2, ranges=ranges).indices // 10 == (cupy.arange(50) // 10)[:, None]).all()


def test_jax(torch):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    if not any(device.platform == "gpu" for device in jax.devices()):
        pytest.skip("JAX finds no GPU")
    x = jax.random.uniform(jax.random.key(1), (50, 7))
    d = rs.cdist(x + 1)
    assert isinstance(d, jax.Array) and d.devices() == x.devices()
    np.testing.assert_allclose(d, rs.cdist(np.asarray(x + 1)), rtol=3e-5, atol=1e-6)
    assert rs.nearest(x, k=1).indices.flatten().tolist() == list(range(50))
