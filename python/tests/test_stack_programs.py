# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mm-kermac's kernels of programs: the README's, the zoo's as programs, each instruction, and what is refused."""

import doctest
import importlib

import numpy as np
import pytest

import rigel_semirings as rs
import rigel_semirings.compat.mm_kermac.hyper_semiring as hs
import rigel_semirings.compat.mm_kermac.hyper_semiring_gradient as hsg
from rigel_semirings.compat.mm_kermac import PtxInstruction as Ptx
from rigel_semirings.compat.mm_kermac import SpecialRegister, Stack
from rigel_semirings.compat.mm_kermac._programs import result_of


def kernel_of(step, epilogue=lambda e, reg: [e]):
    return hs.HyperSemiringKernel(step, epilogue)


def is_sum(c, t, e, reg):
    return [c, t, Ptx.mul_ftz_f32, e, Ptx.add_ftz_f32]


@pytest.mark.parametrize("module", ["hyper_semiring", "hyper_semiring_gradient"])
def test_examples_of_docstrings(compiles, module):
    assert doctest.testmod(importlib.import_module(f"rigel_semirings.compat.mm_kermac.{module}")).failed == 0


# ---- the programs of the README, with another import ----


def test_program_of_the_readme(torch, compiles):
    x, z = torch.randn(40, 16), torch.randn(30, 16)
    out = torch.empty((x.size(0), z.size(0)))
    kernel = hs.HyperSemiringKernel(
        mma_lambda=lambda a, b, c, reg: [a, b, Ptx.sub_ftz_f32, reg["beta"], Ptx.mul_ftz_f32, c, Ptx.add_ftz_f32],
        epilogue_lambda=lambda e, reg: [e, reg["gamma"], Ptx.mul_ftz_f32])
    hyper = {"beta": torch.tensor(0.5), "gamma": torch.tensor(2.0)}
    assert kernel(a=x, b=z, hyper_dict=hyper, out=out) is out
    torch.testing.assert_close(out, z.sum(1) - x.sum(1)[:, None], rtol=1e-5, atol=1e-4)
    hyper["gamma"] = torch.tensor([1.0, 3.0])
    torch.testing.assert_close(kernel(a=x, b=z, hyper_dict=hyper), torch.stack([out / 2, out * 1.5]), rtol=1e-5, atol=1e-4)


def test_gradient_program_of_the_readme(torch, compiles):
    a, b, c, d = torch.randn(25, 12), torch.randn(5, 25), torch.randn(6, 25), torch.randn(5, 12)
    out = torch.empty((6, 5, 12))
    kernel = hsg.HyperSemiringGradientKernel(
        multiply_lambda=lambda d, b, a, reg: [b, d, Ptx.sub_ftz_f32, reg["alpha"], Ptx.mul_ftz_f32, a, Ptx.mul_ftz_f32],
        accumulate_lambda=lambda c, diff, e, reg: [c, diff, Ptx.mul_ftz_f32, e, Ptx.add_ftz_f32],
        epilogue_lambda=lambda e, reg: [e, reg["scale"], Ptx.mul_ftz_f32])
    hyper = {"alpha": torch.tensor(0.25), "scale": torch.tensor(2.0)}
    assert kernel(a=a, b=b, c=c, d=d, hyper_dict=hyper, out=out) is out
    expected = 0.5 * torch.einsum("ok,km,nkm->onm", c.double(), a.double(), (d[:, None, :] - b[:, :, None]).double())
    torch.testing.assert_close(out.double(), expected, rtol=1e-5, atol=1e-4)


# ---- the zoo's kernels as programs ----


def power_program(epsilon):
    def epilogue(e, reg):
        return [e, Ptx.lg2_approx_ftz_f32, reg["outer"], Ptx.mul_ftz_f32, Ptx.ex2_approx_ftz_f32, Stack.f32.store(0), Stack.load(0),
                Stack.f32.constant(epsilon), Ptx.setp_gt_ftz_f32, Stack.load(0), Stack.f32.constant(0.0), Ptx.selp_f32]

    return kernel_of(lambda a, b, c, reg: [a, b, Ptx.sub_ftz_f32, Ptx.abs_ftz_f32, Ptx.lg2_approx_ftz_f32, reg["inner"], Ptx.mul_ftz_f32,
                                           Ptx.ex2_approx_ftz_f32, c, Ptx.add_ftz_f32], epilogue)


