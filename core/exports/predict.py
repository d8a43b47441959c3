"""Predicts with a classifier that Halfmoon trained. Needs Python 3.10 or newer and NumPy, nothing else.

    import sys
    sys.path.insert(0, "tickets-3.zip")          # or the folder that it was unpacked into
    from predict import load

    classifier = load()
    classifier.predict(["The visitors came late."])
    classifier.predict_proba([{"text": "The visitors came late."}])

On the command line: ``python tickets-3.zip documents.ndjson`` (or ``.csv`` with a column ``text``, or lines of text on
the standard input).
"""

import csv
import json
import os
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
_BLOCK = 1 << 22  # numbers held at once
_DOCUMENTS = 1000  # documents that the command line reads at once
_LEAST = 1e-12
_DENSE = "vector"
_FIELDS = ("text", "features", "indices", "values", "vector", "vectors")


class Rows(NamedTuple):
    """Documents as a CSR matrix of shape (n_rows, n_columns): indices ascend in a row."""

    indptr: Any
    indices: Any
    values: Any
    n_columns: int

    @classmethod
    def of(cls, owners: Any, indices: Any, values: Any, n_rows: int, n_columns: int) -> "Rows":
        """Rows of values, in the order of their ``owners``, the number of the row of each."""
        ends = np.cumsum(np.bincount(owners, minlength=n_rows))
        return cls(np.concatenate([[0], ends]).astype(np.int64), indices, values, n_columns)

    @property
    def n_rows(self) -> int:
        """Number of documents."""
        return len(self.indptr) - 1

    @property
    def owners(self) -> Any:
        """The number of the row of each value."""
        return np.repeat(np.arange(self.n_rows), np.diff(self.indptr))

    def between(self, start: int, stop: int) -> "Rows":
        """The rows ``start`` to ``stop``."""
        own, first = slice(int(self.indptr[start]), int(self.indptr[stop])), self.indptr[start]
        return Rows(self.indptr[start : stop + 1] - first, self.indices[own], self.values[own], self.n_columns)

    def dense(self) -> Any:
        """The rows as a matrix of float32, shape (n_rows, n_columns): the X of the ONNX graph of the same version."""
        found = np.zeros((self.n_rows, self.n_columns), np.float32)
        found[self.owners, self.indices] = self.values
        return found


def load(path: str | Path | None = None) -> "Classifier":
    """The classifier in an archive, or in the folder that it was unpacked into; by default in this file's folder."""
    where = Path(__file__).parent if path is None else Path(path)
    if where.is_dir():
        return Classifier(lambda name: (where / name).read_bytes())
    with zipfile.ZipFile(where) as archive:
        return Classifier(archive.read)


