"""Models: they predict, explain, are evaluated, and suggest the next documents to label."""

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from halfmoon._async.datasets import AsyncDataset
from halfmoon._async.transport import AsyncResource, AsyncTransport, operation
from halfmoon._async_only import AliasesMixin, ModelMixin, ModelsMixin
from halfmoon.columns import Choice, Column
from halfmoon.errors import InvalidData
from halfmoon.records import Evaluation, Explanation, ModelRecord, ModelSummary, Prediction, Suggestion, Version
from halfmoon.shown import (
    ModelReference,
    Suggestions,
    documents_sent,
    evaluation_sent,
    explanation_asked,
    id_of_dataset,
    reference_of,
    texts_in,
)

_HTML = {"Accept": "text/html"}


class AsyncModels(AsyncResource, ModelsMixin):
    """The models of a service: ``models["news"]``, ``models["news@live"]``, ``models["news", 3]``."""

    def __getitem__(self, reference: str | tuple[str, int]) -> "AsyncModel":
        return AsyncModel(self._transport, *reference_of(reference))

    @operation("list_models")
    async def all(self) -> AsyncIterator[ModelSummary]:
        """The models that have a version, by name."""
        async for summary in self._transport.entries("/v1/models", "models", ModelSummary):
            yield summary

    @operation("list_encoders")
    async def encoders(self) -> list[dict[str, Any]]:
        """The encoders that a training may name, by name; one of them is the default."""
        return (await self._transport.call("GET", "/v1/encoders", dict[str, list[dict[str, Any]]]))["encoders"]


class AsyncAliases(AliasesMixin):
    """The aliases of a model."""

    def __init__(self, transport: AsyncTransport, name: str) -> None:
        self._transport = transport
        self._path = f"/v1/models/{name}"

    async def all(self) -> dict[str, int]:
        """The aliases with the versions that they point to."""
        return (await self._transport.call("GET", self._path, ModelRecord)).aliases

    @operation("set_alias")
    async def set(self, alias: str, version: int) -> None:
        """Point an alias to a version."""
        await self._transport.send("PUT", f"{self._path}/aliases/{alias}", json={"version": version})

    @operation("delete_alias")
    async def delete(self, alias: str) -> None:
        """Remove an alias; the version stays."""
        await self._transport.send("DELETE", f"{self._path}/aliases/{alias}")


