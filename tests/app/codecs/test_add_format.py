"""A format is added to a copy of the application, as CONTRIBUTING says: a module and its place in a list.

Uploads, forms, predictions, the contract and the page have it then.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from halfmoon import encode

from app.codecs.dispatch import ENDINGS
from tests.app.conftest import Gateway, publish
from tests.architecture.size import recipe
from tests.stores import Valkey

TOY = Path(__file__).parent / "toy_format.py"
CALLS = """
import json, sys
from fastapi.testclient import TestClient
from app.main import create_app
from app.settings import GatewaySettings

settings = GatewaySettings(store_url=sys.argv[1], redis_url=sys.argv[2])
body = b"no 0\\nyes 1\\n? 1\\n"
toy = {"content-type": "text/x-toy"}
with TestClient(create_app(settings), base_url="http://localhost") as client:
    answers = {
        "upload": client.post("/v1/datasets", content=body, headers=toy),
        "form": client.post("/v1/datasets", files={"file": ("news.toy", body)}),
        "prediction": client.post("/v1/models/news/predict", content=body, headers=toy),
        "contract": client.get("/v1/openapi.json"),
        "endings": client.get("/page/endings.json"),
    }
print(json.dumps({name: [answer.status_code, answer.json()] for name, answer in answers.items()}))
"""


@pytest.fixture
def answers(repository: Path, tmp_path: Path, gateway: Gateway, valkey: Valkey) -> dict[str, Any]:
    """The answers of an application with one more format, and the files that were touched."""
    publish(gateway.store)
    copy = tmp_path / "with-format"
    shutil.copytree(repository / "app", copy / "app")
    shutil.copy(TOY, copy / "app/codecs/tables/toy.py")
    dispatch = copy / "app/codecs/dispatch.py"
    listed = dispatch.read_text().replace("_READ = (\n", "_READ = (\n    toy.FORMAT,\n", 1)
    dispatch.write_text(
        listed.replace("import child, csv, svmlight, workbook\n", "import child, csv, svmlight, toy, workbook\n", 1)
    )
    answered = subprocess.run(
        [sys.executable, "-c", CALLS, f"file://{gateway.root}", valkey.url],
        env={**os.environ, "PYTHONPATH": f"{copy}:{repository}"},
        cwd=copy,
        capture_output=True,
        check=True,
        text=True,
    )
    found: dict[str, Any] = json.loads(answered.stdout.splitlines()[-1])
    found["touched"] = touched(repository / "app", copy / "app")
    return found


def touched(before: Path, after: Path) -> list[str]:
    """Files that differ between two folders."""
    paths = [path for path in after.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return sorted(
        str(name)
        for path in paths
        if not (before / (name := path.relative_to(after))).exists()
        or (before / name).read_bytes() != path.read_bytes()
    )


def test_a_format_is_a_module_and_its_place_in_a_list(answers: dict[str, Any]) -> None:
    assert answers["touched"] == ["codecs/dispatch.py", "codecs/tables/toy.py"]
    assert recipe("a format") == ["app/codecs/ROOM/NAME.py", "app/codecs/dispatch.py", "docs/documents.md"]
    for kind in ("upload", "form"):
        status, dataset = answers[kind]
        assert (status, dataset["n_documents"], dataset["classes"]) == (201, 3, {"no": 1, "yes": 1})
    assert (answers["prediction"][0], answers["prediction"][1]["labels"]) == (200, ["no", "yes", "yes"])
    for path in ("/v1/datasets", "/v1/models/{name}/predict"):
        assert "text/x-toy" in answers["contract"][1]["paths"][path]["post"]["requestBody"]["content"]
    assert answers["endings"] == [200, ENDINGS | {"toy": "text/x-toy"}]


def test_the_client_knows_the_same_endings() -> None:
    """It unpacks tables of Arrow and Parquet itself; .gz stands behind another ending."""
    known = {ending.removeprefix(".") for ending in (*encode._FILES, *encode._TABLES)}
    assert known == ENDINGS.keys() - {"gz"}
    for ending, media_type in encode._FILES.items():
        assert ENDINGS[ending.removeprefix(".")] == media_type
