#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times the linear layer of torch (cuBLAS) as bench_linear times Rigel's, on the same GPU, and prints Rigel's time over torch's.

    bench_linear --json linear.json && compare_linear.py linear.json [peers.json]

A time is the median of single calls, each after a fill of a gibibyte. torch's forward is addmm() with the bias, and the same followed by
GELU, which is a kernel of its own; Rigel's is one call with bias and GELU. torch's dW is in the operands' type, Rigel's is added to
floats. f32 runs without tensor cores (allow_tf32 = False), as the scalar tier does.
"""
import json
import statistics
import sys

import torch

TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}


class Clock:
    """Times calls on the current stream."""

    def __init__(self, repetitions):
        self.repetitions = repetitions
        self.filler = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")

    def seconds(self, call):
        """The median of single calls after a fill."""
        for _ in range(3):
            call()
        times = []
        for repetition in range(self.repetitions):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            self.filler.fill_(repetition)
            begin.record()
            call()
            end.record()
            end.synchronize()
            times.append(1e-3 * begin.elapsed_time(end))
        return statistics.median(times)


def layer(clock, m, k, n, dtype):
    """Seconds of torch's calls on a layer of M x K and K x N."""
    x, w, dy, bias = (torch.randn(shape, device="cuda", dtype=dtype) for shape in ((m, k), (k, n), (m, n), (n,)))
    y, dw, dx = (torch.empty(shape, device="cuda", dtype=dtype) for shape in ((m, n), (k, n), (m, k)))
    return {
        "product": clock.seconds(lambda: torch.mm(x, w, out=y)),
        "bias": clock.seconds(lambda: torch.addmm(bias, x, w, out=y)),
        "bias, gelu": clock.seconds(lambda: torch.nn.functional.gelu(torch.addmm(bias, x, w))),
        "dW": clock.seconds(lambda: torch.mm(x.T, dy, out=dw)),
        "dX": clock.seconds(lambda: torch.mm(dy, w.T, out=dx)),
    }


def main(arguments):
    """Compares with the rows of a file of bench_linear."""
    if not 1 <= len(arguments) <= 2:
        print(__doc__)
        return 2
    torch.backends.cuda.matmul.allow_tf32 = False
    with open(arguments[0], encoding="utf-8") as file:
        rigel = json.load(file)
    clock = Clock(rigel["repetitions"])
    peers = {}
    print(f"{'M x K x N':20} type   tier, kernels        | Rigel: forward      dW      dX [us] | over torch's: product  bias, gelu    dW    dX")
    for row in rigel["rows"]:
        if "error" in row:
            continue
        key = (row["m"], row["k"], row["n"], row["type"])
        if key not in peers:
            peers[key] = layer(clock, *key[:3], TYPES[row["type"]])
        peer = peers[key]
        ratios = (row["forward"] / peer["product"], row["forward"] / peer["bias, gelu"], row["dW"] / peer["dW"], row["dX"] / peer["dX"])
        times = "".join(f"{1e6 * row[name]:8.1f}" for name in ("forward", "dW", "dX"))
        shape = " x ".join(str(extent) for extent in key[:3])
        print(f"{shape:20} {row['type']:6} {row['tier'] + ' ' + row['kernels']:20} | {times:>30}      | "
              + "".join(f"{ratio:12.2f}" for ratio in ratios))
    if len(arguments) == 2:
        rows = [dict(zip("mkn", key), type=key[3], **seconds) for key, seconds in peers.items()]
        with open(arguments[1], "w", encoding="utf-8") as file:
            json.dump({"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "repetitions": rigel["repetitions"], "rows": rows},
                      file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
