"""A real browser for the tests of the page: found on the machine, never fetched."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, sync_playwright

from tests.there import there

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
SWITCHES = ["--no-sandbox", "--disable-dev-shm-usage"]
"""Of Chromium: a container has neither the rights for its sandbox nor much shared memory."""
_STEPS = 80
_VIOLATIONS = (
    "addEventListener('securitypolicyviolation', (event) => console.error(`policy: "
    "${event.violatedDirective} ${event.blockedURI}`))"
)


def executable() -> str | None:
    """Path of the browser: HALFMOON_BROWSER, else the first of the known names on PATH; None if there is none."""
    named = os.environ.get("HALFMOON_BROWSER")
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


NEEDS_CHROMIUM = [
    pytest.mark.slow,
    pytest.mark.skipif(
        executable() is None and not os.environ.get("REQUIRE_BROWSER"),
        reason="the page is walked through with Chromium: install it, or set HALFMOON_BROWSER",
    ),
]
"""Marks of tests in which a person walks through the page."""


class Seat:
    """A page, its complaints, and the keyboard as the only way to use it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on(
            "console",
            lambda message: self.complaints.append(message.text) if message.type in ("error", "warning") else None,
        )
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.add_init_script(_VIOLATIONS)

    def reach(self, wanted: Locator) -> None:
        """Move the focus to an element by the keyboard; fails if it cannot be reached."""
        wanted.wait_for()
        for _ in range(_STEPS):
            if wanted.evaluate("element => element === document.activeElement"):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"the keyboard does not reach {wanted}")

    def press(self, wanted: Locator, key: str = "Enter") -> None:
        """Press a key on an element."""
        self.reach(wanted)
        self.page.keyboard.press(key)

    def type(self, wanted: Locator, text: str) -> None:
        """Type into a field."""
        self.reach(wanted)
        self.page.keyboard.type(text)

    def view(self, name: str) -> None:
        """Go to a view by its link."""
        self.press(self.page.get_by_role("navigation").get_by_role("link", name=name, exact=True))

    def beside(self) -> "Seat":
        """A seat at the same view in a browser of its own, for another person."""
        other = Seat(there(self.page.context.browser).new_context().new_page())
        other.page.goto(self.page.url)
        return other

    def leave_field(self) -> None:
        """Give the keys back to the view."""
        self.page.evaluate("document.activeElement.blur()")


@contextmanager
def seat(url: str, **context: Any) -> Iterator[Seat]:
    """A seat at the page of a service."""
    found = executable()
    assert found, "there is no browser: install Chromium, or set HALFMOON_BROWSER to the path of one"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=SWITCHES)
        page = browser.new_context(**context).new_page()
        taken = Seat(page)
        page.goto(url)
        page.wait_for_selector("h1")
        yield taken
        browser.close()
