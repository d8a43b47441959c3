"""The HTML page of an evaluation, and its plots as SVG files."""

import base64
import hashlib
import re
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest
from fastapi import Request

from app.errors import NotAcceptable
from app.evaluation.report import CURVES
from app.http.answers import negotiate
from tests.app.conftest import Gateway, problem_of, publish
from tests.app.evaluation.evaluations import Documents, drawn

VOID = {"meta"}
HOSTILE = '<script>alert("1")</script>'


class Reader(HTMLParser):
    """Reads a page strictly: every element that begins ends."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.texts.append(data)


def page_of(gateway: Gateway, documents: list[dict[str, Any]]) -> httpx.Response:
    answer = gateway.client.post(
        "/v1/models/news/evaluate", json={"documents": documents}, headers={"Accept": "text/html"}
    )
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return answer


def test_a_page_has_the_figures_of_the_json(gateway: Gateway) -> None:
    publish(gateway.store, classes=["a", "b", "c"], calibrated=True)
    documents = drawn(["a", "b", "c"])
    found = gateway.client.post("/v1/models/news/evaluate", json={"documents": documents}).json()
    reader = Reader(page_of(gateway, documents).text)
    for value in (
        found["accuracy"],
        found["macro_f1"],
        found["macro_break_even"],
        found["calibration"]["brier"],
        found["classes"][1]["recall"],
    ):
        assert f"{value:.3f}" in reader.texts
    cells = [str(count) for row in found["confusion"] for count in row if count]
    at = reader.texts.index("was given")
    assert [text for text in reader.texts[at:] if text.isdigit()][: len(cells)] == cells
    assert reader.tags.count("svg") == 3
    assert (
        len([name for name, value in reader.attributes if name == "class" and (value or "").startswith("curve ")]) == 3
    )
    filled = sum(1 for each in found["calibration"]["bins"] if each["documents"])
    assert len([name for name, value in reader.attributes if (name, value) == ("class", "bar")]) == filled > 5


def test_the_page_loads_and_runs_nothing(gateway: Gateway) -> None:
    publish(gateway.store, calibrated=True)
    answer = page_of(gateway, drawn(["no", "yes"]))
    (style,) = re.findall("<style>(.*?)</style>", answer.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
    assert policy == {
        "default-src": "'none'",
        "style-src": f"'sha256-{digest}'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'self'",
    }
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-disposition"] == 'inline; filename="news-1-evaluation.html"'
    reader = Reader(answer.text)
    assert not {"script", "link", "img", "iframe", "form", "use", "image"} & set(reader.tags)
    assert not [name for name, _ in reader.attributes if name.startswith("on") or name in ("style", "src")]
    links = [value or "" for name, value in reader.attributes if name == "href"]
    assert [link.partition(",")[0] for link in links] == ["data:image/svg+xml;base64"] * reader.tags.count("a")
    assert "url(" not in style
    assert "@import" not in style


def test_labels_are_text(gateway: Gateway) -> None:
    classes = ['"><img src=x onerror=alert(1)>', HOSTILE]
    publish(gateway.store, classes=classes, calibrated=True)
    documents = [*drawn(classes, 50), {"indices": [0], "label": "</style></title><svg onload=alert(2)>"}]
    answer = page_of(gateway, documents)
    reader = Reader(answer.text)
    assert "script" not in reader.tags
    assert "img" not in reader.tags
    assert not [name for name, _ in reader.attributes if name.startswith("on")]
    for text in (*classes, documents[-1]["label"]):
        assert text in reader.texts
        assert ("title", text) in reader.attributes


def test_many_labels_make_a_list_of_what_is_confused(gateway: Gateway) -> None:
    classes = [f"c{class_index:02}" for class_index in range(40)]
    publish(gateway.store, classes=classes)
    documents = [{"indices": [class_index], "label": classes[class_index]} for class_index in range(40)]
    documents += [{"indices": [5], "label": "c07"}] * 3 + [{"indices": [6], "label": "strange"}]
    reader = Reader(page_of(gateway, documents).text)
    assert not [value for name, value in reader.attributes if name == "class" and value == "shade"]
    at = reader.texts.index("was given")
    assert reader.texts[at + 2 : at + 8] == ["c07", "c05", "3", "strange", "c06", "1"]
    assert " (unknown to the model)" in reader.texts
    assert (
        len([name for name, value in reader.attributes if name == "class" and (value or "").startswith("curve ")]) == 8
    )


def test_a_page_of_one_document(gateway: Gateway) -> None:
    publish(gateway.store, calibrated=True)
    reader = Reader(page_of(gateway, [{"indices": [1], "label": "yes"}]).text)
    assert "–" in reader.texts
    assert "1.000" in reader.texts


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (None, "application/json"),
        ("", "application/json"),
        ("*/*", "application/json"),
        ("application/*", "application/json"),
        ("text/html", "text/html"),
        ("TEXT/HTML; Q=0.5", "text/html"),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html"),
        ("text/*, application/json;q=0.9", "text/html"),
        ("text/html;q=0, */*", "application/json"),
        ("application/json;q=0, */*;q=0.1", "text/html"),
        ("text/html;q=0.5, application/json;q=0.5", "application/json"),
        ("image/png, text/html;q=0.1", "text/html"),
        ("image/png", None),
        ("text/html;q=0", None),
        ("text/html;q=nan", None),
        ("text/html;q=x", None),
        ("text", None),
        ("*/*;q=0", None),
    ],
)
def test_the_form_that_is_liked_best(accept: str | None, expected: str | None) -> None:
    headers = [] if accept is None else [(b"accept", accept.encode())]
    request = Request({"type": "http", "headers": headers})
    offered = ("application/json", "text/html")
    if expected is None:
        with pytest.raises(NotAcceptable):
            negotiate(request, offered)
    else:
        assert negotiate(request, offered) == expected


def test_accept_may_come_in_parts() -> None:
    request = Request({"type": "http", "headers": [(b"accept", b"image/png"), (b"accept", b"text/html")]})
    assert negotiate(request, ("application/json", "text/html")) == "text/html"


@pytest.mark.usefixtures("version")
def test_a_form_that_there_is_not(gateway: Gateway) -> None:
    answer = gateway.client.post(
        "/v1/models/news/evaluate", json={"documents": drawn(["no", "yes"])}, headers={"Accept": "image/png"}
    )
    assert (
        problem_of(answer, 406)["detail"]
        == "Accept 'image/png': this answer comes as application/json or text/html or image/svg+xml"
    )


SVG = "image/svg+xml"
PLOTS = ("confusion", "precision_recall", "reliability")
NAMES = ["a", "b", "c"]


def asked(gateway: Gateway, documents: Documents, plot: str | None, accept: str | None = SVG) -> httpx.Response:
    query = "" if plot is None else f"?plot={plot}"
    return gateway.client.post(
        f"/v1/models/news/evaluate{query}",
        json={"documents": documents},
        headers={} if accept is None else {"Accept": accept},
    )


def drawing_of(answer: httpx.Response) -> ElementTree.Element:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].partition(";")[0] == SVG
    return ElementTree.fromstring(answer.text)


def parts(drawing: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    """Elements of this class."""
    return [each for each in drawing.iter() if name in each.get("class", "").split()]


def texts(drawing: ElementTree.Element) -> list[str]:
    return [text for each in drawing.iter() for text in (each.text, each.tail) if text]


def test_the_confusion_has_all_counts(gateway: Gateway) -> None:
    publish(gateway.store, classes=NAMES)
    documents = [*drawn(NAMES), {"indices": [0], "label": "strange"}]
    found = gateway.client.post("/v1/models/news/evaluate", json={"documents": documents}).json()
    drawing = drawing_of(asked(gateway, documents, "confusion"))
    counts = [row[:3] for row in found["confusion"]]
    assert [each.text for each in parts(drawing, "counted")] == [str(count) for row in counts for count in row if count]
    assert len(parts(drawing, "box")) == 4 * 3, "a model never gives a label that it does not know"
    shares = [
        count / each["documents"] for row, each in zip(counts, found["classes"], strict=True) for count in row if count
    ]
    assert [float(each.get("fill-opacity", "")) for each in parts(drawing, "shade")] == pytest.approx(
        [0.06 + 0.6 * share for share in shares], abs=1e-5
    )
    assert {"strange", "a", "b", "c", "has", "was given"} <= set(texts(drawing))


def test_a_label_of_any_characters_leaves_the_file_well_formed(gateway: Gateway) -> None:
    classes = ["\0\x0b\x1f\ufffe\uffff]]>", "\t\n\r\x7f\x85"]
    publish(gateway.store, classes=classes)
    for plot in ("confusion", "precision_recall"):
        words = texts(drawing_of(asked(gateway, drawn(classes), plot)))
        assert "�" * 5 + "]]>" in words


def test_of_many_labels_the_most_frequent_are_drawn(gateway: Gateway) -> None:
    classes = [f"c{class_index:02}" for class_index in range(40)]
    publish(gateway.store, classes=classes)
    documents = [
        {"indices": [class_index], "label": classes[class_index]}
        for class_index in range(40)
        for _ in range(1 + (class_index >= 10))
    ]
    drawing = drawing_of(asked(gateway, documents, "confusion"))
    named = {text for text in texts(drawing) if text in classes}
    assert named == set(classes[10:])
    assert len(parts(drawing, "box")) == 30 * 30
    assert len(parts(drawing_of(asked(gateway, documents, "precision_recall")), "curve")) == CURVES


def test_curves_and_reliability(gateway: Gateway) -> None:
    publish(gateway.store, classes=NAMES, calibrated=True)
    found = gateway.client.post("/v1/models/news/evaluate", json={"documents": drawn(NAMES)}).json()
    lines = [
        each
        for each in parts(drawing_of(asked(gateway, drawn(NAMES), "precision_recall")), "curve")
        if each.get("points")
    ]
    ordered = sorted(found["classes"], key=lambda each: -each["documents"])
    assert [len((line.get("points") or "").split()) for line in lines] == [len(each["curve"]) + 1 for each in ordered]
    filled = sum(1 for each in found["calibration"]["bins"] if each["documents"])
    assert len(parts(drawing_of(asked(gateway, drawn(NAMES), "reliability")), "bar")) == filled


def test_the_links_of_a_page_save_the_plots(gateway: Gateway) -> None:
    publish(gateway.store, calibrated=True)
    documents = drawn(["no", "yes"])
    attributes = Reader(page_of(gateway, documents).text).attributes
    files = [value for name, value in attributes if name == "download"]
    links = [value or "" for name, value in attributes if name == "href"]
    assert files == [f"news-1-{name}.svg" for name in PLOTS]
    for plot, link in zip(PLOTS, links, strict=True):
        answer = asked(gateway, documents, plot)
        assert base64.b64decode(link.partition(",")[2]).decode() == answer.text
        assert answer.headers["content-disposition"] == f'inline; filename="news-1-{plot}.svg"'


def test_a_plot_loads_and_runs_nothing(gateway: Gateway) -> None:
    publish(gateway.store, classes=["<b>", HOSTILE], calibrated=True)
    for plot in PLOTS:
        answer = asked(gateway, drawn(["<b>", HOSTILE]), plot)
        drawing = drawing_of(answer)
        assert {each.tag.rpartition("}")[2] for each in drawing.iter()} <= {
            "svg",
            "title",
            "style",
            "rect",
            "line",
            "text",
            "polyline",
            "circle",
        }
        assert not [name for each in drawing.iter() for name in each.attrib if name.startswith("on") or "href" in name]
        (style,) = re.findall("<style>(.*?)</style>", answer.text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        assert f"style-src 'sha256-{digest}'" in answer.headers["content-security-policy"]
        assert "url(" not in style
        # every colour is known to programs that know no variables
        assert "var(" not in style
        used = {name for each in drawing.iter() for name in each.get("class", "").split()}
        assert {name for name in used if f".{name} " not in style and f".{name}, " not in style} == set()


@pytest.mark.usefixtures("version")
@pytest.mark.parametrize(
    ("plot", "accept", "status", "detail"),
    [
        ("reliability", SVG, 422, "the model is not calibrated"),
        ("roc", SVG, 422, "must be one of confusion, precision_recall, reliability"),
        ("", SVG, 422, "must be one of confusion, precision_recall, reliability"),
        (None, SVG, 422, "must be one of confusion, precision_recall, reliability"),
        ("confusion", "text/html", 406, "this answer comes as image/svg+xml"),
        ("confusion", "image/png", 406, "this answer comes as image/svg+xml"),
        ("confusion&plot=reliability", SVG, 422, "more than once"),
    ],
)
def test_plots_that_there_are_not(gateway: Gateway, plot: str | None, accept: str, status: int, detail: str) -> None:
    problem = problem_of(asked(gateway, drawn(["no", "yes"]), plot, accept), status)
    assert detail in problem["detail"]
    errors: list[dict[str, Any]] = problem.get("errors", [])
    assert [error["field"] for error in errors] == (["plot"] if status == 422 else [])


@pytest.mark.usefixtures("version")
def test_a_plot_needs_no_accept(gateway: Gateway) -> None:
    for accept in (None, "*/*", "image/*"):
        drawing_of(asked(gateway, drawn(["no", "yes"]), "confusion", accept))
