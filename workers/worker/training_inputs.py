"""Inputs of a training: the rows of a dataset of any kind of documents, and the meaning of their columns.

Terms of texts are counted in memory, or by parts in files. Both give the same bits.

Vectors of texts, which a pre-trained encoder makes, are beside them where the encoder is asked for.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from core.documents.kinds import FIELDS, NamedRows, PartRows, Rows, RowsOfKind, TextRows, is_dense, parts_of, spans
from core.documents.part_columns import Block, EncoderId, PartColumns, centre_of, unit_of
from core.documents.rows import Space, SparseRows
from core.documents.text.batches import TextCheckpoint
from core.documents.text.counts import MappedCounter
from core.documents.text.tfidf import TextTerms, unspaced
from core.documents.text.tfidf_fit import SPACES, fit_by_parts, fit_terms, weighed
from core.documents.vocabulary import NUMBERS, Names, Vocabulary
from core.engine import EngineName
from core.models.model import Model
from core.options.text import TextOptions
from core.progress import WHOLE, Phase, Span, Watch
from storage.errors import JobTooLarge, translate_os_errors
from storage.records import EncoderRef
from storage.repositories.datasets.encodings import KeptVectors, digest_of
from storage.repositories.datasets.files.npy import NpyWriter, mapped, open_array
from storage.store import Store, staging_folder
from workers.encoders.encoder import Encoder
from workers.encoders.rows import rows_of_vectors


class ScratchFiles:
    """A core.documents.rows.Space with arrays in files of a folder.

    The files have no names: they end with their arrays, or their process.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @translate_os_errors("write", "the rows of a training")
    def zeros(self, count: int, dtype: DTypeLike) -> NDArray[Any]:
        """See Space; raises StoreFull where the disk has no room, before anything is written."""
        with TemporaryFile(dir=self._folder) as file:
            return mapped(file, dtype, count) if count else np.zeros(count, dtype)


class TextEngine(NamedTuple):
    """The engine by which the terms of texts are found."""

    name: EngineName
    table_bytes: int = 0
    """bytes that tables of counts may take where the others lie in files; 0: none lie there"""


class TextReader:
    """Finds the terms of texts, and weighs them."""

    def __init__(self, engine: TextEngine, space: Space, threads: int | None) -> None:
        """Counts that outgrow memory lie in the ``space``."""
        self.engine = engine.name
        """Engine that found the terms, or is to find them."""
        self._table_bytes, self._space, self._threads = engine.table_bytes, space, threads

    def fit(self, texts: TextRows, options: TextOptions, report: TextCheckpoint) -> TextTerms:
        """The terms of the texts.

        Where they outgrow memory against what was expected, which ``report`` says by JobTooLarge, they go to files.
        """
        reached = 0.0

        def note(done: float, held: int) -> None:
            nonlocal reached
            reached = done
            report(done, held)

        if self.engine == "memory":
            try:
                return fit_terms(texts, options, note, self._threads)
            except JobTooLarge:
                if not self._table_bytes:
                    raise
                self.engine = "mapped"
        rest = Span(reached, 1.0)
        counting = partial(MappedCounter, texts, self._space, self._table_bytes, self._threads)
        return fit_by_parts(counting, texts, options, lambda done, held: report(rest.position(done), held))

    def weighed(self, texts: TextRows, terms: TextTerms, report: TextCheckpoint) -> Iterator[SparseRows]:
        """The rows of the texts, a span after the other."""
        return weighed(texts, terms, report, self._threads)


_TEXT = Span(0.0, 0.25)
"""Span of a job that its text takes: to find the terms, and to write the rows."""
_SPAN_ROWS, _SPAN_NONZEROS = 4096, 1 << 19
_BASE_BYTES = 64 << 20


def text_remedy(options: TextOptions, engine: EngineName = "memory") -> str:
    """The remedy for text that needs too much memory where an engine finds the terms, as the end of a sentence."""
    if engine != "memory":
        return "lower text.max_terms, or train on fewer documents"
    return (
        f"{'set text.ngrams to 1, which takes a fraction, or ' if options.ngrams > 1 else ''}train on fewer documents"
    )


