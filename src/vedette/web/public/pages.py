"""The public pages: start, results, similar pages, cached copies, and those about crawler and privacy.

All work without script; script makes them quicker. Handlers call the port ``SearchService`` and pass plain values to
templates, which control the appearance.
"""

import time
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from vedette.serve.slate import Slate
from vedette.web.formatting import build_score_rows
from vedette.web.ports import IndexOverview, SearchService
from vedette.web.public.ads import NO_ADS, AdLinks
from vedette.web.public.cached_copy import copy_response, find_copy, parse_page_id
from vedette.web.public.filters import MAX_QUERY, ResultsQuery, build_choices, list_page_numbers, parse_results_query
from vedette.web.public.slates import SearchRecorder, create_null_recorder
from vedette.web.public.visits import TrialQuota, parse_visitor
from vedette.web.rendering import Branding, error_page, get_theme, render_page, render_template
from vedette.web.static_files import static_routes

MAX_OVERVIEW_SITES = 100  # an overview lists no more
SITES_SHOWN = 3
MAX_NEW_PAGES = 12
NO_COPY_MESSAGE = (
    "The page may not be stored, its owner may not allow cached copies, or it belongs to a private site. "
    "The original page may still exist."
)


def page_routes(
    search: SearchService,
    look: Branding,
    recording: SearchRecorder | None = None,
    trials: TrialQuota | None = None,
    sponsored: AdLinks = NO_ADS,
    *,
    has_answers: bool = False,
) -> list[Route]:
    """Return the routes of all public pages. ``request.state.allowed`` has the private sites the user may see."""
    recorder, quota = recording or create_null_recorder(), trials or TrialQuota()
    pages = _PublicPages(search, look, recorder, quota, sponsored, has_answers)
    return [
        Route("/", pages.show_start),
        Route("/search", pages.show_results),
        Route("/similar/{id}", pages.show_similar),
        Route("/cached/{id}", pages.show_cached),
        Route("/cached/{id}/body", pages.show_cached_body),
        Route("/opensearch.xml", pages.show_opensearch),
        Route("/bot", pages.show_bot),
        Route("/privacy", pages.show_privacy),
        *static_routes(),
    ]


