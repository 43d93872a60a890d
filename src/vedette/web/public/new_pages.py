"""New pages, for people (``/new``), for feed readers (``/new.atom``) and for programs (``/api/v1/new``)."""

import hashlib
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.adapters.alerts.alert_store import Item
from vedette.web.api.openapi_new_pages import MOST_NEW, WATCH_SHAPE
from vedette.web.api.parameters import WrongParameter, given, shaped, whole
from vedette.web.api.responses import error_answer, iso_time, json_answer
from vedette.web.auth.keys import covers
from vedette.web.branding import Look
from vedette.web.formatting import age
from vedette.web.public.new_page_ports import Batch, NewPages, how_found, item_as_json
from vedette.web.rendering import page, problem_page, rendered, theme_of

__all__ = ["ATOM", "new_routes"]

ATOM = "/new.atom"
ATOM_TYPE = "application/atom+xml"
IN_FEED = 50
ON_PAGE = 30
MOST_CURSOR = 10**15 - 1
_WATCH_WORDS = "watch is the name of a watch, of letters, digits and -._ ."
_CURSOR_WORDS = "since is a cursor that an answer named."
_NO_WATCH = "There is no watch of this name."
# What XML cannot carry, even escaped.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def new_routes(news: NewPages, look: Look, now_s: Callable[[], float]) -> list[Route]:
    """The three of them. ``request.state`` says who reads and what they may see."""
    pages = _New(news, look, now_s)
    return [Route("/new", pages.shown), Route(ATOM, pages.feed), Route("/api/v1/new", pages.told)]


@dataclass(frozen=True, slots=True)
class _New:
    """The handlers, with what they all need."""

    news: NewPages
    look: Look
    now_s: Callable[[], float]

    async def told(self, request: Request) -> Response:
        """The items after a cursor; without one the latest, so that whoever begins need not begin with the oldest."""
        values = given(request.scope["query_string"], ("since", "watch", "n", "key"))
        most = whole(values, "n", 20, 1, MOST_NEW)
        watch = shaped(values, "watch", WATCH_SHAPE, _WATCH_WORDS)
        since = _cursor(values.get("since", ""), "since", _CURSOR_WORDS)
        if watch and not self.news.is_watch(watch):
            return error_answer(404, "no_watch", _NO_WATCH, "watch")
        batch = await self._batch(request, since, most, watch)
        return json_answer({
            "items": [item_as_json(item) for item in batch.items],
            "cursor": str(batch.cursor),
            "more": batch.more,
            "missed": batch.missed,
        }, 200, {"cache-control": "no-store"})  # fmt: skip

    async def feed(self, request: Request) -> Response:
        """The latest items as Atom (RFC 4287). A reader that has seen them is told so."""
        values = given(request.scope["query_string"], ("watch", "key"))
        watch = shaped(values, "watch", WATCH_SHAPE, _WATCH_WORDS)
        if watch and not self.news.is_watch(watch):
            return error_answer(404, "no_watch", _NO_WATCH, "watch")
        latest = await run_in_threadpool(self.news.latest, IN_FEED, watch, request.state.allowed)
        items = _covered(latest, request).items
        address = self.look.address.rstrip("/") or str(request.base_url).rstrip("/")
        query = f"?{urlencode({'watch': watch})}" if watch else ""
        text = rendered(
            "new.atom",
            title=f"{self.look.name}: {watch or 'new pages'}",
            author=self.look.name,
            page=f"{address}/new{query}",
            feed=f"{address}{ATOM}{query}",
            feed_id=_urn(f"{address}{ATOM}{query}"),
            updated=iso_time(items[0].told_s if items else 0.0),
            entries=[_entry(item) for item in items],
        )
        return _feed_answer(request, text.encode("utf-8", "replace"))

    async def shown(self, request: Request) -> Response:
        """The latest items as a page."""
        watch, before = request.query_params.get("watch", ""), request.query_params.get("before", "")
        is_known = not watch or (re.fullmatch(WATCH_SHAPE, watch) and self.news.is_watch(watch))
        try:
            last = _cursor(before, "before", "")
        except WrongParameter:
            is_known = False
        if not is_known:
            return problem_page(404, _NO_WATCH, look=self.look, theme=theme_of(request))
        batch = await run_in_threadpool(self.news.latest, ON_PAGE, watch, request.state.allowed, last)
        kept = {"watch": watch} if watch else {}
        told = {
            "items": batch.items,
            "watch": watch,
            "how_found": how_found,
            "feed": f"{ATOM}?{urlencode(kept)}" if kept else ATOM,
            "older": f"/new?{urlencode(kept | {'before': batch.cursor})}" if batch.more else "",
            "now_s": self.now_s(),
            "query": "",
            "longest_query": 2000,
            "behind": "",
        }
        return page("new.html", request, self.look, 200, **told)

    async def _batch(self, request: Request, since: int | None, most: int, watch: str) -> Batch:
        allowed = request.state.allowed
        if since is not None:
            return _covered(await run_in_threadpool(self.news.after, since, most, watch, allowed), request)
        # The end is looked up first: what comes meanwhile is left to the next question.
        end = (await run_in_threadpool(self.news.after, MOST_CURSOR, 1, watch, allowed)).cursor
        latest = _covered(await run_in_threadpool(self.news.latest, most, watch, allowed, end + 1), request)
        return Batch(latest.items[::-1], end)


def _covered(batch: Batch, request: Request) -> Batch:
    """What a key that is for some sites only may be told."""
    kept = tuple(item for item in batch.items if covers(request.state.reader.sites, item.url))
    return batch._replace(items=kept)


def _cursor(text: str, name: str, words: str) -> int | None:
    if not text:
        return None
    if not re.fullmatch(r"[0-9]{1,15}", text):
        raise WrongParameter(name, words)
    return int(text)


def _entry(item: Item) -> dict[str, str]:
    """What the feed says of an item; all of it can stand in XML."""
    since = "it was first seen" if item.born_s is None else "its date"
    seen = iso_time(item.found_s).replace("T", " ").replace("Z", " UTC")
    what = "Told" if item.born_s is None else "Found"
    facts = f"First seen {seen}, by {how_found(item)}. {what} {age(item.delay_s)} after {since}."
    entry = {
        "title": item.title.strip() or item.url,
        "url": item.url,
        "id": _urn(item.url),
        "updated": iso_time(item.told_s),
        "published": iso_time(item.found_s if item.born_s is None else item.born_s),
        "summary": f"{item.snippet.strip()}\n\n{facts}".strip(),
        "via": item.via,
        "how": how_found(item),
    }
    return {name: _NOT_XML.sub("", text) for name, text in entry.items()}


def _urn(text: str) -> str:
    """A name that stays the same wherever the feed is read."""
    return uuid.uuid5(uuid.NAMESPACE_URL, text.encode("utf-8", "replace").decode()).urn


def _feed_answer(request: Request, body: bytes) -> Response:
    tag = f'W/"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {"etag": tag}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type=f"{ATOM_TYPE}; charset=utf-8")
