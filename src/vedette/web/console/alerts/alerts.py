"""The page of watches: who wants to hear of which new pages, and what became of the messages to their webhooks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from vedette.errors import VedetteError
from vedette.web.commands.alert_text import read_name, read_place, read_query_text, read_reader, read_webhook, watch_of
from vedette.web.commands.commands import AddWatch, RemoveWatch
from vedette.web.console.crawl.site_forms import Typed
from vedette.web.console.ports.alerts import KeptWatch, SentMessage, WatchDesk
from vedette.web.console.ui.layout import Problems, Shell
from vedette.web.console.ui.tables import Column, Table
from vedette.web.formatting import sentence

__all__ = ["watch_routes"]

HERE: Final = "/console/watches"
MOST_MESSAGES: Final = 500
_FIELDS: Final[dict[str, Callable[[str], str]]] = {
    "name": read_name,
    "place": read_place,
    "query": read_query_text,
    "webhook": read_webhook,
    "reader": read_reader,
}


def state_of(sent: SentMessage) -> str:
    """What became of a message, in a word or two."""
    message = sent.delivery
    if message.next_s is not None:
        return "waits" if not message.tries else "is tried again"
    return "failed" if message.error else "delivered" if message.tries else "is being sent"


WATCHES: Final = Table[KeptWatch](
    (
        Column("name", "Name", lambda kept: kept.watch.name),
        Column("place", "Where", lambda kept: kept.watch.place or None),
        Column("query", "Query", lambda kept: kept.watch.query or None),
        Column("webhook", "Webhook", lambda kept: kept.watch.webhook or None),
        Column("items", "New pages", lambda kept: kept.items, is_number=True),
        Column("since", "Since", lambda kept: kept.watch.added_s, is_number=True),
    ),
    by="name",
)
MESSAGES: Final = Table[SentMessage](
    (
        Column("at", "Made", lambda sent: sent.delivery.at_s, is_number=True),
        Column("watch", "Watch", lambda sent: sent.name or None),
        Column("state", "State", state_of),
        Column("tries", "Tries", lambda sent: sent.delivery.tries, is_number=True),
        Column("error", "What went wrong", lambda sent: sent.delivery.error or None),
        Column("id", "Id", lambda sent: sent.delivery.id),
    ),
    by="-at",
    key="sent",
)


def watch_routes(shell: Shell, desk: WatchDesk, wall: Callable[[], float]) -> list[Route]:
    """The page, and the posts that change something."""
    pages = _Watches(shell, desk, wall)
    return [
        Route("/watches", pages.shown),
        Route("/watches/add", pages.added, methods=["POST"]),
        Route("/watches/remove", pages.removed, methods=["POST"]),
        Route("/watches/test", pages.tested, methods=["POST"]),
    ]


@dataclass(frozen=True, slots=True)
class _Watches:
    """The handlers, with what they all need."""

    shell: Shell
    desk: WatchDesk
    wall: Callable[[], float]

    async def shown(self, request: Request) -> Response:
        """All watches and the latest messages."""
        if WATCHES.wants_csv(request):
            return WATCHES.csv(request, await run_in_threadpool(self.desk.watches), "watches")
        if MESSAGES.wants_csv(request):
            return MESSAGES.csv(request, await run_in_threadpool(self.desk.messages, MOST_MESSAGES), "messages")
        return await self._page(request, {})

    async def added(self, request: Request) -> Response:
        """One more watch; or the form again, with what is wrong beside each field."""
        form = await self.shell.form(request)
        typed = {name: form.get(name, "")[:2100] for name in _FIELDS}
        problems = _problems(typed)
        if not problems and typed["webhook"]:
            why = await run_in_threadpool(self.desk.refusal, read_webhook(typed["webhook"]))
            problems = {"webhook": sentence(why)} if why else {}
        if problems:
            return await self._page(request, typed, problems, 422)
        try:
            return await self.shell.ordered(request, AddWatch(watch_of(**typed)), HERE)
        except VedetteError as error:
            return await self._page(request, typed, {"form": sentence(str(error))}, 422)

    async def removed(self, request: Request) -> Response:
        """A watch less; what it was told stays, should it come back."""
        form = await self.shell.form(request)
        try:
            return await self.shell.ordered(request, RemoveWatch(form.get("name", "")[:100]), HERE)
        except VedetteError as error:
            return await self._page(request, {}, {"form": sentence(str(error))}, 422)

    async def tested(self, request: Request) -> Response:
        """A message without pages is sent at once; what came of it stands first among the messages."""
        form = await self.shell.form(request)
        try:
            await run_in_threadpool(self.desk.test, form.get("name", "")[:100])
        except VedetteError as error:
            return await self._page(request, {}, {"form": sentence(str(error))}, 422)
        return RedirectResponse(f"{HERE}#messages", 303)

    async def _page(
        self, request: Request, typed: Typed, problems: Problems | None = None, status: int = 200
    ) -> Response:
        watches = await run_in_threadpool(self.desk.watches)
        messages = await run_in_threadpool(self.desk.messages, MOST_MESSAGES)
        told = {
            "watches": watches,
            "seen": WATCHES.seen(request, watches),
            "sent": MESSAGES.seen(request, messages),
            "messages": messages,
            "failed": sum(state_of(one) == "failed" for one in messages),
            "state_of": state_of,
            "typed": typed,
            "wall_s": self.wall(),
            "problems": problems or {},
        }
        return self.shell.page("watches.html", request, here="watches", title="Watches", status=status, **told)


def _problems(typed: Typed) -> Problems:
    """What is wrong, by field; and with all of it, where each field is right."""
    found: Problems = {}
    for name, read in _FIELDS.items():
        try:
            read(typed[name])
        except VedetteError as error:
            found[name] = sentence(str(error))
    if not found:
        try:
            watch_of(**typed)
        except VedetteError as error:
            found["reader" if typed["reader"] and not typed["webhook"] else "place"] = sentence(str(error))
    return found
