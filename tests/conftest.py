"""Settings for all tests: no cache of the user's is read or written."""

from __future__ import annotations

import gc
import itertools
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


FIRST = ("trial", "conformance", "corpus", "targets", "stabilise", "cli", "audit")
"""Folders whose tests take long: two workers that begin with them end together, and what
the shipped rules' trials have searched for is there for those who compile them, too."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of a file belong to one worker, unless they say otherwise: each worker
    would compile and trace for itself what they share."""
    items.sort(key=_turn)  # stable
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


def _turn(item: pytest.Item) -> int:
    folder = item.path.relative_to(Path(__file__).parent).parts[0]
    return FIRST.index(folder) if folder in FIRST else len(FIRST)


def pytest_collection_finish() -> None:
    """The frameworks' modules are there for good: collecting need not look at them."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One cache folder for this run, of all its workers: for fixtures that serve many
    tests. It begins empty, so all that it gives has been worked out by this code."""
    base = tmp_path_factory.getbasetemp()
    own = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    folder = own / "shared-cache"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADSPEC_CACHE_DIR", str(folder))
        yield folder


_NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def cache_of_its_own(
    request: pytest.FixtureRequest,
    shared_folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Path]:
    """Every test has an empty cache folder, but for those marked ``shared_cache``: they
    compile what others compile too, and are about what comes after."""
    is_shared = request.node.get_closest_marker("shared_cache") is not None
    folder = shared_folder
    if not is_shared:  # mktemp would look through those of all tests before
        folder = tmp_path_factory.getbasetemp() / f"cache-{next(_NUMBERS)}"
        folder.mkdir()
    monkeypatch.setenv("GRADSPEC_CACHE_DIR", str(folder))
    yield folder
