# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""kermac's, mm-kermac's and sgemm-bi's functions against NumPy's and torch's formulas, and the programs of their READMEs."""

import doctest
import importlib
import itertools

import numpy as np
import pytest

import rigel_semirings as rs
import rigel_semirings.compat.mm_kermac.hyper_semiring as hs
import rigel_semirings.compat.mm_kermac.hyper_semiring_gradient as hsg
from rigel_semirings.compat import kermac


def sums(a, b, p):
    return (np.abs(a[..., :, None, :] - b[..., None, :, :])**p).sum(-1)


@pytest.mark.parametrize("module", ["kermac", "kermac.linalg", "mm_kermac"])
def test_examples_of_docstrings(module):
    assert doctest.testmod(importlib.import_module(f"rigel_semirings.compat.{module}")).failed == 0


@pytest.mark.parametrize("p, skips", list(itertools.product([1.0, 1.3, 2.0, 3.0], [False, True])))
def test_cdist(rng, p, skips):
    a, b = rng.random((20, 7)), rng.random((30, 7))
    expected = sums(a, b, p)**(1 if skips else 1 / p)
    found = kermac.cdist(a, b, p=p, skip_epilogue=skips)
    assert found.shape == (1, 20, 30)
    np.testing.assert_allclose(found[0], expected, rtol=1e-13)
    out = np.empty((20, 30))
    assert kermac.cdist(a, b, out=out, p=p, skip_epilogue=skips, try_to_align=True) is out
    np.testing.assert_array_equal(out, found[0])
    floats = kermac.cdist(a.astype("float32"), b.astype("float32"), p=p, skip_epilogue=skips)
    assert floats.dtype == np.float32
    np.testing.assert_allclose(floats[0], expected, rtol=2e-6)


def test_cdist_of_batches(rng):
    a, b, p = rng.random((3, 5, 4)), rng.random((6, 4)), np.array([1.0, 1.5, 2.5])
    expected = np.stack([sums(a[i], b, p[i])**(1 / p[i]) for i in range(3)])
    np.testing.assert_allclose(kermac.cdist(a, b, p=p), expected, rtol=1e-13)
    np.testing.assert_allclose(kermac.cdist(a[0], b, p=p), [sums(a[0], b, q)**(1 / q) for q in p], rtol=1e-13)
    np.testing.assert_allclose(kermac.cdist(a, b, p=1.0), np.stack([sums(one, b, 1) for one in a]), rtol=1e-13)
    np.testing.assert_allclose(kermac.cdist(a, b, p=p, skip_epilogue=True), np.stack([sums(a[i], b, p[i]) for i in range(3)]), rtol=1e-13)


def test_run_kernel(rng):
    x, z = rng.random((8, 3)), rng.random((5, 3))
    l1, l2 = kermac.kernel_descriptor_laplace_l1, kermac.kernel_descriptor_laplace_l2
    np.testing.assert_allclose(kermac.run_kernel(l1, x, z, bandwidth=2.0)[0], np.exp(-sums(x, z, 1) / 2), rtol=1e-13)
    np.testing.assert_allclose(kermac.run_kernel(l2, x, z, bandwidth=2.0)[0], np.exp(-sums(x, z, 2)**0.5 / 2), rtol=1e-13)
    gaussian = kermac.KernelDescriptor(kermac.InnerOperator.DIFF, kermac.PowerType.SQUARE, kermac.PowerType.NOOP, kermac.KernelType.GAUSSIAN)
    widths = np.array([0.5, 1.0, 2.0])
    expected = np.stack([np.exp(-sums(x, x, 2) / (2 * w * w)) + 0.1 * np.eye(8) for w in widths])
    np.testing.assert_allclose(kermac.run_kernel(gaussian, x, x, bandwidth=widths, regularization=0.1), expected, rtol=1e-12)
    block = kermac.run_kernel(gaussian, x[:4], x, bandwidth=1.0, regularization=0.5)[0]
    np.testing.assert_allclose(block, (np.exp(-sums(x, x, 2) / 2) + 0.5 * np.eye(8))[:4], rtol=1e-12)
    shifted = kermac.run_kernel(gaussian, x[4:], x, bandwidth=1.0, regularization=0.5, regularization_offset_y=4)[0]
    np.testing.assert_allclose(shifted, (np.exp(-sums(x, x, 2) / 2) + 0.5 * np.eye(8))[4:], rtol=1e-12)
    powers = kermac.KernelDescriptor(kermac.InnerOperator.DIFF, kermac.PowerType.POW, kermac.PowerType.POW, kermac.KernelType.LAPLACE)
    p = np.array([1.2, 1.7, 3.0])
    expected = np.stack([np.exp(-sums(x, z, p[i])**(1 / p[i]) / widths[i]) for i in range(3)])
    np.testing.assert_allclose(kermac.run_kernel(powers, x, z, p=p, bandwidth=widths), expected, rtol=1e-12)
    one = kermac.run_kernel(powers, x, z, inner_p=1.5, outer_p=0.5, bandwidth=1.0)[0]
    np.testing.assert_allclose(one, np.exp(-sums(x, z, 1.5)**0.5), rtol=1e-12)
    np.testing.assert_allclose(kermac.run_kernel(kermac.kernel_descriptor_mma, x, z)[0], x @ z.T, rtol=1e-13)


