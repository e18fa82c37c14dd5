# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
A Gaussian process with a learned length scale
==============================================

The length scale of a Matern kernel is chosen by the marginal likelihood of the data,

    log p(y) = -½ yᵀ K⁻¹ y - ½ log det K - ½ n log 2π,

whose parts are a Cholesky factor, a solve with it and its log-determinant.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize_scalar

import rigel_semirings as rs

random = np.random.default_rng(11)
x = np.sort(random.uniform(0, 10, 60))[:, None]
y = (np.sin(x) + 0.5 * np.sin(2.3 * x) + random.normal(0, 0.15, x.shape))
noise = 0.15**2


def factor(length):
    return rs.cholesky_factor(rs.kernel_matrix(x, kernel="matern52", length=length, regularisation=noise))


def likelihood(log_length):
    lower = factor(np.exp(log_length))
    alpha = rs.cholesky_solve_factored(lower, y)
    return -0.5 * (y.T @ alpha).item() - 0.5 * float(rs.log_determinant(lower)) - 0.5 * len(y) * np.log(2 * np.pi)


best = minimize_scalar(lambda t: -likelihood(t), bounds=(np.log(0.05), np.log(20)), method="bounded").x
length = float(np.exp(best))

# %%
# Mean and variance between the data, with that length.
lower = factor(length)
new = np.linspace(-1, 11, 300)[:, None]
cross = rs.kernel_matrix(new, x, kernel="matern52", length=length)
mean = (cross @ rs.cholesky_solve_factored(lower, y))[:, 0]
variance = 1 - np.einsum("ij,ji->i", cross, rs.cholesky_solve_factored(lower, cross.T))
deviation = np.sqrt(np.maximum(variance, 0))
truth = (np.sin(new) + 0.5 * np.sin(2.3 * new))[:, 0]
inside = (new[:, 0] > 0) & (new[:, 0] < 10)
assert np.mean(np.abs(mean - truth)[inside] < 2 * deviation[inside] + 0.05) > 0.9

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), width_ratios=(2, 3))
lengths = np.geomspace(0.1, 10, 60)
axes[0].semilogx(lengths, [likelihood(t) for t in np.log(lengths)])
axes[0].axvline(length, color="tab:red", linestyle=":")
axes[0].set(xlabel="length scale", ylabel="log marginal likelihood", title=f"best length {length:.2f}")
axes[1].fill_between(new[:, 0], mean - 2 * deviation, mean + 2 * deviation, alpha=0.25)
axes[1].plot(new, mean, label="mean")
axes[1].plot(new, truth, "k:", label="the function")
axes[1].plot(x, y, "k.", markersize=4)
axes[1].legend()
figure.tight_layout()
plt.show()
