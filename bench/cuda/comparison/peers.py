# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The other libraries: an adapter for each, and their one-time work, which is not timed."""
import concurrent.futures
import contextlib
import io
import itertools
import multiprocessing
import os
import sys

import torch

from comparison.tasks import DEVICE, TYPES, Job, matrices


class Unsupported(Exception):
    pass


class Torch:
    name, package, compiles = "torch", "torch", False

    def call(self, job, a, b, out):
        if job.name == "cdist":
            return lambda: torch.cdist(a, b.t(), p=job.p, compute_mode="donot_use_mm_for_euclid_dist")
        if job.name == "plus_times":
            return lambda: torch.matmul(a, b, out=out)
        block = max(1, 2**28 // (job.n * job.k))  # rows whose broadcast takes a gibibyte
        operate = {
            "min_plus": lambda x, to: torch.amin(x[:, :, None] + b, 1, out=to),
            "max_min": lambda x, to: torch.amax(torch.minimum(x[:, :, None], b), 1, out=to),
            "log_plus": lambda x, to: torch.logsumexp(x[:, :, None] + b, 1, out=to),
        }[job.name]

        def blocks():
            for i in range(0, job.m, block):
                operate(a[i:i + block], out[i:i + block])
            return out
        return blocks


class TorchProduct:
    """Distances for p = 2 by one matrix product: an algorithm for tensor cores that is inaccurate for near points."""
    name, package, compiles = "torch, by a product", "torch", False

    def call(self, job, a, b, out):
        if job.operation != "cdist:2":
            raise Unsupported
        return lambda: torch.cdist(a, b.t(), p=2, compute_mode="use_mm_for_euclid_dist")


class Kermac:
    name, package, compiles = "kermac", "kermac", True  # its kernels, in the first call

    def __init__(self):
        stand_in_for_cuda_core()
        import kermac
        import kermac.build_a_kernel
        import kermac.module_cache.module_cache as cache
        cache.Program, cache.ObjectCode = Compiler, Module
        kermac.build_a_kernel.torch = ScalarsOnce()
        self.kermac = kermac

    def call(self, job, a, b, out):
        kermac, scalars = self.kermac, {}
        if job.name == "plus_times":
            descriptor = kermac.kernel_descriptor_mma
        elif job.name != "cdist":
            raise Unsupported
        elif job.p == 1:
            descriptor = kermac.kernel_descriptor_l1_norm
        elif job.p == 2:
            descriptor = kermac.kernel_descriptor_l2_norm
        else:
            descriptor = kermac.kernel_descriptor_p_norm
            scalars = {"inner_p": torch.tensor(job.p, device=DEVICE), "outer_p": torch.tensor(1 / job.p, device=DEVICE)}
        return lambda: kermac.run_kernel(descriptor, a, b.t(), out=out, try_to_align=True, **scalars)


class MmKermac:
    name, package, compiles = "mm-kermac", "mm-kermac", True

    def __init__(self):
        stand_in_for_cuda_core()
        import mm_kermac
        import mm_kermac.hyper_semiring as semirings
        import mm_kermac.hyper_semiring.hyper_semiring as kernels
        import mm_kermac.ptx_inject_cache.ptx_inject_cache as cache
        cache.Program, kernels.Program, kernels.ObjectCode = Compiler, Compiler, Module
        instruction = mm_kermac.PtxInstruction
        for selection in (instruction.min_ftz_f32, instruction.max_ftz_f32):  # declared with one operand in 1.0.0
            selection.args = instruction.add_ftz_f32.args

        def pairs(multiply, add):
            kernel = semirings.HyperSemiringKernel(mma_lambda=lambda a, b, c, _: [a, b, multiply, c, add],
                                                   epilogue_lambda=lambda e, _: [e])
            return lambda x, z, out, try_to_align: kernel(a=x, b=z, out=out, try_to_align=try_to_align)
        self.kernels = {
            "cdist:1": semirings.NormL1(),
            "cdist:2": semirings.NormL2(),
            "plus_times": semirings.Gemm(),
            "min_plus": pairs(instruction.add_ftz_f32, instruction.min_ftz_f32),
            "max_min": pairs(instruction.min_ftz_f32, instruction.max_ftz_f32),
        }
        self.power = semirings.NormLp(epsilon=0.0)

    def call(self, job, a, b, out):
        kernel, scalars = self.kernels.get(job.operation), {}
        if kernel is None:
            if job.name != "cdist":
                raise Unsupported
            kernel = self.power
            scalars = {"p_inner": torch.tensor(job.p, device=DEVICE), "p_outer": torch.tensor(1 / job.p, device=DEVICE)}
        return lambda: kernel(x=a, z=b.t(), out=out, try_to_align=True, **scalars)


class SgemmBi:
    name, package, compiles = "sgemm-bi", "sgemm-bi", False

    def __init__(self):
        import sgemm_bi
        self.engine = sgemm_bi.Engine(0)

    def call(self, job, a, b, out):
        if job.name != "plus_times":
            raise Unsupported
        pointers, extents = (out.data_ptr(), a.data_ptr(), b.data_ptr(), None), (job.m, job.k, job.n)
        stream = torch.cuda.current_stream().cuda_stream

        def forward():
            self.engine.forward(pointers, extents, "float32", stream)
            return out
        return forward


# kermac and mm-kermac use the names of earlier releases of cuda.core, which are restored here.


def stand_in_for_cuda_core():
    """cuda.core.experimental became cuda.core."""
    import cuda.core
    try:
        import cuda.core.experimental._module
    except ImportError:
        import cuda.core._module
        sys.modules["cuda.core.experimental"] = cuda.core
        sys.modules["cuda.core.experimental._module"] = cuda.core._module


class Module:
    """An ObjectCode with `_sym_map`, the lowered names by the names in the source; it became an argument."""
    from_cubin = classmethod(lambda cls, code: cls(code, {}))

    def __init__(self, code, symbols):
        self.code, self._sym_map = code, symbols

    def get_kernel(self, name):
        import cuda.core
        self.loaded = cuda.core.ObjectCode.from_cubin(self.code, symbol_mapping=self._sym_map)
        return self.loaded.get_kernel(name)


class Compiler:
    """A Program whose products are such modules."""

    def __init__(self, *arguments, **options):
        import cuda.core
        self.program = cuda.core.Program(*arguments, **options)

    def compile(self, *arguments, **options):
        product = self.program.compile(*arguments, **options)
        symbols = product.symbol_mapping if hasattr(product, "symbol_mapping") else product._sym_map
        return Module(product.code, {name: lowered if isinstance(lowered, bytes) else lowered.encode()
                                     for name, lowered in symbols.items()})


class ScalarsOnce:
    """torch for kermac, which in each call copies the same scalars to the device and waits for it: here the first time."""

    def __init__(self):
        self.scalars = {}

    def __getattr__(self, name):
        return getattr(torch, name)

    def tensor(self, value, **options):
        key = value, *sorted((name, str(option)) for name, option in options.items())
        if key not in self.scalars:
            self.scalars[key] = torch.tensor(value, **options)
        return self.scalars[key]


PEERS = Torch, TorchProduct, Kermac, MmKermac, SgemmBi


def import_peers(without):
    """Those that are here, and why the others are not."""
    peers, missing = [], {}
    for peer in PEERS:
        if peer.name in without:
            missing[peer.name] = "left out"
            continue
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                peers.append(peer())
        except Exception as error:
            missing[peer.name] = f"{type(error).__name__}: {error}"
    return peers, missing


def product_of_torch(product, a, b):
    """The call of torch with the types and the precision of a product."""
    of = torch.backends.cuda.matmul
    of.allow_bf16_reduced_precision_reduction = of.allow_fp16_reduced_precision_reduction = False
    of.allow_tf32 = product.precision == "tf32"
    if product.element == "i8":
        return lambda: torch._int_mm(a, b)
    if product.element != product.result:
        return lambda: torch.mm(a, b, out_dtype=TYPES[product.result])
    return lambda: torch.mm(a, b)


def first_jobs(jobs):
    """Small ones, for all kernels that peers have for these: they have others where rows of A or B are no multiples of 4."""
    return sorted({Job(job.operation, 64, 64 + (job.name != "cdist" and job.n % 4 > 0), 64 + (job.k % 4 > 0)) for job in jobs})


def first_call(peer, job):
    """What a peer does once; a job of its own says what fails."""
    with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
        peer.call(job, *matrices(job), torch.empty(job.m, job.n, device=DEVICE))()


def compile_for(name, job):
    """first_call() in a process of its own, for the kernels that a peer writes to the disk."""
    with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
        first_call(next(peer for peer in PEERS if peer.name == name)(), job)


def begin_peers(peers, jobs):
    """All that peers do once."""
    one_power = {job for job in jobs if job.operation in ("cdist:1", "cdist:2", "cdist:1.3") or job.name != "cdist"}
    tasks = [(peer.name, job) for peer in peers if peer.compiles for job in sorted(one_power)]
    workers = min(len(tasks), len(os.sched_getaffinity(0)), 16)
    if workers > 1:
        context = multiprocessing.get_context("spawn")
        with contextlib.suppress(Exception), concurrent.futures.ProcessPoolExecutor(workers, context) as pool:
            list(pool.map(compile_for, *zip(*tasks)))
    for peer, job in itertools.product(peers, jobs):
        first_call(peer, job)
