"""Documents as they are listed."""

from typing import Any

from tests.app.conftest import Gateway, body_of


def documents(gateway: Gateway, dataset: str, **query: Any) -> dict[str, Any]:
    return body_of(gateway.client.get(f"/v1/datasets/{dataset}/documents", params=query))


def ids(found: dict[str, Any]) -> list[str]:
    return [each["id"] for each in found["documents"]]


def every_id(gateway: Gateway, dataset: str, **query: Any) -> list[str]:
    """Ids of all pages; checks the sizes of the pages."""
    found, cursor = [], None
    while True:
        page = documents(gateway, dataset, **query, **({"cursor": cursor} if cursor else {}))
        assert len(page["documents"]) <= query["limit"]
        found += ids(page)
        cursor = page["next"]
        if cursor is None:
            return found


def listed(gateway: Gateway, dataset: str, share: str, **query: Any) -> set[str]:
    answer = gateway.client.get(f"/v1/datasets/{dataset}/documents", params={"share": share, "limit": 500, **query})
    return {each["id"] for each in body_of(answer)["documents"]}
