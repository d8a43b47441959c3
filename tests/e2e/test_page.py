"""The walk of a person through the page, in a real browser and by the keyboard alone."""

import csv
import gzip
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.e2e.browser import Seat, executable, seat
from tests.e2e.service import Service
from tests.there import there
from tests.waiting import HANG, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        executable() is None and not os.environ.get("REQUIRE_BROWSER"),
        reason="the page is walked through with Chromium: install it, or set HALFMOON_BROWSER",
    ),
]
CLASSES = ["ham", "spam"]
ALL_SAVED = "() => document.querySelector('#saved')?.innerText === 'All saved'"
NEXT = "id => document.querySelector('article .clip') && document.querySelector('article .clip')?.innerText !== id"
_HAM = [
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
]
_SPAM = [
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
]
_BOTH = ["you", "call", "now", "your", "to", "a", "the", "and", "is", "for", "have", "me", "we", "just", "get"]


def messages() -> list[tuple[str, str]]:
    """Texts with their labels: those of sms-spam where the data are there, else some like them."""
    data = os.environ.get("HALFMOON_DATA")
    path = Path(data or "") / "sms-spam/docs.jsonl.gz"
    if data and path.is_file():
        return [(each["text"], each["label"]) for each in map(json.loads, gzip.open(path, "rt"))]
    chance = np.random.default_rng(5)
    kinds = chance.choice(CLASSES, 600, p=[0.7, 0.3]).tolist()
    words = {"ham": _HAM, "spam": _SPAM}
    return [
        (" ".join([*chance.choice(words[kind], 5), *chance.choice(_BOTH, 4)]) + f" {k}", kind)
        for k, kind in enumerate(kinds)
    ]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One service for all people: each has data of their own."""
    folder = tmp_path_factory.mktemp("page")
    with Service(folder / "data", folder / "log") as service:
        yield service


@pytest.fixture
def truth(tmp_path: Path) -> dict[str, str]:
    """The label of each document of ``messages.csv``, which does not have it."""
    found = messages()
    with (tmp_path / "messages.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["id", "text"], *([f"m{k}", text] for k, (text, _) in enumerate(found))])
    return {f"m{k}": label for k, (_, label) in enumerate(found)}


def open_data(at: Seat, path: Path) -> None:
    """Choose the file and use its documents."""
    with at.page.expect_file_chooser() as chosen:
        at.press(at.page.get_by_role("button", name="Choose a file"))
    chosen.value.set_files(path)
    at.press(at.page.get_by_role("button", name="Use these documents"))
    at.page.wait_for_selector("article .document")


def add_classes(at: Seat) -> None:
    for name in CLASSES:
        at.type(at.page.get_by_label("Name of a new class"), name)
        at.page.keyboard.press("Enter")
    at.leave_field()


def label(at: Seat, truth: dict[str, str], count: int) -> list[str]:
    """Answer the next documents by their keys; their ids."""
    answered = []
    for _ in range(count):
        at.page.wait_for_selector("article .document")
        id = at.page.inner_text("article .clip")
        at.page.keyboard.press(str(1 + CLASSES.index(truth[id])))
        at.page.wait_for_function(NEXT, arg=id)
        answered.append(id)
    return answered


def label_any(at: Seat, count: int) -> None:
    """Give the first class to the next documents."""
    for _ in range(count):
        at.page.wait_for_selector("article .document")
        id = at.page.inner_text("article .clip")
        at.page.keyboard.press("1")
        at.page.wait_for_function(NEXT, arg=id)


def dataset_of(service: Service) -> str:
    """Id of the data that were sent last."""
    return str(service.get("/v1/datasets")["datasets"][0]["id"])


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


def audit(at: Seat, truth: dict[str, str], texts: dict[str, str], count: int) -> None:
    at.press(at.page.get_by_role("button", name=f"Draw {count}"))
    for k in range(count):
        at.page.wait_for_function(
            "text => document.querySelector('.bar-text')?.innerText === text", arg=f"{k} of {count}"
        )
        text = at.page.text_content("article .document") or ""
        at.page.keyboard.press(str(1 + CLASSES.index(truth[texts[text]])))
    at.page.wait_for_selector("#report td")


def publish(at: Seat, service: Service) -> None:
    """Compare the versions, point the alias to the first, and look at what it gets wrong."""
    page = at.page
    at.view("Models")
    page.get_by_role("columnheader", name="v1").wait_for()
    at.press(page.get_by_role("button", name="Make version 1 live"))
    page.get_by_text("live", exact=True).nth(1).wait_for()
    check_accessible(at)
    at.press(page.get_by_role("link", name="Version 1", exact=True))
    page.get_by_role("heading", name="Worst mistakes").wait_for()
    page.get_by_role("heading", name="Figures on labels that it was not told").wait_for()
    check_accessible(at)
    link = page.get_by_role("link", name="All figures and plots").get_attribute("href")
    assert "<svg" in service.client.get(f"/{link}", headers={"accept": "text/html"}).text


def test_the_walk(service: Service, tmp_path: Path, truth: dict[str, str]) -> None:
    texts = {text: f"m{k}" for k, (text, _) in enumerate(messages())}
    with seat(service.url) as at:
        page = at.page
        check_accessible(at)
        open_data(at, tmp_path / "messages.csv")
        add_classes(at)
        answered = label(at, truth, 40)
        saved(at, 40)
        page.keyboard.press("u")
        page.wait_for_function(f"() => document.querySelector('article .clip')?.innerText === '{answered[-1]}'")
        label(at, truth, 1)
        check_accessible(at)
        page.get_by_role("link", name="Version").wait_for(timeout=HANG * 1000)
        at.reach(page.locator("[name=mode]"))
        page.keyboard.press("ArrowDown")
        at.leave_field()
        page.get_by_text("the model:").wait_for()
        check_accessible(at)

        at.view("Doubts")
        page.get_by_role("heading", name="Doubts").wait_for()
        check_accessible(at)

        at.view("One class")
        page.wait_for_selector(".sheet li")
        confirmed = len(page.query_selector_all(".sheet li"))
        check_accessible(at)
        at.press(page.locator(".sheet input").first, "Space")
        page.wait_for_selector(".sheet .out")
        at.press(page.get_by_role("button", name=f"{confirmed - 1} documents as"))
        page.wait_for_function("() => document.querySelectorAll('.sheet .out').length === 0")

        at.view("Audit")
        audit(at, truth, texts, 50)
        check_accessible(at)
        assert page.locator("#report tbody tr td").nth(1).inner_text().endswith("%")

        publish(at, service)

        at.view("Try")
        at.type(page.get_by_role("textbox", name="Text"), "urgent: claim your free prize, win cash")
        page.locator("#answer h2").first.wait_for()
        check_accessible(at)
        at.view("Jobs")
        page.get_by_text("succeeded").first.wait_for()
        check_accessible(at)

        assert at.complaints == []
        dataset = dataset_of(service)
        summary = service.get(f"/v1/datasets/{dataset}/annotations/summary")
        assert summary["labeled"] == 40 + confirmed - 1 + 50
        [model] = [each for each in service.get("/v1/models")["models"] if each["aliases"]]
        assert model["aliases"] == {"live": 1}


def test_two_people_without_names_get_no_document_twice(
    service: Service, tmp_path: Path, truth: dict[str, str]
) -> None:
    lines = (tmp_path / "messages.csv").read_text().splitlines()
    (tmp_path / "few.csv").write_text("\n".join([line for line in lines if '"' not in line][:41]) + "\n")
    with seat(service.url) as ann:
        open_data(ann, tmp_path / "few.csv")
        browser = there(ann.page.context.browser)
        bob = Seat(browser.new_context().new_page())
        bob.page.goto(ann.page.url)
        bob.page.wait_for_selector("article .document")
        for at in (ann, bob):
            add_classes(at)
        answered = [id for at in (ann, bob) for id in label(at, truth, 9)]
        for at in (ann, bob):
            saved(at, 9)
        assert len({*answered}) == 18
        assert ann.complaints + bob.complaints == []


def test_answers_survive_a_killed_gateway_and_a_reload(service: Service, tmp_path: Path, truth: dict[str, str]) -> None:
    with seat(service.url) as at:
        open_data(at, tmp_path / "messages.csv")
        add_classes(at)
        answered = label(at, truth, 30)
        service.kill("api")
        answered += label(at, truth, 5)
        at.page.wait_for_function("() => /Saving|Nothing is lost/.test(document.querySelector('#saved')?.innerText)")
        until(lambda: service.client.get("/v1/health/live").is_success if service.parts("api") else False)
        at.page.reload()
        answered += label(at, truth, 35)
        service.kill("api")
        answered += label(at, truth, 5)
        at.page.wait_for_function(ALL_SAVED, timeout=HANG * 1000)
        dataset = dataset_of(service)
        entries = service.get(f"/v1/datasets/{dataset}/annotations?limit=500")["annotations"]
        assert Counter(each["document"] for each in entries) == Counter(answered)
        assert all(each["label"] == truth[each["document"]] for each in entries)


def test_what_a_person_must_know_of_damage_and_mistakes(service: Service, tmp_path: Path) -> None:
    """A damaged model stops nobody: random documents come, and the page says why.

    So it says of labels that differ in blanks alone.
    """
    rows = [[f"m{k}", text, "" if k > 9 else label + " " * (k == 9)] for k, (text, label) in enumerate(messages()[:60])]
    with (tmp_path / "blanks.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["id", "text", "label"], *rows])
    with seat(service.url) as at:
        open_data(at, tmp_path / "blanks.csv")
        at.page.get_by_text("differ in case or spaces alone").wait_for()
        dataset = dataset_of(service)
        job = service.wait_for(
            service.post("/v1/jobs", {"model": "blanks", "dataset": dataset, "algorithm": "svm"})["id"]
        )
        model = next((service.data / "store/jobs" / job["id"]).glob("attempts/*/model.safetensors"))
        model.write_bytes(model.read_bytes()[:-1])
        at.page.reload()
        label_any(at, 8)
        at.page.get_by_text("The model can suggest nothing, so these documents are random.").wait_for()
        at.page.get_by_role("link", name="What helps").click()
        at.page.get_by_role("heading", name="A stored file is damaged").wait_for()


def test_documents_of_any_content(service: Service, tmp_path: Path) -> None:
    """Markup is text, right-to-left text is read from the right, texts of 1 MB fit their card, and 200 classes are
    found by typing.
    """
    script = "<script>document.title = 'taken'</script><img src=x onerror=\"document.title = 'taken'\">"
    texts = {"markup": script, "hebrew": "שלום עולם", "long": "x" * 1_000_000, "words": "word " * 200_000}
    labels = [f"class {k:03d} <b>" for k in range(200)]
    with (tmp_path / "any.csv").open("w", newline="") as file:
        rows = [[id, text, ""] for id, text in texts.items()] + [
            [f"d{k}", f"text {k}", label] for k, label in enumerate(labels)
        ]
        csv.writer(file).writerows([["id", "text", "label"], *rows])
    with seat(service.url, viewport={"width": 360, "height": 740}) as at:
        page = at.page
        open_data(at, tmp_path / "any.csv")
        seen = set()
        for k in range(len(texts)):
            id = page.inner_text("article .clip")
            assert (page.text_content("article .document") or "").startswith(texts[id][:1000])
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert page.evaluate("(paper => paper.scrollWidth <= paper.clientWidth)(document.querySelector('.paper'))")
            if id == "hebrew":
                assert page.evaluate("getComputedStyle(document.querySelector('article .document')).direction") == "rtl"
            seen.add(id)
            page.keyboard.type(f"{k + 41:03d}")
            page.keyboard.press("Enter")
            at.leave_field()
            saved(at, k + 1)
        assert seen == set(texts)
        page.get_by_text("All documents are answered").wait_for()
        assert page.title() == "Label · Halfmoon"
        assert at.complaints == []
        entries = service.get(f"/v1/datasets/{dataset_of(service)}/annotations")["annotations"]
        assert [each["label"] for each in entries] == labels[41:45]


def test_classes_that_are_numbers(service: Service, tmp_path: Path) -> None:
    """A table has texts, also where they look like numbers.

    A key that is held down answers once, and a reload forgets nothing that was answered.
    """
    with (tmp_path / "numbers.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [["id", "text", "label"], *([f"n{k}", f"text {k}", k % 2 if k < 4 else ""] for k in range(40))]
        )
    with seat(service.url) as at:
        page = at.page
        open_data(at, tmp_path / "numbers.csv")
        page.get_by_role("button", name="2 1", exact=True).wait_for()
        first = page.inner_text("article .clip")
        page.keyboard.press("1")
        page.wait_for_function(NEXT, arg=first)
        second = page.inner_text("article .clip")
        for _ in range(3):
            page.keyboard.down("2")
        page.wait_for_function(NEXT, arg=second)
        saved(at, 2)
        page.reload()
        page.wait_for_selector("article .document")
        page.keyboard.press("u")
        page.wait_for_function(f"() => document.querySelector('article .clip')?.innerText === '{second}'")
        saved(at, 1)
        entries = service.get(f"/v1/datasets/{dataset_of(service)}/annotations")["annotations"]
        assert [(each["document"], each["action"], each["label"]) for each in entries] == [
            (first, "label", "0"),
            (second, "label", "1"),
            (second, "undo", None),
        ]
        assert at.complaints == []


def test_from_a_file_to_a_file(service: Service, tmp_path: Path, truth: dict[str, str]) -> None:
    """A person drops a CSV, labels, and takes a CSV of all documents with their labels and predictions along.

    Nothing but what stands on the page is used.
    """
    with seat(service.url, accept_downloads=True) as at:
        page = at.page
        open_data(at, tmp_path / "messages.csv")
        at.type(page.get_by_label("Name of a new class"), ", ".join(CLASSES))
        page.keyboard.press("Enter")
        answered = label(at, truth, 25)
        page.get_by_role("link", name="Version").wait_for(timeout=HANG * 1000)
        with page.expect_download() as download:
            at.press(page.get_by_role("button", name="Download"))
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        assert path.name == "messages.csv" or path.suffix == ".csv"
        with path.open(newline="") as file:
            rows = {row["id"]: row for row in csv.DictReader(file)}
        assert rows.keys() == truth.keys()
        assert {id for id, row in rows.items() if row["label"]} == set(answered)
        assert all(rows[id]["label"] == truth[id] for id in answered)
        right = sum(row["predicted"] == truth[id] for id, row in rows.items())
        assert right > 0.85 * len(rows)
        assert all(0.5 <= float(row["probability"]) <= 1 for row in rows.values())
        at.view("Documents")
        at.reach(page.get_by_label("Which documents"))
        page.keyboard.press("ArrowDown")
        at.reach(page.get_by_label("Format"))
        page.keyboard.press("ArrowDown")
        with page.expect_download() as download:
            at.press(page.get_by_role("button", name="Download"))
        assert download.value.suggested_filename.endswith("-labeled.ndjson")
        lines = Path(download.value.path()).read_text().splitlines()
        assert {json.loads(line)["id"] for line in lines} == set(answered)
        assert at.complaints == []


def test_classes_are_the_same_for_all(service: Service, tmp_path: Path, truth: dict[str, str]) -> None:
    """What one person adds, another has with the same key; a class is renamed with all its documents, and back."""
    with seat(service.url) as ann:
        open_data(ann, tmp_path / "messages.csv")
        add_classes(ann)
        label(ann, truth, 6)
        saved(ann, 6)
        browser = ann.page.context.browser
        assert browser is not None
        bob = Seat(browser.new_context().new_page())
        bob.page.goto(ann.page.url)
        for key, name in enumerate(CLASSES, 1):
            bob.page.get_by_role("button", name=f"{key} {name}", exact=True).wait_for()
        dataset = dataset_of(service)
        before = service.get(f"/v1/datasets/{dataset}/annotations/summary")["classes"]
        bob.view("Classes")
        bob.type(bob.page.get_by_label("become"), "good")
        bob.press(bob.page.get_by_role("button", name="Change"))
        bob.page.get_by_text("good now").first.wait_for()
        renamed = {"good" if name == "ham" else name: count for name, count in before.items()}
        assert service.get(f"/v1/datasets/{dataset}/annotations/summary")["classes"] == renamed
        bob.press(bob.page.get_by_role("button", name="Undo"))
        until(lambda: service.get(f"/v1/datasets/{dataset}/annotations/summary")["classes"] == before)
        until(lambda: [e["name"] for e in service.get(f"/v1/datasets/{dataset}/classes")["classes"]] == CLASSES)
        assert ann.complaints + bob.complaints == []


def test_two_people_settle_what_they_disagree_on(service: Service, tmp_path: Path, truth: dict[str, str]) -> None:
    """They see the same audit, differ on some documents, and one of them settles these from the list of disputes."""
    with seat(service.url) as at:
        page = at.page
        open_data(at, tmp_path / "messages.csv")
        add_classes(at)
        dataset = dataset_of(service)
        ids = [f"m{k}" for k in range(10)]
        for by in ("ann", "bob"):
            given = [
                {"id": f"{by}{k}", "document": id, "by": by, "label": truth[id] if by == "ann" or k else "neither"}
                for k, id in enumerate(ids)
            ]
            service.post(f"/v1/datasets/{dataset}/annotations", {"annotations": given})
        at.view("People")
        page.get_by_text("agree on 9 (90%)").wait_for()
        check_accessible(at)
        at.press(page.get_by_role("link", name="Settle 1 document"))
        page.get_by_text("1 document", exact=True).wait_for()
        at.press(page.get_by_role("button", name="Read m0"))
        page.get_by_text("bob: neither").first.wait_for()
        check_accessible(at)
        page.keyboard.press(str(1 + CLASSES.index(truth["m0"])))
        path = f"/v1/datasets/{dataset}/documents?ids=m0"
        until(lambda: service.get(path)["documents"][0]["label"] == truth["m0"])
        assert service.get(path)["documents"][0]["people"] == {"ann": truth["m0"], "bob": "neither", "": truth["m0"]}
        assert at.complaints == []


def test_what_was_confirmed_together_is_taken_back_together(
    service: Service, tmp_path: Path, truth: dict[str, str]
) -> None:
    with seat(service.url) as at:
        page = at.page
        open_data(at, tmp_path / "messages.csv")
        add_classes(at)
        label(at, truth, 25)
        page.get_by_role("link", name="Version").wait_for(timeout=HANG * 1000)
        dataset = dataset_of(service)
        at.view("One class")
        page.wait_for_selector(".sheet li")
        # the class was chosen by the mouse: Enter confirms all the same
        page.get_by_role("button", name="2 spam").click()
        page.get_by_role("button", name="as spam").wait_for()
        page.keyboard.press("Enter")
        page.get_by_text("confirmed as spam").first.wait_for()
        summary = f"/v1/datasets/{dataset}/annotations/summary"
        until(lambda: service.get(summary)["labeled"] > 25)
        page.keyboard.press("u")
        until(lambda: service.get(summary)["labeled"] == 25)
        assert at.complaints == []


VIEWS = ("Data", "Label", "One class", "Doubts", "Audit", "Documents", "Classes", "People", "Models", "Try", "Jobs")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_view_keeps_anybody_out(service: Service, tmp_path: Path, truth: dict[str, str], scheme: Any) -> None:
    """Axe finds nothing at all in any view, light and dark, on a desk, on a phone and magnified."""
    with seat(service.url, color_scheme=scheme) as at:
        page = at.page
        open_data(at, tmp_path / "messages.csv")
        add_classes(at)
        label(at, truth, 25)
        page.get_by_role("link", name="Version").wait_for(timeout=HANG * 1000)
        found = {}
        for width in (1280, 390, 320):
            page.set_viewport_size({"width": width, "height": 800})
            for name in VIEWS:
                at.page.get_by_role("navigation").get_by_role("link", name=name, exact=True).click()
                page.get_by_role("heading", level=1).first.wait_for()
                page.wait_for_load_state("networkidle")
                for each in Axe().run(page).response["violations"]:
                    found[each["id"], name, width] = [node["html"][:200] for node in each["nodes"][:2]]
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (name, width)
        assert found == {}
        assert at.complaints == []
