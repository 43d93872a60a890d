"""The sections of ``vedette.toml`` as dataclasses: each setting is declared once, at its field."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from vedette.config.kinds import (
    Amount,
    Count,
    Duration,
    Folder,
    Networks,
    OneOf,
    PolicyName,
    Rate,
    RateKind,
    Size,
    Switch,
    Text,
    Texts,
    ValueType,
    Zone,
)
from vedette.discover.live_policies import DEFAULT_DISCOVERY_POLICY, DISCOVERY_POLICIES, NAMED_DISCOVERY_POLICIES
from vedette.engine.scheduling.refresh_policies import DEFAULT_POLICY, POLICIES
from vedette.serve.ads.live_policies import AD_POLICIES, DEFAULT_AD_POLICY, NAMED_AD_POLICIES
from vedette.serve.rank.reranking import DEFAULT_PROMOTION, PROMOTIONS

# It is sent in a header of every request, so nothing that could end the header or its comment gets in.
_CONTACT = re.compile(r"(?=[!-~]+\Z)(?:[^@()]+@[^@()]+|https?://[^()/]+[^()]*)")
_PROXY = re.compile(r"(?:http|socks5h)://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[1-9][0-9]{0,4}")
_FILE = re.compile(r"[^\x00-\x1f\x7f-\x9f]+")
_LISTEN = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}")
_ORIGIN = re.compile(r"\*|https?://(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[1-9][0-9]{0,4})?")
_ADDRESS = re.compile(r"https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[1-9][0-9]{0,4})?/?")
_HOST = re.compile(r"[A-Za-z0-9._-]{1,253}")
_PLACE = re.compile(
    r"env:[A-Za-z_][A-Za-z0-9_]*\*?|file:/(?:[^\x00-\x1f\x7f*]*[^\x00-\x1f\x7f*/]|(?:[^\x00-\x1f\x7f*]*/)?\*)"
)
_HEADER = re.compile(r"[A-Za-z0-9-]{1,64}")
_SHOWN = re.compile(r"(?=\S)[^\x00-\x1f\x7f-\x9f]{1,64}")


def describe_setting(key: str, kind: ValueType[Any], meaning: str) -> dict[str, object]:
    """Return the metadata of a setting's dataclass field: key, kind and meaning."""
    return {"key": key, "kind": kind, "meaning": meaning}


@dataclass(frozen=True, slots=True)
class Crawl:
    """The ``[crawl]`` section: how pages are fetched, unless a site's settings say otherwise."""

    contact: str = field(
        default="",
        metadata=describe_setting(
            "contact",
            Text(_CONTACT, 'write an e-mail address or an http(s) URL, such as "crawler@example.org"'),
            "where the operator can be reached: an e-mail address or an http(s) URL",
        ),
    )
    delay_s: float = field(
        default=1.0,
        metadata=describe_setting("delay", Duration(), "pause between an answer of a host and the next request to it"),
    )
    address_delay_s: float = field(
        default=0.25,
        metadata=describe_setting("address_delay", Duration(), "the same for all hosts that share one IP address"),
    )
    budget: Rate = field(
        default=Rate(0, 1.0),
        metadata=describe_setting(
            "budget",
            RateKind(),
            'how many pages are fetched at most in all, such as `"50/s"`; `"0"` sets no limit: then politeness is the '
            "limit",
        ),
    )
    latency_factor: int = field(
        default=2,
        metadata=describe_setting(
            "latency_factor", Count(0, 100), "the pause is at least this many times the host's last latency"
        ),
    )
    max_page_bytes: int = field(
        default=10 * 2**20,
        metadata=describe_setting("max_page_size", Size(1, 2**30), "a page larger than this, decoded, is given up"),
    )
    timeout_s: float = field(
        default=30.0,
        metadata=describe_setting("timeout", Duration(0.001, 3600), "a request that takes longer is given up"),
    )
    connect_timeout_s: float = field(
        default=10.0,
        metadata=describe_setting("connect_timeout", Duration(0.001, 3600), "the same for opening the connection"),
    )
    max_redirects: int = field(
        default=5,
        metadata=describe_setting("max_redirects", Count(0, 20), "redirects followed in a row; 0 follows none"),
    )
    robots_max_age_s: float = field(
        default=86400.0,
        metadata=describe_setting(
            "robots_max_age", Duration(60, 86400), "how long a copy of robots.txt is trusted; at most a day"
        ),
    )
    order: Literal["impact", "breadth", "inlinks"] = field(
        default="impact",
        metadata=describe_setting(
            "order",
            OneOf(("impact", "breadth", "inlinks")),
            "which unseen URL first: what it is expected to bring to searches, few links from a start, or many links "
            "to it",
        ),
    )
    source_interval_s: float = field(
        default=600.0,
        metadata=describe_setting(
            "source_interval",
            Duration(10),
            "shortest pace at which `up` polls a feed, sitemap or home page without a budget",
        ),
    )
    discovery_policy: str = field(
        default=DEFAULT_DISCOVERY_POLICY,
        metadata=describe_setting(
            "discovery_policy",
            PolicyName(NAMED_DISCOVERY_POLICIES, DISCOVERY_POLICIES),
            "by which rule these are chosen: `accrual` polls where most is lost by waiting, `thompson` is the best "
            "published rule, `round-robin` polls all in turn; [others](#discovery-policies) are for research",
        ),
    )
    guess_sitemaps: bool = field(
        default=True,
        metadata=describe_setting(
            "guess_sitemaps",
            Switch(),
            "whether `/sitemap.xml` and `/sitemap_index.xml` are tried once a host where robots.txt names no sitemap",
        ),
    )
    workers: int = field(
        default=1,
        metadata=describe_setting(
            "workers", Count(1, 64), "processes that fetch and parse; hosts are divided among them"
        ),
    )
    concurrency: int = field(
        default=256,
        metadata=describe_setting("concurrency", Count(1, 10_000), "requests under way at once in each worker"),
    )
    proxy: str = field(
        default="",
        metadata=describe_setting(
            "proxy",
            Text(_PROXY, 'write http://HOST:PORT or socks5h://HOST:PORT, such as "http://proxy.example.org:3128"'),
            "by which proxy every request goes, `http://HOST:PORT` or `socks5h://HOST:PORT`; empty for none",
        ),
    )
    ca_file: str = field(
        default="",
        metadata=describe_setting(
            "ca_file",
            Text(_FILE, 'write the path of a PEM file, such as "/etc/ssl/intranet.pem"'),
            "a PEM file of roots that are trusted besides the system's, such as an intranet's",
        ),
    )
    browser: Literal["sandboxed", "unsandboxed", "none"] = field(
        default="sandboxed",
        metadata=describe_setting(
            "browser",
            OneOf(("sandboxed", "unsandboxed", "none")),
            "how pages that need JavaScript are rendered: `sandboxed` only where Chromium can build its own sandbox, "
            "`unsandboxed` without it (if you trust the sites), `none` not at all",
        ),
    )


