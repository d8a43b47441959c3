"""Caches in memory: of values that were used last, and of models."""

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

from core.models.model import Model
from storage.recent import Recent
from storage.records import Version
from storage.repositories.models import Models
from workers.encoders.catalogue import Encoders
from workers.encoders.rows import with_encoder

T = TypeVar("T")


class LastUsed(Generic[T]):
    """Values by key; beyond ``most`` of them, or of their sizes together, the least recently used are dropped, but for
    the last.

    Threads may use it side by side.
    """

    def __init__(self, most: int, size: Callable[[T], int] | None = None) -> None:
        self._size_of = size or (lambda value: 1)
        self._kept = Recent[Hashable, T](most, size)
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def size(self) -> int:
        """Sum of the sizes."""
        with self._lock:
            return sum(map(self._size_of, self._kept.values()))

    def find(self, key: Hashable) -> T | None:
        """The value of a key, if it is kept."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def keep(self, key: Hashable, value: T) -> T:
        """Keep the value of a key in place of the one it had."""
        with self._lock:
            self._kept[key] = value
        return value


class ModelCache:
    """Loaded models, up to ``most`` bytes."""

    def __init__(self, models: Models, most: int, encoders: Encoders) -> None:
        self._models = models
        self._encoders = encoders
        self.loaded = LastUsed[Model](most, lambda model: model.nbytes)
        self.loads = 0
        self._load_lock = Lock()

    def find(self, version: Version) -> Model | None:
        """The model of a version, if it is loaded."""
        return self.loaded.find((version.name, version.number, version.job))

    def load(self, version: Version) -> Model:
        """The model of a version. Concurrent callers read it from the store once. Raises NotFound."""
        with self._load_lock:
            model = self.find(version)
            if model is None:
                model = with_encoder(self._models.load(version), self._encoders)
                self.loads += 1
                self.loaded.keep((version.name, version.number, version.job), model)
            return model
