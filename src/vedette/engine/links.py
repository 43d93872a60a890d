"""Link resolver: resolve, scope and normalize the links of pages, with a cache, since most links of a site repeat.

A link goes through three steps that cost far more than a lookup: resolve it against its page, find the site it belongs
to, normalize it by that site's rules. The result depends only on the absolute text of the link, so it is cached under
that text. The cache has two halves: when the newer one is full it replaces the older one, which drops every entry that
was not used since.

Links that belong to no site are not followed, but ``find_unlisted_hosts`` returns the unlisted hosts they name.
"""

import re
from collections.abc import Iterable

from vedette.discover.urls.duplicate_rules import CopyRules
from vedette.discover.urls.normalize import normalize, resolve
from vedette.discover.urls.scope import SiteIndex
from vedette.model import origin_of

NO_RULES = CopyRules()

CACHE_HALF = 50_000
# Longer links are rare, and a hostile page must not fill memory with them.
MAX_CACHED_LENGTH = 500
# A second character after "/" that makes a link point to another host, directly or after stripping.
_OFF_HOST_CHARACTERS = frozenset("/\\\t\n\r")
# A link that names its host, and the text between the slashes: the host depends on nothing else.
_NAMES_HOST = re.compile(r"\s{0,9}(https?:)?//([^/\\?#]{1,300}+)(?=[/\\?#]|\Z)", re.ASCII | re.IGNORECASE)
# The URL standard allows characters that no real host name has, and a shell could interpret some of them: never suggest
# such hosts.
_HOST = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*", re.ASCII)
MAX_UNLISTED_HOSTS = 20
MAX_HOSTS = 10_000


class LinkResolver:
    """Resolve links under the current rules for sites, with a cache.

    >>> from vedette.model import Site
    >>> links = LinkResolver(SiteIndex([Site("https://example.org/")]))
    >>> links.resolve_within(["/b?utm_source=x", "c#top", "https://example.com/"], "https://example.org/a/")
    ('https://example.org/b', 'https://example.org/a/c')
    """

    def __init__(self, sites: SiteIndex, learned: CopyRules = NO_RULES) -> None:
        self.sites = sites
        self._learned = learned
        self._young: dict[str, str | None] = {}
        self._old: dict[str, str | None] = {}
        self._hosts: dict[str, str | None] = {}

    def resolve_within(self, hrefs: Iterable[str], base: str) -> tuple[str, ...]:
        """Resolve the links of page ``base`` to URLs within the sites, each once, in order."""
        found = dict.fromkeys(self.resolve_each(hrefs, base))
        found.pop(None, None)
        return tuple(url for url in found if url is not None)

    def resolve_each(self, hrefs: Iterable[str], base: str) -> list[str | None]:
        """Resolve each link of a page; None if no site covers it."""
        start = base.find("/", base.find("//") + 2)
        origin, folder = base[:start], base[: base.partition("?")[0].rfind("/") + 1]
        young, found = self._young, []
        for href in hrefs:
            if href.startswith(("http://", "https://")):
                text = href
            elif href[:1] == "/" and href[1:2] not in _OFF_HOST_CHARACTERS:
                text = origin + href
            elif href[:1].isalnum() and ":" not in href:
                text = folder + href
            else:
                url = resolve(href, base)
                found.append(normalize_within(url, self.sites, self._learned) if url is not None else None)
                continue
            try:
                found.append(young[text])
            except KeyError:
                found.append(self._cache(text))
        return found

    def find_unlisted_hosts(self, hrefs: Iterable[str]) -> tuple[str, ...]:
        """Find the unlisted hosts among links that no site covers; each once, the first few.

        >>> from vedette.model import Site
        >>> links = LinkResolver(SiteIndex([Site("https://example.org/docs/", scope="prefix")]))
        >>> links.find_unlisted_hosts(["https://me@Example.com:8443/a", "//example.net", "https://example.org/b", "/c"])
        ('example.com', 'example.net')
        """
        found: dict[str, None] = {}
        for href in hrefs:
            named = _NAMES_HOST.match(href)
            host = self._find_unlisted_host(named[2]) if named else None
            if host is not None:
                found[host] = None
                if len(found) == MAX_UNLISTED_HOSTS:
                    break
        return tuple(found)

    def _find_unlisted_host(self, authority: str) -> str | None:
        """Parse the host of a link's authority, unless a site covers it; cached, since many pages name the same few."""
        if authority not in self._hosts:
            if len(self._hosts) >= MAX_HOSTS:
                self._hosts.clear()
            self._hosts[authority] = self._parse_unlisted_host(authority)
        return self._hosts[authority]

    def _parse_unlisted_host(self, authority: str) -> str | None:
        url = resolve(f"https://{authority}/", None)
        host = origin_of(url).host.removesuffix(".") if url is not None else ""
        return host if _HOST.fullmatch(host) and not self.sites.find_by_host(host) else None

    def _cache(self, text: str) -> str | None:
        url = self._old.get(text)
        if url is None and text not in self._old and (whole := resolve(text, None)) is not None:
            url = normalize_within(whole, self.sites, self._learned)
        if len(text) <= MAX_CACHED_LENGTH:
            if len(self._young) >= CACHE_HALF:
                self._old = dict(self._young)
                self._young.clear()  # the same object: a caller may hold a reference to it
            self._young[text] = url
        return url


def normalize_within(url: str, sites: SiteIndex, learned: CopyRules) -> str | None:
    """Normalize a URL by its site's rules and learned duplicate rules; None if no site covers it.

    A site's operator can override duplicate rules.
    """
    site = sites.find_site(url)
    if site is None:
        return None
    url = normalize(url, site)
    return url if not learned.rules or "copy" in site.overrule else learned.apply(url)[0]
