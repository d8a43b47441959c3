"""HTTP calls of the demo, with progress bars for its jobs."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import httpx
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column, Table

from storage.errors import CannotStart


def call(client: httpx.Client, method: str, path: str, **options: Any) -> Any:
    """The JSON answer of a call; raises CannotStart with the problem of an error response."""
    answer = client.request(method, path, **options)
    if answer.is_error:
        raise CannotStart(f"the demo failed: {method} {path} answered {answer.status_code}: {answer.text[:500]}")
    return answer.json()


@contextmanager
def bars(console: Console) -> Iterator[Progress]:
    """Progress bars, one for each job that ``train`` follows."""
    columns = (
        TextColumn("{task.description:24}"),
        BarColumn(bar_width=16),
        TextColumn("{task.percentage:3.0f} %"),
        TimeElapsedColumn(),
        TextColumn(
            "{task.fields[phase]}", markup=False, table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")
        ),
    )
    with Progress(*columns, console=console, expand=True) as progress:
        yield progress


def train(client: httpx.Client, progress: Progress, title: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """Submit a job and follow its events to the end; returns the job. Raises CannotStart if it does not succeed."""
    bar = progress.add_task(title, total=1.0, phase="")
    job: dict[str, Any] = call(client, "POST", "/v1/jobs", json=request)
    for event, data in _events(client, f"/v1/jobs/{job['id']}/events"):
        if event == "progress":
            progress.update(bar, completed=data["fraction"], phase=data["phase"])
        elif event == "state":
            job = data
    if job["state"] != "succeeded":
        reason = (job["error"] or {}).get("detail", "no reason given")
        raise CannotStart(f"the demo failed: job {job['id']} ({job['algorithm']}) is {job['state']}: {reason}")
    progress.update(bar, completed=1.0, phase=str(job["status"]).replace("_", " "))
    return job


def results(title: str, texts: Sequence[str], figures: Sequence[str]) -> Table:
    """An empty table with a column for each text, aligned to the left, and for each figure, to the right."""
    table = Table(title=title, title_justify="left", min_width=len(title))
    for heading in texts:
        table.add_column(heading)
    for heading in figures:
        table.add_column(heading, justify="right")
    return table


def found_labels(client: httpx.Client, job: str, n_unlabeled: int) -> dict[str, dict[str, Any]]:
    """Labels that a job gave to the unlabeled documents, by their ids.

    Raises CannotStart if their number is not ``n_unlabeled``.
    """
    answer = client.get(f"/v1/jobs/{job}/labels")
    answer.raise_for_status()
    found = {line["id"]: line for line in map(json.loads, answer.text.splitlines())}
    if len(found) != n_unlabeled:
        raise CannotStart(f"the demo failed: {n_unlabeled} documents were unlabeled, but {len(found)} labels came back")
    return found


def _events(client: httpx.Client, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and data of server-sent events, until the stream ends."""
    with client.stream("GET", path) as stream:
        stream.raise_for_status()
        event = ""
        for line in stream.iter_lines():
            field, _, value = line.partition(": ")
            if field == "event":
                event = value
            elif field == "data":
                yield event, json.loads(value)
