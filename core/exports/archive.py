"""An archive of a model that predicts with NumPy alone: its arrays, its meaning as JSON, and ``predict.py``, which
reads both.

The archive is a ZIP file that Python runs and imports from as it is.
"""

import json
import zipfile
from collections.abc import Mapping
from importlib.resources import files
from typing import IO, Any

import numpy as np

from core.documents.text.tfidf import SMALL_LOGS
from core.models.kernel import KernelModel
from core.models.model import Model

_MAIN = "import sys\n\nfrom predict import main\n\nsys.exit(main(sys.argv[1:]))\n"
_TIME = (1980, 1, 1, 0, 0, 0)
"""the time of all files, so that the same version gives the same archive"""


def write_archive(model: Model, about: Mapping[str, Any], file: IO[bytes]) -> None:
    """Write the archive of a model; ``about`` says which version it is."""
    arrays, meta = model.to_arrays()
    arrays = {**arrays, "logs": SMALL_LOGS}
    if isinstance(model, KernelModel) and model.is_dense:
        arrays["centre"] = model.centre  # with the same arithmetic the scores are the same
    described = {**about, **meta, "arrays": sorted(arrays)}
    with zipfile.ZipFile(file, "w") as archive:
        _add(archive, "predict.py", files("core.exports").joinpath("predict.py").read_bytes())
        _add(archive, "__main__.py", _MAIN.encode())
        _add(archive, "model.json", json.dumps(described, ensure_ascii=False, indent=1).encode())
        for name in described["arrays"]:
            # weights hardly shrink, and take long to compress
            with archive.open(zipfile.ZipInfo(f"arrays/{name}.npy", _TIME), "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.ascontiguousarray(arrays[name]), allow_pickle=False)


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    archive.writestr(zipfile.ZipInfo(name, _TIME), content, zipfile.ZIP_DEFLATED)
