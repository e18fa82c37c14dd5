# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from collections.abc import Iterable
from typing import Any

from jax import Array
from jax.typing import ArrayLike

from ._distances import Neighbors
from ._semiring import Semiring

Require = str | Iterable[str]

__all__: list[str]

def cdist(x: ArrayLike, z: ArrayLike | None = None, metric: str = "euclidean", *, p: float | None = None, may_cancel: bool = False,
          kernel: str | None = None, require: Require = (), precision: str = "automatic") -> Array: ...
def contract(a: ArrayLike, b: ArrayLike, semiring: str | Semiring = "min_plus", *, parameters: dict[str, float] | None = None, dtype: Any = None,
             may_cancel: bool = False, kernel: str | None = None, require: Require = (), precision: str = "automatic") -> Array: ...
def kernel_matvec(x: ArrayLike, z: ArrayLike | None = None, v: ArrayLike | None = None, kernel: str = "gaussian", *, metric: str | None = None,
                  p: float | None = None, may_cancel: bool = False, compute_kernel: str | None = None, require: Require = (),
                  precision: str = "automatic", **hyperparameters: float) -> Array: ...
def nearest(x: ArrayLike, z: ArrayLike | None = None, k: int = 1, metric: str = "euclidean", *, exclude_self: bool = False,
            p: float | None = None, may_cancel: bool = False, require: Require = (), precision: str = "automatic") -> Neighbors: ...
