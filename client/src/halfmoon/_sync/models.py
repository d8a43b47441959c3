"""Models: they predict, explain, are evaluated, and suggest what to label next."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from halfmoon._sync.datasets import Dataset, id_of_dataset
from halfmoon._sync.transport import Transport
from halfmoon._sync_only import AliasesMixin, ModelMixin, ModelsMixin
from halfmoon.encode import Choice, Column, body_of, held
from halfmoon.errors import InvalidData
from halfmoon.operation import operation
from halfmoon.records import Evaluation, Explanation, ModelRecord, ModelSummary, Prediction, Suggestion, Version
from halfmoon.values import in_path

_HTML = {"Accept": "text/html"}
_PAIR = 2
_PREDICTION = msgspec.json.Decoder(Prediction)


class _Page(Struct):
    models: list[ModelSummary]
    next_cursor: str | None


class _Suggestions(Struct):
    suggestions: list[Suggestion]


class Models(ModelsMixin):
    """The models of a service: ``models["news"]``, ``models["news@live"]``, ``models["news", 3]``."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __getitem__(self, reference: str | tuple[str, int]) -> "Model":
        name, number = reference if isinstance(reference, tuple) and len(reference) == _PAIR else (reference, None)
        if number is not None and (not hasattr(number, "__index__") or "@" in str(name)):
            raise InvalidData(f"models[{name!r}, {number!r}]: a version is models['news', 3] by its number, or models['news@live'] by an alias")
        return Model(self._transport, in_path("model", name), None if number is None else int(number))

    @operation("list_models")
    def all(self) -> Iterator[ModelSummary]:
        """The models that have a version, by name."""
        for page in self._transport.pages("/v1/models", _Page):
            for summary in page.models:
                yield summary


class Aliases(AliasesMixin):
    """The aliases of a model."""

    def __init__(self, transport: Transport, name: str) -> None:
        self._transport = transport
        self._path = f"/v1/models/{name}"

    def all(self) -> dict[str, int]:
        """The aliases with the versions that they point to."""
        return (self._transport.call("GET", self._path, ModelRecord)).aliases

    @operation("set_alias")
    def set(self, alias: str, version: int) -> None:
        """Point an alias to a version."""
        self._transport.send("PUT", f"{self._path}/aliases/{alias}", json={"version": version})

    @operation("delete_alias")
    def delete(self, alias: str) -> None:
        """Remove an alias; the version stays."""
        self._transport.send("DELETE", f"{self._path}/aliases/{alias}")


