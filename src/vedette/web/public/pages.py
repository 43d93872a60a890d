"""The pages that people see: first page, results, similar pages, cached copies; what the crawler is, what is kept.

All are whole without script; script makes them quicker. Handlers ask the port ``Search`` and hand plain values to
templates, which decide how they look.
"""

import time
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from vedette.web.branding import Look
from vedette.web.ports import Overview, Search
from vedette.web.public.ads import NOTHING_SPONSORED, Sponsored
from vedette.web.public.cached_copy import copy_of, copy_page, id_of
from vedette.web.public.filters import LONGEST_QUERY, View, choices, view_of, window
from vedette.web.public.score_table import rows_of
from vedette.web.public.slates import Recording, not_recording
from vedette.web.public.visits import Trials, visit_of
from vedette.web.rendering import page, problem_page, rendered, theme_of
from vedette.web.static_files import static_routes

__all__ = ["page_routes"]

MOST_SITES_KNOWN = 100  # an overview names no more
SITES_NAMED = 3
MOST_BORN = 12
NO_COPY = (
    "The page may never have been kept, its owner may not want copies of it shown, or it belongs to a site that is "
    "not for everybody. The page itself may still be there."
)


def page_routes(
    search: Search,
    look: Look,
    recording: Recording | None = None,
    trials: Trials | None = None,
    sponsored: Sponsored = NOTHING_SPONSORED,
) -> list[Route]:
    """Every page and file that people see. ``request.state.allowed`` says which private sites the reader may see."""
    pages = _Pages(search, look, recording or not_recording(), trials or Trials(), sponsored)
    return [
        Route("/", pages.start),
        Route("/search", pages.results),
        Route("/similar/{id}", pages.similar),
        Route("/cached/{id}", pages.cached),
        Route("/cached/{id}/body", pages.cached_body),
        Route("/opensearch.xml", pages.opensearch),
        Route("/bot", pages.bot),
        Route("/privacy", pages.privacy),
        *static_routes(),
    ]


@dataclass(frozen=True, slots=True)
class _Pages:
    """The handlers, with what they all need."""

    search: Search
    look: Look
    recording: Recording
    trials: Trials
    sponsored: Sponsored

    async def start(self, asked: Request) -> Response:
        """The first page: a field, and how much can be found."""
        known = self.search.overview(_allowed(asked))
        born = known.born[:MOST_BORN] if self.look.demo else ()
        named = [site.value for site in known.sites[:SITES_NAMED]]
        told = {"sites_named": named, "sites_more": _more(known), "born": born, "born_address": _about}
        return self._page("start.html", asked, query="", known=known, **told)

    async def results(self, asked: Request) -> Response:
        """Results. An empty query is the first page, unless filters alone ask for something."""
        view = view_of(asked.query_params)
        if not view.query and not view.is_filtered:
            return RedirectResponse("/", 302)
        allowed, visit = _allowed(asked), visit_of(asked)
        mark = self.recording.mark(visit)
        began = time.perf_counter()
        wish = view.wish(self.search.now_s(), allowed)
        slate = self.search.search(wish._replace(audience=self.trials.audience(mark, visit.doubt)))
        took_ms = 1000 * (time.perf_counter() - began)
        self.trials.saw(mark, slate)
        token = self.recording.shown(slate, visit, "page", took_ms)
        known = self.search.overview(allowed)
        return self._page(
            "results.html",
            asked,
            query=view.query,
            view=view,
            slate=slate,
            took_ms=max(1, round(took_ms)),
            token=token,
            # Beside the results, never among them, and only where people begin.
            ads=self.sponsored.ads(view.query, visit) if view.page == 1 else (),
            known=known,
            choices=choices(view, known),
            numbers=window(view.page, slate.total, len(slate.results)),
        )

    async def similar(self, asked: Request) -> Response:
        """The pages that are folded under a result."""
        id_ = id_of(asked)
        found = () if id_ is None else self.search.similar(id_, _allowed(asked))
        if not found:
            said = "No page says the same as this one, or it is no longer here. A search shows what is."
            return self._missing(asked, "Nothing is similar", said)
        view = view_of(asked.query_params)
        return self._page("similar.html", asked, query=view.query, view=view, results=found)

    async def cached(self, asked: Request) -> Response:
        """The page around a cached copy: what it is, and of when."""
        copy = copy_of(asked, self.search, _allowed(asked))
        if copy is None:
            return self._no_copy(asked)
        return self._page("cached.html", asked, query="", copy=copy, id=id_of(asked))

    async def cached_body(self, asked: Request) -> Response:
        """The copy itself, which the frame shows."""
        copy = copy_of(asked, self.search, _allowed(asked))
        return self._no_copy(asked) if copy is None else await copy_page(copy)

    async def opensearch(self, asked: Request) -> Response:
        """The description by which a browser offers this search in its address bar."""
        address = self.look.address.rstrip("/") or str(asked.base_url).rstrip("/")
        text = rendered("opensearch.xml", look=self.look, address=address)
        headers = {"x-content-type-options": "nosniff", "cache-control": "public, max-age=3600"}
        return Response(text, headers=headers, media_type="application/opensearchdescription+xml")

    async def bot(self, asked: Request) -> Response:
        """What the crawler is, for those who find it in their logs."""
        return self._page("bot.html", asked, query="", contact_link=_contact_link(self.look.contact))

    async def privacy(self, asked: Request) -> Response:
        """What is kept of those who search, and under which mark."""
        told = {"keep_days": self.recording.keep_days, "mark": self.recording.mark(visit_of(asked))}
        return self._page("privacy.html", asked, query="", contact_link=_contact_link(self.look.contact), **told)

    def _page(self, template: str, asked: Request, **told: object) -> Response:
        shared = {"now_s": self.search.now_s(), "behind": self.search.is_behind(), "rows_of": rows_of}
        return page(template, asked, self.look, 200, longest_query=LONGEST_QUERY, **shared, **told)

    def _no_copy(self, asked: Request) -> Response:
        """Why there is none is not told: that a private page exists would be told with it."""
        return self._missing(asked, "There is no copy to be shown", NO_COPY)

    def _missing(self, asked: Request, title: str, said: str) -> Response:
        return problem_page(404, said, title=title, look=self.look, theme=theme_of(asked))


def _allowed(asked: Request) -> tuple[str, ...]:
    """The private sites that the reader may see; none where nobody said."""
    allowed: tuple[str, ...] = getattr(asked.state, "allowed", ())
    return allowed


def _contact_link(contact: str) -> str:
    """Where the operator is reached: a page, or by mail; empty where nobody said."""
    if not contact or contact.startswith(("http://", "https://")):
        return contact
    return f"mailto:{contact}"


def _more(known: Overview) -> int:
    """How many sites there are besides those that are named; -1 where nobody counted them all."""
    return -1 if len(known.sites) >= MOST_SITES_KNOWN else max(0, len(known.sites) - SITES_NAMED)


def _about(title: str) -> str:
    """The address of a search for a title."""
    return View(title[:LONGEST_QUERY]).address
