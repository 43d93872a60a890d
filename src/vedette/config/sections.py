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
from vedette.config.policy_names import (
    AD_POLICIES,
    DISCOVERY_POLICIES,
    NAMED_AD_POLICIES,
    NAMED_DISCOVERY_POLICIES,
    PROMOTIONS,
    REFRESH_POLICIES,
)

# It is sent in a header of every request, so it must contain nothing that could end the header or its comment.
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
_ENDPOINT = re.compile(r"https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[1-9][0-9]{0,4})?(?:/[!-~]*)?")
_KEY_PLACE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:/[^\x00-\x1f\x7f]+")
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
            Text(_CONTACT, 'expected an email address or an http(s) URL, such as "crawler@example.org"'),
            "email address or http(s) URL where the operator can be reached",
        ),
    )
    delay_s: float = field(
        default=1.0,
        metadata=describe_setting("delay", Duration(), "pause between a host's response and the next request to it"),
    )
    address_delay_s: float = field(
        default=0.25,
        metadata=describe_setting(
            "address_delay",
            Duration(),
            "pause between a response from an IP address and the next request to it, whichever of its hosts that is "
            "for",
        ),
    )
    budget: Rate = field(
        default=Rate(0, 1.0),
        metadata=describe_setting(
            "budget",
            RateKind(),
            'maximum rate of fetches for all sites together, such as `"50/s"`; `"0"` for no limit but politeness',
        ),
    )
    daily_limit: int = field(
        default=1_000_000,
        metadata=describe_setting(
            "daily_limit",
            Count(1, 1_000_000_000),
            "maximum number of requests a day to one IP address or one registrable domain, whatever the schedule "
            "says: a last line of defense, far above what the delays allow",
        ),
    )
    latency_factor: int = field(
        default=2,
        metadata=describe_setting(
            "latency_factor", Count(0, 100), "the pause is at least this many times the host's last response time"
        ),
    )
    max_page_bytes: int = field(
        default=10 * 2**20,
        metadata=describe_setting(
            "max_page_size", Size(1, 2**30), "maximum size of a page after decoding; larger pages fail"
        ),
    )
    timeout_s: float = field(
        default=30.0,
        metadata=describe_setting("timeout", Duration(0.001, 3600), "requests that take longer fail"),
    )
    connect_timeout_s: float = field(
        default=10.0,
        metadata=describe_setting(
            "connect_timeout", Duration(0.001, 3600), "connections that take longer to open fail"
        ),
    )
    max_redirects: int = field(
        default=5,
        metadata=describe_setting(
            "max_redirects", Count(0, 20), "how many redirects in a row are followed; 0 for none"
        ),
    )
    robots_max_age_s: float = field(
        default=86400.0,
        metadata=describe_setting(
            "robots_max_age", Duration(60, 86400), "how long robots.txt is cached; at most a day"
        ),
    )
    order: Literal["impact", "breadth", "inlinks"] = field(
        default="impact",
        metadata=describe_setting(
            "order",
            OneOf(("impact", "breadth", "inlinks")),
            "which new URLs to fetch first: those expected to help searches most (`impact`), those closest to a start "
            "URL (`breadth`), or those with the most links to them (`inlinks`)",
        ),
    )
    source_interval_s: float = field(
        default=600.0,
        metadata=describe_setting(
            "source_interval",
            Duration(10),
            "shortest interval between polls of a feed, sitemap or home page when there is no budget",
        ),
    )
    discovery_policy: str = field(
        default=DISCOVERY_POLICIES[0],
        metadata=describe_setting(
            "discovery_policy",
            PolicyName(NAMED_DISCOVERY_POLICIES, DISCOVERY_POLICIES),
            "the policy that chooses what to poll: `accrual` polls the sources where waiting would lose most, "
            "`thompson` is the best published policy, `round-robin` polls all in turn; "
            "[others](#discovery-policies) are for research",
        ),
    )
    guess_sitemaps: bool = field(
        default=True,
        metadata=describe_setting(
            "guess_sitemaps",
            Switch(),
            "whether to try `/sitemap.xml` and `/sitemap_index.xml` once per host if robots.txt lists no sitemap",
        ),
    )
    workers: int = field(
        default=1,
        metadata=describe_setting("workers", Count(1, 64), "number of fetcher processes; hosts are divided among them"),
    )
    concurrency: int = field(
        default=256,
        metadata=describe_setting("concurrency", Count(1, 10_000), "concurrent requests per fetcher process"),
    )
    proxy: str = field(
        default="",
        metadata=describe_setting(
            "proxy",
            Text(_PROXY, 'expected http://HOST:PORT or socks5h://HOST:PORT, such as "http://proxy.example.org:3128"'),
            "proxy for all requests, `http://HOST:PORT` or `socks5h://HOST:PORT`; empty for none",
        ),
    )
    ca_file: str = field(
        default="",
        metadata=describe_setting(
            "ca_file",
            Text(_FILE, 'expected the path of a PEM file, such as "/etc/ssl/intranet.pem"'),
            "PEM file with root certificates to trust in addition to the system's, such as those of an intranet",
        ),
    )
    browser: Literal["sandboxed", "unsandboxed", "none"] = field(
        default="sandboxed",
        metadata=describe_setting(
            "browser",
            OneOf(("sandboxed", "unsandboxed", "none")),
            "how to render pages that need JavaScript: `sandboxed` (only if Chromium can use its sandbox), "
            "`unsandboxed` (without it, if you trust the sites) or `none`",
        ),
    )