@pytest.mark.parametrize("operator", list(kermac.InnerOperator))
def test_run_kernel_of_all_powers(rng, compiles, operator):
    powers, p = kermac.PowerType, 1.5
    x, z = rng.random((6, 4)) + 1, rng.random((5, 4)) + 2  # so that z − x, x·z and their roots are numbers
    formulas = {powers.NOOP: lambda v: v, powers.ABS: np.abs, powers.SQUARE: np.square, powers.SQRT: np.sqrt,
                powers.POW: lambda v: np.abs(v)**p}
    terms = z - x[:, None] if operator is kermac.InnerOperator.DIFF else z * x[:, None]
    for inner, outer in itertools.product(powers, powers):
        sums = formulas[inner](terms).sum(-1)
        arguments = {name: p for name, power in (("inner_p", inner), ("outer_p", outer)) if power is powers.POW}
        found = kermac.run_kernel(kermac.KernelDescriptor(operator, inner, outer, kermac.KernelType.NONE), x, z, **arguments)
        np.testing.assert_allclose(found[0], formulas[outer](sums), rtol=1e-12)
        laplace = kermac.KernelDescriptor(operator, inner, outer, kermac.KernelType.LAPLACE)
        found = kermac.run_kernel(laplace, x, z, bandwidth=30.0, **arguments)
        np.testing.assert_allclose(found[0], np.exp(-formulas[outer](sums) / 30), rtol=1e-12)


def test_run_kernel_of_sums_below_zero(rng, compiles):
    x, z = rng.random((6, 4)), rng.random((5, 4)) + 1
    signed = kermac.KernelDescriptor(kermac.InnerOperator.DIFF, kermac.PowerType.NOOP, kermac.PowerType.ABS, kermac.KernelType.NONE)
    np.testing.assert_allclose(kermac.run_kernel(signed, z, x)[0], np.abs((x - z[:, None]).sum(-1)), rtol=1e-12)
    masked = kermac.KernelDescriptor(kermac.InnerOperator.DIFF, kermac.PowerType.NOOP, kermac.PowerType.NOOP, kermac.KernelType.LAPLACE)
    np.testing.assert_array_equal(kermac.run_kernel(masked, z, x, bandwidth=1.0)[0], 1)  # what is below epsilon counts as 0
    products = kermac.KernelDescriptor(kermac.InnerOperator.DOT, kermac.PowerType.ABS, kermac.PowerType.NOOP, kermac.KernelType.NONE)
    np.testing.assert_allclose(kermac.run_kernel(products, -x, z)[0], np.abs(x[:, None] * z).sum(-1), rtol=1e-12)
    kermac.pre_compile_descriptors("cpu", [signed, products, kermac.kernel_descriptor_l1_norm])


