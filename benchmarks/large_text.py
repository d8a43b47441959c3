"""Large collections of text over HTTP, one worker: ``python -m benchmarks.large_text [set] [algorithm]`` writes
``docs/large-text.md``.

What is not named is measured in turn; lines of the page that are not measured stay.

``zipf-100k`` is made here, from a seed: 100,000 documents of 150 words on the mean, drawn by Zipf's law from 300,000,
in four topics that each have words of their own. The others are real and come from the folder of benchmarks.data.
"""

import json
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np
import psutil
from numpy.typing import NDArray

from benchmarks.base import DOCS, machine, number, table, write
from benchmarks.data import texts
from benchmarks.running import Service, forget_peak, peak_memory, service

SETS = ("zipf-100k", "imdb-30k", "20news-bydate")
_LABELS_A_CLASS = 20
ALGORITHMS = ("tsvm", "auto")
_PAGE = "large-text.md"
_CANCELLED_AT = (0.1, 0.24, 0.5)
"""while terms are found, while documents are weighed, while models are solved"""
_BATCH = 1000
_MIB = 2**20


class Course(NamedTuple):
    """How a job went."""

    job: dict[str, Any]
    seconds: float
    reading: float
    """seconds until the terms were found and weighed"""
    longest_silence: float
    """seconds between two events that told of something new"""
    peak: int
    """the most bytes that the process of the attempt held"""


def made_up(n_documents: int = 100_000, n_words: int = 300_000, seed: int = 0) -> tuple[list[str], NDArray[np.int64]]:
    """100,000 texts of 150 words on the mean, drawn by Zipf's law from 300,000, in four topics that share most of their
    words.
    """
    rng = np.random.default_rng(seed)
    ranks = np.arange(1, n_words + 1)
    cumulated = np.cumsum(1 / (ranks + 2.7) ** 1.05)
    words = np.array([_spelled(rank) for rank in ranks.tolist()], object)
    topics = rng.integers(0, 4, n_documents)
    lengths = np.maximum(5, rng.lognormal(np.log(150) - 0.18, 0.6, n_documents).astype(int))
    found = []
    for topic, length in zip(topics.tolist(), lengths.tolist(), strict=True):
        drawn = np.searchsorted(cumulated, rng.random(length) * cumulated[-1])
        # a third of the rarer words are of the topic: of four words in a row, one for each
        own = (drawn > 100) & (rng.random(length) < 1 / 3)
        drawn[own] += (topic - drawn[own]) % 4
        found.append(" ".join(words[np.minimum(drawn, n_words - 1)]))
    return found, topics


def _spelled(rank: int) -> str:
    """A word for each rank, longer for the rarer ones, as in languages."""
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    word = ""
    while rank:
        rank, letter = divmod(rank, len(letters))
        word += letters[letter] + "aeiou"[(rank + letter) % 5]
    return word


def _ndjson(documents: list[str], labels: NDArray[Any], seed: int = 0) -> Iterator[bytes]:
    """The body, some labels of each class in it, in blocks."""
    known = _known(labels, seed)
    for start in range(0, len(documents), 1000):
        lines = (
            json.dumps({"text": text, "label": str(labels[place]) if place in known else None}, ensure_ascii=False)
            for place, text in enumerate(documents[start : start + 1000], start)
        )
        yield "".join(f"{line}\n" for line in lines).encode()


def _known(labels: NDArray[Any], seed: int) -> set[int]:
    rng = np.random.default_rng(seed)
    return {
        int(place)
        for label in np.unique(labels)
        for place in rng.permutation(np.flatnonzero(labels == label))[:_LABELS_A_CLASS]
    }


def _events(client: httpx.Client, job: str) -> Iterator[tuple[str, dict[str, Any]]]:
    with client.stream("GET", f"/v1/jobs/{job}/events") as stream:
        name = ""
        for line in stream.iter_lines():
            field, _, value = line.partition(": ")
            if field == "event":
                name = value
            elif field == "data":
                yield name, json.loads(value)


_READING = ("waiting", "starting", "finding the terms")
"""beginnings of the phases of a job before its solver starts"""


