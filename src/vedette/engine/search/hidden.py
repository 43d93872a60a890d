"""Hidden pages: the operator's rules that hide single URLs, URL prefixes and whole domains from search."""

from collections.abc import Container, Iterable
from typing import NamedTuple, Self

from vedette.model import origin_of


def find_parent_domain(host: str, domains: Container[str]) -> str | None:
    """Find the domain in a list of rules that a host equals, or most closely belongs to; None if there is none.

    >>> find_parent_domain("a.www.example.org", ["example.org", "www.example.org"])
    'www.example.org'
    """
    while host not in domains:
        _, dot, host = host.partition(".")
        if not dot:
            return None
    return host


def is_in_domains(host: str, domains: Container[str]) -> bool:
    """Check whether a host, or a domain that it belongs to, is in a set of domains (blocked or hidden).

    >>> domains = frozenset({"example.org"})
    >>> is_in_domains("www.example.org", domains), is_in_domains("badexample.org", domains)
    (True, False)
    """
    return find_parent_domain(host, domains) is not None


class HiddenRules(NamedTuple):
    """The operator's rules for hidden pages, in a form that checks a URL against all of them at once."""

    urls: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()
    domains: frozenset[str] = frozenset()

    @classmethod
    def from_rules(cls, rules: Iterable[tuple[str, str]]) -> Self:
        """Build the hidden page rules from pairs of kind and value; other kinds hide nothing.

        >>> HiddenRules.from_rules([("conceal", "https://example.org/drafts/*")]).get_reason("https://example.org/drafts/1")
        'hidden by the operator'
        """
        pairs = list(rules)
        values = [value for kind, value in pairs if kind == "conceal"]
        return cls(
            frozenset(value for value in values if not value.endswith("*")),
            tuple(sorted(value.removesuffix("*") for value in values if value.endswith("*"))),
            frozenset(value for kind, value in pairs if kind == "block"),
        )

    def get_reason(self, url: str) -> str:
        """Return why a URL is hidden from search; empty if it is not."""
        if url in self.urls or url.startswith(self.prefixes):
            return "hidden by the operator"
        if self.domains and is_in_domains(origin_of(url).host, self.domains):
            return "on a domain that the operator blocked"
        return ""


NO_HIDDEN_RULES = HiddenRules()