def test_out_may_have_more_batches(rng):
    x, z = rng.random((6, 4)), rng.random((1, 5, 4))
    out = np.empty((3, 6, 5))
    assert kermac.cdist(x, z, out=out) is out
    np.testing.assert_array_equal(out, np.repeat(kermac.cdist(x, z), 3, 0))
    np.testing.assert_array_equal(hs.Gemm()(x=x, z=z, out=out), np.repeat(hs.Gemm()(x=x, z=z), 3, 0))
    cut = hs.NormLp(epsilon=0.5)
    expected = np.repeat(cut(x=x, z=z, p_inner=1.5, p_outer=0.5), 3, 0)
    np.testing.assert_allclose(cut(x=x, z=z, p_inner=1.5, p_outer=0.5, out=out), expected, rtol=1e-14)
    out = np.empty((2, 3, 5, 4))
    a, b, c, d = rng.random((6, 4)), rng.random((5, 6)), rng.random((3, 6)), rng.random((5, 4))
    np.testing.assert_array_equal(kermac.cdist_grad(a, b, c, d, out=out), np.repeat(kermac.cdist_grad(a, b, c, d), 2, 0))


def test_timer():
    timer = kermac.CudaTimer()
    timer.start()
    assert 0 <= timer.stop() < 60_000


def test_kermac_refusals(rng):
    x = rng.random((4, 3))
    for arguments, text in (({"p": 1.0}, "p or inner_p is given, expected None"), ({}, "bandwidth is None"),
                            ({"bandwidth": np.ones((2, 2))}, r"bandwidth has the shape \(2, 2\)"),
                            ({"bandwidth": 1.0, "out": np.empty((4, 5))}, r"out has the shape \(4, 5\), expected \(1, 4, 4\)")):
        with pytest.raises(ValueError, match=text):
            kermac.run_kernel(kermac.kernel_descriptor_laplace_l1, x, x, **arguments)
    with pytest.raises(ValueError, match="p and inner_p are None"):
        kermac.run_kernel(kermac.kernel_descriptor_p_norm, x, x)
    with pytest.raises(ValueError, match="kernel_type is NONE"):
        kermac.run_kernel(kermac.kernel_descriptor_l1_norm, x, x, bandwidth=1.0)
    with pytest.raises(ValueError, match="b has 2 batches, expected 1 or 3"):
        kermac.cdist(np.zeros((3, 2, 2)), np.zeros((2, 2, 2)))


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0])
def test_cdist_grad(rng, p):
    a, b, c, d = rng.random((9, 5)), rng.random((4, 9)), rng.random((3, 9)), rng.random((4, 5))

    def formula(a, b, c, d, p):
        t = d[:, None, :] - b[:, :, None]  # n, k, m
        return np.einsum("ok,km,nkm->onm", c, a, np.sign(t) * np.abs(t)**(p - 1))

    np.testing.assert_allclose(kermac.cdist_grad(a, b, c, d, p=p)[0], formula(a, b, c, d, p), rtol=1e-12, atol=1e-13)
    out = np.empty((3, 4, 5))
    assert kermac.cdist_grad(a, b, c, d, out=out, p=p) is out
    np.testing.assert_allclose(out, formula(a, b, c, d, p), rtol=1e-12, atol=1e-13)
    many = rng.random((2, 9, 5))
    found = kermac.cdist_grad(many, b, c, d, p=p)
    np.testing.assert_allclose(found, np.stack([formula(one, b, c, d, p) for one in many]), rtol=1e-12, atol=1e-13)
    each = kermac.cdist_grad(a, b, c, d, p=np.array([1.0, 2.0]))
    np.testing.assert_allclose(each, np.stack([formula(a, b, c, d, 1), formula(a, b, c, d, 2)]), rtol=1e-12, atol=1e-13)
    of_zoo = {1.0: hsg.NormL1(), 2.0: hsg.NormL2()}.get(p)
    if of_zoo:
        found = of_zoo(x=b, z=d, coefs=c, grad_kernel_matrix=a)
    else:
        found = hsg.NormLp(1e-8)(x=b, z=d, coefs=c, grad_kernel_matrix=a, p_power_grad=p - 1)
    np.testing.assert_allclose(found[0], formula(a, b, c, d, p), rtol=1e-12, atol=1e-13)


