"""``halfmoon up`` with something between the service and its Valkey: ``python -m tests.storm.launch REDIS_URL DATA WORKERS``."""

import os
import sys
from pathlib import Path

from app.local.up import Plan, up
from app.settings import GatewaySettings


def main(redis_url: str, data: str, workers: str) -> int:
    plan = Plan(Path(data), "127.0.0.1", 0, int(workers), os.environ, GatewaySettings().drain_seconds, redis_url=redis_url)
    return up(plan)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
