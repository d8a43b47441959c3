"""The page in Firefox, by keys alone: from a file to a version, and through all views without a complaint."""

import os
from pathlib import Path

import pytest

from tests.e2e.firefox import executable, firefox
from tests.e2e.person import CLASSES, summary_of
from tests.e2e.service import Service
from tests.waiting import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        executable() is None and not os.environ.get("REQUIRE_BROWSER"),
        reason="the page is walked through with Firefox: apt-get install firefox-esr",
    ),
]
ANSWERS = 21
_ID = "document.querySelector('article .clip')?.innerText"
VIEWS = (
    *("Clusters", "One class", "Doubts", "Audit", "Documents", "Classes"),
    *("People", "Models", "Try", "Jobs", "Data", "Label"),
)


def test_the_walk_in_firefox(service: Service, tmp_path: Path, truth: dict[str, str]) -> None:
    with firefox(service.url) as window:
        window.until("document.querySelector('#file')")
        window.choose("#file", tmp_path / "messages.csv")
        window.reach("button", "Use these documents")
        window.press("Enter")
        window.until("document.querySelector('article .document')")
        window.reach("[name=new-class]")
        window.press(*", ".join(CLASSES), "Enter")
        window.until("document.querySelectorAll('.answer').length === arguments[0]", len(CLASSES))
        for _ in range(ANSWERS):
            id = window.run(f"return {_ID}")
            window.press(str(1 + CLASSES.index(truth[id])))
            window.until(f"{_ID} && {_ID} !== arguments[0]", id)
        until(lambda: summary_of(service)["labeled"] == ANSWERS)
        window.until("document.querySelector('.side a[href^=\"#/model/\"]')")
        for name in VIEWS:
            window.reach("nav a", name)
            window.press("Enter")
            window.until("document.querySelector('nav [aria-current]')?.innerText === arguments[0]", name)
            window.until(
                "document.querySelector('h1') && !document.querySelector('main').innerText.includes('Loading')"
            )
            assert window.run("return document.documentElement.scrollWidth <= innerWidth"), name
        assert window.run("return window.complaints") == []
