"""Runs the gateway under uvicorn."""

import socket

import uvicorn

from app.main import create_app
from app.settings import GatewaySettings
from workers.logs import configure_logging

PATIENCE = 10
"""seconds that open requests, event streams among them, have to end in when the gateway is stopped"""


def serve(settings: GatewaySettings, descriptor: int | None = None) -> int:
    """Serve until SIGINT or SIGTERM; returns the exit code. ``descriptor`` is a listening socket to use in place of host and port."""
    configure_logging(settings.log_format, settings.log_level)
    config = uvicorn.Config(
        create_app(settings),
        host=settings.host,
        port=settings.port,
        loop="uvloop",
        http="httptools",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=PATIENCE,
    )
    server = uvicorn.Server(config)
    server.run(None if descriptor is None else [socket.socket(fileno=descriptor)])
    return 0 if server.started else 1
