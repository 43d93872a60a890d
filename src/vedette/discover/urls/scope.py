"""The scope of a site: which URLs belong to it, by the start URL and patterns in its settings.

A URL belongs to a site if it is not too long, is in the right place (scope: ``prefix``, ``host`` or ``domain``),
matches no exclude pattern with its path and query, and matches an include pattern if there are any. The start URL needs
no include: links to the included pages are found there. URLs are as returned by ``resolve``.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypedDict, Unpack, get_args
from urllib.parse import quote

from vedette.discover.urls.normalize import matches_wildcard, normalize, resolve
from vedette.errors import SiteError
from vedette.model import ChangeRule, Overrule, Refusal, ScopeKind, Site, registrable_domain

MAX_URL_BYTES = 2048

_REFUSAL_ORDER = (Refusal.TOO_LONG, Refusal.EXCLUDED, Refusal.NOT_HTTP, Refusal.OUT_OF_SCOPE)
_ASCII = bytes(range(128)).decode()
_CHANGE_RULES: tuple[str, ...] = get_args(ChangeRule)
_OVERRULES: tuple[str, ...] = get_args(Overrule)

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_TYPED_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s/?#\\@:\[\]]+)(?::([0-9]{1,5}))?(?=[/?#]|\Z)")
_NAME = re.compile(r"(?:(?!-)[a-z0-9_-]{1,63}\.)*(?!-)[a-z0-9_-]{1,63}\.?")
_ADDRESS = re.compile(r"\[.*\]|[0-9]+(?:\.[0-9]+){3}")


class SiteSettings(TypedDict, total=False):
    """The settings of a site, such as scope and URL patterns, besides its start URL."""

    scope: ScopeKind
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    sort_parameters: bool
    drop_parameters: tuple[str, ...]
    delay_s: float | None
    change: ChangeRule
    overrule: tuple[Overrule, ...]


def check_scope(url: str, site: Site) -> Refusal | None:
    """Check whether a URL is in the scope of a site: None if it is, else the refusal that says why not.

    >>> docs = Site("https://example.org/docs/", scope="prefix", exclude=("/docs/*.zip$",))
    >>> check_scope("https://example.org/docs/a", docs) is None
    True
    >>> check_scope("https://example.org/docs/a.zip", docs).name, check_scope("https://example.org/blog", docs).name
    ('EXCLUDED', 'OUT_OF_SCOPE')
    """
    if not url.startswith(("http://", "https://")):
        return Refusal.NOT_HTTP
    if len(url) > MAX_URL_BYTES:
        return Refusal.TOO_LONG
    if site.sitemap and url in list_sitemaps(site):
        return None
    scheme, authority, target = _split_url(url)
    if not _SCOPE_CHECKS[site.scope](scheme, authority, target, site.start):
        return Refusal.OUT_OF_SCOPE
    is_included = not site.include or url == site.start or _matches_any(site.include, target)
    return None if is_included and not _matches_any(site.exclude, target) else Refusal.EXCLUDED


@lru_cache(maxsize=1024)
def list_sitemaps(site: Site) -> tuple[str, ...]:
    """Return the URLs of the sitemaps in a site's settings, as they are fetched.

    >>> list_sitemaps(Site("https://example.org/docs/", sitemap=("/map.xml", "https://example.com/map.xml")))
    ('https://example.org/map.xml', 'https://example.com/map.xml')
    """
    found = (resolve(place, site.start) for place in site.sitemap)
    return tuple(normalize(url, site) for url in found if url is not None)


def find_site(url: str, sites: Sequence[Site]) -> Site | None:
    """Return the first site whose scope contains the URL."""
    return next((site for site in sites if check_scope(url, site) is None), None)


class SiteIndex:
    """An index of sites by registrable domain, to find the site whose scope contains a URL.

    No scope extends beyond its registrable domain, except for sitemaps listed one by one, so nothing is missed, and the
    first of several still wins.

    >>> index = SiteIndex([Site("https://example.org/docs/", scope="prefix"), Site("https://example.com/")])
    >>> index.find_site("https://example.org/docs/a").start, index.find_site("https://example.org/blog")
    ('https://example.org/docs/', None)
    """

    def __init__(self, sites: Sequence[Site] = ()) -> None:
        self._by_domain: dict[str, list[Site]] = {}
        self._sitemaps = frozenset(url for site in sites for url in list_sitemaps(site))
        for site in sites:
            for domain in dict.fromkeys(_find_domain(url) for url in (site.start, *list_sitemaps(site))):
                self._by_domain.setdefault(domain, []).append(site)

    def find_site(self, url: str) -> Site | None:
        """Return the first site whose scope contains the URL."""
        for site in self._by_domain.get(_find_domain(url), ()):  # a generator costs more than most of the checks
            if check_scope(url, site) is None:
                return site
        return None

    def is_sitemap(self, url: str) -> bool:
        """Check whether the settings of a site name this URL as a sitemap."""
        return url in self._sitemaps

    def find_by_host(self, host: str) -> tuple[Site, ...]:
        """Return the sites whose scope may contain URLs of a host, as ``model.Origin`` writes it."""
        return tuple(
            site
            for site in self._by_domain.get(_get_domain(host), ())
            if (site.scope == "domain" and _get_domain(host) == _find_domain(site.start))
            or any(_get_host(_split_url(url)[1]) == host for url in (site.start, *list_sitemaps(site)))
        )


def find_refusal(url: str, sites: Sequence[Site]) -> Refusal | None:
    """Return why no site's scope contains the URL, by the site that came closest; None if one does."""
    found = [check_scope(url, site) for site in sites] or [Refusal.OUT_OF_SCOPE]
    return None if None in found else next(reason for reason in _REFUSAL_ORDER if reason in found)


