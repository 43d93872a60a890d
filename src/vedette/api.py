"""The Python API: open a data folder, add sites, crawl and search them; load policies and run lab experiments.

``import vedette`` exposes everything here and imports this module on first use. The command line is built on the same
calls.
"""

import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from vedette.adapters.clock import Clock, start_clock
from vedette.adapters.crawl_store.data_folder import lock_folder
from vedette.adapters.crawl_store.reader import open_state_reader
from vedette.adapters.crawl_store.store import SiteRow
from vedette.config import Config, load, override, parse_duration
from vedette.config.site_settings import site_of_text
from vedette.discover.urls.scope import read_site
from vedette.errors import SiteError, StoreBusy, UsageError
from vedette.fetch.connect_to import parse_override
from vedette.fetch.request import build_user_agent
from vedette.model import Site
from vedette.runtime.commands.client import check_crawled, run_command
from vedette.runtime.processes.run import Note, Status, check_sites, run_to_end
from vedette.runtime.processes.settings import RuntimeSettings
from vedette.serve.slate import SearchRequest, SearchResult, Slate
from vedette.version import __version__
from vedette.web.commands.ads_commands import AdCommand
from vedette.web.commands.commands import AddSite, Command, RemoveSite

# The index and the lab are imported where they are used: adding a site should not wait for them.
if TYPE_CHECKING:
    from vedette.lab.core.run_folder import Row
    from vedette.runtime.search.searcher import FolderSearch

__all__ = [
    "CrawlOptions",
    "CrawlSummary",
    "DataFolder",
    "SearchResult",
    "Site",
    "Slate",
    "load_policy",
    "open_folder",
    "run_experiment",
]

ACTOR = "the Python API"
StrPath = str | os.PathLike[str]


class CrawlOptions(TypedDict, total=False):
    """Options of a crawl in the Python API; omitted ones come from the folder's configuration.

    max_pages      stop after that many pages
    contact        email address or URL where you can be reached; required for public hosts
    delay          delay after each response of a host, such as "500ms"
    allow_private  allow private and loopback addresses
    connect_to     connection overrides such as "example.org:80=127.0.0.1:8000"; "*" matches any host or port
    patience       how long to wait for troubled hosts when nothing else is left (default: "5min")
    speed          for a synthetic web: how many times faster its time runs
    """

    max_pages: int | None
    contact: str | None
    delay: str | None
    allow_private: bool
    connect_to: Sequence[str]
    patience: str
    speed: float


class SearchFilters(TypedDict, total=False):
    """Filters of a search in the Python API, besides its query.

    page                 which page of results, from 1
    site                 a host, or the beginning of a path on it: "docs.example.org/api/"
    kind, language       such as "pdf" and "de"
    after_s, before_s    dates of pages, in seconds since 1970
    """

    page: int
    site: str
    kind: str
    language: str
    after_s: float | None
    before_s: float | None


@dataclass(frozen=True, slots=True)
class CrawlSummary:
    """Summary of a crawl that the Python API ran.

    ``ending`` is "done", "stopped" (by a signal or by ``max_pages``) or "stuck" (only hosts in trouble were left);
    ``numbers`` has everything that ``vedette crawl --json`` prints.
    """

    ending: str
    pages: int
    seconds: float
    numbers: Mapping[str, Any] = field(repr=False)


