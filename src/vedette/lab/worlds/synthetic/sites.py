"""Sites (hosts) of a synthetic web: how many pages each has, what it writes about, and which oddities it shows.

The number of pages falls with the rank of a host as 1 / (rank + 2), so a few sites have most pages. The first hosts get
one of each behavior, so that a world of six hosts shows them all; later ones draw by hash.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import exp
from types import MappingProxyType
from typing import Literal

from vedette.lab.worlds.synthetic.change_times import RHYTHMS, BirthSchedule, ChangeProcess
from vedette.lab.worlds.synthetic.grammar import Prose, slugify
from vedette.lab.worlds.synthetic.hashing import hash_key, mix
from vedette.lab.worlds.synthetic.site_kinds import SiteKind, pick_kind
from vedette.lab.worlds.synthetic.topics import TOWNS, Topic
from vedette.timeutil import DAY_S

# Subdomains of one blog hoster share an address, as many small sites of the real web do.


BLOG_HOST = "inkpot-pages.test"
LINK_FARM = "bargain-orchard.test"

_NAME_WORDS = {
    "news": ("gazette", "courier", "herald", "observer", "mercury", "dispatch", "chronicle", "echo"),
    "documentation": (
        *("lantern", "kestrel", "anvil", "tidepool", "quillwork", "harrow", "lodestar", "cobble", "thistle"),
    ),
    "blog": ("notebook", "diary", "letters", "corner", "journal", "afternoons"),
    "university": ("college", "university", "polytechnic", "institute"),
    "shop": ("supplies", "stores", "outfitters", "and-sons", "depot", "warehouse"),
    "forum": ("board", "forum", "talk", "exchange"),
}
_PATTERNS = {
    "news": "{place}-{word}.test",
    "documentation": "docs.{word}-{subject}.test",
    "university": "www.{place}-{word}.test",
    "shop": "{subject}-{word}.test",
    "forum": "{word}.{subject}-people.test",
}


def _town_slug(number: int) -> str:
    return TOWNS[number % len(TOWNS)].lower().replace(" ", "-")


def _format_name(kind: SiteKind, topic: Topic, number: int) -> str:
    place, subject = _town_slug(number), topic.slug
    words = _NAME_WORDS[kind.name]
    word = words[number // 7 % len(words)]
    if kind.name == "blog":
        return f"{subject}-{word}.{BLOG_HOST}" if number % 5 < 2 else f"{place}-{subject}-{word}.test"
    return _PATTERNS[kind.name].format(place=place, subject=subject, word=word)


def _candidate_names(kind: SiteKind, topic: Topic, key: int) -> Iterator[str]:
    """Yield candidate host names of a synthetic site, best first; the numbered ones at the end never run out."""
    yield from (_format_name(kind, topic, mix(key + step) >> 8) for step in range(12))
    first = _format_name(kind, topic, key >> 8)
    left, _, right = first.partition(".")
    yield from (f"{left}-{number}.{right}" for number in range(2, 10_000))


def host_names(kinds: list[SiteKind], topics: list[Topic], keys: list[int]) -> list[str]:
    """Return a unique host name for each synthetic site."""
    names: dict[str, None] = {}
    for kind, topic, key in zip(kinds, topics, keys, strict=True):
        name = next(name for name in _candidate_names(kind, topic, key) if name not in names)
        names[name] = None
    return list(names)


def site_title(name: str) -> str:
    """Return the title of a synthetic site from its host name.

    >>> site_title("www.ashford-college.test"), site_title("docs.lantern-maps.test")
    ('Ashford College', 'Lantern Maps Documentation')
    """
    labels = name.removesuffix(".test").split(".")
    first = labels[1] if labels[0] in ("www", "docs", *_NAME_WORDS["forum"]) else labels[0]
    words = first.replace("-", " ").title()
    return words + (" Documentation" if labels[0] == "docs" else "")


def loopback_address(seed: int, index: int) -> str:
    """Return the loopback address of a synthetic site: never in 127.0, never ending in 0 or 255.

    >>> loopback_address(1, 0) != loopback_address(1, 1)
    True
    """
    return f"127.{1 + mix(seed) % 250}.{index // 250 % 250}.{1 + index % 250}"


Validators = Literal["both", "etag", "modified", "none", "lying"]
RobotsStyle = Literal["simple", "named", "delay", "folders", "wildcard", "none", "closed"]
HostFault = Literal["", "slow", "outage", "limited", "robots-outage"]
SiteFeature = Literal["calendar", "sessions", "paths", "soft404", "farm", "odd", "print", "sorted", "tracking"]


@dataclass(frozen=True, slots=True)
class WorldSize:
    """Size of a synthetic world when it opens: its hosts and pages."""

    hosts: int
    pages: int


SIZES: Mapping[str, WorldSize] = MappingProxyType(
    {
        "tiny": WorldSize(hosts=6, pages=150),
        "small": WorldSize(hosts=24, pages=2_000),
        "medium": WorldSize(hosts=200, pages=20_000),
        "large": WorldSize(hosts=300, pages=100_000),
    }
)


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a synthetic site with its own topic; ``prefix`` is the prefix of its pages' paths."""

    slug: str
    label: str
    prose: Prose
    prefix: bytes


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """A synthetic site (one host): everything about it that does not depend on time."""

    index: int
    name: str
    title: str
    key: int
    kind: SiteKind
    sections: tuple[Section, ...]
    tags: tuple[str, ...]
    births: BirthSchedule
    rebuilds: ChangeProcess
    validators: Validators
    robots: RobotsStyle
    crawl_delay_s: int
    feed: Literal["atom", "rss", ""]
    sitemap: Literal["honest", "lying", "bare", ""]
    gone_status: int
    move_status: int
    host_fault: HostFault
    features: tuple[SiteFeature, ...]


