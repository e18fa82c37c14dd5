# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exceptions: Error, and one class for each kind of failure, which is a built-in exception, too."""


class Error(Exception):
    """What Rigel refuses, and why. Its subclasses are built-in exceptions, too, so that either name catches them."""


class InvalidArgument(Error, ValueError):
    """Shapes, strides, overlaps, numbers or options that do not fit, a negative cycle, or a matrix without a factorisation."""


class NotFound(Error, ValueError):
    """No semiring, metric, kernel or parameter has this name; the message lists the names."""


class Unsupported(Error, TypeError):
    """Types that a call does not take, objects that are no arrays, or a named kernel that does not cover the call."""


class OutOfMemory(Error, MemoryError):
    """There is no memory for the workspace."""


class InternalError(Error, RuntimeError):
    """Any other failure."""


# The codes of rigel.h.
BY_CODE = {1: InvalidArgument, 2: Unsupported, 3: NotFound, 5: OutOfMemory, 6: InternalError, 100: InternalError, 101: Unsupported}
