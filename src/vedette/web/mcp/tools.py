"""What language models can do here: search, read a page, list sites. Knows nothing of the protocol around it.

Arguments come from a program that guesses, so they are read leniently (a number may be written as text) and refused
in words that say what is right. Answers are told twice, as values and as text, since clients differ in what they show.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

from starlette.concurrency import run_in_threadpool

from vedette.discover.urls.normalize import resolve
from vedette.parse.html.page import read_page
from vedette.parse.text.media_types import is_html
from vedette.serve.slate import Result, Slate, Wish
from vedette.web.api.openapi import LONGEST_QUERY, MOST_IN_ALL, SHAPES
from vedette.web.api.parameters import WrongParameter, day_s, shaped, unknown, whole
from vedette.web.api.responses import iso_time, number
from vedette.web.auth.key_sites import covers, limited, site_to_search, sites_met
from vedette.web.mcp.mcp_words import (
    LAST_OFFSET,
    LONGEST_PIECE,
    MOST_RESULTS,
    QUOTED,
    TOOLS,
    USUAL_PIECE,
    USUAL_RESULTS,
)
from vedette.web.ports import CachedCopy, Search
from vedette.web.public.cached_copy import source_of
from vedette.web.public.slates import Recording
from vedette.web.public.visits import Visit

__all__ = ["Asker", "Told", "Tools"]

LARGEST_NUMBER = 10**15  # of an argument; larger ones are not even written out
LONGEST_URL = 8192
LARGEST_ID = 10**9 - 1
NO_COPY = (
    "There is no copy to be shown. The page may never have been kept, its owner may not want copies of it shown, or "
    "it is not for this key. Search for it, or ask the site itself."
)


class Asker(NamedTuple):
    """Who calls, and what they may see: private sites by their start, and the limits of the key, if any."""

    allowed: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    visit: Visit = Visit()


class Told(NamedTuple):
    """An answer, as values and as text."""

    values: dict[str, object]
    text: str


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools over one search."""

    search: Search
    recording: Recording

    async def call(self, name: str, arguments: Mapping[str, object], asker: Asker) -> Told:
        """What a tool answers; ``WrongParameter`` says what to write instead."""
        if name not in TOOLS:
            raise WrongParameter("", f"There is no such tool; known are {', '.join(TOOLS)}.")
        values = _texts(arguments, TOOLS[name].known)
        if name == "search":
            return self._searched(values, asker)
        if name == "cached_page":
            return await self._read(values, asker)
        return self._listed(asker)

    def _searched(self, values: Mapping[str, str], asker: Asker) -> Told:
        started_s = perf_counter()
        slate = limited(self.search.search(_wish(values, asker)), asker.limits)
        self.recording.shown(slate, asker.visit, "mcp", 1000 * (perf_counter() - started_s))
        cut = (f"The query was cut: only its first {LONGEST_QUERY} characters are searched.",)
        notes = slate.notes + (cut if len(values["query"]) > LONGEST_QUERY else ())
        told: dict[str, object] = {
            "total": slate.total,
            "results": [_result(each) for each in slate.results],
            "notes": [_clean(note) for note in notes],
            "did_you_mean": _clean(slate.suggestion) or None,
        }
        return Told(told, _slate_text(slate, notes))

    async def _read(self, values: Mapping[str, str], asker: Asker) -> Told:
        offset = whole(values, "offset", 0, 0, LAST_OFFSET)
        most = whole(values, "max_chars", USUAL_PIECE, 1, LONGEST_PIECE)
        id_ = self._id(values, asker)
        copy = None if id_ is None else self.search.copy(id_, asker.allowed)
        if copy is None or not covers(asker.limits, copy.url):
            raise WrongParameter("", NO_COPY)
        text = _clean(await run_in_threadpool(_plain_text, copy))
        piece = text[offset : offset + most]
        told: dict[str, object] = {
            "id": id_,
            "url": copy.url,
            "title": _clean(copy.title),
            "fetched_at": iso_time(copy.fetched_s),
            "offset": offset,
            "total_chars": len(text),
            "next_offset": offset + len(piece) if offset + len(piece) < len(text) else None,
            "text": piece,
        }
        return Told(told, _piece_text(told))

    def _id(self, values: Mapping[str, str], asker: Asker) -> int | None:
        """The page that is meant, by its number or its address."""
        if ("id" in values) == ("url" in values):
            raise WrongParameter("id", "Name the page by id or by url, and not by both.")
        if "id" in values:
            return whole(values, "id", 0, 0, LARGEST_ID)
        url = resolve(values["url"], None) if len(values["url"]) <= LONGEST_URL else None
        if url is None:
            raise WrongParameter("url", 'url is a whole web address, such as "https://docs.example.org/install".')
        return self.search.find(url, asker.allowed)

    def _listed(self, asker: Asker) -> Told:
        known = self.search.overview(asker.allowed)
        sites = sites_met(known.sites, asker.limits)
        newest = iso_time(known.newest_s) if known.newest_s else None
        told: dict[str, object] = {
            "pages": known.pages if not asker.limits else sum(each.pages for each in sites),
            "sites": [{"site": each.value, "pages": each.pages} for each in sites],
            "newest_fetched_at": newest,
            "median_age_s": number(known.median_age_s),
            "behind": self.search.is_behind(),
        }
        lines = [f"{each.value} (pages: {each.pages})" for each in sites] or ["There are no sites yet."]
        return Told(told, "\n".join([*lines, f"The latest fetch was at {newest}."] if newest else lines))


