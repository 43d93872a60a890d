"""Parse IndexNow pings: a site reports which of its URLs are new, changed or gone, with a key.

The key is verified by a text file on the host, by default ``/KEY.txt``. A key file elsewhere covers only URLs below its
own folder. Nothing here needs the network; the key is fetched elsewhere.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from vedette.discover.urls.normalize import resolve
from vedette.model import Origin, origin_of

MAX_URLS = 10_000
MAX_URL_LENGTH = 2_048
_KEY = re.compile(r"[A-Za-z0-9-]{8,128}", re.ASCII)


class Ping(NamedTuple):
    """An IndexNow ping: URLs of one origin, and the location of the key file that covers them."""

    key: str
    key_url: str
    urls: tuple[str, ...]


class PingRejection(NamedTuple):
    """Why an IndexNow ping is rejected: the status that the protocol has for it, and a text."""

    status: int
    message: str


def parse_ping(query: Mapping[str, str]) -> Ping | PingRejection:
    """Parse the IndexNow ping in a query string: one URL.

    >>> parse_ping({"url": "https://example.org/a", "key": "0123456789abcdef"}).key_url
    'https://example.org/0123456789abcdef.txt'
    """
    url = resolve(query.get("url", "")[:MAX_URL_LENGTH], None)
    if url is None:
        return PingRejection(400, "url is missing, or is not an http(s) URL.")
    return _check_key(query.get("key", ""), query.get("keyLocation", ""), origin_of(url), (url,))


def parse_ping_body(body: bytes) -> Ping | PingRejection:
    """Parse the IndexNow ping in a JSON body: a host, a key and a list of URLs.

    >>> parse_ping_body(b'{"host": "example.org", "key": "short", "urlList": ["https://example.org/a"]}').status
    400
    """
    fields = _parse_object(body)
    listed = fields.get("urlList")
    if not isinstance(listed, list) or not listed or not all(isinstance(url, str) for url in listed):
        return PingRejection(400, "urlList is missing: send a list of URLs.")
    if len(listed) > MAX_URLS:
        return PingRejection(400, f"Send at most {MAX_URLS} URLs at once.")
    host, key, place = (_text_or_empty(fields.get(name)) for name in ("host", "key", "keyLocation"))
    urls = _resolve_urls(listed)
    if not urls:
        return PingRejection(400, "urlList contains no http(s) URL.")
    origin = origin_of(urls[0])
    if _normalize_host(host) != origin.host:
        return PingRejection(422, "host is missing, or the URLs are not its own.")
    return _check_key(key, place, origin, urls)


def _check_key(key: str, place: str, origin: Origin, urls: tuple[str, ...]) -> Ping | PingRejection:
    if not _KEY.fullmatch(key):
        return PingRejection(400, "key is missing: it must have 8 to 128 letters, digits and dashes.")
    key_url = resolve(place[:MAX_URL_LENGTH], None) if place else f"{origin}/{key}.txt"
    if key_url is None:
        return PingRejection(400, "keyLocation is not an http(s) URL.")
    below = key_url.partition("?")[0].rpartition("/")[0] + "/"
    if origin_of(key_url) != origin or not all(url.startswith(below) for url in urls):
        return PingRejection(422, "The URLs are outside the folder of the key file.")
    return Ping(key, key_url, urls)


def _resolve_urls(listed: Sequence[str]) -> tuple[str, ...]:
    """Resolve the URLs of an IndexNow ping, each once, in order; invalid ones are skipped."""
    found = dict.fromkeys(resolve(url, None) for url in listed if len(url) <= MAX_URL_LENGTH)
    return tuple(url for url in found if url is not None)


def _normalize_host(host: str) -> str:
    """Normalize the host of an IndexNow ping as in URLs, without its port."""
    url = resolve(f"http://{host}/", None) if 0 < len(host) <= 300 else None
    return origin_of(url).host if url else ""


def _parse_object(body: bytes) -> dict[str, object]:
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _text_or_empty(value: object) -> str:
    return value if isinstance(value, str) else ""
