"""Browser of a simulated visitor: HTTP to one search server from its own address, with a browser's headers."""

import json
from dataclasses import dataclass
from html.parser import HTMLParser
from http.client import HTTPConnection, HTTPException
from urllib.parse import parse_qs, urlencode, urlsplit

from vedette.lab.visitors.habits import EMPTY_PAGE, Action, Click, Hit, ResultPage, Search, View
from vedette.lab.visitors.population import Person

MAX_HITS = 100
MAX_DIGITS = 18  # digits; no page has a higher one
MAX_QUERY_LENGTH = 500

_Attributes = list[tuple[str, str | None]]


def parse_results(html: str) -> ResultPage:
    """Parse the HTML of a search result page as a simulated visitor's browser sees it; ``EMPTY_PAGE`` if no results.

    >>> page = '<ol data-slate="s1"><li><a class="title" data-page="7" href="http://a.test/">An <b>anchor</b></a></ol>'
    >>> parse_results(page)
    ResultPage(slate='s1', hits=(Hit(page=7, url='http://a.test/', title='An anchor'),), suggestion='', has_next=False)
    """
    reader = _ResultPageParser()
    reader.feed(html)
    reader.close()
    return ResultPage(reader.slate, tuple(reader.hits[:MAX_HITS]), reader.suggestion, reader.has_next)


class _ResultPageParser(HTMLParser):
    """HTML parser of a search result page, by the attributes that the page's own script uses."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.slate = ""
        self.hits: list[Hit] = []
        self.suggestion = ""
        self.has_next = False
        self._open: Hit | None = None
        self._words: list[str] = []
        self._in_suggestion = False

    def handle_starttag(self, tag: str, attrs: _Attributes) -> None:
        """Handle the start of a slate, a result link, a spelling suggestion or the link to the next result page."""
        told = {name: value or "" for name, value in attrs}
        self.slate = self.slate or told.get("data-slate", "")
        if tag == "p":
            self._in_suggestion = told.get("class") == "meant"
        elif tag == "a":
            self._on_link(told)

    def handle_data(self, data: str) -> None:
        """Collect the text of a result's title while parsing a result page."""
        if self._open is not None:
            self._words.append(data)

    def handle_endtag(self, tag: str) -> None:
        """Finish a result's title at the end of its link while parsing a result page."""
        if tag == "a" and self._open is not None:
            self.hits.append(self._open._replace(title=" ".join("".join(self._words).split())))
            self._open, self._words = None, []

    def _on_link(self, told: dict[str, str]) -> None:
        href, number = told.get("href", ""), told.get("data-page", "")
        if told.get("rel") == "next":
            self.has_next = True
        elif self._in_suggestion:
            self.suggestion = self.suggestion or _query_of_link(href)
        elif "title" in told.get("class", "").split() and _is_number(number):
            self._open = Hit(int(number), href, "")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS


def _query_of_link(href: str) -> str:
    """Return the query of a link to a search on a result page, such as "did you mean"."""
    try:
        return parse_qs(urlsplit(href).query).get("q", [""])[0][:MAX_QUERY_LENGTH]
    except ValueError:
        return ""


TIMEOUT_S = 10.0
MAX_BYTES = 2_000_000
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Browser:
    """A simulated visitor's browser, which talks HTTP to the search server at a loopback port."""

    port: int
    person: Person

    def perform(self, deed: Action) -> ResultPage | None:
        """Send a simulated visitor's action to the server; return the result page, None if it was refused.

        Views and clicks return ``EMPTY_PAGE``.
        """
        if isinstance(deed, Search):
            return self._search(deed)
        return EMPTY_PAGE if self._send_event(deed) else None

    def _search(self, ask: Search) -> ResultPage | None:
        wanted = {"q": ask.query} | ({"page": str(ask.page)} if ask.page > 1 else {})
        headers = {
            "accept": "text/html,application/xhtml+xml",
            "sec-fetch-mode": "navigate",
            "sec-fetch-dest": "document",
        }
        status, body = self._request("GET", f"/search?{urlencode(wanted)}", headers)
        return parse_results(body.decode("utf-8", "replace")) if status == 200 else None

    def _send_event(self, deed: View | Click) -> bool:
        page = deed.page if isinstance(deed, Click) else 0
        event = {"slate": deed.slate, "kind": "click" if page else "view", "page": page}
        headers = {"content-type": "application/json", "origin": f"http://{LOOPBACK}:{self.port}"}
        headers |= {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}
        return self._request("POST", "/api/v1/events", headers, json.dumps(event).encode())[0] == 204

    def _request(
        self, method: str, target: str, headers: dict[str, str], body: bytes | None = None
    ) -> tuple[int, bytes]:
        said = {"user-agent": self.person.agent, "accept-language": "en-GB,en;q=0.8", **headers}
        return send_request(self.port, self.person.address, method, target, said, body)


def fetch_page_count(port: int) -> int:
    """Fetch from the search server how many pages are searchable, before visitors start; 0 without a response."""
    status, body = send_request(port, LOOPBACK, "GET", "/healthz", {})
    try:
        return int(json.loads(body)["pages"]) if status == 200 else 0
    except (ValueError, TypeError, KeyError, OverflowError):
        return 0


def send_request(
    port: int, address: str, method: str, target: str, headers: dict[str, str], body: bytes | None = None
) -> tuple[int, bytes]:
    """Send one HTTP request from a visitor's address on a new connection; return status (0 on failure) and body."""
    connection = HTTPConnection(LOOPBACK, port, timeout=TIMEOUT_S, source_address=(address, 0))
    try:
        connection.request(method, target, body, headers)
        response = connection.getresponse()
        return response.status, response.read(MAX_BYTES)
    except (OSError, HTTPException):
        return 0, b""
    finally:
        connection.close()
