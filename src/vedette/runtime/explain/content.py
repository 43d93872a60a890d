"""Collect the facts of a page's content, as plain values: its text, its copies, objections to indexing it.

Also for URLs that are held back as traps or copies: why, and until when. ``web.console.explain.content_text`` and
``vedette explain`` put them into words; names are stable, since programs read them.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from vedette.adapters.archive.warc_reader import read_answer
from vedette.adapters.crawl_store.reader import DuplicateGroup, PageContent, StateReader
from vedette.adapters.index_store.generations import Generations
from vedette.adapters.index_store.page_table import PageTable
from vedette.adapters.net.renderer import RENDERED_HEADER, explain_missing_browser
from vedette.discover.urls.duplicate_evidence import CopyEvidence
from vedette.discover.urls.normalize import resolve
from vedette.engine.coordinator.duplicates import LESSONS_KEY
from vedette.engine.ports import PageRow
from vedette.engine.scheduling.rendering_model import OBSTACLE_KEY, RenderingModel
from vedette.engine.search.hidden import HiddenRules
from vedette.engine.search.indexable import IndexCandidate, explain_exclusion
from vedette.errors import StoreError
from vedette.frontier.pattern_yield import HostYield
from vedette.frontier.traps import Deferral
from vedette.frontier.url_patterns import coarsen
from vedette.model import Overrule, Refusal, Site, registrable_domain
from vedette.parse.quality.indexability import RejectReason, is_excluding

JsonObject = dict[str, Any]

MAX_NAMED = 6
_NOTHING: JsonObject = {"content": None, "copies": None, "index": None, "change": None}
_READABLE_KINDS = frozenset({"page", "document"})


def collect_content(
    page: PageRow | None, site: Site | None, reader: StateReader, folder: Path, now_s: float
) -> JsonObject:
    """Collect the content of a page as last fetched, to explain it; empty for errors, redirects and other kinds."""
    readable = page is not None and 200 <= page.status < 300 and page.kind in _READABLE_KINDS
    content = reader.load_content(page.id) if page is not None and readable else None
    if page is None or content is None:
        return _NOTHING
    copies = _describe_copies(page.id, reader.find_duplicates(content.group, MAX_NAMED), reader)
    change = {"share": content.share, "why": content.change, "rule": site.change if site else None}
    against, author = (
        _find_objections(page, content, reader, folder),
        _find_author_objection(page, content, reader, now_s),
    )
    return {
        "content": _describe_content(content),
        "copies": copies,
        "index": _describe_index(against, site.overrule if site else (), author),
        "change": change if content.change else None,
    }


def _describe_content(content: PageContent) -> JsonObject:
    return {
        "words": content.words,
        "language": content.language or None,
        "charset": content.charset or None,
        "description": content.description or None,
        "canonical": content.canonical or None,
        "marks": content.marks.split(", ") if content.marks else [],
        "published_s": content.published_s,
        "modified_s": content.modified_s,
        "needs_script": any(name == "script" for name, _ in content.objections),
        "spam": content.spam,
    }


def collect_rendering(url: str, page: PageRow | None, site: Site, reader: StateReader, folder: Path) -> JsonObject:
    """Collect whether a page was rendered in a browser, whether the next fetch would, and why."""
    choice, noted = RenderingModel(reader.store).choose(url, site.render), reader.store.get_value(OBSTACLE_KEY)
    return {
        "mode": site.render,
        "missing": (explain_missing_browser() if noted is None else noted) or None,
        "done": _find_rendering(page, folder),
        **choice._asdict(),
    }


def _find_rendering(page: PageRow | None, folder: Path) -> str | None:
    """Return the cost of rendering an archived page; None if it was not rendered."""
    if page is None or page.place is None:
        return None
    with suppress(StoreError):
        return dict(read_answer(folder / "warc", page.place).headers).get(RENDERED_HEADER)
    return None


def _describe_copies(id_: int, group: DuplicateGroup | None, reader: StateReader) -> JsonObject | None:
    """Return a page's group of copies as plain values; the representative is None if none was chosen."""
    if group is None:
        return None
    stands = reader.store.get_urls([group.canonical]).get(group.canonical)
    return {
        "pages": group.pages,
        "stands": stands,
        "is_this": group.canonical == id_,
        "why": group.why or None,
        "others": [url for other, url in group.first if other != id_],
    }


