"""The console of a gateway: it gets what it shows from the shards or from PostgreSQL.

A shard that does not respond is left out, and ``describe_missing`` says so on the page.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from vedette.adapters.crawl_store.url_list import ListedUrl, UrlFilter, UrlPage
from vedette.adapters.registry.database import connect
from vedette.adapters.registry.directory import Machine, list_machines
from vedette.adapters.registry.registry import ShardStatus, list_shards
from vedette.adapters.registry.registry import load_cluster as load_registry
from vedette.engine.search.gateway import join_id, split_id
from vedette.errors import UsageError
from vedette.model import Site, origin_of, partition_of
from vedette.runtime.ads.storage import POLICY_SETTING
from vedette.runtime.alerts.webhooks import WebhookSender
from vedette.runtime.cluster.gateway import ClusterDirectory
from vedette.runtime.cluster.merging import (
    merge_budget,
    merge_crawl,
    merge_discovery,
    merge_gains,
    merge_hosts,
    merge_latest,
    merge_refresh,
    merge_storage,
    merge_unlisted,
    sum_counts,
)
from vedette.runtime.cluster.remote_shards import RemoteShards
from vedette.runtime.monitoring.console import FAST_TTL_S, FolderMonitor
from vedette.runtime.processes.loop import print_error
from vedette.runtime.processes.settings import RuntimeSettings as ProcessSettings
from vedette.runtime.processes.throttle import CachedValue
from vedette.web.console.ports.alerts import AlertLine, SentMessage
from vedette.web.console.ports.cluster import ClusterStatus, MachineLine, ShardLine
from vedette.web.console.ports.monitoring import (
    BudgetReport,
    CrawlStatus,
    DiscoveryReport,
    HostList,
    RefreshStatus,
    RuntimeSettings,
    StorageStatus,
)
from vedette.web.console.ports.sites import (
    RemovalImpact,
    SiteLine,
    SitePreview,
    StoredRule,
    StoredSite,
    UnlistedHost,
)

# A page of the console may take longer than a search.
DEADLINE_S = 10.0
MAX_HOSTS = 1000
NAMES_TTL_S = 2.0


class ConsoleShards:
    """The shards as the console calls them, over its own connections, so that searches never wait for the console."""

    def __init__(self, directory: ClusterDirectory) -> None:
        self._directory = directory
        self._shards = RemoteShards(directory.load_addresses, directory.secret, DEADLINE_S)
        self._shards.start()
        self._missing: frozenset[int] = frozenset()

    def ask(self, verb: str, arguments: dict[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Call a verb in some shards."""
        refusals: dict[int, str] = {}
        found = self._shards.ask(verb, arguments, refusals)
        for shard, why in refusals.items():
            print_error(f"shard {shard} failed to answer the console ({verb}): {why}")
        self._missing = self._missing - found.keys() | (arguments.keys() - found.keys())
        return found

    def ask_all(self, verb: str, *arguments: object) -> dict[int, Any]:
        """Call a verb in all shards, with the same arguments."""
        return self.ask(verb, dict.fromkeys(self.list_numbers(), arguments))

    def ask_any(self, verb: str, *arguments: object) -> Any:  # noqa: ANN401 - of the verb's type
        """Return the reply of any shard to a call that all of them answer alike; None if none responds."""
        return next(iter(self.ask_all(verb, *arguments).values()), None)

    def ask_owner(self, url: str, verb: str, *arguments: object) -> Any:  # noqa: ANN401 - of the verb's type
        """Return the reply of the shard that owns a URL's host; raise ``UsageError`` with its reason if it refuses."""
        return self.ask_one(self._directory.find_shard(partition_of(origin_of(url).host)), verb, *arguments)

    def ask_one(self, shard: int, verb: str, *arguments: object) -> Any:  # noqa: ANN401 - of the verb's type
        """Return the reply of a shard; raise ``UsageError`` with its reason if it refuses, or does not respond."""
        refusals: dict[int, str] = {}
        found = self._shards.ask(verb, {shard: arguments}, refusals)
        if shard not in found:
            raise UsageError(refusals.get(shard, f"shard {shard} is not responding: try again in a moment"))
        return found[shard]

    def find_owner(self, url: str) -> int:
        """Return the shard that owns a URL's host."""
        return self._directory.find_shard(partition_of(origin_of(url).host))

    def list_numbers(self) -> tuple[int, ...]:
        """List the numbers of all shards."""
        return tuple(self._shards.numbers)

    def describe_missing(self) -> str:
        """Describe which shards have not responded recently; empty if all did."""
        missing = sorted(self._missing & set(self.list_numbers()))
        if not missing:
            return ""
        names = ", ".join(map(str, missing))
        return (
            f"Shard{'' if len(missing) == 1 else 's'} {names} did not respond, so the numbers here may be incomplete."
        )


