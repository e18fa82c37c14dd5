# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of torch: gradients, opcheck, torch.compile and vmap, on the host and, where there is one, on a GPU."""

import pytest

import rigel_semirings as rs

torch = pytest.importorskip("torch", reason="torch is not installed")
rt = pytest.importorskip("rigel_semirings.torch")

has_gpu = torch.cuda.is_available() and any("cuda" in kernel["spaces"] for kernel in rs.kernels("cuda"))
METRICS = ["euclidean", "squared_euclidean", "manhattan", "minkowski", "inner_product"]
KERNELS = {"gaussian": {"bandwidth": 1.0}, "laplace": {"length": 1.0}, "matern52": {"length": 1.0},
           "matern32": {"length": 1.0}, "rational_quadratic": {"length": 1.0, "alpha": 2.0}, "polynomial": {"degree": 3.0},
           "sigmoid": {"scale": 0.5, "offset": 0.2}}


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not has_gpu, reason="torch or librigel_c finds no GPU"))])
def rand(request):
    torch.manual_seed(1)

    def make(*shape, dtype=torch.float64, grad=True):
        return torch.rand(*shape, device=request.param, dtype=dtype).requires_grad_(grad)

    return make


def test_values(rand):
    a, b = rand(4, 5), rand(5, 3)
    torch.testing.assert_close(rt.contract(a, b, "plus_times"), a @ b)
    torch.testing.assert_close(rt.contract(a, b, "lp", parameters={"p": 3}).detach(), rs.contract(a.detach(), b.detach(), "lp", parameters={"p": 3}))
    x, z = rand(4, 5), rand(3, 5)
    torch.testing.assert_close(rt.cdist(x, z), torch.cdist(x, z))
    torch.testing.assert_close(rt.cdist(x, z, "minkowski", p=3), torch.cdist(x, z, p=3))
    torch.testing.assert_close(rt.kernel_matrix(x, bandwidth=2.0), torch.exp(-torch.cdist(x, x)**2 / 8))
    assert rt.contract((a > 0.5).detach(), (b > 0.5).detach(), "or_and").dtype == torch.bool
    assert rt.contract((9 * a).to(torch.int8), (9 * b).to(torch.int8), "plus_times").dtype == torch.int32
    assert rt.contract(a.half(), b.half(), "plus_times", dtype=torch.float32).dtype == torch.float32


@pytest.mark.parametrize("metric", METRICS)
def test_gradients_of_cdist(rand, metric):
    p = 3.0 if metric == "minkowski" else None
    x, z = rand(2, 4, 3), rand(5, 3)
    assert torch.autograd.gradcheck(lambda x, z: rt.cdist(x, z, metric, p=p), (x, z))
    assert torch.autograd.gradcheck(lambda x: rt.cdist(x, x.flip(0), metric, p=p), (x[0].detach().requires_grad_(),))
    assert torch.autograd.gradgradcheck(lambda x, z: rt.cdist(x, z, metric, p=p), (x, z))
    if metric == "minkowski":
        assert torch.autograd.gradgradcheck(lambda x, z: rt.cdist(x, z, metric, p=1.5), (x, z))


def test_gradients_of_points_that_coincide(rand):
    x = rand(3, 2)
    for metric in METRICS[:4]:
        torch.autograd.grad(rt.cdist(x, x, metric, p=1.5 if metric == "minkowski" else None).sum(), x)[0].isfinite().all()
    single = torch.zeros(1, 2, dtype=x.dtype, device=x.device, requires_grad=True)
    assert torch.autograd.grad(rt.cdist(single).sum(), single)[0].tolist() == [[0, 0]]


def test_options_of_a_layer_are_names():
    x, weight = torch.ones(3, 4), torch.ones(5, 4)
    for options in ({"precision": ["tf32"]}, {"tier": {}}):
        with pytest.raises(rs.InvalidArgument, match=f"{next(iter(options))} is .*, expected one of"):
            rt.linear(x, weight, **options)


def test_gradients_of_low_precision(rand):
    x, z = rand(6, 4, dtype=torch.bfloat16), rand(5, 4, dtype=torch.bfloat16)
    dx, dz = torch.autograd.grad(rt.cdist(x, z).sum(), (x, z))
    ex, ez = torch.autograd.grad(torch.cdist(x.float(), z.float()).sum(), (x, z))
    assert dx.dtype == torch.bfloat16
    torch.testing.assert_close(dx, ex)
    torch.testing.assert_close(dz, ez)


