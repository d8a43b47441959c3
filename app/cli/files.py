"""Files in, files out, by the Python client: train, label, predict, evaluate, watch."""

import argparse
import io
import json
import re
import sys
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import wraps
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from app.cli.command import Option, Run, command, option, python_client
from storage.errors import CannotStart

if TYPE_CHECKING:
    from halfmoon import Halfmoon

_FILE = (
    "documents: .csv, .tsv, .ndjson, .jsonl, .json, .npz, .npy, .svmlight or .parquet; .gz may follow; "
    ".zip, .tar or .tgz of text files in folders "
    "named by class"
)
_COLUMNS = ("text", "label", "id", "labels", "weight")
_Format = Literal["csv", "ndjson", "parquet"]
_FORMATS: Mapping[str, _Format] = {".csv": "csv", ".ndjson": "ndjson", ".jsonl": "ndjson", ".parquet": "parquet"}
"""Formats of files by the ends of their names."""
_SEPARATOR = option(
    "--separator",
    metavar="TEXT",
    help="text between several labels in a cell of a table, or between the columns that --labels names for a label "
    "each (default: ;)",
)
_EXTRA = option(
    "--extra",
    choices=("keep", "ignore", "refuse"),
    help="what becomes of other columns and unknown fields (default: columns are kept beside the documents, fields "
    "refused)",
)


def column_options(columns: Iterable[str] = _COLUMNS) -> list[Option]:
    """The options for reading a file of documents: its columns, and the treatment of others."""
    found = [
        option(
            f"--{name}",
            metavar="COLUMN",
            help=f"column of a table, or field of JSON, with the {name} (default: {name})",
        )
        for name in columns
    ]
    return [*found, *([_SEPARATOR] if "labels" in columns else []), _EXTRA]


def query_of(options: argparse.Namespace) -> dict[str, Any]:
    """The options for reading a file, as query parameters of an upload."""
    return {
        name: value for name in (*_COLUMNS, "separator", "extra") if (value := getattr(options, name, None)) is not None
    }


def key_of(options: argparse.Namespace) -> str | None:
    """The API key in the file that the options name, if they name one."""
    return options.key_file.read_text().strip() if options.key_file else None


def _out(*formats: _Format) -> Callable[[str], Path]:
    """The type of an argument that names a file to write in one of these formats."""

    def checked(text: str) -> Path:
        path, endings = Path(text), [ending for ending, format in _FORMATS.items() if format in formats]
        if path.suffix not in endings:
            raise argparse.ArgumentTypeError(
                f"{text!r}: the end of the name says what is written; it may be {', '.join(endings)}"
            )
        if not path.parent.is_dir():
            raise argparse.ArgumentTypeError(f"there is no folder {str(path.parent)!r}")
        return path

    return checked


_SERVICE = [
    option("--url", help="address of the service (default: HALFMOON_URL, or http://127.0.0.1:8000)"),
    option(
        "--key-file",
        type=Path,
        help="file with an API key, for a service that requires one (default: HALFMOON_API_KEY)",
    ),
]
_MODEL = option("model", help="name of the model, name@alias, or name/number for a version")
_DOCUMENTS = option("file", type=Path, help=_FILE)
_JOB = [
    _DOCUMENTS,
    *column_options(),
    option("--model", help="name of the model (default: the name of the file)"),
    option("--algorithm", default="auto", help="algorithm (default: %(default)s)"),
    option(
        "--other",
        metavar="CLASS",
        help="where labels are of one class alone: name of the class of all other documents (default: other)",
    ),
    option(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="option of the algorithm, as JSON; may be repeated",
    ),
    option(
        "--encoder",
        help="encoder that reads the texts, or none for the text alone, as an exported model takes it (default: that "
        "of the service)",
    ),
]
_ROWS = option(
    "--out", type=_out("csv", "ndjson"), help="file to write, .csv or .ndjson (default: CSV on the standard output)"
)


def _on_service(action: Callable[["Halfmoon", argparse.Namespace], None]) -> Run:
    """The function of a command that uses a service."""

    @wraps(action)
    def run(options: argparse.Namespace) -> int:
        client = python_client()
        warnings.showwarning = lambda message, *_: print(f"warning: {message}", file=sys.stderr)
        try:
            with client.Halfmoon(options.url, key=key_of(options)) as service:
                action(service, options)
        except client.HalfmoonError as error:
            print(f"halfmoon: {error}", file=sys.stderr)
            return 1
        return 0

    return run


