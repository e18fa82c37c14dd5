# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os

import numpy as np
import pytest

import rigel_semirings as rs


@pytest.fixture
def rng():
    return np.random.default_rng(1)


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="torch is not installed")


@pytest.fixture(scope="module")
def compiles(tmp_path_factory):
    """A folder for kernels; tests are skipped where none can be compiled."""
    before = {name: os.environ.get(name) for name in ("RIGEL_CACHE", "RIGEL_CACHE_DIR")}
    os.environ["RIGEL_CACHE_DIR"] = str(tmp_path_factory.mktemp("texts"))
    os.environ.pop("RIGEL_CACHE", None)
    try:
        rs.Semiring("a * b").compile()
        yield
    except rs.Unsupported as reason:
        if os.environ.get("RIGEL_TEST_RUNTIME"):
            raise
        pytest.skip(str(reason))
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