def read_site(text: str, **settings: Unpack[SiteSettings]) -> Site:
    """Parse the site that a person typed: an http(s) URL, or a host with or without port and path.

    Without a scheme, https is assumed for a name and http for an IP address and for localhost; a port decides alone:
    https for 443, http for any other. Anything else raises ``SiteError`` with one line that says what to type.

    >>> read_site("example.org/docs/").start, read_site("localhost:8080").start
    ('https://example.org/docs/', 'http://localhost:8080/')
    """
    start = resolve(_add_scheme(text), None) if text.isprintable() and " " not in text else None
    if start is None or not _is_fetchable(start):
        raise _build_site_error(text)
    if "@" in _split_url(start)[1]:
        raise SiteError(f"{_quote_text(text)} contains a user name or password, which Vedette never sends: remove them")
    site = Site(start, **settings)
    _check_settings(site)
    return replace(site, start=normalize(start, site))


def _check_settings(site: Site) -> None:
    if site.scope not in _SCOPE_CHECKS:
        raise SiteError(f"unknown scope {_quote_text(site.scope)}: choose one of {', '.join(_SCOPE_CHECKS)}")
    for pattern in site.include + site.exclude:
        if not pattern.startswith(("/", "*")):
            raise SiteError(f"pattern {_quote_text(pattern)} does not match any path: start it with / or *")
    if site.change not in _CHANGE_RULES:
        raise SiteError(f"unknown change rule {_quote_text(site.change)}: choose one of {', '.join(_CHANGE_RULES)}")
    for name in site.overrule:
        if name not in _OVERRULES:
            raise SiteError(f"{_quote_text(name)} cannot be overruled: choose from {', '.join(_OVERRULES)}, or none")


