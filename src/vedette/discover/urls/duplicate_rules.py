"""Copy rules: learned rules on which spellings of a site's URLs are duplicates, so that only one is fetched.

A rule covers URLs of one host and rewrites one aspect of them:

- ``origin``: one scheme and host replaces another (mirrors, www and the bare name, http and https);
- ``parameter``: a parameter is dropped, below one folder or everywhere (``*``);
- ``query``: the whole query is dropped;
- ``index``: the name of an index file is dropped;
- ``slash``: the last slash of a path is dropped or added;
- ``slashes``: several slashes in a row are one.

An ``ending`` rule rewrites nothing. It says that ``/x.html`` is the page ``/x``, and is skipped once ``/x`` was
fetched. A server that has both may redirect ``/x`` to a folder of that name, or lack it, so only a page that is there
stands for the other spelling. For the same reason ``/x`` is never skipped.

The origin comes first, then the rules of the resulting host, until none covers the URL any more; so applying twice
changes nothing. One in ``CHECK_EVERY`` covered URLs, chosen by its hash, is left as it is: it is fetched anyway, and
the result shows whether the rules are still valid (``duplicate_evidence``). Rules are plain data, built in the
coordinator and applied wherever links are parsed. A URL without a rule costs one lookup of its host.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import xxhash

Kind = Literal["origin", "parameter", "query", "index", "slash", "slashes", "ending"]

CHECK_EVERY = 50
EVERYWHERE = "*"
MAX_URL_LENGTH = 8192
MAX_HOST_LENGTH = 260  # of a name, with a port
MAX_ROUNDS = 4
_SLASHES = re.compile("//+")
ENDINGS = (".html", ".htm", ".php", ".asp", ".aspx", ".jsp")
INDEX_FILES = frozenset(f"{name}{ending}" for name in ("index", "default") for ending in ENDINGS)


class RuleSubject(NamedTuple):
    """The subject of a copy rule: the one aspect in which it rewrites URLs of a host.

    ``host`` includes its port if one is written. ``where`` is the scheme for an origin, otherwise a folder or ``*``;
    ``what`` is the resulting origin, a parameter, an index file, ``drop`` or ``add`` of a slash, an ending, or nothing.
    """

    kind: Kind
    host: str
    where: str
    what: str


@dataclass(frozen=True, slots=True)
class CopyRule:
    """An accepted copy rule, and how many of the URL pairs that are evidence for it agreed."""

    subject: RuleSubject
    agreed: int
    pair_count: int

    def __str__(self) -> str:
        return f"{_DESCRIPTIONS[self.subject.kind](self.subject)}: {self.agreed} of {self.pair_count} pairs were copies"


class UrlParts(NamedTuple):
    """A URL in the parts that copy rules rewrite; ``query`` is without its mark, None if there is no mark."""

    scheme: str
    host: str
    path: str
    query: str | None

    def __str__(self) -> str:
        mark = "" if self.query is None else f"?{self.query}"
        return f"{self.scheme}://{self.host}{self.path}{mark}"


def split_url(url: str) -> UrlParts | None:
    """Split an absolute http(s) URL as ``resolve`` writes it into its parts; None for others or a very long one.

    >>> split_url("http://a.example:81/x/?y=1")
    UrlParts(scheme='http', host='a.example:81', path='/x/', query='y=1')
    """
    if len(url) > MAX_URL_LENGTH:
        return None
    scheme, mark, rest = url.partition("://")
    host, slash, tail = rest.partition("/")
    if scheme not in {"http", "https"} or not (mark and host and slash):
        return None
    if len(host) > MAX_HOST_LENGTH or not host.isascii() or any(sign in host for sign in "?#@"):
        return None
    path, question, query = tail.partition("?")
    return UrlParts(scheme, host, f"/{path}", query if question else None)


def extract_folder(path: str) -> str:
    """Return the first folder of a URL path, by which copy rules distinguish a site's kinds of pages.

    >>> extract_folder("/shop/hats/7"), extract_folder("/about")
    ('/shop/', '/')
    """
    folder, slash, _ = path[1:].partition("/")
    return f"/{folder}/" if slash else "/"


@dataclass(frozen=True)  # without slots: the table by host is built once and cached
class CopyRules:
    """All accepted copy rules. They must not form a cycle between hosts."""

    rules: tuple[CopyRule, ...] = ()

    @cached_property
    def _by_host(self) -> Mapping[str, "_HostRules"]:
        by_host: dict[str, dict[tuple[Kind, str, str], CopyRule]] = {}
        for rule in self.rules:
            kind, host, where, what = rule.subject
            named = what if kind in {"parameter", "index", "ending"} else ""
            by_host.setdefault(host, {})[kind, where, named] = rule
        return by_host

    def apply(self, url: str) -> tuple[str, CopyRule | None]:
        """Apply the copy rules to a URL: return the URL to fetch instead, and the first rule that covers it.

        A covered URL that is returned unchanged is fetched to check the rules that cover it.
        """
        start = url.find("://") + 3
        if url[start : url.find("/", start)] not in self._by_host:
            return url, None
        target, covering = self.find_covering(url)
        if not covering:
            return url, None
        return (url if is_check(url) else target), covering[0]

    def find_bare(self, url: str) -> tuple[str, CopyRule] | None:
        """Find the URL without its ending that stands for this one once it was fetched, and the rule.

        >>> rule = CopyRule(RuleSubject("ending", "a.example", EVERYWHERE, ".html"), 7, 7)
        >>> CopyRules((rule,)).find_bare("http://a.example/x.html?y=1")[0]
        'http://a.example/x?y=1'
        """
        for rule in self._list_endings(url):
            path, mark, query = url.partition("?")
            bare = path.removesuffix(rule.subject.what)
            if bare != path and not bare.endswith("/"):
                return f"{bare}{mark}{query}", rule
        return None

    def list_ended(self, url: str) -> list[str]:
        """List the other spellings of a URL, with an ending, that it stands for."""
        path, mark, query = url.partition("?")
        ended = [f"{path}{rule.subject.what}{mark}{query}" for rule in self._list_endings(url)]
        return [] if path.endswith("/") else ended

    def _list_endings(self, url: str) -> list[CopyRule]:
        start = url.find("://") + 3
        rules = self._by_host.get(url[start : url.find("/", start)], {})
        return [rule for (kind, _, _), rule in rules.items() if kind == "ending"]

    def find_covering(self, url: str) -> tuple[str, tuple[CopyRule, ...]]:
        """Find the copy rules that cover a URL, in order, and the URL that they lead to, checks aside."""
        before = split_url(url)
        if before is None:
            return url, ()
        covering: list[CopyRule] = []
        for _ in range(MAX_ROUNDS):
            after = self._apply_round(before, covering)
            if after == before:
                return str(after), tuple(covering)
            before = after
        return url, ()  # no real URL takes more steps

    def _apply_round(self, parts: UrlParts, covering: list[CopyRule]) -> UrlParts:
        for step in _STEPS:
            rules = self._by_host.get(parts.host)
            if rules is None:
                break
            parts = step(parts, rules, covering)
        return parts

    def to_json(self) -> str:
        """Encode the copy rules as JSON text, one list per rule."""
        return json.dumps([[*rule.subject, rule.agreed, rule.pair_count] for rule in self.rules])

    @classmethod
    def from_json(cls, text: str) -> "CopyRules":
        """Decode the copy rules that ``to_json`` wrote."""
        return cls(tuple(CopyRule(RuleSubject(*row[:4]), *row[4:]) for row in json.loads(text)))


def is_check(url: str) -> bool:
    """Check whether a URL that copy rules cover is fetched anyway, to verify them."""
    return xxhash.xxh64_intdigest(url.encode("utf-8", "replace")) % CHECK_EVERY == 0


_HostRules = Mapping[tuple[Kind, str, str], CopyRule]
_Step = Callable[[UrlParts, _HostRules, list[CopyRule]], UrlParts]


def _apply_origin(parts: UrlParts, rules: _HostRules, covering: list[CopyRule]) -> UrlParts:
    rule = rules.get(("origin", parts.scheme, ""))
    if rule is None:
        return parts
    covering.append(rule)
    scheme, _, host = rule.subject.what.partition("://")
    return parts._replace(scheme=scheme, host=host)


def _apply_query(parts: UrlParts, rules: _HostRules, covering: list[CopyRule]) -> UrlParts:
    if parts.query is None:
        return parts
    rule = _find_rule(rules, "query", extract_folder(parts.path), "")
    if rule is None:
        return parts
    covering.append(rule)
    return parts._replace(query=None)


def _apply_parameters(parts: UrlParts, rules: _HostRules, covering: list[CopyRule]) -> UrlParts:
    if not parts.query:
        return parts
    folder, remaining = extract_folder(parts.path), []
    pieces = parts.query.split("&")
    for piece in pieces:
        rule = _find_rule(rules, "parameter", folder, piece.partition("=")[0])
        if rule is None:
            remaining.append(piece)
        elif rule not in covering:
            covering.append(rule)
    return parts if len(remaining) == len(pieces) else parts._replace(query="&".join(remaining) or None)


def _apply_index(parts: UrlParts, rules: _HostRules, covering: list[CopyRule]) -> UrlParts:
    folder, _, name = parts.path.rpartition("/")
    rule = rules.get(("index", EVERYWHERE, name))
    if rule is None:
        return parts
    covering.append(rule)
    return parts._replace(path=f"{folder}/")


def _apply_slash(parts: UrlParts, rules: _HostRules, covering: list[CopyRule]) -> UrlParts:
    rule = rules.get(("slash", EVERYWHERE, ""))
    if rule is None or parts.path == "/":
        return parts
    if rule.subject.what == "drop":
        path = parts.path.removesuffix("/")
    else:
        path = parts.path if _is_file(parts.path) else f"{parts.path}/"
    if path != parts.path:
        covering.append(rule)
    return parts._replace(path=path)


def merge_slashes(path: str) -> str:
    """Return a path with one slash for several in a row.

    >>> merge_slashes("//plugins///velocity/")
    '/plugins/velocity/'
    """
    return _SLASHES.sub("/", path)


def _apply_slashes(parts: UrlParts, rules: _HostRules, covering: list[CopyRule]) -> UrlParts:
    rule = rules.get(("slashes", EVERYWHERE, "")) if "//" in parts.path else None
    if rule is None:
        return parts
    covering.append(rule)
    return parts._replace(path=merge_slashes(parts.path))


def _is_file(path: str) -> bool:
    """Check whether a path ends in a slash, or in a file name with an extension, to which no slash is added."""
    last = path.rpartition("/")[2]
    return not last or "." in last


def _find_rule(rules: _HostRules, kind: Kind, folder: str, name: str) -> CopyRule | None:
    return rules.get((kind, EVERYWHERE, name)) or rules.get((kind, folder, name))


_STEPS: tuple[_Step, ...] = (
    _apply_origin,
    _apply_query,
    _apply_parameters,
    _apply_slashes,
    _apply_index,
    _apply_slash,
)


def _describe_scope(where: str) -> str:
    return "everywhere" if where == EVERYWHERE else f"below {where}"


_DESCRIPTIONS: Mapping[Kind, Callable[[RuleSubject], str]] = {
    "origin": lambda it: f"{it.where}://{it.host} is fetched as {it.what}",
    "parameter": lambda it: f"{it.what}= is dropped {_describe_scope(it.where)} on {it.host}",
    "query": lambda it: f"the whole query is dropped {_describe_scope(it.where)} on {it.host}",
    "index": lambda it: f"{it.what} is dropped on {it.host}",
    "slashes": lambda it: f"several slashes in a row are one on {it.host}",
    "ending": lambda it: f"{it.what} makes no difference on {it.host}",
    "slash": lambda it: f"the last slash is {'dropped' if it.what == 'drop' else 'added'} on {it.host}",
}
