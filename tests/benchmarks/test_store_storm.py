"""Foundations of the figures of the storm over a store: ill folders, faults, the table, the S3 server."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import localbucket
import pytest

from benchmarks import base
from benchmarks.store_storm import __main__ as page
from benchmarks.store_storm.bucket_server import Handler
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


KEYS = ["a/1.json", "a/1/x", "a/1/y/z", "a/10", "a/2", "ab", "b/c/d/e", "b/c/d/f", "b/g", "z"]
PREFIXES = ["", "a", "a/", "a/1", "a/1/", "b/c", "b/c/d/", "c/", "q"]


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("buckets") / "one"
    for key in KEYS:
        (folder / key).parent.mkdir(parents=True, exist_ok=True)
        (folder / key).write_bytes(b"")
    (folder / "a" / "empty" / "too").mkdir(parents=True)
    (folder / "b" / f"{localbucket.TEMP_PREFIX}1").write_bytes(b"")
    return folder


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("delimiter", ["", "/"])
@pytest.mark.parametrize("max_keys", [1, 2, 1000])
def test_pages_are_the_same(bucket: Path, prefix: str, delimiter: str, max_keys: int) -> None:
    own, plain = (cls.__new__(cls)._list_entries for cls in (Handler, localbucket.S3Handler))
    marker, follows = "", True
    while follows:
        page: Any = (bucket, prefix, delimiter, marker, bool(delimiter) and marker.endswith(delimiter), max_keys)
        found = own(*page)
        assert found == plain(*page)
        follows, marker = found[2], found[3][2:]