class TrainingInputs(NamedTuple):
    """Documents as a training takes them."""

    rows: SparseRows
    vocabulary: Vocabulary
    """meaning of the columns: numbers, names or terms"""
    rest: Span
    """span of the job that is left for the training"""
    warnings: Sequence[str] = ()
    """warnings about the text"""
    terms_engine: EngineName | None = None
    """the engine that found the terms of text"""

    @property
    def parts(self) -> Mapping[str, slice]:
        """Columns of each part, by name; empty for documents of one."""
        columns = self.vocabulary
        return columns.ranges if isinstance(columns, PartColumns) else {}

    def columns_by(self, encoder: EncoderRef | None) -> Vocabulary:
        """The meaning of the columns, with the encoder that made a part of them, if one did."""
        columns = self.vocabulary
        if encoder is None or not isinstance(columns, PartColumns):
            return columns
        id = EncoderId(encoder.name, encoder.digest)
        return replace(columns, encoder=id) if id.part in columns.ranges else columns

    def renumbered(self, start: Model) -> Model:
        """The model ``start`` with its features renumbered to the columns of these inputs."""
        if start.vocabulary.kind == "vectors":
            return start
        own = self.vocabulary
        if isinstance(start.vocabulary, PartColumns) and not isinstance(own, PartColumns):
            # the start has vectors of texts, which these have not yet
            own = PartColumns([Block(FIELDS["text"], own, self.rows.n_features)])
        return start.renumbered(own.columns_of(start.vocabulary))


@contextmanager
def training_inputs(
    store: Store,
    rows: Rows,
    options: Mapping[str, int] | None,
    watch: Watch,
    most_bytes: int,
    engine: TextEngine,
    threads: int | None = None,
) -> Iterator[TrainingInputs]:
    """The inputs, for as long as the block is entered: the rows of text lie in temporary files. ``threads`` read text;
    None: one a core.

    The ``engine`` finds the terms.

    Raises core.progress.Stopped when the observer of the job asks to stop, InvalidDocuments for text without terms, and
    JobTooLarge as soon as finding the terms takes more than ``most_bytes``.
    """
    match rows:
        case SparseRows():
            yield TrainingInputs(rows, NUMBERS, WHOLE)
        case NamedRows():
            yield TrainingInputs(rows.rows, Names(list(rows.names)), WHOLE)
        case TextRows() | PartRows():
            with staging_folder(store) as folder:
                reader = TextReader(engine, ScratchFiles(folder), threads)
                yield _read(folder, rows, TextOptions.parse(options or {}), watch, most_bytes, reader)


def _read(
    folder: Path,
    documents: TextRows | PartRows,
    options: TextOptions,
    watch: Watch,
    most_bytes: int,
    reader: TextReader,
) -> TrainingInputs:
    """The inputs of documents that are read once to know their columns, and again to write their rows."""

    def report(span: Span, done: float, held: int) -> None:
        if _BASE_BYTES + held > most_bytes:
            raise JobTooLarge(_BASE_BYTES + held, most_bytes, text_remedy(options, reader.engine))
        watch.latest = watch.latest._replace(phase=Phase("terms"), fraction=span.position(done))
        watch()

    finding, writing = _TEXT.between(0.0, 0.5), _TEXT.between(0.5, 1.0)
    columns = _columns_of(documents, options, lambda done, held: report(finding, done, held), reader)
    rows = _written(folder, _rows_of(documents, columns, lambda done, held: report(writing, done, held), reader))
    warnings = _warnings(rows, documents, options) if isinstance(documents, TextRows) else []
    has_text = any(isinstance(part, TextRows) for part in parts_of(documents).values())
    return TrainingInputs(rows, columns, Span(_TEXT.stop, 1.0), warnings, reader.engine if has_text else None)