def test_zoo_as_programs(rng, compiles):
    x, z = rng.random((2, 9, 5)), rng.random((7, 5))
    product = kernel_of(lambda a, b, c, reg: [c, a, b, Ptx.fma_rn_ftz_f32])
    np.testing.assert_allclose(product(x, z), x @ z.T, rtol=1e-13)
    chain = product(x.astype("float32"), z.astype("float32"))
    np.testing.assert_array_equal(chain, rs.contract(x.astype("float32"), z.T.astype("float32"), "plus_times", require="reference_bits"))
    euclidean = kernel_of(lambda a, b, c, reg: [a, b, Ptx.sub_ftz_f32, Stack.f32.dup, Ptx.mul_ftz_f32, c, Ptx.add_ftz_f32],
                          lambda e, reg: [e, Ptx.sqrt_approx_ftz_f32])
    np.testing.assert_allclose(euclidean(x, z), hs.NormL2()(x=x, z=z), rtol=1e-13)
    p = np.array([1.3, 2.5])
    np.testing.assert_allclose(power_program(0.0)(x, z, {"inner": p, "outer": 1 / p}), hs.NormLp(0.0)(x=x, z=z, p_inner=p, p_outer=1 / p),
                               rtol=1e-12)
    cut = float(np.median(hs.NormLp(0.0)(x=x, z=z, p_inner=1.3, p_outer=1 / 1.3)))
    np.testing.assert_allclose(power_program(cut)(x, z, {"inner": 1.3, "outer": 1 / 1.3}),
                               hs.NormLp(cut)(x=x, z=z, p_inner=1.3, p_outer=1 / 1.3), rtol=1e-12)


def sign_times_power(epsilon):
    def multiply(d, b, a, reg):
        return [b, d, Ptx.sub_ftz_f32, Stack.f32.store(0), Stack.load(0), Ptx.abs_ftz_f32, Stack.f32.store(1), Stack.load(1),
                Stack.f32.constant(epsilon), Ptx.setp_gt_ftz_f32, Stack.load(1), Stack.f32.constant(epsilon), Ptx.selp_f32,
                Ptx.lg2_approx_ftz_f32, reg["power"], Ptx.mul_ftz_f32, Ptx.ex2_approx_ftz_f32, Stack.load(0), Ptx.copysign_f32, a,
                Ptx.mul_ftz_f32]

    return hsg.HyperSemiringGradientKernel(multiply, is_sum, lambda e, reg: [e])


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_gradient_programs_are_derivatives(rng, compiles, request, library):
    if library == "torch":
        request.getfixturevalue("torch")
    a, b, c, d = (rng.random(shape) for shape in ((6, 4), (3, 6), (2, 6), (3, 4)))
    p = np.array([1.5, 2.0, 3.0])
    arrays = [a, b, c, d, p - 1]
    if library == "torch":
        import torch

        arrays = [torch.from_numpy(one) for one in arrays]
    found = np.asarray(sign_times_power(1e-9)(*arrays[:4], hyper_dict={"power": arrays[4]}))
    assert found.shape == (3, 2, 3, 4)
    for i, q in enumerate(p):
        def energy(d, q=q):
            return np.einsum("ok,km,nkm->o", c, a, np.abs(d[:, None, :] - b[:, :, None])**q / q)

        h = 1e-5
        for n, m in np.ndindex(d.shape):
            step = np.zeros_like(d)
            step[n, m] = h
            np.testing.assert_allclose(found[i, :, n, m], (energy(d + step) - energy(d - step)) / (2 * h), rtol=1e-6, atol=1e-8)
    # A batch of one operand, the others shared; l1's program with a swap.
    signs = hsg.HyperSemiringGradientKernel(lambda d, b, a, reg: [b, d, Ptx.sub_ftz_f32, Stack.f32.constant(1.0), Stack.f32.swap,
                                                                  Ptx.copysign_f32, a, Ptx.mul_ftz_f32], is_sum, lambda e, reg: [e])
    many = rng.random((2, 6, 4))
    np.testing.assert_allclose(signs(many, b, c, d), hsg.NormL1()(x=b, z=d, coefs=c, grad_kernel_matrix=many), rtol=1e-13, atol=1e-13)


