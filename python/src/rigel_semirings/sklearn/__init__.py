# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Estimators of scikit-learn whose distances, kernels and solves are Rigel's. This module alone imports scikit-learn (1.6 or newer).

Their parameters have scikit-learn's names and meanings; each docstring says what differs. Points are float32 or float64, other numbers become
float64. Nothing of the size points × points is stored, but by Isomap, GaussianProcessRegressor, and KernelRidge of few points.

>>> import numpy as np
>>> from rigel_semirings.sklearn import KNeighborsClassifier
>>> points, classes = np.array([[0.0], [1.0], [8.0], [9.0]]), ["left", "left", "right", "right"]
>>> KNeighborsClassifier(3).fit(points, classes).predict([[2.0], [7.0]])
array(['left', 'right'], dtype='<U5')
"""

from ._gaussian_process import GaussianProcessRegressor
from ._isomap import Isomap
from ._kernel_ridge import KernelRidge
from ._kmeans import KMeans
from ._neighbors import KNeighborsClassifier, KNeighborsRegressor

__all__ = ["GaussianProcessRegressor", "Isomap", "KMeans", "KNeighborsClassifier", "KNeighborsRegressor", "KernelRidge"]