def _columns_of(documents: Rows, options: TextOptions, report: TextCheckpoint, reader: TextReader) -> Vocabulary:
    """The columns of documents of any kind; the columns of text are its terms."""
    match documents:
        case SparseRows():
            return NUMBERS
        case NamedRows():
            return Names(list(documents.names))
        case TextRows():
            return reader.fit(documents, options, report)
        case PartRows():
            return PartColumns(
                [
                    _block_of(name, part, _columns_of(part, options, report, reader))
                    for name, part in documents.parts.items()
                ]
            )


def _block_of(name: str, part: RowsOfKind, columns: Vocabulary) -> Block:
    """The block of a part whose columns have this meaning."""
    match part:
        case SparseRows():
            return Block(name, columns, part.n_features, centre_of(part) if is_dense(name) else None, unit_of(part))
        case NamedRows():
            return Block(name, columns, part.rows.n_features, unit=unit_of(part.rows))
        case TextRows():
            assert isinstance(columns, TextTerms)
            return Block(name, columns, len(columns.keys))


def _rows_of(
    documents: TextRows | PartRows, columns: Vocabulary, report: TextCheckpoint, reader: TextReader
) -> Iterator[SparseRows]:
    """The rows of the documents, a span after the other."""
    if isinstance(documents, TextRows):
        assert isinstance(columns, TextTerms)
        yield from reader.weighed(documents, columns, report)
        return
    assert isinstance(columns, PartColumns)
    texts, terms, start = documents.parts.get(FIELDS["text"]), columns.of_part(FIELDS["text"]), 0
    if isinstance(texts, TextRows) and isinstance(terms, TextTerms):
        for rows in reader.weighed(texts, terms, report):
            yield columns.rows_beside(documents.between(start, start + rows.n_rows), {FIELDS["text"]: rows})
            start += rows.n_rows
        return
    for start, stop in spans(documents.indptr, _SPAN_ROWS, _SPAN_NONZEROS):
        yield columns.rows_beside(documents.between(start, stop), {})
        report(stop / documents.n_rows, columns.nbytes)


def _warnings(rows: SparseRows, texts: TextRows, options: TextOptions) -> list[str]:
    """Warnings of texts without terms, as most are in a language without spaces between words."""
    n_empty = int(np.count_nonzero(rows.indptr[1:] == rows.indptr[:-1]))
    clauses = [f"the texts have few spaces: {SPACES}"] if unspaced(texts) else []
    if not n_empty:
        return clauses
    rule = (
        f"a term must occur in {options.min_documents} documents (text.min_documents)"
        if options.min_documents > 1
        else "they have no word"
    )
    return [
        f"{n_empty} of the {rows.n_rows} texts have none of the terms, so nothing tells them apart; {rule}",
        *clauses,
    ]


@translate_os_errors("write", "the rows of a training")
def _written(folder: Path, spans_of_rows: Iterator[SparseRows]) -> SparseRows:
    """The rows in files, so that memory does not grow with them."""
    n_columns = 0
    with ExitStack() as stack:
        kinds = {"indptr": "<i8", "indices": "<u4", "values": "<f4"}
        files = {name: stack.enter_context(NpyWriter(folder / f"{name}.npy", kind)) for name, kind in kinds.items()}
        files["indptr"].append(np.zeros(1, np.int64))
        for rows in spans_of_rows:
            files["indptr"].append(rows.indptr[1:] + len(files["indices"]))
            files["indices"].append(rows.indices)
            files["values"].append(rows.values)
            n_columns = rows.n_features
        arrays = {name: open_array(file.finish()) for name, file in files.items()}
    return SparseRows(arrays["indptr"], arrays["indices"], arrays["values"], n_columns)


MOST_BYTES = 2 << 20
"""bytes of text that one job reads at most, which take some two minutes on two cores: 14,000 sentences or 1,900 long
texts"""
_LEAST_SHARE = 0.25
"""share of these bytes that are read of the largest pools"""
_READ_BYTES, _LEAST_BYTES = 1024, 64
"""bytes that are read of a long text, and those by which a text takes longer than its letters alone would"""
_AT_ONCE = 16
"""texts that are encoded between two checkpoints: a transformer makes some ten vectors of long texts in a second"""


