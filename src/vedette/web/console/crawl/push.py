"""The console's Push page: WebSub subscriptions, how far push signals are trusted, and ignored signals."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from vedette.adapters.push.push_store import CreditRow, IgnoredSignals, Subscription
from vedette.web.console.ui.layout import ConsoleShell
from vedette.web.console.ui.tables import Column, Table, find_csv
from vedette.web.push.ports import PushService

_STATE_LABELS = {
    "wanted": "not requested yet",
    "asked": "requested, not verified by the hub yet",
    "active": "active",
    "denied": "denied",
    "ended": "ended",
}


def describe_subscription(row: Subscription, has_address: bool) -> str:  # noqa: FBT001 - one of the inputs of the text
    """Describe the status of a WebSub subscription; without a public address no hub can push to us."""
    if not has_address and row.standing in {"wanted", "asked"}:
        return "waiting for serve.public_url"
    return _STATE_LABELS[row.standing]


_SUBSCRIPTION_TABLE: Table[Subscription] = Table(
    (
        Column("feed", "Feed", lambda row: row.topic),
        Column("hub", "Hub", lambda row: row.hub),
        Column("standing", "State", lambda row: row.standing),
        Column("heard", "Last push", lambda row: row.heard_wall_s or 0.0, is_number=True),
        Column("lease", "Expires", lambda row: row.lease_wall_s, is_number=True),
        Column("why", "Problem", lambda row: row.why),
    ),
    prefix="feeds",
)
_CREDIT_TABLE: Table[CreditRow] = Table(
    (
        Column("source", "Source", lambda row: row.source),
        Column("credit", "Credit", lambda row: row.credit.mean, is_number=True),
        Column("true", "Confirmed", lambda row: row.credit.came_true, is_number=True),
        Column("false", "Not confirmed", lambda row: row.credit.did_not, is_number=True),
        Column("signals", "Signals", lambda row: row.signals, is_number=True),
        Column("heard", "Last signal", lambda row: row.heard_s, is_number=True),
    ),
    prefix="credit",
)
_IGNORED_TABLE: Table[IgnoredSignals] = Table(
    (
        Column("source", "Source", lambda row: row.source),
        Column("why", "Reason", lambda row: row.why),
        Column("times", "Count", lambda row: row.times, is_number=True),
        Column("last", "Last seen", lambda row: row.last_s, is_number=True),
    ),
    prefix="ignored",
)


@dataclass(frozen=True, slots=True)
class PushPage:
    """The console's Push page."""

    shell: ConsoleShell
    push: PushService

    def show(self, request: Request) -> Response:
        """Show WebSub subscriptions and push signals, or export one of the tables as CSV."""
        status = self.push.get_status()
        tables = (
            (_SUBSCRIPTION_TABLE, status.subscriptions, "subscriptions"),
            (_CREDIT_TABLE, status.credits, "signal-credit"),
            (_IGNORED_TABLE, status.ignored, "ignored"),
        )
        if file := find_csv(request, *tables):
            return file
        return self.shell.render_page(
            "push.html",
            request,
            here="push",
            title="Push",
            push=status,
            active=sum(row.standing == "active" for row in status.subscriptions),
            subscriptions=_SUBSCRIPTION_TABLE.paginate(request, status.subscriptions),
            credits=_CREDIT_TABLE.paginate(request, status.credits),
            ignored=_IGNORED_TABLE.paginate(request, status.ignored),
            standing_words=describe_subscription,
        )
