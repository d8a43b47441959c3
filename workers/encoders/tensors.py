"""Contents of the folders of encoders: settings as JSON, and tensors as safetensors."""

import json
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from workers.encoders.encoder import EncoderUnavailable


def settings_in(file: Path) -> dict[str, Any]:
    """A file of settings, empty where there is none; raises EncoderUnavailable."""
    try:
        found = json.loads(file.read_bytes()) if file.is_file() else {}
    except (OSError, ValueError) as error:
        raise EncoderUnavailable(f"has a {file.name} that cannot be read: {error}") from None
    return found if isinstance(found, dict) else {}


def tensors_in(file: Path) -> dict[str, NDArray[Any]]:
    """The tensors of a file by name; raises EncoderUnavailable."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return load_file(file)
    except (SafetensorError, OSError, ValueError, TypeError, KeyError) as error:
        raise EncoderUnavailable(f"has a {file.name} that cannot be read: {error}") from None
