"""The seat for one person and for several, from a file to a file, in a real browser."""

import csv
import json
import re
from pathlib import Path
from typing import Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, Route

from tests.e2e.browser import NEEDS_CHROMIUM, Seat
from tests.e2e.person import (
    CLASSES,
    NEXT,
    add_classes,
    answer,
    answers_of,
    check_accessible,
    choose,
    dataset_of,
    label,
    messages,
    open_data,
    read_by_the_model,
    saved,
    summary_of,
    train_on_answers,
    trained,
    write_table,
)
from tests.e2e.service import Service
from tests.waiting import HANG, until

pytestmark = NEEDS_CHROMIUM


def test_from_a_file_to_a_file(at: Seat, service: Service, tmp_path: Path, truth: dict[str, str], page: Page) -> None:
    """A person drops a CSV, labels, and takes a CSV of all documents with their labels and predictions along.

    Nothing but what stands on the page is used. Whoever opens the data when they have another name has the same model.
    """
    answered = train_on_answers(at, tmp_path, truth)
    with page.expect_download() as download:
        at.press(page.get_by_role("button", name="Download"))
    with Path(download.value.path()).open(encoding="utf-8", newline="") as file:
        # the mark by which Excel knows UTF-8 comes first, since there are other letters than those of ASCII
        rows = {row["\ufeffid"]: row for row in csv.DictReader(file)}
    assert rows.keys() == truth.keys()
    assert {id for id, row in rows.items() if row["label"]} == set(answered)
    assert all(rows[id]["label"] == truth[id] for id in answered)
    assert sum(row["predicted"] == truth[id] for id, row in rows.items()) > 0.85 * len(rows)
    assert all(0.5 <= float(row["probability"]) <= 1 for row in rows.values())
    at.view("Documents")
    at.reach(page.get_by_label("Which documents"))
    page.keyboard.press("ArrowDown")
    at.reach(page.get_by_label("Format"))
    page.keyboard.press("ArrowDown")
    with page.expect_download() as download:
        at.press(page.get_by_role("button", name="Download"))
    assert download.value.suggested_filename.endswith("-labeled.ndjson")
    assert {json.loads(line)["id"] for line in Path(download.value.path()).read_text().splitlines()} == set(answered)
    service.client.patch(f"/v1/datasets/{dataset_of(service)}", json={"name": "mails"})
    other = at.beside()
    other.view("Label")
    trained(other)
    assert "mails" not in {each["name"] for each in service.get("/v1/models")["models"]}, "people share one model"


def test_classes_are_the_same_for_all(at: Seat, service: Service, tmp_path: Path, truth: dict[str, str]) -> None:
    """One person's new class has the same key for another; a class is renamed with all its documents, and back."""
    open_data(at, tmp_path / "messages.csv")
    add_classes(at)
    label(at, truth, 6)
    saved(at, 6)
    bob = at.beside()
    for key, name in enumerate(CLASSES, 1):
        bob.page.get_by_role("button", name=f"{key} {name}", exact=True).wait_for()
    before = summary_of(service)["classes"]
    bob.view("Classes")
    bob.type(bob.page.get_by_label("become"), "good")
    bob.press(bob.page.get_by_role("button", name="Change"))
    bob.page.get_by_text("good now").first.wait_for()
    renamed = {"good" if name == "ham" else name: count for name, count in before.items()}
    assert summary_of(service)["classes"] == renamed
    bob.press(bob.page.get_by_role("button", name="Undo"))
    until(lambda: summary_of(service)["classes"] == before)
    until(lambda: [e["name"] for e in service.get(f"/v1/datasets/{dataset_of(service)}/classes")["classes"]] == CLASSES)
    assert bob.complaints == []


def test_what_was_confirmed_together_is_taken_back_together(
    at: Seat, service: Service, tmp_path: Path, truth: dict[str, str], page: Page
) -> None:
    train_on_answers(at, tmp_path, truth)
    at.view("One class")
    page.wait_for_selector(".sheet li")
    # the class was chosen by the mouse: Enter confirms all the same
    page.get_by_role("button", name="2 spam").click()
    page.get_by_role("button", name="as spam").wait_for()
    page.get_by_role("button", name="Read").first.click()
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")
    page.keyboard.press("Enter")
    page.get_by_text("confirmed as spam").first.wait_for()
    until(lambda: summary_of(service)["labeled"] > 25)
    assert summary_of(service)["drawn"]["found"] > 0, "the likeliest of a class are no sample, and none was doubted"
    page.keyboard.press("u")
    until(lambda: summary_of(service)["labeled"] == 25)


