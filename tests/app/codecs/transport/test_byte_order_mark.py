"""Texts as programs on Windows save them: a byte order mark is skipped, and text that is not UTF-8 is refused."""

import codecs
import gzip
import json
from collections.abc import Iterator

import pytest

from app.codecs.base import Bounds
from app.codecs.dispatch import body_decoder
from core.errors import InvalidDocuments
from tests.app.codecs.encodings import as_json, as_ndjson, as_svmlight
from tests.app.conftest import NDJSON, Gateway, problem_of

DOCUMENTS = [{"indices": [0, 2], "values": [1.0, 0.5], "label": 1}, {"indices": [1], "values": [2.0], "label": 2}]
BODIES = {
    "application/json": as_json(DOCUMENTS),
    NDJSON: as_ndjson(DOCUMENTS),
    "text/x-svmlight": as_svmlight(DOCUMENTS),
}
every = pytest.mark.parametrize("media_type", BODIES)


@every
def test_a_mark_is_passed_over(gateway: Gateway, media_type: str) -> None:
    headers, body = {"content-type": media_type}, codecs.BOM_UTF8 + BODIES[media_type]

    def bytewise() -> Iterator[bytes]:
        yield from (bytes([byte]) for byte in body)

    plain = gateway.client.post("/v1/datasets", content=BODIES[media_type], headers=headers).json()["sha256"]
    for content, more in ((body, {}), (bytewise(), {}), (gzip.compress(body), {"content-encoding": "gzip"})):
        answer = gateway.client.post("/v1/datasets", content=content, headers=headers | more)
        assert (answer.status_code, answer.json().get("sha256")) == (201, plain), answer.text


@every
def test_every_cut_of_a_mark(media_type: str) -> None:
    body, bounds = codecs.BOM_UTF8 + BODIES[media_type], Bounds(1 << 20, 1 << 20, 1 << 20, 100, 100)
    for cut in range(6):
        decoder = body_decoder({"content-type": media_type}, bounds)
        batches = [*decoder.feed(body[:cut]), *decoder.feed(body[cut:]), *decoder.finish()]
        assert sum(batch.rows.n_rows for batch in batches) == 2


@every
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("cut", range(3))
def test_what_is_not_utf_8_is_named_however_it_is_cut(media_type: str, encoding: str, cut: int) -> None:
    body = BODIES[media_type].decode().encode(encoding)
    decoder = body_decoder({"content-type": media_type}, Bounds(1 << 20, 1 << 20, 1 << 20, 100, 100))
    with pytest.raises(InvalidDocuments, match="send it in UTF-8"):
        [*decoder.feed(body[:cut]), *decoder.feed(body[cut:]), *decoder.finish()]


@every
@pytest.mark.parametrize(
    ("body", "detail"),
    [(gzip.compress(b"{}"), "Content-Encoding: gzip"), (b"PK\x03\x04 and so on", "application/x-npz")],
)
def test_a_compressed_file_is_refused_with_advice(gateway: Gateway, media_type: str, body: bytes, detail: str) -> None:
    problem = problem_of(gateway.client.post("/v1/datasets", content=body, headers={"content-type": media_type}), 422)
    assert detail in problem["detail"]


@pytest.mark.parametrize("body", [b"", codecs.BOM_UTF8, codecs.BOM_UTF8[:2], b"\xff"])
def test_a_mark_and_nothing_else(gateway: Gateway, body: bytes) -> None:
    for media_type in BODIES:
        problem_of(gateway.client.post("/v1/datasets", content=body, headers={"content-type": media_type}), 422)


def test_a_mark_inside_a_file_is_refused_with_its_line(gateway: Gateway) -> None:
    body = 2 * (codecs.BOM_UTF8 + BODIES[NDJSON])
    problem = problem_of(gateway.client.post("/v1/datasets", content=body, headers={"content-type": NDJSON}), 422)
    (error,) = problem["errors"]
    assert error["document"] == "2"
    assert "line 3: " in error["detail"]
    assert "byte order mark" in error["detail"]


@pytest.mark.usefixtures("version")
def test_small_bodies_may_have_one(gateway: Gateway) -> None:
    body = json.dumps({"documents": [{"indices": [0]}]}).encode()
    answers = [
        gateway.client.post(
            "/v1/models/news/explain",
            content=codecs.BOM_UTF8 * times + body,
            headers={"content-type": "application/json"},
        )
        for times in range(3)
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 422]
    assert answers[0].json() == answers[1].json()
    assert "byte order mark" in answers[2].json()["detail"]
    wide = gateway.client.post(
        "/v1/models/news/explain", content=body.decode().encode("utf-16"), headers={"content-type": "application/json"}
    )
    assert "send it in UTF-8" in problem_of(wide, 422)["detail"]
