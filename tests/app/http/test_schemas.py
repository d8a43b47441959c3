"""Cursors of lists: whatever a caller makes up is a page or a named error."""

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.app.conftest import TWO_CLASSES, Gateway


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/datasets", "/v1/models", "/v1/datasets/{dataset}/documents"])
@given(cursor=st.one_of(st.text(max_size=300), st.from_regex("[0-9]+|[+_-]?[0-9]+[._]0", fullmatch=True)))
@example(cursor="9" * 5000)
@example(cursor="٣")
@example(cursor="1_0")
@example(cursor="0\n")
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_cursors_of_strangers(gateway: Gateway, path: str, cursor: str) -> None:
    found = gateway.client.get("/v1/datasets", params={"limit": 1}).json()["datasets"]
    dataset = found[0]["id"] if found else gateway.upload(TWO_CLASSES)["id"]
    answer = gateway.client.get(path.format(dataset=dataset), params={"cursor": cursor})
    assert answer.status_code in (200, 422)
    if answer.status_code == 422:
        assert answer.json()["errors"][0]["field"] == "cursor"
