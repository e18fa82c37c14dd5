# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The figures of this example as NumPy and SciPy have them, and their gradient against finite differences."""
from pathlib import Path

import numpy as np
from scipy.spatial.distance import cdist

ALPHA, WIDTH, STEPS, RATE, MOMENTUM = 1e-2, 5, 80, 2, 0.9
table = np.loadtxt(Path(__file__).parent.parent / "digits" / "digits.csv", delimiter=",")
learned = np.arange(len(table)) % 4 == 0
x, digits = table[learned, :64], table[learned, 64].astype(int)
z, others = table[~learned, :64], table[~learned, 64].astype(int)
n = len(x)
y = np.eye(10)[digits]


def model(s):
    kernel = np.exp(-cdist(x * s, x * s, "sqeuclidean") / (2 * WIDTH**2))
    inverse = np.linalg.inv(kernel + ALPHA * np.eye(n))
    w = inverse @ y
    errors = w / np.diag(inverse)[:, None]
    return kernel, inverse, w, errors, (errors**2).sum() / n


def slope(s):
    """The gradient of the loss by log s."""
    kernel, inverse, w, errors, _ = model(s)
    p = 2 * errors / (n * np.diag(inverse)[:, None])
    q = (errors * p).sum(axis=1)
    of_kernel = inverse @ (q[:, None] * inverse) - inverse @ p @ w.T
    a = -(of_kernel + of_kernel.T) * kernel / WIDTH**2
    of_points = a.sum(axis=0)[:, None] * (x * s) - a.T @ (x * s)
    return s * (x * of_points).sum(axis=0)


deviation = x.std(axis=0)
s = np.divide(1, deviation, where=deviation > 0, out=np.zeros(64))
for k in (10, 35):
    step = np.ones(64)
    step[k] = np.exp(1e-5)
    print(f"pixel {k}: {slope(s)[k]:.8f}, by differences {(model(s * step)[4] - model(s / step)[4]) / 2e-5:.8f}")
velocity = np.zeros(64)
for step in range(STEPS + 1):
    if step in (0, STEPS):
        kernel, inverse, w, errors, loss = model(s)
        tests = np.exp(-cdist(z * s, x * s, "sqeuclidean") / (2 * WIDTH**2)) @ w
        suffix = "0" if step == 0 else ""
        print(f"--expect loss{suffix}={loss:.10g} "
              f"--expect leave_one_out{suffix}={((y - errors).argmax(axis=1) == digits).sum()} "
              f"--expect tests{suffix}={(tests.argmax(axis=1) == others).sum()}")
    velocity = MOMENTUM * velocity - RATE * slope(s)
    s = s * np.exp(velocity)
