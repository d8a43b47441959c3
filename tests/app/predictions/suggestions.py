"""Documents of which some are suggested, and the ids of these."""

import json
from typing import Any

from tests.app.conftest import NDJSON, Gateway

# the scores of these by the model of ``publish`` are the differences of their second and first value
UNLABELED = {"far": [0.0, 3.0], "near": [0.5, 0.6], "even": [1.0, 1.0], "no": [2.0, 0.0], "twin": [1.0, 1.1]}


def upload(gateway: Gateway, given: dict[str, list[float]] = UNLABELED, labeled: int = 2) -> str:
    lines: list[dict[str, Any]] = [
        {"id": f"known{k}", "indices": [k % 2], "label": ("no", "yes")[k % 2]} for k in range(labeled)
    ]
    lines += [{"id": id, "indices": list(range(len(values))), "values": values} for id, values in given.items()]
    body = "\n".join(map(json.dumps, lines))
    answer = gateway.client.post("/v1/datasets", content=body, headers={"content-type": NDJSON})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def ids(found: dict[str, Any]) -> list[str]:
    return [each["id"] for each in found["suggestions"]]


def drawn(found: dict[str, Any]) -> dict[str, str]:
    return {each["id"]: each["drawn"] for each in found["suggestions"]}
