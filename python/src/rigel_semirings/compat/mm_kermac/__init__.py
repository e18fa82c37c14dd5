# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mm-kermac's kernels: `hyper_semiring` and `hyper_semiring_gradient`, each with its zoo.

Programs of the DSL, HyperSemiringKernel and HyperSemiringGradientKernel, are not here.
"""

from . import hyper_semiring, hyper_semiring_gradient

__all__ = ["hyper_semiring", "hyper_semiring_gradient"]
