"""Credentials of private sites: secret headers (keys, cookies, passwords), and which hosts may get them.

Credentials are sent to one place only: the host and port of the site's start URL. Plain http is allowed if the operator
named the site that way, or if the address is private; otherwise a link from https to http would be enough to read them
in transit. A redirect or a link to any other host gets nothing.
"""

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from vedette.errors import ConfigError
from vedette.fetch.address_guard import is_public
from vedette.model import Headers, Origin, Site, origin_of

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t -~\x80-\xff]+")
_SEPARATORS = re.compile(r"[\s;,=]+")
# Request line and framing are decided elsewhere; a secret header must not change them.
_FORBIDDEN_HEADERS = frozenset({
    *("accept", "accept-encoding", "connection", "content-length", "expect", "from", "host", "if-modified-since"),
    *("if-none-match", "keep-alive", "range", "te", "trailer", "transfer-encoding", "upgrade", "user-agent"),
})  # fmt: skip
_DEFAULT_PORTS = {"http": 80, "https": 443}
# Shorter parts also occur in ordinary words.
_MIN_REDACTED = 4


@dataclass(frozen=True, slots=True, repr=False)
class Secrets:
    """Credentials of a site: headers that are sent to it but never shown."""

    headers: Headers = ()

    def __repr__(self) -> str:
        return "Secrets(…)"


def parse_secrets(text: str) -> Secrets:
    r"""Parse a site's credentials: one header a line, or ``Basic: user:password``; ``#`` begins a comment.

    An error names only the line number, since the line may contain a secret.

    >>> parse_secrets("# the wiki\nBasic: Aladdin:open sesame").headers
    (('authorization', 'Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=='),)
    """
    headers = tuple(_parse_lines(text))
    for name, count in Counter(name for name, _ in headers).items():
        if count > 1:
            raise ConfigError(f"{name} appears {count} times; use it only once, on one line")
    return Secrets(headers)


def select_headers(secrets: Secrets, site: Site, url: str) -> Headers:
    """Select the credential headers of a site that may be sent with a request for a URL.

    >>> secrets, site = Secrets((("cookie", "k=v"),)), Site("https://example.org/")
    >>> select_headers(secrets, site, "https://example.org/a"), select_headers(secrets, site, "https://www.example.org/")
    ((('cookie', 'k=v'),), ())
    """
    home, target = origin_of(site.start), origin_of(url)
    unseen = target.scheme == "https" or home.scheme == "http" or _is_private(target.host)
    return secrets.headers if unseen and _is_same_endpoint(home, target) else ()


def redact(text: str, secret_headers: Headers) -> str:
    """Redact credentials that a server may have put into a text for people.

    >>> redact("no such user: hunter22", (("authorization", "Bearer hunter22"),))
    'no such user: …'
    """
    for _, value in secret_headers:
        for part in (value, *_SEPARATORS.split(value)):
            text = text.replace(part, "…") if len(part) >= _MIN_REDACTED else text
    return text


def _parse_lines(text: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield _parse_header(line, number)


def _parse_header(line: str, number: int) -> tuple[str, str]:
    written, colon, value = line.partition(":")
    name, value = written.strip().lower(), value.strip()
    if not colon or not _NAME.fullmatch(name) or not value:
        raise ConfigError(f"line {number} is not a header; use Authorization: …, Cookie: … or Basic: user:password")
    if name in _FORBIDDEN_HEADERS or name.startswith("proxy-"):
        raise ConfigError(f"line {number}: {name} cannot be set for a site; remove it")
    if name == "basic":
        return "authorization", _encode_basic(value, number)
    if not _VALUE.fullmatch(value):
        raise ConfigError(f"line {number} contains a character that is not allowed in headers; use plain text")
    return name, value


def _encode_basic(value: str, number: int) -> str:
    """Encode ``user:password`` credentials for HTTP Basic authentication (RFC 7617, with UTF-8)."""
    if ":" not in value:
        raise ConfigError(f"line {number} has no password; use Basic: user:password")
    return "Basic " + b64encode(value.encode()).decode("ascii")


def _is_same_endpoint(home: Origin, target: Origin) -> bool:
    """Check whether two origins share host and port (or default ports), so that credentials may be sent."""
    own_ports = all(origin.port == _DEFAULT_PORTS.get(origin.scheme) for origin in (home, target))
    return home.host == target.host and (home.port == target.port or own_ports)


def _is_private(host: str) -> bool:
    """Check whether a host is an IP address that is not public; for a name this cannot be known here."""
    is_address = host.startswith("[") or host.replace(".", "").isdigit()
    return is_address and not is_public(host.strip("[]"))
