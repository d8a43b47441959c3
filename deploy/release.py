"""Builds a release: wheels and source distributions of service and client, their parts list and their provenance.

``make release`` writes into ``dist/``:

- a wheel and a source distribution each of ``halfmoon`` and ``halfmoon-client``. The same commit gives the same bytes:
  times inside are the time of the commit.
- ``halfmoon-VERSION.cdx.json``: the locked dependencies of the service with their digests (SBOM, CycloneDX 1.6).
- ``provenance.json``: commit, build command and digests of all of these (in-toto statement, SLSA provenance 1).
- ``SHA256SUMS``, for ``sha256sum --check``.
"""

import hashlib
import json
import os
import subprocess
import sys
import uuid
from datetime import UTC, datetime
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PROJECTS = (ROOT, ROOT / "client")


def build(target: Path) -> None:
    """Build all artifacts of the checked-out commit into ``target``, which must be empty or absent.

    Raises CalledProcessError where git or the build backend fails.
    """
    target.mkdir(parents=True, exist_ok=True)
    if any(target.iterdir()):
        raise FileExistsError(f"{target} is not empty: remove what is in it, or name another folder")
    commit, seconds = _git("log", "-1", "--format=%H %ct").split()
    environment = {**os.environ, "SOURCE_DATE_EPOCH": seconds}
    for project in PROJECTS:
        command = [sys.executable, "-m", "hatchling", "build", "--directory", str(target)]
        subprocess.run(command, cwd=project, env=environment, check=True, stdout=subprocess.DEVNULL)
    (service,) = target.glob("halfmoon-*.tar.gz")
    version = service.name.removeprefix("halfmoon-").removesuffix(".tar.gz")
    time = datetime.fromtimestamp(int(seconds), UTC)
    (target / f"halfmoon-{version}.cdx.json").write_text(parts_list(version, commit, time))
    (target / "provenance.json").write_text(provenance(target, commit))
    sums = "".join(f"{digest}  {name}\n" for name, digest in _digests(target).items())
    (target / "SHA256SUMS").write_text(sums)


def parts_list(version: str, commit: str, time: datetime) -> str:
    """The locked dependencies of this version as CycloneDX JSON; each has the digests of its files."""
    service = _component("halfmoon", version, ComponentType.APPLICATION)
    bom = Bom(
        serial_number=uuid.uuid5(uuid.NAMESPACE_URL, commit),
        metadata=BomMetaData(component=service, timestamp=time),
        components=[],
    )
    parts = []
    for line in (ROOT / "requirements.lock").read_text().replace("\\\n", "").splitlines():
        if not line or line.startswith("#"):
            continue
        needed, *digests = line.split(" --hash=sha256:")
        requirement = Requirement(needed)
        (exact,) = requirement.specifier
        part = _component(requirement.name, exact.version, ComponentType.LIBRARY)
        part.hashes.update(HashType(alg=HashAlgorithm.SHA_256, content=digest.strip()) for digest in digests)
        parts.append(part)
        bom.components.add(part)
    bom.register_dependency(service, parts)
    return JsonV1Dot6(bom).output_as_string(indent=2) + "\n"


def _component(name: str, version: str, kind: ComponentType) -> Component:
    purl = PackageURL("pypi", name=name, version=version)
    return Component(name=name, version=version, type=kind, purl=purl, bom_ref=str(purl))


def provenance(target: Path, commit: str) -> str:
    """What was built, and from what, as an in-toto statement; unsigned."""
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in _digests(target).items()],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "https://hatch.pypa.io/latest/",
                "externalParameters": {"command": "make release"},
                "resolvedDependencies": [{"name": "halfmoon", "digest": {"gitCommit": commit}}]
                + [
                    {"name": path.name, "digest": {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}}
                    for path in (ROOT / "build.lock", ROOT / "requirements.lock")
                ],
            },
            "runDetails": {"builder": {"id": "make release"}},
        },
    }
    return json.dumps(statement, indent=2) + "\n"


def _digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    if changed := _git("status", "--porcelain"):
        sys.exit(
            f"a release is made of a commit, and these files differ from it:\n{changed}commit or remove them first"
        )
    try:
        build(Path(sys.argv[1] if len(sys.argv) > 1 else "dist").resolve())
    except FileExistsError as error:
        sys.exit(str(error))