class Classifier:
    """A version of a model.

    Documents are texts, or dicts as the service takes them: ``text``, ``features`` (values by name), ``indices`` with
    ``values``, ``vector``, or ``vectors`` by name. Where documents are vectors, a matrix of shape (n, n_features) or a
    CSR matrix of SciPy serves as well.
    """

    def __init__(self, read: Any) -> None:
        self.meta = json.loads(read("model.json"))
        self.arrays = {
            name: np.load(BytesIO(read(f"arrays/{name}.npy")), allow_pickle=False) for name in self.meta["arrays"]
        }
        self.classes: list[Any] = self.meta["classes"]
        self.calibration: Any = self.meta.get("calibration", {})
        self._coefficients = {  # a row of zeros for all features that training never saw
            name: np.pad(each, ((0, 1), (0, 0))) for name, each in self.arrays.items() if name.endswith("coefficients")
        }
        self._vocabulary = _vocabulary(self.meta["vocabulary"], self.arrays)

    def rows(self, documents: Any, first: int = 1) -> Rows:
        """The documents in the columns of the model, without features that it does not know.

        ``first`` is the number of the first document in messages: people count from 1.
        """
        if not isinstance(documents, (list, tuple)):
            return _matrix_rows(documents, self._vocabulary.n_columns)
        named = [{"text": each} if isinstance(each, str) else each for each in documents]
        return self._vocabulary.read(
            [self._vocabulary.content(n, _parts_of(n, each)) for n, each in enumerate(named, first)]
        )

    def decision_function(self, documents: Any, first: int = 1) -> Any:
        """Scores, shape (n, n_columns): of two classes one column, positive for the second; of more a column each."""
        rows = self.rows(documents, first)
        if self.meta["family"] == "kernel":
            return self._kernel_scores(rows)
        scores, lacking = self._linear_scores(rows), self._lacking(rows)
        if lacking.any():
            scores[lacking] = self._linear_scores(rows, "incomplete_")[lacking]
        return scores

    def predict_proba(self, documents: Any) -> Any:
        """Probabilities of the classes, shape (n, n_classes); raises ValueError if the model is not calibrated."""
        if not self.calibration:
            raise ValueError("this version is not calibrated, and has no probabilities; use decision_function")
        return self._probabilities(self.decision_function(documents))

    def predict(self, documents: Any) -> list[Any]:
        """The likeliest class of each document; of several labels the list of all that it is given."""
        return self.predict_all(documents)[0]

    def predict_all(self, documents: Any, first: int = 1) -> tuple[list[Any], Any, Any]:
        """The likeliest classes, the scores, and the probabilities or None if the model is not calibrated."""
        scores = self.decision_function(documents, first)
        likely = self._probabilities(scores) if self.calibration else None
        if "thresholds" in self.calibration:
            return self._sets(likely), scores, likely
        if likely is None and scores.shape[1] == 1 and len(self.classes) > 1:
            best = (scores[:, 0] > 0).astype(int)
        else:
            best = (scores if likely is None else likely)[:, : len(self.classes)].argmax(axis=1)
        return [self.classes[place] for place in best], scores, likely

    def _probabilities(self, scores: Any) -> Any:
        slopes, offsets, *odds = (np.array(each) for name, each in self.calibration.items() if name != "thresholds")
        margins = slopes * scores + offsets
        if not odds:  # of several labels
            return 1.0 / (1.0 + np.exp(-margins))
        if margins.shape[1] == 1:
            margins = np.column_stack([np.zeros(len(margins)), margins])
        likely = np.exp(margins - margins.max(axis=1, keepdims=True, initial=-np.inf)) * odds[0] + _LEAST
        return likely / likely.sum(axis=1, keepdims=True)

    def _sets(self, likely: Any) -> list[Any]:
        given = likely >= np.array(self.calibration["thresholds"])
        orders = np.argsort(-likely, axis=1, kind="stable")
        return [
            [self.classes[place] for place in order if own[place]] for order, own in zip(orders, given, strict=True)
        ]

    def _lacking(self, rows: Rows) -> Any:
        """Which documents have no value in the columns of a part, of which the model knows that documents lack it."""
        found, owners = np.zeros(rows.n_rows, bool), rows.owners
        for start, stop in self.arrays.get("required", ()):
            held = owners[(rows.indices >= start) & (rows.indices < stop) & (rows.values != 0)]
            found |= np.bincount(held, minlength=rows.n_rows) == 0
        return found

    def _linear_scores(self, rows: Rows, prefix: str = "") -> Any:
        """Scores by the model of all parts, or by the one with this ``prefix``."""
        coefficients, features = self._coefficients[f"{prefix}coefficients"], self.arrays[f"{prefix}features"]
        scores = np.zeros((rows.n_rows, coefficients.shape[1]))
        start, ends = 0, rows.indptr + _BLOCK // coefficients.shape[1]
        while start < rows.n_rows:
            stop = max(start + 1, int(np.searchsorted(rows.indptr, ends[start], "right")) - 1)
            part = rows.between(start, stop)
            places = _positions(features, part.indices)
            terms = coefficients[places] * self._weighed(part, places)[:, None]
            filled = np.flatnonzero(np.diff(part.indptr))
            if len(filled):
                scores[start + filled] = np.add.reduceat(terms, part.indptr[filled], axis=0)
            start = stop
        return scores + self.arrays[f"{prefix}intercepts"]

    def _weighed(self, rows: Rows, places: Any) -> Any:
        """The values of rows; if the model weighs them, by TF-IDF where they are counts, and each row at length 1."""
        if "idf" not in self.arrays:
            return rows.values
        values = rows.values.astype(np.float64)
        if self.meta.get("signed"):
            values = np.abs(values)
        if self.meta.get("divided"):
            values = _multiples(values, rows.owners, rows.n_rows)
        if self.meta["counts"]:
            sizes = np.abs(values)
            weights = np.minimum(sizes, 1.0) + _logs(np.maximum(sizes, 1.0), self.arrays["logs"])
            values = np.copysign(weights, values)
        idf = np.append(self.arrays["idf"], 0.0)[places]  # below 0 of numbers beside counts, which are no terms
        weights = _at_length_1(values * np.maximum(idf, 0.0), rows.owners, rows.n_rows)
        return np.where(idf < 0, _float32(-idf * rows.values), weights)

    def _kernel_scores(self, rows: Rows) -> Any:
        """Scores of some rows at a time, in which features that training never saw have a column of their own."""
        features, weights, centre = self.arrays["features"], self.arrays["weights"], self.arrays.get("centre")
        scales = np.append(self.arrays.get("scales", np.ones(len(features))), 0.0)
        support = Rows(self.arrays["indptr"], self.arrays["indices"], self.arrays["values"], len(features))
        full: Any = None if centre is None else support.dense() - centre
        scores = np.empty((rows.n_rows, weights.shape[1]))
        height = max(1, _BLOCK // (1 + max(len(features), len(weights), len(support.values) if centre is None else 0)))
        for start in range(0, rows.n_rows, height):
            part = rows.between(start, min(start + height, rows.n_rows))
            columns = _positions(features, part.indices)
            scaled = part._replace(indices=columns, values=part.values * scales[columns], n_columns=len(scales))
            dense = scaled.dense()[:, :-1].astype(np.float64)
            if centre is None:
                products, squares = _sparse_products(dense, support)
            else:
                dense -= centre
                products, squares = dense @ full.T, (full**2).sum(axis=1)
            values = _kernel_values(self.meta["kernel"], products, (dense**2).sum(axis=1), squares)
            scores[start : start + height] = values @ weights
        return scores + self.arrays["intercepts"]


def _logs(counts: Any, small: Any) -> Any:
    """Logarithms of counts; nearly all are whole numbers below the length of ``small``, which has theirs."""
    whole = (counts < len(small)) & (counts == np.floor(counts))
    return np.where(whole, small.take(counts.astype(np.int64), mode="clip"), np.log(counts))


def _multiples(values: Any, owners: Any, n_rows: int) -> Any:
    """Values as multiples of the size of the smallest one of their row that is not 0; nearly whole ones are whole."""
    sizes, smallest = np.abs(values), np.full(n_rows, np.inf)
    np.minimum.at(smallest, owners, np.where(sizes > 0, sizes, np.inf))
    multiples = values / smallest[owners]
    whole = np.rint(multiples)
    near = np.abs(multiples - whole) <= np.minimum(0.01 * np.abs(whole), 0.25)
    return np.where(near, whole, multiples)


def _at_length_1(values: Any, owners: Any, n_rows: int) -> Any:
    """The values of rows scaled to length 1; rows of zeros stay so."""
    lengths = np.sqrt(np.bincount(owners, values * values, n_rows))
    return (values / np.where(lengths > 0, lengths, 1.0)[owners]).astype(np.float32)


def _sparse_products(dense: Any, support: Rows) -> tuple[Any, Any]:
    """Inner products with the support rows, and the squares of these rows."""
    values, filled = support.values.astype(np.float64), np.flatnonzero(np.diff(support.indptr))
    products = np.zeros((len(dense), support.n_rows))
    if len(filled):
        products[:, filled] = np.add.reduceat(dense[:, support.indices] * values, support.indptr[filled], axis=1)
    return products, np.bincount(support.owners, values**2, support.n_rows)


def _kernel_values(kernel: Mapping[str, Any], products: Any, left: Any, right: Any) -> Any:
    if kernel["name"] == "rbf":
        return np.exp(-kernel["gamma"] * np.maximum(left[:, None] + right - 2.0 * products, 0.0))
    if kernel["name"] == "linear":
        return products
    return (kernel["gamma"] * products + kernel["coef0"]) ** kernel["degree"]


def _positions(features: Any, indices: Any) -> Any:
    """Positions of features among the features of training; their number for a feature beyond them."""
    if not len(features):
        return np.zeros(len(indices), int)
    places = np.searchsorted(features, indices)
    return np.where(features.take(places, mode="clip") == indices, places, len(features))


class _Columns:
    """Reads one part of documents as rows."""

    fields: tuple[str, ...] = _FIELDS[2:]

    def __init__(self, n_columns: int) -> None:
        self.n_columns = n_columns

    def content(self, place: int, parts: dict[str, Any]) -> Any:
        """The content that is read of a document of these parts; raises ValueError for parts of another kind."""
        if len(parts) > 1 or any(name.partition(".")[0] not in self.fields for name in parts):
            raise ValueError(f"document number {place} has {', '.join(parts)}; the model takes {self.fields[0]}")
        return parts.popitem()[1] if parts else None

    def pairs(self, content: Any) -> Iterable[tuple[int, float]]:
        """Columns and values of one document: pairs of indices and values, or all numbers in order."""
        if isinstance(content, tuple):
            return zip(*content, strict=True)
        return ((place, value) for place, value in enumerate(content) if value)

    def read(self, contents: Sequence[Any]) -> Rows:
        """The rows of documents, None for one that lacks the part."""
        pairs = [() if each is None else self.pairs(each) for each in contents]
        found = [sorted((int(index), float(value)) for index, value in each) for each in pairs]
        indices = np.array([index for each in found for index, _ in each], np.int64)
        with np.errstate(over="ignore"):  # what is beyond float32 becomes infinite, and is refused
            values = np.array([value for each in found for _, value in each], np.float64).astype(np.float32)
        if not np.isfinite(values).all() or (indices < 0).any():
            raise ValueError("indices must not be negative, and values must be finite numbers of float32")
        kept = indices < self.n_columns
        owners = np.repeat(np.arange(len(found)), [len(each) for each in found])
        return Rows.of(owners[kept], indices[kept], values[kept], len(found), self.n_columns)


class _Names(_Columns):
    """Columns with names."""

    fields = ("features",)

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(len(names))
        self._places = {name: place for place, name in enumerate(names)}

    def pairs(self, content: Any) -> Iterable[tuple[int, float]]:
        """Columns and values of one document: values by name."""
        return ((self._places[name], value) for name, value in content.items() if name in self._places)


class _Terms(_Columns):
    """Columns that are words and pairs of consecutive words, weighed by TF-IDF."""

    fields = ("text",)

    def __init__(self, meta: Mapping[str, Any], arrays: Mapping[str, Any], prefix: str) -> None:
        self._keys, self._idf = arrays[f"{prefix}term_keys"], arrays[f"{prefix}term_idf"]
        super().__init__(len(self._keys))
        self._places = {word: place for place, word in enumerate(meta["words"])}
        self._logs, self._ngrams = arrays["logs"], meta["ngrams"]

    def read(self, contents: Sequence[Any]) -> Rows:
        """Weights (1 + ln t) · idf of the terms of a text, scaled to length 1; t counts the term in the text."""
        tokens = [[self._places.get(word, -1) for word in _WORD.findall((text or "").lower())] for text in contents]
        words = np.array([word for each in tokens for word in each], np.int64)
        owners = np.repeat(np.arange(len(tokens)), [len(each) for each in tokens])
        keys, rows = [words[words >= 0].astype(np.uint64) << np.uint64(32)], [owners[words >= 0]]
        if self._ngrams > 1:
            follow = (words[:-1] >= 0) & (words[1:] >= 0) & (owners[:-1] == owners[1:])
            first, second = words[:-1][follow].astype(np.uint64), words[1:][follow].astype(np.uint64)
            keys.append((first << np.uint64(32)) | (second + np.uint64(1)))
            rows.append(owners[:-1][follow])
        owners = np.concatenate(rows)
        columns = _positions(self._keys, np.concatenate(keys))
        known, n_terms = columns < len(self._keys), max(1, len(self._keys))
        cells, counts = np.unique(owners[known] * n_terms + columns[known], return_counts=True)
        owners, columns = np.divmod(cells, n_terms)
        weights = (_logs(counts, self._logs) + 1.0) * self._idf[columns]
        values = _at_length_1(weights, owners, len(tokens))
        return Rows.of(owners, columns, values, len(tokens), len(self._keys))


class _Parts(_Columns):
    """Blocks of columns side by side, a block a part of the documents; each row of a block has length 1, less the
    centre of the block if it has one, or is one number divided by the unit of the block."""

    def __init__(
        self,
        blocks: Mapping[str, _Columns],
        centres: Mapping[str, Any],
        units: Mapping[str, float],
        encoder: Mapping[str, Any] | None,
    ) -> None:
        super().__init__(sum(columns.n_columns for columns in blocks.values()))
        self._blocks, self._centres, self._units, self._encoder = blocks, centres, units, encoder

    def read(self, contents: Sequence[Any]) -> Rows:
        """Parts by name."""
        found = []
        for name, columns in self._blocks.items():
            rows = columns.read([parts.get(name) for parts in contents])
            if name in self._units:
                rows = rows._replace(values=_float32(rows.values.astype(np.float64) / self._units[name]))
            elif not isinstance(columns, _Terms):
                rows = _unit(rows)
            found.append(_centred(rows, self._centres[name]) if name in self._centres else rows)
        starts = np.cumsum([0] + [rows.n_columns for rows in found])
        owners = np.concatenate([rows.owners for rows in found])
        indices = np.concatenate([rows.indices + start for rows, start in zip(found, starts[:-1], strict=True)])
        values, order = np.concatenate([rows.values for rows in found]), np.lexsort((indices, owners))
        return Rows.of(owners, indices[order], values[order], len(contents), self.n_columns)

    def content(self, place: int, parts: dict[str, Any]) -> Any:
        """See _Columns."""
        for name, content in parts.items():
            if name not in self._blocks:
                raise ValueError(
                    f"document number {place} has {name}; the model was trained on {', '.join(self._blocks)}"
                )
            taken = self._blocks[name].n_columns
            if name.startswith(_DENSE) and content is not None and len(content) != taken:
                raise ValueError(f"document number {place}: {name} has {len(content)} numbers; the model takes {taken}")
        if self._encoder and parts.get("text") and f"{_DENSE}.{self._encoder['name']}" not in parts:
            name, digest = self._encoder["name"], self._encoder["digest"]
            wanted = f"the vector of its text by the encoder {name} (SHA-256 {digest}) as vectors"
            raise ValueError(
                f"document number {place}: give {wanted}: {{'{name}': […]}}; a version of a job with encoder null "
                "takes the text alone"
            )
        return parts


def _vocabulary(meta: Any, arrays: Mapping[str, Any], prefix: str = "", n_columns: int = 2**31) -> _Columns:
    kind = meta.get("kind", "vectors")
    if kind == "features":
        return _Names(meta["names"])
    if kind == "text":
        return _Terms(meta, arrays, prefix)
    if kind == "parts":
        blocks, centres = {}, {}
        for place, each in enumerate(meta["blocks"]):
            blocks[each["name"]] = _vocabulary(each["vocabulary"], arrays, f"part{place}_", each["n_columns"])
            if f"part{place}_centre" in arrays:
                centres[each["name"]] = arrays[f"part{place}_centre"]
        units = {each["name"]: each["unit"] for each in meta["blocks"] if "unit" in each}
        return _Parts(blocks, centres, units, meta.get("encoder"))
    return _Columns(n_columns)


def _parts_of(place: int, document: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a document by name, as the service names them."""
    unknown = [name for name in document if name not in ("id", "label", *_FIELDS)]
    if unknown:
        raise ValueError(f"document number {place}: unknown field {unknown[0]!r}; known are {', '.join(_FIELDS)}")
    found = {name: document[name] for name in ("text", "features", _DENSE) if document.get(name) is not None}
    if document.get("indices") is not None:
        found["indices"] = (document["indices"], document.get("values") or [1.0] * len(document["indices"]))
    return {**found, **{f"{_DENSE}.{name}": vector for name, vector in (document.get("vectors") or {}).items()}}


def _matrix_rows(matrix: Any, n_columns: int) -> Rows:
    if all(hasattr(matrix, name) for name in ("indptr", "indices", "data", "has_sorted_indices")):
        if not matrix.has_sorted_indices:
            raise ValueError("the indices of a CSR matrix must ascend: call sort_indices() first")
        indptr, indices, values = (np.asarray(each) for each in (matrix.indptr, matrix.indices, matrix.data))
        return Rows(indptr, indices, values.astype(np.float32, copy=False), n_columns)
    dense = np.asarray(matrix, np.float32)
    if dense.ndim != 2 or not np.isfinite(dense).all():
        taken = "a list of texts or dicts, a CSR matrix, or a matrix of shape (n, n_features) of finite numbers"
        raise ValueError(f"documents must be {taken}")
    owners, columns = np.nonzero(dense)
    return Rows.of(owners, columns, dense[owners, columns], len(dense), n_columns)


def _float32(values: Any) -> Any:
    """The values as float32, those that lie beyond its range as its largest."""
    return np.clip(values, np.finfo(np.float32).min, np.finfo(np.float32).max).astype(np.float32)


def _unit(rows: Rows) -> Rows:
    """The rows scaled to length 1; empty ones stay empty."""
    owners, values = rows.owners, rows.values.astype(np.float64)
    largest = np.zeros(rows.n_rows)
    np.maximum.at(largest, owners, np.abs(values))
    values /= np.where(largest > 0, largest, 1.0)[owners]
    lengths = np.sqrt(np.bincount(owners, values * values, rows.n_rows))
    return rows._replace(values=(values / np.where(lengths > 0, lengths, 1.0)[owners]).astype(np.float32))


def _centred(rows: Rows, centre: Any) -> Rows:
    """The rows less the centre; a row without values stays so."""
    held = np.flatnonzero(np.diff(rows.indptr))
    values = (rows.dense()[held] - centre).ravel()
    columns = np.tile(np.arange(len(centre)), len(held))
    return Rows.of(np.repeat(held, len(centre)), columns, values, rows.n_rows, len(centre))


def main(arguments: Sequence[str]) -> str | None:
    """Write a line of JSON, the label and its probability beside id and text, for each document of a file or the input;
    returns what is wrong."""
    if len(arguments) > 1 or arguments[:1] in (["-h"], ["--help"]):
        return __doc__
    path = arguments[0] if arguments else ""
    try:
        classifier, documents, first = load(), _documents_of(path), 1
        while block := list(islice(documents, _DOCUMENTS)):
            labels, _, likely = classifier.predict_all(block, first)
            probabilities = [None] * len(labels) if likely is None else likely.max(axis=1).tolist()
            for document, label, probability in zip(block, labels, probabilities, strict=True):
                named = {name: document[name] for name in ("id", "text") if name in document}
                field = "labels" if isinstance(label, list) else "label"
                print(json.dumps({**named, field: label, "probability": probability}, ensure_ascii=False))
            first += len(block)
        sys.stdout.flush()
    except BrokenPipeError:  # who reads the output has seen enough, as `head` has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except UnicodeDecodeError:
        return f"{path or 'the input'} is not in UTF-8; save it in UTF-8"
    except (OSError, ValueError) as error:
        # the system names the file, which may be one of the model
        return str(error) if isinstance(error, OSError) else f"{path or 'the input'}: {error}"
    return None


def _documents_of(path: str) -> Iterator[Any]:
    with open(path, encoding="utf-8-sig", newline="") if path else sys.stdin as file:
        if path.endswith((".csv", ".tsv")):
            table = csv.DictReader(file, delimiter="\t" if path.endswith(".tsv") else ",")
            if "text" not in (names := table.fieldnames or ()):
                raise ValueError(f"no column is named text; there are {', '.join(names)}")
            yield from ({name: row[name] or "" for name in ("id", "text") if name in names} for row in table)
        elif path.endswith((".ndjson", ".jsonl")):
            for number, line in enumerate(file, 1):
                try:
                    if line.strip():
                        document = json.loads(line)
                        yield {"text": document} if isinstance(document, str) else document
                except json.JSONDecodeError as error:
                    raise ValueError(f"line {number} is not JSON: {error.msg}") from None
        else:
            yield from ({"text": line.rstrip("\r\n")} for line in file)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
