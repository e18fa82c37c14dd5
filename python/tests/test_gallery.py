# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The programs of the gallery: each checks its own result."""
import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("matplotlib")

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "gallery"


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("plot_*.py")))
def test_program(name):
    result = subprocess.run([sys.executable, "-W", "error", name], cwd=FOLDER, env=os.environ | {"MPLBACKEND": "Agg"}, capture_output=True,
                            text=True, timeout=300)
    assert result.returncode == 0, result.stderr