@dataclass(frozen=True, slots=True)
class Refresh:
    """The ``[refresh]`` section: when known pages are fetched again."""

    policy: str = field(
        default=DEFAULT_POLICY,
        metadata=describe_setting(
            "policy",
            OneOf(tuple(POLICIES)),
            "by which rule known pages are fetched again; a new one starts to learn from scratch",
        ),
    )
    idle_share: int = field(
        default=10,
        metadata=describe_setting(
            "idle_share",
            Count(0, 100),
            "without a budget: how much of what a host's delay allows goes to known pages, in per cent; 0 turns it off",
        ),
    )
    idle_interval_s: float = field(
        default=86_400.0,
        metadata=describe_setting(
            "idle_interval",
            Duration(3600),
            "after how long that is done; half as long again after each time that nothing had changed, up to two weeks",
        ),
    )


@dataclass(frozen=True, slots=True)
class Store:
    """The ``[store]`` section: where data is stored."""

    data: Path = field(
        default=Path("vedette-data"),
        metadata=describe_setting("data", Folder(), "the data folder; a relative path starts where Vedette is started"),
    )
    keep_days: int = field(
        default=30,
        metadata=describe_setting(
            "keep_days", Count(0, 36_500), "for how many days older versions of a page are kept; the latest always is"
        ),
    )
    max_bytes: int = field(
        default=0,
        metadata=describe_setting(
            "max_size", Size(), "how large the archive may grow before versions are given up; 0B sets no limit"
        ),
    )
    min_free_bytes: int = field(
        default=2**30,
        metadata=describe_setting("min_free", Size(), "with less room than this on the disk, fetching pauses"),
    )


