"""A simulated person at the page's own calls: ``python -m benchmarks.person URL`` writes ``docs/person.md``.

The person answers by truth but for 2 % of the answers, first random documents, then what the model suggests, and the model is trained after each
twenty answers. Beside it another person answers random documents alone.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import httpx
import numpy as np

from benchmarks.base import machine, table, write
from benchmarks.data import texts

SETS = ("sms-spam",)
STEPS = (20, 40, 80, 160)
EACH = 20
WRONG = 0.02
MOST = 4_000
_FINAL = ("succeeded", "failed", "cancelled")
_POLL_SECONDS = 0.2
_HEAD = """# A simulated person at the page

Made by `python -m benchmarks.person` on:
{machine}.

Share of the documents without a label that get a wrong one, after so many answers, of which 2 % are wrong.
The person at the page begins with random documents, then answers what the page shows: what the model suggests, a quarter of it random.
The other person answers random documents alone. Figures are means over {seeds} persons each, of at most {most} documents of each set.
"""
_NOTES = """
The first twenty answers are random for both persons, who happened to draw others. With 40 answers and more the page is
below random labels. Other sets were not measured yet.
"""

Ask = Callable[["Person", int], list[dict[str, Any]]]


class Person(NamedTuple):
    """A person at work on a dataset of its own."""

    client: httpx.Client
    dataset: str
    model: str
    truth: dict[str, str]
    chance: np.random.Generator


def random_documents(person: Person, n: int) -> list[dict[str, Any]]:
    """Random documents that have no answer."""
    query: dict[str, str | int] = {"order": "random", "state": "open", "limit": n, "seed": int(person.chance.integers(2**31))}
    found: list[dict[str, Any]] = answered(person.client.get(f"/v1/datasets/{person.dataset}/documents", params=query))["documents"]
    return found


def suggested(person: Person, n: int) -> list[dict[str, Any]]:
    """What the page shows: random documents until there is a model."""
    body = {"dataset": person.dataset, "n": n, "include": ["document"], "seed": int(person.chance.integers(2**31))}
    answer = person.client.post(f"/v1/models/{person.model}/suggest", json=body)
    if answer.status_code == httpx.codes.NOT_FOUND:
        return random_documents(person, n)
    return [{**each["document"], "drawn": each["drawn"]} for each in answered(answer)["suggestions"]]


def answered(answer: httpx.Response) -> Any:
    assert answer.is_success, answer.text
    return answer.json()


def errors(person: Person, ask: Ask) -> Iterator[float]:
    """The error after each of STEPS."""
    classes = sorted(set(person.truth.values()))
    for count in range(EACH, STEPS[-1] + 1, EACH):
        annotations = []
        for document in ask(person, EACH):
            label = person.truth[document["id"]]
            if person.chance.random() < WRONG:
                label = str(person.chance.choice([each for each in classes if each != label]))
            annotations.append({"id": document["id"], "document": document["id"], "label": label})
        answered(person.client.post(f"/v1/datasets/{person.dataset}/annotations", json={"annotations": annotations}))
        train(person)
        if count in STEPS:
            yield error(person)


def train(person: Person) -> None:
    """Train, and wait. Twenty answers of one class are too few: then the next twenty decide."""
    answer = person.client.post("/v1/jobs", json={"model": person.model, "dataset": person.dataset, "annotations": "latest"})
    if answer.status_code != httpx.codes.UNPROCESSABLE_ENTITY:
        job = answered(answer)["id"]
        while (state := answered(person.client.get(f"/v1/jobs/{job}"))["state"]) not in _FINAL:
            time.sleep(_POLL_SECONDS)
        assert state == "succeeded", f"job {job} is {state}"


def error(person: Person) -> float:
    """Share of wrong labels among the documents without an answer."""
    path = f"/v1/datasets/{person.dataset}/documents"
    wrong = []
    cursor = None
    while True:
        query: dict[str, str | int] = {"model": person.model, "state": "unlabeled", "limit": 500, **({"cursor": cursor} if cursor else {})}
        page = answered(person.client.get(path, params=query))
        wrong += [person.truth[each["id"]] != each["predicted"] for each in page["documents"]]
        cursor = page["next"]
        if cursor is None:
            return float(np.mean(wrong))


def person_at(client: httpx.Client, name: str, seed: int, model: str) -> Person:
    documents, labels = texts(name)
    chosen = np.random.default_rng(seed).permutation(len(documents))[:MOST].tolist()
    truth = {f"d{place}": str(labels[place]) for place in chosen}
    body = {"documents": [{"id": f"d{place}", "text": documents[place]} for place in chosen]}
    dataset = answered(client.post("/v1/datasets", json=body))["id"]
    return Person(client, dataset, model, truth, np.random.default_rng(seed + 1))


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sets", nargs="*", default=SETS)
    asked = parser.parse_args(arguments)
    rows = []
    with httpx.Client(base_url=asked.url, timeout=600.0) as client:
        for name in asked.sets:
            for who, ask in {"page": suggested, "random": random_documents}.items():
                people = [person_at(client, name, seed, f"{name}-{who}-{seed}") for seed in range(asked.seeds)]
                found = np.array([list(errors(person, ask)) for person in people])
                rows.append([name, who, *(f"{mean:.3f}" for mean in found.mean(axis=0))])
                print(rows[-1], file=sys.stderr, flush=True)
    page = _HEAD.format(machine=machine(), seeds=asked.seeds, most=f"{MOST:,}")
    write("person.md", page + "\n" + table(["set", "person", *map(str, STEPS)], rows) + _NOTES)


if __name__ == "__main__":
    main(sys.argv[1:])
