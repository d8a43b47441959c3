"""Two people at one dataset: one is offline for a while, the service is killed and a page loaded anew three times, and
they disagree on a tenth.
"""

from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.browser import NEEDS_CHROMIUM, Seat, seat
from tests.e2e.person import (
    ALL_SAVED,
    CLASSES,
    add_classes,
    answer_sample,
    answers_of,
    check_accessible,
    dataset_of,
    label,
    open_data,
    summary_of,
    write_table,
)
from tests.e2e.service import Service
from tests.waiting import HANG, until

pytestmark = NEEDS_CHROMIUM
SAMPLE, DISPUTED = 50, 5
OFFLINE = 8


def named(at: Seat, name: str) -> None:
    at.type(at.page.get_by_label("Your name"), name)
    at.page.keyboard.press("Enter")
    at.leave_field()


def test_no_answer_is_lost_and_one_truth_is_left(service: Service, tmp_path: Path, truth: dict[str, str]) -> None:
    with seat(service.url) as ann:
        open_data(ann, tmp_path / "messages.csv")
        add_classes(ann)
        named(ann, "ann")
        bob = ann.beside()
        named(bob, "bob")
        answered = [*label(bob, truth, 2), *label(ann, truth, 5)]
        bob.page.context.set_offline(True)
        answered += label(bob, truth, OFFLINE)
        bob.page.get_by_text("Nothing is lost").wait_for()
        for _ in range(3):
            service.kill("api")
            answered += label(ann, truth, 3)
            until(lambda: service.parts("api") and service.client.get("/v1/health/live").is_success)
            ann.page.reload()
        bob.page.context.set_offline(False)
        for at in (ann, bob):
            at.page.wait_for_function(ALL_SAVED, timeout=HANG * 1000)
        dataset = f"/v1/datasets/{dataset_of(service)}"
        entries = answers_of(service)
        # nobody gets what the other has before the eyes
        assert Counter(each["document"] for each in entries) == Counter(answered) == dict.fromkeys(answered, 1)
        assert Counter(each["by"] for each in entries) == {"ann": 14, "bob": 2 + OFFLINE}

        ann.view("Audit")
        ann.press(ann.page.get_by_role("button", name=f"Draw {SAMPLE}"))
        bob.view("Audit")
        for at in (ann, bob):  # who comes when the other has answered sees what is still open
            at.page.get_by_text(f"0 of {SAMPLE}", exact=True).wait_for()
        drawn = service.get(f"{dataset}/audits")["audits"][0]["documents"]
        found = service.get(f"{dataset}/documents?limit={SAMPLE}&ids={','.join(drawn)}")["documents"]
        own = {each["text"]: truth[each["id"]] for each in found}
        texts = [each["text"] for each in found]
        once = [text for text in texts if texts.count(text) == 1]  # an answer is found by its text
        wrong = {text: next(each for each in CLASSES if each != own[text]) for text in once[:DISPUTED]}
        answer_sample(ann, own, SAMPLE)
        answer_sample(bob, own | wrong, SAMPLE)
        settle(ann, service, dataset, truth)


SAME = {f"m{k}": "ham" for k in range(12)}
"""Documents that are much the same, and their label."""


@pytest.fixture
def ann(at: Seat, tmp_path: Path) -> Seat:
    """A person at a few documents."""
    write_table(tmp_path / "few.csv", [["id", "text"], *([id, f"see you at home {id}"] for id in SAME)])
    open_data(at, tmp_path / "few.csv")
    add_classes(at)
    named(at, "ann")
    at.view("People")
    return at


