"""A release: the same bytes from any copy of a commit, and what stands beside them tells the truth."""

import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.setup.test_packaging import locked_in


@pytest.fixture(scope="module")
def copies(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two releases, each built in a clone of its own."""
    folder = tmp_path_factory.mktemp("release")
    for name in ("one", "two"):
        subprocess.run(["git", "clone", "--quiet", str(repository), str(folder / name)], check=True)
        release(folder / name)
    return [folder / name / "dist" for name in ("one", "two")]


def release(checkout: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "deploy/release.py"]
    return subprocess.run(command, cwd=checkout, text=True, **{"check": True, "capture_output": True} | options)


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_two_copies_of_a_commit_give_the_same_bytes(copies: list[Path]) -> None:
    one, two = map(digests, copies)
    assert one == two
    assert len([name for name in one if name.endswith((".whl", ".tar.gz"))]) == 4


def test_wheels_hold_all_packages_and_their_licence(copies: list[Path]) -> None:
    held = {
        name.split("/")[0]
        for wheel in copies[0].glob("*.whl")
        for name in zipfile.ZipFile(wheel).namelist()
        if ".dist-info/" not in name
    }
    assert held == {"app", "workers", "storage", "core", "halfmoon"}
    (client,) = copies[0].glob("halfmoon_client-*.whl")
    assert "halfmoon/_sync/client.py" in zipfile.ZipFile(client).namelist()


def test_sums_and_provenance_name_what_is_there(copies: list[Path], repository: Path) -> None:
    there = digests(copies[0])
    sums = dict(line.split("  ")[::-1] for line in (copies[0] / "SHA256SUMS").read_text().splitlines())
    assert sums == {name: digest for name, digest in there.items() if name != "SHA256SUMS"}
    statement = json.loads((copies[0] / "provenance.json").read_text())
    told = {each["name"]: each["digest"]["sha256"] for each in statement["subject"]}
    assert told == {name: digest for name, digest in sums.items() if name != "provenance.json"}
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=repository, check=True, capture_output=True, text=True)
    needed = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert needed[0]["digest"] == {"gitCommit": commit.stdout.strip()}


def test_the_parts_list_has_each_locked_dependency_with_its_digests(copies: list[Path], repository: Path) -> None:
    (path,) = copies[0].glob("*.cdx.json")
    parts = json.loads(path.read_text())
    listed = {each["name"]: each["version"] for each in parts["components"]}
    locked = {
        each.name: next(iter(each.specifier)).version for each in locked_in(repository / "requirements.lock").values()
    }
    assert listed == locked
    assert all(each["hashes"] for each in parts["components"])
    assert parts["metadata"]["component"]["name"] == "halfmoon"


def test_a_release_is_of_a_commit_and_into_an_empty_folder(copies: list[Path]) -> None:
    checkout = copies[1].parent
    refused = release(checkout, check=False)
    assert refused.returncode == 1
    assert "dist is not empty" in refused.stderr
    (checkout / "odd.txt").write_text("")
    refused = release(checkout, check=False)
    assert "?? odd.txt" in refused.stderr
    assert "commit or remove them first" in refused.stderr
