"""Clients that use the service during faults: they retry until there is an answer, and record every one."""

import json
import threading
import time
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from random import Random
from typing import Any, NamedTuple

import httpx

from tests.e2e.service import large
from tests.storm.ledger import Answer, Ledger, Promise
from tests.waiting import HANG

STEADY = "steady"
"""Name of the model that was there before the storm, for predictions."""
_MODELS = ("red", "green", "blue")
_PAUSE = 0.1
_LABELED = 200
_DOCUMENT = {"documents": [{"indices": [1, 5, 9], "values": [0.5, 0.25, 1.0]}]}
_LINEAR = ("svm", "tsvm", "da")
_ALGORITHMS = {
    "small": (*_LINEAR, "cccp_tsvm", "ramp_svm", "clusters"),
    "medium": _LINEAR,
    "long": _LINEAR,
    "several": ("auto", "svm", "tsvm"),
    "votes": ("auto", *_LINEAR),
    "tree": ("auto",),
    "one": ("auto",),
}
_SIZES = {"small": (250, 200, 10), "medium": (4_000, 5_000, 30), "long": (30_000, 20_000, 50)}
"""documents, features, features a document"""
_LINES = {"several": 500, "votes": 600, "tree": 400, "one": 450}
"""documents of several labels, with votes, with labels below labels, and with labels of one class; no two numbers are
equal, since bodies are known again by them"""
_SHARES = {"small": 2, "medium": 3, "long": 2, "several": 1, "votes": 1, "tree": 1, "one": 1}


class Body(NamedTuple):
    """Documents as they are uploaded, and the digest by which the service knows them."""

    size: str
    content: bytes
    n_documents: int
    sha256: str = ""
    media_type: str = "application/x-npz"

    def drawn(self, chance: Random) -> tuple[str, Any]:
        """The number of a document, and labels for it."""
        label = chance.choice(("left", "right", None))
        return str(chance.randrange(self.n_documents)), label and [label] if self.size == "several" else label


class GaveUp(Exception):
    """A client got no final answer for longer than any fault lasts."""