class ClusterMonitor(FolderMonitor):
    """The console's ``Monitoring`` in a cluster. Searches are from all gateways, time series from this one."""

    def __init__(self, settings: ProcessSettings, dsn: str, shards: ConsoleShards) -> None:
        super().__init__(settings.folder, settings.clock, settings.config)
        self._dsn, self._shards = dsn, shards
        self._sum = CachedValue[CrawlStatus](FAST_TTL_S)
        self._settings = CachedValue[RuntimeSettings](FAST_TTL_S)

    def get_crawl_status(self) -> CrawlStatus:
        """Return the combined status of all shards."""
        return self._sum.get(self._load_sum)

    def list_hosts(self) -> HostList:
        """List the hosts in the queues of all shards."""
        merged = merge_hosts(list(self._shards.ask_all("monitoring.list_hosts").values()))
        return merged._replace(rows=merged.rows[:MAX_HOSTS])

    def get_refresh_status(self) -> RefreshStatus:
        """Return the combined refresh status of all shards."""
        return merge_refresh(list(self._shards.ask_all("monitoring.get_refresh_status").values()))

    def get_discovery_report(self) -> DiscoveryReport:
        """Return the combined discovery reports of all shards."""
        return merge_discovery(list(self._shards.ask_all("monitoring.get_discovery_report").values()))

    def get_budget_report(self, days: int) -> BudgetReport:
        """Return how all shards spent their fetch budgets."""
        return merge_budget(list(self._shards.ask_all("monitoring.get_budget_report", days).values()))

    def get_runtime_settings(self) -> RuntimeSettings:
        """Return the runtime settings, which are the same on all shards."""
        found: RuntimeSettings | None = self._shards.ask_any("monitoring.get_runtime_settings")
        return super().get_runtime_settings() if found is None else found

    def get_ad_policy(self) -> str:
        """Return the policy of ads that the operator has chosen at runtime; empty for the configured one."""
        settings = self._settings.get(self.get_runtime_settings)
        return settings.ads if POLICY_SETTING in settings.chosen else ""

    def list_gains(self, since_s: float) -> list[tuple[float, float]]:
        """List the search gains of refreshes in all shards."""
        return merge_gains(self._shards.ask_all("monitoring.list_gains", since_s).values())

    def get_storage_status(self) -> StorageStatus:
        """Return the disk usage of all shards, and the space left on the fullest disk."""
        found = self._shards.ask_all("monitoring.get_storage_status")
        return merge_storage(list(found.values()), f"{len(found)} shards, each on its machine")

    def _load_sum(self) -> CrawlStatus:
        told = load_crawl_sum(self._dsn)
        return merge_crawl(told, list(self._shards.ask_all("monitoring.get_crawl_status").values()))

    def load_cluster(self) -> ClusterStatus:
        """Load the machines and shards of the cluster for the console's Cluster page."""
        with connect(self._dsn) as connection:
            storage = load_registry(connection).storage
            machines, shards = list_machines(connection), list_shards(connection)
        lines = tuple(_build_shard_line(shard) for shard in shards)
        return ClusterStatus(tuple(_build_machine_line(one, lines) for one in machines), lines, bool(storage))


