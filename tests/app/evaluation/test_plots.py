"""The plots of an evaluation as SVG files."""

import base64
import hashlib
import re
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest

from app.evaluation.report import CURVES
from tests.app.conftest import Gateway, problem_of, publish
from tests.app.evaluation.test_evaluation import Documents, drawn
from tests.app.evaluation.test_page import HOSTILE, Reader, page_of

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
    publish(gateway.store)
    problem = problem_of(asked(gateway, drawn(["no", "yes"]), plot, accept), status)
    assert detail in problem["detail"]
    errors: list[dict[str, Any]] = problem.get("errors", [])
    assert [error["field"] for error in errors] == (["plot"] if status == 422 else [])


def test_a_plot_needs_no_accept(gateway: Gateway) -> None:
    publish(gateway.store)
    for accept in (None, "*/*", "image/*"):
        drawing_of(asked(gateway, drawn(["no", "yes"]), "confusion", accept))
