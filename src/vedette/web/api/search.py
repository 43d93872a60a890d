"""``/api/v1/search``, ``passages``, ``suggest``, ``instant`` and ``sites``: the search API and its description."""

from time import perf_counter
from typing import Annotated

from msgspec import Meta, to_builtins
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.serve.slate import Passage, SearchRequest, SearchResult, Slate, list_passages
from vedette.web.api import schema
from vedette.web.api.parameters import (
    DEFAULT_PASSAGE_LENGTH,
    DEFAULT_PASSAGES,
    MAX_PAGE_SIZE,
    MAX_PASSAGE_LENGTH,
    MAX_PASSAGES,
    MAX_QUERY_LENGTH,
    MAX_SUGGESTIONS,
    MAX_TOTAL_RESULTS,
    MIN_PASSAGE_LENGTH,
    PARAMETER_PATTERNS,
    ParameterError,
    parse_day_s,
    parse_int,
    parse_parameters,
    parse_pattern,
)
from vedette.web.api.responses import format_iso_time, json_response, to_finite
from vedette.web.api.schema import Answer, Count, JsonSchema, Time
from vedette.web.auth.keys import filter_results, filter_sites, resolve_site
from vedette.web.ports import SearchService
from vedette.web.public.slates import SearchRecorder
from vedette.web.public.visits import parse_visitor

_FILTERS = ("site", "type", "lang", "version", "after", "before")
_SEARCH_PARAMETERS = ("q", "n", "page", "explain", *_FILTERS, "key")
_PASSAGE_PARAMETERS = ("q", "n", "chars", *_FILTERS, "key")
_SUGGEST_PARAMETERS = ("q", "n", "site", "key")
INSTANT, MAX_INSTANT, INSTANT_SUGGESTIONS, INSTANT_SNIPPET = 5, 10, 4, 120


class ReasonJson(Answer):
    """What a feature contributed to a score."""

    feature: str
    value: float
    weight: float
    contribution: float


class SectionJson(Answer):
    """A section of a page that matches the query."""

    heading: str
    url: Annotated[str, Meta(description="URL that leads to the section: with its id, or a text fragment.")]
    snippet: Annotated[str, Meta(description="Excerpt of the section: plain text, never HTML.")]
    highlights: Annotated[
        tuple[tuple[Count, Count], ...],
        Meta(description="Start and end of each highlight in the snippet, in code points."),
    ]


class VersionJson(Answer):
    """The same page of another release."""

    version: Annotated[str, Meta(description="The release, as in the URL; empty if the URL names none.")]
    url: str


class Result(Answer):
    """A page that was found."""

    id: Annotated[int, Meta(description="ID of the page on this server.")]
    url: str
    title: str
    snippet: Annotated[str, Meta(description="Excerpt of its text: plain text, never HTML.")]
    highlights: Annotated[
        tuple[tuple[Count, Count], ...],
        Meta(description="Start and end of each highlight in the snippet, in code points."),
    ]
    site: Annotated[str, Meta(description="Its host.")]
    type: Annotated[str, Meta(description="File type.")]
    language: Annotated[str, Meta(description="ISO 639-1 code; empty if unknown.")]
    fetched_at: Annotated[Time, Meta(description="When it was last fetched.")]
    published_at: Annotated[Time | None, Meta(description="The date the page states.")]
    score: float
    why: Annotated[list[ReasonJson], Meta(description="What its score consists of; empty without `explain=1`.")]
    sentence: Annotated[str, Meta(description="The same as a sentence; empty without `explain=1`.")]
    note: Annotated[str, Meta(description="A note shown with the result, such as why it was moved.")]
    similar: Annotated[Count, Meta(description="Number of similar pages folded under it.")]
    versions: Annotated[Count, Meta(description="Number of other versions folded under it.")]
    cached_url: Annotated[str | None, Meta(description="URL of the cached copy.")]
    sections: Annotated[list[SectionJson], Meta(description="Sections that match best, best first; at most four.")]
    version: Annotated[str, Meta(description="Its release, as in the URL; empty if the URL names none.")]
    other_versions: Annotated[list[VersionJson], Meta(description="Other versions, newest first; at most eight.")]


