"""Plain English in pages, help, errors, documents and source: no phrases that sound translated.

The list has phrases that crept in before and always have a plainer alternative. It can't tell good English from bad,
but keeps the worst from coming back.
"""

import argparse
import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

import vedette
from vedette.cli.main import build_parser

PACKAGE = Path(vedette.__file__).parent
ROOT = PACKAGE.parent.parent
CODE = ("src", "tests", "bench", "tools", "examples")
# Each with what to say instead.
AVOIDED = {
    r"told": "say who says it, or drop it",
    r"stands?(?! (?:for|in for|alone|out)\b)": "is, comes, appears",
    r"whoever": "anyone who, the person who",
    r"anew": "again, from scratch",
    r"so many(?! that\b)": "this many, or a number",
    r"(?<!all )(?<!both )(?<!each )(?<!none )(?<!some )of which": "split the sentence",
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
    r"mended": "fixed",
    r"(?:asked|wanted) (?:was|were)": "the goal was",
    r"to the bit": "bit for bit",
    r"looks? to learn": "exploratory poll or fetch",
    r"judgements?": "judgment",
    r"per cent": "percent",
    r"[\d.]+(?= %)": "95%, without a space",
    r"e-mails?": "email",
    r"colour|neighbour|behaviour|favour|honour|harbour": "American spelling",
    r"trust (?:counts|ratios)": "counts and ratios are more reliable",
    r"that others used": "a shared machine",
    r"goals? missed": "missed goals",
    r"by the bytes": "according to the bytes",
    r"throw-away": "throwaway",
}
# Also avoided in what users read: pages, help, errors and documents.
AVOIDED_IN_TEXTS = {
    r"(?:two|three|four|seven|nine) (?:fifths|tenths|hundredths)|ten thousandths": "a percentage, or a decimal",
    r"in the (?:median|mean)": "the median is, on average",
    r"half as much again": "1.5 times as much",
    r"sign of life": "heartbeat, renewal",
    r"leads? nowhere": "does not work, is broken",
    r"costs? nothing": "is free, does not reduce revenue",
    r"(?:brings?|brought) (?:nothing|no|little)": "finds nothing, does not help",
    r"(?:this|it) (?:holds|does not hold)(?! (?:back|down|up)\b)": "is confirmed, is true",
}
# Also avoided in docstrings and comments.
AVOIDED_IN_SOURCE = {
    r"as far as is known": "as far as known",
    r"at hand": "available, stored, in memory",
    r"for ever": "forever",
    r"lest": "so that ... not",
    r"makes? no sense": "is invalid",
    r"next to nothing": "almost nothing",
    r"nobody|everybody|anybody|somebody": "no one, everyone; or name who",
    r"of late": "recent, recently",
    r"thereby|wherein|hereof|whereof": "split the sentence",
}
PATTERN = re.compile(rf"\b(?:{'|'.join({**AVOIDED, **AVOIDED_IN_TEXTS})})\b", re.IGNORECASE)
SOURCE_PATTERN = re.compile(rf"\b(?:{'|'.join({**AVOIDED, **AVOIDED_IN_SOURCE})})\b", re.IGNORECASE)


def read_templates() -> Iterator[tuple[str, str]]:
    """Yield the visible lines of page templates, without tags and expressions."""
    for path in sorted((PACKAGE / "web" / "templates").rglob("*.html")):
        text = re.sub(r"\{#.*?#\}|\{%.*?%\}|<!--.*?-->", " ", path.read_text(), flags=re.DOTALL)
        text = re.sub(r"\{\{(.*?)\}\}", lambda found: " ".join(re.findall(r'"([^"]*)"', found[1])), text)
        yield from ((f"{path.name}", re.sub(r"<[^>]*>", " ", line)) for line in text.splitlines())


def read_help(parser: argparse.ArgumentParser, name: str = "vedette") -> Iterator[tuple[str, str]]:
    """Yield the help texts of a command and its subcommands."""
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
    """Yield the lines of documents, without code and paths."""
    for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *PACKAGE.rglob("*.md")]):
        text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
        yield from ((path.name, re.sub(r"`[^`]*`|[\w/]+\.py", "", line)) for line in text.splitlines())


def read_source() -> Iterator[tuple[str, str]]:
    """Yield the docstrings and comments of all code, without code and quotations in them."""
    for path in sorted(path for folder in CODE for path in (ROOT / folder).rglob("*.py")):
        source, place = path.read_text(), str(path.relative_to(ROOT))
        nodes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Expr))
        texts = [node.value.value for node in nodes if isinstance(node.value, ast.Constant)]
        tokens = tokenize.generate_tokens(io.StringIO(source).readline)
        comments = (token.string for token in tokens if token.type == tokenize.COMMENT)
        for text in (*(text for text in texts if isinstance(text, str)), *comments):
            prose = re.sub(r"^ *(?:>>>|\.\.\.) .*$", " ", text, flags=re.MULTILINE)
            prose = re.sub(r"``.*?``|`[^`]*`|\"[^\"]*\"|'[^'\n]*'", " ", prose, flags=re.DOTALL)
            yield place, " ".join(prose.split())


SOURCES = {
    "templates": read_templates,
    "help": lambda: read_help(build_parser()),
    "errors": read_errors,
    "documents": read_documents,
}


@pytest.mark.parametrize("source", SOURCES)
def test_texts_avoid_words_with_a_plainer_one(source: str) -> None:
    """Each match is listed with its place."""
    texts = list(SOURCES[source]())
    assert len(texts) > 100
    assert [f"{place}: {found[0]}: {text.strip()}" for place, text in texts for found in PATTERN.finditer(text)] == []


def test_docstrings_and_comments_avoid_words_with_a_plainer_one() -> None:
    """Each match is listed with its place."""
    texts = list(read_source())
    assert len(texts) > 5000
    assert [f"{place}: {found[0]}: {text}" for place, text in texts for found in SOURCE_PATTERN.finditer(text)] == []


@pytest.mark.parametrize("text", ["He is told.", "Here stands it", "a list, of which two", "looks in vain"])
def test_a_translated_turn_would_be_found(text: str) -> None:
    """The pattern finds translated phrases."""
    assert PATTERN.search(text)


@pytest.mark.parametrize("text", ["the standard", "BFS stands for it", "so many that it stops", "history", "the help"])
def test_plain_words_pass(text: str) -> None:
    """The pattern finds nothing else."""
    assert not PATTERN.search(text)