def load_crawl_sum(dsn: str) -> CrawlStatus:
    """Load the sum of the numbers that all shards last wrote to PostgreSQL."""
    with connect(dsn) as connection:
        shards = list_shards(connection)
    every = [shard.numbers for shard in shards if shard.numbers]

    def add(name: str) -> int:
        return sum(int(numbers.get(name, 0)) for numbers in every)

    def merge(name: str) -> dict[str, int]:
        return sum_counts(numbers.get(name, {}) for numbers in every)

    return CrawlStatus(
        is_running=any(shard.owner for shard in shards),
        sites=max((int(numbers.get("sites", 0)) for numbers in every), default=0),
        pages_per_s=sum(float(numbers.get("pages_per_s") or 0.0) for numbers in every),
        known=add("urls_known"),
        waiting=add("urls_waiting"),
        out=add("urls_out"),
        hosts=add("hosts"),
        waiting_why=merge("hosts_waiting"),
        statuses=merge("statuses"),
        failures=merge("failures"),
        refusals=merge("refusals"),
        in_trouble={host: why for numbers in every for host, why in numbers.get("hosts_in_trouble", {}).items()},
        trouble=next((str(numbers["trouble"]) for numbers in every if numbers.get("trouble")), ""),
    )


def load_crawl_counts(dsn: str) -> dict[str, float]:
    """Load the combined counts of all shards, for time series."""
    with connect(dsn) as connection:
        every = [shard.numbers for shard in list_shards(connection)]
    names = ("pages", "urls_known", "urls_waiting", "requests")
    return {name: float(sum(int(numbers.get(name, 0)) for numbers in every)) for name in names}


def _build_machine_line(machine: Machine, shards: Sequence[ShardLine]) -> MachineLine:
    own = [shard for shard in shards if shard.owner == machine.name]
    ages = [shard.copy_age_s for shard in own]
    copied = [age_s for age_s in ages if age_s is not None]
    return MachineLine(
        machine.name,
        machine.silent_s,
        machine.gateway,
        len(own),
        sum(shard.pages for shard in own),
        max(copied) if copied and len(copied) == len(ages) else None,
    )


def _build_shard_line(shard: ShardStatus) -> ShardLine:
    numbers = shard.numbers
    pages, known, requests = (int(numbers.get(name, 0)) for name in ("pages", "urls_known", "requests"))
    partitions = f"{shard.partitions[0]} to {shard.partitions[-1]}"
    return ShardLine(
        shard.number,
        partitions,
        shard.owner,
        shard.epoch,
        shard.lease_s,
        pages,
        known,
        requests,
        shard.waiting,
        shard.copy_age_s,
    )