def test_linalg(rng):
    a = rng.random((3, 6, 6))
    a = a @ a.swapaxes(1, 2) + np.eye(6)
    b = rng.random((3, 2, 6))
    for solve in (kermac.linalg.solve_cholesky, kermac.linalg.solve_lu):
        x, factor_infos, solve_infos = solve(a, b)
        np.testing.assert_allclose(x, np.linalg.solve(a, b.swapaxes(1, 2)).swapaxes(1, 2), rtol=1e-10)
        assert not factor_infos.any() and not solve_infos.any()
    w, v, infos = kermac.linalg.eigh(a)
    np.testing.assert_allclose(w, np.linalg.eigvalsh(a), rtol=1e-12)
    np.testing.assert_allclose(v * w[:, None, :] @ v.swapaxes(1, 2), a, rtol=1e-11, atol=1e-12)
    assert not infos.any()
    a[1, 0, 0] = -1
    x, infos, _ = kermac.linalg.solve_cholesky(a, b)
    assert infos[1] != 0 and np.isnan(x[1]).all() and not np.isnan(x[0]).any()
    with pytest.raises(ValueError, match=r"Non-zero items found: \[\('factor_info', 1, 1\)\]"):
        kermac.linalg.solve_cholesky(a, b, check_errors=True)
    upper = np.triu(a[0]) + np.tril(np.full((6, 6), np.nan), -1)
    x, _, _ = kermac.linalg.solve_cholesky(upper, b[0], kermac.FillMode.UPPER)
    np.testing.assert_allclose(x[0], np.linalg.solve(a[0], b[0].T).T, rtol=1e-10)


def test_zoo_of_mm_kermac(rng):
    x, z = rng.random((9, 5)), rng.random((7, 5))
    np.testing.assert_allclose(hs.Gemm()(x=x, z=z)[0], x @ z.T, rtol=1e-13)
    np.testing.assert_allclose(hs.NormL1()(x=x, z=z)[0], sums(x, z, 1), rtol=1e-13)
    np.testing.assert_allclose(hs.NormL2()(x=x, z=z, try_to_align=False)[0], sums(x, z, 2)**0.5, rtol=1e-13)
    expected = sums(x, z, 1.3)**(1 / 1.3)
    np.testing.assert_allclose(hs.NormLp(epsilon=0.0)(x=x, z=z, p_inner=1.3, p_outer=1 / 1.3)[0], expected, rtol=1e-13)
    cut = hs.NormLp(epsilon=float(np.median(expected)))(x=x, z=z, p_inner=1.3, p_outer=1 / 1.3)[0]
    np.testing.assert_allclose(cut, np.where(expected < np.median(expected), 0, expected), rtol=1e-12)
    p = np.array([1.1, 2.2])
    several = hs.NormLp(epsilon=0.0)(x=x, z=z, p_inner=p, p_outer=1 / p)
    np.testing.assert_allclose(several, np.stack([sums(x, z, q)**(1 / q) for q in p]), rtol=1e-13)


# ---- the programs of the READMEs, with another import ----


def test_program_of_mm_kermac(torch):
    device = torch.device("cpu")
    M, N, K = 64, 128, 32
    x = torch.randn(M, K, device=device)
    z = torch.randn(N, K, device=device)
    out = torch.empty((M, N), device=device)
    hs.Gemm()(x=x, z=z, out=out)
    torch.testing.assert_close(out, x @ z.T, rtol=1e-5, atol=1e-5)
    hs.NormL2()(x=x, z=z, out=out)
    torch.testing.assert_close(out, torch.cdist(x, z, compute_mode="donot_use_mm_for_euclid_dist"))
    p = 1.3
    p_inner = torch.tensor(p, device=device)
    p_outer = torch.tensor(1.0 / p, device=device)
    hs.NormLp(epsilon=0.0)(x=x, z=z, p_inner=p_inner, p_outer=p_outer, out=out)
    torch.testing.assert_close(out, torch.cdist(x, z, p=p))


