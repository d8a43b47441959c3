"""Documents as the service reads them: frames, lists, matrices and files become a stream of bytes.

Nothing is held but a slice.
"""

import codecs
import gzip
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import IO, Any, NamedTuple

from halfmoon.arrays import arrays_of, is_matrix, lists_of, npz_of
from halfmoon.columns import (
    VALUES,
    VOTE,
    Choice,
    Line,
    column_name,
    known_columns,
    names_of,
    numbers_in,
    rows_of,
    slice_of,
    values_in,
)
from halfmoon.errors import InvalidData
from halfmoon.values import each_of, encode, is_missing, plain_of, text_of, vote_of

NDJSON = "application/x-ndjson"
_FILES = {
    ".csv": "text/csv",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    **dict.fromkeys((".tsv", ".tab"), "text/tab-separated-values"),
    **{".json": "application/json", ".ndjson": NDJSON, ".jsonl": NDJSON},
    **{".npz": "application/x-npz", ".npy": "application/x-npy"},
    **{".zip": "application/zip", ".tar": "application/x-tar", ".tgz": "application/gzip"},
    **dict.fromkeys((".svm", ".svmlight", ".libsvm"), "text/x-svmlight"),
}
_TABLES = (".parquet", ".pq", ".arrow", ".feather")
_SEPARATED = ("text/csv", "text/tab-separated-values")
_SLICE_ROWS = 5_000
_BLOCK_BYTES = 256 << 10
_END: Any = object()
"""What ``next`` returns at the end of an iterator."""


class Body(NamedTuple):
    """A body that is sent: each call of ``chunks`` begins anew, unless the data are an iterator."""

    media_type: str
    chunks: Callable[[], Iterator[bytes]]
    query: Mapping[str, str] = {}
    encoding: str | None = None
    file: str = ""
    """Name of the file whose documents are sent, for what is said of them."""


def body_of(data: Any, choice: Choice) -> Body:
    """The body for data of any kind; raises InvalidData."""
    choice = choice._replace(labels=lists_of(choice.labels))
    for what in VALUES:
        values = getattr(choice, what)
        if values is not None and not isinstance(values, Iterable):
            raise InvalidData(
                f"{what}: {values!r:.60} is {type(values).__name__}; give the name of a column, or a list with a "
                "value a document"
            )
    if choice.votes is not None and not isinstance(choice.votes, Mapping):
        raise InvalidData(
            "votes: give a dict with the column or the list of each voter; of a data frame of voters dict(frame)"
        )
    if choice.label is not None and choice.labels is not None:
        raise InvalidData("give label=, one of each document, or labels=, lists of all that apply")
    body = _body_of(data, choice)
    return body if choice.extra is None else body._replace(query={**body.query, "extra": choice.extra})


def _body_of(data: Any, choice: Choice) -> Body:
    if isinstance(data, str | PathLike):
        return _file(Path(data), choice)
    if is_matrix(data):
        return _matrix(data, choice)
    if hasattr(data, "collect"):
        data = data.collect()
    if hasattr(data, "columns") and hasattr(data, "__getitem__"):
        return _frame(data, choice)
    if isinstance(data, Mapping):
        raise InvalidData("a dict is not documents; give a list of dicts, or a data frame: pandas.DataFrame(…)")
    # the lines of an open table are no documents
    if isinstance(data, Iterable) and not hasattr(data, "read"):
        return Body(NDJSON, lambda: _lines(data, choice))
    raise InvalidData(
        f"documents cannot be read from {type(data).__name__}; give a data frame, a list of texts or dicts, a "
        "matrix or a path"
    )


def _file(path: Path, choice: Choice) -> Body:
    if path.is_dir():
        raise InvalidData(
            f"{str(path)!r} is a folder; text files are sent as an archive, as of shutil.make_archive(name, "
            "'zip', folder)"
        )
    if not path.is_file():
        raise InvalidData(f"there is no file {str(path)!r}; texts are given in a list")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    gzipped = suffixes[-1:] == [".gz"]
    ending = (suffixes[:-1] if gzipped else suffixes)[-1:]
    if ending and ending[0] in _TABLES:
        return _frame_batches(path, choice)
    if not ending or ending[0] not in _FILES:
        known = f"{', '.join((*_FILES, *_TABLES))}, each also with .gz"
        instead = (
            "another workbook is saved as .xlsx or CSV"
            if ending in ([".xls"], [".ods"])
            else "other files are read into a data frame or a list"
        )
        raise InvalidData(f"{path.name!r}: the end of the name says what a file is; known are {known}; {instead}")
    given = {name: value for name, value in choice._asdict().items() if name != "extra"}
    query = {name: value for name, value in given.items() if isinstance(value, str)}
    lost = [name for name, value in given.items() if value is not None and name not in query]
    if lost:
        raise InvalidData(
            f"{path.name!r} is sent as it is, so {lost[0]} cannot be given as a list; read the file into a data frame"
        )
    kind = _FILES[ending[0]]
    if kind in _SEPARATED and not _is_utf8(path, gzipped):
        warnings.warn(f"{path.name} is not in UTF-8, so it is read as Windows-1252", stacklevel=2)
        kind += "; charset=windows-1252"
    return Body(kind, lambda: _blocks(path.open("rb")), query, "gzip" if gzipped else None, path.name)


