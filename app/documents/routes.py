"""Routes of the documents of a dataset."""

import asyncio
from functools import partial
from itertools import chain
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from app.documents import service
from app.documents.schemas import DocumentPage, Order, State
from app.documents.table import document_columns, document_rows
from app.errors import InvalidRequest
from app.http.answers.files import iter_file, written_file
from app.http.answers.negotiation import negotiate
from app.http.answers.tables import CSV, EXACT, PARQUET, csv_blocks, write_parquet
from app.http.bodies import in_thread
from app.http.openapi_fragments import error_responses
from app.http.route_classes import AuthorizedRoute
from app.predictions.prediction import load_model
from app.predictions.scoring import run_scoring
from app.services import Services, ServicesDep

router = APIRouter(prefix="/v1/datasets", tags=["datasets"], route_class=AuthorizedRoute)

_JSON, _NDJSON = "application/json", "application/x-ndjson"
_ENCODER = msgspec.json.Encoder()
Limit = Annotated[
    int,
    Query(
        ge=1,
        le=service.MAX_PAGE,
        description="Most documents of a page; in other forms, of a part that is read at a time.",
    ),
]
Exact = Annotated[bool, Query(description=EXACT)]
Cursor = Annotated[str | None, Query(max_length=256, description="`next` of the page before.")]
Ids = Annotated[
    str | None,
    Query(
        max_length=60_000,
        description='Ids of documents, separated by commas, or as a list of JSON: `["a","b"]`; in this order.',
    ),
]
Contains = Annotated[
    str | None,
    Query(min_length=1, max_length=256, description="Text that a document contains, or a name of its features."),
]
LabelOf = Annotated[str | None, Query(max_length=256, description="Label that the documents have.")]
Predicted = Annotated[str | None, Query(max_length=256, description="Label that the model predicts.")]
ModelName = Annotated[
    str | None, Query(max_length=300, description="Model whose predictions are shown: name, name@alias or name/number.")
]
AtLeast = Annotated[float, Query(ge=0, le=1, description="Least probability of the label that the model predicts.")]
AtMost = Annotated[float, Query(ge=0, le=1, description="Most probability of it.")]
Seed = Annotated[int, Query(ge=0, le=2**31 - 1, description="Seed of the random order.")]
By = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=256,
        description="Name of a person: only documents to which the person gave a label. With `claim` those that others "
        "have claimed are left out instead.",
    ),
]
Claim = Annotated[
    int | None,
    Query(
        ge=0,
        le=86_400,
        description="Seconds for which the documents of the page are claimed for the person; 0: those that others have "
        "claimed are left out, and none is claimed.",
    ),
]
Mistaken = Annotated[bool, Query(description="Only documents with a label, to which the model gives another one.")]
Disagreement = Annotated[bool, Query(description="Only documents to which people gave different labels.")]
Flagged = Annotated[bool, Query(description="Only documents that somebody marked for others to look at.")]
Skipped = Annotated[bool, Query(description="Only documents that people left out: the same as `state=skipped`.")]
Below = Annotated[
    float, Query(ge=0, le=1, description="Only documents to whose label the model gives a probability below this.")
]
WhichState = Annotated[State | None, Query(description="State: open documents have no label and were not left out.")]
WhichOrder = Annotated[
    Order, Query(description="Order. likeliest: those first of whose label the model is the surest.")
]

_LINES = {"schema": {"type": "string"}, "example": '{"id":"d1","text":"…","label":null,"drawn":null,"skipped":false}\n'}
_ALL = {
    _NDJSON: _LINES,
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
    limit: Limit = 50,
    cursor: Cursor = None,
    ids: Ids = None,
    contains: Contains = None,
    label: LabelOf = None,
    predicted: Predicted = None,
    state: WhichState = None,
    at_least: AtLeast = 0.0,
    at_most: AtMost = 1.0,
    order: WhichOrder = Order.POSITION,
    seed: Seed = 0,
    model: ModelName = None,
    mistaken: Mistaken = False,
    by: By = None,
    claim: Claim = None,
    disagreement: Disagreement = False,
    flagged: Flagged = False,
    skipped: Skipped = False,
    probability_below: Below = 1.0,
    exact: Exact = False,
) -> Response:
    """List documents of a dataset as they were sent, with their labels now and, if a model is named, with what it
    predicts.

    Filters go together. The service remembers how documents without a label were come by: those of a search are found,
    those by their predictions chosen, those of the random order random. Documents are those of the dataset; labels are
    those that people gave, else those of the dataset. What one person has claimed is listed for no other person until
    the claim ends, by itself.
    """
    media_type = negotiate(request, (_JSON, _NDJSON, CSV, PARQUET))
    if media_type != _JSON and "limit" not in request.query_params:
        limit = service.MAX_PAGE
    if skipped and state is not None:
        raise InvalidRequest("skipped", "and state say both which documents are meant: give one of them")
    query = service.Query(
        limit=limit,
        cursor=cursor,
        ids=ids,
        contains=contains,
        label=label,
        predicted=predicted,
        state=State.SKIPPED if skipped else state,
        at_least=at_least,
        at_most=at_most,
        below=probability_below,
        order=order,
        seed=seed,
        mistaken=mistaken,
        by=by,
        claim=claim,
        disagreement=disagreement,
        flagged=flagged,
    )
    if claim and media_type != _JSON:
        raise InvalidRequest("claim", f"is for a page: ask for {_JSON}")
    return await _answer(request, services, id, query, model, media_type, exact=exact)


async def _answer(
    request: Request,
    services: Services,
    id: str,
    query: service.Query,
    model: str | None,
    media_type: str,
    *,
    exact: bool,
) -> Response:
    """A page of the documents of a query as JSON; in other forms all of them."""
    service.check(query, model=model is not None)
    loaded = None if model is None else await load_model(services, model)
    predictor = None if loaded is None else service.Predictor(loaded.version, loaded.model)
    pages = service.pages(services, id, query, predictor)
    if query.needs_scores:
        # it takes predictions of all documents, so it runs where datasets are scored
        first = await run_scoring(request, services, next, pages)
    else:
        first = await asyncio.to_thread(next, pages)
    if media_type == _JSON:
        return Response(_ENCODER.encode(first), media_type=_JSON)
    if media_type == _NDJSON:
        lines = (_ENCODER.encode_lines(page["documents"]) for page in chain([first], pages))
        return StreamingResponse(lines, media_type=_NDJSON)
    dataset = await asyncio.to_thread(services.datasets.get, id)
    columns = document_columns(dataset, predictor and predictor.version)
    rows = document_rows(dataset, columns, chain([first], pages))
    if media_type == CSV:
        return StreamingResponse(csv_blocks(columns, rows, exact=exact), media_type=CSV)
    file = await in_thread(services.store_pool, written_file, services.store, partial(write_parquet, columns, rows))
    return StreamingResponse(iter_file(file), media_type=PARQUET)
