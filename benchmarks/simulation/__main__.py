"""``python -m benchmarks.simulation [--seeds 100000] [--first 0]``: runs seeds, prints those after which an invariant does not hold, and counts.

A thousand seeds and more write a section of ``docs/storm.md``, also if they are interrupted.
"""

import argparse
import logging
import sys
import time
from collections.abc import Sequence
from contextlib import suppress

import structlog

from benchmarks.base import machine, put_section, table
from benchmarks.simulation.protocol import simulate, violations

_EVERY = 1000


def section(first: int, count: int, calls: int, failed: int, seconds: float) -> str:
    """The section of the page."""
    return (
        "## The protocol in a simulation\n\n"
        "Gateways, workers, reconcilers, garbage collection, retention and an upgrade run their own code in one process, against a simulated store, "
        "Redis and clock. A scheduler with a seed may fail, delay or kill at every call, and clocks are up to an hour off. "
        "Twenty-two rules of the protocol are taken out one by one in `tests/benchmarks/test_simulation.py`, and each is noticed.\n\n"
        f"Made by `python -m benchmarks.simulation --first {first} --seeds {count}` on: {machine()}.\n\n"
        + table(
            ["schedules", "calls", "violations", "schedules a second of a processor"],
            [[f"{count:,}", f"{calls:,}", failed, f"{count / seconds:.1f}"]],
        )
    )


def main(arguments: Sequence[str]) -> int:
    """The exit code says whether every invariant held."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulation")
    parser.add_argument("--seeds", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args(arguments)
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
                print(f"{count} schedules, {calls} calls, {failed} violations, {time.process_time() - began:.0f} s of a processor", flush=True)
    print(f"{count} schedules, {calls} calls, {failed} violations")
    if count >= _EVERY:
        put_section("storm.md", section(given.first, count, calls, failed, time.process_time() - began))
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