@dataclass(frozen=True, slots=True)
class _PublicPages:
    """The request handlers of the public pages, with their shared dependencies."""

    search: SearchService
    branding: Branding
    recording: SearchRecorder
    trials: TrialQuota
    ads: AdLinks
    has_answers: bool

    async def show_start(self, request: Request) -> Response:
        """Show the start page: the search field, and how much is indexed."""
        overview = self.search.get_overview(_get_allowed_sites(request))
        born = overview.newest_pages[:MAX_NEW_PAGES] if self.branding.demo else ()
        named = [site.value for site in overview.sites[:SITES_SHOWN]]
        values = {
            "sites_named": named,
            "sites_more": _count_other_sites(overview),
            "born": born,
            "born_address": _build_search_url,
        }
        return self._render("start.html", request, query="", overview=overview, **values)

    async def show_results(self, request: Request) -> Response:
        """Show the results page. An empty query shows the start page, unless filters are set."""
        view = parse_results_query(request.query_params)
        if not view.query and not view.is_filtered:
            return RedirectResponse("/", 302)
        allowed, visit = _get_allowed_sites(request), parse_visitor(request)
        mark = self.recording.hash_visitor(visit)
        began = time.perf_counter()
        wish = view.to_search_request(self.search.now_s(), allowed)
        slate = self.search.search(wish._replace(audience=self.trials.get_audience(mark, visit.filter_reason)))
        took_ms = 1000 * (time.perf_counter() - began)
        self.trials.count_shown(mark, slate)
        token = self.recording.record_slate(slate, visit, "page", took_ms)
        overview = self.search.get_overview(allowed)
        return self._render(
            "results.html",
            request,
            query=view.query,
            view=view,
            slate=slate,
            took_ms=max(1, round(took_ms)),
            token=token,
            # Beside the results, never among them, and only on the first page.
            ads=self.ads.choose_ads(view.query, visit) if view.page == 1 else (),
            answer_url=self._build_answer_url(view, slate),
            overview=overview,
            choices=build_choices(view, overview),
            numbers=list_page_numbers(view.page, slate.total, len(slate.results)),
        )

    async def show_similar(self, request: Request) -> Response:
        """Show the similar pages that are folded under a result."""
        id_ = parse_page_id(request)
        found = () if id_ is None else self.search.find_similar(id_, _get_allowed_sites(request))
        if not found:
            message = "No other page has the same content, or this page no longer exists. Try a new search."
            return self._not_found(request, "No similar pages", message)
        view = parse_results_query(request.query_params)
        return self._render("similar.html", request, query=view.query, view=view, results=found)

    async def show_cached(self, request: Request) -> Response:
        """Show the page around a cached copy: which page it is, and when it was fetched."""
        copy = find_copy(request, self.search, _get_allowed_sites(request))
        if copy is None:
            return self._no_copy_page(request)
        return self._render("cached.html", request, query="", copy=copy, id=parse_page_id(request))

    async def show_cached_body(self, request: Request) -> Response:
        """Return the cached copy itself, for the sandboxed frame."""
        copy = find_copy(request, self.search, _get_allowed_sites(request))
        return self._no_copy_page(request) if copy is None else await copy_response(copy)

    async def show_opensearch(self, request: Request) -> Response:
        """Return the OpenSearch description, by which a browser offers this search in its address bar."""
        address = self.branding.address.rstrip("/") or str(request.base_url).rstrip("/")
        text = render_template("opensearch.xml", look=self.branding, address=address)
        headers = {"x-content-type-options": "nosniff", "cache-control": "public, max-age=3600"}
        return Response(text, headers=headers, media_type="application/opensearchdescription+xml")

    async def show_bot(self, request: Request) -> Response:
        """Show the public page about the crawler, for site owners who find it in their logs."""
        return self._render("bot.html", request, query="", **self._build_contact())

    async def show_privacy(self, request: Request) -> Response:
        """Show the privacy page: what is stored about people who search, and under which visitor hash."""
        mark = self.recording.hash_visitor(parse_visitor(request))
        values = {"keep_days": self.recording.keep_days, "mark": mark, "has_answers": self.has_answers}
        return self._render("privacy.html", request, query="", **self._build_contact(), **values)

    def _build_answer_url(self, view: ResultsQuery, slate: Slate) -> str:
        """Build the URL of the answer beside the first page of results; empty if there is none."""
        is_shown = self.has_answers and view.page == 1 and view.query and slate.results
        return f"/answer{view.address.removeprefix('/search')}" if is_shown else ""

    def _build_contact(self) -> dict[str, str]:
        contact = self.branding.contact()
        return {"contact": contact, "contact_link": _build_contact_link(contact)}

    def _render(self, template: str, request: Request, **values: object) -> Response:
        shared = {
            "now_s": self.search.now_s(),
            "behind": self.search.get_incomplete_reason(),
            "rows_of": build_score_rows,
        }
        return render_page(template, request, self.branding, 200, longest_query=MAX_QUERY, **shared, **values)

    def _no_copy_page(self, request: Request) -> Response:
        """Show that there is no cached copy, without a reason: it would reveal that a private page exists."""
        return self._not_found(request, "No cached copy", NO_COPY_MESSAGE)

    def _not_found(self, request: Request, title: str, message: str) -> Response:
        return error_page(404, message, title=title, look=self.branding, theme=get_theme(request))


def _get_allowed_sites(request: Request) -> tuple[str, ...]:
    """Return the private sites that the user of a public page may see; none if the gate set none."""
    allowed: tuple[str, ...] = getattr(request.state, "allowed", ())
    return allowed


def _build_contact_link(contact: str) -> str:
    """Build the link to the operator's contact, a page or an email address; empty if none is set."""
    if not contact or contact.startswith(("http://", "https://")):
        return contact
    return f"mailto:{contact}"


def _count_other_sites(overview: IndexOverview) -> int:
    """Count the sites beyond those that the start page names; -1 if they were not all counted."""
    return -1 if len(overview.sites) >= MAX_OVERVIEW_SITES else max(0, len(overview.sites) - SITES_SHOWN)


def _build_search_url(title: str) -> str:
    """Build the URL of a search for a title."""
    return ResultsQuery(title[:MAX_QUERY]).address
