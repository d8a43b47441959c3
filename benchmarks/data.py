"""The data sets, read from the folder that ``HALFMOON_DATA`` names (``../shared/data`` beside the repository if
unset)."""

import gzip
import json
import os
import subprocess
import sys
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

FOLDER = Path(os.environ.get("HALFMOON_DATA", Path(__file__).parents[2] / "shared" / "data"))
BUILD = Path(__file__).parents[1] / "build"


class DataSet(NamedTuple):
    """Documents with their true classes and official splits."""

    X: sp.csr_matrix
    y: NDArray[np.int32]
    splits: dict[str, NDArray[np.int64]]


@cache
def load(name: str) -> DataSet:
    """One set of the folder; dense ones as CSR."""
    folder = FOLDER / name
    X = sp.load_npz(folder / "X.npz") if (folder / "X.npz").exists() else np.load(folder / "X.npy")
    splits = dict(np.load(folder / "splits.npz")) if (folder / "splits.npz").exists() else {}
    return DataSet(sp.csr_matrix(X), np.load(folder / "y.npy"), splits)


def stored(name: str) -> list[dict[str, Any]]:
    """The documents of a set of texts, with all that is known of each."""
    with gzip.open(FOLDER / name / "docs.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@cache
def texts(name: str) -> tuple[list[str], NDArray[Any]]:
    """The texts of a set and their labels."""
    documents = stored(name)
    return [document["text"] for document in documents], np.array([document["label"] for document in documents])


@cache
def tfidf(name: str, min_df: int = 2) -> tuple[sp.csr_matrix, NDArray[Any]]:
    """A set of texts as unit rows of sublinear TF-IDF of its words, and its labels."""
    documents, labels = texts(name)
    return vectorized(documents, min_df), labels


def vectorized(documents: list[str], min_df: int = 2, *, counts: bool = False) -> sp.csr_matrix:
    """Texts as unit rows of sublinear TF-IDF of the words that at least ``min_df`` of them have, or as their counts."""
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

    by_words = CountVectorizer if counts else partial(TfidfVectorizer, sublinear_tf=True)
    return sp.csr_matrix(by_words(min_df=min_df, dtype=np.float32).fit_transform(documents))


class TextLike(NamedTuple):
    """The generated set: training and test documents."""

    X: sp.csr_matrix
    y: NDArray[Any]
    X_test: sp.csr_matrix
    y_test: NDArray[Any]


@cache
def text_like(train: int = 100_000, features: int = 47_000) -> TextLike:
    """The synthetic text-like set of that size, generated once into ``build/``."""
    folder = BUILD / f"text-like-{train}-{features}"
    if not (folder / "y_test.npy").exists():
        script = FOLDER.parent / "bench" / "make_text_like.py"
        subprocess.run(
            [sys.executable, script, folder, "--train", str(train), "--features", str(features)],
            check=True,
            stdout=sys.stderr,
        )
    part = {name: sp.csr_matrix(sp.load_npz(folder / f"X_{name}.npz")) for name in ("train", "test")}
    return TextLike(part["train"], np.load(folder / "y_train.npy"), part["test"], np.load(folder / "y_test.npy"))