def _is_utf8(path: Path, gzipped: bool) -> bool:
    """Whether a text is in UTF-8. A damaged archive and UTF-16 are left to the service, which says what is wrong."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with gzip.open(path) if gzipped else path.open("rb") as file:
            while block := file.read(_BLOCK_BYTES):
                decoder.decode(block)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        return error.object.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    except (EOFError, OSError, zlib.error):
        pass
    return True


def _blocks(opened: AbstractContextManager[IO[bytes]]) -> Iterator[bytes]:
    with opened as file:
        while block := file.read(_BLOCK_BYTES):
            yield block


def _frame_batches(path: Path, choice: Choice) -> Body:
    try:
        import pyarrow.dataset
    except ImportError:
        raise InvalidData(f"{path.name!r} needs pyarrow: pip install pyarrow") from None
    kind = "parquet" if path.suffix in (".parquet", ".pq") else "feather"
    with _named(path):
        source = pyarrow.dataset.dataset(path, format=kind)
    if choice.fields is None and choice.features is None and choice.extra != "ignore":
        choice = choice._replace(fields=_others(source.schema, choice))

    def chunks() -> Iterator[bytes]:
        n_documents = 0
        with _named(path):
            for batch in source.to_batches(batch_size=_SLICE_ROWS):
                yield from _frame(batch, choice, n_documents).chunks()
                n_documents += batch.num_rows

    return Body(NDJSON, chunks, file=path.name)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """What is wrong with a file of pyarrow is said with its name."""
    import pyarrow

    try:
        yield
    except InvalidData as error:
        raise InvalidData(f"{path.name}: {error}") from None
    except (pyarrow.ArrowException, OSError) as error:
        detail = str(error).partition("\n")[0]
        raise InvalidData(
            f"{path.name}: this is no {path.suffix} file that can be read, or one cut short: {detail}"
        ) from None


def _others(schema: Any, choice: Choice) -> list[str]:
    """The columns that are not read, without lists and structures."""
    from pyarrow import types

    read = {given if isinstance(given, str) else name for name, given in choice._asdict().items()}
    read |= {name for name in schema.names if choice.votes is None and name.startswith(VOTE)}
    read |= {given for given in (choice.votes or {}).values() if isinstance(given, str)}
    return [column.name for column in schema if column.name not in read and not types.is_nested(column.type)]


def _matrix(data: Any, choice: Choice) -> Body:
    if choice.votes is not None:
        raise InvalidData("a matrix has no votes; give dicts: [{'indices': …, 'values': …, 'votes': …}]")
    columns: dict[str, list[Any] | None] = {}
    for what, value_of in VALUES.items():
        given = getattr(choice, what)
        if isinstance(given, str):
            raise InvalidData(f"a matrix has no columns with names; give {what}= as a list")
        columns[what] = None if given is None else list(each_of(value_of, given))
    arrays = arrays_of(data, columns)
    return Body("application/x-npz", lambda: _blocks(npz_of(arrays)))


def _frame(frame: Any, choice: Choice, n_before: int = 0) -> Body:
    """The body for a frame, before which there were so many documents."""
    names = names_of(frame)
    if choice.features is not None:
        if choice.text is not None:
            raise InvalidData(
                "give text= or features=; documents of both are given as dicts: {'text': …, 'features': …}"
            )
        return _features(frame, names, choice)
    text = column_name("text", choice.text, names)
    if text is None:
        shown = ", ".join(repr(name) for name in names[:20])
        raise InvalidData(
            "no column is named 'text'; say which has the text, text=…, or which have numbers, features=[…]; "
            f"there are {shown}"
        )
    fields = [name for name in choice.fields or () if column_name("fields", name, names)]
    n_rows = len(frame) if hasattr(frame, "__len__") else int(frame.num_rows)
    known = known_columns(choice, names, n_rows)
    votes = choice.votes
    if votes is None:
        votes = {name.removeprefix(VOTE): name for name in names if name.startswith(VOTE)}
    columns = {voter: values_in(f"{VOTE}{voter}", given, names, n_rows) for voter, given in votes.items()}

    def chunks() -> Iterator[bytes]:
        for start in range(0, n_rows, _SLICE_ROWS):
            stop, before = min(start + _SLICE_ROWS, n_rows), n_before + start
            cells = {what: each_of(VALUES[what], slice_of(frame, known[what], start, stop), before) for what in VALUES}
            cast = {
                voter: each_of(vote_of, slice_of(frame, each, start, stop), before) for voter, each in columns.items()
            }
            voted = rows_of(cast, stop - start)
            beside = rows_of({name: map(plain_of, slice_of(frame, name, start, stop)) for name in fields}, stop - start)
            texts = each_of(text_of, slice_of(frame, text, start, stop), before)
            yield encode(
                list(map(Line, texts, cells["label"], cells["id"], cells["labels"], cells["weight"], voted, beside)),
                lines=True,
            )

    return Body(NDJSON, chunks)


def _features(frame: Any, names: Sequence[str], choice: Choice) -> Body:
    import numpy

    assert choice.features is not None
    for name in choice.features:
        column_name("features", name, names)
    matrix = numpy.column_stack([numbers_in(frame, name) for name in choice.features])
    known = known_columns(choice, names, len(matrix))
    columns: dict[str, Any] = {
        what: None if each is None else list(slice_of(frame, each, 0, len(matrix))) for what, each in known.items()
    }
    return _matrix(matrix, Choice(votes=choice.votes)._replace(**columns))


def _lines(data: Iterable[Any], choice: Choice) -> Iterator[bytes]:
    given = {what: values for what in VALUES if (values := getattr(choice, what)) is not None}
    beside = {what: iter(values) for what, values in given.items() if not isinstance(values, str)}
    votes = {voter: iter(values or ()) for voter, values in (choice.votes or {}).items()}
    is_plain = choice.text is None and not given and not votes
    source, n_before = iter(data), 0

    def line(document: Any) -> Any:
        values = {what: _next(what, values) for what, values in beside.items()}
        cast = {voter: vote_of(_next(f"{VOTE}{voter}", values)) for voter, values in votes.items()}
        return _line(document, choice, values, cast)

    while batch := list(islice(source, _SLICE_ROWS)):
        plain = is_plain and set(map(type, batch)) == {str}
        yield encode(list(map(Line, batch) if plain else each_of(line, batch, n_before)), lines=True)
        n_before += len(batch)
    for what, values in (*beside.items(), *votes.items()):
        if next(values, _END) is not _END:
            raise InvalidData(f"{what}: there are more values than documents")


def _next(what: str, values: Iterator[Any]) -> Any:
    try:
        return next(values)
    except StopIteration:
        raise InvalidData(f"{what}: there are fewer values than documents") from None


def _line(document: Any, choice: Choice, beside: Mapping[str, Any], votes: Mapping[str, Any]) -> Any:
    """A line of a document, with the values that stand beside it in lists."""
    named = {what: name for what in ("text", *VALUES) if isinstance(name := getattr(choice, what), str)}
    known = {what: value_of(beside[what]) for what, value_of in VALUES.items() if what in beside}
    cast = {voter: vote for voter, vote in votes.items() if vote is not None}
    known |= {"votes": cast} if cast else {}
    if isinstance(document, str | bytes) or document is None or is_missing(document):
        if named:
            column = next(iter(named))
            raise InvalidData(
                f"{column}: texts have no columns with names; "
                f"{'leave it out' if column == 'text' else 'give a list with a value a text'}"
            )
        return Line(text_of(document), **known)
    if not isinstance(document, Mapping):
        raise InvalidData(
            f"a document is a text or a dict, not {type(document).__name__}; numbers are a matrix of two "
            "dimensions: numpy.array(…, float)"
        )
    if named:
        fields = {name: value for name in choice.fields or () if (value := plain_of(document.get(name))) is not None}
        read = {what: named.get(what, what) for what in VALUES if what != "labels" or "labels" in named}
        own = {what: VALUES[what](document.get(name)) for what, name in read.items()}
        own |= {"votes": document["votes"]} if "votes" in document else {}
        return Line(text_of(document.get(named.get("text", "text"))), **(own | known), fields=fields or None)
    own = {what: value_of(document[what]) for what, value_of in VALUES.items() if what in document}
    return {**document, **own, **{what: value for what, value in known.items() if value is not None}}


def held(body: Body) -> tuple[bytes, dict[str, str]]:
    """The whole body and its headers, for a request that is held in memory anyway: lines become one object, which is
    read faster.
    """
    content = b"".join(body.chunks())
    if body.media_type == NDJSON and body.encoding is None:
        return b'{"documents":[' + content.rstrip(b"\n").replace(b"\n", b",") + b"]}", {
            "Content-Type": "application/json"
        }
    return content, {"Content-Type": body.media_type} | ({"Content-Encoding": body.encoding} if body.encoding else {})
