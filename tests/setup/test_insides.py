"""The service's uses of the insides of libraries, which may change with any minor version: these are pinned."""

import asyncio
import inspect
import re
import tomllib
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pytest
import uvicorn
from packaging.requirements import Requirement
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState


class Body(msgspec.Struct, forbid_unknown_fields=True):
    number: Annotated[int, msgspec.Meta(ge=1)]
    text: Annotated[str, msgspec.Meta(max_length=2)] = ""
    word: Literal["a"] = "a"


@pytest.mark.parametrize("package", ["uvicorn", "msgspec"])
def test_they_are_pinned_to_a_minor_version(repository: Path, package: str) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    (required,) = (each for each in map(Requirement, project["dependencies"]) if each.name == package)
    assert re.fullmatch(r"<0\.\d+,>=0\.\d+", str(required.specifier)), required


async def app(scope: object, receive: object, send: object) -> None:
    """An application that is not called."""


def test_the_members_of_the_connection_of_uvicorn() -> None:
    loop = asyncio.new_event_loop()
    connection = HttpToolsProtocol(uvicorn.Config(app, log_config=None), ServerState(), {}, loop)
    loop.close()
    for name in ("transport", "loop", "pipeline", "cycle", "scope", "headers", "connections"):
        assert hasattr(connection, name) or name in HttpToolsProtocol.__init__.__code__.co_names, name
    for name in (
        *("connection_made", "connection_lost", "data_received", "pause_writing", "resume_writing", "shutdown"),
        *("on_message_begin", "on_headers_complete", "on_body", "on_message_complete", "on_response_complete"),
        "timeout_keep_alive_handler",
    ):
        assert inspect.isfunction(getattr(HttpToolsProtocol, name)), name
    assert "self.response_complete" in inspect.getsource(RequestResponseCycle.__init__)
    assert "bytes(self.body)" in inspect.getsource(RequestResponseCycle.receive)
    assert list(inspect.signature(uvicorn.Server.shutdown).parameters) == ["self", "sockets"]
    assert ServerState().default_headers == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "Input data was truncated"),
        ('{"number": 1} 2', "JSON is malformed: trailing characters (byte 15)"),
        ("{}", "Object missing required field `number`"),
        ('{"number": 1, "x": 2}', "Object contains unknown field `x`"),
        ('{"number": "1"}', "Expected `int`, got `str` - at `$.number`"),
        ('{"number": 0}', "Expected `int` >= 1 - at `$.number`"),
        ('{"number": 1, "text": "abc"}', "Expected `str` of length <= 2 - at `$.text`"),
        ('{"number": 1, "word": "b"}', "Invalid enum value 'b' - at `$.word`"),
    ],
)
def test_the_messages_of_msgspec(text: str, message: str) -> None:
    with pytest.raises(msgspec.DecodeError) as raised:
        msgspec.json.decode(text, type=Body)
    assert str(raised.value) == message
