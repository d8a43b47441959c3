"""Parts that only the client that waits has: methods that look like attributes."""

import time
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, TypeVar

from halfmoon.display import listed, pairs, table
from halfmoon.errors import HalfmoonError
from halfmoon.records import Version

T = TypeVar("T")

sleep = time.sleep


def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Call a blocking function."""
    return function(*arguments)


def _named(what: str, names: Callable[[], list[str]]) -> str:
    """What a terminal shows of a list of the service, also where the service does not answer."""
    try:
        return f"<{what}: {listed(names())}>"
    except HalfmoonError as error:
        return f"<{what}: unknown, {error}>"


class AliasesMixin(MutableMapping[str, int]):
    """Aliases as a mapping: ``model.aliases["live"] = 3``."""

    def __getitem__(self, alias: str) -> int:
        found: dict[str, int] = self.all()  # type: ignore[attr-defined]
        return found[alias]

    def __setitem__(self, alias: str, version: int) -> None:
        self.set(alias, version)  # type: ignore[attr-defined]

    def __delitem__(self, alias: str) -> None:
        self.delete(alias)  # type: ignore[attr-defined]

    def __iter__(self) -> Iterator[str]:
        return iter(dict(self.all()))  # type: ignore[attr-defined]

    def __len__(self) -> int:
        return len(dict(self.all()))  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"<Aliases {dict(self)}>"

    def _repr_html_(self) -> str:
        return table("Aliases", ("alias", "version"), self.items())


class ModelMixin:
    """The number of the version to which a reference refers now."""

    @property
    def version(self) -> int:
        """Number of the version: of the reference, of its alias, or of the version that is served."""
        number: int = self.number()  # type: ignore[attr-defined]
        return number

    def _repr_html_(self) -> str:
        found: Version = self.info()  # type: ignore[attr-defined]
        classes = ", ".join(map(str, found.classes))
        shown = {
            "algorithm": found.algorithm,
            "documents": found.kind,
            "classes": classes,
            "made": found.created_at,
            "confidence": found.confidence,
        }
        return pairs(f"Model {found.name}, version {found.version}", shown)


class ModelsMixin:
    """The models, as a notebook shows them."""

    def __repr__(self) -> str:
        return _named("Models", lambda: [each.name for each in self.all()])  # type: ignore[attr-defined]

    def _repr_html_(self) -> str:
        models = self.all()  # type: ignore[attr-defined]
        rows = ((each.name, each.served, each.newest, ", ".join(each.aliases)) for each in models)
        return table("Models", ("name", "served", "newest", "aliases"), rows)


class DatasetsMixin:
    """The datasets by their names: ``hm.datasets["sms"]``; a loop goes over all; a notebook shows them."""

    def __getitem__(self, name: str) -> Any:
        return self.named(name)  # type: ignore[attr-defined]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.all())  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return _named("Datasets", lambda: [each.name or each.id for each in self])

    def _repr_html_(self) -> str:
        records = (each.record for each in self.all())  # type: ignore[attr-defined]
        rows = ((each.id, each.name, each.kind, each.n_documents, each.n_labeled) for each in records)
        return table("Datasets, newest first", ("id", "name", "documents of", "number", "labeled"), rows)


class JobsMixin:
    """The jobs, as a notebook shows them."""

    def __repr__(self) -> str:
        jobs = self.all  # type: ignore[attr-defined]
        return _named("Jobs", lambda: [f"{each.record.model_name} {each.state}" for each in jobs()])

    def _repr_html_(self) -> str:
        records = (each.record for each in self.all())  # type: ignore[attr-defined]
        rows = ((each.id, each.model_name, each.algorithm, each.state) for each in records)
        return table("Jobs, newest first", ("id", "model", "algorithm", "state"), rows)
