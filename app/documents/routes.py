"""Routes of the documents of a dataset."""

import asyncio
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, Request
from starlette.responses import Response, StreamingResponse

from app.documents import service
from app.documents.schemas import MAX_PAGE, DocumentPage, DocumentQuery
from app.documents.service import document_columns, document_rows
from app.errors import InvalidRequest
from app.http.answers import (
    CSV,
    JSON,
    NDJSON,
    PARQUET,
    csv_blocks,
    iter_file,
    json_answer,
    negotiate,
    write_parquet,
    written_file,
)
from app.http.requests import AuthorizedRoute, in_thread
from app.http.schemas import error_responses
from app.predictions.scoring import run_scoring
from app.predictions.service import load_model
from app.services.wiring import ServicesDep

router = APIRouter(prefix="/v1/datasets", tags=["datasets"], route_class=AuthorizedRoute)

_encode_lines = msgspec.json.Encoder().encode_lines
_LINES = {"schema": {"type": "string"}, "example": '{"id":"d1","text":"…","label":null,"drawn":null,"skipped":false}\n'}
_ALL = {
    NDJSON: _LINES,
    CSV: {"schema": {"type": "string"}, "example": "id,text,label,drawn,skipped\nd1,…,,,false\n"},
    PARQUET: {
        "schema": {"type": "string", "format": "binary", "description": "The same table; needs the extra arrow."}
    },
}
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"model": DocumentPage, "description": "A page; in other forms all documents", "content": _ALL},
    **error_responses(404, 406, 422, 429, 503, 507),
}


@router.get("/{id}/documents", responses=_ANSWERS, response_class=Response)
async def list_documents(
    request: Request,
    services: ServicesDep,
    id: str,
    query: Annotated[DocumentQuery, Depends()],
) -> Response:
    """List documents of a dataset as they were sent, with their labels now and, if a model is named, with its
    predictions.

    Filters go together. The service remembers how documents without a label were come by: those of a search are found,
    those by their predictions chosen, those of the random order random. Documents are those of the dataset; labels are
    those that people gave, else those of the dataset. What one person has claimed is listed for no other person until
    the claim ends, by itself.
    """
    media_type = negotiate(request, (JSON, NDJSON, CSV, PARQUET))
    if media_type != JSON:  # all documents, whatever a page would have
        query = replace(query, limit=MAX_PAGE)
    service.check(query)
    if query.claim and media_type != JSON:
        raise InvalidRequest("claim", f"is for a page: ask for {JSON}")
    loaded = None if query.model is None else await load_model(services, query.model)
    separator = query.separator if media_type == CSV else None
    pages = service.pages(services, id, query, loaded, separator)
    if query.needs_scores:
        # it takes predictions of all documents, so it runs where datasets are scored
        first = await run_scoring(request, services, next, pages)
    else:
        first = await asyncio.to_thread(next, pages)
    if media_type == JSON:
        return json_answer(first)
    if media_type == NDJSON:
        lines = (_encode_lines(page["documents"]) for page in chain([first], pages))
        return StreamingResponse(lines, media_type=NDJSON)
    dataset = await asyncio.to_thread(services.datasets.get, id)
    columns = document_columns(dataset, loaded and loaded.version)
    rows = document_rows(dataset, columns, chain([first], pages), separator)
    if separator is not None:
        return StreamingResponse(csv_blocks(columns, rows, exact=query.exact), media_type=CSV)
    file = await in_thread(services.pools.store, written_file, services.store, partial(write_parquet, columns, rows))
    return StreamingResponse(iter_file(file), media_type=PARQUET)
