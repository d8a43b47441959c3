"""What schemathesis must be told of the service's media types; loaded by it through SCHEMATHESIS_HOOKS."""

from typing import Any

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def lines(context: Any, value: Any) -> bytes:
    """Text as it was made up."""
    return value if isinstance(value, bytes) else str(value).encode()
