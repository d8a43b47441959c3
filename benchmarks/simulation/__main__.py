"""``python -m benchmarks.simulation [--seeds 100000] [--first 0]``: runs seeds and prints those after which an invariant does not hold."""

import argparse
import logging
import sys
import time
from collections.abc import Sequence

import structlog

from benchmarks.simulation.protocol import simulate, violations

_EVERY = 1000


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulation")
    parser.add_argument("--seeds", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args(arguments)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    failed, calls, began = 0, 0, time.monotonic()
    for count, seed in enumerate(range(given.first, given.first + given.seeds), 1):
        run = simulate(seed)
        calls += len(run.calls)
        for sentence in violations(run):
            failed += 1
            print(f"seed {seed}: {sentence}", flush=True)
        if count % _EVERY == 0:
            print(f"{count} schedules, {calls} calls, {failed} violations, {time.monotonic() - began:.0f} s", flush=True)
    print(f"{given.seeds} schedules, {calls} calls, {failed} violations")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
