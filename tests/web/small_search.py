"""A few searchable pages, and the real server around them on loopback."""

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from tests.tree_runs import PATIENCE_S

from vedette.adapters.crawl_store.status_file import FailingProcess
from vedette.config import Serve
from vedette.learn.events import ClickEvent, LoggedEvent, SearchEvent, encode_event
from vedette.model import Site
from vedette.serve.slate import Reason, ResultSection, SearchRequest, SearchResult, Slate, Snippet
from vedette.web.app import create_app
from vedette.web.auth.keys import Key, create_key
from vedette.web.console.routes import ConsoleServices
from vedette.web.ports import CachedCopy, FacetCount, IndexOverview
from vedette.web.public.slates import SearchRecorder
from vedette.web.rendering import Branding
from vedette.web.server import bind, create_server

NOW_S = 1_770_000_000.0
PRIVATE = Site("https://wiki.example.org/", secrets="env:WIKI", readers=("ann",))
FOR_ALL_NAMED = Site("https://hr.example.org/", secrets="env:HR", readers=("*",))
PUBLIC = Site("https://docs.example.org/", readers=("ann",))
SITES = (PUBLIC, PRIVATE, FOR_ALL_NAMED)


def result(id_: int, site: str, title: str, text: str) -> SearchResult:
    """Return a page of this host, with a mark on the first word of its text."""
    snippet = Snippet(text, ((0, len(text.split(maxsplit=1)[0])),))
    why = (Reason("words in the title", 1.0, 2.0, 2.0),)
    date_s = NOW_S - 86_400 if id_ % 2 else None
    url = f"https://{site}/{id_}"
    return SearchResult(
        id_, url, title, snippet, site, "html", "en", NOW_S - 60, NOW_S - 90, date_s, 2.0, why, "", "", 0, id_ == 1
    )


SECTIONS = (
    ResultSection("Lag of groups", "https://docs.example.org/1#lag", Snippet("Lag of a consumer 🦉 group", ((0, 3),))),
    ResultSection("Offsets", "https://docs.example.org/1#:~:text=Offsets", Snippet("An offset without lag"), 0.75),
)
PAGES = (
    result(1, "docs.example.org", "Consumer lag", "Lag of a consumer 🦉 group")._replace(sections=SECTIONS),
    result(2, "docs.example.org", "Half a pair \ud800", "Broken \udfff text"),
    result(3, "wiki.example.org", "Salaries lag", "Secret lag"),
    result(4, "hr.example.org", "Holidays lag", "Lag of holidays"),
)


class Panic(BaseException):
    """A fault as in the index, which is not an ``Exception``."""


