"""The comparison of the locked versions with known vulnerabilities, against a database that stands in for the public
one.
"""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.http_servers import Handler, answering_by
from tests.setup.audit import LOCK, audit

Answer = Callable[[list[dict[str, Any]]], tuple[int, Any]]


@pytest.fixture
def database() -> Iterator[Callable[[Answer], str]]:
    """Starts one that answers so; gives its address."""
    with ExitStack() as stack:

        def started(answer: Answer) -> str:
            class Database(Handler):
                def do_POST(self) -> None:
                    queries = json.loads(self.posted())["queries"]
                    status, content = answer(queries) if self.path == "/v1/querybatch" else (404, {})
                    self.answer(status, json.dumps(content).encode())

            return stack.enter_context(answering_by(Database))

        yield started


def known(queries: list[dict[str, Any]]) -> tuple[int, Any]:
    return 200, {
        "results": [{"vulns": [{"id": "PYSEC-1"}]} if query["package"]["name"] == "poor" else {} for query in queries]
    }


def test_a_known_vulnerability_is_named(
    database: Callable[[Answer], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lock").write_text(
        "# made\ngood==1.0 \\\n    --hash=sha256:00\npoor==2.1 ; sys_platform != 'win32' \\\n    --hash=sha256:00\n"
    )
    assert audit(database(known), tmp_path / "lock") == 1
    assert "poor 2.1 has the known vulnerability PYSEC-1" in capsys.readouterr().out


def test_every_locked_version_is_compared(
    database: Callable[[Answer], str], capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def listening(queries: list[dict[str, Any]]) -> tuple[int, Any]:
        asked.extend(f"{query['package']['name']}=={query['version']}" for query in queries)
        return known(queries)

    assert audit(database(listening), LOCK) == 0
    pins = {
        line.partition(" ")[0]
        for line in LOCK.read_text().splitlines()
        if "==" in line and not line.startswith((" ", "#"))
    }
    assert set(asked) == pins
    assert f"{len(pins)} locked versions, 0 known" in capsys.readouterr().out


@pytest.mark.parametrize(
    "answer", [lambda queries: (500, {}), lambda queries: (200, {"results": []})], ids=["refused", "too-little"]
)
def test_an_invalid_response_is_no_success(database: Callable[[Answer], str], answer: Answer) -> None:
    assert audit(database(answer), LOCK) == 1


def test_it_says_that_it_compared_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        assert audit(f"http://127.0.0.1:{nobody.getsockname()[1]}", LOCK) == 0
    assert "SKIPPED" in capsys.readouterr().out