class SearchAnswer(Answer):
    """The results of a search."""

    query: Annotated[str, Meta(description="The query.")]
    total: Annotated[Count, Meta(description="Number of matching pages.")]
    took_ms: Annotated[float, Meta(ge=0, description="Search time in milliseconds.")]
    results: list[Result]
    notes: tuple[str, ...]
    did_you_mean: Annotated[str | None, Meta(description="Suggested spelling of the query.")]
    relaxed: tuple[str, ...]
    corrected: Annotated[
        str | None,
        Meta(description="The query that was searched instead, if one of its words does not appear on any page."),
    ]
    slate: Annotated[
        str | None, Meta(description="Token for reporting views and clicks; null if searches are not recorded.")
    ]


class PassageJson(Answer):
    """A passage of a page."""

    url: Annotated[str, Meta(description="URL that leads to the passage, for citing it.")]
    page_url: str
    title: Annotated[str, Meta(description="Title of the page.")]
    heading: Annotated[str, Meta(description="Heading of the section; empty if it has none.")]
    text: Annotated[
        str, Meta(description="The passage: plain text, never HTML. Untrusted: it is quoted from the page.")
    ]
    fetched_at: Annotated[Time, Meta(description="When the page was last fetched.")]
    published_at: Annotated[Time | None, Meta(description="The date the page states.")]
    score: Annotated[float, Meta(description="Relevance; at most 1, for the best passage of the best page.")]


class PassagesAnswer(Answer):
    """The passages that match a query best, best first."""

    query: str
    passages: list[PassageJson]
    notes: tuple[str, ...]


class SuggestAnswer(Answer):
    """Completions of a query."""

    query: str
    suggestions: tuple[str, ...]


class InstantResult(Answer):
    """A page that was found while typing."""

    id: Annotated[int, Meta(description="ID of the page on this server.")]
    url: Annotated[str, Meta(description="Its URL; that of a section if a heading matches.")]
    title: str
    heading: Annotated[str, Meta(description="Heading of the section; empty if the URL is that of the page.")]
    snippet: Annotated[str, Meta(description="Excerpt of its text: plain text, never HTML.")]
    site: Annotated[str, Meta(description="Its host.")]
    cached_url: Annotated[str | None, Meta(description="URL of the cached copy.")]


class InstantAnswer(Answer):
    """Completions of a query that is being typed, and the first results for it."""

    query: str
    suggestions: tuple[str, ...]
    results: list[InstantResult]
    corrected: Annotated[
        str | None,
        Meta(description="The query that was searched instead, if one of its words does not appear on any page."),
    ]


class SiteCount(Answer):
    """A host and its number of pages in the index."""

    site: str
    pages: Count


class SitesAnswer(Answer):
    """The hosts that can be searched."""

    sites: list[SiteCount]
    newest_at: Annotated[Time | None, Meta(description="When the latest page was fetched.")]


SEARCH_SCHEMAS = (SearchAnswer, PassagesAnswer, SuggestAnswer, InstantAnswer, SitesAnswer)
SLATE_EXAMPLE = "q83vASNFZ4mrze8BI0VniQGb_J7aAHm2Zk0p8sXyTq4uWc1d"
_EXAMPLE_TIME = "2026-01-31T09:26:53Z"
_RESULT_EXAMPLE = Result(
    id=4711,
    url="https://docs.example.org/ops/monitoring",
    title="Monitoring consumer lag",
    snippet="The lag of each consumer group is exposed as a metric.",
    highlights=((4, 7), (16, 24)),
    site="docs.example.org",
    type="html",
    language="en",
    fetched_at=_EXAMPLE_TIME,
    published_at=None,
    score=7.25,
    why=[ReasonJson("words in the title", 2.0, 1.5, 3.0)],
    sentence="High because the title has both words.",
    note="",
    similar=3,
    versions=2,
    cached_url="/cached/4711",
    sections=[SectionJson("Lag", "https://docs.example.org/ops/monitoring#lag", "The lag of each group.", ((4, 7),))],
    version="3.0",
    other_versions=[VersionJson("2.8", "https://docs.example.org/2.8/ops/monitoring")],
)
_SEARCH_EXAMPLE = SearchAnswer("consumer lag", 128, 6.2, [_RESULT_EXAMPLE], (), None, (), None, SLATE_EXAMPLE)
_PASSAGES_EXAMPLE = PassagesAnswer(
    "consumer lag",
    [
        PassageJson(
            "https://docs.example.org/ops/monitoring#lag",
            "https://docs.example.org/ops/monitoring",
            "Monitoring consumer lag",
            "Lag",
            "The lag of each consumer group is exposed as a metric.",
            _EXAMPLE_TIME,
            None,
            1.0,
        )
    ],
    (),
)
_SUGGEST_EXAMPLE = SuggestAnswer("consumer l", ("consumer lag", "consumer lag monitoring"))
_INSTANT_EXAMPLE = InstantAnswer(
    "consumer l",
    ("consumer lag",),
    [
        InstantResult(
            4711,
            "https://docs.example.org/ops/monitoring#lag",
            "Monitoring consumer lag",
            "Lag",
            "The lag of each group.",
            "docs.example.org",
            "/cached/4711",
        )
    ],
    None,
)
_SITES_EXAMPLE = SitesAnswer([SiteCount("docs.example.org", 812)], _EXAMPLE_TIME)
_DAY: JsonSchema = {"anyOf": [{"type": "string", "format": "date"}, {"const": ""}]}


