# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
Sinkhorn: matching two drawings
===============================

A circle becomes a heart: the plan that moves points of one drawing to the other at the least cost, smoothed by its entropy.
:func:`rigel_semirings.sinkhorn` finds the potentials of the plan, which is stored nowhere, and
:func:`rigel_semirings.sinkhorn_barycentre` says where each point goes.
"""

import matplotlib.pyplot as plt
import numpy as np

import rigel_semirings as rs

random = np.random.default_rng(9)
n = 600
t = 2 * np.pi * np.arange(n) / n
circle = np.stack([np.cos(t), np.sin(t)], 1) * 1.1 + random.normal(0, 0.02, (n, 2))
heart = np.stack([16 * np.sin(t) ** 3, 13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)], 1) / 14
epsilon = 0.05

plan = rs.sinkhorn(circle, heart, epsilon=epsilon, tolerance=1e-3, symmetric=False)
assert plan.converged
moved = rs.sinkhorn_barycentre(circle, heart, plan.g, epsilon=epsilon)

# %%
# Every point of the heart is near a point that was moved.
assert rs.nearest(heart, moved).distances.max() < 0.25

figure, axes = plt.subplots(figsize=(5.5, 5))
colours = plt.cm.hsv(np.arange(n) / n)
for a, b, c in zip(circle[::5], moved[::5], colours[::5]):
    axes.plot([a[0], b[0]], [a[1], b[1]], color=c, linewidth=0.6)
axes.scatter(*circle.T, s=3, color="0.6")
axes.scatter(*moved.T, s=6, c=colours)
axes.set(aspect="equal", title=f"{plan.iterations} updates, transport cost {plan.value:.3f}")
axes.axis("off")
plt.show()