class AsyncModel(ModelMixin, ModelReference):
    """A model by the version that it serves, an alias of it, or one of its versions.

    Nothing is asked of the service until a method is called.
    """

    def __init__(self, transport: AsyncTransport, reference: str, number: int | None = None) -> None:
        super().__init__(reference, number)
        self._transport = transport
        self.aliases = AsyncAliases(transport, self.name)

    @operation("show_model")
    async def show(self) -> ModelRecord:
        """The model with its versions and aliases; raises NotFound."""
        return await self._transport.call("GET", f"/v1/models/{self.name}", ModelRecord)

    async def number(self) -> int:
        """Number of the version to which the reference refers now."""
        if self.number_given is not None:
            return self.number_given
        return self._number_in(await self.show())

    @operation("show_version")
    async def info(self) -> Version:
        """The version to which the reference refers now, and how it was made."""
        return await self._transport.call("GET", f"/v1/models/{self.name}/versions/{await self.number()}", Version)

    @operation("predict_newest", "predict_version")
    async def predict(
        self,
        documents: Any,
        *,
        text: str | None = None,
        id: Column = None,
        features: Sequence[str] | None = None,
        extra: str | None = None,
    ) -> Prediction:
        """Labels, scores and probabilities of documents, which come as to ``datasets.create``.

        A single text is a document, too; a file is given as a ``pathlib.Path``.
        """
        request = documents_sent(documents, Choice(text, None, id, features, None, extra), self.reference)
        found = await self._transport.call("POST", f"{self._path}/predict", Prediction, **request)
        return msgspec.structs.replace(found, texts=found.texts or texts_in(documents, text))

    @operation("label_newest")
    async def label(self, text: str) -> tuple[str | int, float | None]:
        """Label and probability of one text; not for a version by its number."""
        answer = await self._transport.call(
            "POST", f"/v1/models/{self.reference}/label", dict[str, Any], json={"text": text}, repeatable=True
        )
        return answer["label"], answer["probability"]

    @operation("explain_newest", "explain_version")
    async def explain(
        self, documents: Sequence[Any] | Mapping[str, Any] | None = None, *, n: int = 10, label: str | int | None = None
    ) -> Explanation:
        """The weights that matter most and, for up to a hundred documents (texts or dicts), the contributions for and
        against their labels.
        """
        fields = explanation_asked(documents, n, label)
        return Explanation(
            await self._transport.call("POST", f"{self._path}/explain", dict[str, Any], json=fields, repeatable=True)
        )

    @operation("evaluate_newest", "evaluate_version")
    async def evaluate(
        self,
        data: Any,
        *,
        text: str | None = None,
        label: Column = None,
        features: Sequence[str] | None = None,
        extra: str | None = None,
        held_out: bool = False,
    ) -> Evaluation:
        """The quality of the model on labeled documents: a dataset (also by its id), or data as ``datasets.create``
        takes them.

        ``held_out`` leaves out the documents of the dataset whose labels the version was trained on.
        """
        return await self._evaluated(
            "POST", evaluation_sent(data, Choice(text, label, None, features, None, extra), held_out)
        )

    @operation("show_evaluation", "show_evaluation_of_version")
    async def evaluation(
        self, data: AsyncDataset | str, *, held_out: bool = False, annotations: int | str | None = None
    ) -> Evaluation:
        """Evaluate on a dataset, by a link that a browser opens too.

        ``annotations``: a number of entries of its log, or ``"latest"``.
        """
        return await self._evaluated(
            "GET",
            {
                "params": {"dataset": id_of_dataset(data), "held_out": held_out, "annotations": annotations},
                "headers": {},
            },
        )

    async def _evaluated(self, method: str, request: Mapping[str, Any]) -> Evaluation:
        """The figures with their page."""
        path = f"{self._path}/evaluate"
        figures = await self._transport.call(method, path, Evaluation, **request)
        page = await self._transport.send(method, path, **{**request, "headers": request["headers"] | _HTML})
        return msgspec.structs.replace(figures, page=page.text)

    @operation("suggest_newest", "suggest_by_version")
    async def suggest(
        self, data: AsyncDataset | str, n: int = 10, *, include: Sequence[str] = ("document",), **more: Any
    ) -> list[Suggestion]:
        """Documents of the dataset to label next, the most useful first, each with its text.

        ``more``: strategy, random, seed.
        """
        return (await self._suggested(data, n, include, more)).suggestions

    @operation("suggest_newest", "suggest_by_version")
    async def ask(
        self, data: AsyncDataset | str, voter: str, n: int = 10, *, price: float | None = None, **more: Any
    ) -> Suggestions:
        """Documents of the dataset where the answer of a voter is worth most, each with its text, and in ``asking``
        what more answers are worth, what they cost at this price, and whether to stop.

        ``more``: strategy, seed.
        """
        return await self._suggested(data, n, ("document",), {"for": voter, "price": price, **more})

    async def _suggested(
        self, data: AsyncDataset | str, n: int, include: Sequence[str], more: Mapping[str, Any]
    ) -> Suggestions:
        fields = {"dataset": id_of_dataset(data), "n": n, "include": list(include), **more}
        return await self._transport.call("POST", f"{self._path}/suggest", Suggestions, json=fields, repeatable=True)

    @operation("export_version")
    async def export(self, path: "str | Path | None" = None, format: Literal["numpy", "onnx"] = "numpy") -> Path:
        """Write the version as a file that predicts without the service, and return its path: by default
        ``tickets-3.zip``, or ``.onnx``.
        """
        number = await self.number()
        target = Path(f"{self.name}-{number}.{'zip' if format == 'numpy' else format}" if path is None else path)
        await self._transport.download(f"/v1/models/{self.name}/versions/{number}/export?format={format}", target)
        return target

    @operation("doubt_newest", "doubt_by_version")
    async def doubts(self, data: AsyncDataset | str, n: int = 10) -> list[dict[str, Any]]:
        """Labels of the dataset that the model doubts, the most doubtful first.

        Of several labels each doubt has one: ``applies`` says whether the document has it.
        """
        fields = {"dataset": id_of_dataset(data), "n": n}
        answer = await self._transport.call(
            "POST", f"{self._path}/doubts", dict[str, Any], json=fields, repeatable=True
        )
        return list(answer["doubts"])

    @operation("delete_model", "delete_version")
    async def delete(self) -> None:
        """Delete the version, if the reference has a number; else the model with all versions and aliases."""
        if self._alias:
            raise InvalidData(f"{self.reference!r}: an alias is removed by aliases.delete({self._alias!r})")
        await self._transport.send("DELETE", self._path)