@pytest.mark.parametrize("kernel", KERNELS)
def test_gradients_of_kernel_matrices(rand, kernel):
    x, z = rand(2, 4, 3), rand(5, 3)
    assert torch.autograd.gradcheck(lambda x, z: rt.kernel_matrix(x, z, kernel, **KERNELS[kernel]), (x, z))
    assert torch.autograd.gradgradcheck(lambda x, z: rt.kernel_matrix(x, z, kernel, **KERNELS[kernel]), (x, z))


@pytest.mark.parametrize("kernel", [one for one in KERNELS if one not in ("polynomial", "sigmoid")])
@pytest.mark.parametrize("metric, p", [("manhattan", None), ("minkowski", 3.0), ("minkowski", 1.5)])
def test_second_derivatives_of_kernels_over_other_metrics(rand, kernel, metric, p):
    x, z = rand(2, 4, 3), rand(5, 3)
    assert torch.autograd.gradgradcheck(lambda x, z: rt.kernel_matrix(x, z, kernel, metric=metric, p=p, **KERNELS[kernel]), (x, z))


@pytest.mark.parametrize("kernel", ["gaussian", "matern32", "matern52", "rational_quadratic"])
def test_second_derivatives_where_points_coincide(rand, kernel):
    """These kernels are smooth enough there."""
    x = rand(4, 3)
    assert torch.autograd.gradgradcheck(lambda x, z: rt.kernel_matrix(x, z, kernel, **KERNELS[kernel]), (x, x.detach().clone().requires_grad_()))
    assert torch.autograd.gradgradcheck(lambda x: rt.kernel_matrix(x, kernel=kernel, **KERNELS[kernel]), (x,))


def test_second_derivatives_in_blocks(rand, monkeypatch):
    """Of p other than 2 some rows are done at a time."""
    x, z, weights = rand(2, 7, 3), rand(5, 3), rand(2, 7, 5, grad=False)

    def second():
        gradients = torch.autograd.grad((weights * rt.cdist(x, z, "minkowski", p=3)).sum(), (x, z), create_graph=True)
        return torch.autograd.grad(sum((g**2).sum() for g in gradients), (x, z))

    whole = second()
    monkeypatch.setattr(rt, "_ELEMENTS", 2 * 5 * 3)
    for one, other in zip(second(), whole, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-13, atol=1e-13)
    no_rows = rand(0, 3)
    assert torch.autograd.grad(torch.autograd.grad(rt.cdist(no_rows, z, "minkowski", p=3).sum(), z, create_graph=True)[0].sum(), z)[0].eq(0).all()


def test_third_derivatives(rand):
    """Of a gaussian, against those of the formula."""
    x, z = rand(4, 3), rand(5, 3, grad=False)
    results = []
    for function in (lambda x: rt.kernel_matrix(x, z, bandwidth=0.7), lambda x: torch.exp(-((x[:, None] - z)**2).sum(-1) / (2 * 0.7**2))):
        value = function(x).sum()
        for power in (2, 3, 1):
            value = (torch.autograd.grad(value, x, create_graph=True)[0]**power).sum()
        results.append(value)
    torch.testing.assert_close(*results, rtol=1e-9, atol=1e-9)


def test_gradients_of_contract(rand):
    a, b = rand(2, 4, 3), rand(3, 5)
    assert torch.autograd.gradcheck(lambda a, b: rt.contract(a, b, "plus_times"), (a, b))
    assert torch.autograd.gradgradcheck(lambda a, b: rt.contract(a, b, "plus_times"), (a, b))
    with pytest.raises(TypeError, match="contract over 'xor_and' has no gradient"):
        rt._contract_backward(type("Context", (), {"semiring": "xor_and"}), None)
    for semiring in ("log_plus", "min_plus", "max_plus", "max_min", "min_max", "l1", "l2_squared"):
        assert torch.autograd.gradcheck(lambda a, b, semiring=semiring: rt.contract(a, b, semiring), (a, b)), semiring
        assert torch.autograd.gradcheck(lambda a, b, semiring=semiring: rt.contract(a, b, semiring), (a, rand(2, 3, 5)))
    assert torch.autograd.gradcheck(lambda a, b: rt.contract(a, b, "lp", parameters={"p": 3}), (a, b))
    low = a.detach().bfloat16().requires_grad_()
    rt.contract(low, b.detach().bfloat16(), "min_plus").sum().backward()
    assert low.grad.sum() == 4 * 5 * 2
    torch.library.opcheck(torch.ops.rigel.contract_backward.default, (*(one.detach() for one in (rand(2, 4, 5), a, b, rand(2, 4, 5))), "log_plus", [], []))
    missing = [s for s in ("min_plus", "max_plus", "max_min", "log_plus", "l1") if s not in rt.GRADIENTS]
    for semiring in missing:
        with pytest.raises(TypeError, match=f"contract over '{semiring}' has no gradient, expected one of plus_times"):
            rt.contract(a, b, semiring).sum().backward()


