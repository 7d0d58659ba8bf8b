"""Settings for all tests: no cache of the user's is read or written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("gradspec", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("gradspec")

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")


@pytest.fixture(autouse=True)
def cache_of_its_own(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """Every test has an empty cache folder."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("GRADSPEC_CACHE_DIR", str(folder))
    yield folder
