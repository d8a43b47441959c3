"""Inputs of a training: the rows of a dataset of any kind of documents, and the meaning of their columns.

Terms of texts are counted in memory, or by parts in files. Both give the same bits.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from core.documents.kinds import FIELDS, NamedRows, PartRows, Rows, RowsOfKind, TextRows, parts_of, spans
from core.documents.part_columns import EncoderId, PartColumns
from core.documents.rows import SparseRows
from core.documents.space import Space
from core.documents.text.batches import TextCheckpoint
from core.documents.text.mapped_counts import MappedCounter
from core.documents.text.tfidf import TextTerms, unspaced
from core.documents.text.tfidf_by_parts import fit_by_parts
from core.documents.text.tfidf_fit import SPACES, fit_terms
from core.documents.text.tfidf_rows import weighed
from core.documents.vocabulary import NUMBERS, Names, Vocabulary
from core.engine import EngineName
from core.memory_estimate import RowsSize, expected_text_size
from core.models.model import Model
from core.options.text import TextOptions
from core.progress import WHOLE, Phase, Span
from core.watch import Watch
from storage.errors import JobTooLarge
from storage.records import EncoderRef
from storage.repositories.datasets.files.npy import NpyWriter, open_array
from storage.store import Store, staging_folder
from storage.store.local_files import translate_os_errors
from workers.worker.scratch import ScratchFiles


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


def size_of(rows: Rows, options: Mapping[str, int] | None) -> RowsSize:
    """Size of documents, of text an estimate."""
    match rows:
        case SparseRows():
            return RowsSize(rows.n_rows, rows.n_nonzeros, rows.n_features)
        case NamedRows():
            return size_of(rows.rows, None)
        case TextRows():
            return expected_text_size(
                rows.n_rows, int(rows.indptr[-1] - rows.indptr[0]), TextOptions.parse(options or {})
            )
        case PartRows():
            return RowsSize.of_parts(rows.n_rows, [size_of(part, options) for part in rows.parts.values()])


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
        return replace(columns, encoder=EncoderId(encoder.name, encoder.digest))

    def renumbered(self, start: Model) -> Model:
        """The model ``start`` with its features renumbered to the columns of these inputs."""
        if start.vocabulary.kind == "vectors":
            return start
        return start.renumbered(self.vocabulary.columns_of(start.vocabulary))


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

    Raises core.watch.Stopped when the observer of the job asks to stop, InvalidDocuments for text without terms, and
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
            found = {name: _columns_of(part, options, report, reader) for name, part in documents.parts.items()}
            return PartColumns.of(
                {name: (columns, _width(documents.parts[name], columns)) for name, columns in found.items()}
            )


def _width(part: RowsOfKind, columns: Vocabulary) -> int:
    """Number of columns of a part."""
    match part:
        case SparseRows():
            return part.n_features
        case NamedRows():
            return part.rows.n_features
        case TextRows():
            assert isinstance(columns, TextTerms)
            return len(columns.keys)


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