def test_refusals_are_the_package_s(rand):
    x = rand(4, 3)
    with pytest.raises(TypeError, match="x requires a gradient, which this call does not record, expected x.detach.., or a function of rigel_s"):
        rs.cdist(x)
    with torch.no_grad():
        torch.testing.assert_close(rs.cdist(x), torch.cdist(x, x), atol=1e-7, rtol=1e-7)
        out = torch.zeros(4, 4, dtype=x.dtype, device=x.device, requires_grad=True)
        assert rs.cdist(x, out=out) is out
    with pytest.raises(TypeError, match="cdist of 'cosine' has no gradient, expected one of euclidean"):
        rt.cdist(x, metric="cosine").sum().backward()
    with pytest.raises(ValueError, match="'nonsense' is no metric"):
        rt.cdist(x, metric="nonsense")
    with pytest.raises(TypeError, match="kernel_matrix_gradient: metric 'cosine' has no gradient here"):
        rt.kernel_matrix(x, kernel="cosine").sum().backward()


# ---- the linear layer ----


@pytest.mark.parametrize("activation", [None, "relu", "gelu", "gelu_tanh", "silu"])
@pytest.mark.parametrize("bias", [True, False])
def test_linear(rand, activation, bias):
    torch_layer = torch.nn.Linear(7, 5, bias).to(rand(1).device)
    layer = rt.Linear.from_torch(torch_layer, activation=activation)
    assert layer.weight is torch_layer.weight
    own = {"relu": torch.nn.ReLU(), "gelu": torch.nn.GELU(), "gelu_tanh": torch.nn.GELU("tanh"), "silu": torch.nn.SiLU(), None: torch.nn.Identity()}
    x = rand(3, 4, 7, dtype=torch.float32)
    grad = rand(3, 4, 5, dtype=torch.float32, grad=False)
    y, expected = layer(x - 0.5), own[activation](torch_layer(x - 0.5))
    torch.testing.assert_close(y, expected, rtol=1e-5, atol=1e-5)
    parameters = (x, *layer.parameters())
    for one, other in zip(torch.autograd.grad(y, parameters, grad), torch.autograd.grad(expected, parameters, grad), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)
    # The bits of a row do not depend on others.
    assert torch.equal(layer(x[1, 2]), layer(x)[1, 2])
    layer.load_state_dict(torch_layer.state_dict())
    torch_layer.load_state_dict(layer.state_dict())


def test_linear_layers_train_alike(rand):
    x, target = rand(32, 6, dtype=torch.float32, grad=False), rand(32, 3, dtype=torch.float32, grad=False)
    losses = []
    for kind in (torch.nn.Linear, rt.Linear):
        torch.manual_seed(2)
        net = torch.nn.Sequential(kind(6, 16), torch.nn.Tanh(), kind(16, 3)).to(x.device)
        optimiser = torch.optim.SGD(net.parameters(), 0.1)
        for _ in range(20):
            optimiser.zero_grad()
            loss = torch.nn.functional.mse_loss(net(x), target)
            loss.backward()
            optimiser.step()
        losses.append(loss.item())
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)


