"""Access control: who sends a request, and which private sites they may see.

A user is identified by a key, by the name that a trusted proxy sends, or not at all. A key is sent in the header
``Authorization: Bearer vk_…``, by programs also as ``?key=`` of the API, by people in the cookie that the sign-in page
sets. The proxy's header is read only with ``access = "proxy"``, and then only trusted proxies get a response; otherwise
anyone could send it.

Pages fetched with a site's secrets are private. They are shown to users whose name the site lists.
"""

import ipaddress
import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from starlette.requests import Request

from vedette.config import Rate, Serve
from vedette.model import Site
from vedette.web.auth.keys import KEY_PREFIX, Key, find_key
from vedette.web.auth.rate_limits import hash_address, is_in_networks

KEY_COOKIE = "vedette_key"
EVENTS_PATH = "/api/v1/events"
CONSOLE_PATH = "/console"
ADMIN_PATHS = frozenset({"/api/v1/orders", "/api/v1/actions", "/api/v1/budget"})
MAX_PROXY_HOPS = 16  # in a row before us
# Paths that a browser needs to show the sign-in page or an embedded box, that reveal nothing about any page, and that
# owners of crawled sites look for.
_PUBLIC_PATHS = frozenset(
    {"/healthz", "/signin", "/bot", "/privacy", "/embed.js", "/opensearch.xml", "/robots.txt", "/favicon.ico"}
)
_PUBLIC_PREFIX = "/static/"
_USER_NAME = re.compile(r"[^\x00-\x1f\x7f-\x9f]{1,200}")


class Identity(NamedTuple):
    """The identity of a request's sender: name, key scopes, rate; anonymous without a name.

    ``sites``, if any, are all that this user may search.
    """

    name: str = ""
    scopes: tuple[str, ...] = ("search",)
    rate: Rate | None = None
    sites: tuple[str, ...] = ()
    auth_method: Literal["", "key", "proxy"] = ""


class Refusal(NamedTuple):
    """A request refused by access control: a status, a short code for programs, and a message for people."""

    status: int
    code: str
    message: str


def allowed_sites(reader: Identity, sites: Iterable[Site]) -> tuple[str, ...]:
    """Return the private sites, by their start, whose pages an authenticated user may see.

    >>> wiki = Site("https://wiki.example.org/", secrets="env:WIKI", readers=("ann",))
    >>> allowed_sites(Identity("ann", ("search", "private"), auth_method="proxy"), [wiki])
    ('https://wiki.example.org/',)
    >>> allowed_sites(Identity(), [wiki])
    ()
    """
    if not reader.auth_method or "private" not in reader.scopes:
        return ()
    names = {reader.name, "*"}
    return tuple(site.start for site in sites if site.secrets and not names.isdisjoint(site.readers))


def get_path(request: Request) -> str:
    """Return the path by which a request is routed.

    ``request.url`` also depends on the header Host, which anyone may set.
    """
    path: str = request.scope["path"]
    return path


def is_api_path(path: str) -> bool:
    """Check whether a path is the API's: errors are JSON there, and a key may be a parameter."""
    programs = {"/healthz", "/metrics", "/mcp", "/new.atom", "/indexnow"}
    return path == "/api" or path.startswith(("/api/", "/push/", "/observe/")) or path in programs