_VALIDATORS: tuple[Validators, ...] = ("both", "etag", "modified", "none", "both", "lying")
_MORE_VALIDATORS: tuple[Validators, ...] = ("both", "both", "both", "both", "etag", "modified", "none", "lying")
_ROBOTS: tuple[RobotsStyle, ...] = ("named", "delay", "simple", "folders", "none", "wildcard")
_MORE_ROBOTS: tuple[RobotsStyle, ...] = ("simple", "simple", "folders", "none", "delay", "named", "wildcard", "folders")
_FEEDS: tuple[Literal["atom", "rss", ""], ...] = ("atom", "rss", "atom", "", "rss")
_SITEMAPS: tuple[Literal["honest", "lying", "bare", ""], ...] = (
    *("honest", "honest", "bare", ""),
    *("honest", "lying", "honest"),
)
_HOST_FAULTS: Mapping[int, HostFault] = {5: "slow", 8: "outage", 10: "limited", 12: "robots-outage"}
_ODD_FEATURES: tuple[tuple[SiteFeature, ...], ...] = (
    ("farm",),
    ("odd", "paths"),
    ("calendar",),
    ("soft404",),
    ("sessions",),
    ("odd", "calendar"),
)
_COPY_FEATURES: tuple[tuple[SiteFeature, ...], ...] = (
    ("print", "tracking"),
    ("print",),
    ("tracking",),
    (),
    ("sorted",),
    ("tracking",),
)


def _pick_features(index: int, word: int, *, calm: bool) -> tuple[SiteFeature, ...]:
    """Pick the features of a synthetic site: all kinds within the first six hosts, some for half of the later ones."""
    copies = _COPY_FEATURES[index % len(_COPY_FEATURES)]
    plain = calm or (index >= 24 and word >> 20 & 1)
    return copies if plain else copies + _ODD_FEATURES[index % len(_ODD_FEATURES)]


def _pick_host_fault(index: int, *, calm: bool) -> HostFault:
    """Pick the fault of a whole synthetic host: four among the first 24 have one, then four in every 96."""
    place = index if index < 24 else index % 96 - 24
    return "" if calm else _HOST_FAULTS.get(place, "")