def test_gradient_programs_of_hyperparameters_alone_and_other_sums(rng, compiles):
    a, b, c, d = (rng.random(shape) for shape in ((6, 4), (7, 6), (2, 6), (7, 4)))
    constant = hsg.HyperSemiringGradientKernel(lambda d, b, a, reg: [reg["w"]], is_sum, lambda e, reg: [e])
    np.testing.assert_allclose(constant(a, b, c, d, {"w": 2.0}), np.broadcast_to(2 * c.sum(1)[:, None, None], (1, 2, 7, 4)), rtol=1e-14)
    # e is 0 at first, and then |e − c·t|, k ascending: no sum of parts.
    turning = hsg.HyperSemiringGradientKernel(lambda d, b, a, reg: [b, d, Ptx.sub_ftz_f32, a, Ptx.mul_ftz_f32],
                                              lambda c, t, e, reg: [t, c, Ptx.mul_ftz_f32, e, Ptx.sub_ftz_f32, Ptx.abs_ftz_f32],
                                              lambda e, reg: [e, reg["w"], Ptx.mul_ftz_f32])
    expected = np.zeros((2, 7, 4))
    for k in range(6):
        expected = abs(expected - c[:, k, None, None] * a[k] * (d - b[:, k, None]))
    np.testing.assert_allclose(turning(a, b, c, d, {"w": 0.5})[0], expected / 2, rtol=1e-12, atol=1e-14)
    # A batch of out and hyperparameters alone.
    out = np.empty((3, 2, 7, 4))
    assert turning(a, b, c, d, {"w": 0.5}, out=out) is out
    np.testing.assert_array_equal(out, np.broadcast_to(out[:1], out.shape))
    np.testing.assert_array_equal(turning(a, b, c, d, {"w": np.array([0.5, 1.0, 2.0])}), out * np.array([1, 2, 4])[:, None, None, None])


# ---- instructions ----

FORMULAS = {
    Ptx.copysign_f32: lambda p, q: np.copysign(q, p), Ptx.add_ftz_f32: lambda p, q: p + q, Ptx.sub_ftz_f32: lambda p, q: p - q,
    Ptx.mul_ftz_f32: lambda p, q: p * q, Ptx.fma_rn_ftz_f32: lambda p, q, r: p * q + r, Ptx.div_approx_ftz_f32: lambda p, q: p / q,
    Ptx.abs_ftz_f32: np.abs, Ptx.neg_ftz_f32: lambda p: -p, Ptx.min_ftz_f32: np.minimum, Ptx.max_ftz_f32: np.maximum,
    Ptx.rcp_approx_ftz_f32: lambda p: 1 / p, Ptx.sqrt_approx_ftz_f32: np.sqrt, Ptx.rsqrt_approx_ftz_f32: lambda p: 1 / np.sqrt(p),
    Ptx.sin_approx_ftz_f32: np.sin, Ptx.cos_approx_ftz_f32: np.cos, Ptx.lg2_approx_ftz_f32: np.log2, Ptx.ex2_approx_ftz_f32: np.exp2,
    Ptx.tanh_approx_f32: np.tanh,
}


@pytest.mark.parametrize("instruction", FORMULAS, ids=str)
def test_instructions(rng, compiles, instruction):
    """Operands are b, a and a hyperparameter, the first one on top."""
    x, z, w = rng.random((4, 3)) + 0.5, rng.random((5, 3)) + 1, -1.25
    arity = len(instruction.args)
    on_top = [z[None], x[:, None], w][:arity]
    expected = FORMULAS[instruction](*on_top).sum(-1) * np.ones((4, 5))

    def step(a, b, c, reg):
        return [*reversed([b, a, reg["w"]][:arity]), instruction, c, Ptx.add_ftz_f32]

    np.testing.assert_allclose(kernel_of(step)(x, z, {"w": w})[0], expected, rtol=1e-12)


