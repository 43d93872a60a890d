"""The settings of an HTTP handle: what holds for every request of a client, and what for one.

The environment changes nothing: neither its proxies nor its exceptions from them are used. Nothing of libcurl's own
comforts is on either (redirects, cookies, passwords of a ``.netrc``): what a request does was decided before.
"""

import os
import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import pycurl

from vedette.errors import ConfigError
from vedette.fetch.connect_to import Route
from vedette.model import Ask

__all__ = ["Limits", "Roots", "Way", "aim", "fresh_handle", "pin", "unsendable"]

# CURLOPT_SUPPRESS_CONNECT_HEADERS, for which pycurl has no name: a proxy's own head is no part of the answer.
_SUPPRESS_CONNECT_HEADERS = 265
# What could end a line, or give the part before the path another meaning, never gets as far as the wire.
_URL = re.compile(r"https?://(?![^/?#]*[@\\])[!-~]{1,65536}")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]{1,256}")
_HEADER_VALUE = re.compile(r"[\t -~\x80-\xff]{0,65536}")


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on one request; times are wall time, sizes count both the bytes sent and the bytes unpacked.

    An answer that comes in at fewer than ``slow_bytes_per_s`` for ``slow_s`` on end is given up; what is sent before
    the body counts as nothing, so a head has about ``slow_s`` to be there.
    """

    connect_timeout_s: float = 10.0
    timeout_s: float = 30.0
    body_bytes: int = 10 * 2**20
    head_bytes: int = 64 * 2**10
    head_lines: int = 256
    slow_bytes_per_s: int = 100
    slow_s: int = 20


@dataclass(frozen=True, slots=True)
class Way:
    """How servers are reached and whom to believe: a proxy (``http://`` or ``socks5h://``), and further roots (PEM).

    Without a proxy each connection goes to the pinned address, which is compared again when the socket opens. With
    one, connections go to the proxy, which is told the name and resolves it by itself: names that lead to a private
    address here are refused before, as usual, but where the proxy finds another address, its own rules are the only
    ones that hold. The address of an answer is then the proxy's.
    """

    proxy: str = ""
    ca_file: str = ""


class Roots:
    """The certificates that vouch for servers, as one file: the system's, and those that the operator adds.

    Together they stand in memory, under a name that libcurl can open: it reads a file once a day and keeps what it
    read, whereas a bundle handed over as bytes would be read again for every connection.
    """

    def __init__(self, ca_file: str) -> None:
        self._descriptor: int | None = None
        self.path = _system_roots()
        if ca_file:
            system = Path(self.path).read_bytes() if self.path else b""
            self._descriptor = os.memfd_create("vedette-roots")
            with open(self._descriptor, "wb", closefd=False) as file:
                file.write(system + b"\n" + _certificates(ca_file))
            self.path = f"/proc/self/fd/{self._descriptor}"

    def close(self) -> None:
        """Let go of the file in memory."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def fresh_handle(limits: Limits, way: Way, roots: Roots) -> pycurl.Curl:
    """A handle with everything that holds for all requests of a client."""
    curl = pycurl.Curl()
    curl.setopt(pycurl.NOSIGNAL, 1)
    curl.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
    curl.setopt(pycurl.PATH_AS_IS, 1)
    curl.setopt(pycurl.FOLLOWLOCATION, 0)
    curl.setopt(pycurl.PROXY, way.proxy)
    curl.setopt(pycurl.NOPROXY, "")
    curl.setopt(_SUPPRESS_CONNECT_HEADERS, 1)
    curl.setopt(pycurl.CONNECTTIMEOUT_MS, ceil(limits.connect_timeout_s * 1000))
    curl.setopt(pycurl.TIMEOUT_MS, ceil(limits.timeout_s * 1000))
    curl.setopt(pycurl.LOW_SPEED_LIMIT, limits.slow_bytes_per_s)
    curl.setopt(pycurl.LOW_SPEED_TIME, limits.slow_s)
    if roots.path:
        curl.setopt(pycurl.CAINFO, roots.path)
    return curl


def aim(curl: pycurl.Curl, ask: Ask) -> None:
    """Say what is asked for; ``unsendable`` has nothing against it."""
    curl.setopt(pycurl.URL, ask.url)
    # Setting an empty list would leave the headers of the request before, secrets and all, to go with this one.
    curl.unsetopt(pycurl.HTTPHEADER)
    curl.setopt(pycurl.HTTPHEADER, [_line(name, value) for name, value in ask.headers + ask.secret_headers])


def pin(curl: pycurl.Curl, route: Route, open_socket: Callable[..., object]) -> None:
    """Let the connection go to one address only, and have that checked when it opens."""
    literal = f"[{route.address}]" if ":" in route.address else route.address
    curl.setopt(pycurl.CONNECT_TO, [f"::{literal}:{route.port}"])
    curl.setopt(pycurl.OPENSOCKETFUNCTION, open_socket)


def unsendable(ask: Ask) -> str:
    """Why a request cannot be written down as one request, or nothing.

    >>> unsendable(Ask("http://example.org/a b", "page"))
    'the URL holds what no request line can'
    """
    if not _URL.fullmatch(ask.url):
        return "the URL holds what no request line can"
    for name, value in ask.headers + ask.secret_headers:
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            return "a header of the request holds what no header can"
    return ""


def _line(name: str, value: str) -> bytes:
    # To libcurl a name with a colon and nothing else means that the header is not to be sent.
    return (f"{name}: {value}" if value.strip() else f"{name};").encode("latin-1")


def _system_roots() -> str | None:
    """The system's trusted roots; the wheel of the client was built for another system's path."""
    paths = ssl.get_default_verify_paths()
    candidates = (os.environ.get("SSL_CERT_FILE"), paths.cafile, "/etc/ssl/certs/ca-certificates.crt")
    return next((path for path in candidates if path and Path(path).exists()), None)


def _certificates(ca_file: str) -> bytes:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(ca_file)
        return Path(ca_file).read_bytes()
    except ssl.SSLError:
        raise ConfigError(f"crawl.ca_file = {ca_file}: holds no certificate; name a PEM file of roots") from None
    except OSError as error:
        raise ConfigError(f"crawl.ca_file = {ca_file}: cannot be read ({error.strerror}); name a PEM file") from None
