"""The answer box: a short answer above the results, with links to the passages it is from.

Results never wait for it: a script loads it after the results, and without script it is a page of its own. It is made
from public pages only, whatever the user may see, because the passages are sent to the server of the language model.
"""

from asyncio import to_thread
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.config import Rate
from vedette.serve.answers import Answer, parse_answer
from vedette.serve.slate import Passage, list_passages
from vedette.web.auth.keys import filter_results
from vedette.web.auth.rate_limits import RateLimiter, to_network
from vedette.web.ports import SearchService
from vedette.web.public.filters import MAX_QUERY, ResultsQuery, parse_results_query
from vedette.web.public.visits import parse_visitor
from vedette.web.rendering import Branding, render_page

PASSAGES = 6
PASSAGE_LENGTH = 900
EMPTY = "These pages do not answer the question."
FAILED = "There is no answer right now. The results are not affected."
BUSY = "You have asked for many answers. Wait a minute, then try again."


class AnswerWriter(Protocol):
    """Port to a language model that writes answers; every outcome is a value."""

    def write(self, question: str, passages: list[Passage]) -> "WrittenReply":
        """Write an answer to a question from passages; it may take as long as the configured timeout."""


class WrittenReply(NamedTuple):
    """The reply of a language model as it came, or why there is none, for the log."""

    text: str = ""
    error: str = ""


class ShownAnswer(NamedTuple):
    """What the answer box shows: an answer, or a message why there is none."""

    answer: Answer | None = None
    message: str = ""
    status: int = 200


@dataclass(frozen=True, slots=True)
class AnswerBox:
    """The answer box over a search service and a language model; ``rate`` limits each user."""

    search: SearchService
    writer: AnswerWriter
    rate: Rate
    _limits: RateLimiter = field(default_factory=RateLimiter, init=False)

    async def find_answer(self, request: Request, view: ResultsQuery) -> ShownAnswer:
        """Find an answer to a query, or say why there is none."""
        visit = parse_visitor(request)
        if self._limits.take_token(visit.name or to_network(visit.address), self.rate):
            return ShownAnswer(message=BUSY, status=429)
        wish = view.to_search_request(self.search.now_s(), ())._replace(snippet_length=PASSAGE_LENGTH, page=1)
        slate = filter_results(self.search.search(wish), request.state.reader.sites)
        passages = list_passages(slate.results, PASSAGES)
        if not passages:
            return ShownAnswer(message=EMPTY)
        reply = await to_thread(self.writer.write, view.query, passages)
        if reply.error:
            return ShownAnswer(message=FAILED, status=502)
        answer = parse_answer(reply.text, passages)
        return ShownAnswer(answer) if answer else ShownAnswer(message=EMPTY)


def answer_route(box: AnswerBox, look: Branding) -> Route:
    """Return the route of the answer box: a part of the results page for scripts, or a page of its own."""

    async def show_answer(request: Request) -> Response:
        view = parse_results_query(request.query_params)
        found = await box.find_answer(request, view) if view.query else ShownAnswer(message=EMPTY)
        template = "answer.html" if request.query_params.get("part") == "1" else "answer_page.html"
        # The status is that of the box; the page around it is fine.
        status = found.status if template == "answer.html" else 200
        values = {"view": view, "found": found, "query": view.query, "longest_query": MAX_QUERY}
        answer = render_page(template, request, look, status, **values)
        answer.headers["cache-control"] = "private, no-store"
        return answer

    return Route("/answer", show_answer)
