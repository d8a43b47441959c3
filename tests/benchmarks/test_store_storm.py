"""Foundations of the figures of the storm over a store: folders that are made ill, faults, the page."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from benchmarks import base
from benchmarks.store_storm import __main__ as page
from benchmarks.store_storm.faults import BUCKET_ALONE, FOLDER_ALONE, Fault, Hit, faults_of
from benchmarks.store_storm.storm import Plan, Result
from tests.storm.ledger import Answer

_HOOKS = Path(page.__file__).parent / "hooks"
_READ = """
from storage.store import open_store
store = open_store({url!r})
print(store.create("a", b"1"), store.read("a"))
"""


def _read(tmp_path: Path, repository: Path, illness: str | None) -> str:
    if illness is not None:
        (tmp_path / "illness").write_text(illness)
    path = os.pathsep.join([str(_HOOKS), str(repository)])
    environment = {**os.environ, "STORM_ILLNESS": str(tmp_path / "illness"), "PYTHONPATH": path}
    command = [sys.executable, "-c", _READ.format(url=(tmp_path / "store").as_uri())]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_a_folder_is_made_ill_from_outside(tmp_path: Path, repository: Path) -> None:
    assert _read(tmp_path, repository, None) == "True b'1'\n"
    assert "StoreUnavailable: Input/output error" in _read(tmp_path, repository, "fails 1")


def test_every_fault_is_of_a_store() -> None:
    assert {*faults_of("s3"), *faults_of("folder")} | {Fault.CLOCK} == set(Fault)
    assert not {*BUCKET_ALONE} & {*faults_of("folder")}
    assert not {*FOLDER_ALONE} & {*faults_of("s3")}


def test_the_page_says_what_was_found() -> None:
    plan = Plan("s3", 3, (Fault.SLOW, Fault.WORKER))
    hits = [Hit(Fault.SLOW, 1.0, 3.0, 0), Hit(Fault.WORKER, 4.0, 5.0, 7)]
    wrong = {"accepted_jobs_have_ended": ["job a is still queued"], "healthy_jobs_are_not_restarted": []}
    probes = [Answer("liveness", float(second), second + 0.001, 200) for second in range(10)]
    result = Result(
        plan, 9.0, Counter(succeeded=2, queued=1), hits, wrong, Counter({202: 3, 0: 1}), probes, (0.0, 4.5), (0.0, 0.0)
    )
    text = page.section(result, base.Log())
    assert "| 3 | 1 queued, 2 succeeded | 1 | 0 | 0 | 0 | 0 |" in text
    assert "- job a is still queued" in text
    assert "| store slow: 10 ms to 5 s a call | 1 | 2 |" in text
    assert "| liveness | before the first fault | 5 | 0 | 1 | 1 | 1 |" in text
