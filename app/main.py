"""The gateway as an ASGI application: routers, middleware, error handlers and the documentation page."""

import asyncio
import hashlib
import re
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from fastapi import FastAPI
from fastapi.middleware.asyncexitstack import AsyncExitStackMiddleware
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import HTMLResponse
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from app.annotations import routes as annotations
from app.contract import describe
from app.datasets import routes as datasets
from app.documents import routes as documents
from app.evaluation import routes as evaluations
from app.http.error_handlers import ErrorBoundary
from app.http.limits import ConnectionLimit
from app.http.middleware import REQUEST_ID, Answers, RequestTracing
from app.http.sockets.body_timeout import BodyTimeout
from app.http.sockets.listener import Processes
from app.inference import routes as inference
from app.jobs import routes as jobs
from app.keys import routes as keys
from app.label_studio import routes as label_studio
from app.models import routes as models
from app.operations import routes as operations
from app.operations.routes import in_a_word
from app.page import routes as page
from app.predictions import routes as predictions
from app.review import routes as review
from app.services.wiring import open_services
from app.settings import GatewaySettings
from app.webhooks import routes as webhooks
from storage.process.tracing import tracing

_PAGE = "/docs"
_ASSETS = f"{_PAGE}/assets"
_ROUTERS = (
    predictions.router,  # first, since routes are tried in order, and nobody waits for another answer as often
    *(page.router, page.session_router),
    *(evaluations.router, predictions.suggestions_router, review.doubts_router),
    *(
        datasets.router,
        datasets.raw_router,
        annotations.router,
        annotations.raw_router,
        documents.router,
        review.router,
        review.raw_router,
    ),
    *(
        jobs.router,
        jobs.raw_router,
        models.router,
        models.raw_router,
        models.encoders_router,
        operations.router,
        operations.metrics_router,
        operations.problems_router,
        label_studio.router,
        label_studio.training_router,
        webhooks.router,
        webhooks.raw_router,
        keys.router,
        keys.raw_router,
        inference.health_router,
        inference.router,
    ),
)


def create_app(settings: GatewaySettings, processes: Processes | None = None) -> FastAPI:
    """The application. It opens its services when it starts and closes them when it stops.

    ``processes`` are those that share its address; None if it has the address alone.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        with ExitStack() as stack:
            others = processes.metrics_of_others if processes is not None and processes.several else None
            services = app.state.services = await asyncio.to_thread(
                stack.enter_context, open_services(settings, others)
            )
            if processes is not None:
                stack.enter_context(processes.answering(partial(in_a_word, services), services.metrics.of_process))
            yield

    app = FastAPI(
        title="Halfmoon",
        version=version("halfmoon"),
        lifespan=lifespan,
        openapi_url="/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        separate_input_output_schemas=False,
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.router.routes.extend(route for router in _ROUTERS for route in router.routes)
    _add_docs(app)
    describe(app)
    app.middleware_stack = _in_layers(app.router, settings)
    return app


def _in_layers(app: ASGIApp, settings: GatewaySettings) -> ASGIApp:
    """The application in its middleware, from the innermost to the outermost. Of FastAPI's own stack it has the layer
    that its routes need, and none of the four for errors, telemetry and limits, which are handled here.
    """
    timed = BodyTimeout(
        AsyncExitStackMiddleware(app), settings.body_idle_timeout_seconds, settings.min_body_bytes_per_second
    )
    app = ConnectionLimit(ErrorBoundary(timed), settings.max_connections)
    if settings.cors_origins:
        app = CORSMiddleware(
            app,
            allow_origins=settings.cors_origins,
            allow_methods=["GET", "POST", "PUT", "DELETE"],
            allow_headers=[
                "Authorization",
                "X-API-Key",
                "Content-Type",
                "Content-Encoding",
                "Idempotency-Key",
                REQUEST_ID,
            ],
            expose_headers=["Location", "Retry-After", "RateLimit", "RateLimit-Policy", REQUEST_ID],
        )
    if tracing.is_on:
        app = RequestTracing(app)
    return Answers(app, settings.log_requests)


def _add_docs(app: FastAPI) -> None:
    """Add the documentation page. Its scripts come from this server, so it works without the internet."""
    app.mount(_ASSETS, StaticFiles(directory=Path(str(files("fastapi_offline"))) / "static"))

    page = get_swagger_ui_html(
        openapi_url="/v1/openapi.json",
        title="Halfmoon",
        swagger_js_url=f"{_ASSETS}/swagger-ui-bundle.js",
        swagger_css_url=f"{_ASSETS}/swagger-ui.css",
        swagger_favicon_url=f"{_ASSETS}/favicon.png",
    )
    digests = (
        hashlib.sha256(script.encode()).digest()
        for script in re.findall("<script>(.*?)</script>", bytes(page.body).decode(), re.DOTALL)
    )
    scripts = " ".join(f"'sha256-{b64encode(digest).decode()}'" for digest in digests)
    page.headers["Content-Security-Policy"] = (
        f"default-src 'none'; script-src 'self' {scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' "
        "data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )

    @app.get(_PAGE, include_in_schema=False)
    async def docs() -> HTMLResponse:
        return page
