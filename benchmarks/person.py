"""A simulated person at the page's own calls: ``python -m benchmarks.person URL`` writes ``docs/person.md`` and its
plot.

The person answers by truth but for 2 % of the answers: first random documents, then what the page shows, and a model is
trained after each twenty answers. Beside it another person answers random documents alone. Both begin with the same
documents and make their mistakes at the same answers, so that they differ by what the page does. Each model is measured
on documents that the service never had.

Persons are independent: ``--results FILE`` keeps what each found, so that a run can be stopped, gone on with and drawn.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np
from numpy.typing import NDArray

from benchmarks.base import DOCS, machine, table, write
from benchmarks.data import texts
from benchmarks.plots import Panel, draw

SETS = ("sms-spam", "reuters-r8", "webkb4-stemmed", "20news-bydate")
STEPS = (20, 40, 80, 160)
EACH = 20
WRONG = 0.02
RANDOM = 0.5
"""share of random documents among what is suggested, as the page has it (app/page/view/queue.js)"""
FIRST = 100
"""seed of the first person: RANDOM was chosen by persons of the seeds 0 to 4"""
POOL, MEASURED = 2_000, 1_500
WORSE = 0.01
_WHO = ("at the page", "random documents")
_FINAL = ("succeeded", "failed", "cancelled")
_POLL_SECONDS = 0.2
_PART = 500
_HEAD = """# A simulated person at the page

Made by `python -m benchmarks.person` on:
{machine}.

Share of wrong labels after so many answers, of which 2 % are wrong, on {measured} documents that the service never had.
The person at the page begins with random documents, then answers what the page shows: what the model
suggests, half of it random.
The other person answers random documents alone, the same ones where the page shows no others: the first
twenty, and more of many classes.
Both make their mistakes at the same answers.
Each person has {pool} documents of a set, drawn at random. Figures are means over persons, ± the standard
error of the mean.
The share of random documents was chosen by other persons than these.

