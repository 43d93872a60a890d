"""The API: searching for programs. What it takes and gives is described in ``openapi``, from which it may not stray."""

from time import perf_counter

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.serve.slate import SearchRequest, SearchResult, Slate
from vedette.web.api.openapi import (
    MAX_PAGE_SIZE,
    MAX_QUERY_LENGTH,
    MAX_SUGGESTIONS,
    MAX_TOTAL_RESULTS,
    PARAMETER_PATTERNS,
)
from vedette.web.api.parameters import ParameterError, parse_day_s, parse_int, parse_parameters, parse_pattern
from vedette.web.api.responses import format_iso_time, json_response, to_finite
from vedette.web.auth.keys import filter_results, filter_sites, resolve_site
from vedette.web.ports import SearchService
from vedette.web.public.slates import SearchRecorder
from vedette.web.public.visits import parse_visitor

_SEARCH_PARAMETERS = ("q", "n", "page", "site", "type", "lang", "after", "before", "key")
_SUGGEST_PARAMETERS = ("q", "n", "site", "key")


def api_routes(search: SearchService, recording: SearchRecorder) -> list[Route]:
    """The routes under ``/api/v1``. The reader and what they may see is in the request's state."""

    async def searched(request: Request) -> Response:
        started_s = perf_counter()
        values = parse_parameters(request.scope["query_string"], _SEARCH_PARAMETERS)
        slate = filter_results(search.search(_parse_search(values, request)), request.state.reader.sites)
        took_s = perf_counter() - started_s
        token = recording.record_slate(slate, parse_visitor(request), "api", 1000 * took_s)
        # An answer with a token tells of one search, so nobody else may be given it.
        kept = {"cache-control": "private, no-store"} if token else {}
        return json_response(slate_to_json(slate, values["q"], took_s, token), 200, kept)

    async def suggested(request: Request) -> Response:
        values = parse_parameters(request.scope["query_string"], _SUGGEST_PARAMETERS)
        typed = _parse_query(values)
        most = parse_int(values, "n", 8, 1, MAX_SUGGESTIONS)
        found = search.suggest(typed, most, resolve_site(values, request.state.reader.sites), request.state.allowed)
        return json_response({"query": values["q"], "suggestions": found[:most]})

    async def sites(request: Request) -> Response:
        parse_parameters(request.scope["query_string"], ("key",))
        told = search.get_overview(request.state.allowed)
        hosts = filter_sites(told.sites, request.state.reader.sites)
        return json_response({
            "sites": [{"site": each.value, "pages": each.pages} for each in hosts],
            "newest_at": format_iso_time(told.newest_s) if told.newest_s else None,
        })  # fmt: skip

    return [
        Route("/api/v1/search", searched),
        Route("/api/v1/suggest", suggested),
        Route("/api/v1/sites", sites),
    ]


def _parse_search(values: dict[str, str], request: Request) -> SearchRequest:
    n = parse_int(values, "n", 10, 1, MAX_PAGE_SIZE)
    page = parse_int(values, "page", 1, 1, MAX_TOTAL_RESULTS)
    if page * n > MAX_TOTAL_RESULTS:
        last = MAX_TOTAL_RESULTS // n
        raise ParameterError(
            "page", f"There are {MAX_TOTAL_RESULTS} results at most: with n={n}, page is at most {last}."
        )
    return SearchRequest(
        query=_parse_query(values),
        n=n,
        page=page,
        site=resolve_site(values, request.state.reader.sites),
        kind=parse_pattern(
            values, "type", PARAMETER_PATTERNS["type"], 'type is a kind of file, such as "html" or "pdf".'
        ).lower(),
        language=parse_pattern(
            values, "lang", PARAMETER_PATTERNS["lang"], 'lang is the code of a language, such as "en".'
        ).lower(),
        after_s=parse_day_s(values, "after"),
        before_s=parse_day_s(values, "before"),
        allowed=request.state.allowed,
    )


def _parse_query(values: dict[str, str]) -> str:
    if "q" not in values:
        raise ParameterError("q", "Say in q what to look for; it may be empty.")
    return values["q"][:MAX_QUERY_LENGTH]


def slate_to_json(slate: Slate, asked: str, took_s: float, token: str = "") -> dict[str, object]:
    """What the API says of a search; ``token`` is by what views and clicks of it may be told."""
    cut = (f"The query was cut: only its first {MAX_QUERY_LENGTH} characters are searched.",)
    return {
        "query": asked[:MAX_QUERY_LENGTH],
        "total": slate.total,
        "took_ms": round(1000 * took_s, 3),
        "results": [_result_to_json(each) for each in slate.results],
        "notes": slate.notes + (cut if len(asked) > MAX_QUERY_LENGTH else ()),
        "did_you_mean": slate.suggestion or None,
        "relaxed": slate.relaxed,
        "slate": token or None,
    }


def _result_to_json(result: SearchResult) -> dict[str, object]:
    return {
        "id": result.id,
        "url": result.url,
        "title": result.title,
        "snippet": result.snippet.text,
        "highlights": result.snippet.marks,
        "site": result.site,
        "type": result.kind,
        "language": result.language,
        "fetched_at": format_iso_time(result.fetched_s),
        "published_at": None if result.date_s is None else format_iso_time(result.date_s),
        "score": to_finite(result.score),
        "why": [
            {
                "feature": reason.feature,
                "value": to_finite(reason.value),
                "weight": to_finite(reason.weight),
                "contribution": to_finite(reason.contribution),
            }
            for reason in result.why
        ],
        "sentence": result.sentence,
        "note": result.note,
        "similar": result.similar,
        "cached_url": f"/cached/{result.id}" if result.has_copy else None,
    }
