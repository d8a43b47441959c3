"""``python -m benchmarks.simulation [--seeds 100000] [--first 0]``: runs seeds, prints those after which an invariant
does not hold, and counts.

A thousand seeds and more add a line to ``docs/storm.md``, also if they are interrupted.
"""

import logging
import sys
import time
from collections.abc import Sequence
from contextlib import suppress

import structlog

from benchmarks.base import add_row, commit, machine, options
from benchmarks.simulation.protocol import simulate, violations

_EVERY = 1000
_TITLE = "## Schedules of the simulation"
_HEADS = ["commit", "first", "schedules", "calls", "violations", "schedules a second of a processor"]


def main(arguments: Sequence[str]) -> int:
    """The exit code says whether every invariant held."""
    given = options(__doc__, arguments, seeds=100_000, first=0)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    count, failed, calls, began = 0, 0, 0, time.process_time()
    with suppress(KeyboardInterrupt):
        for seed in range(given.first, given.first + given.seeds):
            run = simulate(seed)
            count, calls = count + 1, calls + len(run.trace)
            for sentence in violations(run):
                failed += 1
                print(f"seed {seed}: {sentence}", flush=True)
            if count % _EVERY == 0:
                print(
                    f"{count} schedules, {calls} calls, {failed} violations, {time.process_time() - began:.0f} s of "
                    "a processor",
                    flush=True,
                )
    print(f"{count} schedules, {calls} calls, {failed} violations")
    if count >= _EVERY:
        rate = count / (time.process_time() - began)
        row = [commit(), str(given.first), f"{count:,}", f"{calls:,}", str(failed), f"{rate:.1f}"]
        made = f"Made by `python -m benchmarks.simulation --first FIRST`, which adds a line; the last on: {machine()}."
        add_row("storm.md", _TITLE, made, _HEADS, row)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