def test_program_of_kermac(torch):
    K, M, N, O = 30, 12, 9, 4  # noqa: E741
    a, b, c, d = torch.randn(K, M), torch.randn(N, K), torch.randn(O, K), torch.randn(N, M)
    out = torch.empty(O, N, M)
    out = kermac.cdist_grad(a, b, c, d, out=out)
    t = d[:, None, :] - b[:, :, None]
    torch.testing.assert_close(out, torch.einsum("ok,km,nkm->onm", c, a, t), rtol=1e-4, atol=1e-4)
    x = torch.randn(20, 6)
    kernel = kermac.run_kernel(kermac.kernel_descriptor_laplace_l2, x, x, bandwidth=torch.tensor([1.0, 2.0]), regularization=0.1)
    d = torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist")
    torch.testing.assert_close(kernel, torch.stack([torch.exp(-d / w) for w in (1.0, 2.0)]) + 0.1 * torch.eye(20))
    solution, _, _ = kermac.linalg.solve_cholesky(kernel, torch.ones(2, 1, 20))
    torch.testing.assert_close(solution.mT, torch.linalg.solve(kernel, torch.ones(2, 20, 1)), rtol=1e-3, atol=1e-4)


def test_programs_of_kermac_s_examples(torch, compiles):
    device = torch.device("cpu")
    M, N, K = 20, 30, 8
    a, b, out = torch.randn(M, K, device=device), torch.randn(N, K, device=device), torch.zeros(M, N, device=device)
    gaussian = kermac.KernelDescriptor(inner_operator=kermac.InnerOperator.DIFF, inner_power=kermac.PowerType.POW,
                                       outer_power=kermac.PowerType.POW, kernel_type=kermac.KernelType.GAUSSIAN)
    kermac.pre_compile_descriptors(device=device, descriptors=[kermac.kernel_descriptor_p_norm, gaussian], try_to_align=False, debug=False)
    kermac.run_kernel(kermac.kernel_descriptor_laplace_l2, a, b, out=out, bandwidth=10.0, epsilon=1e-5)
    torch.testing.assert_close(out, torch.exp(-torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist") / 10))
    kermac.run_kernel(gaussian, a, b, out=out, inner_p=1.3, outer_p=1.0 / 1.3, bandwidth=10.0)
    torch.testing.assert_close(out, torch.exp(-torch.cdist(a, b, p=1.3) / 200))
    p = torch.tensor([0.5, 0.6, 0.7, 2.0])
    regularization = torch.tensor([1e-3, 1e-2, 1e-1, 1.0])
    laplace = kermac.KernelDescriptor(kermac.InnerOperator.DIFF, kermac.PowerType.POW, kermac.PowerType.POW, kermac.KernelType.LAPLACE)
    found = kermac.run_kernel(laplace, a, a, p=p, bandwidth=torch.tensor(10.0), regularization=regularization)
    sums = (a[:, None] - a).abs()
    expected = [torch.exp(-(sums**q).sum(-1)**(1 / q) / 10) + r * torch.eye(M) for q, r in zip(p, regularization)]
    torch.testing.assert_close(found, torch.stack(expected), rtol=1e-4, atol=1e-5)


def test_program_of_sgemm_bi(torch):
    from rigel_semirings.compat import sgemm_bi

    torch.manual_seed(1)
    layer = sgemm_bi.Linear(48, 24, device="cpu", dtype=torch.bfloat16, tensor_cores=True)
    x = torch.randn(5, 7, 48, dtype=torch.bfloat16)
    y = layer(x)
    y.sum().backward()
    assert y.shape == (5, 7, 24) and layer.weight.grad.dtype is torch.bfloat16 and layer.bias.grad.dtype is torch.float32
    torch.testing.assert_close(layer.bias.grad, torch.full((24,), 35.0))
    one = layer(x[2, 3])  # the same bits of a row alone
    assert torch.equal(one, y[2, 3])

    theirs = torch.nn.Linear(48, 24)
    own = sgemm_bi.Linear.from_torch(theirs)
    x = torch.randn(7, 48, requires_grad=True)
    other = x.detach().clone().requires_grad_()
    torch.testing.assert_close(own(x), theirs(other))
    (own(x)**2).sum().backward()
    (theirs(other)**2).sum().backward()
    torch.testing.assert_close(x.grad, other.grad, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(own.weight.grad.T, theirs.weight.grad, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(own.bias.grad, theirs.bias.grad, rtol=1e-4, atol=1e-5)
    weight = torch.randn(48, 24)
    torch.testing.assert_close(sgemm_bi.deterministic_linear(x.detach(), weight, tensor_cores=True), x.detach() @ weight, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="expected one type"):
        sgemm_bi.deterministic_linear(x.detach(), weight.bfloat16())
    with pytest.raises(rs.InvalidArgument, match=r"expected \(…, K\) and \(K, N\)"):
        sgemm_bi.deterministic_linear(x.detach(), weight.T)


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float16"])
def test_engine_of_sgemm_bi(torch, name):
    from rigel_semirings.compat import sgemm_bi

    m, k, n = 5, 7, 3
    dtype = getattr(torch, name)
    x, w, bias, dy = torch.randn(m, k).to(dtype), torch.randn(k, n).to(dtype), torch.randn(n), torch.randn(m, n).to(dtype)
    engine = sgemm_bi.Engine("cpu")
    engine.presize_upcast_scratch(m * k, k * n, m * n)
    y = torch.empty(m, n, dtype=dtype)
    engine.forward((y.data_ptr(), x.data_ptr(), w.data_ptr(), bias.data_ptr()), (m, k, n), name, 0, True)
    assert torch.equal(y, sgemm_bi.deterministic_linear(x, w, bias))
    # As in the README: addresses and dimensions one by one.
    engine.forward(y.data_ptr(), x.data_ptr(), w.data_ptr(), None, m, k, n, name, 0, True)
    assert torch.equal(y, sgemm_bi.deterministic_linear(x, w))
    dw = torch.full((k, n), 2.0)
    engine.backward_dw((dw.data_ptr(), dy.data_ptr(), x.data_ptr()), (m, k, n), name, 0)
    torch.testing.assert_close(dw.double(), 2 + x.double().T @ dy.double(), rtol=1e-5, atol=1e-5)
    dx = torch.empty(m, k, dtype=dtype)
    engine.backward_dx((dx.data_ptr(), dy.data_ptr(), w.data_ptr()), (m, k, n), name, 0, tensor_cores=False)
    torch.testing.assert_close(dx, (dy.double() @ w.double().T).to(dtype))
    engine.synchronize()
    before = y.clone()
    engine.forward((y.data_ptr(), x.data_ptr(), w.data_ptr(), None), (0, k, n), name, 0)
    assert torch.equal(y, before)


def test_refusals_of_the_engine(torch):
    from rigel_semirings.compat import sgemm_bi

    assert doctest.testmod(sgemm_bi).failed == 0
    with pytest.raises(ValueError, match="device is 99, expected 'cpu' or a CUDA device, of which torch has"):
        sgemm_bi.Engine(99)
    engine = sgemm_bi.Engine("cpu")
    y = torch.zeros(2, 2)
    address = y.data_ptr()
    for arguments, text in ((((address, address), (2, 2, 2), "float32", 0), "ptrs has 2 addresses, expected 4: out, a, b, bias"),
                            (((address, 0, address, None), (2, 2, 2), "float32", 0), "the address of a is 0"),
                            (((address, address + 1, address, None), (2, 2, 2), "float32", 0), "the address of a is"),
                            (((address, address, address, None), (2, -2, 2), "float32", 0), r"dims is \(2, -2, 2\)"),
                            (((address, address, address, None), (2, 2, 2), "float64", 0), "dtype is 'float64', expected one of float32"),
                            (((address, address, address, None), (2, 2, 2)), "there are 2 arguments")):
        with pytest.raises(ValueError, match=text):
            engine.forward(*arguments)
    assert not y.any()
