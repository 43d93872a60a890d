"""Draw functions of the source tree for a quiz: can a newcomer guess the file from the listing alone?

    python tools/layout_quiz.py [--seed 21] [--count 40] [--root src/vedette] [--listing | --answers]

By default each question is a function with its docstring, without its file; ``--answers`` adds the files, ``--listing``
prints all that the reader may see besides. Only functions and methods with a docstring are drawn.
"""

import argparse
import ast
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Function(NamedTuple):
    """A function or method with its docstring, and the file that holds it."""

    name: str
    doc: str
    file: str


def iter_functions(root: Path) -> Iterator[Function]:
    """Yield every documented function below a folder, file by file."""
    for path in sorted(root.rglob("*.py")):
        file = str(path.relative_to(root))
        yield from _iter_documented(ast.parse(path.read_text(encoding="utf-8")), "", file)


def _iter_documented(node: ast.AST, prefix: str, file: str) -> Iterator[Function]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from _iter_documented(child, f"{child.name}.", file)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) and (doc := ast.get_docstring(child)):
            yield Function(f"{prefix}{child.name}", doc.partition("\n\n")[0].replace("\n", " "), file)


def main() -> int:
    """Print the questions, the answers, or the listing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=21)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--root", type=Path, default=Path("src/vedette"))
    parser.add_argument("--listing", action="store_true", help="print the files of the tree")
    parser.add_argument("--answers", action="store_true", help="print each question with its file")
    options = parser.parse_args()
    if options.listing:
        lines = [str(path.relative_to(options.root)) for path in sorted(options.root.rglob("*.py"))]
    else:
        drawn = random.Random(options.seed).sample(list(iter_functions(options.root)), options.count)  # noqa: S311 - a quiz
        shown = [f"{each.name}: {each.doc}" + (f" [{each.file}]" if options.answers else "") for each in drawn]
        lines = [f"{number}. {text}" for number, text in enumerate(shown, 1)]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
