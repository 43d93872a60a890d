"""What the operator does not want to be shown: single URLs, all that begins alike, and whole domains."""

from collections.abc import Container, Iterable
from typing import NamedTuple, Self

from vedette.model import origin_of

__all__ = ["NOTHING_CONCEALED", "Concealed", "lies_in", "nearest"]


def nearest(host: str, domains: Container[str]) -> str | None:
    """The one of these that a host is, or belongs to most closely; None where there is none.

    >>> nearest("a.www.example.org", ["example.org", "www.example.org"])
    'www.example.org'
    """
    while host not in domains:
        _, dot, host = host.partition(".")
        if not dot:
            return None
    return host


def lies_in(host: str, domains: Container[str]) -> bool:
    """Whether a host, or a domain that it belongs to, is among these.

    >>> lies_in("www.example.org", frozenset({"example.org"})), lies_in("badexample.org", frozenset({"example.org"}))
    (True, False)
    """
    return nearest(host, domains) is not None


class Concealed(NamedTuple):
    """The rules, in a form in which a URL is held against all of them at once."""

    urls: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()
    domains: frozenset[str] = frozenset()

    @classmethod
    def of(cls, rules: Iterable[tuple[str, str]]) -> Self:
        """From pairs of a kind and a value; other kinds conceal nothing.

        >>> Concealed.of([("conceal", "https://example.org/drafts/*")]).why("https://example.org/drafts/1")
        'hidden by the operator'
        """
        pairs = list(rules)
        values = [value for kind, value in pairs if kind == "conceal"]
        return cls(
            frozenset(value for value in values if not value.endswith("*")),
            tuple(sorted(value.removesuffix("*") for value in values if value.endswith("*"))),
            frozenset(value for kind, value in pairs if kind == "block"),
        )

    def why(self, url: str) -> str:
        """Why a URL is not shown; empty where nothing speaks against it."""
        if url in self.urls or url.startswith(self.prefixes):
            return "hidden by the operator"
        if self.domains and lies_in(origin_of(url).host, self.domains):
            return "on a domain that the operator blocked"
        return ""


NOTHING_CONCEALED = Concealed()
