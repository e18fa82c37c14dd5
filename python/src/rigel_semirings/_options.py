# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options that every call has: kernel, require and precision."""

from ._errors import InvalidArgument

_PROMISES = {"reference_bits": 1, "repeatable": 2, "batch_invariant": 4}
_PRECISIONS = {"automatic": 0, "rounded": 1, "accumulator": 2, "exact_products": 3, "promoted": 4, "split": 5, "bf16x3": 6, "tf32": 7,
               "operands": 8}


def chosen(value, names, what):
    """What a name stands for."""
    try:
        return names[value]
    except (KeyError, TypeError):
        raise InvalidArgument(f"{what} is {value!r}, expected one of {', '.join(names)}") from None


def options(kernel, require, precision):
    """What the extension takes: None for the defaults."""
    if kernel is None and not require and precision == "automatic":
        return None
    promises = 0
    for one in (require,) if isinstance(require, str) else require or ():
        promises |= chosen(one, _PROMISES, "require")
    return kernel, promises, chosen(precision, _PRECISIONS, "precision")
