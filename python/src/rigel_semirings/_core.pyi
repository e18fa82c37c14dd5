# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from typing import Any

def __getattr__(name: str) -> Any: ...  # the package's own
