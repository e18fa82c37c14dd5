# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The estimators against scikit-learn's own, and its checks of estimators."""

import doctest
import importlib
import os
import pkgutil
import subprocess
import sys
import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")
from sklearn import cluster, datasets, gaussian_process, kernel_ridge, manifold, neighbors
from sklearn.gaussian_process import kernels
from sklearn.utils.estimator_checks import check_estimator

import rigel_semirings.sklearn
from rigel_semirings.sklearn import GaussianProcessRegressor, Isomap, KernelRidge, KMeans, KNeighborsClassifier, KNeighborsRegressor

# joblib, which scikit-learn imports, sets it to FALSE; the forked children of other tests would hang.
os.environ.pop("KMP_INIT_AT_FORK", None)


@pytest.mark.parametrize("estimator", [KNeighborsClassifier(), KNeighborsClassifier(3, weights="distance"), KNeighborsRegressor(),
                                       KernelRidge(), KernelRidge(kernel="rbf"), KMeans(), Isomap(), GaussianProcessRegressor()], ids=repr)
def test_checks_of_scikit_learn(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(estimator)


@pytest.mark.parametrize("module", [m.name for m in pkgutil.iter_modules(rigel_semirings.sklearn.__path__)])
def test_examples_of_docstrings(module):
    assert doctest.testmod(importlib.import_module(f"rigel_semirings.sklearn.{module}")).failed == 0


def test_scikit_learn_is_imported_by_its_module_alone():
    script = "import rigel_semirings, sys; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.fixture
def digits(rng):
    """Handwritten digits, without equal distances."""
    X, y = datasets.load_digits(return_X_y=True)
    return X / 16 + 1e-3 * rng.random(X.shape), y


@pytest.mark.parametrize("numbers", [{}, {"weights": "distance"}, {"p": 1}, {"p": 1.5, "n_neighbors": 3}, {"metric": "chebyshev"},
                                     {"weights": lambda d: np.exp(-d)}])
def test_neighbors(digits, numbers):
    X, y = digits
    train, test = slice(0, 600), slice(600, 900)
    own, theirs = KNeighborsClassifier(**numbers).fit(X[train], y[train]), neighbors.KNeighborsClassifier(**numbers).fit(X[train], y[train])
    own_distances, own_indices = own.kneighbors(X[test])
    distances, indices = theirs.kneighbors(X[test])
    np.testing.assert_allclose(own_distances, distances, rtol=1e-12)
    np.testing.assert_array_equal(own_indices, indices)
    np.testing.assert_allclose(own.predict_proba(X[test]), theirs.predict_proba(X[test]), rtol=1e-12)
    np.testing.assert_array_equal(own.predict(X[test]), theirs.predict(X[test]))
    targets = X[train] @ X[0]
    np.testing.assert_allclose(KNeighborsRegressor(**numbers).fit(X[train], targets).predict(X[test]),
                               neighbors.KNeighborsRegressor(**numbers).fit(X[train], targets).predict(X[test]), rtol=1e-12)


def test_neighbors_of_several_targets_and_graphs(rng):
    X = rng.random((40, 3))
    y = np.stack([rng.integers(0, 3, 40), rng.integers(5, 7, 40)], axis=1)
    own, theirs = KNeighborsClassifier().fit(X, y), neighbors.KNeighborsClassifier().fit(X, y)
    np.testing.assert_array_equal(own.predict(X + 0.01), theirs.predict(X + 0.01))
    for one, other in zip(own.predict_proba(X), theirs.predict_proba(X), strict=True):
        np.testing.assert_allclose(one, other)
    targets = rng.random((40, 2))
    np.testing.assert_allclose(KNeighborsRegressor(weights="distance").fit(X, targets).predict(X),
                               neighbors.KNeighborsRegressor(weights="distance").fit(X, targets).predict(X), rtol=1e-12)
    for mode in ("connectivity", "distance"):
        np.testing.assert_allclose(own.kneighbors_graph(mode=mode).toarray(), theirs.kneighbors_graph(mode=mode).toarray(), rtol=1e-12)
    with pytest.raises(ValueError, match="Expected n_neighbors <= n_samples_fit"):
        own.kneighbors(X, 41)
    with pytest.raises(ValueError, match="weights is 'near'"):
        KNeighborsClassifier(weights="near").fit(X, y)


@pytest.mark.parametrize("numbers", [{}, {"kernel": "rbf", "gamma": 0.5}, {"kernel": "laplacian"}, {"kernel": "poly", "degree": 2},
                                     {"kernel": "cosine"}, {"kernel": "rbf", "alpha": 1e-2}])
def test_kernel_ridge(rng, numbers):
    X, y, other = rng.random((60, 4)), rng.random((60, 2)), rng.random((9, 4))
    own, theirs = KernelRidge(**numbers).fit(X, y), kernel_ridge.KernelRidge(**numbers).fit(X, y)
    np.testing.assert_allclose(own.dual_coef_, theirs.dual_coef_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(own.predict(other), theirs.predict(other), rtol=1e-8)
    weights = rng.random(60) + 0.1
    np.testing.assert_allclose(KernelRidge(**numbers).fit(X, y, weights).predict(other),
                               kernel_ridge.KernelRidge(**numbers).fit(X, y, weights).predict(other), rtol=1e-8)
    by_steps = KernelRidge(solver="cg", tol=1e-12, **numbers).fit(X, y)
    assert by_steps.n_iter_ >= 1
    np.testing.assert_allclose(by_steps.predict(other), own.predict(other), rtol=1e-8)


def test_kernel_ridge_by_rigels_names(rng):
    X, y = rng.random((50, 2)), rng.random(50)
    found = KernelRidge(kernel="matern52", kernel_params={"length": 0.4, "metric": "cityblock"}, alpha=0.1).fit(X, y)
    d = np.abs(X[:, None] - X).sum(2) * 5**0.5 / 0.4
    k = (1 + d + d**2 / 3) * np.exp(-d)
    np.testing.assert_allclose(found.dual_coef_, np.linalg.solve(k + 0.1 * np.eye(50), y), rtol=1e-9)
    with pytest.raises(ValueError, match="alpha is -1"):
        KernelRidge(alpha=-1).fit(X, y)
    with pytest.raises(ValueError, match="sample_weight is not None"):
        KernelRidge(solver="cg").fit(X, y, np.ones(50))
    with pytest.warns(Warning, match="the residual is"):
        KernelRidge(solver="cg", kernel="rbf", alpha=1e-8, max_iter=1, tol=1e-14).fit(X, y)


def test_kmeans(digits):
    X, _ = digits
    own, theirs = KMeans(10, n_init=5, random_state=0).fit(X), cluster.KMeans(10, n_init=5, random_state=0).fit(X)
    assert own.inertia_ <= 1.02 * theirs.inertia_
    from_theirs = KMeans(10, init=theirs.cluster_centers_, tol=0).fit(X)
    assert from_theirs.inertia_ <= theirs.inertia_ * (1 + 1e-12)
    np.testing.assert_array_equal(own.labels_, own.predict(X))
    np.testing.assert_allclose(own.transform(X).min(1)**2 @ np.ones(len(X)), own.inertia_, rtol=1e-12)
    np.testing.assert_allclose(own.score(X), -own.inertia_, rtol=1e-12)
    again = KMeans(10, n_init=5, random_state=0).fit(X)
    np.testing.assert_array_equal(again.cluster_centers_, own.cluster_centers_)
    assert KMeans(10, init="random", random_state=0).fit(X).inertia_ <= 1.05 * theirs.inertia_
    with pytest.raises(ValueError, match="init is 'far'"):
        KMeans(init="far").fit(X)


@pytest.mark.parametrize("numbers", [{}, {"n_neighbors": 8, "n_components": 3}, {"p": 1}])
def test_isomap(numbers):
    X, _ = datasets.make_swiss_roll(300, random_state=0)
    own, theirs = Isomap(**numbers).fit(X[:250]), manifold.Isomap(**numbers).fit(X[:250])
    np.testing.assert_allclose(own.dist_matrix_, theirs.dist_matrix_, rtol=1e-12)
    signs = np.sign((own.embedding_ * theirs.embedding_).sum(0))
    scale = np.abs(theirs.embedding_).max()
    np.testing.assert_allclose(own.embedding_ * signs, theirs.embedding_, atol=1e-8 * scale)
    np.testing.assert_allclose(own.transform(X[250:]) * signs, theirs.transform(X[250:]), atol=1e-8 * scale)


def test_isomap_of_components(rng):
    X = np.concatenate([rng.random((20, 2)), rng.random((20, 2)) + 10, rng.random((20, 2)) - 10])
    with pytest.warns(UserWarning, match="components of the neighbors graph is 3"):
        own = Isomap().fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = manifold.Isomap().fit(X)
    np.testing.assert_allclose(own.dist_matrix_, theirs.dist_matrix_, rtol=1e-12)
    with pytest.raises(ValueError, match="n_neighbors = 60"):
        Isomap(n_neighbors=60).fit(X)


KERNELS = {
    "gaussian": ({"bandwidth": 0.7}, lambda: kernels.RBF(0.7)),
    "matern32": ({"length": 0.7}, lambda: kernels.Matern(0.7, nu=1.5)),
    "matern52": ({"length": 0.7}, lambda: kernels.Matern(0.7, nu=2.5)),
    "laplace": ({"length": 0.7}, lambda: kernels.Matern(0.7, nu=0.5)),
    "rational_quadratic": ({"length": 0.7, "alpha": 1.5}, lambda: kernels.RationalQuadratic(0.7, 1.5)),
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_gaussian_process_with_given_numbers(rng, kernel):
    numbers, of = KERNELS[kernel]
    X, y, other = rng.random((30, 2)), rng.random((30, 2)), rng.random((5, 2))
    own = GaussianProcessRegressor(kernel, kernel_params=numbers, amplitude=2.0, noise=0.1, optimize=False).fit(X, y)
    both = kernels.ConstantKernel(2.0) * of() + kernels.WhiteKernel(0.1)
    theirs = gaussian_process.GaussianProcessRegressor(both, optimizer=None).fit(X, y)
    np.testing.assert_allclose(own.log_marginal_likelihood_value_, theirs.log_marginal_likelihood_value_, rtol=1e-10)
    mean, covariance = own.predict(other, return_cov=True)
    their_mean, their_covariance = theirs.predict(other, return_cov=True)
    np.testing.assert_allclose(mean, their_mean, rtol=1e-9)
    noise = 0.1 * np.eye(5)[:, :, None]  # scikit-learn's covariances are those of noisy targets
    np.testing.assert_allclose(covariance + noise, their_covariance, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(own.predict(other, return_std=True)[1]**2, np.einsum("iit->it", covariance), rtol=1e-8)
    assert own.sample_y(other, 7).shape == (5, 2, 7)
    # The gradient against central differences.
    theta = own.theta_ + 0.1
    _, gradient = own.log_marginal_likelihood(theta, eval_gradient=True)
    for i in range(len(theta)):
        e = np.zeros_like(theta)
        e[i] = 1e-5
        difference = (own.log_marginal_likelihood(theta + e) - own.log_marginal_likelihood(theta - e)) / 2e-5
        np.testing.assert_allclose(gradient[i], difference, rtol=1e-6, atol=1e-6)


def test_gaussian_process_that_learns(rng):
    X = rng.uniform(0, 10, (60, 1))
    y = 3 * np.sin(X[:, 0]) + rng.normal(scale=0.2, size=60) + 5
    own = GaussianProcessRegressor(n_restarts=2, normalize_y=True, random_state=0).fit(X, y)
    kernel = kernels.ConstantKernel(1.0) * kernels.RBF(1.0) + kernels.WhiteKernel(0.01)
    theirs = gaussian_process.GaussianProcessRegressor(kernel, n_restarts_optimizer=2, normalize_y=True, random_state=0).fit(X, y)
    assert own.log_marginal_likelihood_value_ >= theirs.log_marginal_likelihood_value_ - 1e-4
    assert np.abs(own.log_marginal_likelihood(eval_gradient=True)[1]).max() < 0.05
    other = np.linspace(1, 9, 50)[:, None]
    assert np.abs(own.predict(other) - 3 * np.sin(other[:, 0]) - 5).max() < 0.5
    assert 0.1 < np.sqrt(own.noise_) * y.std() < 0.3
    mean, deviation = own.predict(other, return_std=True)
    assert mean.shape == deviation.shape == (50,)


def test_gaussian_process_refusals(rng):
    X, y = rng.random((6, 2)), rng.random(6)
    for numbers, text in (({"kernel": "cosine"}, "kernel is 'cosine'"), ({"kernel_params": {"length": 1}}, "kernel_params has length"),
                          ({"noise": 0}, "noise is 0"), ({"alpha": -1.0}, "alpha has")):
        with pytest.raises(ValueError, match=text):
            GaussianProcessRegressor(**numbers).fit(X, y)
    with pytest.raises(ValueError, match="expected one of them"):
        GaussianProcessRegressor(optimize=False).fit(X, y).predict(X, True, True)


def test_floats_among_doubles():
    """Points of fit() keep their digits where others are float32."""
    points = np.array([[0.1], [0.1 + 1e-9], [5.0], [6.0]])
    query = np.array([[0.1]], "float32")  # 0.1 + 1.49e-9
    ours, theirs = KNeighborsRegressor(1).fit(points, [0.0, 1.0, 2.0, 3.0]), neighbors.KNeighborsRegressor(1).fit(points, [0.0, 1.0, 2.0, 3.0])
    assert ours.predict(query) == theirs.predict(query) == [1.0]
    np.testing.assert_allclose(ours.kneighbors(query)[0], query.astype(float) - points[1], rtol=1e-6)
    centres = KMeans(2, init=np.array([[0.1], [0.1 + 1e-9]]), n_init=1, max_iter=1).fit(points[:2])
    assert centres.predict(query) == [1]
    embedding = Isomap(n_neighbors=2, n_components=1).fit(points)
    np.testing.assert_array_equal(embedding.transform(points[:1].astype("float32")).dtype, "float32")