class DataFolder:
    """A data folder in the Python API: its sites, pages and index. Opening one creates nothing.

    >>> import tempfile
    >>> folder = open_folder(tempfile.mkdtemp())
    >>> folder.add_site("https://example.org/docs/", scope="prefix", delay="2s").delay_s
    2.0
    >>> [site.start for site in folder.sites()]
    ['https://example.org/docs/']
    >>> folder.search("consumer lag").results
    ()
    """

    def __init__(self, config: Config, actor: str = ACTOR) -> None:
        self.config = config
        self.actor = actor
        self.path = config.store.data
        self._clock = start_clock(time.time(), 1.0)
        self._search: FolderSearch | None = None

    def __repr__(self) -> str:
        return f"DataFolder({str(self.path)!r})"

    def sites(self) -> list[Site]:
        """Return the sites of the data folder, paused ones too."""
        return [row.site for row in self.site_rows()]

    def site_rows(self) -> list[SiteRow]:
        """Return the sites of the data folder with whether they are paused; none if there is no folder yet."""
        if not (self.path / "state.db").exists():
            return []
        with open_state_reader(self.path) as state:
            return state.store.list_sites()

    def add_site(self, url: str, **settings: object) -> Site:
        """Add a site to the data folder, or replace its settings; create the folder if it does not exist.

        Settings have the names and values of ``vedette sites set``, such as ``scope="prefix"``, ``delay="2s"``,
        ``exclude=["*.zip$"]``, ``allow_private=True``. A process running on the folder applies them at once.
        """
        site = site_of_text(url, settings)
        self.run_command(AddSite(site))
        return site

    def remove_site(self, url: str, *, with_pages: bool = False) -> None:
        """Remove a site from the data folder; its pages stay unless ``with_pages`` is set."""
        self.run_command(RemoveSite(read_site(url).start, with_pages=with_pages))

    def run_command(self, command: Command | AdCommand) -> dict[str, Any]:
        """Run an operator's command on the data folder, in its coordinator or here; the log names ``actor``.

        Return what was ``done``, in words, and whether a ``running`` process applies it at once.
        """
        return run_command(self.path, command, self.actor)

    def crawl(
        self,
        *sites: str | Site,
        on_status: Callable[[Status], object] = lambda _: None,
        on_note: Note | None = None,
        **options: Unpack[CrawlOptions],
    ) -> CrawlSummary:
        """Crawl the data folder's sites until nothing is left; by default all that are not paused.

        Robots.txt is obeyed, and pages fetched before are not fetched again. Ctrl-C stops it cleanly, and the next call
        continues. It forks: call it before starting other threads. ``on_status`` gets the numbers of the running crawl
        several times a second; ``on_note`` gets messages for people (default: the logger "vedette").
        """
        named = tuple(read_site(site) if isinstance(site, str) else site for site in sites)
        settings = build_settings(self.config, named or self._active_sites(), **options)
        notes: dict[str, Any] = {} if on_note is None else {"on_note": on_note}
        check_sites(settings, **notes)
        numbers = run_to_end(settings, on_status, **notes)
        return CrawlSummary(numbers["ending"], numbers.get("pages", 0), numbers["seconds"], numbers)

    def _active_sites(self) -> tuple[Site, ...]:
        if sites := tuple(row.site for row in self.site_rows() if not row.paused):
            return sites
        raise SiteError(f"{self.path} has no site to crawl: pass one, or add one with add_site")

    def search(self, query: str, count: int = 10, **filters: Unpack[SearchFilters]) -> Slate:
        """Search the data folder, best results first; private sites too, since the folder is yours.

        The query is what people type in the search box. Pages fetched since the last search are indexed first.
        """
        self.update_index()
        return self.run_search(SearchRequest(query, count, **filters))

    def run_search(self, request: SearchRequest) -> Slate:
        """Search the data folder with the index as it is."""
        with open_state_reader(self.path) as state:
            private = tuple(row.site.start for row in state.store.list_sites() if row.site.secrets)
        return self._open_search().search(request._replace(allowed=private))

    def update_index(self) -> None:
        """Index what was fetched or imported since the last time, in the process running on the folder if any."""
        from vedette.runtime.indexing.indexer import catch_up

        check_crawled(self.path)
        try:
            lock = lock_folder(self.path)
        except StoreBusy:
            return
        with lock:
            catch_up(self.path, self._clock)

    def describe_incomplete(self) -> str:
        """Explain why the data folder's index may lack fetched pages; empty if it is complete."""
        return self._open_search().get_incomplete_reason()

    def _open_search(self) -> "FolderSearch":
        if self._search is None:
            from vedette.runtime.search.searcher import FolderSearch

            model = self.config.serve.embedding_model
            self._search = FolderSearch(self.path, self._clock, embedding_model=model)
        return self._search


