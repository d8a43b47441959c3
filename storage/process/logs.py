"""Structured logs of a process: lines for people, or JSON for machines."""

import logging
import sys

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}
_OF_LINES = {"exception": "traceback", "stack": "stack_trace"}
"""Fields that would be printed as lines of their own, and their names as a part of one line."""


def in_one_line(logger: WrappedLogger, name: str, event: EventDict) -> EventDict:
    """The event with control characters written out: text of a client could otherwise command the terminal, or forge a
    line of a traceback.
    """
    for key, new_key in _OF_LINES.items():
        if key in event:
            event[new_key] = str(event.pop(key)).replace("\n", " | ")
    return {key: value.translate(_CONTROLS) if isinstance(value, str) else value for key, value in event.items()}


def configure_logging(log_format: str, level: str) -> None:
    """Write all logs of this process and its libraries to standard error in one format."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    console: list[Processor] = [in_one_line, structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
    renderers: list[Processor] = [structlog.processors.JSONRenderer()] if log_format == "json" else console
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderers],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    # RQ logs every message that it moves, and Numba every step of its compiler
    for chatty in ("rq", "rq.worker", "rq.job", "rq.queue", "numba"):
        logging.getLogger(chatty).setLevel(max(logging.WARNING, root.level))
    # it logs jobs as failed that it has only lost sight of, some of which have succeeded; how a job ended is in the
    # store
    logging.getLogger("rq.registry").setLevel(logging.ERROR)
