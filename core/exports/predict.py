"""Predicts with a classifier that Halfmoon trained. Needs Python 3.10 or newer and NumPy, nothing else.

    import sys
    sys.path.insert(0, "tickets-3.zip")          # or the folder that it was unpacked into
    from predict import load

    classifier = load()
    classifier.predict(["The visitors came late."])
    classifier.predict_proba([{"text": "The visitors came late."}])

On the command line: ``python tickets-3.zip documents.ndjson`` (or ``.csv`` with a column ``text``, or lines of text on the standard input).
"""

import csv
import json
import re
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

_WORD = re.compile(r"\b\w\w+\b")
_BLOCK = 1 << 22
"""numbers held at once"""
_DOCUMENTS = 1000
"""documents that the command line reads at once"""
_LEAST = 1e-12
_DENSE = "vector"


class Rows(NamedTuple):
    """Documents as a CSR matrix of shape (n_rows, n_columns): indices ascend in a row."""

    indptr: Any
    indices: Any
    values: Any
    n_columns: int

    @property
    def n_rows(self) -> int:
        """Number of documents."""
        return len(self.indptr) - 1

    def dense(self) -> Any:
        """The same as a matrix of float32, shape (n_rows, n_columns): what the ONNX graph of the same version takes as X."""
        found = np.zeros((self.n_rows, self.n_columns), np.float32)
        found[np.repeat(np.arange(self.n_rows), np.diff(self.indptr)), self.indices] = self.values
        return found


def load(path: str | Path | None = None) -> "Classifier":
    """The classifier in an archive, or in the folder that it was unpacked into; by default the one that this file came with."""
    where = Path(__file__).parent if path is None else Path(path)
    if where.is_dir():
        return Classifier(lambda name: (where / name).read_bytes())
    with zipfile.ZipFile(where) as archive:
        return Classifier(archive.read)


