"""The console's Watches page: alerts on new pages, and the deliveries to their webhooks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

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
from vedette.web.console.ports.alerts import AlertLine, AlertService, SentMessage
from vedette.web.console.ui.forms import FormValues, Problems, find_problem, find_problems
from vedette.web.console.ui.layout import ConsoleShell, read_form
from vedette.web.console.ui.tables import Column, Table, find_csv
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
    """Describe the delivery status of an alert's webhook message in a word or two."""
    message = sent.delivery
    if message.next_s is not None:
        return "waiting" if not message.tries else "retrying"
    return "failed" if message.error else "delivered" if message.tries else "sending"


ALERT_TABLE: Final = Table[AlertLine](
    (
        Column("name", "Name", lambda alert: alert.watch.name),
        Column("place", "Where", lambda alert: alert.watch.place or None),
        Column("query", "Query", lambda alert: alert.watch.query or None),
        Column("webhook", "Webhook", lambda alert: alert.watch.webhook or None),
        Column("items", "New pages", lambda alert: alert.items, is_number=True),
        Column("since", "Since", lambda alert: alert.watch.added_s, is_number=True),
    ),
    default_sort="name",
)
MESSAGE_TABLE: Final = Table[SentMessage](
    (
        Column("at", "Created", lambda sent: sent.delivery.at_s, is_number=True),
        Column("watch", "Watch", lambda sent: sent.name or None),
        Column("state", "State", describe_delivery),
        Column("tries", "Attempts", lambda sent: sent.delivery.tries, is_number=True),
        Column("error", "Error", lambda sent: sent.delivery.error or None),
        Column("id", "ID", lambda sent: sent.delivery.id),
    ),
    default_sort="-at",
    prefix="sent",
)


@dataclass(frozen=True, slots=True)
class AlertsPage:
    """The console's alerts page, and the POST handlers that add, remove and test an alert."""

    shell: ConsoleShell
    alerts: AlertService
    wall_clock: Callable[[], float]

    def show(self, request: Request) -> Response:
        """Show all alerts and the latest webhook messages."""
        return self._render(request, {})

    def add(self, request: Request) -> Response:
        """Add an alert from its form, or show the form again with the problem of each field."""
        form = read_form(request)
        typed = {name: form.get(name, "")[:2100] for name in _FIELD_PARSERS}
        problems = _find_problems(typed)
        if not problems and typed["webhook"]:
            why = self.alerts.check_webhook(parse_webhook(typed["webhook"]))
            problems = {"webhook": sentence(why)} if why else {}
        if problems:
            return self._render(request, typed, problems)
        try:
            return self.shell.run_command(request, AddAlert(parse_alert(**typed)), PAGE_URL)
        except VedetteError as error:
            return self._render(request, typed, {"form": sentence(str(error))})

    def remove(self, request: Request) -> Response:
        """Remove an alert; its record of sent messages stays, in case it is added again."""
        try:
            return self.shell.run_command(request, RemoveAlert(_read_name(request)), PAGE_URL)
        except VedetteError as error:
            return self._render(request, {}, {"form": sentence(str(error))})

    def send_test(self, request: Request) -> Response:
        """Send an alert's webhook a test message without pages, and show its outcome first in the list."""
        try:
            self.alerts.send_test(_read_name(request))
        except VedetteError as error:
            return self._render(request, {}, {"form": sentence(str(error))})
        return RedirectResponse(f"{PAGE_URL}#messages", 303)

    def _render(self, request: Request, typed: FormValues, problems: Problems | None = None) -> Response:
        alerts, messages = self.alerts.list_alerts(), self.alerts.list_messages(MAX_MESSAGES)
        if file := find_csv(request, (ALERT_TABLE, alerts, "watches"), (MESSAGE_TABLE, messages, "messages")):
            return file
        return self.shell.render_page(
            "watches.html",
            request,
            here="watches",
            title="Watches",
            watches=alerts,
            seen=ALERT_TABLE.paginate(request, alerts),
            sent=MESSAGE_TABLE.paginate(request, messages),
            messages=messages,
            failed=sum(describe_delivery(one) == "failed" for one in messages),
            state_of=describe_delivery,
            typed=typed,
            wall_s=self.wall_clock(),
            problems=problems or {},
        )


def _read_name(request: Request) -> str:
    return read_form(request).get("name", "")[:100]


def _find_problems(typed: FormValues) -> Problems:
    """Return what is wrong with the alert form, by field; if each field is valid, check them together."""
    found = find_problems(typed, _FIELD_PARSERS)
    if not found and (wrong := find_problem(lambda: parse_alert(**typed))):
        found["reader" if typed["reader"] and not typed["webhook"] else "place"] = wrong
    return found
