"""The gateway as an ASGI application."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.responses import HTMLResponse
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.handlers import add_handlers
from app.openapi import describe
from app.routes import datasets, health, jobs, models, predictions
from app.services import open_services
from app.settings import GatewaySettings

_ASSETS = "/docs/assets"
_ROUTERS = (
    *(predictions.router, datasets.router, datasets.bodies, jobs.router, jobs.bodies, models.router, models.bodies),
    *(health.router, health.measures),
)


def create_app(settings: GatewaySettings) -> FastAPI:
    """The application; it opens the store and its threads when it is started and closes them when it is stopped."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        with ExitStack() as stack:
            app.state.services = await asyncio.to_thread(stack.enter_context, open_services(settings))
            yield

    app = FastAPI(
        title="Halfmoon",
        version=version("halfmoon"),
        lifespan=lifespan,
        openapi_url="/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
        separate_input_output_schemas=False,
    )
    for router in _ROUTERS:
        app.include_router(router)
    _add_docs(app)
    add_handlers(app)
    describe(app)
    app.add_middleware(Measured)
    return app


class Measured:
    """Counts every request with the template of its route, its status and its time."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and count it when its answer begins."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "path", "(none)")
                seconds = time.perf_counter() - begun
                scope["app"].state.services.metrics.answered(scope["method"], route, message["status"], seconds)
            await send(message)

        await self._app(scope, receive, counted)


def _add_docs(app: FastAPI) -> None:
    """The page for people, with its scripts from this server: it works where the internet does not reach."""
    app.mount(_ASSETS, StaticFiles(directory=Path(str(files("fastapi_offline"))) / "static"))

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return get_swagger_ui_html(
            openapi_url="/v1/openapi.json",
            title="Halfmoon",
            swagger_js_url=f"{_ASSETS}/swagger-ui-bundle.js",
            swagger_css_url=f"{_ASSETS}/swagger-ui.css",
            swagger_favicon_url=f"{_ASSETS}/favicon.png",
        )
