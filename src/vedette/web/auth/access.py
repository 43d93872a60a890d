"""Who is asking, and what may they see?

A reader is known by a key, by the name that a trusted proxy gives, or not at all. A key is shown in the header
``Authorization: Bearer vk_…``, by programs also as ``?key=`` of the API, by people in the cookie that the sign-in page
sets. The proxy's header is read only with ``access = "proxy"``, and then only trusted proxies are answered; otherwise
anybody could send it.

Pages that were fetched with a site's secrets are private. They are shown to readers with a name that the site names.
"""

import ipaddress
import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

from starlette.requests import Request

from vedette.config import Rate, Serve
from vedette.model import Site
from vedette.web.auth.keys import PREFIX, Key, find_key
from vedette.web.auth.rate_limits import address_mark, is_among

__all__ = [
    "CONSOLE",
    "COOKIE",
    "EVENTS",
    "OF_OPERATORS",
    "Access",
    "Reader",
    "Refused",
    "allowed_sites",
    "is_for_programs",
    "path_of",
]

COOKIE = "vedette_key"
EVENTS = "/api/v1/events"
CONSOLE = "/console"
OF_OPERATORS = frozenset({"/api/v1/orders", "/api/v1/actions", "/api/v1/budget"})
MOST_PROXIES = 16  # in a row before us
# What a browser needs to show the sign-in page or an embedded box, what tells nothing of any page, and what the
# owners of crawled sites look for.
_OPEN = frozenset(
    {"/healthz", "/signin", "/bot", "/privacy", "/embed.js", "/opensearch.xml", "/robots.txt", "/favicon.ico"}
)
_OPEN_FOLDER = "/static/"
_USER = re.compile(r"[^\x00-\x1f\x7f-\x9f]{1,200}")


class Reader(NamedTuple):
    """Who asks; without a name it is anybody. ``sites``, where there are any, are all that this reader may search."""

    name: str = ""
    scopes: tuple[str, ...] = ("search",)
    rate: Rate | None = None
    sites: tuple[str, ...] = ()
    known_by: Literal["", "key", "proxy"] = ""


class Refused(NamedTuple):
    """Why somebody is not answered: a status, a short code for programs, and words for people."""

    status: int
    code: str
    words: str


def allowed_sites(reader: Reader, sites: Iterable[Site]) -> tuple[str, ...]:
    """The starts of the private sites whose pages a reader may see.

    >>> wiki = Site("https://wiki.example.org/", secrets="env:WIKI", readers=("ann",))
    >>> allowed_sites(Reader("ann", ("search", "private"), known_by="proxy"), [wiki])
    ('https://wiki.example.org/',)
    >>> allowed_sites(Reader(), [wiki])
    ()
    """
    if not reader.known_by or "private" not in reader.scopes:
        return ()
    names = {reader.name, "*"}
    return tuple(site.start for site in sites if site.secrets and not names.isdisjoint(site.readers))


def path_of(request: Request) -> str:
    """The path that routes go by. ``request.url`` also goes by the header Host, which anybody may write."""
    path: str = request.scope["path"]
    return path


def is_for_programs(path: str) -> bool:
    """Whether answers under a path are for programs: a refusal is JSON there, and a key may be a parameter."""
    programs = {"/healthz", "/metrics", "/mcp", "/new.atom", "/indexnow"}
    return path == "/api" or path.startswith(("/api/", "/push/")) or path in programs