def _pick_robots(index: int, word: int) -> RobotsStyle:
    if index % 60 == 20:
        return "closed"
    return _ROBOTS[index] if index < len(_ROBOTS) else _MORE_ROBOTS[word >> 3 & 7]


def _build_sections(kind: SiteKind, library: tuple[Prose, ...], key: int) -> tuple[Section, ...]:
    count = 3 + key % 4
    first, step = key >> 8, 1 + 2 * (key >> 16) % 5
    return tuple(_build_section(kind, library[(first + step * turn) % len(library)]) for turn in range(count))


def _build_section(kind: SiteKind, prose: Prose) -> Section:
    slug = prose.topic.slug
    return Section(slug, prose.topic.label, prose, kind.prefix.replace("*", slug).encode())


def _list_tags(sections: tuple[Section, ...]) -> tuple[str, ...]:
    things = (thing for section in sections for thing in section.prose.topic.things[:5])
    return tuple(dict.fromkeys(map(slugify, things)))


def _split_pages(size: WorldSize, kinds: list[SiteKind]) -> list[int]:
    """Split the world's pages among synthetic sites, so that about ``size.pages`` of them are alive."""
    weights = [1.0 / (rank + 2) for rank in range(len(kinds))]
    unit = size.pages / sum(weights)
    return [max(6, round(unit * weight / _alive_share(kind))) for weight, kind in zip(weights, kinds, strict=True)]


def _alive_share(kind: SiteKind) -> float:
    """Estimate the share of a synthetic site's stock that has not died yet; a test checks the live count."""
    ages = ((rank + 0.5) / 100 for rank in range(100))
    lived = (kind.span_s / DAY_S * age**kind.growth / kind.life_days for age in ages)
    return 1.0 - kind.death_share * sum(1.0 - exp(-x) for x in lived) / 100


def _build_births(kind: SiteKind, stock: int, key: int) -> BirthSchedule:
    per_s = kind.born_per_day * max(stock, 20) / DAY_S
    return BirthSchedule(mix(key ^ 1), stock, kind.span_s, kind.growth, per_s, RHYTHMS[kind.rhythm])


def _build_site(
    index: int, name: str, key: int, kind: SiteKind, stock: int, library: tuple[Prose, ...], *, calm: bool
) -> Site:
    word = mix(key ^ 2)
    early = index < len(_VALIDATORS)
    sections = _build_sections(kind, library, key)
    return Site(
        index=index,
        name=name,
        title=site_title(name),
        key=key,
        kind=kind,
        sections=sections,
        tags=_list_tags(sections),
        births=_build_births(kind, stock, key),
        rebuilds=ChangeProcess("poisson", mix(key ^ 3), 1 / (45 * DAY_S)),
        validators=_VALIDATORS[index] if early else _MORE_VALIDATORS[word & 7],
        robots=_pick_robots(index, word),
        crawl_delay_s=1 + (word >> 6) % 5,
        feed=_FEEDS[index % len(_FEEDS)],
        sitemap=_SITEMAPS[index % len(_SITEMAPS)],
        gone_status=410 if word >> 10 & 1 else 404,
        move_status=308 if word >> 11 & 1 else 301,
        host_fault=_pick_host_fault(index, calm=calm),
        features=_pick_features(index, word, calm=calm),
    )


def build_sites(size: WorldSize, seed: int, library: tuple[Prose, ...], *, calm: bool) -> tuple[Site, ...]:
    """Build every ordinary site of a synthetic world, largest first."""
    keys = [hash_key(seed, "host", index) for index in range(size.hosts)]
    kinds = [pick_kind(index, key >> 5) for index, key in enumerate(keys)]
    topics = [_build_sections(kind, library, key)[0].prose.topic for kind, key in zip(kinds, keys, strict=True)]
    names = host_names(kinds, topics, keys)
    stocks = _split_pages(size, kinds)
    columns = zip(names, keys, kinds, stocks, strict=True)
    return tuple(
        _build_site(index, name, key, kind, stock, library, calm=calm)
        for index, (name, key, kind, stock) in enumerate(columns)
    )
