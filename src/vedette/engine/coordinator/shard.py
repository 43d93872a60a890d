"""The shard of a coordinator: which hosts it owns, where links to others go, and turns at shared addresses.

One machine owns the whole web (``WholeWeb``): every link is its own, and no address is shared with anyone. In a cluster
a coordinator owns a range of the partitions (``PartitionShard``). Links to other partitions go to an outbox, in the
transaction that saves their page. An address is requested by one shard at a time: the first request needs a turn, and a
shard gives its turn up when another one wants it and nothing of its own is in flight there.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from vedette.engine.coordinator.results import LinkGroup
from vedette.engine.coordinator.state import FoundUrl, HostState
from vedette.engine.messages import FetchSuccess, FetchTask
from vedette.engine.ports import LinkOrigin
from vedette.fetch.robots.state import RobotsFailure, RobotsResponse
from vedette.model import PARTITIONS, Origin, origin_of, partition_of, registrable_domain

# A turn at an address lasts at least this long, so that shards do not spend their time on passing it around.
MIN_TURN_WALL_S = 2.0
MAX_CACHED_HOSTS = 100_000
# A robots.txt that another shard did not fetch in this time counts as unavailable.
MAX_ROBOTS_WAIT_S = 600.0


@dataclass(frozen=True, slots=True)
class ShardMap:
    """Which shard owns each partition: shard ``numbers[i]`` those from ``firsts[i]`` up to the next of ``firsts``.

    After a split, the numbers of the shards are no longer in the order of their partitions.
    """

    firsts: tuple[int, ...]
    numbers: tuple[int, ...]

    def find(self, partition: int) -> int:
        """Return the shard that owns a partition.

        >>> split_evenly(4).find(255), split_evenly(4).find(256), split_evenly(3).find(1023)
        (0, 1, 2)
        >>> ShardMap((0, 256, 512), (0, 2, 1)).find(300)
        2
        """
        return self.numbers[bisect_right(self.firsts, partition) - 1]

    def partitions(self, shard: int) -> range:
        """Return the partitions of a shard.

        >>> split_evenly(4).partitions(3)
        range(768, 1024)
        """
        place = self.numbers.index(shard)
        return range(self.firsts[place], (*self.firsts, PARTITIONS)[place + 1])


def split_evenly(shards: int) -> ShardMap:
    """Split the partitions evenly among shards."""
    return ShardMap(tuple(number * PARTITIONS // shards for number in range(shards)), tuple(range(shards)))


class ForeignRobots(NamedTuple):
    """A robots.txt that another shard is to fetch, since it was redirected there; or what came of it.

    ``origin`` is the URL of the robots.txt that is read in the end, ``url`` what is to be requested for it.
    """

    origin: str
    url: str = ""
    hops: int = 0
    response: RobotsResponse | None = None
    failure: RobotsFailure | None = None


class ForeignCanonical(NamedTuple):
    """A question whether the canonical URL that a page names can be shown, to the shard that owns it; or the answer."""

    url: str
    page: str
    is_there: bool | None = None


class ForeignLinks(NamedTuple):
    """Links of one page to hosts of another shard, as they are sent; ``source`` is the page's URL.

    ``texts`` are their anchor texts, if the page has any for others to know. A message about a robots.txt or a
    canonical URL has no links.
    """

    urls: tuple[str, ...]
    depth: int
    hops: int = 0
    front: int | None = None
    source: str | None = None
    from_list: bool = False
    is_refetch: bool = False
    via: LinkOrigin | None = None
    texts: tuple[str, ...] = ()
    robots: ForeignRobots | None = None
    canonical: ForeignCanonical | None = None

    def to_group(self, urls: Sequence[str]) -> LinkGroup:
        """Build the group of links for admission by their owner, with those URLs that its rules allow."""
        found = FoundUrl(
            "",
            self.depth,
            self.hops,
            self.front,
            self.source,
            from_list=self.from_list,
            via=self.via,
            is_refetch=self.is_refetch,
            texts=self.texts if len(urls) == len(self.urls) else (),
        )
        return urls, found


class LinkOutbox(Protocol):
    """Where a shard puts links for others, in the open transaction."""

    def put_links(self, links: Mapping[int, Sequence[ForeignLinks]]) -> None:
        """Put links into the outbox, by the shard that owns their hosts."""


class CanonicalAnswers(Protocol):
    """What a shard has answered about its URLs that pages of others name as canonical."""

    def list_changed(self, urls: Sequence[str]) -> Sequence[ForeignCanonical]:
        """List the answers about URLs that were fetched and are now others; they count as given."""


class Shard(Protocol):
    """What a coordinator asks about its part of the web."""

    def owns(self, url: str) -> bool:
        """Check whether this coordinator crawls the host of a URL."""

    def keep_own(self, groups: Sequence[LinkGroup]) -> Sequence[LinkGroup]:
        """Return the links to own hosts; pass the others on to their owners."""

    def may_request(self, host: HostState) -> bool:
        """Check whether it is this coordinator's turn at the address of a host; if not, the host waits for it."""

    def pass_robots(self, task: FetchTask, event: RobotsResponse | RobotsFailure | str, now_s: float) -> bool:
        """Pass the outcome of a robots.txt request on to another shard, if it concerns one: answer or redirect."""

    def pass_canonicals(self, results: Sequence[FetchSuccess]) -> None:
        """Ask other shards about the canonical URLs that saved pages name; tell them what changed about own ones."""