class Model(ModelMixin):
    """A model by the version that it serves, an alias of it, or one of its versions. Nothing is asked of the service until a method is called."""

    def __init__(self, transport: Transport, reference: str, number: int | None = None) -> None:
        self._transport = transport
        self.reference = reference
        self.number_given = number
        self.name, _, self._alias = reference.partition("@")
        self._path = f"/v1/models/{reference}" + ("" if number is None else f"/versions/{number}")
        self.aliases = Aliases(transport, self.name)

    @operation("show_model")
    def show(self) -> ModelRecord:
        """The model with its versions and aliases; raises NotFound."""
        return self._transport.call("GET", f"/v1/models/{self.name}", ModelRecord)

    def number(self) -> int:
        """Number of the version to which the reference refers now."""
        if self.number_given is not None:
            return self.number_given
        record = self.show()
        if self._alias and self._alias not in record.aliases:
            raise InvalidData(f"model {self.name!r} has no alias {self._alias!r}; it has {', '.join(record.aliases) or 'none'}")
        return record.aliases[self._alias] if self._alias else record.served

    @operation("show_version")
    def info(self) -> Version:
        """The version to which the reference refers now, and how it was made."""
        return self._transport.call("GET", f"/v1/models/{self.name}/versions/{self.number()}", Version)

    @operation("predict_newest", "predict_version")
    def predict(
        self,
        documents: Any,
        *,
        text: str | None = None,
        id: Column = None,
        features: Sequence[str] | None = None,
        extra: str | None = None,
    ) -> Prediction:
        """Labels, scores and probabilities of documents, which come as to ``datasets.create``. A single text is a document, too."""
        if isinstance(documents, Dataset):
            raise InvalidData(f"a dataset is stored already: its documents(model={self.reference!r}) have what is predicted of them")
        body = body_of([documents] if isinstance(documents, str) else documents, Choice(text, None, id, features, None, extra))
        content, headers = held(body)
        path = f"{self._path}/predict"
        answer = self._transport.send("POST", path, content=content, headers=headers, params=body.query, repeatable=True)
        return _PREDICTION.decode(answer.content)

    @operation("label_newest")
    def label(self, text: str) -> tuple[str | int, float | None]:
        """Label and probability of one text; not for a version by its number."""
        answer = self._transport.call("POST", f"/v1/models/{self.reference}/label", dict[str, Any], json={"text": text}, repeatable=True)
        return answer["label"], answer["probability"]

    @operation("explain_newest", "explain_version")
    def explain(self, documents: Sequence[Any] | None = None, *, n: int = 10, label: str | int | None = None) -> Explanation:
        """What the model goes by and, for up to a hundred documents (texts or dicts), what speaks for and against their labels."""
        fields: dict[str, Any] = {"n": n} | ({} if label is None else {"class": label})
        if documents is not None:
            fields["documents"] = [{"text": each} if isinstance(each, str) else each for each in documents]
        return Explanation(self._transport.call("POST", f"{self._path}/explain", dict[str, Any], json=fields, repeatable=True))

    @operation("evaluate_newest", "evaluate_version")
    def evaluate(
        self,
        data: Any,
        *,
        text: str | None = None,
        label: Column = None,
        features: Sequence[str] | None = None,
        extra: str | None = None,
        held_out: bool = False,
    ) -> Evaluation:
        """How good the model is on labeled documents: a dataset (also by its id), or what ``datasets.create`` takes but for ids of datasets.

        ``held_out`` leaves out the documents of the dataset whose labels the version was trained on.
        """
        path = f"{self._path}/evaluate"
        choice = Choice(text, label, None, features, None, extra)
        if isinstance(data, Dataset) or (isinstance(data, str) and data.startswith("ds-")):
            if choice != Choice():
                raise InvalidData("evaluate: text, label, features and extra are for other data; a dataset has been read")
            fields = {"dataset": id_of_dataset(data), "held_out": held_out}
            content, headers, query = msgspec.json.encode(fields), {"Content-Type": "application/json"}, {}
        else:
            if held_out:
                raise InvalidData("evaluate: held_out needs a dataset; whether other documents were trained on is unknown")
            body = body_of(data, choice)
            (content, headers), query = held(body), dict(body.query)
        figures = self._transport.call("POST", path, Evaluation, content=content, headers=headers, params=query, repeatable=True)
        page = self._transport.send("POST", path, content=content, headers=headers | _HTML, params=query, repeatable=True)
        return msgspec.structs.replace(figures, page=page.text)

    @operation("show_evaluation", "show_evaluation_of_version")
    def evaluation(self, data: Dataset | str, *, held_out: bool = False, annotations: int | str | None = None) -> Evaluation:
        """The same on a dataset, by a link that a browser opens too. ``annotations``: a number of entries of its log, or ``"latest"``."""
        params = {"dataset": id_of_dataset(data), "held_out": held_out, "annotations": annotations}
        figures = self._transport.call("GET", f"{self._path}/evaluate", Evaluation, params=params)
        page = self._transport.send("GET", f"{self._path}/evaluate", headers=_HTML, params=params)
        return msgspec.structs.replace(figures, page=page.text)

    @operation("suggest_newest", "suggest_by_version")
    def suggest(self, data: Dataset | str, n: int = 10, *, include: Sequence[str] = ("document",), **more: Any) -> list[Suggestion]:
        """Documents of the dataset to label next, the most useful first, each with its text. ``more``: strategy, random, seed."""
        fields = {"dataset": id_of_dataset(data), "n": n, "include": list(include), **more}
        return (self._transport.call("POST", f"{self._path}/suggest", _Suggestions, json=fields, repeatable=True)).suggestions

    @operation("export_version")
    def export(self, path: "str | Path | None" = None, format: Literal["numpy", "onnx"] = "numpy") -> Path:
        """Write the version as a file that predicts without the service, and return its path: by default ``tickets-3.zip``, or ``.onnx``."""
        number = self.number()
        target = Path(f"{self.name}-{number}.{'zip' if format == 'numpy' else format}" if path is None else path)
        self._transport.download(f"/v1/models/{self.name}/versions/{number}/export?format={format}", target)
        return target

    @operation("doubt_newest", "doubt_by_version")
    def doubts(self, data: Dataset | str, n: int = 10) -> list[dict[str, Any]]:
        """Labels of the dataset that the model doubts, the most doubtful first."""
        fields = {"dataset": id_of_dataset(data), "n": n}
        answer = self._transport.call("POST", f"{self._path}/doubts", dict[str, Any], json=fields, repeatable=True)
        return list(answer["doubts"])

    @operation("delete_model", "delete_version")
    def delete(self) -> None:
        """Delete the version, if the reference has a number; else the model with all versions and aliases."""
        if self._alias:
            raise InvalidData(f"{self.reference!r}: an alias is removed by aliases.delete({self._alias!r})")
        self._transport.send("DELETE", self._path)

    def __repr__(self) -> str:
        return f"<Model {self.reference}{'' if self.number_given is None else f', version {self.number_given}'}>"