class Classifier:
    """A version of a model.

    Documents are texts, or dicts as the service takes them: ``text``, ``features`` (values by name), ``indices`` with ``values``, ``vector``, or
    ``vectors`` by name. Where documents are vectors, a matrix of shape (n, n_features) or a CSR matrix of SciPy serves as well.
    """

    def __init__(self, read: Any) -> None:
        self.meta = json.loads(read("model.json"))
        self.arrays = {name: np.load(BytesIO(read(f"arrays/{name}.npy")), allow_pickle=False) for name in self.meta["arrays"]}
        self.classes: list[Any] = self.meta["classes"]
        if self.meta["family"] == "linear":  # a row of zeros for all features that training never saw
            self._coefficients = np.vstack([self.arrays["coefficients"], np.zeros((1, self.arrays["coefficients"].shape[1]))])
        self._vocabulary = _vocabulary(self.meta["vocabulary"], self.arrays)

    def rows(self, documents: Any) -> Rows:
        """The documents in the columns of the model; what it does not know is left out."""
        if not isinstance(documents, (list, tuple)):
            return _matrix_rows(documents, self._vocabulary.n_columns)
        return _read_documents(self._vocabulary, [{"text": each} if isinstance(each, str) else each for each in documents])

    def decision_function(self, documents: Any) -> Any:
        """Scores, shape (n, n_columns): of two classes one column, positive for the second; of more a column each."""
        rows = self.rows(documents)
        return self._kernel_scores(rows) if self.meta["family"] == "kernel" else self._linear_scores(rows)

    def predict_proba(self, documents: Any) -> Any:
        """Probabilities of the classes, shape (n, n_classes); raises ValueError if the model is not calibrated."""
        if "calibration" not in self.meta:
            raise ValueError("this version is not calibrated, and has no probabilities; use decision_function")
        return self._probabilities(self.decision_function(documents))

    def predict(self, documents: Any) -> list[Any]:
        """The likeliest class of each document."""
        return self.predict_all(documents)[0]

    def predict_all(self, documents: Any) -> tuple[list[Any], Any, Any]:
        """The likeliest class of each document, its scores, and the probabilities: None if the model is not calibrated."""
        scores = self.decision_function(documents)
        likely = self._probabilities(scores) if "calibration" in self.meta else None
        if len(self.classes) == 1:
            best = np.zeros(len(scores), int)
        elif likely is None:
            best = (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)
        else:
            best = likely.argmax(axis=1)
        return [self.classes[place] for place in best], scores, likely

    def _probabilities(self, scores: Any) -> Any:
        slopes, offsets, odds = (np.array(self.meta["calibration"][name]) for name in ("slopes", "offsets", "odds"))
        margins = slopes * scores + offsets
        if margins.shape[1] == 1:
            margins = np.column_stack([np.zeros(len(margins)), margins])
        likely = np.exp(margins - margins.max(axis=1, keepdims=True, initial=-np.inf)) * odds + _LEAST
        return likely / likely.sum(axis=1, keepdims=True)

    def _linear_scores(self, rows: Rows) -> Any:
        scores = np.zeros((rows.n_rows, self._coefficients.shape[1]))
        for start, stop in _spans(rows, self._coefficients.shape[1]):
            part = slice(int(rows.indptr[start]), int(rows.indptr[stop]))
            terms = self._coefficients[_positions(self.arrays["features"], rows.indices[part])] * rows.values[part, None]
            filled = np.flatnonzero(np.diff(rows.indptr[start : stop + 1]))
            if len(filled):
                scores[start + filled] = np.add.reduceat(terms, rows.indptr[start + filled] - part.start, axis=0)
        return scores + self.arrays["intercepts"]

    def _kernel_scores(self, rows: Rows) -> Any:
        """Scores of some rows at a time. Support rows are multiplied as dense ones if they are almost full, else by their values."""
        features, weights, centre = self.arrays["features"], self.arrays["weights"], self.arrays.get("centre")
        scales = np.append(self.arrays.get("scales", np.ones(len(features))), 0.0)
        scores = np.empty((rows.n_rows, weights.shape[1]))
        height = max(1, _BLOCK // (1 + max(len(features), len(weights), len(self.arrays["values"]) if centre is None else 0)))
        for start in range(0, rows.n_rows, height):
            part = slice(int(rows.indptr[start]), int(rows.indptr[stop := min(start + height, rows.n_rows)]))
            dense = np.zeros((stop - start, len(features) + 1))  # its last column: features that training never saw
            which = np.repeat(np.arange(stop - start), np.diff(rows.indptr[start : stop + 1]))
            columns = _positions(features, rows.indices[part])
            dense[which, columns] = (rows.values[part] * scales[columns]).astype(np.float32)
            products, left, right = self._sparse_products(dense[:, :-1]) if centre is None else self._dense_products(dense[:, :-1] - centre)
            scores[start:stop] = _kernel_values(self.meta["kernel"], products, left, right) @ weights
        return scores + self.arrays["intercepts"]

    def _dense_products(self, dense: Any) -> tuple[Any, Any, Any]:
        """Inner products with the support rows, and the squares of both, all less the centre."""
        indptr, n_support = self.arrays["indptr"], len(self.arrays["weights"])
        products, squares = np.empty((len(dense), n_support)), np.empty(n_support)
        height = max(1, _BLOCK // max(1, dense.shape[1]))
        for start in range(0, n_support, height):
            stop = min(start + height, n_support)
            tile, part = np.zeros((stop - start, dense.shape[1])), slice(int(indptr[start]), int(indptr[stop]))
            which = np.repeat(np.arange(stop - start), np.diff(indptr[start : stop + 1]))
            tile[which, self.arrays["indices"][part]] = self.arrays["values"][part]
            tile -= self.arrays["centre"]
            products[:, start:stop], squares[start:stop] = dense @ tile.T, (tile**2).sum(axis=1)
        return products, (dense**2).sum(axis=1), squares

    def _sparse_products(self, dense: Any) -> tuple[Any, Any, Any]:
        """Inner products with the support rows, and the squares of both."""
        indptr, values = self.arrays["indptr"], self.arrays["values"].astype(np.float64)
        filled, lengths = np.flatnonzero(np.diff(indptr)), np.diff(indptr)
        products = np.zeros((len(dense), len(lengths)))
        if len(filled):
            products[:, filled] = np.add.reduceat(dense[:, self.arrays["indices"]] * values, indptr[filled], axis=1)
        squares = np.bincount(np.repeat(np.arange(len(lengths)), lengths), values**2, len(lengths))
        return products, (dense**2).sum(axis=1), squares


def _kernel_values(kernel: Mapping[str, Any], products: Any, left: Any, right: Any) -> Any:
    if kernel["name"] == "rbf":
        return np.exp(-kernel["gamma"] * np.maximum(left[:, None] + right - 2.0 * products, 0.0))
    return products if kernel["name"] == "linear" else (kernel["gamma"] * products + kernel["coef0"]) ** kernel["degree"]


def _positions(features: Any, indices: Any) -> Any:
    """Positions of features among those that training saw; their number where it did not."""
    if not len(features):
        return np.zeros(len(indices), int)
    at = np.searchsorted(features, indices)
    return np.where(features.take(at, mode="clip") == indices, at, len(features))


def _spans(rows: Rows, width: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows whose products take little memory; a single row may have more."""
    start = 0
    while start < rows.n_rows:
        stop = max(start + 1, int(np.searchsorted(rows.indptr, rows.indptr[start] + _BLOCK // width, "right")) - 1)
        yield start, stop
        start = stop


class _Columns:
    """Reads one part of documents, None where a document lacks it, as rows."""

    fields: tuple[str, ...] = ("indices", "values", "vector", "vectors")

    def read(self, contents: Sequence[Any]) -> Rows:
        """Numbers by index: pairs of indices and values, or all numbers in order."""
        return _rows([() if each is None else _pairs(each) for each in contents], self.n_columns)

    def __init__(self, n_columns: int) -> None:
        self.n_columns = n_columns


class _Names(_Columns):
    """Columns with names."""

    fields = ("features",)

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(len(names))
        self._places = {name: place for place, name in enumerate(names)}

    def read(self, contents: Sequence[Any]) -> Rows:
        """Values by name."""
        found = [[(self._places[name], value) for name, value in (each or {}).items() if name in self._places] for each in contents]
        return _rows(found, self.n_columns)


class _Terms(_Columns):
    """Columns that are words and pairs of consecutive words, weighed by TF-IDF."""

    fields = ("text",)

    def __init__(self, words: Sequence[str], keys: Any, idf: Any, logs: Any, ngrams: int) -> None:
        super().__init__(len(keys))
        self._places = {word: place for place, word in enumerate(words)}
        self._keys, self._idf, self._logs, self._ngrams = keys, idf, logs, ngrams

    def read(self, contents: Sequence[Any]) -> Rows:
        """The weights (1 + ln t) · idf of the terms of a text, where t is how often it has the term, scaled to length 1."""
        tokens = [[self._places.get(word, -1) for word in _WORD.findall((text or "").lower())] for text in contents]
        words = np.array([word for each in tokens for word in each], np.int64)
        owners = np.repeat(np.arange(len(tokens)), [len(each) for each in tokens])
        keys, rows = [words[words >= 0].astype(np.uint64) << np.uint64(32)], [owners[words >= 0]]
        if self._ngrams > 1:
            follow = (words[:-1] >= 0) & (words[1:] >= 0) & (owners[:-1] == owners[1:])
            keys.append((words[:-1][follow].astype(np.uint64) << np.uint64(32)) | (words[1:][follow] + 1).astype(np.uint64))
            rows.append(owners[:-1][follow])
        return self._weighed(np.concatenate(keys), np.concatenate(rows), len(tokens))

    def _weighed(self, keys: Any, owners: Any, n_rows: int) -> Rows:
        columns = _positions(self._keys, keys)
        known, n_terms = columns < len(self._keys), max(1, len(self._keys))
        cells, counts = np.unique(owners[known] * n_terms + columns[known], return_counts=True)
        owners, columns = np.divmod(cells, n_terms)
        logs = np.where(counts < len(self._logs), self._logs.take(counts, mode="clip"), np.log(counts))
        weights = (logs + 1.0) * self._idf[columns]
        lengths = np.sqrt(np.bincount(owners, weights * weights, n_rows))
        values = (weights / lengths[owners]).astype(np.float32)
        return Rows(_ends(np.bincount(owners, minlength=n_rows)), columns, values, len(self._keys))


class _Parts(_Columns):
    """Blocks of columns side by side, a block a part of the documents; each row of a block has length 1."""

    def __init__(self, blocks: Sequence[tuple[str, _Columns]], encoder: Mapping[str, Any] | None) -> None:
        super().__init__(sum(columns.n_columns for _, columns in blocks))
        self._blocks, self._encoder = blocks, encoder

    def read(self, contents: Sequence[Any]) -> Rows:
        """Parts by name."""
        for place, parts in enumerate(contents):
            self._check(place, parts)
        found = [
            rows if isinstance(columns, _Terms) else _unit(rows)
            for rows, columns in ((columns.read([parts.get(name) for parts in contents]), columns) for name, columns in self._blocks)
        ]
        starts = np.cumsum([0] + [rows.n_columns for rows in found])
        owners = np.concatenate([np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr)) for rows in found])
        indices = np.concatenate([rows.indices + start for rows, start in zip(found, starts[:-1], strict=True)])
        order = np.lexsort((indices, owners))
        values = np.concatenate([rows.values for rows in found])
        return Rows(_ends(np.bincount(owners, minlength=len(contents))), indices[order], values[order], self.n_columns)

    def _check(self, place: int, parts: Mapping[str, Any]) -> None:
        known = [name for name, _ in self._blocks]
        for name in parts:
            if name not in known:
                raise ValueError(f"document {place} has {name}; the model was trained on {', '.join(known)}")
        if self._encoder and parts.get("text") and f"{_DENSE}.{self._encoder['name']}" not in parts:
            name, digest = self._encoder["name"], self._encoder["digest"]
            raise ValueError(f"document {place}: give the vector of its text by the encoder {name} (SHA-256 {digest}) as vectors: {{'{name}': […]}}")
        for name, columns in self._blocks:
            if name.startswith(_DENSE) and parts.get(name) is not None and len(parts[name]) != columns.n_columns:
                raise ValueError(f"document {place}: {name} has {len(parts[name])} numbers; the model takes {columns.n_columns}")


def _vocabulary(meta: Mapping[str, Any], arrays: Mapping[str, Any], prefix: str = "", n_columns: int = 2**31) -> _Columns:
    kind = meta.get("kind", "vectors")
    if kind == "features":
        return _Names(meta["names"])
    if kind == "text":
        return _Terms(meta["words"], arrays[f"{prefix}term_keys"], arrays[f"{prefix}term_idf"], arrays["logs"], meta["ngrams"])
    if kind == "parts":
        blocks = [
            (each["name"], _vocabulary(each["vocabulary"], arrays, f"part{place}_", each["n_columns"])) for place, each in enumerate(meta["blocks"])
        ]
        return _Parts(blocks, meta.get("encoder"))
    return _Columns(n_columns)


def _read_documents(columns: _Columns, documents: Sequence[Mapping[str, Any]]) -> Rows:
    contents: list[Any] = []
    for place, document in enumerate(documents):
        parts = _parts_of(place, document)
        if isinstance(columns, _Parts):
            contents.append(parts)
            continue
        if len(parts) > 1 or any(name.partition(".")[0] not in columns.fields for name in parts):
            raise ValueError(f"document {place} has {', '.join(parts)}; the model takes {columns.fields[0]}")
        contents.append(parts.popitem()[1] if parts else None)
    return columns.read(contents)


def _parts_of(place: int, document: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a document by name, as the service names them."""
    unknown = [name for name in document if name not in ("id", "label", "text", "features", *_Columns.fields)]
    if unknown:
        raise ValueError(f"document {place}: unknown field {unknown[0]!r}; known are text, features, indices, values, vector, vectors")
    found = {name: document[name] for name in ("text", "features", _DENSE) if document.get(name) is not None}
    if document.get("indices") is not None:
        found["indices"] = (document["indices"], document.get("values") or [1.0] * len(document["indices"]))
    return {**found, **{f"{_DENSE}.{name}": vector for name, vector in (document.get("vectors") or {}).items()}}


def _pairs(content: Any) -> Iterable[tuple[int, float]]:
    return zip(*content, strict=True) if isinstance(content, tuple) else ((place, value) for place, value in enumerate(content) if value)


def _rows(pairs: Iterable[Iterable[tuple[int, float]]], n_columns: int) -> Rows:
    found = [sorted((int(index), float(value)) for index, value in each) for each in pairs]
    indices = np.array([index for each in found for index, _ in each], np.int64)
    with np.errstate(over="ignore"):  # what is beyond float32 becomes infinite, and is refused
        values = np.array([value for each in found for _, value in each], np.float64).astype(np.float32)
    if not np.isfinite(values).all() or (indices < 0).any():
        raise ValueError("indices must not be negative, and values must be finite numbers of float32")
    kept = indices < n_columns
    owners = np.repeat(np.arange(len(found)), [len(each) for each in found])
    return Rows(_ends(np.bincount(owners[kept], minlength=len(found))), indices[kept], values[kept], n_columns)


def _matrix_rows(matrix: Any, n_columns: int) -> Rows:
    if all(hasattr(matrix, name) for name in ("indptr", "indices", "data", "has_sorted_indices")):
        if not matrix.has_sorted_indices:
            raise ValueError("the indices of a CSR matrix must ascend: call sort_indices() first")
        return Rows(np.asarray(matrix.indptr), np.asarray(matrix.indices), np.asarray(matrix.data, np.float32), n_columns)
    dense = np.asarray(matrix, np.float32)
    if dense.ndim != 2 or not np.isfinite(dense).all():
        raise ValueError("documents must be a list of texts or dicts, a CSR matrix, or a matrix of shape (n, n_features) of finite numbers")
    owners, columns = np.nonzero(dense)
    return Rows(_ends(np.bincount(owners, minlength=len(dense))), columns, dense[owners, columns], n_columns)


def _unit(rows: Rows) -> Rows:
    """The rows scaled to length 1; empty ones stay empty."""
    owners, values = np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr)), rows.values.astype(np.float64)
    largest = np.zeros(rows.n_rows)
    np.maximum.at(largest, owners, np.abs(values))
    values /= np.where(largest > 0, largest, 1.0)[owners]
    lengths = np.sqrt(np.bincount(owners, values * values, rows.n_rows))
    return rows._replace(values=(values / np.where(lengths > 0, lengths, 1.0)[owners]).astype(np.float32))


def _ends(counts: Any) -> Any:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def main(arguments: Sequence[str]) -> int:
    """Write a line of JSON with the label and its probability for each document of a file, or for each line of the standard input."""
    if len(arguments) > 1 or arguments[:1] in (["-h"], ["--help"]):
        print(__doc__, file=sys.stderr)
        return 2
    classifier, documents = load(), _documents_of(arguments[0] if arguments else None)
    while block := list(islice(documents, _DOCUMENTS)):
        labels, _, likely = classifier.predict_all(block)
        probabilities = [None] * len(labels) if likely is None else likely.max(axis=1).tolist()
        for label, probability in zip(labels, probabilities, strict=True):
            print(json.dumps({"label": label, "probability": probability}, ensure_ascii=False))
    return 0


def _documents_of(path: str | None) -> Iterator[Any]:
    if path is None:
        yield from (line.rstrip("\n") for line in sys.stdin)
        return
    with open(path, encoding="utf-8-sig", newline="") as file:
        if path.endswith((".csv", ".tsv")):
            yield from (row["text"] for row in csv.DictReader(file, delimiter="\t" if path.endswith(".tsv") else ","))
        elif path.endswith((".ndjson", ".jsonl")):
            yield from (json.loads(line) for line in file if line.strip())
        else:
            yield from (line.rstrip("\r\n") for line in file)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
