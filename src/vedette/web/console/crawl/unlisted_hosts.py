"""The console's Discover page: unlisted hosts, to which pages link but which belong to no site."""

from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from vedette.errors import VedetteError
from vedette.web.commands.commands import Dismiss
from vedette.web.commands.rule_text import parse_rule
from vedette.web.console.ports.sites import SiteService, UnlistedHost
from vedette.web.console.ui.forms import Problems
from vedette.web.console.ui.layout import ConsoleShell, read_form
from vedette.web.console.ui.tables import Column, Table, find_csv
from vedette.web.formatting import sentence

MAX_UNLISTED_HOSTS: Final = 1000
UNLISTED_HOST_TABLE: Final = Table[UnlistedHost](
    (
        Column("host", "Host", lambda host: host.host),
        Column("pages", "Linking pages", lambda host: host.pages, is_number=True),
        Column("domains", "Linking domains", lambda host: host.domains, is_number=True),
        Column("since", "First seen", lambda host: host.first_s, is_number=True),
        Column("example", "Example", lambda host: host.example),
    ),
    default_sort="-pages",
)


@dataclass(frozen=True, slots=True)
class UnlistedHostsPage:
    """The console's page of unlisted hosts, and the POST handler that dismisses one."""

    shell: ConsoleShell
    sites: SiteService

    def show(self, request: Request, problems: Problems | None = None) -> Response:
        """Show the unlisted hosts that pages link to most."""
        hosts = self.sites.list_unlisted_hosts(MAX_UNLISTED_HOSTS)
        if file := find_csv(request, (UNLISTED_HOST_TABLE, hosts, "hosts")):
            return file
        return self.shell.render_page(
            "unlisted_hosts.html",
            request,
            here="discover",
            title="Discover",
            hosts=hosts,
            seen=UNLISTED_HOST_TABLE.paginate(request, hosts),
            most=MAX_UNLISTED_HOSTS,
            problems=problems or {},
        )

    def dismiss(self, request: Request) -> Response:
        """Dismiss an unlisted host, so that it is not suggested again."""
        try:
            host = parse_rule("block", "", read_form(request).get("host", "")).value  # a host, as in rules
            return self.shell.run_command(request, Dismiss(host), "/console/discover")
        except VedetteError as error:
            return self.show(request, {"form": sentence(str(error))})
