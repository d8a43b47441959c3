"""``python -m benchmarks.store_storm [--store folder|s3] [--jobs 300] [--count 80] [--faults NAME …]`` writes a part of
``docs/storm.md``.
"""

import argparse
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import cycle, islice
from pathlib import Path

from benchmarks.base import Log, machine, put_section, table
from benchmarks.store_storm.faults import Fault, faults_of
from benchmarks.store_storm.storm import Plan, Result, run
from tests.storm.ledger import Answer

_TITLES = {
    "folder": "## A folder that is slow, hangs and fails",
    "s3": "## A bucket that is slow, hangs, lies and restarts",
}
_LOST = ("accepted_jobs_have_ended", "clients_got_final_answers")
_DOUBLED = ("no_job_was_doubled", "successes_have_one_version")
_FAILED = ("failures_are_explained",)
_RESTARTED = ("healthy_jobs_are_not_restarted",)


def section(result: Result, log: Log) -> str:
    """The part of the page about one store."""
    plan, wrong = result.plan, result.wrong

    def count(names: tuple[str, ...]) -> int:
        return sum(len(wrong.get(name, ())) for name in names)

    others = [sentence for name, found in wrong.items() for sentence in found]
    times = Counter(hit.fault for hit in result.hits)
    rows = [
        [fault.value, times[fault], f"{sum(hit.ended - hit.began for hit in result.hits if hit.fault is fault):.0f}"]
        for fault in times
    ]
    bucket, folder = (
        "The bucket is one of localbucket, a small S3 server, behind a TCP proxy.",
        "Hooks in the processes make the folder ill.",
    )
    return (
        f"{_TITLES[plan.kind]}\n\n"
        f"{plan.gateways} gateways and {plan.workers} workers are processes of their own, with a client on "
        "each gateway. "
        f"{bucket if plan.kind == 's3' else folder} Beside them `halfmoon up` runs one of each.\n"
        f"Made by `python -m benchmarks.store_storm --store {plan.kind} --jobs {plan.jobs} --count "
        f"{len(plan.faults)} --seed {plan.seed}`\n"
        f"in {result.seconds:.0f} s on: {machine()}.\n"
        f"{log.load}\n\n"
        + table(
            ["jobs", "ended as", "lost", "doubled", "falsely failed", "restarted though healthy", "else"],
            [
                [
                    sum(result.states.values()),
                    ", ".join(f"{n} {state}" for state, n in sorted(result.states.items())),
                    *map(count, (_LOST, _DOUBLED, _FAILED, _RESTARTED)),
                    len(others) - count(_LOST + _DOUBLED + _FAILED + _RESTARTED),
                ]
            ],
        )
        + "".join(f"\n- {sentence}" for sentence in others[:10])
        + "\n"
        + table(["fault", "times", "seconds"], [*rows, ["**all**", times.total(), ""]])
        + "\nAnswers by status: "
        + ", ".join(f"{n:,} × {status or 'none'}" for status, n in sorted(result.statuses.items()))
        + ".\n\n"
        + table(
            ["asked all the time", "when", "requests", "not answered by 200", "median ms", "p99 ms", "worst ms"],
            _probes(result),
        )
    )


def _probes(result: Result) -> list[list[object]]:
    rows: list[list[object]] = []
    spans = {"before the first fault": result.quiet, "store away at the end": result.away, "all the time": (0.0, 1e12)}
    for what in dict.fromkeys(probe.what for probe in result.probes):
        for when, (began, ended) in spans.items():
            found = [
                probe for probe in result.probes if probe.what == what and began <= probe.began and probe.ended <= ended
            ]
            if len(found) > 1:
                failed = sum(probe.status != 200 for probe in found)
                rows.append([what, when, len(found), failed, *(f"{1000 * each:.0f}" for each in _latencies(found))])
    return rows


def _latencies(found: Sequence[Answer]) -> tuple[float, float, float]:
    seconds = sorted(probe.ended - probe.began for probe in found)
    return statistics.median(seconds), seconds[int(0.99 * (len(seconds) - 1))], seconds[-1]


def main(arguments: Sequence[str]) -> int:
    """The exit code says whether every invariant held."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.store_storm", description=__doc__)
    parser.add_argument("--store", choices=list(_TITLES), default="s3")
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--count", type=int, default=80, help="number of faults")
    parser.add_argument(
        "--faults", nargs="*", choices=[fault.name.lower() for fault in Fault], help="kinds of faults; without it all"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--folder", type=Path, help="empty folder for store and log, to look at them afterwards; its path must be short"
    )
    parser.add_argument("--away", type=float, default=60.0, help="seconds for which the store is away at the end")
    given = parser.parse_args(arguments)
    kinds = [Fault[name.upper()] for name in given.faults or ()] or faults_of(given.store)
    plan = Plan(given.store, given.jobs, tuple(islice(cycle(kinds), given.count)), given.seed, away_seconds=given.away)
    log = Log()
    with ExitStack() as stack:
        folder = given.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="storm-", dir="/tmp")))
        result = run(plan, folder, log)
    text = section(result, log)
    if given.faults:
        print(text)
    else:
        put_section("storm.md", text)
    return int(any(map(len, result.wrong.values())))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