@pytest.mark.parametrize("types", [(torch.float32, torch.float32), (torch.bfloat16, torch.bfloat16), (torch.bfloat16, torch.float32), (torch.float16, None)])
def test_gradients_of_a_layer_by_one_call(rand, types):
    """Bits are those of the operators, whichever gradients are wanted."""
    element, of_bias = types
    x, weight, dy = (rand(*shape, dtype=element, grad=False) for shape in ((4, 8), (3, 8), (4, 3)))
    bias = None if of_bias is None else rand(3, dtype=of_bias, grad=False)
    of_x = torch.ops.rigel.linear_backward_input(dy, weight, "scalar", "automatic")
    of_weight, sums = torch.ops.rigel.linear_backward_weight(x, dy, element, of_bias, "scalar", "automatic")
    for wanted in range(1, 8):
        given = [tensor if tensor is None else tensor.clone().requires_grad_(bool(wanted >> i & 1)) for i, tensor in enumerate((x, weight, bias))]
        if not any(tensor.requires_grad for tensor in given if tensor is not None):
            continue
        rt.linear(*given).backward(dy)
        for tensor, expected in zip(given, (of_x, of_weight, sums), strict=True):
            if tensor is None or not tensor.requires_grad:
                assert tensor is None or tensor.grad is None
            else:
                assert tensor.grad.dtype == tensor.dtype
                assert torch.equal(tensor.grad, expected)
    given = [tensor if tensor is None else tensor.clone().requires_grad_() for tensor in (x, weight, bias)]
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor.tolist(), lambda numbers: torch.tensor(numbers, dtype=element, device=x.device)):
        y = rt.linear(*given)
    y.backward(dy)
    assert torch.equal(given[0].grad, of_x) and torch.equal(given[1].grad, of_weight)
    with pytest.raises(ValueError, match=r"weight of shape \(2, 3, 8\), expected single matrices"):
        rs._core.linear_gradients(x, weight.expand(2, 3, 8), dy, True, True, 0, 0, None)


def test_only_gradients_that_are_wanted_are_computed(rand, monkeypatch):
    wanted, own = [], rs._core.contract_backward
    monkeypatch.setattr(rs._core, "contract_backward", lambda *args: wanted.append(args[-2:]) or own(*args))
    for semiring in ("min_plus", "log_plus", "l1"):
        a, b = rand(4, 5), rand(5, 3)
        both = torch.autograd.grad(rt.contract(a, b, semiring).sum(), (a, b))
        assert torch.equal(torch.autograd.grad(rt.contract(a, b.detach(), semiring).sum(), a)[0], both[0])
        assert torch.equal(torch.autograd.grad(rt.contract(a.detach(), b, semiring).sum(), b)[0], both[1])
    assert wanted == 3 * [(True, True), (True, False), (False, True)]


def test_linear_of_16_bits_and_second_derivatives(rand):
    x, weight, bias = rand(4, 8, dtype=torch.bfloat16), rand(3, 8, dtype=torch.bfloat16), rand(3, dtype=torch.bfloat16)
    y = rt.linear(x, weight, bias)
    torch.testing.assert_close(y, (x.float() @ weight.float().T + bias.float()).bfloat16())
    gradients = torch.autograd.grad(y.sum(), (x, weight, bias))
    assert [g.dtype for g in gradients] == 3 * [torch.bfloat16]
    # dW and db are sums that are rounded once; over a batch of weights and biases, too.
    ones = torch.ones(4, 3)
    exact = ones.T @ x.detach().cpu().float(), ones.sum(0)
    assert torch.equal(gradients[1].cpu(), exact[0].bfloat16())
    assert torch.equal(gradients[2].cpu(), exact[1].bfloat16())
    rows = rand(2, 5, 4, 8, dtype=torch.bfloat16)
    same = torch.autograd.grad(rt.linear(rows, weight, bias).sum(), (weight, bias))
    torch.testing.assert_close(same[0], rows.float().sum((0, 1, 2)).expand(3, 8).bfloat16())
    assert same[1].tolist() == 3 * [40]
    # Of float32 arguments, whose differences have few digits: against torch's own second derivative.
    x, weight = rand(4, 8, dtype=torch.float32), rand(3, 8, dtype=torch.float32)
    seconds = []
    for layer in (rt.linear, torch.nn.functional.linear):
        dx, dw = torch.autograd.grad((layer(x, weight)**2).sum(), (x, weight), create_graph=True)
        seconds.append(torch.autograd.grad((dx**2).sum() + (dw**2).sum(), (x, weight)))
    for one, other in zip(*seconds, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="activation is 'softmax'"):
        rt.Linear(3, 2, activation="softmax")


@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh", "silu"])
def test_linear_has_third_derivatives(rand, activation):
    own = {"relu": torch.relu, "gelu": torch.nn.functional.gelu, "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
           "silu": torch.nn.functional.silu}[activation]
    parameters = rand(3, 4, dtype=torch.float32), rand(5, 4, dtype=torch.float32), rand(5, dtype=torch.float32)
    thirds = []
    for layer in (lambda *given: rt.linear(*given, activation=activation), lambda *given: own(torch.nn.functional.linear(*given))):
        value = (layer(*parameters)**3).sum()
        for _ in range(3):
            gradients = torch.autograd.grad(value, parameters, create_graph=True)
            value = sum((one**2).mean() for one in gradients)
        thirds.append(gradients)
    for one, other in zip(*thirds, strict=True):
        largest = other.abs().max()
        torch.testing.assert_close(one / largest, other / largest, rtol=0, atol=1e-4)