@command(
    "train",
    *_SERVICE,
    *_JOB,
    option("--watch", action="store_true", help="wait for the end, with progress"),
    option(
        "--annotations",
        action="store_true",
        help="FILE is the name or id of a dataset that is there: learn from the labels that people gave it",
    ),
    example="halfmoon train tickets.csv --text body --label topic --model tickets --watch",
)
@_on_service
def train(service: "Halfmoon", options: argparse.Namespace) -> None:
    """Train a model on a file of documents, some of them labeled."""
    _, job = _submitted(service, options)
    print(f"job {job.id}")
    if options.watch:
        _report(job.wait(progress=True))


@command(
    "label",
    *_SERVICE,
    *_JOB,
    option(
        "--out",
        type=_out("csv", "ndjson", "parquet"),
        help="file to write, .csv, .ndjson or .parquet (default: CSV on the standard output)",
    ),
    example="halfmoon label tickets.csv --text body --label topic --out labels.csv",
)
@_on_service
def label(service: "Halfmoon", options: argparse.Namespace) -> None:
    """Train on a file, and write the labels of its unlabeled documents."""
    data, job = _submitted(service, options)
    _report(job.wait(progress=True), sys.stderr)
    job.save_labels(
        options.out or sys.stdout.buffer,
        _format(options.out),
        fields=bool(data.record.fields),
        separator=options.separator,
    )


@command(
    "predict",
    *_SERVICE,
    _MODEL,
    _DOCUMENTS,
    *column_options(("text", "id")),
    _ROWS,
    example="halfmoon predict tickets new.csv --text body --out predicted.csv",
)
@_on_service
def predict(service: "Halfmoon", options: argparse.Namespace) -> None:
    """Write the labels that a model gives to the documents of a file."""
    found = service.models[_reference(options.model)].predict(existing(options.file), **query_of(options))
    _write(options.out, [*found.columns], zip(*found.columns.values(), strict=True))
    _print_warnings(found.warnings)


@command(
    "evaluate",
    *_SERVICE,
    _MODEL,
    _DOCUMENTS,
    *column_options(("text", "label")),
    option("--page", type=Path, help="file for the page of figures and plots (HTML)"),
    example="halfmoon evaluate tickets known.csv --text body --label topic --page evaluation.html",
)
@_on_service
def evaluate(service: "Halfmoon", options: argparse.Namespace) -> None:
    """Report how good a model is on a file of labeled documents."""
    evaluation = service.models[_reference(options.model)].evaluate(
        existing(options.file), text=options.text, label=options.label, extra=options.extra
    )
    print(evaluation)
    if options.page:
        options.page.write_text(evaluation.page, encoding="utf-8")


@command(
    "export",
    *_SERVICE,
    _MODEL,
    option(
        "--format",
        choices=("numpy", "onnx"),
        default="numpy",
        help="numpy: reads text, needs NumPy alone (default); onnx: a graph",
    ),
    option("--out", type=Path, help="file to write (default: name and number of the version)"),
    example="halfmoon export tickets@live --out tickets.zip && python tickets.zip new.csv",
)
@_on_service
def export(service: "Halfmoon", options: argparse.Namespace) -> None:
    """Write a model as a file that predicts without the service."""
    print(service.models[_reference(options.model)].export(options.out, options.format))


@command(
    "watch",
    *_SERVICE,
    option("job", help="id of the job"),
    example="halfmoon watch job-06h0…",
)
@_on_service
def watch(service: "Halfmoon", options: argparse.Namespace) -> None:
    """Follow a job to its end."""
    _report(service.jobs.get(options.job).wait(progress=True))


@command("datasets", *_SERVICE, example="halfmoon datasets")
@_on_service
def datasets(service: "Halfmoon", options: argparse.Namespace) -> None:
    """List the datasets that are not archived, newest first."""
    print(f"{'dataset':27}  {'name':24}  {'documents':>9}  {'labels':>9}")
    for dataset in (each for each in service.datasets.all() if not each.record.archived):
        labels = dataset.annotation_summary()["labeled"]
        print(f"{dataset.id}  {dataset.name or '-':24}  {len(dataset):>9,}  {labels:>9,}")


