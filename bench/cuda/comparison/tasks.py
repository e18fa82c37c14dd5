# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is computed: the tasks of the table, the shapes of the sweep, the products, and their matrices."""
import math
import random
import typing

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
DEVICE = "cuda"


def sweep_shapes(count):
    """Random extents with uniform logarithms, alternately from 1 on and from 64 on: the same list in every run."""
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