def open_folder(
    path: StrPath | None = None, *, config: StrPath | Config | None = None, actor: str = ACTOR
) -> DataFolder:
    """Open a data folder for the Python API; it need not exist yet.

    ``config`` is a ``vedette.toml`` or a ``Config``.

    Without a path, the folder named in the configuration is used, by default ``vedette-data``. ``actor`` is the name
    that the console's log shows for changes.

    >>> open_folder("my-data")
    DataFolder('my-data')
    """
    settings = config if isinstance(config, Config) else load(None if config is None else Path(config))
    return DataFolder(settings if path is None else override(settings, {"store.data": os.fspath(path)}), actor)


def build_settings(config: Config, sites: Sequence[Site], **options: Unpack[CrawlOptions]) -> RuntimeSettings:
    """Build the runtime settings of a crawl's process tree from the Python API's options."""
    typed = {"crawl.contact": options.get("contact"), "crawl.delay": options.get("delay")}
    config = override(config, {key: value for key, value in typed.items() if value is not None})
    clock: Clock = start_clock(time.time(), options.get("speed", 1.0))
    return RuntimeSettings(
        config=config,
        clock=clock,
        folder=config.store.data,
        agent=build_user_agent(__version__, config.crawl.contact),
        sites=tuple(sites),
        detours=tuple(map(parse_override, options.get("connect_to", ()))),
        allow_private=options.get("allow_private", False),
        max_pages=options.get("max_pages"),
        patience_s=parse_duration(options.get("patience", "5min")),
        workers=config.crawl.workers,
    )


def load_policy(name: str, stage: str | None = None) -> Any:  # noqa: ANN401 - each stage has its own shape of policy
    """Load a policy by name, or by path ``package.module:Name``; the latter must pass the conformance suite.

    ``stage`` is "order", "refresh" or "discover"; it may be omitted if only one stage has the name. ``default`` is the
    policy of a stage that runs live.

    >>> load_policy("nutch").name
    'nutch'
    >>> load_policy("default", "refresh").name
    'expected-gain'
    >>> load_policy("unifrom")
    Traceback (most recent call last):
    vedette.errors.UsageError: there is no policy "unifrom"; did you mean uniform?
    """
    from vedette.lab.core.conformance import STAGES
    from vedette.lab.core.registry import DEFAULT, find_policy, is_plugin, load_policies, suggest_name

    stages = [stage] if stage else list(STAGES.values())
    if name == DEFAULT and stage is None:
        raise UsageError(f"every stage has a policy named default: pass one of these stages: {', '.join(stages)}")
    if not is_plugin(name):
        known = {each: load_policies(each) for each in stages}
        found = [each for each, policies in known.items() if name in policies or name == DEFAULT]
        if len(found) > 1:
            raise UsageError(f'several stages have a policy "{name}": pass one of these stages: {", ".join(found)}')
        if not found:
            names = dict.fromkeys(policy for policies in known.values() for policy in policies)
            raise UsageError(f'there is no policy "{name}"; {suggest_name(name, names).partition(" Available")[0]}')
        return find_policy(found[0], name)
    errors = []
    for each in stages:
        try:
            return find_policy(each, name)
        except UsageError as error:
            errors.append(error)
    raise errors[0]


def run_experiment(
    name: str,
    *,
    worlds: Sequence[str] = (),
    policies: Sequence[str] = (),
    budgets: Sequence[float] = (),
    seeds: int = 10,
    jobs: int = 0,
    folder: StrPath | None = None,
) -> list["Row"]:
    """Run a lab experiment; return a row of numbers for each world, policy, budget and seed.

    Names are those of ``vedette lab list``; your own policy is ``package.module:Name``, and omitted arguments take the
    experiment's defaults. With a ``folder`` the run is stored there, and the same call resumes it. ``jobs`` is how many
    cells run at once, by default one per core. They run in separate processes that import your script, so call it below
    ``if __name__ == "__main__"``. It needs ``pip install vedette[lab]``.
    """
    from vedette.lab.core.plan import RunRequest, build_plan
    from vedette.lab.core.run_folder import RunFolder
    from vedette.lab.core.runner import run_cells

    plan = build_plan(RunRequest([name], worlds, policies, budgets, seeds))
    with tempfile.TemporaryDirectory(prefix="vedette-lab-") as scratch:
        run = RunFolder(Path(scratch if folder is None else folder), plan)
        run_cells(run, len(plan.cells), lambda *_: None, jobs)
        run.finish()
        return run.load_rows()
