"""What is known of reading a page, as plain values: what it says, who else does, what changed, what speaks against it.

And of URLs that are not fetched because too little is expected of them: why, and until when. Names stay, since programs
read them; whoever shows them makes words of nothing else.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vedette.adapters.crawl_store.reader import Group, Said, StateView
from vedette.adapters.index_store.generations import Generations
from vedette.adapters.index_store.page_table import PageTable
from vedette.discover.urls.duplicate_evidence import Lessons
from vedette.discover.urls.normalize import resolve
from vedette.engine.coordinator.duplicates import LESSONS
from vedette.engine.ports import PageRow
from vedette.engine.search.hidden import Concealed
from vedette.engine.search.indexable import Standing, left_out
from vedette.frontier.pattern_yield import HostYield
from vedette.frontier.url_patterns import coarse
from vedette.model import Overrule, Refusal, Site, registrable_domain
from vedette.parse.quality.indexability import Unworthy

__all__ = ["MOST_NAMED", "held_facts", "reading_facts", "spared_facts"]

Told = dict[str, Any]

MOST_NAMED = 6
_NOTHING: Told = {"content": None, "copies": None, "index": None, "change": None}
_READ = frozenset({"page", "document"})


def reading_facts(page: PageRow | None, site: Site | None, view: StateView, folder: Path, now_s: float) -> Told:
    """What was read in the page as it was last fetched; nothing where that was an error, a redirect or no page."""
    readable = page is not None and 200 <= page.status < 300 and page.kind in _READ
    said = view.said(page.id) if page is not None and readable else None
    if page is None or said is None:
        return _NOTHING
    copies = _copies(page.id, view.copies_of(said.group, MOST_NAMED), view)
    against, author = _against(page, said, view, folder), _author(page, said, view, now_s)
    return {
        "content": _content(said),
        "copies": copies,
        "index": _index(against, site.overrule if site else (), author),
        "change": {"share": said.share, "why": said.change, "rule": site.change if site else None}
        if said.change
        else None,
    }


def _content(said: Said) -> Told:
    return {
        "words": said.words,
        "language": said.language or None,
        "charset": said.charset or None,
        "description": said.description or None,
        "canonical": said.canonical or None,
        "marks": said.marks.split(", ") if said.marks else [],
        "published_s": said.published_s,
        "modified_s": said.modified_s,
        "needs_script": any(name == "script" for name, _ in said.objections),
        "spam": said.spam,
    }


def _copies(id_: int, group: Group | None, view: StateView) -> Told | None:
    """The pages that say the same; ``stands_for`` is None where nobody was chosen to stand for them."""
    if group is None:
        return None
    stands = view.book.urls_by_id([group.canonical]).get(group.canonical)
    return {
        "pages": group.pages,
        "stands": stands,
        "is_this": group.canonical == id_,
        "why": group.why or None,
        "others": [url for other, url in group.first if other != id_],
    }


def _against(page: PageRow, said: Said, view: StateView, folder: Path) -> dict[str, str]:
    """What speaks against a page, by name. A near copy is found and folded; what says the same word for word is not."""
    found = dict(said.objections)
    stands = view.book.canonical_of(said.group)
    if stands not in {0, page.id} and _is_exact_copy(page, stands, view) and not _is_indexed(page.id, folder):
        found["copy"] = view.book.urls_by_id([stands])[stands]
    return found


def _is_indexed(id_: int, folder: Path) -> bool:
    generation = Generations(folder).current()
    return generation is not None and PageTable(generation).is_indexed(id_)


def _is_exact_copy(page: PageRow, stands: int, view: StateView) -> bool:
    """As far as the state tells: its prints of texts leave out digits and case, which the index compares, too."""
    contents, other = view.book.contents([page.id, stands]), view.book.page_of(stands)
    if other is None or stands not in contents or not 200 <= other.status < 300:
        return False
    same = contents[page.id].kept.main_print == contents[stands].kept.main_print
    return same and page.title == other.title


def _author(page: PageRow, said: Said, view: StateView, now_s: float) -> str:
    """What people say against it besides noindex: the operator hides it, its author names another, its time is over."""
    own = view.book.urls_by_id([page.id])[page.id]
    named = resolve(said.canonical, own) if said.canonical else None
    other = view.url(named) if named is not None and named != own else None
    row = view.book.page_of(other.id) if other else None
    elsewhere = row is not None and 200 <= row.status < 300
    concealed = Concealed.of((row.kind, row.value) for row in view.book.search_rules()).why(own)
    standing = Standing(page.status, page.kind, is_read=True, marks=said.marks, named=elsewhere, concealed=concealed)
    return left_out(standing, (), now_s)


def _index(found: Mapping[str, str], overruled: tuple[Overrule, ...], author: str) -> Told:
    """Whether it can be found: the objections in the order in which they count."""
    ranked = [kind for kind in Unworthy if kind.name.lower() in found]
    objections = [
        {
            "name": kind.name.lower(),
            "why": str(kind),
            "detail": found[kind.name.lower()] or None,
            "overruled": kind.name.lower() in overruled,
        }
        for kind in ranked
    ]
    if author:
        objections.append({"name": "author", "why": author, "detail": None, "overruled": False})
    return {"would": all(each["overruled"] for each in objections), "objections": objections}


def held_facts(id_: int, why: str, view: StateView) -> Told | None:
    """Why a refused URL is held back as a trap, and what pages like it have brought; None where it is not."""
    if not why.startswith(Refusal.TRAP):
        return None
    place = view.held_for(id_)
    name, _, pattern = (place or "").partition(" ")
    return {
        "why": why.removeprefix(f"{Refusal.TRAP}: "),
        "for_good": place is None,
        "pattern": pattern or None,
        "brought": _brought(name, pattern, view) if place else None,
    }


def _brought(name: str, pattern: str, view: StateView) -> Told | None:
    kept = view.account(name)
    if kept is None:
        return None
    patterns = HostYield.from_json(name, registrable_domain(name), json.loads(kept)).patterns
    account = patterns.get(pattern) or patterns.get(coarse(pattern))
    return {"fetches": account.fetched, "barren": account.barren, "rate": account.rate} if account else None


def spared_facts(url: str, site: Site | None, view: StateView) -> Told | None:
    """The URL that is fetched in place of this one, and the rule about its host that was learned; None without one."""
    lessons = view.book.life(LESSONS)
    if site is None or not lessons or "copy" in site.overrule:
        return None
    target, rule = Lessons.from_json(lessons).learned().apply(url)
    return {"instead": target, "rule": str(rule)} if rule is not None and target != url else None
