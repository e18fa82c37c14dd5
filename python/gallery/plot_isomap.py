# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
Isomap: unrolling a surface
===========================

Points of a rolled-up sheet. Six nearest neighbours of each point make a graph; lengths of its shortest paths estimate distances on the
sheet; and the two leading eigenvectors of their centred squares lay it flat.
"""

import matplotlib.pyplot as plt
import numpy as np

import rigel_semirings as rs

random = np.random.default_rng(5)
n = 500
angle = 1.5 * np.pi * (1 + 2 * random.uniform(size=n))
roll = np.stack([angle * np.cos(angle), 21 * random.uniform(size=n), angle * np.sin(angle)], 1)

near = rs.nearest(roll, k=6, exclude_self=True)
graph = np.full((n, n), np.inf)
np.put_along_axis(graph, near.indices, near.distances, 1)
graph = np.minimum(graph, graph.T)
distances = rs.shortest_paths(graph, predecessors=False).distances
assert np.isfinite(distances).all()

squares = distances**2
centred = -0.5 * (squares - squares.mean(0) - squares.mean(1)[:, None] + squares.mean())
eigenvalues, eigenvectors = rs.eigh(centred)
flat = eigenvectors[:, -2:] * np.sqrt(eigenvalues[-2:])

# %%
# The long side of the sheet is the length of the spiral's arc.
arc = (angle * np.sqrt(1 + angle**2) + np.arcsinh(angle)) / 2
assert abs(np.corrcoef(flat[:, 1], arc)[0, 1]) > 0.99

figure = plt.figure(figsize=(9, 4))
first = figure.add_subplot(1, 2, 1, projection="3d")
first.scatter(*roll.T, c=angle, s=8)
first.view_init(8, -72)
second = figure.add_subplot(1, 2, 2)
second.scatter(flat[:, 1], flat[:, 0], c=angle, s=8)
second.set(title="unrolled", aspect="equal")
plt.show()
