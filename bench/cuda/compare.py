#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sets Rigel beside the other libraries that have such kernels, on one GPU, on the same numbers, in one run: the tasks of a
table and a sweep of shapes. Every result is held against f64. Prints a table and writes it as JSON.

    compare.py --shapes 0 build/…/bin/bench_serve bench/results/<gpu>/compare.json
    compare.py --no-table build/…/bin/bench_serve bench/results/<gpu>/sweep.json
    compare.py --products build/…/bin/bench_serve bench/results/<gpu>/products.json

Peers are torch (cdist, matmul, broadcasts in blocks), kermac, mm-kermac and sgemm-bi: each where it can be imported; what is
missing or fails is recorded as such. torch alone is needed. Rigel runs in bench_serve, which reads the matrices from files.

Seconds are device time by events around a call: the median of several, but of one where it takes long, or long and several times
as long as the best. Each call comes behind a fill of a gibibyte, which empties the L2 cache and lets the host run ahead. What a
peer does once (compile its kernels, which several processes do beforehand, copy its scalars to the device) is outside of the
clock. Numbers are uniform in (-1, 0], where it makes no difference to a minimum that mm-kermac's
accumulators start from 0; for max_min in [0, 1).

With --products: products of matrices in the types that tensor cores take, beside torch (cuBLAS), which sums 16-bit numbers
in f32 and computes in tf32 only where Rigel may; by the kernel that the library chooses, and by the one that it chooses of
cuda.mma's. Both operands lie along k. Numbers are normal, of mean 0 and variance 1;
bytes uniform in -128 … 127. Errors are relative to the sum of |a·b|.
"""
import argparse
import concurrent.futures
import contextlib
import importlib.metadata
import io
import itertools
import json
import math
import multiprocessing
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import typing

import numpy
import torch

# Tasks of the table: operation, M, N, K. cdist:<p> is between rows, root included; the others are products of matrices.
TABLE = [
    ("cdist:1", 30000, 30000, 1024),
    ("cdist:2", 30000, 30000, 1024),
    ("cdist:1.3", 30000, 30000, 1024),
    ("cdist:1.5", 30000, 30000, 1024),
    ("cdist:3", 30000, 30000, 1024),
    ("cdist:1", 8192, 8192, 64),
    ("cdist:1", 2048, 2048, 256),
    ("cdist:1", 1000, 1000, 1000),
    ("min_plus", 8192, 8192, 8192),
    ("min_plus", 4096, 4096, 4096),
    ("max_min", 8192, 8192, 8192),
    ("plus_times", 8192, 8192, 8192),
    ("log_plus", 1024, 1024, 1024),
    ("log_plus", 4096, 4096, 4096),
]
SWEEP = ["cdist:1", "cdist:2", "cdist:1.3", "min_plus"]
LARGEST, MOST_PAIRS = 20000, 3e11  # of the sweep: an extent, M·N·K

# Products: type of A and B, type of C, precision, M, N, K; where Rigel does not choose among all kernels, the leading part of
# their names.
PRODUCTS = [
    *((element, result, "accumulator", *shape)
      for element, result in (("bf16", "bf16"), ("bf16", "f32"))
      for shape in ((8192, 8192, 8192), (4096, 3072, 1536), (2048, 3072, 768), (2048, 512, 768))),
    ("f16", "f16", "accumulator", 8192, 8192, 8192),
    ("f16", "f32", "accumulator", 8192, 8192, 8192),
    ("f32", "f32", "tf32", 8192, 8192, 8192),
    ("f32", "f32", "bf16x3", 8192, 8192, 8192),
    ("f32", "f32", "split", 8192, 8192, 8192),
    ("f32", "f32", "promoted", 8192, 8192, 8192),
    ("f32", "f32", "exact_products", 8192, 8192, 8192),
    ("f32", "f32", "accumulator", 8192, 8192, 8192),
    ("f64", "f64", "accumulator", 8192, 8192, 8192),
    ("i8", "i32", "accumulator", 8192, 8192, 8192),
    *(("bf16", "bf16", "accumulator", *shape, "cuda.mma")
      for shape in ((8192, 8192, 8192), (4096, 3072, 1536), (2048, 3072, 768), (2048, 512, 768))),
    *(("f32", "f32", precision, 8192, 8192, 8192, "cuda.mma") for precision in ("tf32", "split", "promoted")),
    ("f16", "f16", "accumulator", 8192, 8192, 8192, "cuda.mma"),
    ("i8", "i32", "accumulator", 8192, 8192, 8192, "cuda.mma"),
]
TYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i8": torch.int8, "i32": torch.int32}
# Relative errors of a term by its precision, of a result by its type.
ROUNDING = {"accumulator": 0, "exact_products": 0, "promoted": 2.0**-19, "split": 2.0**-19, "bf16x3": 2.0**-15, "tf32": 2.0**-9,
            "f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8, "i32": 0}

NOISE = 0.02  # repeated runs differ by about this much: Rigel counts as slower from there on
PATIENCE = 0.25  # seconds of a call that is timed only once
FAR, LONG = 4, 0.01  # so is one of so many times the best one's seconds, if it takes as many as that, too
RESERVED = 2**35  # bytes that torch may keep for itself
DEVICE = "cuda"


def sweep_shapes(count):
    """Extents from 1 on and from 64 on in turn, their logarithms uniform: the same list in every run."""
    source = random.Random(1)
    shapes = []
    while len(shapes) < count:
        least = 1 if len(shapes) % 2 else 64
        shape = tuple(round(math.exp(source.uniform(math.log(least), math.log(LARGEST)))) for _ in range(3))
        if math.prod(shape) <= MOST_PAIRS:
            shapes.append(shape)
    return shapes


class Job(typing.NamedTuple):
    operation: str
    m: int
    n: int
    k: int
    element = result = "f32"
    precision = "accumulator"
    kernels = ""

    @property
    def name(self):
        return self.operation.partition(":")[0]

    @property
    def p(self):
        return float(self.operation.partition(":")[2] or 0)

    @property
    def layout_of_b(self):
        return "columns" if self.name == "cdist" else "rows"

    @property
    def sign(self):
        return 1 if self.name == "max_min" else -1

    @property
    def numbers(self):
        """What the numbers in the matrices' memory hang on."""
        return self.sign, self.m, self.n, self.k


