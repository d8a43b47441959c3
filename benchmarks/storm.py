"""Injects faults into a whole service while clients use it, and counts losses:

``python -m benchmarks.storm`` writes ``docs/storm.md``.
"""

import argparse
import tempfile
from collections import Counter
from contextlib import ExitStack
from itertools import cycle, islice
from pathlib import Path
from statistics import median

from benchmarks.base import Log, machine, number, table, write
from tests.storm.invariants import INVARIANTS, Evidence, RunAgain, counts, run_again, superseded, violations
from tests.storm.ledger import Kind
from tests.storm.storm import Storm

_PAGE = Path(__file__).parent.parent / "docs" / "storm.md"
"""The page, whose sections are those of ``benchmarks.store_storm``."""
_LOST = ("accepted_jobs_have_ended",)
_DOUBLED = ("no_job_was_doubled", "successes_have_one_version")
_TORN = ("promised_datasets_are_whole", "nothing_else_is_visible", "versions_have_no_gaps")
_LEFT = ("nothing_is_left_behind", "it_ends_when_told")


def page(storm: Storm, evidence: Evidence, log: Log) -> str:
    """The page."""
    wrong = violations(evidence)
    answers = Counter(answer.status for answer in evidence.ledger.answers)
    longest = max(answer.ended - answer.began for answer in evidence.ledger.answers)
    ended = ", ".join(f"{count} {state}" for state, count in sorted(counts(evidence).items()))
    answered = ", ".join(
        f"{count:,} × {status or 'none'}" for status, count in sorted(answers.items(), key=lambda each: each[0] or 0)
    )
    again = run_again(evidence)
    slowest = max((each.seconds for each in again if each.seconds is not None), default=0.0)

    def count(names: tuple[str, ...]) -> int:
        return sum(len(wrong.get(name, ())) for name in names)

    return (
        "# A storm\n\n"
        "Three clients upload, relabel, train, cancel, delete, predict and read on `halfmoon up` with "
        f"{storm.workers} workers. A lease lasts "
        f"{storm.lease_seconds:g} s, a worker drains for {storm.drain_seconds:g} s. Faults are injected one "
        "after the other, at seeded moments. "
        "Afterwards the service is checked against everything that the clients were answered.\n\n"
        "A full disk is a limit of the system on the size of files of gateway and workers. Redis is cut off by a TCP "
        "proxy.\n\n"
        f"Made by `python -m benchmarks.storm --seed {storm.seed} --jobs {storm.jobs} --faults "
        f"{len(storm.faults)}` in {log.seconds:.0f} s "
        f"on: {machine()}. {log.load}\n\n"
        + table(
            [
                "jobs accepted",
                "ended as",
                "lost",
                "doubled",
                "torn",
                "leftovers",
                "longest from a death to running again",
            ],
            [
                [
                    len(evidence.ledger.jobs),
                    ended,
                    *(count(names) for names in (_LOST, _DOUBLED, _TORN, _LEFT)),
                    f"{slowest:.1f} s",
                ]
            ],
        )
        + "\n"
        + table(["fault", "times", "attempts hit"], _faults(evidence))
        + "\n"
        + table(["a killed job ran again after", "times", "median s", "worst s"], _again(again))
        + f"\nThe bound is {evidence.soon_seconds:g} s, from the end of the last fault before the job ran again. "
        f"Attempts handed back or superseded: {superseded(evidence)}. Answers by status: {answered}; the "
        f"slowest took {longest:.1f} s.\n\n"
        + f"Violations of the {len(INVARIANTS)} invariants: {sum(map(len, wrong.values()))}.\n"
        + "".join(
            f"\n- {name.replace('_', ' ')}: {sentence}"
            for name, sentences in wrong.items()
            for sentence in sentences[:10]
        )
        + ("\n" if wrong else "")
    )


def _faults(evidence: Evidence) -> list[list[object]]:
    times = Counter(fault.kind for fault in evidence.ledger.faults)
    hit = Counter(fault.kind for fault in evidence.ledger.faults for _ in fault.hit)
    rows: list[list[object]] = [[kind.value, times[kind], hit[kind]] for kind in Kind]
    return [*rows, ["**all**", times.total(), hit.total()]]


def _again(found: list[RunAgain]) -> list[list[object]]:
    rows: list[list[object]] = []
    told = [(each.seconds, each.disturbed) for each in found if each.seconds is not None]
    for name, seconds in (
        ("its death, with no other fault meanwhile", [taken for taken, disturbed in told if not disturbed]),
        ("its death, with others meanwhile", [taken for taken, disturbed in told if disturbed]),
        ("the end of the last of these faults", [taken - disturbed for taken, disturbed in told if disturbed]),
    ):
        if seconds:
            rows.append([name, len(seconds), number(median(seconds)), number(max(seconds))])
    return [*rows, ["never", sum(1 for each in found if each.seconds is None), "", ""]]


def main() -> int:
    """The exit code says whether every invariant held."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--faults", type=int, default=4 * len(Kind))
    parser.add_argument(
        "--folder", type=Path, help="where to keep store and logs, to look at them afterwards; its path must be short"
    )
    given = parser.parse_args()
    storm = Storm(given.seed, given.jobs, tuple(islice(cycle(Kind), given.faults)), gap_seconds=(1.0, 4.0))
    log = Log()
    with ExitStack() as stack:
        # short, as a socket's path must be
        folder = given.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="storm-", dir="/tmp")))
        folder.mkdir(exist_ok=True)
        evidence = storm.run(folder, log)
        _, sections, others = (_PAGE.read_text() if _PAGE.exists() else "").partition("\n## ")
        write("storm.md", page(storm, evidence, log) + sections + others)
        return 1 if violations(evidence) else 0


if __name__ == "__main__":
    raise SystemExit(main())
