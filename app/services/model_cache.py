"""Cache of models in memory."""

import threading
from collections import OrderedDict

from core.models.model import Model
from workers.contract import Version
from workers.encoders.catalogue import Encoders
from workers.encoders.rows import with_encoder
from workers.repositories.models import Models


class ModelCache:
    """Loaded models, the least recently used dropped beyond ``most`` bytes."""

    def __init__(self, models: Models, most: int, encoders: Encoders) -> None:
        self._models = models
        self._encoders = encoders
        self._most = most
        self._loaded: OrderedDict[tuple[str, int, str], Model] = OrderedDict()
        self._bytes = 0
        self.loads = 0
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
                model = with_encoder(self._models.load(version), self._encoders)
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
