# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rigel, by its program bench_serve."""
import json
import subprocess

import numpy
import torch

from comparison.tasks import DEVICE, TYPES


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
