"""A field of a job costs one file of the service: its definition goes into the spec, and the rest follows."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from tests.architecture.size import recipe
from tests.stores import Valkey

ROOMS = ("app", "core", "storage", "workers")
SPEC = "storage/records.py"
FIELD = '''    reviewer: str | None = None
    """Name of the person who asked for the job."""
'''
FOLLOWS_SPEC = '    publish: Publish = "if_better"\n'
CALLS = """
import json, sys
import httpx
from app.contract import text_of
from app.main import create_app
from app.settings import GatewaySettings
from tests.app.conftest import TWO_CLASSES, serving

folder, redis = sys.argv[1:]
settings = GatewaySettings(store_url=f"file://{folder}/store", redis_url=redis, queue="added")
with serving(settings) as port, httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
    body = {"documents": TWO_CLASSES, "model": "news", "algorithm": "svm"}
    answers = [client.post("/v1/jobs", json=body | more).json() for more in ({}, {"reviewer": "ann"}, {"reviewer": 1})]
    answers.append(client.get(f"/v1/jobs/{answers[1]['id']}").json())
with open(f"{folder}/found.json", "w") as file:
    json.dump({"answers": answers, "contract": text_of(create_app(settings))}, file)
"""


def test_a_field_of_the_spec_is_accepted_stored_answered_and_described(
    repository: Path, tmp_path: Path, valkey: Valkey
) -> None:
    for room in ROOMS:
        shutil.copytree(repository / room, tmp_path / room, ignore=shutil.ignore_patterns("*.nb?"))
    spec = tmp_path / SPEC
    spec.write_text(spec.read_text().replace(FOLLOWS_SPEC, FIELD + FOLLOWS_SPEC))

    environment = os.environ | {"PYTHONPATH": f"{tmp_path}:{repository}", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    call = [sys.executable, "-P", "-c", CALLS, str(tmp_path), valkey.url]
    subprocess.run(call, cwd=tmp_path, env=environment, check=True, timeout=120)

    found = json.loads((tmp_path / "found.json").read_text())
    without, made, refused, shown = found["answers"]
    assert (without["reviewer"], made["reviewer"], shown["reviewer"]) == (None, "ann", "ann")
    assert refused["errors"][0]["field"] == "reviewer"
    request = json.loads((tmp_path / "store" / "jobs" / made["id"] / "request.json").read_text())
    assert request["reviewer"] == "ann"
    schemas = yaml.safe_load(found["contract"])["components"]["schemas"]
    assert "reviewer" in schemas["JobBody"]["properties"]
    assert schemas["Job"]["properties"]["reviewer"]["description"] == "Name of the person who asked for the job."
    touched = [
        str(path) for path in sources(repository) if (tmp_path / path).read_text() != (repository / path).read_text()
    ]
    assert touched == recipe("a field of a job") == [SPEC]


def sources(repository: Path) -> list[Path]:
    return [path.relative_to(repository) for room in ROOMS for path in sorted((repository / room).rglob("*.py"))]
