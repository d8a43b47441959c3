"""Requests generated from the committed contract: every answer is documented there, and none is an internal error."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.core.result import Ok
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import positive_data_acceptance

from app.cli.contract import FILE
from app.settings import GatewaySettings
from storage.repositories.api_keys import ApiKeys, Scope
from storage.store import open_store
from tests.app.conftest import publish, serving
from tests.stores import Valkey
from tests.waiting import until

CASES = int(os.environ.get("FUZZ_CASES", "10"))
SCHEMA = schemathesis.openapi.from_path(FILE)
OPERATIONS: list[APIOperation[Any, Any, Any, Any]] = [
    result.ok() for result in SCHEMA.get_all_operations() if isinstance(result, Ok)
]


@pytest.fixture(scope="module")
def service(shared_valkey: Valkey, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, str]]]:
    root = tmp_path_factory.mktemp("fuzzed")
    store = open_store(f"file://{root}/store")
    _, key = ApiKeys(store).create("fuzzer", set(Scope))
    publish(store)
    asked = GatewaySettings(
        store_url=f"file://{root}/store",
        redis_url=shared_valkey.url,
        queue="fuzzed",
        access="keys",
        max_unfinished_jobs=10_000,
        max_unfinished_jobs_per_key=10_000,
    )
    with ExitStack() as stack:
        url = f"http://127.0.0.1:{stack.enter_context(serving(asked))}"
        headers = {"Authorization": f"Bearer {key}"}
        until(lambda: httpx.get(f"{url}/v1/jobs", headers=headers).status_code == 200)
        yield url, headers


@pytest.mark.parametrize("operation", OPERATIONS, ids=[f"{each.method.upper()} {each.path}" for each in OPERATIONS])
def test_every_answer_is_documented(
    operation: APIOperation[Any, Any, Any, Any], service: tuple[str, dict[str, str]]
) -> None:
    url, headers = service

    @settings(
        max_examples=CASES,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        deadline=None,
        derandomize=True,
    )
    @given(case=operation.as_strategy())
    def fuzz(case: schemathesis.Case[Any]) -> None:
        # a schema cannot say all that is asked of a body: as many values as indices, each index once, gzip that is
        # gzip; nor which parts of a query for documents go together
        excluded: list[Any] = (
            [positive_data_acceptance] if operation.body.items or operation.path.endswith("/documents") else []
        )
        case.call_and_validate(base_url=url, headers=headers, excluded_checks=excluded)

    fuzz()
