"""New pages, for people (``/new``), for feed readers (``/new.atom``) and for programs (``/api/v1/new``)."""

import hashlib
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from msgspec import Meta
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.adapters.alerts.alert_store import AlertItem
from vedette.web.api import schema
from vedette.web.api.parameters import ParameterError, parse_int, parse_parameters, parse_pattern
from vedette.web.api.responses import error_response, format_iso_time, json_response
from vedette.web.api.schema import Answer, JsonSchema
from vedette.web.auth.keys import is_covered
from vedette.web.formatting import age
from vedette.web.public.new_page_ports import (
    MAX_CURSOR_DIGITS,
    Cursor,
    FoundVia,
    ItemBatch,
    NewItem,
    NewPages,
    describe_item,
    describe_source,
)
from vedette.web.rendering import Branding, error_page, get_theme, render_page, render_template

ATOM_PATH = "/new.atom"
ATOM_TYPE = "application/atom+xml"
ALERT_NAME_PATTERN = r"[a-z0-9][a-z0-9._-]{0,63}"
MAX_ITEMS = 100
FEED_ITEMS = 50
PAGE_ITEMS = 30
_BAD_ALERT = "watch must be the name of a watch: letters, digits and -._ ."
_BAD_CURSOR = "since must be a cursor from an earlier response."
_NO_ALERT = "There is no watch with this name."
# Characters that XML cannot contain, even escaped.
_INVALID_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class NewAnswer(Answer):
    """The pages that are new."""

    items: list[NewItem]
    cursor: Annotated[Cursor, Meta(description="Send this as since next time.")]
    more: Annotated[bool, Meta(description="Whether more pages are available now.")]
    missed: Annotated[bool, Meta(description="Whether some pages after since are no longer stored.")]


_EXAMPLE = NewItem(
    cursor="4711",
    url="https://docs.example.org/2026/01/harbor",
    title="The harbor opens again",
    snippet="Ships may enter the harbor again from Monday.",
    site="docs.example.org",
    first_seen_at="2026-01-31T09:26:53Z",
    found_via=FoundVia("feed", "https://docs.example.org/feed.xml"),
    published_at="2026-01-31T09:20:00Z",
    told_at="2026-01-31T09:27:02Z",
    delay_s=413.0,
    delay_from="birth",
)


def describe_new_paths() -> JsonSchema:
    """Describe the paths of new pages for the OpenAPI description."""
    errors = schema.describe_errors("400", "401", "403", "404", "429", "500")
    watch = schema.query_parameter(
        "watch", "Only pages that match this watch.", schema.pattern_schema(ALERT_NAME_PATTERN), "harbor"
    )
    found = schema.describe_answer("New pages, oldest first.", NewAnswer([_EXAMPLE], "4711", more=False, missed=False))
    new = schema.describe_operation(
        "new",
        "List new pages",
        {"200": found, **errors},
        schema.query_parameter(
            "since", "The cursor of the last response.", schema.pattern_schema("[0-9]{1,15}"), "4711"
        ),
        watch,
        schema.query_parameter("n", "Maximum number of pages.", schema.integer_schema(1, MAX_ITEMS, 20)),
        description="Each page is listed once, as soon as it is searchable. Send the cursor of the last response as "
        "since to get every later page exactly once. Without since, you get the latest pages.",
    )
    feed = {"200": schema.describe_text("The feed.", ATOM_TYPE), **errors}
    about = "New pages as an Atom feed, latest first"
    return {"/api/v1/new": {"get": new}, ATOM_PATH: {"get": schema.describe_operation("newFeed", about, feed, watch)}}


def new_page_routes(news: NewPages, look: Branding, now_s: Callable[[], float]) -> list[Route]:
    """Return the routes of new pages: page, feed and API. ``request.state`` says what the user may see."""
    pages = _NewPageHandlers(news, look, now_s)
    return [Route("/new", pages.show_page), Route(ATOM_PATH, pages.show_feed), Route("/api/v1/new", pages.list_json)]


