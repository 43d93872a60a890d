"""Under which names is this server known?

A stranger's page can make its own name lead to this machine, and then its scripts speak to us as if we were its server
(DNS rebinding). The browser still says by which name it came, in the header ``Host``. So where our names are known, the
console and the orders of the API are answered under these only. An address in the place of a name cannot be made to
lead elsewhere, and is always good.

Our names are known where the operator has told them (``serve.address``, ``serve.public_url``, ``serve.hosts``), and on
a connection to a loopback address: whoever comes that way sits at this machine, or is a proxy on it, whose name is one
to be told.
"""

import ipaddress
from urllib.parse import urlsplit

from starlette.requests import Request

from vedette.config import Serve
from vedette.web.auth.access import CONSOLE, OF_OPERATORS, Refused, path_of

__all__ = ["FOREIGN_HOST", "OwnNames"]

FOREIGN_HOST = Refused(
    421,
    "foreign_host",
    "The console and its orders are not served under this name. Open it by its address, such as "
    "http://127.0.0.1:8080/. If the name is yours, set serve.address or serve.hosts to it.",
)
_HERE = "localhost"


class OwnNames:
    """The names that the operator has told."""

    def __init__(self, serve: Serve) -> None:
        told = (urlsplit(serve.address).netloc, urlsplit(serve.public_url).netloc, *serve.hosts)
        self._names = frozenset(name for each in told if (name := name_in(each)))

    def is_foreign(self, request: Request) -> bool:
        """Whether a request for what only the operator may do came by a name that is not ours."""
        if not _is_guarded(path_of(request)) or not (self._names or _came_by_loopback(request)):
            return False
        return not all(self._is_own(name_in(told)) for told in request.headers.getlist("host"))

    def _is_own(self, name: str) -> bool:
        return name in self._names or name == _HERE or name.endswith(f".{_HERE}") or _is_address(name)


def name_in(told: str) -> str:
    """The name in a header ``Host``, without its port.

    >>> name_in("Search.Example.org.:8080"), name_in("[::1]:8080"), name_in("127.0.0.1")
    ('search.example.org', '::1', '127.0.0.1')
    """
    told = told.strip().lower()
    if told.startswith("["):
        return told[1:].partition("]")[0]
    return told.partition(":")[0].removesuffix(".")


def _is_guarded(path: str) -> bool:
    return path in OF_OPERATORS or path == CONSOLE or path.startswith(f"{CONSOLE}/")


def _came_by_loopback(request: Request) -> bool:
    own = (request.scope.get("server") or ("", 0))[0]
    return _is_address(own) and ipaddress.ip_address(own).is_loopback


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
