"""The console's page on push: what is subscribed to, how far signals are believed, and what was not believed at all."""

from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.adapters.push.push_store import CreditRow, Ignored, Subscription
from vedette.web.console.ui.layout import Shell
from vedette.web.console.ui.tables import Column, Table
from vedette.web.push.ports import Push, PushLook

__all__ = ["push_page_routes", "standing_words"]

_WORDS = {
    "wanted": "not asked yet",
    "asked": "asked, the hub has not asked back",
    "active": "pushed",
    "denied": "denied",
    "ended": "ended",
}


def standing_words(row: Subscription, has_address: bool) -> str:  # noqa: FBT001 - half of what decides the words
    """How a subscription stands; without an address of our own no hub can push anything."""
    if not has_address and row.standing in {"wanted", "asked"}:
        return "waits for serve.public_url"
    return _WORDS[row.standing]


_SUBSCRIPTIONS: Table[Subscription] = Table(
    (
        Column("feed", "Feed", lambda row: row.topic),
        Column("hub", "Hub", lambda row: row.hub),
        Column("standing", "Standing", lambda row: row.standing),
        Column("heard", "Last push", lambda row: row.heard_wall_s or 0.0, is_number=True),
        Column("lease", "Until", lambda row: row.lease_wall_s, is_number=True),
        Column("why", "Trouble", lambda row: row.why),
    ),
    key="feeds",
)
_CREDITS: Table[CreditRow] = Table(
    (
        Column("source", "Source", lambda row: row.source),
        Column("credit", "Credit", lambda row: row.credit.mean, is_number=True),
        Column("true", "Came true", lambda row: row.credit.came_true, is_number=True),
        Column("false", "Did not", lambda row: row.credit.did_not, is_number=True),
        Column("signals", "Signals", lambda row: row.signals, is_number=True),
        Column("heard", "Last heard", lambda row: row.heard_s, is_number=True),
    ),
    key="credit",
)
_IGNORED: Table[Ignored] = Table(
    (
        Column("source", "Source", lambda row: row.source),
        Column("why", "Why", lambda row: row.why),
        Column("times", "Times", lambda row: row.times, is_number=True),
        Column("last", "Last", lambda row: row.last_s, is_number=True),
    ),
    key="ignored",
)


def push_page_routes(shell: Shell, push: Push) -> list[Route]:
    """The page."""
    return [Route("/push", _Page(shell, push).shown)]


@dataclass(frozen=True, slots=True)
class _Page:
    """The handler, with what it needs."""

    shell: Shell
    push: Push

    async def shown(self, request: Request) -> Response:
        """How push stands; each table is a file, too."""
        look = await run_in_threadpool(self.push.look)
        for table, rows, name in self._tables(look):
            if table.wants_csv(request):
                return table.csv(request, rows, name)
        told: dict[str, Any] = {
            "push": look,
            "active": sum(row.standing == "active" for row in look.subscriptions),
            "subscriptions": _SUBSCRIPTIONS.seen(request, look.subscriptions),
            "credits": _CREDITS.seen(request, look.credits),
            "ignored": _IGNORED.seen(request, look.ignored),
            "standing_words": standing_words,
        }
        return self.shell.page("push.html", request, here="push", title="Push", **told)

    def _tables(self, look: PushLook) -> list[tuple[Table[Any], tuple[Any, ...], str]]:
        return [
            (_SUBSCRIPTIONS, look.subscriptions, "subscriptions"),
            (_CREDITS, look.credits, "signal-credit"),
            (_IGNORED, look.ignored, "ignored"),
        ]