@dataclass(frozen=True, slots=True)
class _NewPageHandlers:
    """The request handlers of new pages, with their shared dependencies."""

    new_pages: NewPages
    branding: Branding
    now_s: Callable[[], float]

    async def list_json(self, request: Request) -> Response:
        """Return the new pages after a cursor as JSON; without a cursor the latest."""
        values = parse_parameters(request.scope["query_string"], ("since", "watch", "n", "key"))
        most = parse_int(values, "n", 20, 1, MAX_ITEMS)
        watch = parse_pattern(values, "watch", ALERT_NAME_PATTERN, _BAD_ALERT)
        since = _parse_cursor(values.get("since", ""), "since", _BAD_CURSOR)
        if watch and not self.new_pages.has_alert(watch):
            return error_response(404, "no_watch", _NO_ALERT, "watch")
        batch = await self._load_batch(request, since, most, watch)
        items = [describe_item(item) for item in batch.items]
        answer = NewAnswer(items, str(batch.cursor), batch.more, batch.missed)
        return json_response(answer, 200, {"cache-control": "no-store"})

    async def show_feed(self, request: Request) -> Response:
        """Return the latest new pages as an Atom feed (RFC 4287), or 304 if the feed reader has them."""
        values = parse_parameters(request.scope["query_string"], ("watch", "key"))
        watch = parse_pattern(values, "watch", ALERT_NAME_PATTERN, _BAD_ALERT)
        if watch and not self.new_pages.has_alert(watch):
            return error_response(404, "no_watch", _NO_ALERT, "watch")
        latest = await run_in_threadpool(self.new_pages.list_latest, FEED_ITEMS, watch, request.state.allowed)
        items = _filter_covered(latest, request).items
        address = self.branding.address.rstrip("/") or str(request.base_url).rstrip("/")
        query = f"?{urlencode({'watch': watch})}" if watch else ""
        text = render_template(
            "new.atom",
            title=f"{self.branding.name}: {watch or 'new pages'}",
            author=self.branding.name,
            page=f"{address}/new{query}",
            feed=f"{address}{ATOM_PATH}{query}",
            feed_id=_make_urn(f"{address}{ATOM_PATH}{query}"),
            updated=format_iso_time(items[0].told_s if items else 0.0),
            entries=[_build_feed_entry(item) for item in items],
        )
        return _feed_response(request, text.encode("utf-8", "replace"))

    async def show_page(self, request: Request) -> Response:
        """Return the latest new pages as an HTML page."""
        watch, before = request.query_params.get("watch", ""), request.query_params.get("before", "")
        is_known = not watch or (re.fullmatch(ALERT_NAME_PATTERN, watch) and self.new_pages.has_alert(watch))
        try:
            last = _parse_cursor(before, "before", "")
        except ParameterError:
            is_known = False
        if not is_known:
            return error_page(404, _NO_ALERT, look=self.branding, theme=get_theme(request))
        batch = await run_in_threadpool(self.new_pages.list_latest, PAGE_ITEMS, watch, request.state.allowed, last)
        params = {"watch": watch} if watch else {}
        values = {
            "items": batch.items,
            "watch": watch,
            "how_found": describe_source,
            "feed": f"{ATOM_PATH}?{urlencode(params)}" if params else ATOM_PATH,
            "older": f"/new?{urlencode(params | {'before': batch.cursor})}" if batch.more else "",
            "now_s": self.now_s(),
            "query": "",
            "longest_query": 2000,
            "behind": "",
        }
        return render_page("new.html", request, self.branding, 200, **values)

    async def _load_batch(self, request: Request, since: int | None, most: int, watch: str) -> ItemBatch:
        allowed = request.state.allowed
        if since is not None:
            return _filter_covered(
                await run_in_threadpool(self.new_pages.list_after, since, most, watch, allowed), request
            )
        # The end is read first: pages that arrive meanwhile are left to the next request.
        end = (await run_in_threadpool(self.new_pages.list_after, None, 1, watch, allowed)).cursor
        latest = _filter_covered(
            await run_in_threadpool(self.new_pages.list_latest, most, watch, allowed, end + 1), request
        )
        return ItemBatch(latest.items[::-1], end)


def _filter_covered(batch: ItemBatch, request: Request) -> ItemBatch:
    """Remove new pages outside the site limits of the request's key."""
    covered = tuple(item for item in batch.items if is_covered(request.state.reader.sites, item.url))
    return batch._replace(items=covered)


def _parse_cursor(text: str, name: str, words: str) -> int | None:
    if not text:
        return None
    if not re.fullmatch(f"[0-9]{{1,{MAX_CURSOR_DIGITS}}}", text):
        raise ParameterError(name, words)
    return int(text)


def _build_feed_entry(item: AlertItem) -> dict[str, str]:
    """Build the Atom feed entry of a new page; all of its text is valid in XML."""
    since = "it was first seen" if item.born_s is None else "its date"
    seen = format_iso_time(item.found_s).replace("T", " ").replace("Z", " UTC")
    what = "Listed" if item.born_s is None else "Found"
    facts = f"First seen {seen}, via {describe_source(item)}. {what} {age(item.delay_s)} after {since}."
    entry = {
        "title": item.title.strip() or item.url,
        "url": item.url,
        "id": _make_urn(item.url),
        "updated": format_iso_time(item.told_s),
        "published": format_iso_time(item.found_s if item.born_s is None else item.born_s),
        "summary": f"{item.snippet.strip()}\n\n{facts}".strip(),
        "via": item.via,
        "how": describe_source(item),
    }
    return {name: _INVALID_XML.sub("", text) for name, text in entry.items()}


def _make_urn(text: str) -> str:
    """Make a URN for the Atom feed of new pages that stays the same wherever the feed is read."""
    return uuid.uuid5(uuid.NAMESPACE_URL, text.encode("utf-8", "replace").decode()).urn


def _feed_response(request: Request, body: bytes) -> Response:
    tag = f'W/"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {"etag": tag}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type=f"{ATOM_TYPE}; charset=utf-8")