class Product(typing.NamedTuple):
    element: str
    result: str
    precision: str
    m: int
    n: int
    k: int
    kernels: str = ""  # the leading part of their names
    operation = "plus_times"
    layout_of_b = "columns"

    @property
    def numbers(self):
        return self.element, self.m, self.n, self.k


def matrices(job):
    """A, M × K, and B, K × N: for distances the transpose of the matrix whose rows they are between. In memory the same numbers
    for all operations of a sign."""
    generator = torch.Generator(DEVICE).manual_seed(1)
    a = torch.rand(job.m, job.k, device=DEVICE, generator=generator).mul_(job.sign)
    b = torch.rand(job.n * job.k, device=DEVICE, generator=generator).mul_(job.sign)
    return a, b.view(job.n, job.k).t() if job.layout_of_b == "columns" else b.view(job.k, job.n)


def random_factors(product):
    """A, M × K, and B, K × N, of a product: both lie along k."""
    generator = torch.Generator(DEVICE).manual_seed(1)

    def along_k(lines):
        if product.element == "i8":
            return torch.randint(-128, 128, (lines, product.k), dtype=torch.int8, device=DEVICE, generator=generator)
        return torch.randn(lines, product.k, device=DEVICE, generator=generator).to(TYPES[product.element])
    return along_k(product.m), along_k(product.n).t()


# ---- what is right ---------------------------------------------------------------------------------------------------

EXACT = {
    "plus_times": lambda a, b: (a * b).sum(0),
    "min_plus": lambda a, b: (a + b).amin(0),
    "max_min": lambda a, b: torch.minimum(a, b).amax(0),
    "log_plus": lambda a, b: (a + b).logsumexp(0),
}


