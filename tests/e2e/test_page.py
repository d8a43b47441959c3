"""The walk of a person through the page, in a real browser and by the keyboard alone."""

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.app.codecs.tables.workbooks import DATE, Cell, workbook
from tests.e2e.browser import NEEDS_CHROMIUM, SWITCHES, Seat, executable, seat
from tests.e2e.person import (
    NEXT,
    add_classes,
    answer,
    answer_sample,
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
    write_table,
)
from tests.e2e.service import Service
from tests.http_servers import Handler, answering_by
from tests.processes import Program
from tests.there import there
from tests.waiting import HANG, until
from tests.workers.encoders.tiny import static_folder

pytestmark = NEEDS_CHROMIUM


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One service for all people: each has data of their own."""
    folder = tmp_path_factory.mktemp("page")
    with Service(folder / "data", folder / "log") as service:
        yield service


def test_the_walk(at: Seat, service: Service, tmp_path: Path, truth: dict[str, str], page: Page) -> None:
    open_data(at, tmp_path / "messages.csv")
    add_classes(at)
    answered = label(at, truth, 40)
    saved(at, 40)
    page.keyboard.press("u")
    page.wait_for_function(f"() => document.querySelector('article .clip')?.innerText === '{answered[-1]}'")
    label(at, truth, 1)
    read_by_the_model(at)

    at.view("Doubts")
    page.get_by_role("heading", name="Doubts").wait_for()

    at.view("One class")
    page.wait_for_selector(".sheet li")
    at.press(page.locator(".sheet input").first, "Space")
    page.wait_for_selector(".sheet .out")
    confirmed = int(page.inner_text(".dock button").split()[1])  # the same texts count each
    at.press(page.get_by_role("button", name=f"{confirmed} documents as"))
    page.wait_for_function("() => document.querySelectorAll('.sheet .out').length === 0")

    at.view("Audit")
    at.press(page.get_by_role("button", name="Draw 50"))
    answer_sample(at, dict(messages()), 50)
    page.wait_for_selector("#report td")
    check_accessible(at)
    assert page.locator("#report tbody tr td").nth(1).inner_text().endswith("%")

    # compare the versions, point the alias to the first, and look at its errors
    at.view("Models")
    page.get_by_role("columnheader", name=re.compile(r"^v\d+$")).first.wait_for()  # the newest four
    at.press(page.get_by_role("button", name="Make version 1 live"))
    page.get_by_text("live", exact=True).nth(1).wait_for()
    at.press(page.get_by_role("link", name="Version 1", exact=True))
    page.get_by_role("heading", name="Worst mistakes").wait_for()
    page.get_by_role("heading", name="Figures on labels that it was not told").wait_for()
    check_accessible(at)
    link = page.get_by_role("link", name="All figures and plots").get_attribute("href")
    assert "<svg" in service.client.get(f"/{link}", headers={"accept": "text/html"}).text

    at.view("Try")
    at.type(page.get_by_role("textbox", name="Text"), "urgent: claim your free prize, win cash")
    page.locator("#answer h2").first.wait_for()
    at.view("Jobs")
    page.get_by_text("succeeded").first.wait_for()

    assert summary_of(service)["labeled"] == 40 + confirmed + 50
    assert [each["aliases"] for each in service.get("/v1/models")["models"] if each["aliases"]] == [{"live": 1}]


def test_what_goes_wrong_is_said_in_the_words_of_a_person(service: Service, tmp_path: Path) -> None:
    """A view that is missed while the service is away, which comes with it; files that are none; classes that are too
    long or named twice; a service that has too much to do; data that are gone.
    """
    (tmp_path / "open.csv").write_text('text,label\nfine,\n"open,\n')
    (tmp_path / "well.csv").write_text("text,label\nfine,\nfree,\n")
    with seat(service.url) as at:
        page = at.page
        page.route(re.compile(r"jobs\.js|health/live"), lambda route: route.abort())
        at.view("Jobs")
        page.get_by_text("The service does not answer.").wait_for()
        page.unroute_all()
        page.locator(".notice").or_(page.get_by_text("Loading")).wait_for(state="detached")
        assert "a.jpg is neither a table nor a text. Save the texts as CSV" in page.evaluate(
            "import('./page/view/table.js').then(({ lookInto }) => lookInto(new File(['x'], 'a.jpg'))).catch(String)"
        )
        assert page.evaluate(
            "import('./page/view/quality.js').then(({ qualityOf }) => "
            "qualityOf({ held_out: { labels: 4, right: 3, by_votes: true } }).by === 'votes')"
        )
        at.view("Data")
        choose(at, tmp_path / "open.csv")
        at.press(page.get_by_role("button", name="Use these documents"))
        page.get_by_text("open.csv: line 3").wait_for()
        at.press(page.get_by_role("button", name="Choose another file"))
        open_data(at, tmp_path / "well.csv")
        add_classes(at, ["x" * 257, "ham"])
        page.get_by_text("A name has at most 256 characters.").wait_for()
        page.keyboard.press("Escape")
        add_classes(at, ["ham", "spam", "ham"])
        page.get_by_role("button", name="2 spam", exact=True).wait_for()
        for busy in ("v1/models", "/documents"):
            page.route(re.compile(busy), lambda route: route.fulfill(status=429, json={"detail": "busy"}), times=2)
        at.view("Documents")
        for _ in range(3):  # all is asked again, and words of waiting stand there, not of what went wrong
            page.wait_for_event("response", lambda response: response.status == 429)
            assert not page.get_by_role("alert").count()
        page.get_by_role("cell", name="Read").first.wait_for()
        page.goto(f"{service.url}#/label/ds-gone")
        page.get_by_text("There is no dataset 'ds-gone'; the list of datasets has all.").wait_for()


def test_what_a_person_must_know_of_damage_and_mistakes(service: Service, tmp_path: Path) -> None:
    """A damaged model stops nobody: random documents come, and the page says why.

    So it says of labels that differ in case alone, until they are joined. Data have the name of their file.
    """
    rows = [
        [f"m{k}", text, "" if k > 9 else label.title() if k == 9 else label]
        for k, (text, label) in enumerate(messages()[:60])
    ]
    write_table(tmp_path / "Lücken, neu.csv", [["id", "text", "label"], *rows])
    with seat(service.url) as at:
        open_data(at, tmp_path / "Lücken, neu.csv")
        at.page.get_by_role("heading", name="Lücken, neu", exact=True).wait_for()
        at.press(at.page.get_by_role("link", name="Join them"))
        at.press(at.page.get_by_role("button", name="Change", exact=True))
        at.page.locator(".toast", has_text="1 document of").wait_for()
        at.view("Label")
        at.page.wait_for_selector("article .document")
        assert not at.page.get_by_text("differ in case or spaces alone").count()
        add_classes(at, ["HAM"])
        at.page.get_by_text("“ham” is there already.").wait_for()
        at.page.keyboard.press("Escape")
        job = service.wait_for(
            service.post("/v1/jobs", {"model": "Lucken-neu", "dataset": dataset_of(service), "algorithm": "svm"})["id"]
        )
        model = next((service.data / "store/jobs" / job["id"]).glob("attempts/*/model.safetensors"))
        model.chmod(0o600)
        model.write_bytes(model.read_bytes()[:-1])
        at.page.reload()
        label(at, {id: "ham" for id, *_ in rows}, 8)
        at.page.get_by_text("The model can suggest nothing, so these documents are random.").wait_for()
        at.page.get_by_role("link", name="What helps").click()
        at.page.get_by_role("heading", name="A stored file is damaged").wait_for()


def test_documents_of_any_content(at: Seat, service: Service, tmp_path: Path, page: Page) -> None:
    """Markup is text, right-to-left text is read from the right, texts of 1 MB fit their card, and 200 classes are
    found by typing.
    """
    script = "<script>document.title = 'taken'</script><img src=x onerror=\"document.title = 'taken'\">"
    texts = {"markup": script, "hebrew": "שלום עולם", "long": "x" * 1_000_000, "words": "word " * 200_000}
    labels = [f"class {k:03d} <b>" for k in range(200)]
    rows = [[id, text, ""] for id, text in texts.items()] + [
        [f"d{k}", f"text {k}", label] for k, label in enumerate(labels)
    ]
    write_table(tmp_path / "any.csv", [["id", "text", "label"], *rows])
    page.set_viewport_size({"width": 360, "height": 740})
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
    assert [each["label"] for each in answers_of(service)] == labels[41:45]


def test_a_workbook(at: Seat, service: Service, tmp_path: Path, page: Page) -> None:
    """The page shows its first rows as the service reads them, whichever program wrote it, and takes its columns."""
    texts = [f"free {kind} number {k} <&>" for k, kind in enumerate(["prize", "dinner"] * 6)]
    rows: list[list[Cell]] = [["day", "What did you write to us?", "kind", "nr"]]
    rows += [[(45291 + k, DATE), text, None, k] for k, text in enumerate(texts, 1)]
    (tmp_path / "mails.xlsx").write_bytes(
        workbook({"Old": [["gone"]], "Notes": [["From June"]], "Mails": rows}, hidden=["Old"])
    )
    choose(at, tmp_path / "mails.xlsx")
    page.get_by_text("The sheet “Mails” is read, and not “Notes”.", exact=True).wait_for()
    assert page.locator("select[name=text]").input_value() == "What did you write to us?"
    assert page.locator("select[name=label]").input_value() == "kind"
    assert page.locator("tbody tr").first.locator("td").all_inner_texts() == [texts[0], "", "2024-01-01", "1"]
    check_accessible(at)
    at.press(page.get_by_role("button", name="Use these documents"))
    page.wait_for_selector("article .document")
    stored = service.get(f"/v1/datasets/{dataset_of(service)}/documents?limit=20")["documents"]
    assert [each["text"] for each in stored] == texts
    assert stored[0]["fields"] == {"nr": "1", "day": "2024-01-01"}


def test_what_was_done_is_said_and_covers_nothing(at: Seat, service: Service, tmp_path: Path, page: Page) -> None:
    """What Excel saves as "Unicode text" is read, its title left out, and what is chosen of it stands first."""
    rows = "".join(f"{k}\tMay\tfree dinner number {k} €\n" for k in range(40))
    (tmp_path / "mails.csv").write_text(f"Mails of May\t\t\nnr\twhen\ttext\n{rows}", "utf-16")
    choose(at, tmp_path / "mails.csv")
    page.get_by_text("The names of the columns stand below “Mails of May”, which is left out.").wait_for()
    assert page.locator("thead th").all_inner_texts() == ["text", "nr", "when"]
    at.press(page.get_by_role("button", name="Use these documents"))
    page.wait_for_selector("article .document")
    assert "number 39 €" in service.client.get(f"/v1/datasets/{dataset_of(service)}/documents?ids=39").text
    add_classes(at)
    page.locator(".toast", has_text="2 classes added").wait_for()
    page.keyboard.press("f")
    page.locator(".toast", has_text="Marked").wait_for()
    assert page.locator("[aria-live]").first.inner_text().strip() == "Marked for others to look at"
    assert page.locator(".toast span").all_inner_texts() == ["2 classes added", "Marked for others to look at"]
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        toasts, saved = (there(page.locator(each).bounding_box()) for each in (".toasts", "#saved"))
        assert toasts["x"] >= saved["x"] + saved["width"] or toasts["y"] + toasts["height"] <= saved["y"]
    at.press(page.get_by_role("button", name="Dismiss").last)
    assert page.locator(".toast").count() == 1


def test_titles_have_no_delimiter(at: Seat, tmp_path: Path) -> None:
    (tmp_path / "mails.csv").write_text("Mails of May\n\nnr;text\n" + "".join(f"{k};a, b, {k}\n" for k in range(9)))
    choose(at, tmp_path / "mails.csv")
    at.page.get_by_text("The names of the columns stand below “Mails of May”, which is left out.").wait_for()
    assert at.page.locator("thead th").all_inner_texts() == ["text", "nr"]


def test_json_with_names_of_its_own(at: Seat, service: Service, tmp_path: Path) -> None:
    """An array of it is a table as well: columns are chosen, labels are asked for, and the rest is kept."""
    mails = [
        {"_id": {"oid": k}, "mail": f"free dinner number {k}", "team": "red" if k % 2 else "n/a"} for k in range(9)
    ]
    (tmp_path / "export.json").write_text(json.dumps({"data": mails}))
    choose(at, tmp_path / "export.json")
    at.page.get_by_label("Id, if there is one").select_option("_id")
    at.press(at.page.get_by_role("button", name="Use these documents"))
    at.page.get_by_text("(line 1, line 2, line 3, line 4, line 5, line 6 …)").wait_for()
    at.complaints.clear()
    at.page.get_by_label("Id, if there is one").select_option("")
    at.press(at.page.get_by_role("button", name="team n/a, red"))
    check_accessible(at)
    at.press(at.page.get_by_role("button", name="Use these documents"))
    at.page.get_by_role("button", name="1 n/a").wait_for()
    stored = service.get(f"/v1/datasets/{dataset_of(service)}/documents")["documents"]
    assert [{**each["fields"], "mail": each["text"], "team": each["label"]} for each in stored] == mails


def test_classes_that_are_numbers(at: Seat, service: Service, tmp_path: Path, page: Page) -> None:
    """A table has texts, also where they look like numbers.

    A key that is held down answers once, and a reload forgets nothing that was answered. The first answer is a Tab
    away from the load.
    """
    write_table(
        tmp_path / "numbers.csv",
        [["id", "text", "label"], *([f"n{k}", f"text {k}", k % 2 if k < 4 else ""] for k in range(40))],
    )
    open_data(at, tmp_path / "numbers.csv")
    page.get_by_role("button", name="2 1", exact=True).wait_for()
    first = answer(at, "1")
    second = page.inner_text("article .clip")
    for _ in range(3):
        page.keyboard.down("2")
    page.wait_for_function(NEXT, arg=second)
    saved(at, 2)
    page.reload()
    page.wait_for_selector("article .document")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.matches('.answers button')")
    page.keyboard.press("u")
    page.wait_for_function(f"() => document.querySelector('article .clip')?.innerText === '{second}'")
    saved(at, 1)
    assert [(each["document"], each["action"], each["label"]) for each in answers_of(service)] == [
        (first, "label", "0"),
        (second, "label", "1"),
        (second, "undo", None),
    ]


@contextmanager
def another_site(target: str) -> Iterator[str]:
    """Address of a page elsewhere that sends a form and a fetch without CORS to the target as soon as it is open."""
    content = f"""<!doctype html><h1>Another site</h1><form method="post" enctype="multipart/form-data"
    action="{target}/v1/datasets" target="frame"><input name="file" type="file"></form><iframe name="frame"></iframe>
    <script>
    const files = new DataTransfer();
    files.items.add(new File(["text,label\\na,b\\n"], "a.csv", {{type: "text/csv"}}));
    document.querySelector("input").files = files.files;
    document.querySelector("form").submit();
    const body = new FormData();
    body.append("file", files.files[0]);
    fetch("{target}/v1/datasets", {{method: "POST", mode: "no-cors", body}});
    </script>"""

    class Page(Handler):
        def do_GET(self) -> None:
            self.answer(200, content.encode(), content_type="text/html")

    with answering_by(Page) as url:
        yield url


def refusals(service: Service) -> int:
    """Number of requests that were refused by 403."""
    found = re.findall(r'^halfmoon_requests_total\{.*status="403"\} (\S+)', service.client.get("/metrics").text, re.M)
    return sum(map(int, map(float, found)))


BROWSERS = {
    "chromium": [str(executable()), *SWITCHES, "--headless", "--remote-debugging-port=0", "--user-data-dir={}"],
    "firefox": [str(shutil.which("firefox-esr") or shutil.which("firefox")), "--headless", "--profile", "{}"],
}
"""Commands of browsers that open an address, with a folder of their own."""


@pytest.mark.parametrize("browser", BROWSERS)
def test_a_page_of_another_site_makes_no_dataset(service: Service, tmp_path: Path, browser: str) -> None:
    command = [word.format(tmp_path) for word in BROWSERS[browser]]
    if not Path(command[0]).is_file():
        pytest.skip(f"{browser} is not installed")
    before, refused = service.get("/v1/datasets")["datasets"], refusals(service)
    with another_site(service.url) as url, Program([*command, url], {"HOME": str(tmp_path)}):
        until(lambda: refusals(service) == refused + 2, HANG)
    assert service.get("/v1/datasets")["datasets"] == before


def test_the_first_model_goes_by_words_and_the_next_by_meaning(tmp_path: Path, truth: dict[str, str]) -> None:
    encoders = json.dumps({"tiny": str(static_folder(tmp_path / "tiny"))})
    started = Service(tmp_path / "data", tmp_path / "log", encoders=encoders, encoder="tiny")
    with started as service, seat(service.url) as at:
        train_on_answers(at, tmp_path, truth)
        at.page.get_by_text(f"by the meaning of all {len(truth):,} texts").wait_for(timeout=HANG * 1000)
        assert at.complaints == []
        jobs = service.get("/v1/jobs")["jobs"]
        assert [job["encoder"] and job["encoder"]["name"] for job in reversed(jobs)][:2] == [None, "tiny"]