@dataclass(frozen=True, slots=True)
class Serve:
    """The ``[serve]`` section: where pages and API are served, to whom, and with which rate limits."""

    listen: str = field(
        default="127.0.0.1:8080",
        metadata=describe_setting(
            "listen",
            Text(_LISTEN, 'write HOST:PORT, such as "127.0.0.1:8080", or "" to serve nothing'),
            "where pages and API are served, `HOST:PORT`; empty serves nothing",
        ),
    )
    access: Literal["open", "token", "proxy"] = field(
        default="open",
        metadata=describe_setting(
            "access",
            OneOf(("open", "token", "proxy")),
            "who may search: everybody, holders of a key, or whom a proxy names",
        ),
    )
    proxy_header: str = field(
        default="X-Forwarded-User",
        metadata=describe_setting(
            "proxy_header",
            Text(_HEADER, 'write the name of a header, such as "X-Forwarded-User"'),
            'with `access = "proxy"`, the header in which the proxy names the reader',
        ),
    )
    trusted_proxies: tuple[str, ...] = field(
        default=("127.0.0.1",),
        metadata=describe_setting(
            "trusted_proxies",
            Networks(_FILE, 'write a list of IP addresses or networks, such as ["127.0.0.1", "10.0.0.0/8"]'),
            "from which addresses or networks a proxy is believed what it says of readers",
        ),
    )
    embed_origins: tuple[str, ...] = field(
        default=(),
        metadata=describe_setting(
            "embed_origins",
            Texts(_ORIGIN, 'write a list of origins, such as ["https://docs.example.org"], or ["*"] for all'),
            "from which origins scripts of other sites may search and suggest; `*` stands for all",
        ),
    )
    name: str = field(
        default="vedette",
        metadata=describe_setting(
            "name", Text(_SHOWN, 'write a short name, such as "Our documents"'), "the name that the pages show"
        ),
    )
    processes: int = field(
        default=1,
        metadata=describe_setting(
            "processes", Count(1, 64), "processes that answer searches; each counts for itself what a reader asks"
        ),
    )
    rate: Rate = field(
        default=Rate(120, 60.0),
        metadata=describe_setting(
            "rate", RateKind(), 'how much each reader may ask, such as `"10/s"`; `"0"` sets no limit'
        ),
    )
    keep_slates_days: int = field(
        default=30,
        metadata=describe_setting(
            "keep_slates_days",
            Count(0, 3650),
            "for how many days searches and clicks are kept one by one; 0 records nothing of them",
        ),
    )
    learn: bool = field(
        default=True,
        metadata=describe_setting(
            "learn", Switch(), "whether the order of results learns from what readers open; see [ranking](ranking.md)"
        ),
    )
    unproven: int = field(
        default=2,
        metadata=describe_setting(
            "unproven", Count(0, 10), "how many of ten results may be there to be tried, as few people have seen them"
        ),
    )
    promotion: str = field(
        default=DEFAULT_PROMOTION,
        metadata=describe_setting(
            "promotion",
            OneOf(tuple(PROMOTIONS)),
            "by which rule those are chosen; see [ranking](ranking.md#who-is-tried)",
        ),
    )
    first_place: bool = field(
        default=False,
        metadata=describe_setting("first_place", Switch(), "whether such a result may stand in the first place"),
    )
    address: str = field(
        default="",
        metadata=describe_setting(
            "address",
            Text(_ADDRESS, 'write an http(s) address without a path, such as "https://search.example.org"'),
            "the address by which people reach it, for links to itself; empty for where it listens",
        ),
    )
    hosts: tuple[str, ...] = field(
        default=(),
        metadata=describe_setting(
            "hosts",
            Texts(_HOST, 'write a list of host names, such as ["search.example.org"]'),
            "by which names the console is reached, besides that of `serve.address`; see below",
        ),
    )
    console_secrets: tuple[str, ...] = field(
        default=("env:VEDETTE_SECRET_*",),
        metadata=describe_setting(
            "console_secrets",
            Texts(_PLACE, 'write a list of places, such as ["env:WIKI_LOGIN", "file:/etc/vedette/secrets/*"]'),
            "which [places of secrets](#secrets-of-a-site) a site may be given in the console; `*` stands for any end",
        ),
    )
    public_url: str = field(
        default="",
        metadata=describe_setting(
            "public_url",
            Text(_ADDRESS, 'write an http(s) address without a path, such as "https://search.example.org"'),
            "the address by which hubs on the web reach it, to tell of news; empty subscribes to nothing",
        ),
    )
    webhook_networks: tuple[str, ...] = field(
        default=(),
        metadata=describe_setting(
            "webhook_networks",
            Networks(_FILE, 'write a list of IP addresses or networks, such as ["10.1.2.3", "192.168.0.0/16"]'),
            "to which private addresses or networks webhooks of [watches](watching.md) may go; public ones always may",
        ),
    )
    sponsored: bool = field(
        default=False,
        metadata=describe_setting(
            "sponsored", Switch(), "whether [sponsored results](sponsored.md) are shown, in a frame of their own"
        ),
    )
    sponsored_slots: int = field(
        default=2,
        metadata=describe_setting("sponsored_slots", Count(1, 5), "how many of them a page of results shows at most"),
    )
    sponsored_reserve: str = field(
        default="0.05",
        metadata=describe_setting(
            "sponsored_reserve", Amount(), "what a click on one costs at least; lower bids are not shown"
        ),
    )
    sponsored_policy: str = field(
        default=DEFAULT_AD_POLICY,
        metadata=describe_setting(
            "sponsored_policy",
            PolicyName(NAMED_AD_POLICIES, tuple(AD_POLICIES)),
            "by which rule they are chosen: `paced` spreads budgets over the day, `believed` shows what earns most "
            "now, `bmix-e` is the best published rule; [others](sponsored.md#rules-for-research) are for research",
        ),
    )
    sponsored_exploration: int = field(
        default=100,
        metadata=describe_setting(
            "sponsored_exploration",
            Count(0, 300),
            "how much ads are tried of which little is known, in per cent of what is usual; 0 tries none",
        ),
    )
    time_zone: str = field(
        default="UTC",
        metadata=describe_setting("time_zone", Zone(), "where the days of budgets begin, such as `Europe/Berlin`"),
    )
