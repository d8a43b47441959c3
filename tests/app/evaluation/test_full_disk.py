"""Evaluations on a disk that has no room for their scores."""

import errno

import pytest

from tests.app.conftest import TWO_CLASSES, Gateway, problem_of, publish
from tests.stores import no_file_beyond


@pytest.mark.parametrize("room", [0, 100])
@pytest.mark.parametrize("by_dataset", [False, True])
def test_a_full_disk_is_reported(gateway: Gateway, room: int, by_dataset: bool) -> None:
    publish(gateway.store)
    body = {"dataset": gateway.upload(TWO_CLASSES)["id"]} if by_dataset else {"documents": TWO_CLASSES * 200}
    before = gateway.kept()
    with no_file_beyond(room):
        answer = gateway.client.post("/v1/models/news/evaluate", json=body)
    assert answer.status_code in (200, 507), answer.text
    if room == 0:
        assert problem_of(answer, 507)["type"] == "/problems/insufficient-storage"
    assert gateway.kept() == before


def test_a_disk_on_which_no_file_can_be_made_is_reported(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(gateway.store)

    def full(**_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("app.http.answers.tempfile.TemporaryFile", full)
    problem_of(gateway.client.post("/v1/models/news/evaluate", json={"documents": TWO_CLASSES}), 507)
    assert [path for path in gateway.kept() if ".staging" in path] == []