class AccessControl:
    """Access control as configured: identifies users by key or proxy header, and decides who is let in."""

    def __init__(self, serve: Serve, keys: Callable[[], Sequence[Key]]) -> None:
        self.serve = serve
        self._keys = keys
        self._trusted = tuple(ipaddress.ip_network(each) for each in serve.trusted_proxies)
        self._salt = secrets.token_bytes(32)  # hashes of addresses mean nothing to another process

    def authorize(self, request: Request) -> Identity | Refusal:
        """Return the identity of a request's sender, or the refusal if they are not let in."""
        path = get_path(request)
        found = self._identify(request)
        if path in ADMIN_PATHS:
            return _require_admin(found, bool(self._get_bearer_key(request)))
        if (
            path in _PUBLIC_PATHS
            or path.startswith(_PUBLIC_PREFIX)
            or (_has_own_auth(path) and self._is_trusted_peer(request))
        ):
            return found if isinstance(found, Identity) else Identity()
        return found if isinstance(found, Refusal) else _require_search(found, path)

    def get_rate_limit_key(self, request: Request, reader: Identity | Refusal) -> str:
        """Return the key by which a user's requests are counted for rate limits."""
        if isinstance(reader, Identity) and reader.auth_method:
            return f"{reader.auth_method}:{reader.name}"
        return hash_address(self.get_client_address(request), self._salt)

    def get_client_address(self, request: Request) -> str:
        """Return a request's client address; behind trusted proxies, that of their list's last untrusted hop."""
        peer = _get_peer_address(request)
        if not self._is_trusted(peer):
            return peer
        addresses = ",".join(request.headers.getlist("x-forwarded-for")).split(",")[-MAX_PROXY_HOPS:]
        return next((each for each in map(str.strip, reversed(addresses)) if each and not self._is_trusted(each)), peer)

    def is_https(self, request: Request) -> bool:
        """Check whether the user's browser uses https, possibly to a proxy that speaks http to us."""
        if request.scope["scheme"] == "https" or self.serve.address.startswith("https://"):
            return True
        return (
            self._is_trusted(_get_peer_address(request))
            and request.headers.get("x-forwarded-proto", "").strip().lower() == "https"
        )

    def find_key_holder(self, presented: str) -> Identity | None:
        """Return the identity of the user who holds this key; None for an unknown key."""
        key = find_key(self._keys(), presented)
        return Identity(key.name, key.scopes, key.rate, key.sites, "key") if key else None

    def _is_trusted_peer(self, request: Request) -> bool:
        """Check whether the peer may send requests at all; with proxy access only trusted proxies may."""
        return self.serve.access != "proxy" or self._is_trusted(_get_peer_address(request))

    def _identify(self, request: Request) -> Identity | Refusal:
        if not self._is_trusted_peer(request):
            return Refusal(403, "not_through_proxy", "This server accepts only requests from its proxy.")
        shown = self._get_presented_key(request)
        if shown:
            return self.find_key_holder(shown) or Refusal(401, "wrong_key", "This key is unknown or has been revoked.")
        # A cookie may outlive its key, which is not the user's fault: it counts as none.
        return self.find_key_holder(request.cookies.get(KEY_COOKIE, "")) or self._identify_keyless(request)

    def _identify_keyless(self, request: Request) -> Identity | Refusal:
        if self.serve.access == "open":
            return Identity()
        if self.serve.access == "proxy":
            return self._identify_by_proxy(request)
        return Refusal(401, "no_key", "A key is required: send it in the Authorization header, as Bearer vk_….")

    def _identify_by_proxy(self, request: Request) -> Identity | Refusal:
        names = request.headers.getlist(self.serve.proxy_header)
        # Two names mean that the proxy forwards what its visitors send.
        if len(names) != 1 or not _USER_NAME.fullmatch(name := names[0].strip()):
            return Refusal(401, "no_user", "The proxy did not identify you. Sign in there first.")
        return Identity(name, ("search", "private"), auth_method="proxy")

    def _get_presented_key(self, request: Request) -> str:
        # Pings send a site's key under the same name.
        has_key = is_api_path(get_path(request)) and get_path(request) != "/indexnow"
        in_address = request.query_params.get("key", "") if has_key else ""
        return self._get_bearer_key(request) or in_address

    def _get_bearer_key(self, request: Request) -> str:
        """Return the key in the Authorization header; with proxy access, other credentials there are ignored."""
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        shown = shown.strip()
        is_ours = self.serve.access != "proxy" or shown.startswith(KEY_PREFIX)
        return (shown or "none") if scheme.lower() == "bearer" and is_ours else ""

    def _is_trusted(self, address: str) -> bool:
        return is_in_networks(address, self._trusted)


def is_same_origin(request: Request, access: AccessControl) -> bool:
    """Check whether the browser says that a page of this server sent a POST; without such a header it fails.

    A form on another site's page can be sent with a visitor's cookies (CSRF), so no other POST counts.
    """
    fetch_site = request.headers.get("sec-fetch-site")
    if fetch_site is not None:
        return fetch_site == "same-origin"
    origin = _parse_authority(request.headers.get("origin", ""))
    return bool(origin) and origin in {request.headers.get("host"), _parse_authority(access.serve.address)}


def _parse_authority(origin: str) -> str:
    """Return the host and port of an Origin header, or an empty text if it is invalid.

    >>> _parse_authority("https://example.org:8443"), _parse_authority("null"), _parse_authority("http://[::1")
    ('example.org:8443', '', '')
    """
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _has_own_auth(path: str) -> bool:
    """Check whether a path has its own authentication instead of a key: a signature, a site's key, a sign-in."""
    return path in {EVENTS_PATH, CONSOLE_PATH, "/indexnow"} or path.startswith(
        (f"{CONSOLE_PATH}/", "/push/", "/observe/")
    )


def _require_admin(found: Identity | Refusal, is_shown: bool) -> Identity | Refusal:  # noqa: FBT001 - one of two ways
    """Require a key with the admin scope in the request itself: browsers send cookies automatically."""
    if isinstance(found, Refusal):
        return found
    if not is_shown or found.auth_method != "key":
        words = "A key with the admin scope is required: send it in the Authorization header, as Bearer vk_…."
        return Refusal(401, "no_key", words)
    if "admin" not in found.scopes:
        return Refusal(403, "not_for_orders", "This key is read-only. Ask for one with the admin scope.")
    return found


def _require_search(reader: Identity, path: str) -> Identity | Refusal:
    if "search" not in reader.scopes:
        return Refusal(403, "not_for_search", "This key may not search. Ask for one with the search scope.")
    if reader.sites and not is_api_path(path):
        return Refusal(403, "only_for_programs", "This key is limited to some sites and works with the API only.")
    return reader


def _get_peer_address(request: Request) -> str:
    return request.client.host if request.client else ""
