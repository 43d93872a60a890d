"""Search a running Vedette over its HTTP API, with the standard library alone.

    python examples/search_client.py http://127.0.0.1:8080 "consumer lag"
    python examples/search_client.py https://search.example.org "consumer lag" vk_YOUR_KEY

The API is described at /api of your server.
"""

import json
import sys
import urllib.parse
import urllib.request
from typing import Any


def search(server: str, query: str, key: str | None = None) -> dict[str, Any]:
    """Return the API's answer to a query."""
    request = urllib.request.Request(f"{server.rstrip('/')}/api/v1/search?{urllib.parse.urlencode({'q': query})}")
    if key is not None:
        request.add_header("Authorization", f"Bearer {key}")
    with urllib.request.urlopen(request, timeout=10) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


if __name__ == "__main__":
    if len(sys.argv) not in {3, 4}:
        sys.exit(__doc__)
    answer = search(*sys.argv[1:])
    print(f"{answer['total']} pages match")
    for result in answer["results"]:
        print(f"{result['title']}  {result['url']}")
