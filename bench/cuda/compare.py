#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares Rigel with other libraries that have such kernels, on one GPU, on the same numbers, in one run: the tasks of a table
and a sweep of shapes. Every result is compared with f64. Prints a table and writes it as JSON.

    compare.py --shapes 0 build/…/bin/bench_serve bench/results/<gpu>/compare.json
    compare.py --no-table build/…/bin/bench_serve bench/results/<gpu>/sweep.json
    compare.py --products build/…/bin/bench_serve bench/results/<gpu>/products.json

Peers are torch (cdist, matmul, broadcasts in blocks), kermac, mm-kermac and sgemm-bi, each if it can be imported; the report
says which are missing or fail. Only torch is required. Rigel runs in bench_serve, which reads the matrices from files.

Seconds are device time, by events around a call: the median of several calls, or a single call if it takes long, or is slow and
several times slower than the best. A fill of a gibibyte precedes each call; it empties the L2 cache and lets the host run
ahead. One-time work of a peer (compiling its kernels, which several processes do beforehand, copying its scalars to the device)
is not timed. Numbers are uniform in (-1, 0], so that a minimum is right although mm-kermac's accumulators start from 0; for
max_min in [0, 1).

With --products: products of matrices in the types that tensor cores take, compared with torch (cuBLAS), which sums 16-bit
numbers in f32 and computes in tf32 only if Rigel may. Rigel runs the kernel that it chooses from all, and the one from
cuda.mma. Both operands are K-major. Numbers are normal, of mean 0 and variance 1; bytes are uniform in -128 … 127. Errors are
relative to the sum of |a·b|.
"""
import sys

from comparison import driver

if __name__ == "__main__":
    sys.exit(driver.main(__doc__))
