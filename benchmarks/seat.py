"""Pictures of the page: ``python -m benchmarks.seat`` starts a service, walks through the tour with the sample messages
that the page has, and writes ``docs/seat-light.png`` and ``docs/seat-dark.png``. It needs a browser, as the tests do.
"""

import tempfile
from pathlib import Path

from tests.e2e.browser import Seat, seat
from tests.e2e.person import NEXT
from tests.e2e.service import Service
from tests.waiting import HANG

_ANSWERS = 45
_SIZE = {"width": 1200, "height": 720}


def _photograph(url: str, scheme: str, path: Path) -> None:
    """Label the sample until there is a version, and take the picture of what is next."""
    with seat(url, color_scheme=scheme, viewport=_SIZE, device_scale_factor=1.5) as at:
        page = at.page
        page.get_by_role("button", name="Take a tour").click()
        page.wait_for_selector("article .document")
        page.get_by_role("button", name="End the tour").click()
        page.get_by_role("button", name="I work alone").click()
        page.select_option("[name=mode]", "assisted")
        at.leave_field()
        _answer(at, _ANSWERS)
        page.get_by_role("link", name="Version").wait_for(timeout=HANG * 1000)
        _answer(at, 1)
        while not (page.get_by_text("wavers between").is_visible() and page.query_selector("article mark")):
            _answer(at, 1)
            page.wait_for_timeout(1000)  # the words that speak for it come a moment later
        page.locator(".toast").first.wait_for(state="detached", timeout=HANG * 1000)
        page.screenshot(path=path)


def _answer(at: Seat, count: int) -> None:
    listed = at.page.evaluate("import('./page/view/sample.js').then(({ CLASSES, sample }) => [CLASSES, sample()])")
    keys = {each["id"]: str(1 + listed[0].index(each["about"])) for each in listed[1]}
    for _ in range(count):
        id = at.page.inner_text("article .clip")
        at.page.keyboard.press(keys[id])
        at.page.wait_for_function(NEXT, arg=id)


def main() -> None:
    """Take both pictures, each of a service of its own."""
    for scheme in ("light", "dark"):
        with (
            tempfile.TemporaryDirectory() as folder,
            Service(Path(folder) / "data", Path(folder) / "log", encoder="none") as service,
        ):
            _photograph(service.url, scheme, Path(f"docs/seat-{scheme}.png"))


if __name__ == "__main__":
    main()
