"""The console's Observers page: observers, their hosts and reasons, and link speeds."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from vedette.web.console.ui.layout import ConsoleShell
from vedette.web.console.ui.tables import Column, Table, find_csv
from vedette.web.observers.ports import ObservedHostView, ObserverService

_MAX_KEPT = 10

_HOST_TABLE: Table[ObservedHostView] = Table(
    (
        Column("host", "Host", lambda row: row.host),
        Column("observer", "Observer", lambda row: row.observer),
        Column("why", "Reason", lambda row: row.why),
        Column("looks", "Observations", lambda row: row.looks, is_number=True),
        Column("changed", "Changed", lambda row: row.change_share or 0.0, is_number=True),
        Column("sent", "Sent on average", lambda row: row.sent_per_look or 0.0, is_number=True),
        Column("size", "Page size", lambda row: row.page_bytes or 0.0, is_number=True),
        Column("remote", "By observer", lambda row: row.remote_s or 0.0, is_number=True),
        Column("direct", "From home", lambda row: row.direct_s or 0.0, is_number=True),
    ),
    prefix="hosts",
)


@dataclass(frozen=True, slots=True)
class ObserversPage:
    """The console's Observers page."""

    shell: ConsoleShell
    observers: ObserverService

    def show(self, request: Request) -> Response:
        """Show observers, their links and their hosts, or export the hosts as CSV."""
        found, hosts = self.observers.list_observers(), self.observers.list_hosts()
        if file := find_csv(request, (_HOST_TABLE, hosts, "observed-hosts")):
            return file
        return self.shell.render_page(
            "observers.html",
            request,
            here="observers",
            title="Observers",
            observers=found,
            active=[one for one in found if one.revoked_s is None],
            hosts=_HOST_TABLE.paginate(request, hosts),
            kept=self.observers.list_kept()[:_MAX_KEPT],
        )
