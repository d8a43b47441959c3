"""Two people at one dataset: one is offline for a while, the service is killed thrice, and they disagree on a tenth."""

from collections import Counter
from pathlib import Path
from typing import Any

from tests.e2e.browser import NEEDS_CHROMIUM, Seat, seat
from tests.e2e.person import ALL_SAVED, CLASSES, add_classes, dataset_of, label, label_any, open_data
from tests.e2e.service import Service
from tests.there import there
from tests.waiting import HANG, until

pytestmark = NEEDS_CHROMIUM
SAMPLE, DISPUTED = 50, 5
OFFLINE = 8


def named(at: Seat, name: str) -> None:
    at.type(at.page.get_by_label("Your name"), name)
    at.page.keyboard.press("Enter")
    at.leave_field()


def answer_sample(at: Seat, answers: dict[str, str]) -> None:
    """Answer the sample of the audit by the answer to each text."""
    for k in range(SAMPLE):
        wanted = f"{k} of {SAMPLE}"
        at.page.wait_for_function(
            "wanted => document.querySelector('.bar-text')?.innerText === wanted", arg=wanted, timeout=HANG * 1000
        )
        text = at.page.text_content("article .document") or ""
        at.page.keyboard.press(str(1 + CLASSES.index(answers[text])))


def test_no_answer_is_lost_and_one_truth_is_left(service: Service, tmp_path: Path, truth: dict[str, str]) -> None:
    with seat(service.url) as ann:
        open_data(ann, tmp_path / "messages.csv")
        add_classes(ann)
        named(ann, "ann")
        other = there(ann.page.context.browser).new_context()
        bob = Seat(other.new_page())
        bob.page.goto(ann.page.url)
        named(bob, "bob")
        answered = [*label(bob, truth, 2), *label(ann, truth, 5)]
        other.set_offline(True)
        answered += label(bob, truth, OFFLINE)
        bob.page.get_by_text("Nothing is lost").wait_for()
        for _ in range(3):
            service.kill("api")
            answered += label(ann, truth, 3)
            until(lambda: service.parts("api") and service.client.get("/v1/health/live").is_success)
        other.set_offline(False)
        for at in (ann, bob):
            at.page.wait_for_function(ALL_SAVED, timeout=HANG * 1000)
        dataset = f"/v1/datasets/{dataset_of(service)}"
        entries = service.get(f"{dataset}/annotations?limit=500")["annotations"]
        assert Counter(each["document"] for each in entries) == Counter(answered)
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
        answer_sample(ann, own)
        answer_sample(bob, own | wrong)
        settle(ann, service, dataset, truth)


def test_who_has_answered_the_own_share_is_told_so(service: Service, tmp_path: Path) -> None:
    lines = ["id,text", *(f"m{k},see you at home {k}" for k in range(12))]
    (tmp_path / "few.csv").write_text("\n".join(lines))
    with seat(service.url) as at:
        page = at.page
        open_data(at, tmp_path / "few.csv")
        add_classes(at)
        named(at, "ann")
        path = f"/v1/datasets/{dataset_of(service)}"
        service.client.patch(path, json={"shares": {"ann": 1, "bob": 1}})
        own = service.get(f"{path}/documents?share=ann")["total"]
        page.reload()
        label_any(at, own - 1)
        page.keyboard.press("1")
        page.get_by_role("heading", name="Your share is answered").wait_for()
        page.get_by_text(f"{12 - own} documents in the shares of others are").wait_for()


def settle(at: Seat, service: Service, dataset: str, truth: dict[str, str]) -> None:
    """Walk through the documents that are disputed, and leave one label to each."""

    def summary() -> Any:
        return service.get(f"{dataset}/annotations/summary")

    until(lambda: summary()["compared"] == SAMPLE)
    assert summary()["agreed"] == SAMPLE - DISPUTED
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
    ids = ",".join(each["id"] for each in disputed)
    settled = service.get(f"{dataset}/documents?limit={SAMPLE}&ids={ids}")["documents"]
    assert {each["id"]: each["label"] for each in settled} == {each["id"]: truth[each["id"]] for each in settled}
    assert at.complaints == [] or all("ERR_" in each or "Failed to load" in each for each in at.complaints)
