"""A visitor's browser: real HTTP to one server, from the visitor's own address, with what a browser sends along."""

import json
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlencode

from vedette.lab.visitors.deeds import NOTHING, Ask, Deed, Found, Look, Open
from vedette.lab.visitors.public import Person
from vedette.lab.visitors.result_page import read_results

__all__ = ["Browser", "pages_of"]

TIMEOUT_S = 10.0
MOST_BYTES = 2_000_000
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Browser:
    """What a person does is asked of the server at this port of loopback."""

    port: int
    person: Person

    def do(self, deed: Deed) -> Found | None:
        """What a deed brought: a page of results, or nothing to be seen; None where the server would not have it."""
        if isinstance(deed, Ask):
            return self._searched(deed)
        return NOTHING if self._told(deed) else None

    def _searched(self, ask: Ask) -> Found | None:
        wanted = {"q": ask.query} | ({"page": str(ask.page)} if ask.page > 1 else {})
        headers = {
            "accept": "text/html,application/xhtml+xml",
            "sec-fetch-mode": "navigate",
            "sec-fetch-dest": "document",
        }
        status, body = self._answer("GET", f"/search?{urlencode(wanted)}", headers)
        return read_results(body.decode("utf-8", "replace")) if status == 200 else None

    def _told(self, deed: Look | Open) -> bool:
        page = deed.page if isinstance(deed, Open) else 0
        event = {"slate": deed.slate, "kind": "click" if page else "view", "page": page}
        headers = {"content-type": "application/json", "origin": f"http://{LOOPBACK}:{self.port}"}
        headers |= {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}
        return self._answer("POST", "/api/v1/events", headers, json.dumps(event).encode())[0] == 204

    def _answer(
        self, method: str, target: str, headers: dict[str, str], body: bytes | None = None
    ) -> tuple[int, bytes]:
        said = {"user-agent": self.person.agent, "accept-language": "en-GB,en;q=0.8", **headers}
        return answer(self.port, self.person.address, method, target, said, body)


def pages_of(port: int) -> int:
    """How many pages the server says can be found; 0 while it says nothing."""
    status, body = answer(port, LOOPBACK, "GET", "/healthz", {})
    try:
        return int(json.loads(body)["pages"]) if status == 200 else 0
    except (ValueError, TypeError, KeyError, OverflowError):
        return 0


def answer(
    port: int, address: str, method: str, target: str, headers: dict[str, str], body: bytes | None = None
) -> tuple[int, bytes]:
    """Status and body of an answer, on a connection of its own; 0 where there was none, for whatever reason."""
    connection = HTTPConnection(LOOPBACK, port, timeout=TIMEOUT_S, source_address=(address, 0))
    try:
        connection.request(method, target, body, headers)
        response = connection.getresponse()
        return response.status, response.read(MOST_BYTES)
    except (OSError, HTTPException):
        return 0, b""
    finally:
        connection.close()