class Reference:
    """Some rows of the result in f64."""

    def __init__(self, job, a, b):
        count = max(1, min(16, job.m, 2**28 // (job.n * job.k)))
        self.rows = sorted(random.Random(2).sample(range(job.m), count))
        b = b.double()
        if job.name == "cdist":
            row = lambda x: (x - b).abs_().pow_(job.p).sum(0).pow_(1 / job.p)
        else:
            row = lambda x: EXACT[job.name](x, b)
        self.values = torch.stack([row(a[i].double()[:, None]) for i in self.rows])
        # A chain of K sums, and a thousand units for what approximate powers and logarithms may be off.
        self.tolerance = ((0 if job.name in ("min_plus", "max_min") else job.k) + 1024) * 2.0**-24

    def errors(self, rows):
        """The largest and the mean relative error of these rows; raises where they are no result at all."""
        relative = (rows.double() - self.values).abs_() / self.values.abs()
        relative = torch.where(rows == self.values, torch.zeros_like(relative), relative)
        largest, mean = relative.max().item(), relative.mean().item()
        if not largest <= self.tolerance:
            raise ValueError(f"wrong: a relative error of {largest:.1e}, at most {self.tolerance:.1e} expected")
        return largest, mean


class SumsReference:
    """Some rows of a product in f64, and of the product of absolute values."""

    def __init__(self, product, a, b):
        self.rows = sorted(random.Random(2).sample(range(product.m), min(16, product.m)))
        a, b = a[self.rows].double(), b.double()
        self.values, self.sizes = a @ b, a.abs() @ b.abs()
        # Tensor cores cut what they add: some units for each sum, three sums a term where floats are split.
        unit = 2.0**-53 if product.element == "f64" else 2.0**-24
        self.tolerance = ROUNDING[product.precision] + ROUNDING[product.result] + (8 * product.k + 64) * unit

    def errors(self, rows):
        """The largest and the mean error of these rows, relative to sums of |a·b|; raises where they are no result at all."""
        relative = (rows.double() - self.values).abs_() / self.sizes
        largest, mean = relative.max().item(), relative.mean().item()
        if not largest <= self.tolerance:
            raise ValueError(f"wrong: an error of {largest:.1e}, at most {self.tolerance:.1e} expected")
        return largest, mean


# ---- peers -----------------------------------------------------------------------------------------------------------


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
    """Distances for p = 2 by one matrix product: another algorithm, for tensor cores, and the wrong one for near points."""
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


# kermac and mm-kermac were written for earlier releases of cuda.core, whose names these are.


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


class Rigel:
    """bench_serve, a job at a time."""
    name = "rigel"

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.staging = torch.empty(2**24, dtype=torch.uint8, pin_memory=True)
        self.start()

    def start(self):
        self.written = None
        self.process = subprocess.Popen([self.program, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        first = self.process.stdout.readline()
        if not first:
            raise RuntimeError(f"{self.program} ends with status {self.process.wait()}: run it by hand to see why")
        self.machine = json.loads(first)

    def write(self, matrix, file):
        """Its numbers as they lie in memory, by way of memory that the device copies to quickly."""
        numbers = matrix.view(-1).view(torch.uint8)
        with open(file, "wb", buffering=0) as to:
            for begin in range(0, len(numbers), len(self.staging)):
                part = numbers[begin:begin + len(self.staging)]
                to.write(self.staging[:len(part)].copy_(part).numpy())

    def run(self, job, a, b, repetitions, rows):
        """Kernel, seconds, these rows of C. Matrices that the job before had do not go through files again."""
        if self.process.poll() is not None:
            self.start()
        files = [self.folder / name for name in "abc"]
        if job.numbers == self.written:
            sources = "=", "="
        else:
            for matrix, file in zip((a, b.t() if job.layout_of_b == "columns" else b), files):
                self.write(matrix, file)
            sources = files[:2]
        self.written = None
        print(job.operation, job.element, job.result, job.precision, job.m, job.n, job.k, "rows", job.layout_of_b, *sources,
              files[2], repetitions, ",".join(map(str, rows)), job.kernels, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer.endswith("}\n"):
            raise RuntimeError(f"bench_serve ended with status {self.process.wait()}")
        answer = json.loads(answer)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        self.written = job.numbers
        c = torch.from_numpy(numpy.fromfile(files[2], dtype=numpy.uint8)).view(TYPES[job.result])
        return answer["kernel"], answer["seconds"], c.view(len(rows), job.n).to(DEVICE)


# ---- the run ---------------------------------------------------------------------------------------------------------


def is_far(seconds, best):
    """Whether a call is timed once."""
    return seconds >= PATIENCE or (seconds >= LONG and seconds >= FAR * best)


class Clock:
    def __init__(self):
        self.filler = torch.empty(2**30, dtype=torch.uint8, device=DEVICE)
        self.begin, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def seconds(self, call):
        self.filler.fill_(1)
        self.begin.record()
        call()
        self.end.record()
        self.end.synchronize()
        return 1e-3 * self.begin.elapsed_time(self.end)

    def median(self, call, repetitions, best=math.inf):
        """`best`: of the others, in seconds."""
        seconds = [self.seconds(call)]
        if not is_far(seconds[0], best):
            seconds += [self.seconds(call) for _ in range(repetitions - 1)]
        return statistics.median(seconds)


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


def rounded(value):
    return float(f"{value:.4g}")


def compare(job, rigel, peers, clock, repetitions):
    """One row: seconds and errors by name, the ratio of the best peer to Rigel."""
    a, b = matrices(job)
    reference = Reference(job, a, b)
    row = {"operation": job.operation, "m": job.m, "n": job.n, "k": job.k, "kernel": None, "seconds": {},
           "largest_error": {}, "mean_error": {}, "failed": {}}

    def record(name, seconds, rows):
        largest, mean = reference.errors(rows)
        row["seconds"][name], row["largest_error"][name], row["mean_error"][name] = map(rounded, (seconds, largest, mean))

    try:
        row["kernel"], seconds, rows = rigel.run(job, a, b, repetitions, reference.rows)
        record(rigel.name, seconds, rows)
    except Exception as error:
        row["failed"][rigel.name] = str(error)
    out = torch.empty(job.m, job.n, device=DEVICE)
    for peer in peers:
        try:
            with contextlib.redirect_stdout(io.StringIO()):  # compilers talk
                call = peer.call(job, a, b, out.fill_(math.nan))
                result = []
                first = clock.seconds(lambda: result.append(call()))
                rows = result.pop()[reference.rows]
                best = min((s for name, s in row["seconds"].items() if name != TorchProduct.name), default=math.inf)
                once = first >= PATIENCE and not peer.compiles  # else what a peer loads in its first call is outside of the clock
                record(peer.name, first if once else clock.median(call, repetitions, best), rows)
        except Unsupported:
            pass
        except Exception as error:
            row["failed"][peer.name] = f"{type(error).__name__}: {error}"
    opponents = {name: s for name, s in row["seconds"].items() if name not in (rigel.name, TorchProduct.name)}
    if opponents and rigel.name in row["seconds"]:
        row["best_peer"] = min(opponents, key=opponents.get)
        row["ratio"] = rounded(opponents[row["best_peer"]] / row["seconds"][rigel.name])
        row["slower"] = row["ratio"] < 1 - NOISE
    return row


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


def compare_product(product, rigel, clock, repetitions):
    """One row: seconds and errors of Rigel and of torch, the ratio of their times."""
    a, b = random_factors(product)
    reference = SumsReference(product, a, b)
    row = {**product._asdict(), "kernel": None, "seconds": {}, "largest_error": {}, "mean_error": {}, "failed": {}}

    def record(name, seconds, rows):
        largest, mean = reference.errors(rows)
        row["seconds"][name], row["largest_error"][name], row["mean_error"][name] = map(rounded, (seconds, largest, mean))

    def by_rigel():
        row["kernel"], seconds, rows = rigel.run(product, a, b, repetitions, reference.rows)
        record(rigel.name, seconds, rows)

    def by_torch():
        call = product_of_torch(product, a, b)
        rows = call()[reference.rows]
        record(Torch.name, clock.median(call, repetitions), rows)

    for name, run in ((rigel.name, by_rigel), (Torch.name, by_torch)):
        try:
            run()
        except Exception as error:
            row["failed"][name] = f"{type(error).__name__}: {error}"
    if len(row["seconds"]) == 2:
        row["ratio"] = rounded(row["seconds"][Torch.name] / row["seconds"][rigel.name])
        row["slower"] = row["ratio"] < 1 - NOISE
    return row


def print_row(row):
    times = "  ".join(f"{name} {1e3 * seconds:.4g}" for name, seconds in row["seconds"].items())
    what = (row["operation"] if "operation" in row else
            " ".join(filter(None, (row["element"], row["result"], row["precision"], row["kernels"]))))
    print(f"{what:10} {row['m']:6} x {row['n']:5} x {row['k']:5}  ms: {times}"
          + (f"  ratio {row['ratio']:.3g}" if "ratio" in row else "")
          + (f"  error {row['largest_error']['rigel']:.1e}" if "rigel" in row["largest_error"] else "")
          + ("  SLOWER" if row.get("slower") else "")
          + "".join(f"  {name} FAILED: {why.splitlines()[0][:120]}" for name, why in row["failed"].items()), flush=True)


def commit():
    here = pathlib.Path(__file__).resolve().parent

    def git(*words):
        return subprocess.run(["git", "-C", here, *words], capture_output=True, text=True, check=False).stdout.strip()
    return git("rev-parse", "--short=12", "HEAD") + ("-modified" if git("status", "--porcelain", "-uno") else "")


def context(arguments, rigel, peers, missing):
    return {"date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "commit": arguments.commit or commit(),
            **rigel.machine, "versions": {p.package: importlib.metadata.version(p.package) for p in peers}, "missing": missing}


def roomy_folder():
    """Memory, where there is enough for the table's largest matrix and more."""
    memory = "/dev/shm"
    return memory if os.path.isdir(memory) and shutil.disk_usage(memory).free > 2**33 else None


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


def jobs_of(arguments):
    """Part of the report, job, repetitions."""
    if arguments.products:
        return [("products", Product(*product), arguments.repetitions) for product in PRODUCTS]
    table = [] if arguments.no_table else TABLE
    return [("table", Job(*task), arguments.repetitions) for task in table] + [
        ("sweep", Job(operation, *shape), (arguments.repetitions + 1) // 2)
        for shape, operation in itertools.product(sweep_shapes(arguments.shapes), SWEEP)]


def text_of(report):
    """As JSON, a row a line."""
    members = [f'"{name}": ' + ("[\n  " + ",\n  ".join(map(json.dumps, value)) + "]" if isinstance(value, list) else
                               json.dumps(value, indent=1)) for name, value in report.items()]
    return "{" + ",\n".join(members) + "}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="bench_serve")
    parser.add_argument("output", type=pathlib.Path, help="JSON file to write")
    parser.add_argument("--commit", help="of Rigel, where git is not here to ask")
    parser.add_argument("--repetitions", type=int, default=9, help="of a task of the table; the sweep takes half")
    parser.add_argument("--shapes", type=int, default=200, help="of the sweep")
    parser.add_argument("--without", action="append", default=[], metavar="PEER", help="leave this peer out")
    parser.add_argument("--products", action="store_true", help="the products of tensor cores instead, beside torch")
    parser.add_argument("--no-table", action="store_true", help="the sweep alone")
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds after which no further row is begun")
    parser.add_argument("--folder", default=roomy_folder(), help="for the matrices' files (default: memory)")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("compare.py: no GPU", file=sys.stderr)
        return 77

    begin = time.monotonic()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        try:
            rigel = Rigel(arguments.program, pathlib.Path(folder))
        except (OSError, RuntimeError) as error:
            print(f"compare.py: {error}", file=sys.stderr)
            return 1
        peers, missing = ([Torch()], {}) if arguments.products else import_peers(arguments.without)
        clock, jobs = Clock(), jobs_of(arguments)
        if not arguments.products:
            begin_peers(peers, first_jobs(job for _, job, _ in jobs))
        parts = ["products"] if arguments.products else ["table", "sweep"]
        report = {"context": context(arguments, rigel, peers, missing), "not_run": 0} | {part: [] for part in parts}
        print(json.dumps(report["context"], indent=1), flush=True)
        for part, job, repetitions in jobs:
            if time.monotonic() - begin > arguments.limit:
                report["not_run"] += 1
                continue
            try:
                if torch.cuda.memory_reserved() > RESERVED:
                    torch.cuda.empty_cache()
                row = (compare_product(job, rigel, clock, repetitions) if arguments.products
                       else compare(job, rigel, peers, clock, repetitions))
            except Exception as error:  # no memory, or a peer left the device in disorder: the rows so far are kept
                row = {**job._asdict(), "kernel": None, "seconds": {}, "largest_error": {}, "mean_error": {},
                       "failed": {"all": f"{type(error).__name__}: {error}"}}
            report[part].append(row)
            print_row(row)

    rows = [row for part in parts for row in report[part]]
    slower, failed = [r for r in rows if r.get("slower")], [r for r in rows if r["failed"]]
    print(f"{len(rows)} tasks in {time.monotonic() - begin:.0f} s: Rigel slower than a peer in {len(slower)}, a failure in "
          f"{len(failed)}, {report['not_run']} not run; missing peers: {', '.join(missing) or 'none'}")
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(text_of(report), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