def _find_objections(page: PageRow, content: PageContent, reader: StateReader, folder: Path) -> dict[str, str]:
    """Find the objections to indexing a page's content, by name; only exact copies count, not near copies.

    A near copy is indexed and folded in results; an exact copy is not indexed.
    """
    found = {name: detail for name, detail in content.objections if _is_excluding(name, content.words)}
    stands = reader.store.get_canonical(content.group)
    if stands not in {0, page.id} and _is_exact_copy(page, stands, reader) and not _is_indexed(page.id, folder):
        found["copy"] = reader.store.get_urls([stands])[stands]
    return found


def _is_excluding(name: str, words: int) -> bool:
    return all(is_excluding(kind, words) for kind in RejectReason if kind.name.lower() == name)


def _is_indexed(id_: int, folder: Path) -> bool:
    generation = Generations(folder).current()
    return generation is not None and PageTable(generation).is_indexed(id_)


def _is_exact_copy(page: PageRow, stands: int, reader: StateReader) -> bool:
    """Check whether a page's content is an exact copy of its group's representative, as far as the state shows.

    Its text fingerprints ignore digits and case, which the index also compares.
    """
    contents, other = reader.store.get_contents([page.id, stands]), reader.store.get_page(stands)
    if other is None or stands not in contents or not 200 <= other.status < 300:
        return False
    same = contents[page.id].baseline.main_print == contents[stands].baseline.main_print
    return same and page.title == other.title


def _find_author_objection(page: PageRow, content: PageContent, reader: StateReader, now_s: float) -> str:
    """Find an objection to indexing besides content: hidden by the operator, other canonical, expired."""
    own = reader.store.get_urls([page.id])[page.id]
    named = resolve(content.canonical, own) if content.canonical else None
    other = reader.find_url(named) if named is not None and named != own else None
    row = reader.store.get_page(other.id) if other else None
    elsewhere = row is not None and 200 <= row.status < 300
    hidden = HiddenRules.from_rules((rule.kind, rule.value) for rule in reader.store.list_search_rules())
    candidate = IndexCandidate(
        page.status,
        page.kind,
        is_read=True,
        directives=content.marks,
        has_other_canonical=elsewhere,
        hidden_reason=hidden.get_reason(own),
    )
    return explain_exclusion(candidate, (), now_s)


def _describe_index(found: Mapping[str, str], overruled: tuple[Overrule, ...], author: str) -> JsonObject:
    """Return whether a page can be indexed, with the objections in order of precedence, as plain values."""
    ranked = [kind for kind in RejectReason if kind.name.lower() in found]
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


def collect_trap_hold(id_: int, why: str, reader: StateReader) -> JsonObject | None:
    """Collect why a refused URL is held back as a trap, and the yield of similar pages; None if it is not."""
    if not why.startswith(Refusal.TRAP):
        return None
    place = reader.find_hold(id_)
    name, pattern, *_ = [*(place or "").split(" "), ""]
    verdict = reader.judge_held(place) if place else None
    is_endless = isinstance(verdict, Deferral)
    return {
        "why": verdict.reason if isinstance(verdict, Deferral) else why.removeprefix(f"{Refusal.TRAP}: "),
        "for_good": place is None,
        "endless": is_endless,
        "pattern": pattern or None,
        "brought": _describe_yield(name, pattern, reader) if place else None,
    }


def _describe_yield(name: str, pattern: str, reader: StateReader) -> JsonObject | None:
    host_yield = reader.find_yield(name)
    if host_yield is None:
        return None
    patterns = HostYield.from_json(name, registrable_domain(name), json.loads(host_yield)).patterns
    account = patterns.get(pattern) or patterns.get(coarsen(pattern))
    return {"fetches": account.fetched, "barren": account.wasted, "rate": account.rate} if account else None


def collect_duplicate(url: str, site: Site | None, reader: StateReader) -> JsonObject | None:
    """Collect the URL fetched in place of a duplicate, and the learned rule of its host; None without one."""
    lessons = reader.store.get_value(LESSONS_KEY)
    if site is None or not lessons or "copy" in site.overrule:
        return None
    learned = CopyEvidence.from_json(lessons).build_rules()
    target, rule = learned.apply(url)
    if rule is not None and target != url:
        return {"instead": target, "rule": str(rule)}
    bare = learned.find_bare(url)
    row = reader.find_url(bare[0]) if bare else None
    page = reader.store.get_page(row.id) if row else None
    return {"instead": bare[0], "rule": str(bare[1])} if bare and page is not None and page.status < 300 else None