@command(
    "labels",
    *_SERVICE,
    option("dataset", help="name of the dataset, of which the newest counts, or its id"),
    option("--model", help="model whose predictions stand beside: name, name@alias or name/number"),
    _ROWS,
    example="halfmoon labels tickets --model tickets --out labels.csv",
)
@_on_service
def labels(service: "Halfmoon", options: argparse.Namespace) -> None:
    """Write the label of each document of a dataset, and by whom it is."""
    more = {} if options.model is None else {"model": options.model}
    dataset = service.datasets.named(options.dataset)
    several = dataset.record.label_kind == "several"
    predicted = ("predicted", "probability", *(["predicted_labels"] if several else [])) if more else ()
    columns = ("id", "labels" if several else "label", "by", *predicted)
    rows = ([document.get(name) for name in columns] for document in dataset.documents(limit=500, **more))
    _write(options.out, columns, rows)


COMMANDS = [train, label, predict, evaluate, export, watch, datasets, labels]


def _submitted(service: "Halfmoon", options: argparse.Namespace) -> tuple[Any, Any]:
    """The documents of the file, and the job that learns from them."""
    from halfmoon import RequestFailed
    from halfmoon.values import model_name

    of_algorithm: dict[str, Any] = {}
    for each in options.option:
        name, equals, value = each.partition("=")
        if not equals:
            raise CannotStart(f"--option {each}: write NAME=VALUE, as in --option lambda=0.01")
        try:
            of_algorithm[name] = json.loads(value)
        except ValueError:  # it is a text
            of_algorithm[name] = value
    job: dict[str, Any] = {"algorithm": options.algorithm, "options": of_algorithm, "other": options.other}
    if options.encoder is not None:
        job["encoder"] = None if options.encoder == "none" else options.encoder
    if getattr(options, "annotations", False):
        data = service.datasets.named(str(options.file))
        name = options.model or _model_named(data.name or data.id)
        return data, service.train(data, name, annotations="latest", **job)
    stem = Path(options.file.name.removesuffix(".gz")).stem
    name = model_name(options.model or _model_named(stem))
    data = service.datasets.create(existing(options.file), name=options.model or stem, **query_of(options))
    _print_warnings(data.warnings)
    try:
        return data, service.train(data, name, **job)
    except RequestFailed:  # where there is no answer the job may have been accepted
        data.delete()  # the next try sends the file again
        raise


def _model_named(data: str) -> str:
    """The name of data as that of their model, which is said where it differs; raises CannotStart for none."""
    # an accent stands behind its letter then, and is no gap between two
    plain = re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFKD", data))
    name = re.sub("[^A-Za-z0-9._-]+", "-", plain).strip("._-")
    rule = "its name has letters, digits, '.', - and _"
    if not name:
        raise CannotStart(f"name the model of {data} by --model: {rule}")
    if name != data:
        _print_warnings([f"the model of {data} is called {name}: {rule}; --model gives another"])
    return name


def existing(file: Path) -> Path:
    """The file of documents; raises CannotStart if there is none."""
    if not file.exists():
        raise CannotStart(f"there is no file {str(file)!r}")
    return file


def _reference(text: str) -> Any:
    name, slash, number = text.replace(":", "/").rpartition("/")
    return (name, int(number)) if slash and number.isdecimal() else text


def _report(job: Any, file: Any = None) -> None:
    made = job.record.model
    print(f"{made.name} version {made.version}: {' '.join(job.report.get('summary') or [])}".rstrip(": "), file=file)
    _print_warnings(job.record.warnings)


def _print_warnings(warnings: Iterable[str]) -> None:
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)


def _write(path: Path | None, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    from halfmoon.connection import written

    with ExitStack() as stack:
        file: IO[str] = sys.stdout
        if path is not None:  # the file takes its name when it is whole
            binary = stack.enter_context(written(path))
            file = stack.enter_context(io.TextIOWrapper(binary, encoding="utf-8", newline=""))
        if _format(path) == "ndjson":
            file.writelines(json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) + "\n" for row in rows)
        else:
            # it takes what a gateway takes
            from app.codecs.base import SEPARATOR
            from app.codecs.tables.cells import joined, unparted
            from app.http.answers import Column, csv_blocks

            def cell_of(value: Any) -> Any:
                if isinstance(value, list) and (odd := unparted(value, SEPARATOR)) is not None:
                    raise CannotStart(f"{SEPARATOR!r} cannot part the label {odd!r}: write .ndjson")
                return joined(value, SEPARATOR) if isinstance(value, list) else value

            cells = ([cell_of(value) for value in row] for row in rows)
            for block in csv_blocks([Column(name, "text") for name in columns], cells):
                file.write(block.decode())


def _format(path: Path | None) -> _Format:
    return "csv" if path is None else _FORMATS[path.suffix]
