"""Describe a page's content on the Explain page: its text, copies and indexing (``runtime.explain.content``)."""

from collections.abc import Iterator
from typing import Any

from vedette.model import Refusal
from vedette.web.commands.commands import Rule
from vedette.web.console.explain.decision_text import Fact
from vedette.web.formatting import counted, day, language_name

Facts = dict[str, Any]

MAX_LENGTH = 400


def describe_content(explanation: Facts) -> Iterator[Fact]:
    """Describe the parsed content of a page, for the Explain page."""
    content, change = explanation["content"], explanation["change"]
    if content is None:
        return
    language = f", {language_name(content['language'])}" if content["language"] else ""
    yield Fact("Text", f"{counted(content['words'], 'word')}{language}")
    for name in ("published", "modified"):
        if content[f"{name}_s"] is not None:
            yield Fact(name.capitalize(), day(content[f"{name}_s"]), at_s=content[f"{name}_s"])
    if content["needs_script"]:
        yield Fact("JavaScript", "text or links are missing without it")
    if rendering := describe_rendering(explanation.get("rendering"), needs_script=content["needs_script"]):
        yield Fact("Rendering", rendering)
    if content["marks"]:
        yield Fact("Robots directives", truncate(", ".join(content["marks"])))
    if content["canonical"]:
        yield Fact("Canonical URL", truncate(content["canonical"]))
    if change is not None:
        yield Fact("Compared with the previous version", truncate(change["why"]))


def describe_rendering(rendering: Facts | None, *, needs_script: bool) -> str:
    """Describe whether a page was rendered in a browser and will be next time, and why; may be empty.

    >>> says = {"mode": "auto", "missing": None, "done": "1.2 s", "render": True, "reason": "they bring it"}
    >>> seen = {"pattern": "/a/*", "rendered": 4, "brought": 4, "seconds": 1.0, "requests": 2.0, "cost": 2.9}
    >>> print(describe_rendering(says | seen, needs_script=False))
    in a browser, 1.2 s; again: they bring it (helped on 4 of 4 pages like /a/*; each 1.0 s, 2.0 requests, 2.9 fetches)
    """
    if rendering is None or not (rendering["done"] or needs_script or rendering["mode"] == "always"):
        return ""
    done = f"in a browser, {rendering['done']}" if rendering["done"] else "not in a browser"
    if rendering["missing"]:
        return f"{done}; {rendering['missing']}"
    seen = ""
    if rendering["rendered"]:
        seen = (
            f" (helped on {rendering['brought']} of {rendering['rendered']} pages like {rendering['pattern']}; each "
            f"{rendering['seconds']:.1f} s, {rendering['requests']:.1f} requests, {rendering['cost']:.1f} fetches)"
        )
    again = "again" if rendering["done"] else "next time"
    return f"{done}; {again if rendering['render'] else 'not ' + again}: {rendering['reason']}{seen}"


def describe_copies(explanation: Facts) -> Iterator[Fact]:
    """Describe a page's copies, which have the same content, for the Explain page."""
    copies = explanation["copies"]
    if copies is None:
        return
    yield Fact("Pages with the same content", counted(copies["pages"], "page"))
    if copies["stands"]:
        yield Fact(
            "Shown for all of them", truncate(f"because {copies['why']}") if copies["why"] else "", copies["stands"]
        )
    for url in copies["others"]:
        yield Fact("Copy", "", url)


def describe_index(explanation: Facts) -> Iterator[Fact]:
    """Describe whether a page is indexed by its content, and the objections against it."""
    for rule in explanation["hidden"]:
        yield Fact("Hidden by your rule", str(Rule(rule["kind"], rule["query"], rule["value"])))
    index = explanation["index"]
    if index is None:
        return
    for_all = [rule for rule in explanation["hidden"] if not rule["query"]]
    yield Fact("Searchable", "yes" if index["would"] and not for_all else "no")
    for objection in index["objections"]:
        detail = f": {objection['detail']}" if objection["detail"] else ""
        overruled = " (overruled by you)" if objection["overruled"] else ""
        yield Fact("Problem", truncate(f"{objection['why']}{detail}{overruled}"))


def describe_trap(explanation: Facts) -> Iterator[Fact]:
    """Describe until when a URL is held back as a trap, or which copy is fetched instead."""
    held, state = explanation["held"], explanation["known"]
    if held is not None:
        yield Fact("Held back until", describe_hold_end(held))
        yield Fact("To fetch all of these", "add trap to “Overrule” in the site's settings")
    elif (state["why"] or "").startswith(Refusal.COPY) and explanation["spared"] is not None:
        yield Fact("Instead", truncate(explanation["spared"]["rule"]), explanation["spared"]["instead"])


def describe_hold_end(held: Facts) -> str:
    """Describe until when a URL is held back as a trap."""
    if held["for_good"]:
        return "further notice: no real page has a URL like this"
    if held["endless"]:
        return f"similar pages turn out better: {held['why']}"
    return "its host has nothing else to fetch (without a fetch budget), or has yielded more good pages"


def truncate(text: str) -> str:
    """Truncate a text to the maximum length of a fact on the Explain page."""
    return text if len(text) <= MAX_LENGTH else f"{text[: MAX_LENGTH - 1]}…"