class Retry:
    """Retries of one call, for as long as no fault lasts."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._deadline = time.monotonic() + HANG

    def wait(self) -> None:
        """Sleep before the next try; raises GaveUp."""
        if time.monotonic() > self._deadline:
            raise GaveUp(f"{self._what}: no final answer in {HANG:g} s")
        time.sleep(_PAUSE)


class Caller:
    """One client; not for many threads."""

    def __init__(self, url: str, ledger: Ledger) -> None:
        self._http = httpx.Client(base_url=url, timeout=HANG / 2, trust_env=False)
        self._ledger = ledger

    def call(self, what: str, method: str, path: str, **options: Any) -> httpx.Response | None:
        """The answer, which is recorded; None if there was none."""
        began = time.time()
        try:
            answer = self._http.request(method, path, **options)
        except httpx.HTTPError:
            self._ledger.answers.append(Answer(what, began, time.time(), None))
            return None
        self._ledger.answers.append(
            Answer(what, began, time.time(), answer.status_code, answer.headers.get("Retry-After"))
        )
        return answer

    def retried(self, what: str, method: str, path: str, **options: Any) -> httpx.Response:
        """As ``call``, repeated until there is an answer that is final; raises GaveUp."""
        retry = Retry(f"{what}, {method} {path}")
        while True:
            answer = self.call(what, method, path, **options)
            if answer is not None and answer.status_code not in (429, 503, 507):
                return answer
            retry.wait()

    def upload(self, body: Body, name: str) -> str | None:
        headers = {"Content-Type": body.media_type}
        return self._made(
            self.call("upload", "POST", "/v1/datasets", params={"name": name}, content=body.content, headers=headers),
            name,
        )

    def relabel(self, dataset: str, labels: dict[str, Any], name: str) -> str | None:
        return self._made(
            self.call(
                "relabel", "PUT", f"/v1/datasets/{dataset}/labels", params={"name": name}, json={"labels": labels}
            ),
            name,
        )

    def _made(self, answer: httpx.Response | None, name: str) -> str | None:
        if answer is None:
            return None
        if answer.status_code != 201:
            self._ledger.refused.add(name)
            return None
        told = answer.json()
        self._ledger.datasets[told["id"]] = Promise(told["n_documents"], told["sha256"], name)
        return str(told["id"])

    def train(self, body: dict[str, Any], key: str, retry: bool = True) -> str | None:
        """The job that was accepted, if one was."""
        ask: Callable[..., httpx.Response | None] = self.retried if retry else self.call
        answer = ask("train", "POST", "/v1/jobs", json=body, headers={"Idempotency-Key": key})
        if answer is None or answer.status_code != 202:
            return None
        job = str(answer.json()["id"])
        self._ledger.accept(key, job)
        return job

    def delete(self, dataset: str) -> None:
        promise = self._ledger.datasets.pop(dataset, None)
        if promise is None:
            return
        # a retry after a lost answer gets 404: then it was done
        if self.retried("delete", "DELETE", f"/v1/datasets/{dataset}").status_code in (204, 404):
            self._ledger.deleted.add(dataset)
        else:
            self._ledger.datasets[dataset] = promise

    def annotate(self, dataset: str, id: str, document: str, labels: Any) -> None:
        """Label a document, with the same id until there is an answer."""
        field = "labels" if isinstance(labels, list) else "label"
        body = {"annotations": [{"id": id, "document": document, field: labels}]}
        if self.retried("annotate", "POST", f"/v1/datasets/{dataset}/annotations", json=body).status_code == 200:
            self._ledger.received(dataset, id)

    def look(self, job: str) -> None:
        answer = self.call("read", "GET", f"/v1/jobs/{job}")
        if answer is not None and answer.status_code == 200:
            self._ledger.saw(job, answer.json()["state"])

    def predict(self) -> None:
        self.call("predict", "POST", f"/v1/models/{STEADY}/predict", json=_DOCUMENT)

    def close(self) -> None:
        self._http.close()


class Member:
    """A client that trains a job in every turn, and now and then does something else, by its seed."""

    def __init__(
        self, caller: Caller, ledger: Ledger, bodies: Sequence[Body], seed: str, turns: SimpleQueue[str | None]
    ) -> None:
        self._caller = caller
        self._ledger = ledger
        self._bodies = bodies
        self._chance = Random(seed)
        self._turns = turns
        self._own: dict[str, Body] = {}

    def work(self) -> None:
        """Take turns until there are no more; errors in a turn are recorded."""
        while (name := self._turns.get()) is not None:
            try:
                self.turn(name)
            except Exception as error:
                self._ledger.broken.append(f"turn {name}: {error!r}")

    def turn(self, name: str) -> None:
        """Train one job, and do something beside it."""
        chance, caller = self._chance, self._caller
        job, retry = None, Retry("train")
        while job is None:
            retry.wait()
            dataset, body = self._dataset(name)
            algorithm = chance.choice(_ALGORITHMS[body.size])
            asked = {
                "dataset": dataset,
                "model": chance.choice(_MODELS),
                "algorithm": algorithm,
                "seed": chance.randrange(1000),
                "nested": body.size == "tree",
            }
            job = caller.train(asked, f"{name}-{dataset}")
            if job is None:
                # the dataset was removed by retention
                self._own.pop(dataset, None)
        if chance.random() < 0.2:
            time.sleep(chance.random())
            caller.retried("cancel", "POST", f"/v1/jobs/{job}/cancel")
        if chance.random() < 0.2 and len(self._own) > 1:
            gone = chance.choice(list(self._own))
            del self._own[gone]
            caller.delete(gone)
        if self._own:
            dataset, body = chance.choice(list(self._own.items()))
            for number in range(3):
                document, labels = body.drawn(chance)
                caller.annotate(dataset, f"{name}-{number}", document, labels or "left")
        caller.predict()
        caller.look(chance.choice(list(self._ledger.jobs)))
        for path in ("/v1/jobs", "/v1/datasets", "/v1/models"):
            caller.call("read", "GET", path, params={"limit": 10})

    def _dataset(self, name: str) -> tuple[str, Body]:
        """A dataset that this client has, or a new one, uploaded or relabeled."""
        chance, retry = self._chance, Retry("upload")
        while True:
            retry.wait()
            draw = chance.random()
            if self._own and draw < 0.4:
                return chance.choice(list(self._own.items()))
            if self._own and draw < 0.6:
                base, body = chance.choice(list(self._own.items()))
                labels = dict(body.drawn(chance) for _ in range(3))
                made = self._caller.relabel(base, labels, f"{name}-{draw:.9f}")
            else:
                body = chance.choices(self._bodies, [_SHARES[body.size] for body in self._bodies])[0]
                made = self._caller.upload(body, f"{name}-{draw:.9f}")
            if made is not None:
                self._own[made] = body
                return made, body


class Prober(threading.Thread):
    """Repeats the same calls all the time, without retries; not for many threads."""

    def __init__(self, caller: Caller, probe: Callable[[Caller, int], None]) -> None:
        super().__init__(name="prober", daemon=True)
        self._caller = caller
        self._probe = probe
        self._over = threading.Event()

    def run(self) -> None:
        number = 0
        while not self._over.wait(_PAUSE):
            number += 1
            self._probe(self._caller, number)

    def stop(self) -> None:
        self._over.set()
        self.join()
        self._caller.close()


def probes(dataset: str, away: Callable[[], bool]) -> list[Callable[[Caller, int], None]]:
    """Calls that must succeed without Redis, and calls that must fail while Redis is away."""

    def look(caller: Caller, number: int) -> None:
        caller.predict()
        for path in (f"/v1/datasets/{dataset}", "/v1/jobs?limit=5", f"/v1/models/{STEADY}"):
            caller.call("read", "GET", path)

    def train(caller: Caller, number: int) -> None:
        if away():
            caller.train({"dataset": dataset, "model": "probe", "algorithm": "svm"}, f"probe-{number}", retry=False)

    return [look, train]


def bodies() -> list[Body]:
    """Documents of all sizes, and those of several labels, with votes, with labels below labels, and of one class."""
    vectors = [
        Body(size, large(*shape, labeled=min(_LABELED, shape[0] // 5)), shape[0]) for size, shape in _SIZES.items()
    ]
    return [
        *vectors,
        *(Body(kind, lines(kind, n), n, media_type="application/x-ndjson") for kind, n in _LINES.items()),
    ]


def lines(kind: str, n_documents: int) -> bytes:
    """Documents of two sides as NDJSON: of several labels, with votes, with labels below those of the sides, or of one
    side.
    """
    chance, documents = Random(kind), []
    for number in range(n_documents):
        side = chance.choice(("left", "right"))
        indices = sorted(chance.sample(range(0, 12) if side == "left" else range(8, 20), 4))
        document: dict[str, Any] = {"indices": indices, "values": [1.0] * 4}
        if kind == "votes" and chance.random() < 0.5:
            document["votes"] = {"rule": side, "model": {side: 0.8}}
        if kind == "tree":
            side = f"{side}/{number % 2}"
        if number < n_documents // 10 and (kind != "one" or side == "left"):
            document |= {"labels": [side, "either"][: 1 + number % 2]} if kind == "several" else {"label": side}
        documents.append(json.dumps(document))
    return "\n".join(documents).encode()
