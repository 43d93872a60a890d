"""Entry point of ``python -m vedette``."""

import sys

from vedette.cli.main import main

sys.exit(main())
