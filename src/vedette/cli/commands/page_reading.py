"""What ``vedette explain`` tells of reading: what a page says, who else says it, what changed, what speaks against it.

And of URLs that are not fetched because too little is expected of them: why, until when, and how to overrule that.
The words are made of the plain values of ``live.page_facts`` and of nothing else.
"""

import argparse
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

from vedette.cli.data_folder import hint
from vedette.cli.output import amount, counted, plain
from vedette.model import Overrule
from vedette.runtime.explain.page import MOST_NAMED

__all__ = ["held_lines", "reading_lines", "spared_lines"]

Told = dict[str, Any]

# What the author says of a page is not ours to overrule.
_AUTHORS = frozenset({"noindex", "author"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
