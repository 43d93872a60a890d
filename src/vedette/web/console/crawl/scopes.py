"""What each scope of a site would take, in words and by examples."""

from dataclasses import replace
from typing import NamedTuple, get_args

from vedette.discover.urls.scope import in_scope
from vedette.model import ScopeKind, Site, origin_of, registrable_domain

__all__ = ["ScopeLook", "scopes_of"]


class ScopeLook(NamedTuple):
    """What a scope would take, in words, with URLs that it takes and URLs that it leaves."""

    scope: ScopeKind
    words: str
    takes: tuple[str, ...]
    leaves: tuple[str, ...]


def scopes_of(site: Site) -> tuple[ScopeLook, ...]:
    """What each scope would take, with examples of both sides.

    >>> [look.takes[-1] for look in scopes_of(Site("https://www.example.org/docs/a"))]
    ['https://www.example.org/docs/page', 'https://www.example.org/elsewhere', 'https://blog.example.org/']
    """
    return tuple(_scope(replace(site, include=(), exclude=()), scope) for scope in get_args(ScopeKind))


def _scope(site: Site, scope: ScopeKind) -> ScopeLook:
    scoped = replace(site, scope=scope)
    examples = _examples(site)
    takes = tuple(url for url in examples if in_scope(url, scoped) is None)
    return ScopeLook(scope, _words(scoped), takes, tuple(url for url in examples if url not in takes))


def _examples(site: Site) -> tuple[str, ...]:
    origin = origin_of(site.start)
    domain = registrable_domain(origin.host)
    urls = [f"{_folder(site)}page", f"{origin}/elsewhere"]
    if "." in domain and not (domain.startswith("[") or domain.replace(".", "").isdigit()):
        urls.append(f"{origin._replace(host=f'blog.{domain}')}/")
    return tuple(dict.fromkeys(urls))


def _folder(site: Site) -> str:
    return site.start.partition("?")[0].rpartition("/")[0] + "/"


def _words(site: Site) -> str:
    host = origin_of(site.start).host
    if site.scope == "prefix":
        return f"only what begins with {_folder(site)}"
    if site.scope == "host":
        return f"all of {host}"
    return f"all of {registrable_domain(host)} and every host below it"