def test_a_table_without_names_whose_texts_repeat(at: Seat, service: Service, tmp_path: Path, page: Page) -> None:
    """Its first row is a document, and has no id.

    The same texts are confirmed together, a note alone brings no version, and a tried text shows the words that speak
    for its label.
    """
    rows = [[text, kind] for text, kind in messages()[:60]] + [["free prize, claim the cash now", ""]] * 3
    write_table(tmp_path / "bare.csv", rows)
    choose(at, tmp_path / "bare.csv")
    assert page.get_by_label("The first row is a document").is_checked()
    at.reach(page.get_by_label("Label, if some are known"))
    page.keyboard.press("End")
    at.press(page.get_by_role("button", name="Use these documents"))
    page.wait_for_selector("article .document")
    assert service.get(f"/v1/datasets/{dataset_of(service)}")["n_documents"] == len(rows)
    page.get_by_role("link", name="Version 1").wait_for(timeout=HANG * 1000)
    at.leave_field()
    page.keyboard.press("n")
    page.locator("input[name=note]:focus").wait_for()
    page.keyboard.type("which offer?")
    page.keyboard.press("Enter")
    saved(at, 1)
    page.get_by_role("button", name="Train now").and_(page.locator(":disabled")).wait_for()
    at.view("One class")
    page.get_by_role("button", name="spam").first.click()
    page.get_by_text("× 3").wait_for()
    page.get_by_role("button", name="3 documents as spam").wait_for()
    page.keyboard.press("Enter")
    until(lambda: summary_of(service)["labeled"] == len(rows))
    at.view("Try")
    at.type(page.get_by_role("textbox", name="Text"), "claim a free prize")
    page.locator("#answer mark", has_text="free").wait_for()
    page.locator("#answer").get_by_text("before reading").wait_for()
    check_accessible(at)


def test_the_tour(at: Seat, page: Page) -> None:
    """A person without a file walks six steps on sample messages, by keys alone, from the first answer to the file."""
    at.press(page.get_by_role("button", name="Take a tour"))
    page.wait_for_selector("article .document")
    about = {
        each["id"]: each["about"]
        for each in page.evaluate("import('./page/view/sample.js').then(({ sample }) => sample())")
    }
    keys = {"delivery": "1", "payment": "2", "account": "3"}
    for _ in range(21):
        answer(at, lambda id: keys[about[id]])
    trained(at)
    for number, heading in enumerate(["Label", "One class at a time", "Doubts", "Audit", "Documents"], 2):
        at.press(page.get_by_role("complementary", name="Tour").get_by_role("button", name="Next"))
        page.get_by_text(f"{number} of 6:").wait_for()
        page.get_by_role("heading", name=heading, level=1).wait_for()
        page.wait_for_load_state("networkidle")
        check_accessible(at)
    at.press(page.get_by_role("button", name="End the tour"))
    page.get_by_role("complementary", name="Tour").wait_for(state="detached")
    with page.expect_download() as download:
        at.press(page.get_by_role("button", name="Download"))
    rows = list(csv.DictReader(Path(download.value.path()).read_text("utf-8-sig").splitlines()))
    assert len(rows) == len(about)
    assert sum(row["predicted"] == about[row["id"]] for row in rows) > 0.8 * len(rows)


def test_what_takes_seconds_is_said_and_keeps_nobody_waiting(
    at: Seat, tmp_path: Path, truth: dict[str, str], page: Page
) -> None:
    """Suggestions and scores never come here, as for a while where a new version meets 100,000 documents: random
    documents come, and words say what is waited for in place of what was there.
    """
    train_on_answers(at, tmp_path, truth)
    page.route(re.compile("/suggest$|order=likeliest"), lambda route: None)
    page.reload()
    label(at, truth, 8)
    at.view("One class")
    page.get_by_text(f"The model reads {len(truth):,} documents, once for each version.").wait_for()
    at.view("Documents")
    page.get_by_role("cell", name="Read").first.wait_for()
    page.get_by_label("Order").select_option("likeliest")
    page.get_by_text(f"The model reads {len(truth):,} documents, once for each version.").wait_for()
    assert not page.get_by_role("cell").count()
    page.unroute_all()
    page.go_back()
    page.get_by_role("heading", name="One class").wait_for()
    page.go_forward()  # to the table as it was left
    page.wait_for_function("() => document.querySelector('[aria-label=Order]')?.value === 'likeliest'")


GRAINS = ("corn", "ship", "wheat")


