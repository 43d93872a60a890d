"""The API: searching for programs. What it takes and gives is described in ``openapi``, from which it may not stray."""

from time import perf_counter

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.serve.slate import Result, Slate, Wish
from vedette.web.answers import iso_time, json_answer, number
from vedette.web.openapi import LONGEST_QUERY, MOST_AT_ONCE, MOST_IN_ALL, MOST_SUGGESTIONS, SHAPES
from vedette.web.parameters import WrongParameter, day_s, given, shaped, whole
from vedette.web.ports import Search

__all__ = ["api_routes", "slate_as_json"]

_SEARCH = ("q", "n", "page", "site", "type", "lang", "after", "before", "key")
_SUGGEST = ("q", "n", "site", "key")


def api_routes(search: Search) -> list[Route]:
    """The routes under ``/api/v1``. The reader and what they may see is in the request's state."""

    async def searched(request: Request) -> Response:
        started_s = perf_counter()
        values = given(request.scope["query_string"], _SEARCH)
        slate = _limited(search.search(_wish(values, request)), request.state.reader.sites)
        return json_answer(slate_as_json(slate, values["q"], perf_counter() - started_s))

    async def suggested(request: Request) -> Response:
        values = given(request.scope["query_string"], _SUGGEST)
        typed = _query(values)
        most = whole(values, "n", 8, 1, MOST_SUGGESTIONS)
        found = search.suggest(typed, most, _site(values, request), request.state.allowed)
        return json_answer({"query": values["q"], "suggestions": found[:most]})

    async def sites(request: Request) -> Response:
        given(request.scope["query_string"], ("key",))
        told = search.overview(request.state.allowed)
        limits = request.state.reader.sites
        hosts = [each for each in told.sites if not limits or any(_meet(each.value, limit) for limit in limits)]
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
        site=_site(values, request),
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


def _site(values: dict[str, str], request: Request) -> str:
    """The site to search, which a key may limit: then it is what the key names, or a part of it."""
    words = 'site is a host or the beginning of a path on it, such as "docs.example.org/api/".'
    site = shaped(values, "site", SHAPES["site"], words).removeprefix("https://").removeprefix("http://")
    limits: tuple[str, ...] = request.state.reader.sites
    if not limits or (site and any(_within(site, limit) for limit in limits)):
        return site
    if len(limits) == 1 and not site:
        return limits[0]
    raise WrongParameter("site", f"This key is for {', '.join(limits)}: name one of these in site, or a part of one.")


def _within(site: str, limit: str) -> bool:
    """Whether all of a site belongs to what a key is limited to."""
    host, _, path = site.partition("/")
    limit_host, _, limit_path = limit.partition("/")
    same = host.lower() == limit_host or (not limit_path and host.lower().endswith(f".{limit_host}"))
    return same and path.startswith(limit_path)


def _limited(slate: Slate, limits: tuple[str, ...]) -> Slate:
    """Without results outside a key's limits: these hold whatever the query itself says of sites."""
    if not limits:
        return slate
    kept = [each for each in slate.results if any(_within(_place(each), limit) for limit in limits)]
    return slate._replace(results=tuple(kept))


def _place(result: Result) -> str:
    """Host and path of a result, as a site is written."""
    return f"{result.site}/{result.url.partition('://')[2].partition('/')[2]}"


def _meet(host: str, limit: str) -> bool:
    """Whether some of a host belongs to what a key is limited to."""
    limit_host, _, path = limit.partition("/")
    return host == limit_host or (not path and host.endswith(f".{limit_host}"))


def slate_as_json(slate: Slate, asked: str, took_s: float) -> dict[str, object]:
    """What the API says of a search."""
    cut = (f"The query was cut: only its first {LONGEST_QUERY} characters are searched.",)
    return {
        "query": asked[:LONGEST_QUERY],
        "total": slate.total,
        "took_ms": round(1000 * took_s, 3),
        "results": [_result(each) for each in slate.results],
        "notes": slate.notes + (cut if len(asked) > LONGEST_QUERY else ()),
        "did_you_mean": slate.suggestion or None,
        "relaxed": slate.relaxed,
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