def test_linear_under_autocast(rand):
    x = rand(4, 6, dtype=torch.float32)
    layer = rt.Linear(6, 3).to(x.device)
    expected = rt.linear(x.bfloat16(), layer.weight.bfloat16(), layer.bias)
    for forward in (layer, torch.compile(layer, fullgraph=True, backend="aot_eager")):
        with torch.autocast(x.device.type, torch.bfloat16):
            y = forward(x)
        assert torch.equal(y, expected)
        assert torch.autograd.grad(y.sum(), layer.weight)[0].dtype == torch.float32


# ---- what torch asks of operators ----


def calls(rand):
    x, z = rand(2, 4, 3), rand(5, 3)
    single, weight, bias = rand(4, 3, dtype=torch.float32), rand(2, 3, dtype=torch.float32), rand(2, dtype=torch.float32)
    options = (False, None, [], "automatic")
    yield torch.ops.rigel.contract.default, (x, z.mT, "plus_times", [], [], None, *options)
    yield torch.ops.rigel.contract.default, (x.detach(), z.detach().mT, "lp", ["p"], [3.0], torch.float32, *options)
    for metric in METRICS:
        yield torch.ops.rigel.cdist.default, (x, z, metric, None, *options)
    yield torch.ops.rigel.cdist_gradient.default, (rand(2, 4, 5), x, z, 2.0, False)
    for kernel, hyperparameters in KERNELS.items():
        metric = "inner_product" if kernel in ("polynomial", "sigmoid") else "euclidean"
        yield torch.ops.rigel.kernel_matrix.default, (x, z, kernel, *rt._flat(hyperparameters), metric, None, False, "automatic")
        yield torch.ops.rigel.kernel_matrix_gradient.default, (rand(2, 4, 5), x, z, kernel, *rt._flat(hyperparameters), metric, None, False)
    yield torch.ops.rigel.kernel_matrix_gradient.default, (rand(2, 4, 5), x, z, "laplace", ["length"], [1.0], "minkowski", 3.0, False)
    yield torch.ops.rigel.cdist_gradient.default, (rand(2, 4, 5), x, z, 3.0, False)
    yield torch.ops.rigel.linear.default, (single, weight, bias, "scalar", "automatic")
    yield torch.ops.rigel.linear.default, (single, weight, None, "scalar", "automatic")
    yield torch.ops.rigel.linear_activated.default, (single, weight, bias, "gelu", "scalar", "automatic")
    yield torch.ops.rigel.linear_backward_input.default, (rand(4, 2, dtype=torch.float32), weight, "scalar", "automatic")
    yield torch.ops.rigel.linear_backward_weight.default, (single, rand(4, 2, dtype=torch.float32), torch.float32, torch.float32, "scalar", "automatic")
    short = single.detach().bfloat16(), rand(4, 2, grad=False).bfloat16()
    yield torch.ops.rigel.linear_backward_weight.default, (*short, torch.bfloat16, torch.bfloat16, "scalar", "automatic")
    yield torch.ops.rigel.linear_backward_weight.default, (*short, torch.bfloat16, None, "scalar", "automatic")


def test_opcheck(rand):
    for operator, arguments in calls(rand):
        torch.library.opcheck(operator, arguments)


