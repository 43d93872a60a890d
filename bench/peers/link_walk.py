"""What of a site can be reached: a breadth-first walk over its links, with none of the crawler's own code.

Links are what people can click (``a``, ``area``; also in templates that a script shows), frames, redirects and ``meta
refresh``, found by Lexbor and resolved by urllib. robots.txt is obeyed by the longest match, and so is ``nofollow``. A
page is a file of the tree, however many URLs lead to it.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from urllib.parse import quote, urldefrag, urljoin, urlsplit

from bench.peers.site_trees import Reply, SiteTree
from selectolax.lexbor import LexborHTMLParser

__all__ = ["Walk", "walk_site"]

MAX_URLS = 300_000
_SOURCES = {"a": "href", "area": "href", "frame": "src", "iframe": "src"}
_NOFOLLOW = {"nofollow", "ugc", "sponsored"}
_REFRESH = re.compile(r"^\s*[\d.]+\s*[;,\s]\s*(?:url\s*=\s*)?[\"']?([^\"']+)", re.IGNORECASE)
_SAFE = "!#$%&'()*+,/:;=?@[]~"


@dataclass(slots=True)
class Walk:
    """The result of a walk: the URLs of each page by its file, every response, and where each URL was first seen."""

    pages: dict[str, list[str]] = field(default_factory=dict)
    asked: dict[str, Reply] = field(default_factory=dict)
    found_on: dict[str, str] = field(default_factory=dict)
    disallowed: set[str] = field(default_factory=set)


def walk_site(tree: SiteTree) -> Walk:
    """Walk a site from its start until no link is left."""
    walk, is_allowed = Walk(), _read_robots(tree.robots.decode("utf-8", "replace"))
    queue = deque([tree.site.start])
    walk.found_on[tree.site.start] = ""
    while queue and len(walk.asked) < MAX_URLS:
        url = queue.popleft()
        if not is_allowed(_target_of(url)):
            walk.disallowed.add(url)
            continue
        reply = walk.asked[url] = tree.answer(url)
        if reply.is_page:
            walk.pages.setdefault(reply.file, []).append(url)
        for link in _links_of(url, reply):
            if urlsplit(link).netloc == tree.site.host and link not in walk.found_on:
                walk.found_on[link] = url
                queue.append(link)
    return walk


def _links_of(url: str, reply: Reply) -> Iterator[str]:
    hrefs = [reply.location] if reply.location else _hrefs_of(url, reply.body) if reply.is_page else []
    for href in hrefs:
        link = _resolve(href, url)
        if link:
            yield link


def _hrefs_of(url: str, body: bytes) -> Iterator[str]:
    page = LexborHTMLParser(body.decode("utf-8", "replace"))
    base_tag = page.css_first("base[href]")
    base = (_resolve(base_tag.attributes["href"] or "", url) if base_tag else "") or url
    marks = [tag.attributes.get("content") or "" for tag in page.css("meta[name='robots' i]")]
    for tag in page.css("meta[http-equiv='refresh' i]"):
        found = _REFRESH.match(tag.attributes.get("content") or "")
        if found:
            yield urljoin(base, found[1].strip())
    if any(word.strip().lower() in {"nofollow", "none"} for mark in marks for word in mark.split(",")):
        return
    templates = (LexborHTMLParser(tag.text()) for tag in page.css("script[type*='template' i]"))
    for part in (page, *templates):
        for name, attribute in _SOURCES.items():
            for tag in part.css(f"{name}[{attribute}]"):
                if not _NOFOLLOW & set((tag.attributes.get("rel") or "").lower().split()):
                    yield _resolve(tag.attributes.get(attribute) or "", base)


def _clean(href: str) -> str:
    return re.sub(r"[\t\r\n]", "", href).strip(" \x0c\x00")


def _resolve(href: str, base: str) -> str:
    """The absolute http(s) URL, as a browser would request it, without its fragment; empty if there is none."""
    try:
        parts = urlsplit(urldefrag(urljoin(base, _clean(href).replace("\\", "/")))[0])
        port = parts.port
    except ValueError:
        return ""
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        return ""
    default = port is None or (parts.scheme, port) in {("http", 80), ("https", 443)}
    host = parts.hostname if default else f"{parts.hostname}:{port}"
    query = f"?{quote(parts.query, _SAFE)}" if parts.query else ""
    return f"{parts.scheme}://{host}{quote(parts.path or '/', _SAFE)}{query}"


def _target_of(url: str) -> str:
    parts = urlsplit(url)
    return parts.path + (f"?{parts.query}" if parts.query else "")


def _read_robots(text: str) -> Callable[[str], bool]:
    """Whether a path is allowed by the group for everyone: the longest rule wins, and Allow if two are equal."""
    rules: list[tuple[int, bool, re.Pattern[str]]] = []
    is_ours = is_open = False
    for line in text.splitlines():
        name, _, value = line.partition("#")[0].partition(":")
        name, value = name.strip().lower(), value.strip()
        if name == "user-agent":
            is_ours = (is_open and is_ours) or value == "*"
            is_open = True
        elif name in {"allow", "disallow"}:
            is_open = False
            if is_ours and value:
                pattern = re.escape(value).replace(r"\*", ".*").replace(r"\$", "$")
                rules.append((len(value), name == "allow", re.compile(pattern)))
    rules.sort(key=lambda rule: rule[:2], reverse=True)
    return lambda path: next((allows for _, allows, pattern in rules if pattern.match(path)), True)
