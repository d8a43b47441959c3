"""Reads stored models of any family; ``Model.to_arrays`` writes them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from core.documents.part_columns import Block, EncoderId, PartColumns
from core.documents.text.tfidf import TextTerms
from core.documents.vocabulary import NUMBERS, Names, Vocabulary
from core.models.kernel import KernelModel
from core.models.model import LinearModel, Model
from core.models.parted import PartedModel
from core.validation.calibration import Calibration
from core.validation.label_calibration import LabelCalibration

Arrays = Mapping[str, NDArray[Any]]


def read_model(arrays: Arrays, meta: Mapping[str, Any]) -> Model:
    """The inverse of ``Model.to_arrays``. Models of earlier versions have their family under ``kind``."""
    family = meta["family"] if "family" in meta else meta["kind"]
    linear = PartedModel if "incomplete" in meta else LinearModel
    model: Model = KernelModel.read(arrays, meta) if family == "kernel" else linear.read(arrays, meta)
    stored = meta.get("calibration")
    calibration: Calibration | LabelCalibration | None = None
    if stored is not None:
        calibration = (LabelCalibration if "thresholds" in stored else Calibration).read(stored)
    vocabulary = read_vocabulary(arrays, meta.get("vocabulary", {}))
    return replace(model, calibration=calibration, vocabulary=vocabulary, nested=meta.get("nested", False))


def read_vocabulary(arrays: Arrays, meta: Mapping[str, Any]) -> Vocabulary:
    """The inverse of ``Vocabulary.to_arrays``; numbers where nothing was stored."""
    match meta.get("kind", "vectors"):
        case "features":
            return Names(meta["names"])
        case "text":
            return TextTerms(meta["words"], arrays["term_keys"], arrays["term_idf"], meta["ngrams"])
        case "parts":
            blocks = [_read_block(arrays, place, block) for place, block in enumerate(meta["blocks"])]
            return PartColumns(blocks, EncoderId(**meta["encoder"]) if "encoder" in meta else None)
    return NUMBERS


def _read_block(arrays: Arrays, place: int, meta: Mapping[str, Any]) -> Block:
    prefix = f"part{place}_"
    own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    columns = read_vocabulary(own, meta["vocabulary"])
    return Block(meta["name"], columns, meta["n_columns"], own.get("centre"), meta.get("unit"))
