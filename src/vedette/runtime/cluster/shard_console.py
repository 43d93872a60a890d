"""A shard's side of a gateway's console: the same services as on one machine, over the shard's folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from vedette.adapters.index_store.generations import Generations
from vedette.runtime.alerts.service import FolderAlertService, FolderNewPages
from vedette.runtime.monitoring.console import FolderMonitor
from vedette.runtime.monitoring.sites import FolderSiteService
from vedette.runtime.processes.settings import RuntimeSettings
from vedette.runtime.search.click_learning import IndexedPages


class ShardPageFacts:
    """Hosts and URLs of a shard's indexed pages, for the click learning of gateways."""

    def __init__(self, folder: Path) -> None:
        self._generations = Generations(folder)

    def find_hosts(self, ids: list[int]) -> dict[int, int]:
        """Find the number of each page's host; empty without an index."""
        generation = self._generations.current()
        return {} if generation is None else IndexedPages(generation).find_hosts(ids)

    def find_url(self, id_: int) -> str:
        """Find the URL of a page; empty if it is not indexed."""
        generation = self._generations.current()
        return "" if generation is None else IndexedPages(generation).find_url(id_)


class ShardConsole:
    """The services of a shard's folder, by the prefix of their verbs; it can be called from several threads."""

    def __init__(self, settings: RuntimeSettings) -> None:
        self._services: dict[str, object] = {
            "monitoring": FolderMonitor(settings.folder, settings.clock, settings.config),
            "sites": FolderSiteService(settings),
            "alerts": FolderAlertService(settings),
            "news": FolderNewPages(settings.folder),
            "pages": ShardPageFacts(settings.folder),
        }

    def find(self, verb: str) -> Callable[..., Any] | None:
        """Return the method for a verb such as ``sites.list_rules``; None if the verb is not for the console."""
        service, dot, method = verb.partition(".")
        found: Callable[..., Any] | None = getattr(self._services[service], method) if dot else None
        return found
