"""Which store commands work on: the one that a service reads, or none."""

from pathlib import Path

import pytest

from app.cli.commands import main
from app.cli.doctor import examine
from storage.repositories.api_keys import ApiKeys
from storage.store import open_store

CREATE = ["keys", "create", "--name", "ann", "--scope", "label"]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder, and no setting that names a store."""
    monkeypatch.chdir(tmp_path)
    for name in ("HALFMOON_STORE_URL", "HALFMOON_REDIS_URL"):
        monkeypatch.delenv(name, raising=False)


def keys_in(folder: Path) -> int:
    return len([*ApiKeys(open_store(folder.absolute().as_uri())).every()])


def test_a_key_goes_where_up_reads_it(tmp_path: Path) -> None:
    (tmp_path / "data/store").mkdir(parents=True)
    assert main(CREATE) == 0
    assert keys_in(tmp_path / "data/store") == 1


def test_a_setting_goes_before_the_folder_of_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data/store").mkdir(parents=True)
    monkeypatch.setenv("HALFMOON_STORE_URL", (tmp_path / "other").as_uri())
    assert main(CREATE) == 0
    assert (keys_in(tmp_path / "other"), keys_in(tmp_path / "data/store")) == (1, 0)


@pytest.mark.parametrize("command", [CREATE, ["keys", "list"], ["backup", "x.tar"], ["restore", "x.tar"], ["doctor"]])
def test_where_nothing_says_which_store_is_meant_none_is_made(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if Path("/var/lib/halfmoon").is_dir():
        pytest.skip("this machine has the default store")
    assert main(command) == 1
    assert "name the folder of `halfmoon up` by --data" in "".join(capsys.readouterr())
    assert [*tmp_path.iterdir(), *Path("/var/lib").glob("halfmoon")] == []


def test_the_doctor_looks_at_the_folder_of_up(tmp_path: Path) -> None:
    (tmp_path / "data/store").mkdir(parents=True)
    (tmp_path / "data/valkey").mkdir()
    (tmp_path / "data/valkey/valkey.sock").touch()
    said = [finding.message for finding in examine()]
    assert any("those of `halfmoon up` in data" in text for text in said)
    assert any("data/valkey/valkey.sock" in text for text in said)
