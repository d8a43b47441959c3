"""The HTML page of an evaluation."""

import base64
import hashlib
import re
from html.parser import HTMLParser
from typing import Any

import httpx
import pytest
from fastapi import Request

from app.errors import NotAcceptable
from app.http.answers import negotiate
from tests.app.conftest import Gateway, problem_of, publish
from tests.app.evaluation.test_evaluation import drawn

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


def test_a_form_that_there_is_not(gateway: Gateway) -> None:
    publish(gateway.store)
    answer = gateway.client.post(
        "/v1/models/news/evaluate", json={"documents": drawn(["no", "yes"])}, headers={"Accept": "image/png"}
    )
    assert (
        problem_of(answer, 406)["detail"]
        == "Accept 'image/png': this answer comes as application/json or text/html or image/svg+xml"
    )
