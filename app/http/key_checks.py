"""Checks of the key of a request that lasts: what is open for a revoked or expired key ends within seconds."""

import asyncio
from collections.abc import Callable

from starlette.types import Message, Receive

CHECK_SECONDS = 1.0
"""Seconds between two checks while nothing happens."""


def receive_while_valid(receive: Receive, check: Callable[[], None]) -> Receive:
    """A ``receive`` that checks the key with every part of the body, and while it waits for one.

    It raises what ``check`` raises.
    """
    complete = False

    async def receive_and_check() -> Message:
        nonlocal complete
        if complete:
            return await receive()
        receiving = asyncio.ensure_future(receive())
        try:
            while not (await asyncio.wait([receiving], timeout=CHECK_SECONDS))[0]:
                check()
        finally:
            if not receiving.done():
                receiving.cancel()
                await asyncio.wait([receiving])
        check()
        complete = not receiving.result().get("more_body", False)
        return receiving.result()

    return receive_and_check