def test_predicates(rng, compiles):
    x, z = rng.random((4, 3)), rng.random((5, 3))
    for predicate, formula in ((Ptx.setp_lt_ftz_f32, np.less), (Ptx.setp_gt_ftz_f32, np.greater)):
        kernel = kernel_of(lambda a, b, c, reg, predicate=predicate: [a, b, predicate, a, Stack.f32.constant(2.0), Ptx.selp_f32, c, Ptx.add_ftz_f32])
        expected = np.where(formula(z[None], x[:, None]), 2.0, x[:, None]).sum(-1)
        np.testing.assert_allclose(kernel(x, z)[0], expected, rtol=1e-14)


# The stack f32 holds 4 3 2 1, 1 on top, before what is tested; after it the sum of its entries times 1, 10, 100, … from the top.
ORDERS = {
    "dup": ([Stack.f32.dup], [1, 1, 2, 3, 4]),
    "yank_dup": ([Stack.meta_constant(2), Stack.f32.yank_dup], [3, 1, 2, 3, 4]),
    "swap": ([Stack.f32.swap], [2, 1, 3, 4]),
    "swap_with": ([Stack.meta_constant(3), Stack.f32.swap_with], [4, 2, 3, 1]),
    "replace": ([Stack.meta_constant(2), Stack.f32.replace], [2, 1, 4]),
    "drop": ([Stack.meta_constant(2), Stack.f32.drop], [3, 4]),
    "rotate": ([Stack.f32.rotate], [2, 3, 1, 4]),
    "reverse": ([Stack.f32.reverse], [4, 3, 2, 1]),
    "store and load": ([Stack.f32.store(3), Stack.f32.store(4), Stack.load(3), Stack.load(3)], [1, 1, 3, 4]),
    "skipped: a load of nothing": ([Stack.load(7)], [1, 2, 3, 4]),
    "skipped: too deep": ([Stack.meta_constant(4), Stack.f32.swap_with, Stack.meta_constant(4), Stack.f32.drop], [1, 2, 3, 4]),
    "skipped: without a depth": ([Stack.f32.yank_dup, Stack.f32.drop], [1, 2, 3, 4]),
    "skipped: an instruction without a predicate": ([Ptx.selp_f32], [1, 2, 3, 4]),
    "other stacks": ([Stack.u32.constant(9), Stack.s32.constant(-9), Stack.u32.dup], [1, 2, 3, 4]),
}


@pytest.mark.parametrize("case", ORDERS)
def test_orders_of_the_stack(case):
    program, expected = ORDERS[case]
    numbers = [Stack.f32.constant(float(one)) for one in (4, 3, 2, 1)]
    weighted = []
    for i in range(len(expected)):
        weighted += [Stack.f32.constant(10.0**i), Ptx.mul_ftz_f32, Stack.f32.store(i)]
    for i in range(len(expected)):
        weighted += [Stack.load(i)]
    weighted += [Ptx.add_ftz_f32] * (len(expected) - 1)
    root = result_of("test", lambda: [*numbers, *program, *weighted], (), 1000)

    def number(one):
        if one.does == "constant":
            return one.value
        x, y = map(number, one.inputs)
        return x * y if one.does is Ptx.mul_ftz_f32 else x + y

    assert number(root) == sum(one * 10**i for i, one in enumerate(expected))


def test_limit_of_instructions(rng, compiles):
    x, z = rng.random((4, 3)), rng.random((5, 3))
    kernel = hs.HyperSemiringKernel(lambda a, b, c, reg: [c, a, b, Ptx.fma_rn_ftz_f32, Ptx.neg_ftz_f32], lambda e, reg: [e], execution_limit=4)
    np.testing.assert_allclose(kernel(x, z)[0], x @ z.T, rtol=1e-14)


# ---- sums of other kinds ----


