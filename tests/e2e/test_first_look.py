"""The view of clusters, in a real browser."""

import re
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, Route

from tests.e2e.browser import NEEDS_CHROMIUM, Seat
from tests.e2e.person import check_accessible, dataset_of, open_data, write_table
from tests.e2e.service import Service
from tests.waiting import HANG, until

pytestmark = NEEDS_CHROMIUM


def test_clusters_are_named_joined_and_split(at: Seat, service: Service, tmp_path: Path, page: Page) -> None:
    """A first look without a label: two clusters of one name are confirmed together, and one is split into parts.

    Names stay with the look that they were given in, and are the same for others. A cluster without documents is not
    shown, and a warning says so.
    """
    topics = ("cup match goal team", "bank bond market share", "rain cloud storm wind", "bread flour oven salt")
    write_table(
        tmp_path / "topics.csv",
        [["id", "text"], *([f"d{k}", f"{topics[k % 4]} w{k % 7}"] for k in range(80))],
    )
    open_data(at, tmp_path / "topics.csv")
    dataset = dataset_of(service)  # a split sends data, too
    at.view("Clusters")
    page.get_by_label("How many").fill("3")
    at.press(page.get_by_role("button", name="Look", exact=True))
    fields = page.locator(".clusters input")
    fields.nth(2).wait_for(timeout=HANG * 1000)
    check_accessible(at)
    at.press(page.get_by_role("button", name="Split").first)
    fields.nth(3).wait_for(timeout=HANG * 1000)
    for place, name in enumerate(("chosen", "Chosen ")):  # nobody means two classes by them
        at.type(fields.nth(place), name)
        page.keyboard.press("Tab")
    page.get_by_text("joined with 1 other").first.wait_for()
    page.get_by_label("How many").fill("5")
    at.press(page.get_by_role("button", name="Look again"))
    page.locator("[name=look]").wait_for(timeout=HANG * 1000)
    page.locator("[name=look]").select_option(index=1)
    bob = at.beside()
    bob.page.route(re.compile("/jobs/job-"), with_an_empty_cluster)
    bob.page.locator("[name=look]").select_option(index=1)
    bob.page.get_by_text("joined with 1 other").first.wait_for()
    assert bob.page.locator(".clusters input").count() == 4
    assert bob.page.get_by_text("One cluster is empty").count() == 1
    assert bob.complaints == []
    at.press(page.get_by_role("button", name="Confirm chosen"))
    page.locator(".sheet label").first.wait_for()
    check_accessible(at)
    page.locator("main").focus()
    page.keyboard.press("Enter")
    page.get_by_text("documents confirmed as chosen").first.wait_for()
    until(lambda: service.get(f"/v1/datasets/{dataset}/annotations/summary")["classes"].get("chosen", 0) >= 20)


def with_an_empty_cluster(route: Route) -> None:
    """Answer with the job as it is, and a cluster more."""
    job: dict[str, Any] = (answer := route.fetch()).json()
    empty = {**job["report"]["clusters"][0], "label": 99, "size": 0}
    shown = {"report": {"clusters": [*job["report"]["clusters"], empty]}, "warnings": ["one cluster is empty"]}
    route.fulfill(response=answer, json=job | shown)