def describe_search_paths() -> JsonSchema:
    """Describe the paths of the search API for the OpenAPI description."""
    site = schema.pattern_schema(PARAMETER_PATTERNS["site"])
    kind, language, version = (schema.pattern_schema(PARAMETER_PATTERNS[name]) for name in ("type", "lang", "version"))
    words = f"The query, any text; only the first {MAX_QUERY_LENGTH} characters count."
    paging = f"Page of results; page times n can be at most {MAX_TOTAL_RESULTS}."
    query = schema.query_parameter("q", words, schema.STRING, "consumer lag", required=True)
    filters = (
        schema.query_parameter("site", "Only this host, or this path on it.", site, "docs.example.org/ops/"),
        schema.query_parameter("type", "Only this file type.", kind, "html"),
        schema.query_parameter("lang", "Only pages in this language.", language, "en"),
        schema.query_parameter("version", "Only this release of a manual.", version, "2.8"),
        schema.query_parameter("after", "Only pages dated on or after this day (UTC).", _DAY, "2026-01-01"),
        schema.query_parameter("before", "Only pages dated before this day (UTC).", _DAY, "2026-02-01"),
    )
    search = schema.describe_operation(
        "search",
        "Search pages",
        _describe_found(_SEARCH_EXAMPLE),
        query,
        schema.query_parameter("n", "Number of results per page.", schema.integer_schema(1, MAX_PAGE_SIZE, 10)),
        schema.query_parameter("page", paging, schema.integer_schema(1, MAX_TOTAL_RESULTS, 1)),
        schema.query_parameter("explain", "1 explains the score of each result.", schema.integer_schema(0, 1, 0)),
        *filters,
    )
    longest = schema.integer_schema(MIN_PASSAGE_LENGTH, MAX_PASSAGE_LENGTH, DEFAULT_PASSAGE_LENGTH)
    passages = schema.describe_operation(
        "passages",
        "Find passages, for retrieval-augmented generation",
        _describe_found(_PASSAGES_EXAMPLE),
        query,
        schema.query_parameter("n", "Number of passages.", schema.integer_schema(1, MAX_PASSAGES, DEFAULT_PASSAGES)),
        schema.query_parameter("chars", "Maximum length of a passage in characters.", longest),
        *filters,
    )
    suggest = schema.describe_operation(
        "suggest",
        "Complete a query",
        _describe_found(_SUGGEST_EXAMPLE),
        schema.query_parameter("q", "The query typed so far.", schema.STRING, "consumer l", required=True),
        schema.query_parameter("n", "Maximum number of suggestions.", schema.integer_schema(1, MAX_SUGGESTIONS, 8)),
        schema.query_parameter(
            "site", "Only suggestions from this host, or this path on it.", site, "docs.example.org"
        ),
    )
    instant = schema.describe_operation(
        "instant",
        "Search while typing",
        _describe_found(_INSTANT_EXAMPLE),
        schema.query_parameter("q", "The query typed so far.", schema.STRING, "consumer l", required=True),
        schema.query_parameter("n", "Maximum number of results.", schema.integer_schema(1, MAX_INSTANT, INSTANT)),
        schema.query_parameter("site", "Only this host, or this path on it.", site, "docs.example.org"),
    )
    about = "List searchable hosts, largest first, at most 100"
    sites = schema.describe_operation("sites", about, _describe_found(_SITES_EXAMPLE))
    return {
        "/api/v1/search": {"get": search},
        "/api/v1/passages": {"get": passages},
        "/api/v1/suggest": {"get": suggest},
        "/api/v1/instant": {"get": instant},
        "/api/v1/sites": {"get": sites},
    }


