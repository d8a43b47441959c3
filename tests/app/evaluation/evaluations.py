"""Documents with labels that are drawn at random, and their evaluation."""

from typing import Any

import numpy as np

from tests.app.conftest import (
    Gateway,
    body_of,
)

Documents = list[dict[str, Any]]


def drawn(classes: list[Any], n: int = 300, seed: int = 0) -> Documents:
    """Documents with features that mostly speak for their label; every tenth has none."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, len(classes), n)
    values = rng.normal(size=(n, len(classes))).round(3) + 1.2 * np.eye(len(classes))[truth]
    columns = list(range(len(classes)))
    return [
        {"indices": columns, "values": row.tolist(), "label": None if place % 10 == 9 else classes[class_index]}
        for place, (class_index, row) in enumerate(zip(truth, values, strict=True))
    ]


def evaluate(gateway: Gateway, body: dict[str, Any], path: str = "news/evaluate") -> dict[str, Any]:
    return body_of(gateway.client.post(f"/v1/models/{path}", json=body))
