"""Models: they predict, explain, are evaluated, and suggest what to label next."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from halfmoon._sync.datasets import Dataset
from halfmoon._sync.transport import Transport
from halfmoon._sync_only import AliasesMixin, ModelMixin, ModelsMixin
from halfmoon.encode import Choice, Column
from halfmoon.errors import InvalidData
from halfmoon.operation import operation
from halfmoon.records import Evaluation, Explanation, ModelRecord, ModelSummary, Prediction, Suggestion, Version
from halfmoon.shown import (
    ModelPage,
    ModelReference,
    Suggestions,
    documents_sent,
    evaluation_sent,
    explanation_asked,
    id_of_dataset,
    reference_of,
)

_HTML = {"Accept": "text/html"}


class Models(ModelsMixin):
    """The models of a service: ``models["news"]``, ``models["news@live"]``, ``models["news", 3]``."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __getitem__(self, reference: str | tuple[str, int]) -> "Model":
        return Model(self._transport, *reference_of(reference))

    @operation("list_models")
    def all(self) -> Iterator[ModelSummary]:
        """The models that have a version, by name."""
        for page in self._transport.pages("/v1/models", ModelPage):
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


class Model(ModelMixin, ModelReference):
    """A model by the version that it serves, an alias of it, or one of its versions.

    Nothing is asked of the service until a method is called.
    """

    def __init__(self, transport: Transport, reference: str, number: int | None = None) -> None:
        super().__init__(reference, number)
        self._transport = transport
        self.aliases = Aliases(transport, self.name)

    @operation("show_model")
    def show(self) -> ModelRecord:
        """The model with its versions and aliases; raises NotFound."""
        return self._transport.call("GET", f"/v1/models/{self.name}", ModelRecord)

    def number(self) -> int:
        """Number of the version to which the reference refers now."""
        if self.number_given is not None:
            return self.number_given
        return self._number_in(self.show())

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
        """Labels, scores and probabilities of documents, which come as to ``datasets.create``.

        A single text is a document, too.
        """
        request = documents_sent(documents, Choice(text, None, id, features, None, extra), self.reference)
        return self._transport.call("POST", f"{self._path}/predict", Prediction, **request)

    @operation("label_newest")
    def label(self, text: str) -> tuple[str | int, float | None]:
        """Label and probability of one text; not for a version by its number."""
        answer = self._transport.call(
            "POST", f"/v1/models/{self.reference}/label", dict[str, Any], json={"text": text}, repeatable=True
        )
        return answer["label"], answer["probability"]

    @operation("explain_newest", "explain_version")
    def explain(
        self, documents: Sequence[Any] | None = None, *, n: int = 10, label: str | int | None = None
    ) -> Explanation:
        """What the model goes by and, for up to a hundred documents (texts or dicts), what speaks for and against their
        labels.
        """
        fields = explanation_asked(documents, n, label)
        return Explanation(
            self._transport.call("POST", f"{self._path}/explain", dict[str, Any], json=fields, repeatable=True)
        )

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
        """How good the model is on labeled documents: a dataset (also by its id), or what ``datasets.create`` takes but
        for ids of datasets.

        ``held_out`` leaves out the documents of the dataset whose labels the version was trained on.
        """
        path = f"{self._path}/evaluate"
        request = evaluation_sent(data, Choice(text, label, None, features, None, extra), held_out)
        figures = self._transport.call("POST", path, Evaluation, **request)
        page = self._transport.send("POST", path, **(request | {"headers": request["headers"] | _HTML}))
        return msgspec.structs.replace(figures, page=page.text)

    @operation("show_evaluation", "show_evaluation_of_version")
    def evaluation(
        self, data: Dataset | str, *, held_out: bool = False, annotations: int | str | None = None
    ) -> Evaluation:
        """The same on a dataset, by a link that a browser opens too.

        ``annotations``: a number of entries of its log, or ``"latest"``.
        """
        params = {"dataset": id_of_dataset(data), "held_out": held_out, "annotations": annotations}
        figures = self._transport.call("GET", f"{self._path}/evaluate", Evaluation, params=params)
        page = self._transport.send("GET", f"{self._path}/evaluate", headers=_HTML, params=params)
        return msgspec.structs.replace(figures, page=page.text)

    @operation("suggest_newest", "suggest_by_version")
    def suggest(
        self, data: Dataset | str, n: int = 10, *, include: Sequence[str] = ("document",), **more: Any
    ) -> list[Suggestion]:
        """Documents of the dataset to label next, the most useful first, each with its text.

        ``more``: strategy, random, seed.
        """
        fields = {"dataset": id_of_dataset(data), "n": n, "include": list(include), **more}
        return (
            self._transport.call("POST", f"{self._path}/suggest", Suggestions, json=fields, repeatable=True)
        ).suggestions

    @operation("export_version")
    def export(self, path: "str | Path | None" = None, format: Literal["numpy", "onnx"] = "numpy") -> Path:
        """Write the version as a file that predicts without the service, and return its path: by default
        ``tickets-3.zip``, or ``.onnx``.
        """
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