def test_several_labels_of_a_document(at: Seat, service: Service, tmp_path: Path, page: Page) -> None:
    """Keys toggle the classes that apply, Enter confirms them, also none, and undo brings them back to be changed.

    A model of several labels says them first, if that is wished.
    """
    texts = {
        f"d{k}": "report of " + " ".join(each for j, each in enumerate(GRAINS) if k >> j & 1) + f" number {k}"
        for k in range(48)
    }
    write_table(tmp_path / "grains.csv", [["id", "text"], *texts.items()])
    choose(at, tmp_path / "grains.csv")
    at.press(page.get_by_label("A document may have several labels"), "Space")
    at.press(page.get_by_role("button", name="Use these documents"))
    page.wait_for_selector("article .document")
    add_classes(at, GRAINS)
    check_accessible(at)
    labels = {id: [each for each in GRAINS if each in text] for id, text in texts.items()}
    answered = [
        answer(at, lambda id: [*(str(1 + GRAINS.index(each)) for each in labels[id]), "Enter"]) for _ in range(24)
    ]
    saved(at, 24)
    page.keyboard.press("u")
    page.wait_for_function("id => document.querySelector('article .clip')?.innerText === id", arg=answered[-1])
    pressed = page.locator(".answer[aria-pressed=true]").all_inner_texts()
    assert [each.split()[-1] for each in pressed] == labels[answered[-1]], "the answer is there to be changed"
    page.keyboard.press("Enter")
    page.wait_for_function(NEXT, arg=answered[-1])
    saved(at, 26)
    assert {
        each["id"]: sorted(each["labels"])
        for each in service.get(f"/v1/datasets/{dataset_of(service)}/documents?state=labeled&limit=100")["documents"]
    } == {id: labels[id] for id in answered}
    read_by_the_model(at)
    at.view("Documents")
    at.press(page.get_by_role("button", name="Labels of d7", exact=True))
    page.get_by_role("group", name="Classes that apply").get_by_role("button", name="corn").first.wait_for()
    check_accessible(at)


def test_a_doubt_is_followed_or_not(at: Seat, service: Service, tmp_path: Path) -> None:
    """A label is changed to what the model says or to another class, kept, or left as it is; Undo takes that back."""
    right = {f"d{k}": GRAINS[k % 3] for k in range(60)}
    wrong = right | {"d0": "ship", "d1": "wheat", "d2": "corn"}
    rows = [[id, f"report of {right[id]} number {id}", wrong[id] if int(id[1:]) < 48 else ""] for id in right]
    write_table(tmp_path / "grains.csv", [["id", "text", "label"], *rows])
    open_data(at, tmp_path / "grains.csv")
    trained(at)
    at.view("Doubts")
    page, doubted = at.page, at.page.locator("article .clip")
    page.get_by_role("button", name="change to").wait_for()
    check_accessible(at)
    changed = doubted.inner_text()
    at.press(page.get_by_role("button", name=f"change to {right[changed]}"))
    page.wait_for_function(NEXT, arg=changed)
    moved = doubted.inner_text()
    [other] = {*GRAINS} - {right[moved], wrong[moved]}
    page.get_by_label("Another class").select_option(label=other)
    page.wait_for_function(NEXT, arg=moved)
    kept = doubted.inner_text()
    at.press(page.get_by_role("button", name=f"keep {wrong[kept]}"))
    page.wait_for_function(NEXT, arg=kept)
    at.press(page.get_by_role("button", name="Undo"))
    page.get_by_role("button", name=f"keep {wrong[kept]}").wait_for()
    at.press(page.get_by_role("button", name="Not sure"))
    saved(at, 4)
    assert {each["document"] for each in answers_of(service)} == {changed, moved, kept} == {"d0", "d1", "d2"}
    assert [(each["action"], each["label"]) for each in answers_of(service)] == [
        *[("settle", right[changed]), ("settle", other)],
        *[("settle", wrong[kept]), ("undo", None)],
    ]


def test_a_model_of_a_tree_and_of_votes(at: Seat, service: Service, tmp_path: Path, page: Page) -> None:
    """Classes with steps make a nested model, and who sees its label first may still stop above; votes make one without
    a label, and the voters are listed.
    """
    steps = ("sport/football", "sport/tennis", "politics/vote")
    rows = [[f"d{k}", f"{steps[k % 3].replace('/', ' ')} {k}", steps[k % 3] if k < 24 else ""] for k in range(60)]
    write_table(tmp_path / "steps.csv", [["id", "text", "label"], *rows])
    voted = [[id, text, "", "ham" if k % 2 else "spam"] for k, (id, text, _) in enumerate(rows)]
    write_table(tmp_path / "voted.csv", [["id", "text", "label", "vote:rule"], *voted])
    open_data(at, tmp_path / "steps.csv")
    trained(at)
    assert service.get("/v1/jobs?model=steps")["jobs"][0]["nested"] is True
    at.view("Label")
    page.get_by_label("Model's answer").select_option("assisted")
    page.get_by_text("the model:").wait_for()
    at.leave_field()
    answered = answer(at, ["2", "Enter"])
    saved(at, 1)
    assert [(each["document"], each["label"]) for each in answers_of(service)] == [(answered, "sport")]
    at.view("Data")
    open_data(at, tmp_path / "voted.csv")
    trained(at)
    at.view("People")
    page.get_by_role("heading", name="Voters").wait_for()
    page.get_by_role("cell", name="rule").wait_for()
    page.get_by_text("Worth counts").wait_for()
    check_accessible(at)


