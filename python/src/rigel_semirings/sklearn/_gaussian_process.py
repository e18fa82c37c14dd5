# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Regression by a Gaussian process whose hyperparameters maximise the marginal likelihood."""

import warnings

import numpy as np
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .. import (InvalidArgument, cholesky_factor, cholesky_solve_factored, kernel_matrix, kernel_matrix_gradient, log_determinant)
from ._points import checked, checked_with_targets, require_integer, require_number

# Kernels, and their hyperparameters, which are all positive.
_HYPERPARAMETERS = {"gaussian": ("bandwidth",), "laplace": ("length",), "matern12": ("length",), "matern32": ("length",),
                    "matern52": ("length",), "rational_quadratic": ("length", "alpha")}


class GaussianProcessRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """A Gaussian process with the covariance amplitude·k(x, z) + noise at each point, given targets y.

    Parameters
    ----------
    kernel : "gaussian", "laplace", "matern12", "matern32", "matern52" or "rational_quadratic", of `rigel_semirings.kernel_matrix`
    metric : "euclidean" or "manhattan"
    kernel_params : dict of the hyperparameters that it starts from; those that are not named are 1
    amplitude, noise : positive numbers that it starts from
    alpha : 0 or more, or one for each point: added to the diagonal, and not optimised
    optimize : bool
        Whether hyperparameters, amplitude and noise maximise the marginal likelihood, from gradients, by L-BFGS-B
    bounds : (least, most) of all of them
    n_restarts : further starts, at random within the bounds
    normalize_y : bool
        Whether targets are shifted and scaled to the mean 0 and the variance 1 before all that
    random_state : as in scikit-learn, of restarts and samples

    Attributes
    ----------
    kernel_params_, amplitude_, noise_ : what was found
    log_marginal_likelihood_value_, X_train_, alpha_ (dual coefficients), L_ (Cholesky's factor), n_features_in_

    scikit-learn's class takes kernels as objects; this one takes names.

    Examples
    --------
    >>> import numpy as np
    >>> from rigel_semirings.sklearn import GaussianProcessRegressor
    >>> x = np.linspace(0, 6, 20)[:, None]
    >>> mean, deviation = GaussianProcessRegressor(noise=1e-4).fit(x, np.sin(x[:, 0])).predict([[1.5]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(1.5)) < 0.01), bool(deviation[0] < 0.05)
    (True, True)
    """

    def __init__(self, kernel="gaussian", *, metric="euclidean", kernel_params=None, amplitude=1.0, noise=1e-2, alpha=1e-10, optimize=True,
                 bounds=(1e-5, 1e5), n_restarts=0, normalize_y=False, random_state=None):
        self.kernel = kernel
        self.metric = metric
        self.kernel_params = kernel_params
        self.amplitude = amplitude
        self.noise = noise
        self.alpha = alpha
        self.optimize = optimize
        self.bounds = bounds
        self.n_restarts = n_restarts
        self.normalize_y = normalize_y
        self.random_state = random_state

    # ---- the likelihood ----

    def _start(self):
        """Logarithms of the hyperparameters, the amplitude and the noise."""
        if self.kernel not in _HYPERPARAMETERS:
            raise ValueError(f"kernel is {self.kernel!r}, expected one of {', '.join(_HYPERPARAMETERS)}")
        self._names = _HYPERPARAMETERS[self.kernel]
        given = dict(self.kernel_params or {})
        if set(given) - set(self._names):
            raise ValueError(f"kernel_params has {', '.join(sorted(set(given) - set(self._names)))}, expected {', '.join(self._names)}")
        numbers = [given.get(name, 1.0) for name in self._names] + [self.amplitude, self.noise]
        return np.log([require_number(n, what, above=0) for n, what in zip(numbers, (*self._names, "amplitude", "noise"), strict=True)])

    def _parts(self, theta):
        numbers = np.exp(theta)
        return dict(zip(self._names, map(float, numbers[:-2]), strict=True)), float(numbers[-2]), float(numbers[-1])

    def _factor(self, theta):
        """k, its factor of amplitude·k + noise + alpha, and the dual coefficients; None if there is no factor."""
        numbers, amplitude, noise = self._parts(theta)
        k = kernel_matrix(self.X_train_, kernel=self.kernel, metric=self.metric, **numbers)
        covariance = amplitude * k
        covariance[np.diag_indices_from(covariance)] += noise + self._alpha
        try:
            factor = cholesky_factor(covariance)
        except InvalidArgument:
            return None
        return k, factor, cholesky_solve_factored(factor, self._targets)

    def log_marginal_likelihood(self, theta=None, eval_gradient=False):
        """−½·Σ yᵀ·C⁻¹·y − ½·log det C − ½·M·log 2π for each target, C = amplitude·k + noise + alpha, summed over targets.

        theta : logarithms of the kernel's hyperparameters, the amplitude and the noise; by default those that fit() has found
        eval_gradient : whether the gradient by theta is returned, too
        """
        check_is_fitted(self, "X_train_")
        theta = self.theta_ if theta is None else np.asarray(theta, dtype="float64")
        found = self._factor(theta)
        if found is None:
            return (-np.inf, np.zeros_like(theta)) if eval_gradient else -np.inf
        k, factor, dual = found
        rows, targets = self._targets.shape
        value = -0.5 * float(np.sum(self._targets * dual)) - 0.5 * targets * (float(log_determinant(factor)) + rows * np.log(2 * np.pi))
        if not eval_gradient:
            return value
        numbers, amplitude, noise = self._parts(theta)
        by_covariance = 0.5 * (dual @ dual.T - targets * cholesky_solve_factored(factor, np.eye(rows)))
        by_kernel = kernel_matrix_gradient(self.X_train_, g=amplitude * by_covariance, kernel=self.kernel, metric=self.metric,
                                           wrt=self._names, points=False, **numbers).hyperparameters
        gradient = [float(by_kernel[name]) * numbers[name] for name in self._names]
        return value, np.array([*gradient, amplitude * float(np.sum(by_covariance * k)), noise * float(np.trace(by_covariance))])

    def _optimized(self, start, random):
        least, most = (require_number(bound, "bounds", above=0) for bound in self.bounds)
        limits = np.log([least, most])

        def loss(theta):
            value, gradient = self.log_marginal_likelihood(theta, eval_gradient=True)
            return -value, -gradient

        starts = [np.clip(start, *limits)]
        starts += [random.uniform(*limits, size=len(start)) for _ in range(require_integer(self.n_restarts, "n_restarts", 0))]
        best = None
        for one in starts:
            found = minimize(loss, one, method="L-BFGS-B", jac=True, bounds=[limits] * len(start))
            if best is None or found.fun < best.fun:
                best = found
        if not best.success:
            warnings.warn(f"L-BFGS-B did not converge: {best.message}", ConvergenceWarning, stacklevel=3)
        return best.x

    # ---- scikit-learn's methods ----

    def fit(self, X, y):
        X, y = checked_with_targets(self, X, y)
        start = self._start()
        self._alpha = np.asarray(self.alpha, dtype="float64")
        if (self._alpha < 0).any() or self._alpha.shape not in ((), (X.shape[0],)):
            raise ValueError(f"alpha has the shape {self._alpha.shape}, expected numbers of 0 or more, one or {X.shape[0]}")
        self.X_train_ = X.astype("float64")
        self._is_many = y.ndim == 2
        targets = y.reshape(X.shape[0], -1)
        self._shift, self._scale = np.zeros(targets.shape[1]), np.ones(targets.shape[1])
        if self.normalize_y:
            deviation = targets.std(0)
            self._shift, self._scale = targets.mean(0), np.where(deviation == 0, 1, deviation)
        self._targets = (targets - self._shift) / self._scale
        self.theta_ = self._optimized(start, check_random_state(self.random_state)) if self.optimize else start
        found = self._factor(self.theta_)
        if found is None:
            raise ValueError("the covariance matrix is not positive definite, expected a larger alpha or noise")
        self.kernel_params_, self.amplitude_, self.noise_ = self._parts(self.theta_)
        _, self.L_, self.alpha_ = found
        self.log_marginal_likelihood_value_ = self.log_marginal_likelihood()
        return self

    def predict(self, X, return_std=False, return_cov=False):
        """The means at the rows of X, of shape (M,) or (M, targets), and with return_std deviations, with return_cov covariances
        (M, M), or (M, M, targets), of the process without its noise."""
        if return_std and return_cov:
            raise ValueError("return_std and return_cov are True, expected one of them at most")
        check_is_fitted(self)
        X = checked(self, X).astype("float64", copy=False)
        of = {"kernel": self.kernel, "metric": self.metric, **self.kernel_params_}
        between = self.amplitude_ * kernel_matrix(X, self.X_train_, **of)
        mean = self._finished((between @ self.alpha_) * self._scale + self._shift)
        if not (return_std or return_cov):
            return mean
        explained = cholesky_solve_factored(self.L_, np.ascontiguousarray(between.T))
        if return_cov:
            covariance = self.amplitude_ * kernel_matrix(X, **of) - between @ explained
            return mean, self._finished(covariance[:, :, None] * self._scale**2)
        variance = np.maximum(self.amplitude_ - np.einsum("mn,nm->m", between, explained), 0)
        return mean, self._finished(np.sqrt(variance)[:, None] * self._scale)

    def _finished(self, numbers):
        return numbers if self._is_many else numbers[..., 0]

    def sample_y(self, X, n_samples=1, random_state=0):
        """n_samples functions of the process at the rows of X, of shape (M, n_samples), or (M, targets, n_samples)."""
        random = check_random_state(random_state)
        mean, covariance = self.predict(X, return_cov=True)
        if not self._is_many:
            return random.multivariate_normal(mean, covariance, n_samples).T
        return np.stack([random.multivariate_normal(mean[:, t], covariance[:, :, t], n_samples).T for t in range(mean.shape[1])], axis=1)
