# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from . import epilogue as epilogue
from .epilogue import Program

Array = Any  # with __dlpack__: of NumPy, torch and the like
Require = str | Iterable[str]

__version__: str
__all__: list[str]

class Error(Exception): ...
class InvalidArgument(Error, ValueError): ...
class NotFound(Error, ValueError): ...
class Unsupported(Error, TypeError): ...
class OutOfMemory(Error, MemoryError): ...
class InternalError(Error, RuntimeError): ...

class Reduced(NamedTuple):
    values: Array
    indices: Array | None

class Ranges:
    def __init__(self, m: int, n: int, rows: Array, slices: Array, columns: Array) -> None: ...
    @classmethod
    def from_mask(cls, mask: Array, row_offsets: Array, column_offsets: Array | None = None) -> Ranges: ...
    @classmethod
    def from_labels(cls, row_labels: Array, column_labels: Array | None = None, mask: Array | None = None) -> Ranges: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def rows(self) -> Array: ...
    @property
    def slices(self) -> Array: ...
    @property
    def columns(self) -> Array: ...
    @property
    def pairs(self) -> int: ...

class Neighbors(NamedTuple):
    distances: Array
    indices: Array

class RadiusNeighbors(NamedTuple):
    offsets: Array
    indices: Array
    distances: Array | None

class Clusters(NamedTuple):
    centres: Array
    labels: Array
    inertia: float
    iterations: int
    converged: bool

class Potentials(NamedTuple):
    f: Array
    g: Array
    error: float
    value: float
    iterations: int
    converged: bool

class KernelSolution(NamedTuple):
    alpha: Array
    residual: float
    iterations: int
    rank: int
    converged: bool

class KernelGradients(NamedTuple):
    x: Array | None
    z: Array | None
    hyperparameters: dict[str, Array]

class ShortestPaths:
    distances: Array
    predecessors: Array | None
    def __init__(self, distances: Array, predecessors: Array | None) -> None: ...
    def path(self, source: int, target: int) -> list[int]: ...

class Semiring:
    def __init__(self, multiply: str | Callable[..., Any], add: str | Callable[..., Any] = "x + y", *,
                 identity: str | Callable[[], Any] = "", step: str | Callable[..., Any] = "", result: str | Callable[..., Any] = "",
                 name: str | None = None, commutative: bool = False, fields: dict[str, type] | None = None,
                 result_type: type | None = None, **parameters: float) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def commutative(self) -> bool: ...
    @property
    def fields(self) -> dict[str, type]: ...
    @property
    def result_type(self) -> type | None: ...
    @property
    def parameters(self) -> dict[str, float]: ...
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: float) -> None: ...
    def compile(self, dtype: Any = "float32", like: Array | None = None) -> None: ...
    @staticmethod
    def statistics() -> dict[str, int]: ...

class Epilogue:
    def __init__(self, body: str | Callable[..., Any], *, name: str | None = None, **parameters: float) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def parameters(self) -> dict[str, float]: ...
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: float) -> None: ...
    def compile(self, semiring: Semiring | None = None, dtype: Any = "float32", like: Array | None = None) -> None: ...

class Explanation:
    problem: str
    candidates: list[dict[str, Any]]
    def __init__(self, problem: str, candidates: list[dict[str, Any]]) -> None: ...
    @property
    def chosen(self) -> str | None: ...

def assign(x: Array, centres: Array, metric: str = "euclidean", *, ranges: Ranges | None = None, p: float | None = None,
           w: Array | None = None, V: Array | None = None,
           VI: Array | None = None, base: float | None = None, epsilon: float | None = None, may_cancel: bool = False,
           require: Require = (), precision: str = "automatic") -> Neighbors: ...
def cdist(x: Array, z: Array | None = None, metric: str = "euclidean", *, out: Array | None = None, p: float | None = None,
          w: Array | None = None, V: Array | None = None, VI: Array | None = None, base: float | None = None, epsilon: float | None = None,
          epilogue: Program | None = None, dtype: Any = None, may_cancel: bool = False, kernel: str | None = None, require: Require = (),
          precision: str = "automatic") -> Array: ...
def cholesky_factor(a: Array, *, triangle: str = "lower", out: Array | None = None, check: bool = True,
                    kernel: str | None = None) -> Array: ...