class SmallSearch:
    """Finds the allowed pages with the query in their titles; "boom" and "panic" are faults.

    An empty query finds all pages of any site.
    """

    failing: tuple[FailingProcess, ...] = ()
    exceeded: int = 0

    def __init__(self, pages: Sequence[SearchResult] = PAGES) -> None:
        self.pages = pages
        self.broken = False
        self.wishes: list[SearchRequest] = []

    def _seen(self, allowed: tuple[str, ...]) -> list[SearchResult]:
        hidden = [site.start.split("/", 3)[2] for site in SITES if site.secrets and site.start not in allowed]
        return [page for page in self.pages if page.site not in hidden]

    def search(self, wish: SearchRequest) -> Slate:
        """Return results."""
        self.wishes.append(wish)
        if wish.query == "boom":
            raise RuntimeError("the index\nis on fire")
        if wish.query == "panic":
            raise Panic("out of bounds")
        host = "" if wish.query == "" else wish.site.partition("/")[0]
        seen = [page for page in self._seen(wish.allowed) if not host or page.site == host]
        found = [page for page in seen if wish.query.lower() in page.title.lower()]
        shown = found[wish.n * (wish.page - 1) :][: wish.n]
        return Slate(wish, len(found), tuple(shown), ("a note",), "lag" if wish.query == "lga" else "", ())

    def suggest(self, typed: str, most: int, site: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
        """Return titles."""
        seen = [page for page in self._seen(allowed) if not site or page.site == site]
        return tuple(page.title for page in seen if typed.lower() in page.title.lower())[:most]

    def get_overview(self, allowed: tuple[str, ...]) -> IndexOverview:
        """Return numbers."""
        if self.broken:
            raise OSError("no disk")
        seen = [page.site for page in self._seen(allowed)]
        return IndexOverview(
            len(seen), tuple(FacetCount(site, seen.count(site)) for site in dict.fromkeys(seen)), newest_s=NOW_S - 60
        )

    def find_copy(self, id_: int, allowed: tuple[str, ...]) -> CachedCopy | None:
        """Return each page that may be seen, as text."""
        found = next((page for page in self._seen(allowed) if page.id == id_), None)
        if found is None:
            return None
        return CachedCopy(found.url, found.title, found.fetched_s, "text/plain", b"kept", "utf-8", found.snippet.text)

    def find_page(self, url: str, allowed: tuple[str, ...]) -> int | None:
        """Return the page with this URL, if it may be seen."""
        return next((page.id for page in self._seen(allowed) if page.url == url), None)

    def find_similar(self, id_: int, allowed: tuple[str, ...]) -> tuple[SearchResult, ...]:
        """Return all other pages that may be seen."""
        return tuple(page for page in self._seen(allowed) if page.id != id_)

    def list_sites(self) -> tuple[Site, ...]:
        """Return a public site and two private ones."""
        return SITES

    def list_failing(self) -> tuple[FailingProcess, ...]:
        """Return no failing process, unless the test sets one."""
        return self.failing

    def count_exceeded(self) -> int:
        """Return addresses and domains over their limit."""
        return self.exceeded

    def get_incomplete_reason(self) -> str:
        """Return nothing, because results are complete."""
        return ""

    def now_s(self) -> float:
        """Return always the same time."""
        return NOW_S


class HeldLog:
    """A log in memory, of whole lines as in a file; ``broken`` says why nothing can be written."""

    def __init__(self) -> None:
        self.records: list[LoggedEvent] = []
        self.lines: list[bytes] = []
        self.broken: Exception | None = None

    def append(self, record: LoggedEvent) -> None:
        """Store a line."""
        if self.broken:
            raise self.broken
        self.records.append(record)
        self.lines.append(encode_event(record))

    @property
    def slates(self) -> list[SearchEvent]:
        """Return the searches in it."""
        return [record for record in self.records if isinstance(record, SearchEvent)]

    @property
    def events(self) -> list[ClickEvent]:
        """Return the events in it."""
        return [record for record in self.records if isinstance(record, ClickEvent)]


def recording_to(log: HeldLog, wall: Callable[[], float] = time.time, keep_days: int = 30) -> SearchRecorder:
    """Return a recording whose salts follow from the day."""
    return SearchRecorder(log, b"a secret", lambda day: day.encode(), lambda: NOW_S, wall, keep_days)


class Heard(NamedTuple):
    """A response: status, headers in lower case, and body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, which is JSON."""
        assert self.headers["content-type"].startswith("application/json")
        return json.loads(self.body)

    @property
    def complaint(self) -> tuple[int, str, str | None]:
        """Return status, code and parameter of an error for a program."""
        error = self.json["error"]
        assert error["message"].endswith((".", "?"))
        return self.status, error["code"], error["parameter"]


Ask = Callable[..., Heard]


@contextmanager
def served(
    serve: Serve,
    keys: Callable[[], Sequence[Key]] = tuple,
    search: SmallSearch | None = None,
    recording: SearchRecorder | None = None,
    console: ConsoleServices | None = None,
) -> Iterator[tuple[Ask, int]]:
    """Run the real server on a free port, and yield a function that sends requests."""
    look = Branding(serve.name, serve.address, serve.embed_origins)
    listening = bind("127.0.0.1:0")
    port: int = listening.getsockname()[1]
    server = create_server(create_app(search or SmallSearch(), serve, look, keys, recording=recording, console=console))
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()

    def ask(target: str, headers: Mapping[str, str] | None = None, method: str = "GET", body: bytes = b"") -> Heard:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        try:
            connection.request(method, target, body or None, dict(headers or {}))
            answer = connection.getresponse()
            names = {name.lower(): value for name, value in answer.getheaders()}
            return Heard(answer.status, names, answer.read())
        finally:
            connection.close()

    try:
        yield ask, port
    finally:
        server.should_exit = True
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def made_key(name: str, *scopes: str, sites: Sequence[str] = ()) -> tuple[str, Key]:
    """Return a secret that follows from the name, and its key."""
    return create_key(name, scopes or ("search",), None, sites, name.encode().ljust(32, b"."))


def bearer(secret: str) -> dict[str, str]:
    """Return the authorization header with a key."""
    return {"Authorization": f"Bearer {secret}"}
