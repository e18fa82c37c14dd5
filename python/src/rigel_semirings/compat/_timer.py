# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The timer that programs of kermac and mm-kermac measure with."""

import sys
import time

__all__ = ["CudaTimer"]


class CudaTimer:
    """Milliseconds from `start` to `stop`: of torch's current stream where torch has a GPU, of this thread elsewhere."""

    def __init__(self):
        torch = sys.modules.get("torch")
        self._cuda = torch.cuda if torch is not None and torch.cuda.is_available() else None
        self.start()

    def _now(self):
        if self._cuda is None:
            return time.perf_counter()
        event = self._cuda.Event(enable_timing=True)
        event.record()
        return event

    def start(self):
        """Starts again."""
        self._begin = self._now()

    def stop(self):
        """The time since the start."""
        end = self._now()
        if self._cuda is None:
            return 1000 * (end - self._begin)
        end.synchronize()
        return self._begin.elapsed_time(end)