"""
_PICTURE = """
![Error by number of answers, at the page and with random documents](person.png)
"""

Ask = Callable[["Person", int, int], list[dict[str, Any]]]
"""What a person is shown: so many documents, by a seed."""
Errors = NDArray[np.float64]
"""Errors of persons after each of STEPS, shape (n_persons, n_steps)."""


class Person(NamedTuple):
    """A person at work on a dataset of its own."""

    client: httpx.Client
    dataset: str
    model: str
    truth: dict[str, str]
    measured: list[tuple[str, str]]
    """Texts and labels of documents that are in no dataset."""
    order: np.random.Generator
    """Seeds of what the person is shown."""
    mistakes: np.random.Generator


def suggested(person: Person, n: int, seed: int, share: float = RANDOM) -> list[dict[str, Any]]:
    """The page's suggestions, ``share`` of them random: documents that have no answer, random ones until there is a
    model.
    """
    body = {"dataset": person.dataset, "n": n, "seed": seed, "random": share}
    answer = person.client.post(f"/v1/models/{person.model}/suggest", json=body)
    found: list[dict[str, Any]]
    if answer.status_code == httpx.codes.NOT_FOUND:
        query: dict[str, str | int] = {"order": "random", "state": "open", "limit": n, "seed": seed}
        found = answered(person.client.get(f"/v1/datasets/{person.dataset}/documents", params=query))["documents"]
    else:
        found = answered(answer)["suggestions"]
    return found


def random_documents(person: Person, n: int, seed: int) -> list[dict[str, Any]]:
    """Random documents: the same as at the page where that shows random ones alone, so that the persons differ by their
    choice.
    """
    return suggested(person, n, seed, share=1.0)


def answered(answer: httpx.Response) -> Any:
    assert answer.is_success, answer.text
    return None if answer.status_code == httpx.codes.NO_CONTENT else answer.json()


def errors(person: Person, ask: Ask) -> Iterator[float]:
    """The error after each of STEPS."""
    classes = sorted(set(person.truth.values()))
    for count in range(EACH, STEPS[-1] + 1, EACH):
        annotations = []
        for document in ask(person, EACH, int(person.order.integers(2**31))):
            label = person.truth[document["id"]]
            wrong, other = person.mistakes.random() < WRONG, person.mistakes.integers(len(classes) - 1)
            if wrong:
                label = [each for each in classes if each != label][other]
            annotations.append({"id": document["id"], "document": document["id"], "label": label})
        answered(person.client.post(f"/v1/datasets/{person.dataset}/annotations", json={"annotations": annotations}))
        if ask is suggested or count in STEPS:  # random documents need no model
            train(person)
        if count in STEPS:
            yield error(person)


def train(person: Person) -> None:
    """Train, and wait.

    As long as all labels are of one class, nothing can be trained, and the page shows more random documents.
    """
    answer = person.client.post(
        "/v1/jobs", json={"model": person.model, "dataset": person.dataset, "annotations": "latest"}
    )
    if answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY and "two classes" in answer.text:
        return
    job = answered(answer)["id"]
    while (state := answered(person.client.get(f"/v1/jobs/{job}"))["state"]) not in _FINAL:
        time.sleep(_POLL_SECONDS)
    assert state == "succeeded", f"job {job} is {state}"


def error(person: Person) -> float:
    """Share of wrong labels, by the version that the model serves; without one all documents get the class that is
    known.
    """
    known: list[str] = answered(person.client.get(f"/v1/datasets/{person.dataset}/annotations/summary"))["labels"]
    if len(known) == 1:
        return sum(label != known[0] for _, label in person.measured) / len(person.measured)
    wrong = 0
    for start in range(0, len(person.measured), _PART):
        part = person.measured[start : start + _PART]
        answer = answered(
            person.client.post(
                f"/v1/models/{person.model}/predict", json={"documents": [{"text": text} for text, _ in part]}
            )
        )
        wrong += sum(given != label for given, (_, label) in zip(answer["labels"], part, strict=True))
    return wrong / len(person.measured)


def person_at(client: httpx.Client, name: str, seed: int, who: str) -> Person:
    documents, labels = texts(name)
    drawn = np.random.default_rng([seed, 0]).permutation(len(documents)).tolist()
    chosen, measured = drawn[:POOL], drawn[POOL : POOL + MEASURED]
    truth = {f"d{place}": str(labels[place]) for place in chosen}
    body = {"documents": [{"id": f"d{place}", "text": documents[place]} for place in chosen]}
    dataset = answered(client.post("/v1/datasets", json=body))["id"]
    pairs = [(documents[place], str(labels[place])) for place in measured]
    return Person(
        client,
        dataset,
        f"{name}-{who}-{dataset[-8:]}",
        truth,
        pairs,
        np.random.default_rng([seed, 1]),
        np.random.default_rng([seed, 2]),
    )


def leave(person: Person) -> None:
    """Remove the person's model and dataset."""
    answer = person.client.delete(f"/v1/models/{person.model}")
    assert answer.is_success or answer.status_code == httpx.codes.NOT_FOUND, answer.text
    answered(person.client.delete(f"/v1/datasets/{person.dataset}"))


def measure(client: httpx.Client, names: list[str], seeds: range, results: Path) -> None:
    """Let persons work that have not done so yet."""
    known = {(each["set"], each["person"], each["seed"]) for each in read(results)}
    for seed in seeds:
        for name in names:
            for who, ask in {"page": suggested, "random": random_documents}.items():
                if (name, who, seed) in known:
                    continue
                person = person_at(client, name, seed, who)
                found = {"set": name, "person": who, "seed": seed, "errors": list(errors(person, ask))}
                leave(person)
                print(found, file=sys.stderr, flush=True)
                with results.open("a") as file:
                    file.write(json.dumps(found) + "\n")


