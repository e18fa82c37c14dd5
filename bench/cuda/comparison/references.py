# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is right: some rows of a result in f64, and how far a library may be from them."""
import random

import torch

# Relative errors of a term by its precision, of a result by its type.
ROUNDING = {"accumulator": 0, "exact_products": 0, "promoted": 2.0**-19, "split": 2.0**-19, "bf16x3": 2.0**-15, "tf32": 2.0**-9,
            "f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8, "i32": 0}

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