def _add_scheme(text: str) -> str:
    if _SCHEME.match(text):
        return text
    typed = _TYPED_HOST.match(text)
    if typed is None or typed[1].lower() in {"http", "https"}:  # such as https//example.org
        return ""
    host, port = typed.groups()
    address = _ADDRESS.fullmatch(host) is not None
    if not address and host.replace(".", "").isdigit():
        return ""  # the standard would read "3" as 0.0.0.3, which is never meant
    plain = port != "443" if port else address or _is_localhost(host)
    return f"{'http' if plain else 'https'}://{text}"


def _is_localhost(host: str) -> bool:
    return f".{host.lower().removesuffix('.')}".endswith(".localhost")


def _is_fetchable(start: str) -> bool:
    """Check whether a site's start URL has a DNS name or an address as host, and is short enough to be in scope."""
    host = _get_host(_split_url(start)[1])
    named = _ADDRESS.fullmatch(host) or (len(host) <= 254 and _NAME.fullmatch(host))
    return bool(named) and len(start) <= MAX_URL_BYTES


def _build_site_error(text: str) -> SiteError:
    advice = "use an http(s) URL or a host name, such as https://example.org/docs/"
    return SiteError(f"{_quote_text(text)} is not a site: {advice}")


def _quote_text(text: str) -> str:
    """Quote user input for a site, on one line and shortened, for an error message."""
    line = f"{text[:100]!r}"[1:-1]
    return f'"{line}…"' if len(text) > 100 else f'"{line}"'


def _split_url(url: str) -> tuple[str, str, str]:
    scheme, _, rest = url.partition("://")
    authority, _, target = rest.partition("/")
    return scheme, authority, f"/{target}"


@lru_cache(maxsize=4096)  # links of a page name few hosts, and each link asks several times
def _get_host(authority: str) -> str:
    """Return the host of a URL's authority, without credentials and port; an IPv6 address keeps its brackets."""
    name = authority.rpartition("@")[2]
    host, colon, _ = name.rpartition(":")
    return host if colon and not name.endswith("]") else name


def _is_below_folder(scheme: str, authority: str, target: str, start: str) -> bool:
    start_scheme, start_authority, start_target = _split_url(start)
    folder = start_target.partition("?")[0].rpartition("/")[0] + "/"
    origin = (scheme, authority.rpartition("@")[2])
    return origin == (start_scheme, start_authority.rpartition("@")[2]) and target.startswith(folder)


def _is_same_host(_scheme: str, authority: str, _target: str, start: str) -> bool:
    return _get_host(authority) == _get_start_host(start)


@lru_cache(maxsize=4096)
def _get_start_host(start: str) -> str:
    return _get_host(_split_url(start)[1])


def _is_same_domain(_scheme: str, authority: str, _target: str, start: str) -> bool:
    """Check whether a URL is in ``domain`` scope: under the start's registrable domain, else on the same host.

    A host with the same ending need not belong to the domain, since parts of it may be public suffixes themselves.
    """
    host, start_host = _get_host(authority), _get_start_host(start)
    domain = _get_domain(start_host)
    return host == start_host or (f".{host}".endswith(f".{domain}") and registrable_domain(host) == domain)


def _find_domain(url: str) -> str:
    return _get_domain(_get_host(_split_url(url)[1]))


@lru_cache(maxsize=65_536)
def _get_domain(host: str) -> str:
    return registrable_domain(host)


_SCOPE_CHECKS: dict[ScopeKind, Callable[[str, str, str, str], bool]] = {
    "prefix": _is_below_folder,
    "host": _is_same_host,
    "domain": _is_same_domain,
}


def _matches_any(patterns: tuple[str, ...], target: str) -> bool:
    return any(matches_wildcard(_expand_pattern(pattern), target) for pattern in patterns)


@lru_cache(maxsize=4096)
def _expand_pattern(pattern: str) -> str:
    """Expand an include or exclude pattern to the whole URL target, percent-encoded as the parser spells paths."""
    spelt = quote(pattern, safe=_ASCII, errors="replace")
    return spelt.removesuffix("$") if spelt.endswith("$") else f"{spelt}*"
