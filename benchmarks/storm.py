"""Injects faults into a whole service while clients use it, and counts losses.

``python -m benchmarks.storm [--store s3]`` writes a part of ``docs/storm.md``, and adds a line to its table of storms.
"""

import argparse
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import cycle, islice
from pathlib import Path
from statistics import median

from benchmarks.base import Log, add_row, commit, machine, number, put_section, table, write
from benchmarks.store_storm.parties import bucket_in
from tests.storm.invariants import INVARIANTS, Evidence, RunAgain, counts, run_again, superseded, violations
from tests.storm.ledger import Kind
from tests.storm.storm import KINDS, Storm

_PAGE = Path(__file__).parent.parent / "docs" / "storm.md"
"""The page, whose sections are those of ``benchmarks.store_storm``."""
_BUCKET = "## The same on a bucket"
_STORMS = "## Storms"
_LOST = (
    "accepted_jobs_have_ended",
    "received_answers_are_in_the_log_once",
    "promised_datasets_are_whole",
    "clients_got_final_answers",
)
_SLOW = ("killed_jobs_run_again_soon", "nothing_hangs")
_UNTOLD = ("receivers_were_told",)
_DOUBLED = ("no_job_was_doubled", "successes_have_one_version")
_TORN = ("nothing_else_is_visible", "versions_have_no_gaps")
_LEFT = ("nothing_is_left_behind", "it_ends_when_told")


def section(storm: Storm, kind: str, title: str, evidence: Evidence, log: Log) -> str:
    """The part of the page about a storm on this kind of store."""
    wrong = violations(evidence)
    answers = Counter(answer.status for answer in evidence.ledger.answers)
    longest = max(answer.ended - answer.began for answer in evidence.ledger.answers)
    ended = ", ".join(f"{count} {state}" for state, count in sorted(counts(evidence).items()))
    answered = ", ".join(
        f"{count:,} × {status or 'none'}" for status, count in sorted(answers.items(), key=lambda each: each[0] or 0)
    )
    again = run_again(evidence)
    slowest = max((each.seconds for each in again if each.seconds is not None), default=0.0)
    told = ", ".join(f"{name} {len(ids):,} ({len(set(ids)):,})" for name, ids in evidence.ledger.told.items())
    return (
        f"{title}\n\n{'' if title == _BUCKET else _told(storm)}Made by `python -m benchmarks.storm --store {kind} "
        f"--seed {storm.seed} --jobs {storm.jobs} --faults {len(storm.faults)}` in {log.seconds:.0f} s on: "
        f"{machine()}. {log.load}\n\n"
        + table(
            [
                "jobs accepted",
                "ended as",
                "lost or stuck",
                "doubled",
                "torn",
                "leftovers",
                "longest from a death to running again",
            ],
            [
                [
                    len(evidence.ledger.jobs),
                    ended,
                    *(_count(wrong, names) for names in (_LOST, _DOUBLED, _TORN, _LEFT)),
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
        f"slowest took {longest:.1f} s. Messages that came, and how many of them differ: {told}.\n\n"
        + f"Violations of the {len(INVARIANTS)} invariants: {sum(map(len, wrong.values()))}.\n"
        + "".join(
            f"\n- {name.replace('_', ' ')}: {sentence}"
            for name, sentences in wrong.items()
            for sentence in sentences[:10]
        )
        + ("\n" if wrong else "")
    )


def _told(storm: Storm) -> str:
    """The storm, in words that hold for both kinds of store."""
    return (
        "Three clients upload documents, some with several labels, labels below labels, votes or labels of one class, "
        f"relabel, train, cancel, delete, predict and read on `halfmoon up` with {storm.workers} workers. "
        f"A lease lasts {storm.lease_seconds:g} s, a worker "
        f"drains for {storm.drain_seconds:g} s. Faults are injected one after the other, at seeded moments. "
        "Afterwards the service is checked against everything that the clients were answered.\n\n"
        "A full disk is a limit of the system on the size of files of gateway and workers, and of the server of a "
        "bucket. Redis is cut off by a TCP proxy. A clock is set while its process runs. A fault without a "
        "process to harm is left out.\n\n"
        f"Of three receivers of webhooks one is slow by {storm.slow_seconds:g} s at each fifth message, one is dead "
        f"for {storm.dead_seconds:g} s of each twenty.\n\n"
    )


def _count(wrong: Mapping[str, Sequence[str]], names: Sequence[str]) -> int:
    return sum(len(wrong.get(name, ())) for name in names)


def _row(storm: Storm, kind: str, evidence: Evidence, log: Log) -> list[str]:
    wrong = violations(evidence)
    counts = [_count(wrong, names) for names in (_LOST, _DOUBLED, _UNTOLD, _SLOW)]
    told, load = sum(map(len, evidence.ledger.told.values())), f"{min(log.loads):.1f} to {max(log.loads):.1f}"
    figures = [len(evidence.ledger.jobs), len(evidence.ledger.faults), f"{log.seconds / 60:.0f}", *counts]
    others = sum(map(len, wrong.values())) - sum(counts)
    return [commit(), kind, str(storm.seed), *map(str, (*figures, others)), f"{told:,}", load]


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
    parser.add_argument("--store", choices=["folder", "s3"], default="folder")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--faults", type=int, default=4 * len(KINDS))
    parser.add_argument(
        "--folder", type=Path, help="where to keep store and logs, to look at them afterwards; its path must be short"
    )
    given = parser.parse_args()
    storm = Storm(
        given.seed,
        given.jobs,
        tuple(islice(cycle(KINDS), given.faults)),
        gap_seconds=(1.0, 8.0),
        rage_seconds=3600.0,
        slow_seconds=8.0,
        dead_seconds=3.0,
        told_seconds=900.0,
    )
    log = Log()
    with ExitStack() as stack:
        # short, as a socket's path must be
        folder = given.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="storm-", dir="/tmp")))
        folder.mkdir(exist_ok=True)
        bucket = None
        if given.store == "s3":
            _, bucket = stack.enter_context(bucket_in(folder, stack.enter_context((folder / "server").open("ab"))))
        evidence = storm.run(folder, log, bucket)
        if bucket is None:
            _, sections, others = _PAGE.read_text().partition("\n## ")
            write("storm.md", section(storm, given.store, "# A storm", evidence, log) + sections + others)
        else:
            put_section("storm.md", section(storm, given.store, _BUCKET, evidence, log))
        heads = [
            "commit",
            "store",
            "seed",
            "jobs",
            "faults",
            "minutes",
            "lost or stuck",
            "doubled",
            "receivers not told",
            "slower than 10 s",
            "else",
            "messages to receivers",
            "load of the machine",
        ]
        made = (
            "An idle machine answers, and runs a killed job again, within 10 s; where others load it, some take "
            "longer.\n"
            "An attempt that is stopped past its lease counts as a death. Where it comes back after its job has failed "
            "of three, that stands under else.\n"
            f"Made by `python -m benchmarks.storm`, which adds a line; the last on: {machine()}."
        )
        add_row("storm.md", _STORMS, made, heads, _row(storm, given.store, evidence, log))
        return 1 if violations(evidence) else 0


if __name__ == "__main__":
    raise SystemExit(main())
