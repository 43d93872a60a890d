"""``python -m vedette``."""

import sys

from vedette.cli import main

sys.exit(main())