class ClusterSites:
    """The console's ``SiteService`` in a cluster: all shards have the same sites, and each URL has an owner."""

    def __init__(self, shards: ConsoleShards) -> None:
        self._shards = shards

    def list_sites(self) -> list[SiteLine]:
        """List all sites: pages and URLs are summed over all shards, state and problems come from the host's shard."""
        lines: dict[int, list[SiteLine]] = self._shards.ask_all("sites.list_sites")
        found: dict[str, list[tuple[int, SiteLine]]] = {}
        for shard, own in lines.items():
            for line in own:
                found.setdefault(line.site.start, []).append((shard, line))
        return [self._sum_lines(start, one) for start, one in found.items()]

    def _sum_lines(self, start: str, lines: list[tuple[int, SiteLine]]) -> SiteLine:
        owner = self._shards.find_owner(start)
        line = next((line for shard, line in lines if shard == owner), lines[0][1])
        return line._replace(
            pages=sum(each.pages for _, each in lines),
            known=sum(each.known for _, each in lines),
            fetched_s=max((each.fetched_s for _, each in lines if each.fetched_s is not None), default=None),
        )

    def find_site(self, start: str) -> StoredSite | None:
        """Find a site by its start URL."""
        return next((StoredSite(one.site, one.paused) for one in self.list_sites() if one.site.start == start), None)

    def preview_site(self, site: Site, asked_s: float | None = None) -> SitePreview:
        """Preview a site before it is added, from the shard that owns its host."""
        found: SitePreview = self._shards.ask_owner(site.start, "sites.preview_site", site, asked_s)
        return found

    def list_urls(self, which: UrlFilter, after: int, most: int) -> UrlPage:
        """List the URLs of a count, one shard after another; the cursor names the shard.

        Positions and the number of known URLs only cover the shards that were scanned.
        """
        shards = self._shards.list_numbers()
        start, place = split_id(after)
        rows, scanned, known = list[ListedUrl](), 0, 0
        for number, shard in enumerate(shards):
            if shard < start:
                continue
            arguments = (which, place if shard == start else 0, most - len(rows))
            page: UrlPage | None = self._shards.ask("sites.list_urls", {shard: arguments}).get(shard)
            if page is None:
                continue
            rows += [row._replace(id=join_id(shard, row.id)) for row in page.rows]
            scanned, known = scanned + page.scanned, known + page.known
            if page.after is not None:
                return UrlPage(tuple(rows), join_id(shard, page.after), scanned, known, place)
            if len(rows) >= most and number + 1 < len(shards):
                return UrlPage(tuple(rows), join_id(shards[number + 1], 0), scanned, known, place)
        return UrlPage(tuple(rows), None, scanned, known, place)

    def preview_removal(self, start: str) -> RemovalImpact:
        """Count what removing a site would delete in all shards."""
        found: list[RemovalImpact] = list(self._shards.ask_all("sites.preview_removal", start).values())
        return RemovalImpact(sum(one.known for one in found), sum(one.pages for one in found))

    def explain_url(self, url: str) -> dict[str, Any]:
        """Explain a URL, using the shard that owns its host."""
        found: dict[str, Any] = self._shards.ask_owner(url, "sites.explain_url", url)
        return found

    def list_unlisted_hosts(self, most: int) -> list[UnlistedHost]:
        """List hosts that are linked from pages of any shard but are not part of a site, most linked first."""
        return merge_unlisted(self._shards.ask_all("sites.list_unlisted_hosts", most).values(), most)

    def list_rules(self) -> list[StoredRule]:
        """List the operator's rules, which every shard has."""
        return self._shards.ask_any("sites.list_rules") or []


class ClusterAlerts:
    """The console's ``AlertService`` in a cluster: alerts are the same on all shards, and all messages are shown."""

    def __init__(self, settings: ProcessSettings, shards: ConsoleShards) -> None:
        self._shards = shards
        self._sender = WebhookSender(replace(settings, shard=None))
        self._names = CachedValue[frozenset[str]](NAMES_TTL_S)

    def list_alerts(self) -> list[AlertLine]:
        """List the alerts, each with its number of new pages in all shards."""
        found: dict[int, list[AlertLine]] = self._shards.ask_all("alerts.list_alerts")
        counts = sum_counts({line.watch.name: line.items for line in lines} for lines in found.values())
        lines = {line.watch.name: line for lines in found.values() for line in lines}
        return [line._replace(items=counts[name]) for name, line in lines.items()]

    def list_messages(self, most: int) -> list[SentMessage]:
        """List the latest webhook messages of all shards."""
        found = self._shards.ask_all("alerts.list_messages", most).values()
        return merge_latest(found, lambda sent: sent.delivery.at_s, most)

    def check_webhook(self, webhook: str) -> str:
        """Return why alerts may not be sent to a webhook URL; empty if they may."""
        return self._sender.find_refusal(webhook)

    def send_test(self, name: str) -> SentMessage:
        """Have a shard send an alert's webhook a test message."""
        shard = next(iter(self._shards.ask_all("alerts.list_alerts")), None)
        if shard is None:
            raise UsageError("no shard is responding: try again in a moment")
        sent: SentMessage = self._shards.ask_one(shard, "alerts.send_test", name)
        return sent

    def has_alert(self, name: str) -> bool:
        """Check whether an alert of this name exists, or existed a moment ago."""
        return name in self._names.get(lambda: frozenset(line.watch.name for line in self.list_alerts()))
