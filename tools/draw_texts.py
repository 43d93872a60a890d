"""Draw texts that people read, for a judgment of their English: web pages, command help, errors and documents.

    python tools/draw_texts.py [--seed 24] [--count 60]

The four kinds have equal shares. A text is what a reader sees as one piece: a paragraph, list item or table row of a
page or document, the help of a command or option, the message of an error. Expressions in a text are shown as …, and
choices between singular and plural as the plural.
docs/results/words.md is left out, because it quotes texts from earlier draws.
"""

import argparse
import ast
import random
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.contracts.test_wording import read_help

from vedette.cli.main import build_parser

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "vedette"
BLOCK = (
    r"</?(?:p|li|td|th|tr|h\d|div|section|summary|option|label|button|dt|dd|legend|main|table|ul|form|nav|br)\b[^>]*>"
)
BREAK = "\0"
LEAST_WORDS = 5


def read_templates() -> Iterator[str]:
    """Yield the texts between block elements and conditions of the page templates."""
    for path in sorted((PACKAGE / "web" / "templates").rglob("*.html")):
        text = re.sub(r"\{#.*?#\}|<!--.*?-->|<(script|style|pre)\b.*?</\1>", "", path.read_text(), flags=re.DOTALL)
        text = re.sub(r'\{\{ counted\([^"{}]*"(\w[^"]*)"\) \}\}', r"… \1s", text)
        text = re.sub(r'\{\{ "[^"]*" if [^{}]*? else "([^"]*)" \}\}', r"\1", text)
        text = re.sub(r"\{\{.*?\}\}", "…", text, flags=re.DOTALL)
        text = re.sub(r"\{%.*?%\}", BREAK, text, flags=re.DOTALL)
        yield from re.sub(r"<[^>]*>", "", re.sub(BLOCK, BREAK, text)).split(BREAK)


def read_errors() -> Iterator[str]:
    """Yield the messages of the errors that the package raises."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.endswith("Error"):
                yield from (show_string(each) for each in node.args)


def show_string(node: ast.expr) -> str:
    """Return the text of a string in the source, with … for expressions; empty if it is none."""
    if isinstance(node, ast.JoinedStr):
        return "".join(show_string(part) or "…" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def read_documents() -> Iterator[str]:
    """Yield paragraphs, list items and table rows of the documents, without code blocks and pictures."""
    for path in [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]:
        if path.name == "words.md":
            continue
        text = re.sub(r"^```.*?^```|^ {4}.*?$|<!--.*?-->", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
        text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
        yield from re.split(r"\n\s*\n|\n(?=\s*(?:[-*] |\||#+ |\d+\. ))", text)


SOURCES: dict[str, Callable[[], Iterable[str]]] = {
    "page": read_templates,
    "help": lambda: (text for _, text in read_help(build_parser())),
    "error": read_errors,
    "document": read_documents,
}


def clean_texts(texts: Iterable[str]) -> list[str]:
    """Return the different texts that are sentences or phrases rather than numbers and names, in a fixed order."""
    whole = {" ".join(text.split()) for text in texts}
    return sorted(
        text for text in whole if len(re.findall(r"\b[a-z]{2,}\b", re.sub(r"`[^`]*`", "", text))) >= LEAST_WORDS
    )


def main() -> int:
    """Print the drawn texts as a numbered list."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=24)
    parser.add_argument("--count", type=int, default=60)
    options = parser.parse_args()
    rng = random.Random(options.seed)  # noqa: S311 - a sample, not a secret
    share = options.count // len(SOURCES)
    drawn = [(kind, text) for kind, read in SOURCES.items() for text in rng.sample(clean_texts(read()), share)]
    lines = [f"{number}. ({kind}) {text}" for number, (kind, text) in enumerate(drawn, 1)]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