def test_other_sums(rng, compiles):
    x, z = rng.standard_normal((4, 6)), rng.standard_normal((5, 6))
    differences = z - x[:, None]
    largest = kernel_of(lambda a, b, c, reg: [a, b, Ptx.sub_ftz_f32, c, Ptx.max_ftz_f32])
    np.testing.assert_array_equal(largest(x, z)[0], np.maximum(differences.max(-1), 0))  # c is 0 at first
    negative = kernel_of(lambda a, b, c, reg: [a, b, Ptx.sub_ftz_f32, c, Ptx.sub_ftz_f32])
    np.testing.assert_allclose(negative(x, z)[0], -differences.sum(-1), rtol=1e-12, atol=1e-13)
    # a and b in both factors of a fused multiply-add: c + (b − a)·(b − a), where b − a is pushed twice
    square = kernel_of(lambda a, b, c, reg: [c, a, b, Ptx.sub_ftz_f32, a, b, Ptx.sub_ftz_f32, Ptx.fma_rn_ftz_f32])
    np.testing.assert_allclose(square(x, z)[0], (differences**2).sum(-1), rtol=1e-13)
    weighted = kernel_of(lambda a, b, c, reg: [c, reg["w"], a, Ptx.fma_rn_ftz_f32])
    np.testing.assert_allclose(weighted(x, z, {"w": 3.0})[0], np.broadcast_to(3 * x.sum(1)[:, None], (4, 5)), rtol=1e-12, atol=1e-13)
    assert kernel_of(lambda a, b, c, reg: [c, a, b, Ptx.fma_rn_ftz_f32])(x.astype("float32"), z.astype("float32")).dtype == np.float32


def test_refusals(rng, compiles):
    x = rng.random((3, 4))
    cases = (
        (lambda a, b, c, reg: [a, b, Ptx.mul_ftz_f32], rs.InvalidArgument, "mma_lambda does not read what was summed before"),
        (lambda a, b, c, reg: [], rs.InvalidArgument, "mma_lambda leaves nothing on the stack f32"),
        (lambda a, b, c, reg: [c], rs.Unsupported, "mma_lambda has 0 parts"),
        (lambda a, b, c, reg: [a, c, Ptx.mul_ftz_f32, b, Ptx.add_ftz_f32], rs.Unsupported, "mma_lambda has 2 parts"),
        (lambda a, b, c, reg: [c, reg["w"], Ptx.mul_ftz_f32], rs.InvalidArgument, "the hyperparameter 'w', expected one of hyper_dict: it has none"),
        (lambda a, b, c, reg: [SpecialRegister.clock], rs.Unsupported, "the special register clock"),
        (lambda a, b, c, reg: [a, 3.0], rs.Unsupported, "3.0 among its instructions, expected a register"),
        (lambda a, b, c, reg: [Stack.load(16)], rs.InvalidArgument, r"load\(16\), expected a number of 0 to 15"),
        (lambda a, b, c, reg: 7, rs.Unsupported, "mma_lambda returns 7, expected a list"),
    )
    for step, error, text in cases:
        with pytest.raises(error, match=text):
            kernel_of(step)(x, x)
    with pytest.raises(TypeError, match="mma_lambda is 3, expected a function"):
        kernel_of(3)
    product = kernel_of(lambda a, b, c, reg: [c, a, b, Ptx.fma_rn_ftz_f32])
    with pytest.raises(TypeError, match=r"hyper_dict is \[1\], expected a dict"):
        product(x, x, [1])
    with pytest.raises(ValueError, match="a has 4 columns and b 3, expected the same"):
        product(x, x[:, :3])
    with pytest.raises(ValueError, match=r"hyper_dict\['w'\] has the shape \(2, 2\)"):
        product(x, x, {"w": np.ones((2, 2))})
    with pytest.raises(ValueError, match="b has 3 batches, expected 1 or 2"):
        product(np.zeros((2, 3, 4)), np.zeros((3, 3, 4)))
    kernel = hsg.HyperSemiringGradientKernel(lambda d, b, a, reg: [a], is_sum, lambda e, reg: [e])
    with pytest.raises(ValueError, match=r"d has the shape \(3, 9\), expected \(3, 4\), because a has \(4, 4\) and b \(3, 4\)"):
        kernel(np.zeros((4, 4)), np.zeros((3, 4)), np.zeros((2, 4)), np.zeros((3, 9)))
