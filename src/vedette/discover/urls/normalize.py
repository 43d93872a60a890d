"""Resolve links to absolute URLs and normalize them, so that each page of a site has one URL.

``resolve`` follows the WHATWG URL standard and nothing else, so a link leads where a browser would go. ``normalize``
then applies the site's own rules, in the order of ``_RULES``:

1. user name and password are removed: a crawler must not send what an untrusted link contains;
2. ``;jsessionid=…`` is removed from the path, if the site's patterns name ``jsessionid``;
3. empty parameters between two ``&``, and a ``?`` with nothing after it, are removed;
4. tracking and session parameters are dropped (``Site.drop_parameters``);
5. parameters are sorted by name, equal names in their old order (``Site.sort_parameters``).

Scheme, host and port never change, and every remaining parameter keeps its bytes: only a server knows whether ``%7E``
and ``~`` or ``a`` and ``a=`` are the same to it. Folding http into https or www into the bare name needs evidence from
fetches, so it is not done here.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote_plus

from ada_url import join_url, normalize_url

from vedette.model import Site

# Links of common forms that the standard leaves as they are, so that string concatenation gives the parser's result: no
# character that it would encode, strip or treat as a delimiter, no host that it would rewrite (upper case, punycode,
# numbers) and no first segment that could be a scheme or a dot segment. Other dot segments are checked afterwards.
_QUERY = r"\?[\w~!$&()*+,;=:@%./?-]*+"
_TAIL = rf"[\w~!$&'()*+,;=:@%./-]*+(?:{_QUERY})?+"
_PLAIN = re.compile(
    rf"""(?: (?P<absolute> https?://(?![^/]*xn--)[a-z0-9.-]*\.[a-z]+/{_TAIL} )
           | (?P<rooted>   /(?!/){_TAIL} )
           | (?P<relative> (?![^:/?]*:)[\w~!$&'()*+,;=-]{_TAIL} )
           | (?P<query>    {_QUERY} )
           | (?P<same>     ) )
         (?:\#.*+)?+""",
    re.ASCII | re.DOTALL | re.VERBOSE,
)
_Prefixes = dict[str | None, str]
_MAX_CACHED_BASE = 4096  # a hostile <base> of megabytes must not stay in the cache
_PATH_SESSION = re.compile(r";jsessionid=[^/;]*", re.IGNORECASE)


def resolve(link: str, base: str | None) -> str | None:
    """Resolve a link on page ``base`` to an absolute http(s) URL without its fragment; None if there is none.

    Never raises, takes time linear in its input, and has no length limit. Plain links are concatenated from strings,
    several times faster than the parser and with the same result.

    >>> resolve("../b?q#top", "https://Example.org/docs/a/")
    'https://example.org/docs/b?q'
    >>> resolve("mailto:somebody@example.org", None) is None
    True
    """
    plain = _PLAIN.fullmatch(link)
    if plain is not None and (base is None or len(base) <= _MAX_CACHED_BASE):
        form = plain.lastgroup
        prefix = _build_prefixes(base).get(form)
        kept = plain[form or 0]
        if prefix is not None and "/." not in kept and "/%2" not in kept:
            return prefix + kept
    return _keep_http(_parse(link, base))


@lru_cache(maxsize=256)
def _build_prefixes(base: str | None) -> _Prefixes:
    """Build the prefixes that resolve plain links of each form; no entry if the URL parser must decide."""
    if base is None:
        return {"absolute": ""}
    href = _parse(base, None)
    url = _keep_http(href)
    if url is None:
        return {} if href is None else {"absolute": ""}
    page = url.partition("?")[0]
    root, folder = url[: _find_path(url)], page[: page.rindex("/") + 1]
    return {"absolute": "", "rooted": root, "relative": folder, "query": page, "same": url}


def _parse(link: str, base: str | None) -> str | None:
    """Resolve a link by the WHATWG URL parser; None for failure."""
    try:
        return normalize_url(link) if base is None else join_url(base, link)
    except ValueError:
        # Either the standard says failure, or a lone surrogate could not be encoded.
        scalars = _replace_surrogates(link), None if base is None else _replace_surrogates(base)
        return None if scalars == (link, base) else _parse(*scalars)


def _replace_surrogates(text: str) -> str:
    """Replace surrogates in a link as the URL standard does: join pairs, and make each lone one U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _keep_http(href: str | None) -> str | None:
    if href is None or not href.startswith(("http://", "https://")):
        return None
    return href.partition("#")[0]


def _find_path(url: str) -> int:
    return url.index("/", url.index("//") + 2)


@dataclass(frozen=True, slots=True)
class RewriteStep:
    """One URL normalization rule that changed a URL."""

    rule: str
    before: str
    after: str


def normalize(url: str, site: Site) -> str:
    """Normalize a URL returned by ``resolve`` by the site's rules: the one URL of its page.

    >>> normalize("https://example.org/a?b=2&utm_source=x&a=1&b=1", Site("https://example.org/"))
    'https://example.org/a?a=1&b=2&b=1'
    """
    if "?" in url or "@" in url or ";" in url:  # each rule needs one of them; most URLs have none
        for _, apply in _RULES:
            url = apply(url, site)
    return url


def explain_normalize(url: str, site: Site) -> tuple[RewriteStep, ...]:
    """List the normalization rules that change this URL, in order; the last ``after`` is ``normalize``'s result."""
    steps = []
    for rule, apply in _RULES:
        after = apply(url, site)
        if after != url:
            steps.append(RewriteStep(rule, url, after))
            url = after
    return tuple(steps)


def matches_wildcard(pattern: str, text: str) -> bool:
    """Check whether a whole text, such as a URL parameter, matches a pattern in which ``*`` is any text.

    Taking the leftmost match for each part is enough, so there is no backtracking.

    >>> matches_wildcard("utm_*", "utm_source"), matches_wildcard("*id", "idle")
    (True, False)
    """
    head, *others = pattern.split("*")
    if not others:
        return text == pattern
    *middle, tail = others
    end = len(text) - len(tail)
    if end < len(head) or not text.startswith(head) or not text.endswith(tail):
        return False
    at = len(head)
    for part in middle:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def _drop_credentials(url: str, _site: Site) -> str:
    if "@" not in url:
        return url
    start, stop = url.index("//") + 2, _find_path(url)
    return url[:start] + url[start:stop].rpartition("@")[2] + url[stop:]


def _drop_path_session(url: str, site: Site) -> str:
    if ";" not in url or not _compile_patterns(site.drop_parameters).has_match("jsessionid"):
        return url
    address, mark, query = url.partition("?")
    start = _find_path(url)  # a host may contain such text too
    shorter = address[:start] + _PATH_SESSION.sub("", address[start:])
    # "/..;jsessionid=1/" would become a dot segment, which leads to another page: such a URL is left unchanged.
    return shorter + mark + query if shorter == address or _parse(shorter, None) == shorter else url


def _drop_empty(url: str, _site: Site) -> str:
    return _rewrite_query(url, lambda pieces: [piece for piece in pieces if piece])


def _drop_parameters(url: str, site: Site) -> str:
    drop = _compile_patterns(site.drop_parameters)
    return _rewrite_query(url, lambda pieces: [piece for piece in pieces if not drop.has_match(_get_name(piece))])


def _sort_parameters(url: str, site: Site) -> str:
    return _rewrite_query(url, lambda pieces: sorted(pieces, key=_get_name)) if site.sort_parameters else url


def _rewrite_query(url: str, change: Callable[[list[str]], list[str]]) -> str:
    address, mark, query = url.partition("?")
    if not mark:
        return url
    changed = "&".join(change(query.split("&")))
    return f"{address}?{changed}" if changed else address


def _get_name(piece: str) -> str:
    return piece.partition("=")[0]


@dataclass(frozen=True, slots=True)
class _Patterns:
    """Patterns of URL parameters to drop, sorted by the cost of a lookup: whole names, prefixes, and others."""

    exact: frozenset[str]
    prefixes: tuple[str, ...]
    others: tuple[str, ...]

    def has_match(self, parameter: str) -> bool:
        """Check whether a pattern matches this URL parameter, decoded and in any case, as a server reads it."""
        plain = (unquote_plus(parameter) if "%" in parameter or "+" in parameter else parameter).lower()
        if plain in self.exact or plain.startswith(self.prefixes):
            return True
        return any(matches_wildcard(pattern, plain) for pattern in self.others) if self.others else False


@lru_cache(maxsize=256)
def _compile_patterns(written: tuple[str, ...]) -> _Patterns:
    lower = [pattern.lower() for pattern in written]
    beginnings = [pattern[:-1] for pattern in lower if pattern.find("*") == len(pattern) - 1]
    others = [pattern for pattern in lower if -1 < pattern.find("*") < len(pattern) - 1]
    return _Patterns(frozenset(lower), tuple(beginnings), tuple(others))


_RULES: tuple[tuple[str, Callable[[str, Site], str]], ...] = (
    ("credentials", _drop_credentials),
    ("session in the path", _drop_path_session),
    ("empty parameters", _drop_empty),
    ("dropped parameters", _drop_parameters),
    ("order of parameters", _sort_parameters),
)
