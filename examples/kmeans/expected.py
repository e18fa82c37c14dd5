# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The figures of this example by NumPy: the same seeds, from their definition, and Lloyd's iteration."""
from pathlib import Path

import numpy as np

table = np.loadtxt(Path(__file__).parent.parent / "digits" / "digits.csv", delimiter=",")
images, digits = table[:, :64], table[:, 64].astype(int)
n, k, seed = len(images), 10, 1


def random(counter):
    """splitmix64, from 0 to 1."""
    mask = 2**64 - 1
    z = (seed + (counter + 1) * 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return ((z ^ (z >> 31)) >> 11) / 2**53


# The order in which squared distances, which are integers, are added: 0, 1024, 1, 1025, ...
order = [i for part in range(1024) for i in range(part, n, 1024)]
chosen = [int(random(0) * n)]
nearest = np.full(n, np.inf)
while len(chosen) < k:
    nearest = np.minimum(nearest, ((images - images[chosen[-1]]) ** 2).sum(axis=1))
    sums = np.cumsum(nearest[order])
    chosen.append(order[int(np.searchsorted(sums, random(len(chosen)) * sums[-1], side="right"))])

centres = images[chosen]
previous, updates = np.inf, -1
while True:
    squares = ((images[:, None, :] - centres[None]) ** 2).sum(axis=2)
    labels = squares.argmin(axis=1)
    inertia = squares.min(axis=1).sum()
    updates += 1
    if inertia >= previous:
        break
    previous = inertia
    centres = np.array([images[labels == c].mean(axis=0) for c in range(k)])
right = sum(np.bincount(digits[labels == c]).max() for c in range(k))
print(f"--expect inertia={inertia:.15g} --expect updates={updates} --expect right={right}")
