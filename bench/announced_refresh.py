"""How stale are the copies of a site whose sitemap announces all changes, none, or stops doing so?

    python bench/announced_refresh.py

The site and the simulated refreshes are those of ``tests/lab/runs/refresh/test_announced.py``: 40 pages that change at
chance, about three times a day together, eight fetches a day by the default policy, decided three times a day. The
first 20 of 50 days are not measured; that is also when announcements stop. The last line is one JSON object.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs as a script
from tests.lab.runs.refresh.test_announced import STOP_D, stale_share


def main() -> int:
    """Run all four cases and print a table."""
    cases = {
        "nothing announced": stale_share(None),
        "all changes announced": stale_share(float("inf")),
        "announcements stop, sitemap readable": stale_share(STOP_D),
        "announcements stop, sitemap gone": stale_share(STOP_D, is_readable=False),
    }
    for name, share in cases.items():
        print(f"{name:<40}{share:>8.4f}")
    print(json.dumps({name: round(share, 4) for name, share in cases.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