class WholeWeb:
    """The shard of a single machine: everything is its own."""

    def owns(self, _url: str) -> bool:
        """Return true: one machine crawls every host."""
        return True

    def keep_own(self, groups: Sequence[LinkGroup]) -> Sequence[LinkGroup]:
        """Return all links: one machine owns every host."""
        return groups

    def may_request(self, _host: HostState) -> bool:
        """Return true: one machine shares no address."""
        return True

    def pass_robots(self, _task: FetchTask, _event: RobotsResponse | RobotsFailure | str, _now_s: float) -> bool:
        """Return false: one machine fetches every robots.txt itself."""
        return False

    def pass_canonicals(self, _results: Sequence[FetchSuccess]) -> None:
        """Do nothing: one machine has every page."""


WHOLE_WEB = WholeWeb()


@dataclass(slots=True)
class _Turn:
    """A turn at an address: when it began, the hosts that were served in it, and whether another shard wants it."""

    since_s: float
    hosts: dict[str, HostState]
    is_wanted: bool = False


class PartitionShard:
    """The shard of a cluster: a range of partitions, an outbox for links to others, and turns at addresses.

    ``min_turn_s`` is the shortest turn in world time. ``find_steps`` returns how far a page is from a refetched one, if
    it is new on the web.
    """

    def __init__(
        self,
        shards: ShardMap,
        number: int,
        outbox: LinkOutbox,
        min_turn_s: float = MIN_TURN_WALL_S,
        find_steps: Callable[[int], int | None] = lambda _: None,
        canonicals: CanonicalAnswers | None = None,
    ) -> None:
        self._shards, self.number, self._outbox, self._min_turn_s = shards, number, outbox, min_turn_s
        self._canonicals = canonicals
        self._find_steps = find_steps
        self._owners: dict[str, int] = {}
        self._asked_robots: dict[Origin, float] = {}
        self._turns: dict[str, _Turn] = {}
        self._waiting: dict[str, list[HostState]] = {}

    def count_shards(self) -> int:
        """Count the shards of the cluster."""
        return len(self._shards.firsts)

    def use_map(self, shards: ShardMap) -> None:
        """Use another map, since a shard was split; the partitions of this one stay until it starts again."""
        self._shards = shards
        self._owners.clear()

    def owns(self, url: str) -> bool:
        """Check whether this shard crawls the host of a URL."""
        return self.find_owner(url) == self.number

    def find_owner(self, url: str) -> int:
        """Return which shard crawls the host of a URL."""
        start = url[: url.find("/", url.find("//") + 2)]
        owner = self._owners.get(start)
        if owner is None:
            if len(self._owners) >= MAX_CACHED_HOSTS:
                self._owners.clear()
            owner = self._owners[start] = self._shards.find(partition_of(origin_of(url).host))
        return owner

    def keep_own(self, groups: Sequence[LinkGroup]) -> Sequence[LinkGroup]:
        """Return the links to own hosts; put the others into the outbox."""
        own: list[LinkGroup] = []
        foreign: dict[int, list[ForeignLinks]] = {}
        for urls, found in groups:
            owners = [self.find_owner(url) for url in urls]
            kept = [url for url, owner in zip(urls, owners, strict=True) if owner == self.number]
            if kept:
                own.append((kept, found))
            for owner in dict.fromkeys(owners):
                if owner != self.number:
                    places = [place for place, its in enumerate(owners) if its == owner]
                    foreign.setdefault(owner, []).append(self._build_links(urls, places, found))
        if foreign:
            self._outbox.put_links(foreign)
        return own

    # robots.txt

    def pass_robots(self, task: FetchTask, event: RobotsResponse | RobotsFailure | str, now_s: float) -> bool:
        """Pass a redirect to a host of another shard on to it, and an answer to the shard that wants it."""
        assert task.robots_of is not None, "a page is no robots.txt"
        origin = task.robots_of.robots_url
        if isinstance(event, str):
            target, sent = event, ForeignRobots(origin, event, task.hops + 1)
        elif isinstance(event, RobotsResponse):
            target, sent = origin, ForeignRobots(origin, response=event)
        else:
            target, sent = origin, ForeignRobots(origin, failure=event)
        owner = self.find_owner(target)
        if owner == self.number:
            return False
        self._outbox.put_links({owner: [ForeignLinks((), 0, robots=sent)]})
        if self.owns(origin):
            self._asked_robots[task.robots_of] = now_s
        return True

    def end_robots(self, origin: Origin) -> None:
        """Note that another shard has answered about the robots.txt of an origin."""
        self._asked_robots.pop(origin, None)

    def take_overdue_robots(self, now_s: float) -> list[Origin]:
        """Take the origins about whose robots.txt no shard has answered in time."""
        overdue = [origin for origin, at_s in self._asked_robots.items() if now_s - at_s > MAX_ROBOTS_WAIT_S]
        for origin in overdue:
            self.end_robots(origin)
        return overdue

    def _build_links(self, urls: Sequence[str], places: Sequence[int], found: FoundUrl) -> ForeignLinks:
        """Build what is sent of links to one shard, with what this one knows of their page."""
        via = found.via
        if via is not None and via.source:
            via = LinkOrigin(0, via.how, via.before_s, self._find_steps(via.source) if via.before_s is None else None)
        return ForeignLinks(
            tuple(urls[place] for place in places),
            found.depth,
            found.hops,
            found.front,
            found.source,
            from_list=found.from_list,
            is_refetch=found.is_refetch,
            via=via,
            texts=tuple(found.texts[place] for place in places) if len(found.texts) == len(urls) else (),
        )

    # canonical URLs

    def pass_canonicals(self, results: Sequence[FetchSuccess]) -> None:
        """Ask other shards about the canonical URLs that saved pages name; tell them what changed about own ones."""
        contents = [(one.task.url, one.content) for one in results if one.content is not None]
        named = [(url, content.canonical) for url, content in contents if content.canonical and not content.private]
        asked = [ForeignCanonical(canonical, url) for url, canonical in named if not self.owns(canonical)]
        changed = () if self._canonicals is None else self._canonicals.list_changed([one.task.url for one in results])
        for one in (*asked, *changed):
            self.send_canonical(one)

    def send_canonical(self, one: ForeignCanonical) -> None:
        """Send a question to the shard of the canonical URL, or an answer to the shard of the page that names it."""
        owner = self.find_owner(one.url if one.is_there is None else one.page)
        self._outbox.put_links({owner: [ForeignLinks((), 0, canonical=one)]})

    # turns

    def may_request(self, host: HostState) -> bool:
        """Check whether it is this shard's turn at the address of a host; if not, the host waits for it."""
        assert host.address is not None, f"{host.name} has no address"
        turn = self._turns.get(host.address)
        if turn is not None and not turn.is_wanted:
            turn.hosts[host.name] = host
            return True
        if not host.awaits_turn:
            host.awaits_turn = True
            self._waiting.setdefault(host.address, []).append(host)
        return False

    def list_wanted(self) -> list[str]:
        """List the addresses that hosts of this shard wait for."""
        return [address for address in self._waiting if address not in self._turns]

    def list_wanted_domains(self) -> list[str]:
        """List the registrable domains of the hosts that wait for a turn."""
        hosts = (host.name for address in self.list_wanted() for host in self._waiting[address])
        return list(dict.fromkeys(map(registrable_domain, hosts)))

    def grant(self, address: str, now_s: float) -> list[HostState]:
        """Begin a turn at an address; return the hosts that waited for it."""
        hosts = self._waiting.pop(address, [])
        if address not in self._turns:
            self._turns[address] = _Turn(now_s, {host.name: host for host in hosts})
        for host in hosts:
            host.awaits_turn = False
        return hosts

    def end_turns(self, wanted: Iterable[str], now_s: float, has_work: Callable[[HostState, float], bool]) -> list[str]:
        """Return which of these addresses, wanted by other shards, this shard gives up now.

        A turn lasts its shortest time only while one of its hosts ``has_work`` until then. From here on none of its
        hosts is served there; once nothing is in flight, the turn is over.
        """
        ended: list[str] = []
        for address in wanted:
            turn = self._turns.get(address)
            if turn is None:
                ended.append(address)
            elif now_s - turn.since_s >= self._min_turn_s or not any(
                host.address == address and has_work(host, turn.since_s + self._min_turn_s)
                for host in turn.hosts.values()
            ):
                turn.is_wanted = True
                if not any(host.busy and host.address == address for host in turn.hosts.values()):
                    del self._turns[address]
                    ended.append(address)
        return ended