def _posted(client: httpx.Client, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    answer = client.post(path, json=body)
    answer.raise_for_status()
    found: dict[str, Any] = answer.json()
    return found


def _trained(running: Service, client: httpx.Client, dataset: str, algorithm: str) -> Course:
    begun = time.perf_counter()
    job = _posted(client, "/v1/jobs", {"dataset": dataset, "model": algorithm, "algorithm": algorithm})
    told, silence, reading, peak = time.perf_counter(), 0.0, 0.0, 0
    latest: tuple[object, ...] = ()
    for name, data in _events(client, job["id"]):
        now = time.perf_counter()
        if name == "state":
            job = data
        elif (fresh := (data["phase"], data["fraction"], data["iteration"])) != latest:
            silence, told, latest = max(silence, now - told), now, fresh
            reading = now - begun if data["phase"].startswith(_READING) else reading
        with suppress(psutil.NoSuchProcess, FileNotFoundError):
            process = running.attempt
            peak = peak if process is None else max(peak, peak_memory(process))
    if job["state"] != "succeeded":
        raise RuntimeError(f"{algorithm}: {job['state']}: {job['error']}")
    return Course(job, time.perf_counter() - begun, reading, silence, peak)


def _cancels(client: httpx.Client, dataset: str, algorithm: str) -> float:
    """Seconds from the wish to cancel to the end of the job, the longest of some, asked for all over the course of the
    job.
    """
    longest = 0.0
    for fraction in _CANCELLED_AT:
        job = _posted(client, "/v1/jobs", {"dataset": dataset, "model": "cancelled", "algorithm": algorithm})["id"]
        asked = 0.0
        for name, data in _events(client, job):
            if name == "progress" and not asked and data["fraction"] >= fraction:
                client.post(f"/v1/jobs/{job}/cancel").raise_for_status()
                asked = time.perf_counter()
            if name == "state" and data["state"] == "cancelled":
                longest = max(longest, time.perf_counter() - asked)
    return longest


def _predictions(client: httpx.Client, model: str, documents: list[str]) -> tuple[float, float, float]:
    """Seconds of the first prediction, which loads the model, of one text (the median) and of one of a batch."""
    times = []
    for text in documents[:50]:
        begun = time.perf_counter()
        _posted(client, f"/v1/models/{model}/predict", {"documents": [{"text": text}]})
        times.append(time.perf_counter() - begun)
    batch = {"documents": [{"text": text} for text in documents[:_BATCH]]}
    begun = time.perf_counter()
    _posted(client, f"/v1/models/{model}/predict", batch)
    return times[0], float(np.median(times[1:])), (time.perf_counter() - begun) / len(batch["documents"])


def _error(client: httpx.Client, job: str, labels: NDArray[Any]) -> float:
    lines = [json.loads(line) for line in client.get(f"/v1/jobs/{job}/labels").text.splitlines()]
    return float(np.mean([line["label"] != str(labels[int(line["id"])]) for line in lines]))


def measured(name: str, algorithm: str) -> list[str]:
    """The line of one set and one algorithm."""
    documents, labels = made_up() if name == "zipf-100k" else texts(name)
    with (
        tempfile.TemporaryDirectory() as folder,
        service(Path(folder) / "data") as running,
        httpx.Client(base_url=running.url, timeout=300) as client,
    ):
        begun = time.perf_counter()
        answer = client.post(
            "/v1/datasets", content=_ndjson(documents, labels), headers={"content-type": "application/x-ndjson"}
        )
        answer.raise_for_status()
        uploading, uploaded = time.perf_counter() - begun, peak_memory(running.gateway)
        course = _trained(running, client, answer.json()["id"], algorithm)
        facts = client.get(f"/v1/models/{algorithm}/versions/1").json()["facts"]
        error = _error(client, course.job["id"], labels)
        forget_peak(running.gateway)
        first, one, many = _predictions(client, algorithm, documents)
        predicted = peak_memory(running.gateway)
        return [
            name,
            algorithm,
            number(sum(len(text.encode()) for text in documents) / 1e6),
            f"{uploading:.1f}",
            f"{course.seconds:.0f} ({course.reading:.0f})",
            f"{course.longest_silence:.1f}",
            f"{_cancels(client, answer.json()['id'], algorithm):.1f}",
            f"{course.peak / _MIB:.0f}",
            f"{uploaded / _MIB:.0f}, {predicted / _MIB:.0f}",
            f"{first * 1e3:.0f}, {one * 1e3:.1f}, {many * 1e3:.2f}",
            f"{error:.3f}",
            f"{facts['n_terms']:,} ({facts['n_words']:,}), {facts['bytes'] / _MIB:.0f} MiB",
        ]


def lines_of(page: str, lines: Iterable[list[str]]) -> list[list[str]]:
    """The lines of the table on a page, some of them made anew, in the order of sets and algorithms."""
    cells = (
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("|")
    )
    found = {(line[0], line[1]): line for line in (*cells, *lines)}
    return [found[key] for key in product(SETS, ALGORITHMS) if key in found]


_HEADS = (
    "set",
    "method",
    "MB",
    "upload, s",
    "job (until the terms are weighed), s",
    "longest silence, s",
    "longest wait for a cancel, s",
    "worker, MiB",
    "gateway, MiB: uploading, predicting",
    "prediction, ms: the first, one text, a text of 1,000",
    "error",
    "terms (words), model",
)
_TEXT = f"""# Large collections of text

Over HTTP, through one gateway and one worker, with the defaults (words and pairs of words, at most 500,000 terms).
{_LABELS_A_CLASS} labels a class.

- Memory is the most that the process ever held.
- A silence is the time between two events that report progress.
- Further jobs were cancelled at {", ".join(f"{fraction:.0%}" for fraction in _CANCELLED_AT)} of the work,
  and the wait is until they ended.
- The first prediction loads the model.
- Nothing else ran on the machine.

"""


def page_of(lines: Iterable[list[str]]) -> str:
    """The page with these lines."""
    made = f"Made by `python -m benchmarks.large_text` on:\n{machine()}.\n"
    return f"{_TEXT}{table(_HEADS, lines)}\n{made}\n`zipf-100k` is generated: {made_up.__doc__}\n"


def main(names: Iterable[str], algorithms: Iterable[str]) -> None:
    """Measure, print, write."""
    path = DOCS / _PAGE
    for name, algorithm in product(names, algorithms):
        fresh = measured(name, algorithm)
        lines = lines_of(path.read_text() if path.exists() else "", [fresh])
        write(_PAGE, page_of(lines))


if __name__ == "__main__":
    main(sys.argv[1:2] or SETS, sys.argv[2:3] or ALGORITHMS)
