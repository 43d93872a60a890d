"""The pages on which an operator does something: sites, their pages, hosts to add, rules for results, and the log."""

from starlette.routing import BaseRoute

from vedette.web.console.adding import adding_routes
from vedette.web.console.explain import explain_routes
from vedette.web.console.listing import listing_routes
from vedette.web.console.results import result_routes
from vedette.web.console.shell import Shell
from vedette.web.console.site_ports import SiteDesk
from vedette.web.console.sites import site_routes

__all__ = ["operating_routes"]


def operating_routes(shell: Shell, desk: SiteDesk) -> list[BaseRoute]:
    """All of them, to be mounted behind the guard."""
    return [
        *site_routes(shell, desk),
        *adding_routes(shell, desk),
        *listing_routes(shell, desk),
        *explain_routes(shell, desk),
        *result_routes(shell, desk),
    ]