@dataclass(frozen=True, slots=True)
class Refresh:
    """The ``[refresh]`` section: when known pages are fetched again."""

    policy: str = field(
        default=REFRESH_POLICIES[0],
        metadata=describe_setting(
            "policy",
            OneOf(REFRESH_POLICIES),
            "the policy that chooses when known pages are fetched again; a new policy starts learning from scratch",
        ),
    )
    idle_share: int = field(
        default=10,
        metadata=describe_setting(
            "idle_share",
            Count(0, 100),
            "without a budget: the percentage of a host's idle time that is spent on known pages; 0 turns this off",
        ),
    )
    idle_interval_s: float = field(
        default=86_400.0,
        metadata=describe_setting(
            "idle_interval",
            Duration(3600),
            "how soon a known page is fetched again in idle time; this interval grows by half whenever the page has "
            "not changed, up to two weeks",
        ),
    )


@dataclass(frozen=True, slots=True)
class Store:
    """The ``[store]`` section: where data is stored."""

    data: Path = field(
        default=Path("vedette-data"),
        metadata=describe_setting("data", Folder(), "the data folder; relative to the current directory"),
    )
    keep_days: int = field(
        default=30,
        metadata=describe_setting(
            "keep_days", Count(0, 36_500), "how many days older versions of a page are kept; the latest is always kept"
        ),
    )
    max_bytes: int = field(
        default=0,
        metadata=describe_setting(
            "max_size", Size(), "maximum size of the archive, above which versions are deleted; `0B` for no limit"
        ),
    )
    min_free_bytes: int = field(
        default=2**30,
        metadata=describe_setting("min_free", Size(), "fetching pauses when the disk has less free space than this"),
    )


