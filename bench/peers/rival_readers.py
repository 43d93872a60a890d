"""Main texts and dates of pages as other libraries find them; runs in ``.venv-peers``.

.venv-peers/bin/python bench/peers/rival_readers.py NAME < PAGES.json > ANSWER.json
"""

import json
import logging
import sys
from collections.abc import Callable
from importlib import import_module
from time import process_time
from typing import Any

__all__: list[str] = []


def make_reader(name: str) -> Callable[[str], str]:
    """A function from HTML to main text, or for htmldate to a date."""
    if name == "trafilatura":
        extract: Any = import_module("trafilatura").extract
        return lambda html: extract(html, include_comments=False) or ""
    if name == "readability-lxml":
        parse: Any = import_module("lxml.html").fromstring
        document: Any = import_module("readability").Document
        return lambda html: str(parse(document(html).summary()).text_content())
    if name == "resiliparse":
        to_text: Any = import_module("resiliparse.extract.html2text").extract_plain_text
        return lambda html: str(to_text(html, main_content=True, alt_texts=False))
    find_date: Any = import_module("htmldate").find_date
    return lambda html: find_date(html, original_date=True) or ""


def main() -> None:
    """Read pages as a JSON list of HTML texts, and print what was found with the CPU time it took."""
    logging.disable(logging.CRITICAL)
    read, pages = make_reader(sys.argv[1]), json.load(sys.stdin)
    found, start_s = [], process_time()
    for html in pages:
        try:
            found.append(read(html))
        except Exception:  # noqa: BLE001 - a page that a rival cannot read counts as empty
            found.append("")
    json.dump({"found": found, "cpu_s": process_time() - start_s}, sys.stdout)


if __name__ == "__main__":
    main()
