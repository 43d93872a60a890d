"""Plain English in what people read: web pages, command help, errors and documents avoid turns that sound translated.

The list has words that crept in before and always had a plainer one. It cannot tell good English from bad; it keeps the
worst from coming back.
"""

import argparse
import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import vedette
from vedette.cli.main import build_parser

PACKAGE = Path(vedette.__file__).parent
ROOT = PACKAGE.parent.parent
# Each with what to say instead.
AVOIDED = {
    r"told": "say who says it, or drop it",
    r"stands?(?! (?:for|in for|alone|out)\b)": "is, comes, appears",
    r"whoever": "anyone who, the person who",
    r"anew": "again, from scratch",
    r"so many(?! that\b)": "this many, or a number",
    r"of which": "split the sentence",
    r"he|his|him": "they, the advertiser, you",
    r"is asked for": "is requested",
    r"in vain": "wasted, found nothing new",
    r"what is known of": "what we know about",
    r"keeper": "coordinator, crawler",
    r"made web": "synthetic web",
    r"holds? at once": "applies at once",
    r"nobody knows": "unknown",
    r"come to rest|comes to rest": "finishes",
    r"is said": "appears, we say",
    r"dark colou?rs": "dark mode",
}
PATTERN = re.compile(rf"\b(?:{'|'.join(AVOIDED)})\b", re.IGNORECASE)


def read_templates() -> Iterator[tuple[str, str]]:
    """Yield the visible lines of page templates, without tags and expressions."""
    for path in sorted((PACKAGE / "web" / "templates").rglob("*.html")):
        text = re.sub(r"\{#.*?#\}|\{%.*?%\}|<!--.*?-->", " ", path.read_text(), flags=re.DOTALL)
        text = re.sub(r"\{\{(.*?)\}\}", lambda found: " ".join(re.findall(r'"([^"]*)"', found[1])), text)
        yield from ((f"{path.name}", re.sub(r"<[^>]*>", " ", line)) for line in text.splitlines())


def read_help(parser: argparse.ArgumentParser, name: str = "vedette") -> Iterator[tuple[str, str]]:
    """Yield the texts of a command's help and of those under it."""
    yield name, parser.description or ""
    yield name, parser.epilog or ""
    for action in parser._actions:
        yield name, action.help if isinstance(action.help, str) else ""
        if isinstance(action, argparse._SubParsersAction):
            yield from ((name, each.help or "") for each in action._choices_actions)
            for verb, below in action.choices.items():
                yield from read_help(below, f"{name} {verb}")


def read_errors() -> Iterator[tuple[str, str]]:
    """Yield the text constants of the errors that the package raises."""
    for path in sorted(PACKAGE.rglob("*.py")):
        calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
        for call in calls:
            if isinstance(call.func, ast.Name) and call.func.id.endswith("Error"):
                for part in ast.walk(call):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        yield f"{path.relative_to(PACKAGE)}:{call.lineno}", part.value


def read_documents() -> Iterator[tuple[str, str]]:
    """Yield the lines of documents without code; results are notes of measurements, and are left out."""
    for path in [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
        yield from ((path.name, re.sub(r"`[^`]*`", "", line)) for line in text.splitlines())


SOURCES = {
    "templates": read_templates,
    "help": lambda: read_help(build_parser()),
    "errors": read_errors,
    "documents": read_documents,
}


@pytest.mark.parametrize("source", SOURCES)
def test_texts_avoid_words_with_a_plainer_one(source: str) -> None:
    """Each find is listed with its place."""
    texts = list(SOURCES[source]())
    assert len(texts) > 100
    assert [f"{place}: {found[0]}: {text.strip()}" for place, text in texts for found in PATTERN.finditer(text)] == []


@pytest.mark.parametrize("text", ["He is told.", "Here stands it", "a list, of which two", "looks in vain"])
def test_a_translated_turn_would_be_found(text: str) -> None:
    """The pattern finds what it is for."""
    assert PATTERN.search(text)


@pytest.mark.parametrize("text", ["the standard", "BFS stands for it", "so many that it stops", "history", "the help"])
def test_plain_words_pass(text: str) -> None:
    """And nothing else."""
    assert not PATTERN.search(text)
