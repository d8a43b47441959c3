"""Models in memory, ready to predict."""

import threading
import time
from collections import OrderedDict

from core.models.model import Model
from workers.contract import Version
from workers.repositories.models import Models

_REMEMBERED = 10_000


class LoadedModels:
    """A model's versions by reference, and the models themselves, of which the least recently used are dropped beyond ``most`` bytes.

    ``remember`` is for how many seconds a reference is not asked of the store again: 0 wherever asking is cheap.
    """

    def __init__(self, models: Models, most: int, remember: float) -> None:
        self.registry = models
        self._most = most
        self._remember = remember
        self._loaded: OrderedDict[tuple[str, int, str], Model] = OrderedDict()
        self._bytes = 0
        self.loads = 0
        self._resolved: dict[str, tuple[float, Version]] = {}
        self._lock = threading.Lock()
        self._loading = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Memory that the loaded models take."""
        return self._bytes

    @property
    def count(self) -> int:
        """How many are loaded."""
        return len(self._loaded)

    @property
    def quick(self) -> bool:
        """Whether ``resolve`` is cheap enough for the event loop."""
        return self._remember == 0

    def resolve(self, reference: str) -> Version:
        """The version that ``name``, ``name@alias`` or ``name/number`` stands for; raises NotFound."""
        known = self._resolved.get(reference)
        if known and time.monotonic() - known[0] < self._remember:
            return known[1]
        name, slash, number = reference.partition("/")
        version = self.registry.version(name, int(number)) if slash else self.registry.resolve(reference)
        if self._remember:
            if len(self._resolved) >= _REMEMBERED:
                self._resolved.clear()
            self._resolved[reference] = (time.monotonic(), version)
        return version

    def forget(self) -> None:
        """Ask the store again: something was changed through this process."""
        self._resolved.clear()

    def find(self, version: Version) -> Model | None:
        """The model of a version, if it is in memory."""
        with self._lock:
            model = self._loaded.get(_key(version))
            if model is not None:
                self._loaded.move_to_end(_key(version))
            return model

    def load(self, version: Version) -> Model:
        """The model of a version, read from the store unless it is in memory. However many ask, it is read once. Raises NotFound."""
        with self._loading:
            model = self.find(version)
            if model is None:
                model = self.registry.load(version)
                self._keep(version, model)
            return model

    def _keep(self, version: Version, model: Model) -> None:
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
