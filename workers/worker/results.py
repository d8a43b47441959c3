"""Results of a training in the store: the model, its trace, the labels that it gave."""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import save_file

from core.one_vs_rest import own_scores
from core.problem import Status
from storage.errors import StoreUnavailable, translate_os_errors
from storage.records import File, HeldOut
from storage.repositories.datasets import Documents
from storage.store import Store, staging_folder
from workers.worker.heartbeat import trace_row

if TYPE_CHECKING:
    from core.train import Training

_ROWS = 10_000
"""lines of labels that are written at a time"""


def held_out_of(training: "Training") -> HeldOut | None:
    """How the labels left out were predicted.

    None of a training without cross-validation, or that could leave out none.
    """
    known = training.confidence
    return (
        None
        if known is None or not known.total
        else HeldOut(
            labels=known.total,
            right=known.right,
            by_chance=known.by_chance,
            likeliest=known.likeliest,
            by_votes=known.by_votes,
        )
    )


def usable(training: "Training") -> bool:
    """Whether all numbers of a training are finite, so that its model may be published."""
    finite = training.model.finite and bool(np.isfinite(training.scores).all())
    return training.status is not Status.NUMERICAL_ERROR and math.isfinite(training.objective) and finite


@translate_os_errors("write", "the results of a training")
def store_results(store: Store, training: "Training", documents: Documents, prefix: str) -> dict[str, File]:
    """Upload the files of a success under ``prefix``: ``model``, ``model_meta``, ``trace``, ``labels``, and
    ``held_out`` of a calibrated training that left labels out. Raises StoreUnavailable."""
    with staging_folder(store) as folder:
        arrays, meta = training.model.to_arrays()
        _write_model(folder / "model.safetensors", arrays)
        (folder / "model.json").write_text(json.dumps(meta | {"facts": training.model.facts()}))
        (folder / "trace.json").write_text(json.dumps([trace_row(point) for point in training.trace]))
        _write_labels(folder / "labels.ndjson", training, documents)
        names = {
            "model": "model.safetensors",
            "model_meta": "model.json",
            "trace": "trace.json",
            "labels": "labels.ndjson",
        }
        left_out = _left_out(training, documents)
        if left_out is not None:
            _write_model(folder / "held_out.safetensors", left_out)
            names["held_out"] = "held_out.safetensors"
        return {kind: store.upload(f"{prefix}/{name}", folder / name) for kind, name in names.items()}


def _left_out(training: "Training", documents: Documents) -> dict[str, NDArray[Any]] | None:
    """Positions of the labels that cross-validation left out, and the probabilities of the classes without them.

    None if there are none.
    """
    if training.held_out is None or training.model.calibration is None:
        return None
    finite = np.isfinite(training.held_out)
    known = finite.any(axis=1) if training.model.several else finite.all(axis=1)
    probabilities = training.model.calibrated_probabilities(training.held_out[known])
    probabilities = np.where(finite[known].repeat(probabilities.shape[1] // finite.shape[1], 1), probabilities, np.nan)
    return {
        "positions": documents.known[known],
        "probabilities": probabilities.astype(np.float32),
    }


def _write_model(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    try:
        save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, path)
    except SafetensorError as error:
        raise StoreUnavailable(f"cannot write a model: {error}") from error


def _write_labels(path: Path, training: "Training", documents: Documents) -> None:
    """Write a line for each document that was unlabeled, in order: ``{"id", "label", "score", "probability"}``, or of
    several labels ``{"id", "labels", "probabilities"}``.

    ``score`` is that of the second of two classes, or of the given label among more; ``probability`` that of the given
    label, or null.
    """
    encode = msgspec.json.Encoder().encode
    lines = _lines_of_several(training) if training.model.several else _lines(training)
    ids, passed = iter(documents.ids), 0
    with path.open("wb") as file:
        for position, line in zip(training.unlabeled.tolist(), lines, strict=True):
            for _ in range(position - passed):
                next(ids)
            passed = position + 1
            file.write(encode({"id": next(ids)} | line) + b"\n")


def _lines(training: "Training") -> Iterator[dict[str, Any]]:
    """Label, score and probability of each document that was unlabeled, by a nested model with the path to it."""
    scores, model = training.scores, training.model
    places = model.labels_of(scores, training.probabilities)
    for start in range(0, len(scores), _ROWS):
        part = slice(start, start + _ROWS)
        chosen = places[part]
        best = own_scores(scores[part], chosen).tolist()
        likely = None if training.probabilities is None else training.probabilities[part]
        if likely is not None and model.nested:
            for (label, path), score in zip(model.tree.told(likely), best, strict=True):
                yield {"label": label, "score": score, "probability": path[label], "path": path}
            continue
        sure = [None] * len(chosen) if likely is None else likely[range(len(chosen)), chosen].tolist()
        for place, score, probability in zip(chosen.tolist(), best, sure, strict=True):
            yield {"label": model.classes[place], "score": score, "probability": probability}


def _lines_of_several(training: "Training") -> Iterator[dict[str, Any]]:
    """The labels of each document that was unlabeled, the likeliest first, with the probabilities worth telling."""
    assert training.probabilities is not None
    for start in range(0, len(training.probabilities), _ROWS):
        probabilities = training.probabilities[start : start + _ROWS]
        for labels, likely in zip(
            training.model.label_sets(probabilities), training.model.likely_labels(probabilities), strict=True
        ):
            yield {"labels": labels, "probabilities": likely}
