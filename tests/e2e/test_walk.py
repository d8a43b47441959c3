"""The walk in the README works as it is printed."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.service import Service
from tests.waiting import HANG

PRINTED = "URL=http://127.0.0.1:8000\n"


@pytest.fixture
def commands(repository: Path) -> list[str]:
    section = (repository / "README.md").read_text().split("## A walk with curl")[1].split("\n## ")[0]
    return re.findall(r"^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL)


@pytest.mark.skipif(shutil.which("curl") is None, reason="the walk needs curl")
def test_the_walk_works_as_printed(service: Service, commands: list[str], tmp_path: Path) -> None:
    assert commands[0] == PRINTED
    script = "set -eu\n" + "echo; echo '# step'\n".join([f"URL={service.url}\n", *commands[1:]])
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=HANG, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    _, dataset, events, results, predictions, aliased, explained, evaluated, looped = done.stdout.split("# step\n")
    assert json.loads(dataset)["n_labeled"] == 2
    assert '"state":"succeeded"' in events
    assert '"chosen":{' in events
    assert {line["id"]: line["label"] for line in map(json.loads, results.splitlines()[:4])} == {
        "d3": "sport",
        "d4": "politics",
        "d5": "sport",
        "d6": "politics",
    }
    assert json.loads(predictions)["labels"] == ["sport", "politics"]
    assert '"alias":"live"' in aliased
    assert '"labels":["sport"]' in aliased
    assert [weights["class"] for weights in json.loads(explained)["weights"]] == ["sport"]
    assert {"cup", "vote"} <= {term["name"] for term in json.loads(explained)["documents"][0]["contributions"]}
    assert json.loads(evaluated)["accuracy"] == 1
    suggested, relabeled, job = map(json.loads, looped.replace("}{", "}\n{").splitlines())
    assert {document["id"] for document in suggested["suggestions"]} < {"d3", "d4", "d5", "d6"}
    assert (suggested["n_unlabeled"], relabeled["n_labeled"], job["start_from"]) == (4, 4, {"name": "news", "version": 1})
    page = (tmp_path / "evaluation.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "2 of the 2 labeled documents were trained on" in page
