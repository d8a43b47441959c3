"""Steps of a person at the page: open data, add classes, label, wait until all is saved."""

import csv
import gzip
import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from axe_playwright_python.sync_playwright import Axe

from tests.e2e.browser import Seat
from tests.e2e.service import Service
from tests.waiting import HANG

CLASSES = ["ham", "spam"]
ALL_SAVED = "() => document.querySelector('#saved')?.innerText === 'All saved'"
NEXT = "id => document.querySelector('article .clip') && document.querySelector('article .clip')?.innerText !== id"
_OWN = {
    "ham": [
        "see",
        "you",
        "home",
        "later",
        "love",
        "dinner",
        "work",
        "tomorrow",
        "sorry",
        "call",
        "when",
        "back",
        "meeting",
        "sleep",
        "morning",
        "okay",
    ],
    "spam": [
        "free",
        "prize",
        "win",
        "claim",
        "cash",
        "urgent",
        "entry",
        "txt",
        "mobile",
        "award",
        "ringtone",
        "guaranteed",
        "offer",
        "text",
        "stop",
    ],
}
_BOTH = ["you", "call", "now", "your", "to", "a", "the", "and", "is", "for", "have", "me", "we", "just", "get"]


def messages() -> list[tuple[str, str]]:
    """Texts with their labels: sms-spam where the data are there, else texts like them."""
    data = os.environ.get("HALFMOON_DATA")
    path = Path(data or "") / "sms-spam/docs.jsonl.gz"
    if data and path.is_file():
        return [(each["text"], each["label"]) for each in map(json.loads, gzip.open(path, "rt"))]
    chance = np.random.default_rng(5)
    kinds = chance.choice(CLASSES, 600, p=[0.7, 0.3]).tolist()
    return [
        (" ".join([*chance.choice(_OWN[kind], 5), *chance.choice(_BOTH, 4)]) + f" £ {k}", kind)
        for k, kind in enumerate(kinds)
    ]


def write_table(path: Path, rows: Iterable[Sequence[Any]]) -> None:
    """Write a table as CSV, the names of its columns first."""
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)


def write_messages(path: Path) -> dict[str, str]:
    """Write the messages as CSV without their labels; the label of each by its id."""
    found = messages()
    write_table(path, [["id", "text"], *([f"m{k}", text] for k, (text, _) in enumerate(found))])
    return {f"m{k}": label for k, (_, label) in enumerate(found)}


def choose(at: Seat, path: Path) -> None:
    """Choose the file."""
    with at.page.expect_file_chooser() as chosen:
        at.press(at.page.get_by_role("button", name="Choose a file"))
    chosen.value.set_files(path)


def open_data(at: Seat, path: Path) -> None:
    """Choose the file and use its documents."""
    choose(at, path)
    at.press(at.page.get_by_role("button", name="Use these documents"))
    at.page.wait_for_selector("article .document")


def add_classes(at: Seat, names: Sequence[str] = CLASSES) -> None:
    """Add classes at once; of two and more the digits are answers then."""
    at.type(at.page.get_by_label("Name of a new class"), ", ".join(names))
    at.page.keyboard.press("Enter")


def answer(at: Seat, keys: Iterable[str] | Callable[[str], Iterable[str]]) -> str:
    """Answer the next document by keys, which may follow from its id; its id."""
    at.page.wait_for_selector(".answer")
    at.page.wait_for_selector("article .document")
    id = at.page.inner_text("article .clip")
    for key in keys(id) if callable(keys) else keys:
        at.page.keyboard.press(key)
    at.page.wait_for_function(NEXT, arg=id)
    return id


def label(at: Seat, truth: dict[str, str], count: int) -> list[str]:
    """Answer the next documents by their keys; their ids."""
    return [answer(at, lambda id: str(1 + CLASSES.index(truth[id]))) for _ in range(count)]


def dataset_of(service: Service) -> str:
    """Id of the data that were sent last."""
    return str(service.get("/v1/datasets")["datasets"][0]["id"])


def summary_of(service: Service) -> Any:
    """Summary of the answers to the data that were sent last."""
    return service.get(f"/v1/datasets/{dataset_of(service)}/annotations/summary")


def answers_of(service: Service) -> Any:
    """The answers to the data that were sent last, as the log has them."""
    return service.get(f"/v1/datasets/{dataset_of(service)}/annotations?limit=500")["annotations"]


def trained(at: Seat) -> None:
    """Wait until a version stands beside the seat."""
    at.page.get_by_role("link", name="Version").wait_for(timeout=HANG * 1000)


def train_on_answers(at: Seat, folder: Path, truth: dict[str, str]) -> list[str]:
    """Answer 25 of the messages, and wait for the model; the ids that were answered."""
    open_data(at, folder / "messages.csv")
    add_classes(at)
    answered = label(at, truth, 25)
    trained(at)
    return answered


def read_by_the_model(at: Seat) -> None:
    """Wait for a version, and have it choose the order."""
    trained(at)
    at.reach(at.page.locator("[name=mode]"))
    at.page.keyboard.press("ArrowDown")
    at.leave_field()
    at.page.get_by_text("the model:").wait_for()
    check_accessible(at)


def answer_sample(at: Seat, answers: dict[str, str], count: int) -> None:
    """Answer the sample of an audit, of so many documents, by the answer to each text."""
    for k in range(count):
        at.page.wait_for_function(
            "wanted => document.querySelector('.bar-text')?.innerText === wanted",
            arg=f"{k} of {count}",
            timeout=HANG * 1000,
        )
        text = at.page.text_content("article .document") or ""
        at.page.keyboard.press(str(1 + CLASSES.index(answers[text])))


def saved(at: Seat, count: int) -> None:
    at.page.wait_for_function(
        "n => document.querySelector('#saved')?.matches(`[data-saved='${n}'][data-waiting='0']`)",
        arg=count,
        timeout=HANG * 1000,
    )


def check_accessible(at: Seat) -> None:
    """Axe finds nothing serious in the view."""
    found: dict[str, Any] = Axe().run(at.page).response
    serious = [
        (each["id"], [node["html"] for node in each["nodes"][:3]])
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
    ]
    assert serious == []