def test_who_has_answered_the_own_share_is_told_so(service: Service, ann: Seat) -> None:
    for person in ("ann", "bob"):
        ann.type(ann.page.get_by_label("Person", exact=True), person)
        ann.page.keyboard.press("Enter")
        ann.page.get_by_label(f"Parts of {person}").wait_for()
    check_accessible(ann)
    path = f"/v1/datasets/{dataset_of(service)}"
    until(lambda: service.get(path)["shares"] == {"ann": 1, "bob": 1})
    own = [each["id"] for each in service.get(f"{path}/documents?share=ann")["documents"]]
    ann.view("Label")
    answered = label(ann, SAME, len(own) - 1)
    assert {*answered} < {*own} < {*SAME}
    ann.page.keyboard.press("1")
    ann.page.get_by_role("heading", name="Your share is answered").wait_for()
    ann.page.get_by_text(f"{len(SAME) - len(own)} documents in the shares of others are").wait_for()


def test_what_everybody_answers_is_compared_and_settled(service: Service, ann: Seat) -> None:
    """Two people answer it, each without seeing what the other said. One settles what they differ on, and changes what
    they agreed on."""
    ann.type(ann.page.get_by_label("Everybody answers"), "3")
    ann.page.keyboard.press("Enter")
    ann.page.get_by_role("region", name="Messages").get_by_text("Everybody answers 3 documents").wait_for()
    path = f"/v1/datasets/{dataset_of(service)}"
    ann.view("Label")
    bob = ann.beside()
    named(bob, "bob")
    agreed, _, differing = label(ann, SAME, 3)
    assert label(bob, SAME, 2)[0] == agreed
    bob.page.keyboard.press("2")
    # the rest is claimed for ann
    bob.page.get_by_role("heading", name="Others have the last documents").wait_for()
    until(lambda: summary_of(service)["overlap_answered"] == {"ann": 3, "bob": 3})
    bob.view("People")
    bob.page.get_by_text("agree on 2 (67%)").wait_for()
    check_accessible(bob)
    bob.press(bob.page.get_by_role("link", name="Settle 1 document"))
    bob.press(bob.page.get_by_role("button", name=f"Read {differing}", exact=True))
    bob.page.get_by_text("ann: ham").first.wait_for()
    check_accessible(bob)
    bob.page.keyboard.press("1")
    until(lambda: service.get(f"{path}/documents?ids={differing}")["documents"][0]["label"] == "ham")
    assert service.get(f"{path}/documents?ids={differing}")["documents"][0]["people"] == {"ann": "ham", "bob": "ham"}
    bob.page.get_by_label("people disagree").uncheck()
    bob.page.get_by_label(f"Label of {agreed}", exact=True).select_option(label="spam")
    until(lambda: service.get(f"{path}/documents?ids={agreed}")["documents"][0]["label"] == "spam")
    assert bob.complaints == []


def settle(at: Seat, service: Service, dataset: str, truth: dict[str, str]) -> None:
    """Walk through the documents that are disputed, and leave one label to each."""
    until(lambda: summary_of(service)["compared"] == SAMPLE)
    assert summary_of(service)["agreed"] == SAMPLE - DISPUTED
    at.view("People")
    at.page.get_by_text(f"agree on {SAMPLE - DISPUTED} (90%)").wait_for()
    at.press(at.page.get_by_role("link", name=f"Settle {DISPUTED} documents"))
    at.page.get_by_text(f"{DISPUTED} documents", exact=True).wait_for()
    disputed = service.get(f"{dataset}/documents?disagreement=true")["documents"]
    at.press(at.page.get_by_role("button", name=f"Read {disputed[0]['id']}", exact=True))
    for each in disputed:
        at.page.get_by_role("dialog", name=f"Document {each['id']}", exact=True).wait_for()
        at.page.keyboard.press(str(1 + CLASSES.index(truth[each["id"]])))
    at.page.wait_for_function(ALL_SAVED, timeout=HANG * 1000)
    settled = service.get(f"{dataset}/documents?limit={SAMPLE}&ids={','.join(each['id'] for each in disputed)}")[
        "documents"
    ]
    assert {each["id"]: each["label"] for each in settled} == {each["id"]: truth[each["id"]] for each in settled}
    assert at.complaints == [] or all("ERR_" in each or "Failed to load" in each for each in at.complaints)