def test_what_watches_operators_sees_them(rand):
    """A call that nothing watches skips torch's dispatcher."""
    class Names(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    class Functions(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    class Own(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return super().__torch_function__(function, types, args, kwargs or {})

    x, weight = rand(4, 3, dtype=torch.float32), rand(2, 3, dtype=torch.float32)
    for mode in (Names, Functions):
        for call, name in ((lambda: rt.cdist(x, x), "rigel.cdist"), (lambda: rt.contract(x.detach(), x.detach().mT), "rigel.contract"),
                           (lambda: rt.linear(x, weight), "rigel.linear")):
            seen = []
            with mode():
                call()
            assert any(name in one for one in seen), seen
    seen = []
    assert type(rt.cdist(x.detach().as_subclass(Own), x.detach())) is Own and any("cdist" in one for one in seen)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiled:
        rt.cdist(x, x)
    assert "rigel::cdist" in [event.key for event in profiled.key_averages()]
    assert rt.cdist(x.to("meta"), x.to("meta")).shape == (4, 4)
    assert rt.linear(x.to("meta"), x.to("meta")).shape == (4, 4)
    with torch.no_grad():
        assert not rt.cdist(x, x).requires_grad
    with torch.inference_mode():
        assert rt.cdist(x, x).is_inference()


def test_compile(rand):
    def loss(x, z, weight):
        d = rt.cdist(x, z)
        k = rt.kernel_matrix(x, z, bandwidth=1.0)
        return (d * k).sum() + rt.contract(x, z.mT, "plus_times").sum() + rt.contract(x.detach(), z.detach().mT, "min_plus").sum() + \
            rt.linear(x, weight, activation="relu").sum()

    arguments = rand(6, 3, dtype=torch.float32), rand(5, 3, dtype=torch.float32), rand(2, 3, dtype=torch.float32)
    expected = torch.autograd.grad(loss(*arguments), arguments)
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    value = compiled(*arguments)
    torch.testing.assert_close(value, loss(*arguments))
    for one, other in zip(torch.autograd.grad(value, arguments), expected, strict=True):
        torch.testing.assert_close(one, other)
    dynamic = torch.compile(lambda x, z: rt.cdist(x, z).sum(), fullgraph=True, backend="aot_eager", dynamic=True)
    for rows in (3, 8):
        x = rand(rows, 3, dtype=torch.float32)
        torch.testing.assert_close(dynamic(x, arguments[1]), rt.cdist(x, arguments[1]).sum())


def test_vmap(rand):
    x, z = rand(7, 4, 3, grad=False), rand(6, 1, 5, 3, grad=False)

    def each(function, *batched):
        return torch.stack([function(*one) for one in zip(*batched, strict=True)])

    torch.testing.assert_close(torch.vmap(lambda x: rt.cdist(x, z))(x), each(lambda x: rt.cdist(x, z), x))
    torch.testing.assert_close(torch.vmap(lambda z: rt.cdist(x, z))(z), each(lambda z: rt.cdist(x, z), z))
    torch.testing.assert_close(torch.vmap(lambda x: rt.contract(x, z[0, 0].mT))(x), each(lambda x: rt.contract(x, z[0, 0].mT), x))
    torch.testing.assert_close(torch.vmap(rt.kernel_matrix, in_dims=(1, None))(x.movedim(0, 1), z[0, 0], bandwidth=1.0),
                               each(lambda x: rt.kernel_matrix(x, z[0, 0], bandwidth=1.0), x))
    torch.testing.assert_close(torch.vmap(torch.vmap(rt.cdist, (0, None)), (None, 0))(x, z[:, 0]), rt.cdist(x[None], z))
    weights, biases, rows = rand(7, 2, 3, dtype=torch.float32), rand(7, 2, dtype=torch.float32), x.float()
    for activation in (None, "relu"):
        def layer(*arguments, activation=activation):
            return rt.linear(*arguments, activation=activation)

        torch.testing.assert_close(torch.vmap(layer, (0, None, None))(rows, weights[0], biases[0]), layer(rows, weights[0], biases[0]))
        torch.testing.assert_close(torch.vmap(layer)(rows, weights, biases), each(layer, rows, weights, biases))
        # Gradients of an ensemble of layers.
        one, other = (torch.autograd.grad(y.sin().sum(), (weights, biases)) for y in
                      (torch.vmap(layer)(rows, weights, biases), each(layer, rows, weights, biases)))
        for first, second in zip(one, other, strict=True):
            torch.testing.assert_close(first, second)
    torch.testing.assert_close(torch.autograd.functional.jacobian(lambda w: rt.linear(rows[0], w), weights[0], vectorize=True),
                               torch.autograd.functional.jacobian(lambda w: rt.linear(rows[0], w), weights[0]))
    points = rand(4, 3)
    torch.testing.assert_close(*(torch.autograd.functional.hessian(
        lambda x: rt.kernel_matrix(x, z[0, 0], "laplace", metric="minkowski", p=3.0, length=1.0).sum(), points, vectorize=vectorize)
        for vectorize in (True, False)))
    # Gradients of many outputs at once are a vmap of the backward functions.
    x = rand(4, 3)
    for function in (lambda x: rt.cdist(x, z[0, 0]), lambda x: rt.kernel_matrix(x, z[0, 0], bandwidth=1.0),
                     lambda x: rt.contract(x, z[0, 0].mT, "plus_times")):
        torch.testing.assert_close(torch.autograd.functional.jacobian(function, x, vectorize=True),
                                   torch.autograd.functional.jacobian(function, x))
