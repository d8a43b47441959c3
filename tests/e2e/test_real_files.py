"""From a file to a file by the page alone, with real texts.

``HALFMOON_PICTURES`` names a folder for a picture of each step.
"""

import csv
import os
import time
from pathlib import Path

import pytest

from benchmarks.data import FOLDER, texts
from tests.e2e.browser import NEEDS_CHROMIUM, Seat, seat
from tests.e2e.person import ALL_SAVED, NEXT, open_data, write_table
from tests.e2e.service import Service
from tests.waiting import HANG

SAMPLE = 50
BY_PICTURES = pytest.mark.skipif("HALFMOON_PICTURES" not in os.environ, reason="one set shows the way, three the views")
SHOWN = "() => ![...document.querySelectorAll('main .quiet')].some((each) => /^[A-Z][^.]* …$/m.test(each.innerText))"
"""Nothing says that it is being fetched."""
pytestmark = [
    *NEEDS_CHROMIUM,
    pytest.mark.data,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="it labels real texts, which HALFMOON_DATA names"),
]


class Walk:
    """A person at the seat who knows the label of each text."""

    def __init__(self, at: Seat, name: str, truth: dict[str, str]) -> None:
        self.at, self.page, self.name, self.truth = at, at.page, name, truth
        self.step = 0

    def picture(self, view: str) -> None:
        """Photograph the view, where somebody wants to look at it."""
        self.step += 1
        if folder := os.environ.get("HALFMOON_PICTURES"):
            self.page.screenshot(path=Path(folder) / f"{self.name}-{self.step:02}-{view}.png")

    def go(self, view: str) -> None:
        """Go to a view by its link, and wait until all of it is there."""
        self.page.get_by_role("navigation").get_by_role("link", name=view, exact=True).click()
        self.page.locator("nav [aria-current=page]", has_text=view).wait_for()
        self.page.wait_for_function(SHOWN)

    def answer(self, label: str) -> None:
        self.page.locator(".answers button", has=self.page.get_by_text(label, exact=True)).first.click()

    def label(self, count: int) -> None:
        for _ in range(count):
            self.page.wait_for_selector("article .document")
            id = self.page.inner_text("article .clip")
            self.answer(self.truth[id])
            self.page.wait_for_function(NEXT, arg=id)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("sms-spam", 40),
        pytest.param("mr-sentences", 60, marks=BY_PICTURES),
        pytest.param("reuters-r8", 80, marks=BY_PICTURES),
    ],
)
def test_a_file_goes_in_and_comes_out_labeled(tmp_path: Path, name: str, count: int) -> None:
    documents, labels = texts(name)
    truth = {f"{name}-{k}": str(label) for k, label in enumerate(labels)}
    labels_of = dict(zip(documents, truth.values(), strict=True))
    write_table(tmp_path / f"{name}.csv", [["id", "text"], *zip(truth, documents, strict=True)])
    with Service(tmp_path / "data", tmp_path / "log") as service, seat(service.url, accept_downloads=True) as at:
        began = time.monotonic()
        page, walk = at.page, Walk(at, name, truth)
        walk.picture("start")
        open_data(at, tmp_path / f"{name}.csv")
        page.get_by_role("button", name="I work alone").click()
        for each in dict.fromkeys(truth.values()):
            page.get_by_label("Name of a new class").fill(each)
            page.keyboard.press("Enter")
            page.locator(".answers button", has=page.get_by_text(each, exact=True)).first.wait_for()
        at.leave_field()
        walk.picture("classes")
        walk.label(count)
        page.get_by_role("link", name="Version").wait_for(timeout=HANG * 1000)
        walk.label(5)
        walk.picture("label")
        for view in ("One class", "Doubts", "Documents", "Classes", "People"):
            walk.go(view)
            walk.picture(view.replace(" ", "-").lower())
        walk.go("Audit")
        at.press(page.get_by_role("button", name=f"Draw {SAMPLE}"))
        for k in range(SAMPLE):
            page.wait_for_function(
                "text => document.querySelector('.bar-text')?.innerText === text", arg=f"{k} of {SAMPLE}"
            )
            if k == 1:
                walk.picture("audit")
            walk.answer(labels_of[page.text_content("article .document") or ""])
        page.wait_for_selector("#report td", timeout=HANG * 1000)
        page.wait_for_function(ALL_SAVED)
        walk.picture("audited")
        with page.expect_download() as saved:
            at.press(page.get_by_role("button", name="Download", exact=True).first)
        with Path(saved.value.path()).open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
        took = time.monotonic() - began
        for view in ("Models", "Try", "Jobs", "Data"):
            walk.go(view)
            walk.picture(view.lower())
        assert at.complaints == []
    assert {each["id"] for each in rows} == {*truth}
    answered = [each for each in rows if each["label"]]
    assert len(answered) == count + 5 + SAMPLE
    assert all(each["label"] == truth[each["id"]] for each in answered)
    right = sum(each["predicted"] == truth[each["id"]] for each in rows) / len(rows)
    print(f"{name}: {took:.0f} s, {right:.1%} of {len(rows):,} right")
    assert right > max(list(truth.values()).count(each) for each in set(truth.values())) / len(rows)
