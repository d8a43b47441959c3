"""``python -m app.cli``: the command ``halfmoon``."""

import sys

from app.cli.commands import main

sys.exit(main())
