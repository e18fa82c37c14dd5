# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
Shortest paths on a road grid
=============================

A map of 24 x 24 crossings. A step to a neighbouring crossing costs more uphill than downhill, and the lake cannot be crossed.
:func:`rigel_semirings.shortest_paths` closes the matrix of arc lengths over min-plus, so one call has the shortest way between any two
of the 576 crossings.
"""

import matplotlib.pyplot as plt
import numpy as np

import rigel_semirings as rs

side = 24
y, x = np.mgrid[0:side, 0:side]
height = 6 * np.exp(-((x - 15) ** 2 + (y - 6) ** 2) / 30) + 4 * np.exp(-((x - 5) ** 2 + (y - 17) ** 2) / 20)
lake = (x - 11) ** 2 + (y - 13) ** 2 < 14

# %%
# An arc that is missing has length infinity, the identity of the minimum.
vertex = np.arange(side * side).reshape(side, side)
lengths = np.full((side * side, side * side), np.inf)
for dy, dx in ((0, 1), (1, 0), (0, -1), (-1, 0)):
    rows = slice(max(0, -dy), side - max(0, dy)), slice(max(0, -dx), side - max(0, dx))
    ahead = slice(max(0, dy), side + min(0, dy)), slice(max(0, dx), side + min(0, dx))
    climb = height[ahead] - height[rows]
    dry = ~lake[rows] & ~lake[ahead]
    lengths[vertex[rows][dry], vertex[ahead][dry]] = np.where(climb > 0, 1 + 4 * climb, 1 - 0.3 * climb)[dry]

paths = rs.shortest_paths(lengths)
start, goal = vertex[22, 2], vertex[2, 21]
way = paths.path(start, goal)

# %%
# The length of a path is the sum of its arcs.
assert np.isclose(sum(lengths[a, b] for a, b in zip(way, way[1:])), paths.distances[start, goal])

from_start = np.where(lake, np.nan, paths.distances[start].reshape(side, side))
figure, axes = plt.subplots(figsize=(6, 5))
picture = axes.pcolormesh(from_start, cmap="viridis_r")
axes.contour(x + 0.5, y + 0.5, height, levels=6, colors="white", linewidths=0.7)
axes.plot(np.array(way) % side + 0.5, np.array(way) // side + 0.5, "o-", color="tab:red", markersize=3)
axes.set(title=f"{len(way) - 1} steps of length {paths.distances[start, goal]:.1f} in all", aspect="equal", xticks=[], yticks=[])
figure.colorbar(picture, label="length of the shortest way from the start")
plt.show()
