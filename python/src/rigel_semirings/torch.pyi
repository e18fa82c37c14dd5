# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

Require = str | Iterable[str]

__all__: list[str]

GRADIENTS: dict[str, Callable[..., tuple[Tensor | None, Tensor | None]]]

def cdist(x: Tensor, z: Tensor | None = None, metric: str = "euclidean", *, p: float | None = None, may_cancel: bool = False,
          kernel: str | None = None, require: Require = (), precision: str = "automatic") -> Tensor: ...
def contract(a: Tensor, b: Tensor, semiring: str = "min_plus", *, parameters: dict[str, float] | None = None,
             dtype: torch.dtype | None = None, may_cancel: bool = False, kernel: str | None = None, require: Require = (),
             precision: str = "automatic") -> Tensor: ...
def kernel_matrix(x: Tensor, z: Tensor | None = None, kernel: str = "gaussian", *, metric: str | None = None, p: float | None = None,
                  may_cancel: bool = False, precision: str = "automatic", **hyperparameters: float) -> Tensor: ...
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, *, activation: str | None = None, tier: str = "scalar",
           precision: str = "automatic") -> Tensor: ...

class Linear(torch.nn.Module):
    in_features: int
    out_features: int
    activation: str | None
    tier: str
    precision: str
    weight: torch.nn.Parameter
    bias: torch.nn.Parameter | None
    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: torch.dtype | None = None, *,
                 activation: str | None = None, tier: str = "scalar", precision: str = "automatic") -> None: ...
    def reset_parameters(self) -> None: ...
    @classmethod
    def from_torch(cls, layer: torch.nn.Linear, *, activation: str | None = None, tier: str = "scalar",
                   precision: str = "automatic") -> Linear: ...
    def forward(self, x: Tensor) -> Tensor: ...