def _describe_found(example: Answer) -> JsonSchema:
    errors = schema.describe_errors("400", "401", "403", "429", "500")
    return {"200": schema.describe_answer("The results.", example), **errors}


def api_routes(search: SearchService, recording: SearchRecorder) -> list[Route]:
    """Return the search API's routes under ``/api/v1``. ``request.state`` has the user and what they may see."""

    async def run_search(request: Request) -> Response:
        started_s = perf_counter()
        values = parse_parameters(request.scope["query_string"], _SEARCH_PARAMETERS)
        wish = _parse_search(values, request)._replace(is_explained=parse_int(values, "explain", 0, 0, 1) == 1)
        slate = filter_results(search.search(wish), request.state.reader.sites)
        took_s = perf_counter() - started_s
        token = recording.record_slate(slate, parse_visitor(request), "api", 1000 * took_s)
        # A response with a token belongs to one search, so it must not be shared.
        headers = {"cache-control": "private, no-store"} if token else {}
        return json_response(describe_slate(slate, values["q"], took_s, token), 200, headers)

    async def find_passages(request: Request) -> Response:
        started_s = perf_counter()
        values = parse_parameters(request.scope["query_string"], _PASSAGE_PARAMETERS)
        n = parse_int(values, "n", DEFAULT_PASSAGES, 1, MAX_PASSAGES)
        most = parse_int(values, "chars", DEFAULT_PASSAGE_LENGTH, MIN_PASSAGE_LENGTH, MAX_PASSAGE_LENGTH)
        wish = _parse_search(values, request)._replace(snippet_length=most, is_explained=False)
        slate = filter_results(search.search(wish), request.state.reader.sites)
        recording.record_slate(slate, parse_visitor(request), "api", 1000 * (perf_counter() - started_s))
        found = [_describe_passage(each) for each in list_passages(slate.results, n)]
        return json_response(PassagesAnswer(values["q"][:MAX_QUERY_LENGTH], found, slate.notes))

    async def suggest(request: Request) -> Response:
        values = parse_parameters(request.scope["query_string"], _SUGGEST_PARAMETERS)
        typed = _parse_query(values)
        most = parse_int(values, "n", 8, 1, MAX_SUGGESTIONS)
        found = search.suggest(typed, most, resolve_site(values, request.state.reader.sites), request.state.allowed)
        return json_response(SuggestAnswer(values["q"], found[:most]))

    async def search_instantly(request: Request) -> Response:
        values = parse_parameters(request.scope["query_string"], _SUGGEST_PARAMETERS)
        typed = _parse_query(values)
        n = parse_int(values, "n", INSTANT, 1, MAX_INSTANT)
        site = resolve_site(values, request.state.reader.sites)
        allowed = request.state.allowed
        wish = SearchRequest(typed, n, site=site, allowed=allowed, snippet_length=INSTANT_SNIPPET, is_partial=True)
        slate = filter_results(search.search(wish), request.state.reader.sites)
        suggestions = search.suggest(typed, INSTANT_SUGGESTIONS, site, allowed)[:INSTANT_SUGGESTIONS]
        results = [_describe_instant(each) for each in slate.results]
        return json_response(InstantAnswer(values["q"], suggestions, results, slate.corrected or None))

    async def list_sites(request: Request) -> Response:
        parse_parameters(request.scope["query_string"], ("key",))
        overview = search.get_overview(request.state.allowed)
        hosts = filter_sites(overview.sites, request.state.reader.sites)
        newest_at = format_iso_time(overview.newest_s) if overview.newest_s else None
        return json_response(SitesAnswer([SiteCount(each.value, each.pages) for each in hosts], newest_at))

    return [
        Route("/api/v1/search", run_search),
        Route("/api/v1/passages", find_passages),
        Route("/api/v1/suggest", suggest),
        Route("/api/v1/instant", search_instantly),
        Route("/api/v1/sites", list_sites),
    ]