def test_more_like_these(at: Seat, service: Service, tmp_path: Path, truth: dict[str, str], page: Page) -> None:
    """Labels of one class alone find more of it, say how common it is, and lead to confirming many at once."""
    open_data(at, tmp_path / "messages.csv")
    add_classes(at, ["spam"])
    at.leave_field()
    given = 0
    while given < 8:
        given += truth[answer(at, lambda id: "1" if truth[id] == "spam" else " ")] == "spam"
    at.press(page.get_by_role("button", name="Find more like these"))
    page.get_by_role("link", name="Confirm more like these").wait_for(timeout=HANG * 1000)
    page.get_by_text("of the documents without a label are spam").wait_for()
    check_accessible(at)
    at.press(page.get_by_role("link", name="Confirm more like these"))
    page.get_by_role("button", name="spam", pressed=True).first.wait_for()
    page.wait_for_selector(".sheet li")
    [job, *_] = [each for each in service.get("/v1/jobs")["jobs"] if each["dataset"] == dataset_of(service)]
    assert job["report"]["share"]["low"] <= job["report"]["share"]["share"] <= job["report"]["share"]["high"]


def test_a_tree_is_walked_by_keys(at: Seat, service: Service, tmp_path: Path) -> None:
    """A key goes a step deeper or labels a leaf; Enter labels as deep as a person knows; Backspace goes up."""
    write_table(tmp_path / "tree.csv", [["id", "text"], *([f"d{k}", f"text {k}"] for k in range(5))])
    open_data(at, tmp_path / "tree.csv")
    add_classes(at, ["sport/football", "sport/tennis", "politics"])
    at.page.get_by_role("button", name="1 sport").wait_for()
    for keys in (["1", "2"], ["1", "Enter"], ["1", "Backspace", "2"]):
        answer(at, keys)
        check_accessible(at)
    saved(at, 3)
    assert [each["label"] for each in answers_of(service)] == ["sport/tennis", "sport", "politics"]


LIGHT_AND_DARK: tuple[Literal["light", "dark"], ...] = ("light", "dark")
VIEWS = (
    *("Data", "Label", "Clusters", "One class", "Doubts", "Audit", "Documents"),
    *("Classes", "People", "Models", "Try", "Jobs"),
)
FITS = """() => document.documentElement.scrollWidth <= innerWidth
    && [...document.querySelectorAll('.sheet li')].every((card) =>
    card.querySelector('.number').getBoundingClientRect().bottom
    <= card.querySelector('.open').getBoundingClientRect().top)
"""
"""Whether nothing is wider than the window, and no button of a card in One class covers the probability."""


def test_no_view_keeps_anybody_out(
    at: Seat, service: Service, tmp_path: Path, truth: dict[str, str], page: Page
) -> None:
    """Axe finds nothing at all in any view, light and dark, on a desk, on a phone and magnified."""
    page.emulate_media(reduced_motion="reduce")
    train_on_answers(at, tmp_path, truth)
    service.wait_for(
        service.post("/v1/jobs", {"dataset": dataset_of(service), "model": "m" * 120, "annotations": "latest"})["id"],
        "succeeded",
    )
    found = {}
    for width in (1280, 390, 320):
        page.set_viewport_size({"width": width, "height": 800})
        for name in VIEWS:
            at.page.get_by_role("navigation").get_by_role("link", name=name, exact=True).click()
            page.get_by_role("heading", level=1).first.wait_for()
            page.wait_for_load_state("networkidle")
            for scheme in LIGHT_AND_DARK:
                page.emulate_media(color_scheme=scheme)
                for each in Axe().run(page).response["violations"]:
                    found[each["id"], name, width, scheme] = [node["html"][:200] for node in each["nodes"][:2]]
            assert page.evaluate(FITS), (name, width)
    assert found == {}

    # two models with an audit: they are measured one after the other, since the service refuses many at a time
    service.post(f"/v1/datasets/{dataset_of(service)}/audits", {"n": 9})
    held: list[Route] = []
    page.route(re.compile("/audits/audit-"), lambda route: held.append(route))
    with page.expect_request(re.compile("/audits/audit-")):
        at.view("Models")
    page.get_by_text("Each version is measured on the last audit").nth(1).wait_for()
    assert len(held) == 1
