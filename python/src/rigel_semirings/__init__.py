# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Semiring products, distances, kernel matrices, reductions, shortest paths and solves on arrays of NumPy, torch, CuPy and JAX.

Arguments are arrays with ``__dlpack__``, in any layout and with batches; results are arrays of the library of the first argument, on its
device.

>>> import numpy as np, rigel_semirings as rs
>>> points = np.array([[0.0, 0.0], [3.0, 4.0]])
>>> rs.cdist(points)
array([[0., 5.],
       [5., 0.]])
"""

from . import _arrays, _core, epilogue
from ._derivative import Derivative, contract_gradient
from ._distances import (Neighbors, RadiusNeighbors, assign, cdist, kernel_matrix, logsumexp, nearest, radius_neighbors,
                         reduce_distances)
from ._drivers import (Clusters, KernelGradients, KernelSolution, Potentials, kernel_matrix_gradient, kernel_matvec, kernel_solve, kmeans,
                       sinkhorn, sinkhorn_barycentre, softmax_matvec)
from ._errors import BY_CODE, Error, InternalError, InvalidArgument, NotFound, OutOfMemory, Unsupported
from ._linear import linear_backward_input, linear_backward_weight, linear_forward
from ._listing import Explanation, explain, kernels
from ._paths import ShortestPaths, closure, shortest_paths
from ._products import Reduced, contract, reduce
from ._ranges import Ranges
from ._semiring import Epilogue, Semiring, semiring
from ._solves import cholesky_factor, cholesky_solve, cholesky_solve_factored, eigh, log_determinant, lu_solve

_core.configure(_arrays, BY_CODE)

_version = _core.version()
__version__ = f"{_version // 10000}.{_version // 100 % 100}.{_version % 100}"

__all__ = ["Clusters", "Derivative", "Epilogue", "Error", "Explanation", "InternalError", "InvalidArgument", "KernelGradients",
           "KernelSolution", "Neighbors", "NotFound", "OutOfMemory", "Potentials", "RadiusNeighbors", "Ranges", "Reduced", "Semiring",
           "ShortestPaths", "Unsupported", "assign", "cdist", "cholesky_factor", "cholesky_solve", "cholesky_solve_factored", "closure",
           "contract", "contract_gradient", "eigh", "epilogue", "explain", "kernel_matrix", "kernel_matrix_gradient", "kernel_matvec",
           "kernel_solve", "kernels", "kmeans", "linear_backward_input", "linear_backward_weight", "linear_forward", "log_determinant",
           "logsumexp", "lu_solve", "nearest", "radius_neighbors", "reduce", "reduce_distances", "semiring", "shortest_paths", "sinkhorn",
           "sinkhorn_barycentre", "softmax_matvec"]
