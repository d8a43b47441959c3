"""The walk with curl, the lines of the README and the page for Python work as they are printed, with the printed
output.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.service import Service
from tests.waiting import HANG

WORDS = ("sport", "politics")
PRINTED = "URL=http://127.0.0.1:8000/v1\n"


@pytest.fixture
def walk(repository: Path) -> str:
    return (repository / "docs/walk.md").read_text()


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def rounded(value: Any) -> Any:
    """A number as the walk prints it."""
    if isinstance(value, float):
        return round(value, 2)
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list) else value


@pytest.mark.skipif(shutil.which("curl") is None, reason="the walk needs curl")
def test_the_walk_works_as_printed(service: Service, walk: str, tmp_path: Path) -> None:
    commands = blocks(walk, "sh")
    assert commands[0].startswith(PRINTED)
    script = "set -eu\n" + "echo; echo '# step'\n".join(
        [commands[0].replace(PRINTED, f"URL={service.url}/v1\n"), *commands[1:]]
    )
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=HANG, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    _, dataset, trained, found, predicted, explained, evaluated, looped, aliased = done.stdout.split("# step\n")
    assert json.loads(dataset)["n_labeled"] == 2
    assert '"state":"succeeded"' in trained
    assert '"chosen":{' in trained
    printed_labels, printed_prediction = blocks(walk, "json")
    assert [rounded(json.loads(line)) for line in found.split()] == [
        json.loads(line) for line in printed_labels.splitlines()
    ]
    assert rounded(json.loads(predicted)) == json.loads(printed_prediction)
    assert [weights["class"] for weights in json.loads(explained)["weights"]] == ["sport"]
    assert {"cup", "vote"} <= {term["name"] for term in json.loads(explained)["documents"][0]["contributions"]}
    assert json.loads(evaluated)["accuracy"] == 1
    suggested, relabeled, job = map(json.loads, looped.splitlines()[:3])
    assert {document["id"] for document in suggested["suggestions"]} < {"d3", "d4", "d5", "d6"}
    assert (suggested["n_unlabeled"], relabeled["n_labeled"], job["start_from"]) == (
        4,
        4,
        {"name": "news", "version": 1},
    )
    alias, by_alias = map(json.loads, aliased.splitlines()[:2])
    assert (alias, by_alias["version"], by_alias["labels"]) == (
        {"name": "news", "alias": "live", "version": 1},
        1,
        ["sport"],
    )
    assert (tmp_path / "confusion.svg").read_text().startswith("<svg")
    page = (tmp_path / "evaluation.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "2 of the 2 labeled documents were trained on" in page


def test_the_lines_of_the_readme_work_as_printed(service: Service, repository: Path, tmp_path: Path) -> None:
    (printed,) = blocks((repository / "README.md").read_text(), "python")
    assert len(printed.partition("\nhm = ")[2].splitlines()) <= 6
    done = run_python(printed + "print(labels.to_json())\n", service, repository, tmp_path)
    *_, prediction, labels = done.splitlines()
    found = json.loads(labels)
    assert list(found["id"].values()) == ["2", "3", "4", "5"]
    assert list(found["label"].values()) == ["sport", "politics", "sport", "politics"]
    assert prediction == "['sport']"


def test_the_page_on_python_works_as_printed(service: Service, repository: Path, tmp_path: Path) -> None:
    printed = "".join(blocks((repository / "docs/python.md").read_text(), "python"))
    shown = (
        "print(labels.set_index('id')['label'].to_json(), evaluation.accuracy, again.state, len(data), "
        "model.aliases['live'])\n"
    )
    done = run_python(printed + shown, service, repository, tmp_path)
    labels, accuracy, state, length, live = done.splitlines()[-1].split(" ")
    assert json.loads(labels) == {"3": "sport", "4": "politics", "5": "sport", "6": "politics"}
    assert (float(accuracy), state, length, int(live) > 0) == (1, "succeeded", "6", True)


def test_the_lines_that_ask_a_voter_work_as_printed(service: Service, repository: Path, tmp_path: Path) -> None:
    """A voter who is cut once is asked for each answer once."""
    printed = "".join(blocks((repository / "docs/votes.md").read_text(), "python"))
    documents = [{"id": f"d{k}", "text": f"word{k % 5} {k}"} for k in range(20)]
    labeled = [each | {"label": WORDS[k]} if k < 2 else each for k, each in enumerate(documents)]
    (tmp_path / "documents.ndjson").write_text("".join(f"{json.dumps(each)}\n" for each in labeled))
    asked = f"def ask(text):\n    print('asked', text)\n    return {WORDS}[int(text[6:]) % 2]\n"
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        run_python(asked.replace("% 2]", "% 2 // (text[6:] != '9')]") + printed, service, repository, tmp_path)
    kept = (tmp_path / "answers.ndjson").read_text().splitlines()
    done = run_python(asked + printed, service, repository, tmp_path)
    voted = [json.loads(line) for line in (tmp_path / "voted.ndjson").read_text().splitlines()]
    assert len(kept) + done.count("asked") == sum("votes" in each for each in voted)
    assert all(each["votes"] == {"llm": WORDS[k % 2]} for k, each in enumerate(voted) if "votes" in each)


def run_python(printed: str, service: Service, repository: Path, folder: Path) -> str:
    """The output of a printed script when the service is where it says."""
    script = printed.replace("http://127.0.0.1:8000", service.url)
    environment = {**os.environ, "HALFMOON_URL": service.url, "PYTHONPATH": str(repository / "client/src")}
    command = [sys.executable, "-c", script]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=HANG, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
