"""A small storm: every kind of fault once, over ten jobs. The large one is ``python -m benchmarks.storm``."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.storm.invariants import run_again, violations
from tests.storm.ledger import Kind
from tests.storm.storm import KINDS, Storm
from tests.waiting import HANG


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a path short enough for a socket below it."""
    with tempfile.TemporaryDirectory(prefix="storm-", dir="/tmp") as made:
        yield Path(made)


@pytest.mark.slow
def test_nothing_is_lost_or_doubled_whatever_dies(folder: Path) -> None:
    """The benchmark measures how soon; this fails when something never happens."""
    storm = Storm(
        seed=1,
        jobs=10,
        faults=KINDS,
        lease_seconds=1.0,
        abandoned_seconds=8.0,
        cut_seconds=(0.5, 1.5),
        soon_seconds=HANG,
    )
    evidence = storm.run(folder)
    assert violations(evidence) == {}, (folder / "log").read_text()
    assert len(evidence.ledger.jobs) >= 11  # and the one from before the storm
    injected = {fault.kind for fault in evidence.ledger.faults}
    # a child to be harmed there is only while something trains
    assert injected >= set(KINDS) - {Kind.CHILD_KILLED, Kind.CHILD_STOPPED}
    assert all(again.seconds is not None for again in run_again(evidence))
