"""Requirements and releases: every pin is exact, installed and locked; the same bytes from any copy of a commit."""

import hashlib
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution, entry_points
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

Locked = dict[NormalizedName, Requirement]


def locked_in(path: Path) -> Locked:
    """The requirements of a lock file by name; each has a digest."""
    text = path.read_text().replace("\\\n", "")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", line) for line in lines)
    found = [Requirement(line.partition(" --hash")[0]) for line in lines]
    return {canonicalize_name(each.name): each for each in found}


def name_of(requirement: str) -> str:
    return re.split(r"[\[<>=!~; ]", requirement, maxsplit=1)[0].lower().replace("_", "-")


@pytest.fixture
def project(repository: Path) -> dict[str, Any]:
    content: dict[str, Any] = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    return content


@pytest.fixture
def pins(repository: Path) -> list[str]:
    return [
        line for line in (repository / "constraints.txt").read_text().splitlines() if line and not line.startswith("#")
    ]


def test_every_pin_is_exact_and_from_the_index(pins: list[str]) -> None:
    assert len(pins) > 100
    assert [pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", pin)] == []


def test_every_requirement_is_pinned(project: dict[str, Any], pins: list[str]) -> None:
    wanted = project["dependencies"] + [
        requirement for extra in project["optional-dependencies"].values() for requirement in extra
    ]
    assert {name_of(requirement) for requirement in wanted} - {name_of(pin) for pin in pins} == set()


def test_the_command_is_installed() -> None:
    (command,) = entry_points(group="console_scripts", name="halfmoon")
    assert command.value == "app.cli.commands:main"
    assert callable(command.load())


def test_the_licence_is_mit(project: dict[str, Any], repository: Path) -> None:
    assert project["license"] == "MIT"
    assert (repository / "LICENSE").read_text().startswith("MIT License\n")


@pytest.fixture
def locked(repository: Path) -> Locked:
    return locked_in(repository / "requirements.lock")


def needed(requirements: list[str]) -> Iterator[NormalizedName]:
    """Names of these requirements and of their own requirements here."""
    waiting, seen = [Requirement(each) for each in requirements], set()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        extras = requirement.extras or {""}
        if not any(requirement.marker is None or requirement.marker.evaluate({"extra": extra}) for extra in extras):
            continue
        if name not in seen:
            seen.add(name)
            yield name
            waiting += [
                inner
                for each in distribution(name).requires or []
                if (inner := Requirement(each)).marker is None
                or any(inner.marker.evaluate({"extra": extra}) for extra in extras)
            ]


def test_the_lock_holds_all_that_runs_and_nothing_else(
    project: dict[str, Any], pins: list[str], locked: Locked
) -> None:
    here = {name for name, requirement in locked.items() if requirement.marker is None or requirement.marker.evaluate()}
    assert set(needed(project["dependencies"] + project["optional-dependencies"]["encoder"])) == here
    versions = {canonicalize_name(name): version for name, _, version in (pin.partition("==") for pin in pins)}
    assert {name: str(locked[name].specifier) for name in here} == {name: f"=={versions[name]}" for name in here}


def test_the_image_installs_what_is_locked(repository: Path) -> None:
    text, own = (repository / "Dockerfile").read_text(), "/opt/build/bin/pip"
    assert re.findall(r"(\S*pip(?: --python \S+)?) install (.*?)(?: \\)?$", text, re.MULTILINE) == [
        (f"{own} --python /opt/halfmoon/bin/python", "--require-hashes --no-deps --requirement requirements.lock"),
        (own, "--require-hashes --no-deps --requirement build.lock"),
        (f"{own} --python /opt/halfmoon/bin/python", "--no-deps --no-index /opt/wheel/*.whl"),
    ]
    assert "pip wheel --no-build-isolation --no-deps " in text


def test_the_build_backend_is_locked(repository: Path) -> None:
    backend = locked_in(repository / "build.lock")
    (wanted,) = map(Requirement, tomllib.loads((repository / "pyproject.toml").read_text())["build-system"]["requires"])
    (version,) = [each.version for each in backend[canonicalize_name(wanted.name)].specifier]
    assert wanted.specifier.contains(version)
    assert all([each.operator for each in requirement.specifier] == ["=="] for requirement in backend.values())


def test_what_is_installed_fits_together(locked: Locked) -> None:
    for name, requirement in locked.items():
        if requirement.marker is None or requirement.marker.evaluate():
            for each in map(Requirement, distribution(name).requires or []):
                if each.marker is None or each.marker.evaluate({"extra": ""}):
                    assert each.specifier.contains(distribution(each.name).version, prereleases=True), (name, str(each))


def test_no_dependency_is_under_the_gpl(locked: Locked) -> None:
    """A service under MIT could not contain it."""
    for name, requirement in locked.items():
        if requirement.marker is None or requirement.marker.evaluate():
            told = distribution(name).metadata
            licences = [
                *(told.get_all("License-Expression") or []),
                *(each for each in told.get_all("Classifier") or [] if each.startswith("License")),
            ]
            assert not [
                each
                for each in licences
                if re.search(r"\b(A?GPL|GNU (Affero )?General Public)", each) and "Lesser" not in each
            ], name


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
