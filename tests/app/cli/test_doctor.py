"""``halfmoon doctor`` finds faults, and nothing else."""

import os
import resource
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import Mock

import httpx
import pytest

from app.cli import doctor
from app.cli.commands import main
from app.cli.doctor import examine
from storage.errors import CannotStart
from storage.queue.connection import connect
from storage.queue.redis_state import RedisState
from storage.repositories.api_keys import ApiKeys, Scope
from storage.store import open_store
from storage.store.folder import FolderStore
from tests.stores import Valkey, s3_options
from tests.waiting import HANG
from workers.worker import warm_up

WARM_UP = warm_up.warm_up


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, valkey: Valkey) -> None:
    for name in [name for name in os.environ if name.startswith("HALFMOON_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HALFMOON_STORE_URL", f"file://{tmp_path}/store")
    monkeypatch.setenv("HALFMOON_REDIS_URL", valkey.url)
    with connect(valkey.url, HANG) as redis:
        redis.config_set("maxmemory-policy", "noeviction")
        RedisState(redis).record_heartbeat("worker", 60)
    # machines that test may be slow
    monkeypatch.setattr(doctor, "_SLOW_SECONDS", HANG)
    # a second each time, and one test does it
    monkeypatch.setattr(warm_up, "warm_up", lambda: None)


def test_kernels_that_cannot_be_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_up, "warm_up", Mock(side_effect=CannotStart("the kernels cannot be compiled: none")))
    assert to_fix() == {"kernels": "the kernels cannot be compiled: none"}


def to_fix() -> dict[str, str]:
    return {finding.subject: finding.message for finding in examine() if not finding.good}


def test_where_all_is_well(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_up, "warm_up", WARM_UP)
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[1] for line in lines} == {
        "settings",
        "access",
        "redis",
        "workers",
        "store",
        "records",
        "disk",
        "kernels",
    }
    assert all(line.startswith("ok ") for line in lines)


def test_a_setting_that_is_wrong_or_unknown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HALFMOON_REDIS_ULR", "redis://x")
    monkeypatch.setenv("HALFMOON_API_KEY", "of the client")
    assert to_fix() == {"settings": "HALFMOON_REDIS_ULR is no setting; correct its spelling, or remove it"}
    monkeypatch.setenv("HALFMOON_PORT", "seven")
    assert main(["doctor"]) == 1
    assert "FIX  settings   HALFMOON_PORT: Input should be a valid integer" in capsys.readouterr().out


def test_an_open_address_and_missing_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HALFMOON_HOST", "0.0.0.0")
    assert "no key is required" in to_fix()["access"]
    monkeypatch.setenv("HALFMOON_ACCESS", "keys")
    keys = ApiKeys(open_store(f"file://{tmp_path}/store"))
    keys.create("over", {Scope.ADMIN}, datetime.now(UTC) - timedelta(seconds=1))
    assert to_fix()["access"].startswith("0 keys are valid: no caller is accepted; make one")
    keys.create("one", {Scope.ADMIN})
    assert to_fix() == {}


def test_redis_away_or_forgetful(monkeypatch: pytest.MonkeyPatch, valkey: Valkey) -> None:
    with connect(valkey.url, HANG) as redis:
        redis.config_set("maxmemory-policy", "allkeys-lru")
        RedisState(redis).remove_worker("worker")
    assert "set noeviction" in to_fix()["redis"]
    assert to_fix()["workers"].startswith("0 are alive: jobs wait")
    monkeypatch.setenv("HALFMOON_REDIS_URL", "redis://user:secret@127.0.0.1:1/0")
    assert "is HALFMOON_REDIS_URL right" in to_fix()["redis"]
    assert "secret" not in to_fix()["redis"]


def test_a_store_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(FolderStore, "create", lambda self, key, data: self.replace(key, data) or True)
    assert "does not support conditional writes" in to_fix()["store"]
    (tmp_path / "file").write_text("")
    monkeypatch.undo()
    monkeypatch.setenv("HALFMOON_STORE_URL", f"file://{tmp_path}/file")
    assert "is HALFMOON_STORE_URL right" in to_fix()["store"]


def test_an_object_store(monkeypatch: pytest.MonkeyPatch, s3_endpoint: str, tmp_path: Path) -> None:
    httpx.put(f"{s3_endpoint}/doctors")
    for name, value in s3_options(s3_endpoint).items():
        monkeypatch.setenv(f"AWS_{name.upper()}", value)
    monkeypatch.setenv("HALFMOON_STORE_URL", "s3://doctors/prefix")
    monkeypatch.setenv("HALFMOON_CACHE_DIR", str(tmp_path / "cache"))
    assert to_fix() == {}


def test_too_little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FolderStore, "free", lambda self: 2**20)
    assert "0.0 GiB are free: delete what is not needed" in to_fix()["store"]
    monkeypatch.setattr(resource, "getrlimit", lambda which: (256, 512))
    assert "512 files may be open: raise it (ulimit -Hn) to 2256 or more" in to_fix()["disk"]
    monkeypatch.setenv("HALFMOON_MAX_CONNECTIONS", "256")
    assert "disk" not in to_fix()
