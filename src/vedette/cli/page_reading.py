"""What ``vedette explain`` tells of reading: what a page says, who else says it, what changed, what speaks against it.

And of URLs that are not fetched because too little is expected of them: why, until when, and how to overrule that.
Facts are gathered as plain values under names that stay; the words are made of nothing else.
"""

import argparse
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

from vedette.cli.asking import hint
from vedette.cli.words import amount, counted, plain
from vedette.discover.copy_lessons import Lessons
from vedette.discover.normalize import resolve
from vedette.edges.generations import Generations
from vedette.edges.page_table import PageTable
from vedette.edges.state_view import Group, Said, StateView
from vedette.facts import Overrule, Refusal, Site, registrable_domain
from vedette.order.patterns import coarse
from vedette.order.yields import HostYield
from vedette.parse.worth import Unworthy
from vedette.ring.copies import LESSONS
from vedette.ring.indexing import Standing, left_out
from vedette.ring.ports import PageRow

__all__ = ["held_facts", "held_lines", "reading_facts", "reading_lines", "spared_facts", "spared_lines"]

Told = dict[str, Any]

MOST_NAMED = 6
_NOTHING: Told = {"content": None, "copies": None, "index": None, "change": None}
_READ = frozenset({"page", "document"})
# What the author says of a page is not ours to overrule.
_AUTHORS = frozenset({"noindex", "author"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


# facts


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
    """What its author says against it besides noindex: that another page takes its place, or that its time is over."""
    own = view.book.urls_by_id([page.id])[page.id]
    named = resolve(said.canonical, own) if said.canonical else None
    other = view.url(named) if named is not None and named != own else None
    row = view.book.page_of(other.id) if other else None
    elsewhere = row is not None and 200 <= row.status < 300
    return left_out(Standing(page.status, page.kind, is_read=True, marks=said.marks, named=elsewhere), (), now_s)


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


# words


def reading_lines(told: Told, options: argparse.Namespace) -> Iterator[str]:
    """What was read, in words; nothing of what is not there."""
    content = told["content"]
    if content is None:
        return
    yield f"Read      {_read_words(told['page']['kind'], content)}"
    if content["description"]:
        yield f'Summary   "{plain(content["description"])}"'
    if content["canonical"]:
        yield f"Canonical {plain(content['canonical'])}, as the page itself says"
    if content["marks"]:
        yield f"Marks     {', '.join(map(_mark, content['marks']))}"
    if told["change"]:
        yield f"Compared  {_change_words(told['change'])}"
    if told["copies"]:
        yield f"Copies    {_copy_words(told['copies'])}"
    yield f"Indexing  {_index_words(told['index'], told['site'], options)}"


def _read_words(kind: str, content: Told) -> str:
    parts = [kind, counted(content["words"], "word")]
    parts += [f"language {plain(content['language'])}"] if content["language"] else []
    parts += [plain(content["charset"])] if content["charset"] else []
    for verb in ("published", "modified"):
        if content[f"{verb}_s"] is not None:
            parts.append(f"{verb} {_day(content[f'{verb}_s'])}")
    script = "; empty without JavaScript, which is not run here" if content["needs_script"] else ""
    return ", ".join(parts) + script


def _day(at_s: float) -> str:
    return (_EPOCH + timedelta(seconds=at_s)).date().isoformat()


def _mark(mark: str) -> str:
    name, sign, value = mark.partition(":")
    return f"{name} {_day(float(value))}" if name == "unavailable_after" else f"{name}{sign}{value}"


def _change_words(change: Told) -> str:
    rule = f" (what counts for this site: {change['rule']})" if change["rule"] else ""
    return f"with the version before: {plain(change['why'])}{rule}"


def _copy_words(copies: Told) -> str:
    named = ", ".join(plain(url) for url in copies["others"][: MOST_NAMED - 1])
    more = ", …" if copies["pages"] > MOST_NAMED else ""
    others = "1 copy" if copies["pages"] == 2 else f"{amount(copies['pages'] - 1)} copies"
    if copies["is_this"]:
        return f"stands for {others}: {named}{more} (because {plain(copies['why'], 300)})"
    if copies["stands"]:
        return (
            f"a copy of {copies['stands']} ({counted(copies['pages'], 'page')} say the same; "
            f"that one stands for them because {plain(copies['why'], 300)})"
        )
    return f"has {others}: {named}{more}"


def _index_words(index: Told, site: Told | None, options: argparse.Namespace) -> str:
    objections = index["objections"]
    if not objections:
        return "it can be found: nothing speaks against that"
    if index["would"]:
        return f"it can be found, since you overruled: {'; '.join(map(_objection, objections))}"
    standing = [each for each in objections if not each["overruled"]]
    names = [each["name"] for each in standing]
    advice = ""
    if site is not None and _AUTHORS.isdisjoint(names):
        advice = f'; "{_overrule(names, site, options)}" overrules that'
    return f"it is not in the index: {_objection(standing[0])}{advice}"


def _objection(objection: Told) -> str:
    return f"{objection['why']}: {plain(objection['detail'])}" if objection["detail"] else str(objection["why"])


def held_lines(told: Told, options: argparse.Namespace) -> Iterator[str]:
    """What is held back as a trap, until when, and how to fetch it all the same."""
    held = told["held"]
    if held["for_good"]:
        yield "Until     never by itself: no page is spelt like this on purpose"
    else:
        yield f"Until     its host has brought more good pages, or pages like it have{_so_far(held)}"
    one = hint(f"fetch {told['known_as']}", options)
    yield f'Overrule  "{_overrule(["trap"], told["site"], options)}" fetches all such, "{one}" only this one'


def _so_far(held: Told) -> str:
    brought = held["brought"]
    if brought is None or not brought["fetches"] or f" like {held['pattern']} " in held["why"]:
        return ""
    barren = f", {brought['barren']} of them copies or missing," if brought["barren"] else ""
    pages = counted(round(brought["fetches"]), "page")
    return f"; so far {pages} like {plain(held['pattern'])}{barren} brought {brought['rate']:.0%} of what is typical"


def spared_lines(told: Told, options: argparse.Namespace) -> Iterator[str]:
    """What is fetched in its place, by which rule, and how to fetch both."""
    spared = told["spared"]
    if spared is not None:
        yield f"Instead   {plain(spared['instead'], 300)} is fetched ({plain(spared['rule'], 300)})"
    yield f'Overrule  "{_overrule(["copy"], told["site"], options)}" fetches all such'


def _overrule(names: list[str], site: Told, options: argparse.Namespace) -> str:
    """The command that overrules these judgements, besides those that the site overrules already."""
    wanted = [name for name in get_args(Overrule) if name in names or name in site["overrule"]]
    return hint(f"sites set {site['start']} overrule={','.join(wanted)}", options)
