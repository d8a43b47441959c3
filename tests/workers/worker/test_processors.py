"""Processors of a container, which may be fewer than the machine has."""

import os
from pathlib import Path

import pytest

from storage.process.settings import Settings
from workers.worker import run
from workers.worker.run import usable_processors


@pytest.fixture(autouse=True)
def _eight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("max 100000", 8),
        ("150000 100000", 2),
        ("200000 100000\n", 2),
        ("1000 100000", 1),
        ("9900000 100000", 8),
        ("", 8),
        ("x", 8),
    ],
)
def test_the_quota_of_a_container_counts(tmp_path: Path, text: str, count: int) -> None:
    (tmp_path / "cpu.max").write_text(text)
    assert usable_processors(tmp_path) == count


@pytest.mark.parametrize(("quota", "count"), [("-1", 8), ("250000", 3)])
def test_so_does_that_of_an_older_kernel(tmp_path: Path, quota: str, count: int) -> None:
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text(quota)
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000")
    assert usable_processors(tmp_path) == count


def test_without_a_quota_all_are_used(tmp_path: Path) -> None:
    assert usable_processors(tmp_path) == 8


@pytest.mark.parametrize(("given", "count"), [(0, 3), (2, 2)])
def test_a_worker_trains_with_these_unless_it_is_told_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: int, count: int
) -> None:
    monkeypatch.setattr(run, "usable_processors", lambda: 3)
    settings = Settings(
        store_url=f"file://{tmp_path}/store", redis_url=f"unix://{tmp_path}/nowhere.sock", training_threads=given
    )
    assert run._context(settings, "w").threads == count
