"""The pages on which an operator does something: sites, their pages, hosts to add, rules for results, and the log."""

from starlette.routing import BaseRoute

from vedette.web.console.crawl.add_site import adding_routes
from vedette.web.console.crawl.sites import site_routes
from vedette.web.console.crawl.url_list import listing_routes
from vedette.web.console.explain.page import explain_routes
from vedette.web.console.ports.sites import SiteDesk
from vedette.web.console.search.rules import result_routes
from vedette.web.console.ui.layout import Shell

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