def _parse_search(values: dict[str, str], request: Request) -> SearchRequest:
    n = parse_int(values, "n", 10, 1, MAX_PAGE_SIZE)
    page = parse_int(values, "page", 1, 1, MAX_TOTAL_RESULTS)
    if page * n > MAX_TOTAL_RESULTS:
        last = MAX_TOTAL_RESULTS // n
        raise ParameterError(
            "page", f"There are at most {MAX_TOTAL_RESULTS} results: with n={n}, page can be at most {last}."
        )
    return SearchRequest(
        query=_parse_query(values),
        n=n,
        page=page,
        site=resolve_site(values, request.state.reader.sites),
        kind=parse_pattern(
            values, "type", PARAMETER_PATTERNS["type"], 'type must be a file type, such as "html" or "pdf".'
        ).lower(),
        language=parse_pattern(
            values, "lang", PARAMETER_PATTERNS["lang"], 'lang must be a language code, such as "en".'
        ).lower(),
        version=parse_pattern(
            values, "version", PARAMETER_PATTERNS["version"], 'version must be the name of a release, such as "2.8".'
        ).lower(),
        after_s=parse_day_s(values, "after"),
        before_s=parse_day_s(values, "before"),
        allowed=request.state.allowed,
    )


def _parse_query(values: dict[str, str]) -> str:
    if "q" not in values:
        raise ParameterError("q", "Set q to the query; it may be empty.")
    return values["q"][:MAX_QUERY_LENGTH]


def slate_to_json(slate: Slate, query: str, took_s: float) -> dict[str, object]:
    """Return search results as the API's JSON."""
    data: dict[str, object] = to_builtins(describe_slate(slate, query, took_s))
    return data


def describe_slate(slate: Slate, query: str, took_s: float, token: str = "") -> SearchAnswer:
    """Describe search results as the API does; with ``token``, views and clicks on them can be reported."""
    cut = (f"The query was cut: only its first {MAX_QUERY_LENGTH} characters are searched.",)
    return SearchAnswer(
        query=query[:MAX_QUERY_LENGTH],
        total=slate.total,
        took_ms=round(1000 * took_s, 3),
        results=[_describe_result(each) for each in slate.results],
        notes=slate.notes + (cut if len(query) > MAX_QUERY_LENGTH else ()),
        did_you_mean=slate.suggestion or None,
        relaxed=slate.relaxed,
        corrected=slate.corrected or None,
        slate=token or None,
    )


def _describe_result(result: SearchResult) -> Result:
    return Result(
        id=result.id,
        url=result.url,
        title=result.title,
        snippet=result.snippet.text,
        highlights=result.snippet.marks,
        site=result.site,
        type=result.kind,
        language=result.language,
        fetched_at=format_iso_time(result.fetched_s),
        published_at=None if result.date_s is None else format_iso_time(result.date_s),
        score=to_finite(result.score),
        why=[
            ReasonJson(why.feature, to_finite(why.value), to_finite(why.weight), to_finite(why.contribution))
            for why in result.why
        ],
        sentence=result.sentence,
        note=result.note,
        similar=result.similar,
        versions=result.versions,
        cached_url=f"/cached/{result.id}" if result.has_copy else None,
        sections=[
            SectionJson(each.heading, each.url, each.snippet.text, each.snippet.marks) for each in result.sections
        ],
        version=result.version,
        other_versions=[VersionJson(each.label, each.url) for each in result.other_versions],
    )


def _describe_instant(result: SearchResult) -> InstantResult:
    section = next(iter(result.sections), None)
    is_best = section is not None and section.snippet == result.snippet and section.heading not in result.title
    url, heading = (section.url, section.heading) if section is not None and is_best else (result.url, "")
    copy = f"/cached/{result.id}" if result.has_copy else None
    return InstantResult(result.id, url, result.title, heading, result.snippet.text, result.site, copy)


def _describe_passage(passage: Passage) -> PassageJson:
    page = passage.result
    return PassageJson(
        passage.url,
        page.url,
        page.title,
        passage.heading,
        passage.text,
        format_iso_time(page.fetched_s),
        None if page.date_s is None else format_iso_time(page.date_s),
        round(to_finite(passage.score), 4),
    )