@dataclass(frozen=True, slots=True)
class Serve:
    """The ``[serve]`` section: where pages and API are served, to whom, and with which rate limits."""

    listen: str = field(
        default="127.0.0.1:8080",
        metadata=describe_setting(
            "listen",
            Text(_LISTEN, 'expected HOST:PORT, such as "127.0.0.1:8080", or "" to serve nothing'),
            "`HOST:PORT` of the search page, console and API; empty to serve nothing",
        ),
    )
    access: Literal["open", "token", "proxy"] = field(
        default="open",
        metadata=describe_setting(
            "access",
            OneOf(("open", "token", "proxy")),
            "who may search: everyone (`open`), users with a key (`token`), or users signed in by a proxy (`proxy`)",
        ),
    )
    proxy_header: str = field(
        default="X-Forwarded-User",
        metadata=describe_setting(
            "proxy_header",
            Text(_HEADER, 'expected the name of a header, such as "X-Forwarded-User"'),
            'with `access = "proxy"`, the header in which the proxy sends the user name',
        ),
    )
    trusted_proxies: tuple[str, ...] = field(
        default=("127.0.0.1",),
        metadata=describe_setting(
            "trusted_proxies",
            Networks(_FILE, 'expected a list of IP addresses or networks, such as ["127.0.0.1", "10.0.0.0/8"]'),
            "addresses or networks of proxies whose user headers are trusted",
        ),
    )
    embed_origins: tuple[str, ...] = field(
        default=(),
        metadata=describe_setting(
            "embed_origins",
            Texts(_ORIGIN, 'expected a list of origins, such as ["https://docs.example.org"], or ["*"] for all'),
            "origins whose scripts may call search and suggestions; `*` for all",
        ),
    )
    name: str = field(
        default="vedette",
        metadata=describe_setting(
            "name", Text(_SHOWN, 'expected a short name, such as "Our documents"'), "the name shown on the pages"
        ),
    )
    processes: int = field(
        default=1,
        metadata=describe_setting(
            "processes", Count(1, 64), "number of server processes; each enforces rate limits separately"
        ),
    )
    rate: Rate = field(
        default=Rate(120, 60.0),
        metadata=describe_setting("rate", RateKind(), 'rate limit per user, such as `"10/s"`; `"0"` for no limit'),
    )
    keep_slates_days: int = field(
        default=30,
        metadata=describe_setting(
            "keep_slates_days",
            Count(0, 3650),
            "how many days individual searches and clicks are kept; 0 records none",
        ),
    )
    learn: bool = field(
        default=True,
        metadata=describe_setting("learn", Switch(), "whether ranking learns from clicks; see [ranking](ranking.md)"),
    )
    unproven: int = field(
        default=2,
        metadata=describe_setting(
            "unproven", Count(0, 10), "how many of ten results may be pages on trial, which few people have seen"
        ),
    )
    promotion: str = field(
        default=PROMOTIONS[0],
        metadata=describe_setting(
            "promotion",
            OneOf(PROMOTIONS),
            "the policy that chooses pages on trial; see [ranking](ranking.md#which-results-are-tried)",
        ),
    )
    first_place: bool = field(
        default=False,
        metadata=describe_setting("first_place", Switch(), "whether a page on trial may be the first result"),
    )
    embedding_model: str = field(
        default="learned",
        metadata=describe_setting(
            "embedding_model",
            Text(_FILE, 'expected "learned", "off", or the folder of a model'),
            "how search compares meaning: with vectors learned from the crawled pages (`learned`), with the embedding "
            "model in a folder, or not at all (`off`); see [searching](searching.md#meaning)",
        ),
    )
    answer_endpoint: str = field(
        default="",
        metadata=describe_setting(
            "answer_endpoint",
            Text(_ENDPOINT, 'expected the URL of an API, such as "http://127.0.0.1:11434/v1"'),
            "OpenAI-compatible API that writes [answers](searching.md#answers) above results; empty for none",
        ),
    )
    answer_model: str = field(
        default="",
        metadata=describe_setting(
            "answer_model",
            Text(_SHOWN, 'expected the name of a model, such as "llama3.2"'),
            "name of the model that `serve.answer_endpoint` should use",
        ),
    )
    answer_key: str = field(
        default="",
        metadata=describe_setting(
            "answer_key",
            Text(_KEY_PLACE, 'expected env:NAME or file:/PATH, where the key is, such as "env:ANSWER_KEY"'),
            "location of the key for that API: `env:NAME` or `file:/PATH`; empty if it needs none",
        ),
    )
    answer_timeout_s: float = field(
        default=30.0,
        metadata=describe_setting(
            "answer_timeout", Duration(1, 300), "how long to wait for an answer before giving up"
        ),
    )
    answer_tokens: int = field(
        default=400,
        metadata=describe_setting("answer_tokens", Count(16, 4096), "maximum length of an answer, in tokens"),
    )
    answer_rate: Rate = field(
        default=Rate(10, 60.0),
        metadata=describe_setting(
            "answer_rate", RateKind(), 'answers per user, such as `"10/min"`; `"0"` for no limit'
        ),
    )
    address: str = field(
        default="",
        metadata=describe_setting(
            "address",
            Text(_ADDRESS, 'expected an http(s) address without a path, such as "https://search.example.org"'),
            "the URL at which people reach this server, used for links to it; empty for the listen address",
        ),
    )
    hosts: tuple[str, ...] = field(
        default=(),
        metadata=describe_setting(
            "hosts",
            Texts(_HOST, 'expected a list of host names, such as ["search.example.org"]'),
            "additional host names of the console, besides that of `serve.address`; see below",
        ),
    )
    console_secrets: tuple[str, ...] = field(
        default=("env:VEDETTE_SECRET_*",),
        metadata=describe_setting(
            "console_secrets",
            Texts(_PLACE, 'expected a list of places, such as ["env:WIKI_LOGIN", "file:/etc/vedette/secrets/*"]'),
            "which [secrets](#secrets-of-a-site) the console may assign to a site; `*` at the end matches any suffix",
        ),
    )
    public_url: str = field(
        default="",
        metadata=describe_setting(
            "public_url",
            Text(_ADDRESS, 'expected an http(s) address without a path, such as "https://search.example.org"'),
            "the URL at which WebSub hubs on the web reach this server; empty to subscribe to none",
        ),
    )
    webhook_networks: tuple[str, ...] = field(
        default=(),
        metadata=describe_setting(
            "webhook_networks",
            Networks(_FILE, 'expected a list of IP addresses or networks, such as ["10.1.2.3", "192.168.0.0/16"]'),
            "private addresses or networks that webhooks of [watches](watching.md) may use; public ones are always "
            "allowed",
        ),
    )
    sponsored: bool = field(
        default=False,
        metadata=describe_setting(
            "sponsored", Switch(), "whether to show [sponsored results](sponsored.md), in a separate box"
        ),
    )
    sponsored_slots: int = field(
        default=2,
        metadata=describe_setting("sponsored_slots", Count(1, 5), "maximum number of sponsored results per page"),
    )
    sponsored_reserve: str = field(
        default="0.05",
        metadata=describe_setting("sponsored_reserve", Amount(), "minimum price of a click; lower bids are not shown"),
    )
    sponsored_policy: str = field(
        default=AD_POLICIES[0],
        metadata=describe_setting(
            "sponsored_policy",
            PolicyName(NAMED_AD_POLICIES, AD_POLICIES),
            "the policy that chooses ads: `paced` spreads campaign budgets over the day, `believed` shows what earns "
            "most now, `bmix-e` is the best published policy; [others](sponsored.md#rules-for-research) are for "
            "research",
        ),
    )
    sponsored_exploration: int = field(
        default=100,
        metadata=describe_setting(
            "sponsored_exploration",
            Count(0, 300),
            "how much to explore ads with few impressions, as a percentage of the usual amount; 0 explores none",
        ),
    )
    time_zone: str = field(
        default="UTC",
        metadata=describe_setting("time_zone", Zone(), "time zone of campaign budget days, such as `Europe/Berlin`"),
    )
