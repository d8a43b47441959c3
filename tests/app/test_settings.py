"""Settings: former names are refused wherever settings are read, with the present name."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from app.cli.commands import main
from app.cli.doctor import examine
from app.settings import GatewaySettings
from workers.errors import CannotStart
from workers.settings import RENAMED, Settings


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.upper().startswith("HALFMOON_")]:
        monkeypatch.delenv(name)


def test_a_former_name_is_no_present_one() -> None:
    assert not RENAMED.keys() & GatewaySettings.model_fields.keys()
    assert set(RENAMED.values()) <= GatewaySettings.model_fields.keys()


@pytest.mark.parametrize("former", RENAMED)
@pytest.mark.parametrize("read", [Settings, GatewaySettings])
def test_a_former_name_is_refused_with_the_present_one(read: Callable[[], Settings], former: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"HALFMOON_{former.upper()}", "1")
    with pytest.raises(CannotStart) as refused:
        read()
    present = f"HALFMOON_{RENAMED[former].upper()}"
    assert str(refused.value) == f"HALFMOON_{former.upper()} is now called {present}; rename it in the environment"
    monkeypatch.delenv(f"HALFMOON_{former.upper()}")
    monkeypatch.setenv(present, "1")
    assert getattr(GatewaySettings(), RENAMED[former]) == 1


def test_former_names_are_refused_together_and_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("halfmoon_max_jobs", "5")
    monkeypatch.setenv("HALFMOON_THREADS", "1")
    with pytest.raises(CannotStart) as refused:
        Settings()
    message = str(refused.value)
    assert "HALFMOON_THREADS is now called HALFMOON_TRAINING_THREADS; halfmoon_max_jobs is now called HALFMOON_MAX_UNFINISHED_JOBS;" in message


@pytest.mark.parametrize("command", ["up", "api", "worker", "keys list", "backup file.tar", "restore file.tar"])
def test_no_command_starts_with_a_former_name(
    command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HALFMOON_STORE_URL", f"file://{tmp_path}/store")
    monkeypatch.setenv("HALFMOON_JOB_SECONDS", "60")
    assert main(command.split()) == 1
    assert capsys.readouterr().err == "halfmoon: HALFMOON_JOB_SECONDS is now called HALFMOON_JOB_TIMEOUT_SECONDS; rename it in the environment\n"
    assert not list(tmp_path.iterdir())


def test_the_doctor_names_every_former_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALFMOON_JOB_SECONDS", "60")
    monkeypatch.setenv("HALFMOON_KEYS_SECONDS", "1")
    monkeypatch.setenv("HALFMOON_PROT", "1")
    assert [finding.message for finding in examine() if not finding.good] == [
        "HALFMOON_JOB_SECONDS is now called HALFMOON_JOB_TIMEOUT_SECONDS",
        "HALFMOON_KEYS_SECONDS is now called HALFMOON_KEY_REFRESH_SECONDS",
        "HALFMOON_PROT is no setting; correct its spelling, or remove it",
    ]


def test_the_changelog_lists_every_former_name(repository: Path) -> None:
    rows = [line.split("`")[1::2] for line in (repository / "CHANGELOG.md").read_text().splitlines() if line.startswith("  | `HALFMOON_")]
    assert rows == [[f"HALFMOON_{former.upper()}", f"HALFMOON_{present.upper()}"] for former, present in RENAMED.items()]
