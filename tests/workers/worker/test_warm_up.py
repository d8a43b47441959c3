"""Two processes share the warm-up, and the one that goes on has loaded all of it."""

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from numba import njit

from core.numerics.vectors import dot
from core.warm_up import WARMED, Part
from storage.errors import CannotStart
from tests.waiting import until
from workers.worker import warm_up

forks = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
"""Python 3.12 warns of forks of a process with threads, as that of the tests may have"""


@pytest.fixture
def empty_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_up, "dot", njit(lambda left, right: 0.0))


@forks
@pytest.mark.usefixtures("empty_cache")
@pytest.mark.parametrize("aside", [False, True], ids=["shared", "aside"])
def test_two_processes_share_the_parts_and_one_loads_all(
    aside: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    log.touch()

    def lines() -> list[tuple[int, Part]]:
        return [
            (int(process), (name, int(width))) for process, name, width in map(str.split, log.read_text().splitlines())
        ]

    def warming(parts: Collection[Part]) -> Iterator[None]:
        for part in parts:
            with log.open("a") as file:
                file.write(f"{os.getpid()} {part[0]} {part[1]}\n")
            until(
                lambda: aside or len({process for process, _ in lines()}) == 2
            )  # neither may do it all before the other begins
            yield

    monkeypatch.setattr(warm_up, "warming_of", warming)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1})
    list(warm_up.warming(WARMED, aside=aside))
    own = [part for process, part in lines() if process == os.getpid()]
    helped = [part for process, part in lines() if process != os.getpid()]
    assert own == WARMED, "from the first on, and then those of the helper"
    assert helped
    assert helped == WARMED[::-1][: None if aside else len(helped)], "from the last on"


@pytest.mark.parametrize("processors", [{0}, {0, 1}], ids=["of one processor", "with a full cache"])
def test_a_process_warms_up_alone(processors: set[int], monkeypatch: pytest.MonkeyPatch) -> None:
    warming = Mock(return_value=())
    dot(np.zeros(1), np.zeros(1))
    monkeypatch.setattr(warm_up, "warming_of", warming)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: processors)
    warm_up.warm_up()
    assert [part for call in warming.call_args_list for part in call.args[0]] == WARMED


@forks
@pytest.mark.usefixtures("empty_cache")
@pytest.mark.parametrize("processors", [{0}, {0, 1}], ids=["alone", "helped"])
def test_kernels_that_cannot_be_compiled(
    processors: set[int], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(warm_up, "warming_of", Mock(side_effect=RuntimeError("no locator available")))
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: processors)
    with pytest.raises(CannotStart, match="the kernels cannot be compiled: no locator available; NUMBA_CACHE_DIR"):
        warm_up.warm_up()
    assert capfd.readouterr().err == "", "the helper leaves the report to the other"
