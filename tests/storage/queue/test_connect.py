"""Connections to Redis: why one is refused."""

from pathlib import Path

import pytest

from storage.errors import RedisUnavailable
from storage.queue.redis_state import RedisState, connect
from tests.stores import Valkey
from tests.waiting import HANG


@pytest.mark.parametrize("url", ["unix://{}", "unix://:wrong@{}"], ids=["none", "wrong"])
def test_a_password_that_is_missing_or_wrong_is_told(url: str, tmp_path: Path) -> None:
    with Valkey(tmp_path) as server:
        with connect(server.url, HANG) as client:
            client.config_set("requirepass", "right")
        with (
            connect(url.format(server.socket), HANG) as client,
            pytest.raises(RedisUnavailable, match="wants another user or password"),
        ):
            RedisState(client, "q").workers()
