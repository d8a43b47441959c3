"""``halfmoon up`` with something between the service and its Valkey.

``python -m tests.storm.launch REDIS_URL DATA WORKERS [STORE_URL]``.
"""

import os
import sys
from pathlib import Path

from app.local.up import Plan, up
from app.settings import GatewaySettings


def main(redis_url: str, data: str, workers: str, store_url: str | None = None) -> int:
    drain_seconds = GatewaySettings().drain_seconds
    return up(
        Plan(
            Path(data),
            "127.0.0.1",
            0,
            int(workers),
            os.environ,
            drain_seconds,
            store_url=store_url,
            redis_url=redis_url,
        )
    )


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