def read(results: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []


def paired(results: Path, name: str) -> tuple[Errors, Errors]:
    """The errors at the page and with random documents, of the seeds that both have."""
    found: dict[str, dict[int, list[float]]] = {"page": {}, "random": {}}
    for each in read(results):
        if each["set"] == name:
            found[each["person"]][each["seed"]] = each["errors"]
    both = sorted(found["page"].keys() & found["random"].keys())
    page, random = (np.array([found[who][seed] for seed in both]).reshape(-1, len(STEPS)) for who in ("page", "random"))
    return page, random


def page_of(results: Path, names: list[str]) -> str:
    """The page, and its figures beside it."""
    rows, worse, better = [], [], []
    measured = {name: found for name in names if len((found := paired(results, name))[0])}
    for name, pair in measured.items():
        for who, own in zip(("page", "random"), pair, strict=True):
            rows.append(
                [
                    name,
                    who,
                    len(own),
                    *(
                        f"{mean:.3f} ± {spread:.3f}"
                        for mean, spread in zip(own.mean(axis=0), _standard_error(own), strict=True)
                    ),
                ]
            )
        gaps = pair[0].mean(axis=0) - pair[1].mean(axis=0)
        worse += [
            f"{name} after {step} answers (by {gap:.3f})" for step, gap in zip(STEPS, gaps, strict=True) if gap > WORSE
        ]
        better.append(gaps)
    curves = {
        name: {who: (STEPS, own.mean(axis=0).tolist()) for who, own in zip(_WHO, pair, strict=True)}
        for name, pair in measured.items()
    }
    draw([Panel(name, drawn, "answers", "error") for name, drawn in curves.items()], DOCS / "person.png")
    means = np.mean(better, axis=0)
    told = ", ".join(f"{-gap:.3f} after {step}" for step, gap in zip(STEPS[1:], means[1:], strict=True))
    verdict = "\nThe error at the page less the other's, of the same person:\n\n" + table(
        ["set", *map(str, STEPS[1:])], differences(measured)
    )
    verdict += (
        "\nThe first answers are the same. In the mean over the sets the error at the page is then lower by "
        f"{told} answers.\n"
    )
    verdict += (
        f"It is worse than random documents by more than {WORSE:g}: {'; '.join(worse)}.\n"
        if worse
        else f"At no step of any set it is worse by more than {WORSE:g}.\n"
    )
    head = _HEAD.format(machine=machine(), measured=f"{MEASURED:,}", pool=f"{POOL:,}")
    return head + table(["set", "documents", "persons", *map(str, STEPS)], rows) + verdict + _PICTURE


def differences(measured: dict[str, tuple[Errors, Errors]]) -> list[list[str]]:
    """A row a set: mean differences after each of STEPS but the first, with their standard errors."""
    rows = []
    for name, (page, random) in measured.items():
        found = (page - random)[:, 1:]
        rows.append(
            [
                name,
                *(
                    f"{mean:+.3f} ± {spread:.3f}"
                    for mean, spread in zip(found.mean(axis=0), _standard_error(found), strict=True)
                ),
            ]
        )
    return rows


def _standard_error(found: Errors) -> NDArray[np.float64]:
    spread: NDArray[np.float64] = found.std(axis=0, ddof=min(1, len(found) - 1)) / np.sqrt(len(found))
    return spread


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--seeds", type=int, default=8, help="number of persons")
    parser.add_argument("--first", type=int, default=FIRST, help="seed of the first of them")
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--results", type=Path, default=Path("person.jsonl"))
    parser.add_argument("--draw", action="store_true", help="write the page of what is known, without measuring")
    asked = parser.parse_args(arguments)
    if not asked.draw:
        with httpx.Client(base_url=asked.url, timeout=600.0) as client:
            measure(client, asked.sets, range(asked.first, asked.first + asked.seeds), asked.results)
    write("person.md", page_of(asked.results, asked.sets))


if __name__ == "__main__":
    main(sys.argv[1:])
