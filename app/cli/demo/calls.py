"""What the demo asks of the service."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from workers.errors import CannotStart


def call(client: httpx.Client, method: str, path: str, **options: Any) -> Any:
    """The JSON answer; raises CannotStart with the problem's detail on a refusal."""
    answer = client.request(method, path, **options)
    if answer.is_error:
        raise CannotStart(f"the demo failed: {method} {path} answered {answer.status_code}: {answer.text[:500]}")
    return answer.json()


@contextmanager
def bars(console: Console) -> Iterator[Progress]:
    """Where ``train`` shows its progress."""
    columns = (
        TextColumn("{task.description:24}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[phase]}"),
    )
    with Progress(*columns, console=console) as progress:
        yield progress


def train(client: httpx.Client, progress: Progress, title: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """A job, from its submission to its end. Raises CannotStart if it does not succeed."""
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
    progress.update(bar, completed=1.0, phase=job["status"])
    return job


def found_labels(client: httpx.Client, job: str, n_unlabeled: int) -> dict[str, dict[str, Any]]:
    """What a job found for the documents that were unlabeled, by their ids. Raises CannotStart if it did not answer for every one."""
    answer = client.get(f"/v1/jobs/{job}/labels")
    answer.raise_for_status()
    found = {line["id"]: line for line in map(json.loads, answer.text.splitlines())}
    if len(found) != n_unlabeled:
        raise CannotStart(f"the demo failed: {n_unlabeled} documents were unlabeled, but {len(found)} labels came back")
    return found


def _events(client: httpx.Client, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The names and data of a stream of server-sent events, until it ends."""
    with client.stream("GET", path) as stream:
        stream.raise_for_status()
        event = ""
        for line in stream.iter_lines():
            field, _, value = line.partition(": ")
            if field == "event":
                event = value
            elif field == "data":
                yield event, json.loads(value)
