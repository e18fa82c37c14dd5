# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
Training whose bits do not depend on the batch
==============================================

A network of two layers learns two spirals. The linear layer sums each output in one fixed order, so that accumulating the gradient over
micro-batches gives the bits of the whole batch.
"""

import matplotlib.pyplot as plt
import numpy as np

import rigel_semirings as rs

random = np.random.default_rng(1)
n, width = 256, 48
turn = np.repeat(np.linspace(0.4, 2.6, n // 2) * np.pi, 2)
side = np.tile([0, 1], n // 2)
radius = turn / 4
points = np.stack([radius * np.cos(turn + np.pi * side), radius * np.sin(turn + np.pi * side)], 1)
points = (points + random.normal(0, 0.03, points.shape)).astype("float32")
targets = (2 * side - 1).astype("float32")[:, None]


def train(micro_batch, steps=200, rate=0.03):
    random = np.random.default_rng(7)
    shapes = [(width, 2), (width,), (width, width), (width,), (1, width), (1,)]
    parameters = [(random.normal(size=s) * (1.5 / np.sqrt(s[-1]) if len(s) == 2 else 0.5)).astype("float32") for s in shapes]
    moments = [(np.zeros_like(p), np.zeros_like(p)) for p in parameters]
    losses = []
    for step in range(1, steps + 1):
        w1, b1, w2, b2, w3, b3 = parameters
        gradients = [np.zeros_like(p) for p in parameters]
        loss = np.float32(0)
        for first in range(0, n, micro_batch):
            x, y = points[first:first + micro_batch], targets[first:first + micro_batch]
            h1, z1 = rs.linear_forward(x, w1, b1, activation="silu", return_preactivation=True)
            h2, z2 = rs.linear_forward(h1, w2, b2, activation="silu", return_preactivation=True)
            residual = rs.linear_forward(h2, w3, b3) - y
            loss += float((residual.astype("float64") ** 2).sum()) / n
            d3 = residual * np.float32(2 / n)
            d2 = rs.linear_backward_input(d3, w3, z2, activation="silu")
            d1 = rs.linear_backward_input(d2, w2, z1, activation="silu")
            for i, (inputs, d) in enumerate(((x, d1), (h1, d2), (h2, d3))):
                rs.linear_backward_weight(inputs, d, gradients[2 * i], gradients[2 * i + 1])
        losses.append(loss)
        for p, g, (m, v) in zip(parameters, gradients, moments):
            m += np.float32(0.1) * (g - m)
            v += np.float32(0.001) * (g * g - v)
            p -= np.float32(rate) * (m / np.float32(1 - 0.9**step)) / (np.sqrt(v / np.float32(1 - 0.999**step)) + np.float32(1e-8))
    return parameters, losses


whole, losses = train(n)
for micro_batch in (32, 128):
    parts, _ = train(micro_batch)
    assert all(np.array_equal(a, b) for a, b in zip(whole, parts)), "every bit is the same"

axis = np.linspace(-2.6, 2.6, 120, dtype="float32")
grid = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
h = rs.linear_forward(grid, whole[0], whole[1], activation="silu")
h = rs.linear_forward(h, whole[2], whole[3], activation="silu")
answer = rs.linear_forward(h, whole[4], whole[5]).reshape(120, 120)

figure, axes = plt.subplots(1, 2, figsize=(9, 3.8))
axes[0].semilogy(losses)
axes[0].set(xlabel="step", ylabel="loss", title="batches of 32, 128 and 256: one curve, bit by bit")
axes[1].contourf(axis, axis, answer, levels=np.linspace(-1.5, 1.5, 13), cmap="RdBu_r", extend="both")
axes[1].scatter(*points.T, c=targets[:, 0], cmap="RdBu_r", edgecolors="k", linewidths=0.4, s=12)
axes[1].set(aspect="equal")
figure.tight_layout()
plt.show()