def cholesky_solve(a: Array, b: Array, *, triangle: str = "lower", refine: int = 0, out: Array | None = None, check: bool = True,
                   kernel: str | None = None) -> Array: ...
def cholesky_solve_factored(l: Array, b: Array, *, triangle: str = "lower", out: Array | None = None, check: bool = True,
                            kernel: str | None = None) -> Array: ...
def closure(weights: Array, semiring: str = "min_plus", *, out: Array | None = None, check: bool = True, block: int = 0,
            kernel: str | None = None, require: Require = (), precision: str = "automatic") -> Array: ...
def contract(a: Array, b: Array, semiring: str | Semiring = "min_plus", *, epilogue: Program | Epilogue | None = None,
             out: Array | None = None, accumulate: bool = False, parameters: dict[str, float] | None = None, dtype: Any = None, accumulator: Any = None,
             may_cancel: bool = False, kernel: str | None = None, require: Require = (), precision: str = "automatic") -> Array: ...
def eigh(a: Array, *, triangle: str = "lower", check: bool = True, kernel: str | None = None) -> tuple[Array, Array]: ...
def explain(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Explanation: ...
def kernel_matrix(x: Array, z: Array | None = None, kernel: str = "gaussian", *, metric: str | None = None, p: float | None = None,
                  w: Array | None = None, V: Array | None = None, VI: Array | None = None, out: Array | None = None,
                  regularisation: float = 0.0, threshold: float = 0.0, dtype: Any = None, may_cancel: bool = False,
                  compute_kernel: str | None = None, require: Require = (), precision: str = "automatic",
                  **hyperparameters: float) -> Array: ...
def kernel_matrix_gradient(x: Array, z: Array | None = None, g: Array | None = None, kernel: str = "gaussian", *,
                           metric: str | None = None, p: float | None = None, wrt: str | Iterable[str] = (), points: bool = True,
                           epsilon: float = 0.0, may_cancel: bool = False, **hyperparameters: float) -> KernelGradients: ...
def kernel_matvec(x: Array, z: Array | None = None, v: Array | None = None, kernel: str = "gaussian", *, metric: str | None = None,
                  p: float | None = None, w: Array | None = None, V: Array | None = None, VI: Array | None = None,
                  out: Array | None = None, exclude_self: bool = False, ranges: Ranges | None = None, may_cancel: bool = False,
                  compute_kernel: str | None = None,
                  require: Require = (), precision: str = "automatic", **hyperparameters: float) -> Array: ...
def kernel_solve(x: Array, y: Array, kernel: str = "gaussian", *, regularisation: float = 0.0, metric: str | None = None,
                 p: float | None = None, w: Array | None = None, V: Array | None = None, VI: Array | None = None, tolerance: float = 1e-06,
                 iterations: int = 1000, rank: int = 100, progress: Callable[[int, float], Any] | None = None, out: Array | None = None,
                 may_cancel: bool = False, require: Require = (), precision: str = "automatic",
                 **hyperparameters: float) -> KernelSolution: ...
def kernels(name: str | None = None) -> list[dict[str, Any]]: ...
def kmeans(x: Array, k: int, centres: Array | None = None, *, seed: int = 0, iterations: int = 100, tolerance: float = 0.0001,
           may_cancel: bool = False, kernel: str | None = None, require: Require = (), precision: str = "automatic") -> Clusters: ...
def linear_backward_input(dy: Array, weight: Array, z: Array | None = None, *, activation: str | None = None, tier: str = "scalar",
                          out: Array | None = None, precision: str = "automatic") -> Array: ...
def linear_backward_weight(x: Array, dy: Array, dw: Array | None = None, db: Array | None = None, *, bias: bool = True,
                           tier: str = "scalar", precision: str = "automatic") -> tuple[Array, Array | None]: ...
def linear_forward(x: Array, weight: Array, bias: Array | None = None, *, activation: str | None = None, return_preactivation: bool = False,
                   tier: str = "scalar", out: Array | None = None, precision: str = "automatic") -> Any: ...
def log_determinant(l: Array) -> Array: ...
def logsumexp(x: Array, z: Array | None = None, metric: str = "sqeuclidean", *, epilogue: Program | None = None,
              exclude_self: bool = False, ranges: Ranges | None = None,
              p: float | None = None, w: Array | None = None, V: Array | None = None, VI: Array | None = None, base: float | None = None,
              epsilon: float | None = None, may_cancel: bool = False, require: Require = (), precision: str = "automatic") -> Array: ...
def lu_solve(a: Array, b: Array, *, refine: int = 0, out: Array | None = None, check: bool = True, kernel: str | None = None) -> Array: ...
def nearest(x: Array, z: Array | None = None, k: int = 1, metric: str = "euclidean", *, exclude_self: bool = False,
            ranges: Ranges | None = None, p: float | None = None,
            w: Array | None = None, V: Array | None = None, VI: Array | None = None, base: float | None = None,
            epsilon: float | None = None, may_cancel: bool = False, require: Require = (), precision: str = "automatic") -> Neighbors: ...
def radius_neighbors(x: Array, z: Array | None = None, radius: float = 1.0, metric: str = "euclidean", *, exclude_self: bool = False,
                     ranges: Ranges | None = None,
                     return_distances: bool = True, p: float | None = None, w: Array | None = None, V: Array | None = None,
                     VI: Array | None = None, epsilon: float | None = None, may_cancel: bool = False, require: Require = (),
                     precision: str = "automatic") -> RadiusNeighbors: ...
def reduce(a: Array, b: Array, semiring: str = "min_plus", reducer: str = "minimum", *, k: int | None = None,
           threshold: float | None = None, or_equal: bool = False, exclude_self: bool = False, ranges: Ranges | None = None,
           epilogue: Program | None = None,
           parameters: dict[str, float] | None = None, may_cancel: bool = False, kernel: str | None = None, require: Require = (),
           precision: str = "automatic") -> Reduced: ...
def reduce_distances(x: Array, z: Array | None = None, metric: str = "euclidean", reducer: str = "minimum", *, k: int | None = None,
                     threshold: float | None = None, or_equal: bool = False, exclude_self: bool = False, ranges: Ranges | None = None,
                     p: float | None = None,
                     w: Array | None = None, V: Array | None = None, VI: Array | None = None, base: float | None = None,
                     epsilon: float | None = None, kernel: str | None = None, epilogue: Program | None = None, may_cancel: bool = False,
                     compute_kernel: str | None = None, require: Require = (), precision: str = "automatic",
                     **hyperparameters: float) -> Reduced: ...
def semiring(function: Callable[..., Any] | None = None, /, *, add: str | Callable[..., Any] = "x + y",
             identity: str | Callable[[], Any] = "", step: str | Callable[..., Any] = "", result: str | Callable[..., Any] = "",
             name: str | None = None, commutative: bool = False, fields: dict[str, type] | None = None,
             result_type: type | None = None) -> Any: ...
def shortest_paths(weights: Array, *, predecessors: bool = True, out: Array | None = None, check: bool = True, block: int = 0,
                   kernel: str | None = None, require: Require = (), precision: str = "automatic") -> ShortestPaths: ...
def sinkhorn(x: Array, z: Array, a: Array | None = None, b: Array | None = None, metric: str = "sqeuclidean", *, epsilon: float,
             tolerance: float = 1e-06, iterations: int = 1000, scaling: float = 0.5, symmetric: bool = True, p: float | None = None,
             w: Array | None = None, V: Array | None = None, VI: Array | None = None, may_cancel: bool = False, require: Require = (),
             precision: str = "automatic") -> Potentials: ...
def sinkhorn_barycentre(x: Array, z: Array, g: Array, v: Array | None = None, b: Array | None = None, metric: str = "sqeuclidean", *,
                        epsilon: float, out: Array | None = None, p: float | None = None, w: Array | None = None, V: Array | None = None,
                        VI: Array | None = None, may_cancel: bool = False, require: Require = (),
                        precision: str = "automatic") -> Array: ...
def softmax_matvec(x: Array, z: Array, v: Array, metric: str = "inner_product", *, epilogue: Program | None = None,
                   out: Array | None = None, exclude_self: bool = False, ranges: Ranges | None = None, p: float | None = None,
                   w: Array | None = None,
                   V: Array | None = None, VI: Array | None = None, base: float | None = None, epsilon: float | None = None,
                   may_cancel: bool = False, compute_kernel: str | None = None, require: Require = (),
                   precision: str = "automatic") -> Array: ...
