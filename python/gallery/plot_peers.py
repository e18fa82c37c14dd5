# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
Distances against SciPy
=======================

The time of all distances between two sets of 1000 points, by the number of coordinates. Both give the same numbers; Rigel's are
computed on all cores. The picture shows what this page was built on.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial.distance import cdist

import rigel_semirings as rs

random = np.random.default_rng(6)


def seconds(function, *args, **kwargs):
    function(*args, **kwargs)
    times = []
    for _ in range(3):
        begin = perf_counter()
        function(*args, **kwargs)
        times.append(perf_counter() - begin)
    return min(times)


dimensions = (4, 16, 64, 256)
figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), sharey=True)
for ax, metric in zip(axes, ("euclidean", "cityblock", "chebyshev")):
    scipys, rigels = [], []
    for d in dimensions:
        x, z = random.normal(size=(2, 1000, d))
        np.testing.assert_allclose(rs.cdist(x, z, metric), cdist(x, z, metric), rtol=1e-12)
        scipys.append(seconds(cdist, x, z, metric))
        rigels.append(seconds(rs.cdist, x, z, metric))
    ax.loglog(dimensions, np.array(scipys) * 1e3, "o-", label="SciPy")
    ax.loglog(dimensions, np.array(rigels) * 1e3, "o-", label="Rigel")
    ax.set(title=metric, xlabel="coordinates", xticks=dimensions, xticklabels=dimensions)
axes[0].set_ylabel("milliseconds")
axes[0].legend()
figure.tight_layout()
plt.show()
