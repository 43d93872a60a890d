"""Render jobs of a fetcher process: pass pages to the browser, and requests of their scripts to the coordinator.

Scripts and data shared by many pages of a site are fetched occasionally, not once per page.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from vedette.adapters.clock import Clock
from vedette.adapters.net.renderer import (
    RENDERED_HEADER,
    FailedPage,
    PageRenderer,
    PartAnswer,
    PartWanted,
    RenderedPage,
    RenderJob,
)
from vedette.engine.messages import FetchResult, FetchSuccess, PagePart, PartReply, PartRequest, Rendering
from vedette.model import FetchResponse
from vedette.runtime.processes.loop import print_error

PART_WAIT_S = 60.0
CACHE_S = 600.0
CACHE_BYTES = 32 << 20
# Headers about the HTML that a server sent do not apply to the rendered page.
_STALE_HEADERS = frozenset(
    {"content-encoding", "content-length", "content-type", "etag", "last-modified", "transfer-encoding"}
)


class FinishedPage(NamedTuple):
    """A page to render: its result before, the rendered response if there is one, and the rendering."""

    result: FetchSuccess
    rendered: FetchResponse | None
    rendering: Rendering


class PartCache:
    """Responses to requests of pages, cached for a while and limited in bytes; the least used are dropped first."""

    def __init__(self) -> None:
        self._answers: OrderedDict[str, tuple[float, PartAnswer]] = OrderedDict()
        self._bytes = 0

    def get(self, url: str, now_s: float) -> PartAnswer | None:
        """Return the cached response for a URL; None if there is none, or it is too old."""
        until_s, answer = self._answers.get(url, (0.0, None))
        if answer is None or until_s < now_s:
            return None
        self._answers.move_to_end(url)
        return answer

    def add(self, url: str, kind: str, cache_control: str, answer: PartAnswer, now_s: float) -> None:
        """Add a good response to the cache, unless it must not be stored; scripts change with releases."""
        forbidden = kind != "script" and any(word in cache_control.lower() for word in ("no-store", "no-cache"))
        if answer.status != 200 or forbidden or len(answer.body) > CACHE_BYTES // 4:
            return
        _, old = self._answers.pop(url, (0.0, PartAnswer()))
        self._answers[url] = now_s + CACHE_S, answer
        self._bytes += len(answer.body) - len(old.body)
        while self._bytes > CACHE_BYTES:
            _, (_, dropped) = self._answers.popitem(last=False)
            self._bytes -= len(dropped.body)


@dataclass(slots=True)
class _OpenPart:
    """A request of the page being rendered, since when it waits, and until when."""

    url: str
    kind: str
    until_s: float


@dataclass(slots=True)
class OpenPage:
    """A page in the browser or in the queue, and the cost of its requests so far."""

    result: FetchSuccess
    answer: FetchResponse
    requests: int = 0
    parts_s: float = 0.0


@dataclass(slots=True)
class PageRendering:
    """Render pages for one fetcher; ``send`` sends a message to the coordinator."""

    renderer: PageRenderer[OpenPage]
    number: int
    agent: str
    clock: Clock
    send: Callable[[PartRequest], None]
    cache: PartCache = field(default_factory=PartCache)
    _parts: dict[int, _OpenPart] = field(default_factory=dict)
    _current: OpenPage | None = None
    _reported: str = ""

    @property
    def pending(self) -> int:
        """Number of pages being rendered or queued."""
        return self.renderer.pending

    @property
    def is_busy(self) -> bool:
        """Whether ``collect`` has anything to do: a page to render, or a browser to end."""
        return self.renderer.is_alive

    def submit(self, result: FetchSuccess, answer: FetchResponse) -> None:
        """Submit a fetched page to be rendered."""
        kind = answer.header("content-type") or "text/html"
        self.renderer.submit(OpenPage(result, answer), RenderJob(answer.url, kind, answer.body, self.agent))

    def take_part(self, result: FetchResult) -> FetchResult:
        """Pass the response to a part that this fetcher requested to its page; return what is left to report."""
        part = result.task.part_of
        if part is None or part.worker != self.number or not isinstance(result, FetchSuccess):
            return result
        if self._current is not None:
            self._current.parts_s += result.connection_s
        if result.location is None:
            kind, control = result.header("content-type"), result.header("cache-control")
            self.take_reply(PartReply(part.number, result.status, kind, control, result.part_body))
        return result._replace(part_body=b"")

    def take_reply(self, reply: PartReply) -> None:
        """Pass the response to a request, or its refusal, to the waiting page."""
        part = self._parts.pop(reply.number, None)
        if part is not None:
            if self._current is not None:
                self._current.requests += reply.status > 0
            answer = PartAnswer(reply.status, reply.content_type, reply.body)
            self.cache.add(part.url, part.kind, reply.cache_control, answer, self.clock.wall_now())
            self.renderer.answer_part(reply.number, answer)

    def collect(self) -> list[FinishedPage]:
        """Return the pages whose rendering ended since the last call; forward the requests of the others."""
        self._refuse_late()
        finished: list[FinishedPage] = []
        for page, event in self.renderer.collect():
            if isinstance(event, PartWanted):
                self._request_part(page, event)
            else:
                self._parts.clear()
                self._current = None
                finished.append(_finish(page, event))
        if self.renderer.trouble not in {"", self._reported}:
            self._reported = self.renderer.trouble
            print_error(f"pages are not rendered: {self._reported}")
        return finished

    def _request_part(self, page: OpenPage, wanted: PartWanted) -> None:
        now_s = self.clock.wall_now()
        self._current = page
        cached = self.cache.get(wanted.url, now_s)
        if cached is not None:
            self.renderer.answer_part(wanted.number, cached)
            return
        self._parts[wanted.number] = _OpenPart(wanted.url, wanted.kind, now_s + PART_WAIT_S)
        self.send(PartRequest(wanted.url, PagePart(self.number, wanted.number, page.answer.url, wanted.accept)))

    def _refuse_late(self) -> None:
        now_s = self.clock.wall_now()
        for number in [number for number, part in self._parts.items() if part.until_s < now_s]:
            self.take_reply(PartReply(number))


def _finish(page: OpenPage, event: RenderedPage | FailedPage) -> FinishedPage:
    seconds = event.seconds + page.parts_s
    if isinstance(event, FailedPage):
        return FinishedPage(page.result, None, Rendering(seconds, page.requests, trouble=str(event.reason)))
    note = f"{seconds:.1f} s, {page.requests} requests"
    rendering = Rendering(seconds, page.requests)
    return FinishedPage(page.result, build_rendered_answer(page.answer, event.html, note), rendering)


def build_rendered_answer(answer: FetchResponse, html: bytes, note: str) -> FetchResponse:
    """Build the response of a rendered page: its HTML, and those headers that still apply."""
    added = (("content-type", "text/html; charset=utf-8"), (RENDERED_HEADER, note))
    headers = tuple(pair for pair in answer.headers if pair[0] not in _STALE_HEADERS) + added
    lines = [f"HTTP/1.1 {answer.status} OK", *(f"{name}: {value}" for name, value in headers)]
    head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")
    return replace(answer, headers=headers, body=html, payload=html, head=head)