def _texts(arguments: Mapping[str, object], known: tuple[str, ...]) -> dict[str, str]:
    """Arguments as parameters are: texts. What is null counts as not given."""
    values: dict[str, str] = {}
    for name, value in arguments.items():
        if name not in known:
            raise unknown(_clean(name), known) if known else WrongParameter(_clean(name)[:100], "Give no arguments.")
        if value is not None:
            values[name] = _as_text(name, value)
    return values


def _as_text(name: str, value: object) -> str:
    if isinstance(value, str):
        return _clean(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST_NUMBER:
        return str(int(value)) if value == int(value) else str(value)
    raise WrongParameter(name, f"{name} is a text or a number.")


def _wish(values: Mapping[str, str], asker: Asker) -> Wish:
    if "query" not in values:
        raise WrongParameter("query", "Say in query what to look for.")
    n = whole(values, "n", USUAL_RESULTS, 1, MOST_RESULTS)
    return Wish(
        query=values["query"][:LONGEST_QUERY],
        n=n,
        page=whole(values, "page", 1, 1, MOST_IN_ALL // n),
        site=site_to_search(values, asker.limits),
        language=shaped(values, "language", SHAPES["lang"], 'language is a code, such as "en".').lower(),
        after_s=day_s(values, "after"),
        before_s=day_s(values, "before"),
        allowed=asker.allowed,
    )


def _result(result: Result) -> dict[str, object]:
    return {
        "id": result.id,
        "url": result.url,
        "title": _clean(result.title),
        "snippet": _clean(result.snippet.text),
        "site": result.site,
        "fetched_at": iso_time(result.fetched_s),
        "published_at": None if result.date_s is None else iso_time(result.date_s),
        "why": _clean(result.sentence),
        "has_copy": result.has_copy,
    }


def _slate_text(slate: Slate, notes: tuple[str, ...]) -> str:
    first = (slate.wish.page - 1) * slate.wish.n + 1
    shown = [_result_text(place, _result(each)) for place, each in enumerate(slate.results, first)]
    meant = [f"Did you mean: {slate.suggestion}"] if slate.suggestion else []
    found = f"Pages that match: {slate.total}. {QUOTED}" if shown else "No page was found."
    return _clean("\n\n".join(["\n".join([found, *notes, *meant]), *shown]))


def _result_text(place: int, told: Mapping[str, object]) -> str:
    dated = f"; dated {told['published_at']}" if told["published_at"] else ""
    lines = (
        f"{place}. {told['title']}",
        f"{told['url']} (id {told['id']}; fetched {told['fetched_at']}{dated})",
        told["snippet"],
        told["why"],
    )
    return "\n".join(str(line) for line in lines if line)


def _piece_text(told: Mapping[str, object]) -> str:
    more = f" More follows at offset {told['next_offset']}." if told["next_offset"] is not None else ""
    head = f"{told['title']}\n{told['url']}, as fetched at {told['fetched_at']}."
    return f"{head} {told['total_chars']} characters in all.{more} {QUOTED}\n\n{told['text']}"


def _plain_text(copy: CachedCopy) -> str:
    """What a page says, without its markup; of HTML the main text, as the index has it."""
    if not is_html(copy.content_type, copy.body):
        return copy.text
    page = read_page(source_of(copy))
    return page.main or page.text


def _clean(text: str) -> str:
    """Half a surrogate pair, which no encoding has a place for, becomes a question mark."""
    return text.encode("utf-8", "replace").decode()