class WithVectors(NamedTuple):
    """Documents with a part more, the vectors of their texts; without it while labeled texts are unread."""

    rows: Rows
    n_read: int
    """number of documents whose text was read"""
    n_texts: int
    """number of documents that have a text"""


def with_vectors(
    store: Store,
    documents: str,
    rows: Rows,
    labeled: NDArray[np.bool_],
    id: EncoderId,
    encoder: Encoder,
    watch: Watch,
    span: Span,
    most_bytes: int = MOST_BYTES,
    until: float = inf,
    margins: Callable[[], NDArray[np.float64]] | None = None,
) -> WithVectors:
    """The documents, stored under the id ``documents``, with vectors of their texts. They have texts.

    Of a large pool about ``most_bytes`` are read now, of one that is larger still fewer, and none after ``until``, a
    time of the monotonic clock. Texts that were not read, now or before, have none. Before all labeled texts were read
    there are no vectors at all: a model learns little from those of some of its labels.

    ``labeled``, shape (n_rows,), are read first; where not all may be, those of the least ``margins`` next, shape
    (n_rows,). Making vectors takes a ``span`` of the work of ``watch``. Those that were made are kept, even where it
    raises Stopped.
    """
    parts = parts_of(rows)
    texts = parts[FIELDS["text"]]
    assert isinstance(texts, TextRows)
    digests = [digest_of(text) for text in texts]
    # of equal texts one is read, a labeled one if any; by digests the order is random, and the same in every dataset
    places = np.argsort(labeled, kind="stable").tolist()
    position = {digests[place]: place for place in places if texts.indptr[place + 1] > texts.indptr[place]}
    order = sorted(position, key=lambda digest: (not labeled[position[digest]], digest))
    kept = KeptVectors(store, documents, id.digest)
    with kept:
        vectors = kept.find(position)
        vectors |= kept.adopt(digest for digest in order if digest not in vectors)
        missing = [digest for digest in order if digest not in vectors]
        n_within = _n_within(missing, position, texts, most_bytes)
        if margins is not None and len(missing) > _AT_ONCE and (n_within < len(missing) or until < inf):
            waits = np.where(labeled, -inf, margins())
            missing.sort(key=lambda digest: float(waits[position[digest]]))
        missing = missing[: _n_within(missing, position, texts, most_bytes)]
        for start in range(0, len(missing), _AT_ONCE):
            if time.monotonic() > until:
                break
            chosen = missing[start : start + _AT_ONCE]
            made = encoder.encode(list(texts.taken(np.array([position[digest] for digest in chosen]))))
            added = dict(zip(chosen, made.astype(np.float16), strict=True))
            kept.add(added)
            vectors |= added
            done = span.position((start + len(chosen)) / len(missing))
            watch.latest = watch.latest._replace(phase=Phase("vectors"), fraction=done)
            watch()
    n_read, n_texts = (sum(digest in known for digest in digests) for known in (vectors, position))
    if any(labeled[position[digest]] for digest in order if digest not in vectors):
        return WithVectors(rows, n_read, n_texts)
    own = rows_of_vectors([vectors.get(digest) for digest in digests], encoder.width)
    return WithVectors(PartRows(dict(sorted({**parts, id.part: own}.items()))), n_read, n_texts)


def _n_within(missing: Sequence[bytes], position: Mapping[bytes, int], texts: TextRows, most_bytes: int) -> int:
    """How many of these texts, the first ones, an encoder reads: about ``most_bytes`` of a pool of no more than twice
    as many, of one twice as large half as many.
    """
    read = np.minimum(np.diff(texts.indptr), _READ_BYTES) + _LEAST_BYTES
    most = most_bytes * max(_LEAST_SHARE, min(1.0, most_bytes / int(read.sum())))
    return int(np.searchsorted(np.cumsum(read[[position[digest] for digest in missing]]), most, side="right"))
