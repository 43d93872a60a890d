"""API keys and their site limits: a secret that its holder presents; only its hash is stored.

A secret is 32 random bytes. Slow salted hashes are for passwords, which can be guessed; 256 random bits cannot, so one
SHA-256 is enough, and it costs a search nothing. Reading the data folder reveals the hashes, but no secret.
"""

import re
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest

from vedette.config import Rate
from vedette.errors import UsageError
from vedette.model import origin_of
from vedette.serve.slate import Slate
from vedette.web.api.parameters import PARAMETER_PATTERNS, ParameterError, parse_pattern
from vedette.web.ports import FacetCount

_PORT = re.compile(r":[0-9]{1,5}\Z")


def resolve_site(values: Mapping[str, str], limits: tuple[str, ...]) -> str:
    """Resolve the parameter ``site`` under a key's site limits: it must be one of these, or a part of one.

    >>> resolve_site({"site": "https://docs.example.org/api/"}, ("example.org",))
    'docs.example.org/api/'
    """
    words = 'site must be a host or the start of a path on it, such as "docs.example.org/api/".'
    site = (
        parse_pattern(values, "site", PARAMETER_PATTERNS["site"], words)
        .removeprefix("https://")
        .removeprefix("http://")
    )
    if not limits or (site and any(_is_within(site, limit) for limit in limits)):
        return site
    if len(limits) == 1 and not site:
        return limits[0]
    raise ParameterError(
        "site", f"This key is limited to {', '.join(limits)}: set site to one of these or to a longer prefix."
    )


def filter_results(slate: Slate, limits: tuple[str, ...]) -> Slate:
    """Remove search results outside a key's site limits."""
    covered = [each for each in slate.results if is_covered(limits, each.url)]
    return slate._replace(results=tuple(covered))


def is_covered(limits: tuple[str, ...], url: str) -> bool:
    """Check whether a page may be shown under a key's site limits; without limits, all may.

    >>> is_covered(("docs.example.org/api",), "https://docs.example.org/api/v1"), is_covered(("example.org",), "https://org/")
    (True, False)
    """
    place = f"{str(origin_of(url)).partition('://')[2]}/{url.partition('://')[2].partition('/')[2]}"
    return not limits or any(_is_within(place, limit) for limit in limits)


def filter_sites(sites: Iterable[FacetCount], limits: tuple[str, ...]) -> list[FacetCount]:
    """Return the hosts with pages that a key's site limits let through."""
    return [each for each in sites if not limits or any(_overlaps(each.value, limit) for limit in limits)]


def _is_within(site: str, limit: str) -> bool:
    """Check whether all of a site is within one of a key's site limits."""
    host, _, path = site.partition("/")
    limit_host, _, limit_path = limit.partition("/")
    if not _PORT.search(limit_host):  # a limit without a port is for all of them
        host = _PORT.sub("", host)
    same = host.lower() == limit_host or (not limit_path and host.lower().endswith(f".{limit_host}"))
    return same and path.startswith(limit_path)


def _overlaps(host: str, limit: str) -> bool:
    limit_host, _, path = limit.partition("/")
    return host == limit_host or (not path and host.endswith(f".{limit_host}"))


KEY_PREFIX = "vk_"  # so that a key is recognizable wherever it appears
SCOPES = ("search", "private", "admin")
SECRET_BYTES = 32
MAX_SECRET_LENGTH = 200  # of what is presented as a key; a real one is much shorter

_NAME = re.compile(r"(?=[^\s*])[^\x00-\x1f\x7f-\x9f]{1,64}(?<!\s)")
_SITE = re.compile(r"(?:[a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::[0-9]{1,5})?(?:/[!-~]{0,500})?")


@dataclass(frozen=True, slots=True)
class Key:
    """A stored key: name, hash of its secret, scopes, site limits and rate (None: the server's default).

    ``scopes``: *search*; *private*, to see the private sites whose ``readers`` name this key; *admin*, to send an
    operator's commands. ``sites`` limits the key to some hosts or paths of hosts ("docs.example.org/api/"); without any
    it is for all.
    """

    name: str
    hash: bytes
    scopes: tuple[str, ...] = ("search",)
    rate: Rate | None = None
    created_s: float = 0.0
    revoked_s: float | None = None
    sites: tuple[str, ...] = ()


def create_key(
    name: str,
    scopes: Sequence[str],
    rate: Rate | None,
    sites: Sequence[str],
    random_bytes: bytes,
    created_s: float = 0.0,
) -> tuple[str, Key]:
    """Create a key: return the secret to give to its holder once, and the key to store.

    >>> secret, key = create_key("wiki", ["search"], None, [], bytes(32))
    >>> secret[:8], key.name
    ('vk_AAAAA', 'wiki')
    """
    if len(random_bytes) != SECRET_BYTES:
        raise ValueError(f"a key needs {SECRET_BYTES} random bytes")
    if not _NAME.fullmatch(name):
        raise UsageError('a key needs a name of at most 64 characters, such as "wiki"; it must not start with *')
    for scope in scopes:
        if scope not in SCOPES:
            raise UsageError(f"unknown scope {scope[:40]!r}: choose from {', '.join(SCOPES)}")
    for site in sites:
        if not _SITE.fullmatch(site):
            raise UsageError(
                f'{site[:100]!r} cannot limit a key: use a lowercase host or path, such as "docs.example.org/api/"'
            )
    secret = KEY_PREFIX + urlsafe_b64encode(random_bytes).rstrip(b"=").decode()
    return secret, Key(name, _hash_secret(secret), tuple(scopes), rate, created_s, None, tuple(sites))


def find_key(keys: Sequence[Key], presented: str) -> Key | None:
    """Find the key with this secret, unless it is revoked, in constant time.

    >>> secret, key = create_key("wiki", ["search"], None, [], bytes(32))
    >>> find_key([key], secret) is key, find_key([key], "vk_guessed")
    (True, None)
    """
    shown = _hash_secret(presented[:MAX_SECRET_LENGTH])
    found = None
    for key in keys:  # all of them, so that the time does not reveal its position
        if compare_digest(key.hash, shown) and key.revoked_s is None:
            found = key
    return found


def _hash_secret(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "replace")).digest()
