"""Replaces every process of a fleet under load.

``python -m benchmarks.serving`` writes the section Serving of ``docs/scale.md``.
"""

import statistics

from benchmarks.base import Log, machine, number, options, put_section, table
from benchmarks.serving.storm import Plan, Result, median_milliseconds, run

_LEAST = 20
"""predictions of a phase from which on a quantile means something"""


def section(plan: Plan, result: Result, log: Log) -> str:
    """The section."""
    ended = ", ".join(f"{count} {state}" for state, count in sorted(result.states.items()))
    rows = []
    for phase in result.phases:
        found = result.of(phase.name)
        if len(found) < _LEAST:
            continue
        late = statistics.quantiles((1000 * (each.ended - each.due) for each in found), n=100, method="inclusive")[98]
        failed = sum(each.status != 200 for each in found)
        rows.append(
            [
                phase.name,
                number(phase.ended - phase.began),
                f"{len(found):,}",
                failed,
                number(median_milliseconds(found)),
                number(late),
            ]
        )
    stops = "; ".join(f"a {kind} took {max(each):.1f} s at most to stop" for kind, each in result.stops.items())
    command = f"--gateways {plan.gateways} --workers {plan.workers} --jobs {plan.jobs} --rate {plan.rate:g}"
    head = ["while", "seconds", "predictions", "failed", "median ms", "99th percentile, ms"]
    return (
        f"## Serving\n\n{plan.gateways} gateways behind a proxy that knows nothing of HTTP, and "
        f"{plan.workers} workers, each a process of its own, "
        f"on one machine with Valkey and an S3 server. {plan.rate:g} predictions a second are due, "
        f"on {plan.connections} connections; "
        f"nothing is sent twice. {plan.jobs} jobs are posted meanwhile. First every gateway and then every "
        "worker is replaced: the new process is "
        "started, and the old one gets SIGTERM. Then an alias moves, and at last a gateway is killed without "
        "notice.\n\n"
        f"Made by `python -m benchmarks.serving {command}` in {log.seconds:.0f} s on: {machine()}. "
        f"{log.load}\n\n"
        + table(
            ["jobs accepted", "ended as", "lost", "doubled"],
            [[sum(result.states.values()), ended, result.lost, result.doubled]],
        )
        + f"\n{table(head, rows)}\n"
        f"{stops[0].upper()}{stops[1:]}. Times count from when a prediction was due: where fewer ended than "
        "were due, the machine had no processor left, and they came late. When a gateway is killed, the requests "
        "that it was answering fail, and a client that repeats one gets its answer from another.\n\n"
        "The last prediction that the old version of the moved alias answered began "
        f"{1000 * result.stale_seconds():.0f} ms after the alias was "
        "set. The bound is `HALFMOON_VERSION_CACHE_SECONDS`, 250 ms: see the [runbook](runbook.md#scale-out).\n"
    )


def main() -> int:
    """The exit code says whether all that is promised held."""
    plan = Plan(**vars(options(__doc__, **Plan._field_defaults)))
    log = Log()
    result = run(plan, log)
    put_section("scale.md", section(plan, result, log))
    failed = sum(
        each.status != 200
        for phase in ("nothing else", "rolling restart", "alias moved", "the other jobs")
        for each in result.of(phase)
    )
    return 1 if result.lost or result.doubled or failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
