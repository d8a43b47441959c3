"""What a worker lets a child process do."""

import os
from pathlib import Path

import pytest

from workers.errors import CannotStart, StoreUnavailable, Unavailable
from workers.worker.apart import run_apart


def test_the_work_is_done_by_another_process(tmp_path: Path) -> None:
    file = tmp_path / "process"

    def work() -> None:
        file.write_text(str(os.getpid()))

    run_apart(work)
    assert int(file.read_text()) != os.getpid()


@pytest.mark.parametrize(("raised", "expected"), [(CannotStart, CannotStart), (StoreUnavailable, Unavailable)])
def test_what_is_wrong_is_raised_here(raised: type[Exception], expected: type[Exception]) -> None:
    def work() -> None:
        raise raised("the bucket is away")

    with pytest.raises(expected, match="the bucket is away"):
        run_apart(work)


def test_a_child_that_dies_is_no_answer() -> None:
    with pytest.raises(Unavailable, match="without an answer"):
        run_apart(lambda: os._exit(9))
