"""The page of watches: who wants to hear of which new pages, and what became of the messages to their webhooks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from vedette.errors import VedetteError
from vedette.web.commands.alert_text import (
    parse_alert,
    parse_name,
    parse_place,
    parse_query_text,
    parse_reader,
    parse_webhook,
)
from vedette.web.commands.commands import AddAlert, RemoveAlert
from vedette.web.console.crawl.site_forms import FormValues
from vedette.web.console.ports.alerts import AlertLine, AlertService, SentMessage
from vedette.web.console.ui.layout import ConsoleShell, Problems
from vedette.web.console.ui.tables import Column, Table
from vedette.web.formatting import sentence

PAGE_URL: Final = "/console/watches"
MAX_MESSAGES: Final = 500
_FIELD_PARSERS: Final[dict[str, Callable[[str], str]]] = {
    "name": parse_name,
    "place": parse_place,
    "query": parse_query_text,
    "webhook": parse_webhook,
    "reader": parse_reader,
}


def describe_delivery(sent: SentMessage) -> str:
    """What became of a message, in a word or two."""
    message = sent.delivery
    if message.next_s is not None:
        return "waits" if not message.tries else "is tried again"
    return "failed" if message.error else "delivered" if message.tries else "is being sent"


ALERT_TABLE: Final = Table[AlertLine](
    (
        Column("name", "Name", lambda kept: kept.watch.name),
        Column("place", "Where", lambda kept: kept.watch.place or None),
        Column("query", "Query", lambda kept: kept.watch.query or None),
        Column("webhook", "Webhook", lambda kept: kept.watch.webhook or None),
        Column("items", "New pages", lambda kept: kept.items, is_number=True),
        Column("since", "Since", lambda kept: kept.watch.added_s, is_number=True),
    ),
    default_sort="name",
)
MESSAGE_TABLE: Final = Table[SentMessage](
    (
        Column("at", "Made", lambda sent: sent.delivery.at_s, is_number=True),
        Column("watch", "Watch", lambda sent: sent.name or None),
        Column("state", "State", describe_delivery),
        Column("tries", "Tries", lambda sent: sent.delivery.tries, is_number=True),
        Column("error", "What went wrong", lambda sent: sent.delivery.error or None),
        Column("id", "Id", lambda sent: sent.delivery.id),
    ),
    default_sort="-at",
    prefix="sent",
)


def alert_routes(shell: ConsoleShell, desk: AlertService, wall: Callable[[], float]) -> list[Route]:
    """The page, and the posts that change something."""
    pages = _AlertPages(shell, desk, wall)
    return [
        Route("/watches", pages.show),
        Route("/watches/add", pages.add, methods=["POST"]),
        Route("/watches/remove", pages.remove, methods=["POST"]),
        Route("/watches/test", pages.send_test, methods=["POST"]),
    ]


@dataclass(frozen=True, slots=True)
class _AlertPages:
    """The handlers, with what they all need."""

    shell: ConsoleShell
    alerts: AlertService
    wall_clock: Callable[[], float]

    async def show(self, request: Request) -> Response:
        """All watches and the latest messages."""
        if ALERT_TABLE.wants_csv(request):
            return ALERT_TABLE.csv_response(request, await run_in_threadpool(self.alerts.list_alerts), "watches")
        if MESSAGE_TABLE.wants_csv(request):
            return MESSAGE_TABLE.csv_response(
                request, await run_in_threadpool(self.alerts.list_messages, MAX_MESSAGES), "messages"
            )
        return await self._render(request, {})

    async def add(self, request: Request) -> Response:
        """One more watch; or the form again, with what is wrong beside each field."""
        form = await self.shell.read_form(request)
        typed = {name: form.get(name, "")[:2100] for name in _FIELD_PARSERS}
        problems = _find_problems(typed)
        if not problems and typed["webhook"]:
            why = await run_in_threadpool(self.alerts.check_webhook, parse_webhook(typed["webhook"]))
            problems = {"webhook": sentence(why)} if why else {}
        if problems:
            return await self._render(request, typed, problems, 422)
        try:
            return await self.shell.run_command(request, AddAlert(parse_alert(**typed)), PAGE_URL)
        except VedetteError as error:
            return await self._render(request, typed, {"form": sentence(str(error))}, 422)

    async def remove(self, request: Request) -> Response:
        """A watch less; what it was told stays, should it come back."""
        form = await self.shell.read_form(request)
        try:
            return await self.shell.run_command(request, RemoveAlert(form.get("name", "")[:100]), PAGE_URL)
        except VedetteError as error:
            return await self._render(request, {}, {"form": sentence(str(error))}, 422)

    async def send_test(self, request: Request) -> Response:
        """A message without pages is sent at once; what came of it stands first among the messages."""
        form = await self.shell.read_form(request)
        try:
            await run_in_threadpool(self.alerts.send_test, form.get("name", "")[:100])
        except VedetteError as error:
            return await self._render(request, {}, {"form": sentence(str(error))}, 422)
        return RedirectResponse(f"{PAGE_URL}#messages", 303)

    async def _render(
        self, request: Request, typed: FormValues, problems: Problems | None = None, status: int = 200
    ) -> Response:
        watches = await run_in_threadpool(self.alerts.list_alerts)
        messages = await run_in_threadpool(self.alerts.list_messages, MAX_MESSAGES)
        told = {
            "watches": watches,
            "seen": ALERT_TABLE.paginate(request, watches),
            "sent": MESSAGE_TABLE.paginate(request, messages),
            "messages": messages,
            "failed": sum(describe_delivery(one) == "failed" for one in messages),
            "state_of": describe_delivery,
            "typed": typed,
            "wall_s": self.wall_clock(),
            "problems": problems or {},
        }
        return self.shell.render_page("watches.html", request, here="watches", title="Watches", status=status, **told)


def _find_problems(typed: FormValues) -> Problems:
    """What is wrong, by field; and with all of it, where each field is right."""
    found: Problems = {}
    for name, read in _FIELD_PARSERS.items():
        try:
            read(typed[name])
        except VedetteError as error:
            found[name] = sentence(str(error))
    if not found:
        try:
            parse_alert(**typed)
        except VedetteError as error:
            found["reader" if typed["reader"] and not typed["webhook"] else "place"] = sentence(str(error))
    return found
