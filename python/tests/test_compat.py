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


@pytest.mark.parametrize("module", ["kermac", "kermac.linalg", "mm_kermac", "mm_kermac.hyper_semiring", "mm_kermac.hyper_semiring_gradient"])
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
    with pytest.raises(TypeError, match="sums DOT to the power ABS"):
        kermac.run_kernel(kermac.KernelDescriptor(kermac.InnerOperator.DOT, kermac.PowerType.ABS, kermac.PowerType.NOOP, kermac.KernelType.NONE),
                          x, x)
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
