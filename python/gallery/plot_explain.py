# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
Choosing a kernel with explain
==============================

Rigel predicts the time of each kernel that can compute a call, and takes the cheapest. :func:`rigel_semirings.explain` shows the list;
``kernel=`` forces one of them, so that predictions can be compared with the clock.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np

import rigel_semirings as rs

random = np.random.default_rng(4)
a, b = random.normal(size=(512, 256)).astype("float32"), random.normal(size=(256, 512)).astype("float32")
why = rs.explain(rs.contract, a, b, "min_plus")
print(why)


# %%
# The best of five calls of each, but of the reference, which takes its time.
def seconds(kernel):
    times = []
    for _ in range(5):
        begin = perf_counter()
        rs.contract(a, b, "min_plus", kernel=kernel)
        times.append(perf_counter() - begin)
    return min(times)


able = [c for c in why.candidates if c["covers"] and not c["kernel"].startswith("reference")]
able.sort(key=lambda c: c["seconds"])
measured = [seconds(c["kernel"]) for c in able]
right = rs.contract(a, b, "min_plus", kernel=why.chosen)
assert all(np.array_equal(rs.contract(a, b, "min_plus", kernel=c["kernel"]), right) for c in able), "minima are exact: one result"

figure, axes = plt.subplots(figsize=(8, 0.5 * len(able) + 1.5))
place = np.arange(len(able))
axes.barh(place - 0.2, [c["seconds"] * 1e3 for c in able], 0.4, label="predicted")
axes.barh(place + 0.2, [t * 1e3 for t in measured], 0.4, label="measured")
axes.set_yticks(place, [("* " if c["kernel"] == why.chosen else "") + c["kernel"] for c in able])
axes.invert_yaxis()
axes.set(xscale="log", xlabel="milliseconds", title="min-plus, 512 x 512 x 256, float32")
axes.legend()
figure.tight_layout()
plt.show()
