"""Cache of models in memory, and of which version a reference names."""

import threading
import time
from collections import OrderedDict

from core.models.model import Model
from workers.contract import Version
from workers.repositories.models import Models

_MAX_VERSIONS = 10_000


class ModelCache:
    """Loaded models, the least recently used dropped beyond ``most`` bytes; and versions by reference, kept for ``version_seconds``.

    With ``version_seconds`` of 0 every reference is resolved in the store, which is right where the store is a local folder.
    """

    def __init__(self, models: Models, most: int, version_seconds: float) -> None:
        self._models = models
        self._most = most
        self._version_seconds = version_seconds
        self._loaded: OrderedDict[tuple[str, int, str], Model] = OrderedDict()
        self._bytes = 0
        self.loads = 0
        self._versions: dict[str, tuple[float, Version]] = {}
        self._lock = threading.Lock()
        self._load_lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Memory that the loaded models take, in bytes."""
        return self._bytes

    @property
    def count(self) -> int:
        """Number of loaded models."""
        return len(self._loaded)

    @property
    def resolves_fast(self) -> bool:
        """Whether ``resolve`` is fast enough for the event loop."""
        return self._version_seconds == 0

    def resolve(self, reference: str) -> Version:
        """The version that ``name``, ``name@alias`` or ``name/number`` refers to; raises NotFound."""
        cached = self._versions.get(reference)
        if cached and time.monotonic() - cached[0] < self._version_seconds:
            return cached[1]
        name, slash, number = reference.partition("/")
        version = self._models.version(name, int(number)) if slash else self._models.resolve(reference)
        if self._version_seconds:
            if len(self._versions) >= _MAX_VERSIONS:
                self._versions.clear()
            self._versions[reference] = (time.monotonic(), version)
        return version

    def forget_versions(self) -> None:
        """Resolve every reference anew: a version or an alias was changed in this process."""
        self._versions.clear()

    def find(self, version: Version) -> Model | None:
        """The model of a version, if it is loaded."""
        with self._lock:
            model = self._loaded.get(_key(version))
            if model is not None:
                self._loaded.move_to_end(_key(version))
            return model

    def load(self, version: Version) -> Model:
        """The model of a version. Concurrent callers read it from the store once. Raises NotFound."""
        with self._load_lock:
            model = self.find(version)
            if model is None:
                model = self._models.load(version)
                self._add(version, model)
            return model

    def _add(self, version: Version, model: Model) -> None:
        size = model.nbytes
        with self._lock:
            self.loads += 1
            self._loaded[_key(version)] = model
            self._bytes += size
            while self._bytes > self._most and len(self._loaded) > 1:
                _, dropped = self._loaded.popitem(last=False)
                self._bytes -= dropped.nbytes


def _key(version: Version) -> tuple[str, int, str]:
    return version.name, version.number, version.job
