"""Trainings of the demo, with progress bars, and tables of their results."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column, Table

from storage.errors import CannotStart

if TYPE_CHECKING:
    from halfmoon import Dataset, Halfmoon, Job


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


def train(service: "Halfmoon", progress: Progress, title: str, data: "Dataset", model: str, **request: Any) -> "Job":
    """Submit a job and follow it to the end; raises halfmoon.HalfmoonError if it does not succeed."""
    bar = progress.add_task(title, total=1.0, phase="")
    job = service.train(data, model, **request)
    for seen in job.follow():
        progress.update(bar, completed=seen.fraction, phase=seen.phase)
    job.wait()
    progress.update(bar, completed=1.0, phase=str(job.record.status).replace("_", " "))
    return job


def results(title: str, texts: Sequence[str], figures: Sequence[str]) -> Table:
    """An empty table with a column for each text, aligned to the left, and for each figure, to the right."""
    table = Table(title=title, title_justify="left", min_width=len(title))
    for heading in texts:
        table.add_column(heading)
    for heading in figures:
        table.add_column(heading, justify="right")
    return table


def share_wrong(job: "Job", hidden: Mapping[str, str]) -> float:
    """Share of hidden labels, by document id, to which a job gave others; raises CannotStart if it left some out."""
    given = job.labels().to_dict()
    if given.keys() != hidden.keys():
        raise CannotStart(f"the demo failed: {len(hidden)} documents were unlabeled, but {len(given)} labels came back")
    return float(np.mean([given[id] != label for id, label in hidden.items()]))
