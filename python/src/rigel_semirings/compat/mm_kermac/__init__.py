# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mm-kermac's kernels: `hyper_semiring` and `hyper_semiring_gradient`, each with its zoo and a class for kernels of your own instructions."""

from .._timer import CudaTimer
from .stack_ptx_types import PtxInstruction, SpecialRegister, Stack

from . import hyper_semiring, hyper_semiring_gradient  # noqa: E402  isort:skip  they take the instructions from here

__all__ = ["CudaTimer", "PtxInstruction", "SpecialRegister", "Stack", "hyper_semiring", "hyper_semiring_gradient"]
