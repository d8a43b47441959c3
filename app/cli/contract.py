"""``python -m app.cli.contract [file]`` writes the OpenAPI document. A test compares the file with the application."""

import sys
from pathlib import Path

from app.contract import text_of
from app.main import create_app
from app.settings import GatewaySettings

FILE = Path(__file__).parents[2] / "openapi" / "openapi.yaml"


def main(arguments: list[str]) -> None:
    """Write the OpenAPI document of the application."""
    (Path(arguments[0]) if arguments else FILE).write_text(text_of(create_app(GatewaySettings())), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