class Access:
    """The rule of who is let in, as configured."""

    def __init__(self, serve: Serve, keys: Callable[[], Sequence[Key]]) -> None:
        self.serve = serve
        self._keys = keys
        self._trusted = tuple(ipaddress.ip_network(each) for each in serve.trusted_proxies)
        self._salt = secrets.token_bytes(32)  # marks of addresses mean nothing to another process

    def reader(self, request: Request) -> Reader | Refused:
        """Who asks, or why they are not answered."""
        path = path_of(request)
        found = self._identified(request)
        if path in OF_OPERATORS:
            return _ordering(found, bool(self._borne(request)))
        if path in _OPEN or path.startswith(_OPEN_FOLDER) or (_asks_itself(path) and self._is_heard(request)):
            return found if isinstance(found, Reader) else Reader()
        return found if isinstance(found, Refused) else _fitting(found, path)

    def mark(self, request: Request, reader: Reader | Refused) -> str:
        """By what a reader's requests are counted together."""
        if isinstance(reader, Reader) and reader.known_by:
            return f"{reader.known_by}:{reader.name}"
        return address_mark(self.address(request), self._salt)

    def address(self, request: Request) -> str:
        """The peer, or for whom a trusted proxy asks: the last of its list that is no trusted proxy itself."""
        peer = _peer(request)
        if not self._trusts(peer):
            return peer
        told = ",".join(request.headers.getlist("x-forwarded-for")).split(",")[-MOST_PROXIES:]
        return next((each for each in map(str.strip, reversed(told)) if each and not self._trusts(each)), peer)

    def is_https(self, request: Request) -> bool:
        """Whether the reader's browser speaks https, perhaps to a proxy that speaks http to us."""
        if request.scope["scheme"] == "https" or self.serve.address.startswith("https://"):
            return True
        return self._trusts(_peer(request)) and request.headers.get("x-forwarded-proto", "").strip().lower() == "https"

    def holder(self, presented: str) -> Reader | None:
        """The reader whose key this is."""
        key = find_key(self._keys(), presented)
        return Reader(key.name, key.scopes, key.rate, key.sites, "key") if key else None

    def _is_heard(self, request: Request) -> bool:
        """Whether the request came by a way on which this server listens at all."""
        return self.serve.access != "proxy" or self._trusts(_peer(request))

    def _identified(self, request: Request) -> Reader | Refused:
        if not self._is_heard(request):
            return Refused(403, "not_through_proxy", "This server answers only what comes through its proxy.")
        shown = self._shown(request)
        if shown:
            return self.holder(shown) or Refused(401, "wrong_key", "This key is unknown or was revoked.")
        # A cookie may outlive its key, which is no fault of the reader's: it counts as none.
        return self.holder(request.cookies.get(COOKIE, "")) or self._without_key(request)

    def _without_key(self, request: Request) -> Reader | Refused:
        if self.serve.access == "open":
            return Reader()
        if self.serve.access == "proxy":
            return self._named_by_proxy(request)
        return Refused(401, "no_key", "A key is needed: send it in the header Authorization, as Bearer vk_….")

    def _named_by_proxy(self, request: Request) -> Reader | Refused:
        names = request.headers.getlist(self.serve.proxy_header)
        # Two names are a sign that the proxy lets through what its visitors send.
        if len(names) != 1 or not _USER.fullmatch(name := names[0].strip()):
            return Refused(401, "no_user", "The proxy did not say who is asking. Sign in there first.")
        return Reader(name, ("search", "private"), known_by="proxy")

    def _shown(self, request: Request) -> str:
        # Pings show a site's key under the same name.
        has_key = is_for_programs(path_of(request)) and path_of(request) != "/indexnow"
        in_address = request.query_params.get("key", "") if has_key else ""
        return self._borne(request) or in_address

    def _borne(self, request: Request) -> str:
        """The key in the header; what else a proxy's readers may send there is none of ours."""
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        shown = shown.strip()
        is_ours = self.serve.access != "proxy" or shown.startswith(PREFIX)
        return (shown or "none") if scheme.lower() == "bearer" and is_ours else ""

    def _trusts(self, address: str) -> bool:
        return is_among(address, self._trusted)


def _asks_itself(path: str) -> bool:
    """What needs no reader's key because it asks for something else: a signature, a site's key, or a sign-in."""
    return path in {EVENTS, CONSOLE, "/indexnow"} or path.startswith((f"{CONSOLE}/", "/push/"))


def _ordering(found: Reader | Refused, is_shown: bool) -> Reader | Refused:  # noqa: FBT001 - one of two ways
    """Who may order: the holder of such a key, who shows it himself; no cookie does, which a browser sends unasked."""
    if isinstance(found, Refused):
        return found
    if not is_shown or found.known_by != "key":
        words = "A key with the scope admin is needed: send it in the header Authorization, as Bearer vk_…."
        return Refused(401, "no_key", words)
    if "admin" not in found.scopes:
        return Refused(403, "not_for_orders", "This key may not change anything. Ask for one with the scope admin.")
    return found


def _fitting(reader: Reader, path: str) -> Reader | Refused:
    if "search" not in reader.scopes:
        return Refused(403, "not_for_search", "This key may not search. Ask for one with the scope search.")
    if reader.sites and not is_for_programs(path):
        return Refused(403, "only_for_programs", "This key is for some sites only, and works with the API only.")
    return reader


def _peer(request: Request) -> str:
    return request.client.host if request.client else ""
