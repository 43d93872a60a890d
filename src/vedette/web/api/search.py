"""The API: searching for programs. What it takes and gives is described in ``openapi``, from which it may not stray."""

from time import perf_counter

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.serve.slate import Result, Slate, Wish
from vedette.web.api.openapi import LONGEST_QUERY, MOST_AT_ONCE, MOST_IN_ALL, MOST_SUGGESTIONS, SHAPES
from vedette.web.api.parameters import WrongParameter, day_s, given, shaped, whole
from vedette.web.api.responses import iso_time, json_answer, number
from vedette.web.auth.keys import limited, site_to_search, sites_met
from vedette.web.ports import Search
from vedette.web.public.slates import Recording
from vedette.web.public.visits import visit_of

__all__ = ["api_routes", "slate_as_json"]

_SEARCH = ("q", "n", "page", "site", "type", "lang", "after", "before", "key")
_SUGGEST = ("q", "n", "site", "key")


def api_routes(search: Search, recording: Recording) -> list[Route]:
    """The routes under ``/api/v1``. The reader and what they may see is in the request's state."""

    async def searched(request: Request) -> Response:
        started_s = perf_counter()
        values = given(request.scope["query_string"], _SEARCH)
        slate = limited(search.search(_wish(values, request)), request.state.reader.sites)
        took_s = perf_counter() - started_s
        token = recording.shown(slate, visit_of(request), "api", 1000 * took_s)
        # An answer with a token tells of one search, so nobody else may be given it.
        kept = {"cache-control": "private, no-store"} if token else {}
        return json_answer(slate_as_json(slate, values["q"], took_s, token), 200, kept)

    async def suggested(request: Request) -> Response:
        values = given(request.scope["query_string"], _SUGGEST)
        typed = _query(values)
        most = whole(values, "n", 8, 1, MOST_SUGGESTIONS)
        found = search.suggest(typed, most, site_to_search(values, request.state.reader.sites), request.state.allowed)
        return json_answer({"query": values["q"], "suggestions": found[:most]})

    async def sites(request: Request) -> Response:
        given(request.scope["query_string"], ("key",))
        told = search.overview(request.state.allowed)
        hosts = sites_met(told.sites, request.state.reader.sites)
        return json_answer({
            "sites": [{"site": each.value, "pages": each.pages} for each in hosts],
            "newest_at": iso_time(told.newest_s) if told.newest_s else None,
        })  # fmt: skip

    return [
        Route("/api/v1/search", searched),
        Route("/api/v1/suggest", suggested),
        Route("/api/v1/sites", sites),
    ]


def _wish(values: dict[str, str], request: Request) -> Wish:
    n = whole(values, "n", 10, 1, MOST_AT_ONCE)
    page = whole(values, "page", 1, 1, MOST_IN_ALL)
    if page * n > MOST_IN_ALL:
        last = MOST_IN_ALL // n
        raise WrongParameter("page", f"There are {MOST_IN_ALL} results at most: with n={n}, page is at most {last}.")
    return Wish(
        query=_query(values),
        n=n,
        page=page,
        site=site_to_search(values, request.state.reader.sites),
        kind=shaped(values, "type", SHAPES["type"], 'type is a kind of file, such as "html" or "pdf".').lower(),
        language=shaped(values, "lang", SHAPES["lang"], 'lang is the code of a language, such as "en".').lower(),
        after_s=day_s(values, "after"),
        before_s=day_s(values, "before"),
        allowed=request.state.allowed,
    )


def _query(values: dict[str, str]) -> str:
    if "q" not in values:
        raise WrongParameter("q", "Say in q what to look for; it may be empty.")
    return values["q"][:LONGEST_QUERY]


def slate_as_json(slate: Slate, asked: str, took_s: float, token: str = "") -> dict[str, object]:
    """What the API says of a search; ``token`` is by what views and clicks of it may be told."""
    cut = (f"The query was cut: only its first {LONGEST_QUERY} characters are searched.",)
    return {
        "query": asked[:LONGEST_QUERY],
        "total": slate.total,
        "took_ms": round(1000 * took_s, 3),
        "results": [_result(each) for each in slate.results],
        "notes": slate.notes + (cut if len(asked) > LONGEST_QUERY else ()),
        "did_you_mean": slate.suggestion or None,
        "relaxed": slate.relaxed,
        "slate": token or None,
    }


def _result(result: Result) -> dict[str, object]:
    return {
        "id": result.id,
        "url": result.url,
        "title": result.title,
        "snippet": result.snippet.text,
        "highlights": result.snippet.marks,
        "site": result.site,
        "type": result.kind,
        "language": result.language,
        "fetched_at": iso_time(result.fetched_s),
        "published_at": None if result.date_s is None else iso_time(result.date_s),
        "score": number(result.score),
        "why": [
            {
                "feature": reason.feature,
                "value": number(reason.value),
                "weight": number(reason.weight),
                "contribution": number(reason.contribution),
            }
            for reason in result.why
        ],
        "sentence": result.sentence,
        "note": result.note,
        "similar": result.similar,
        "cached_url": f"/cached/{result.id}" if result.has_copy else None,
    }
