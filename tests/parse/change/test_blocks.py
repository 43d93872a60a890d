"""Blocks of a page and their places, which two versions of the page share."""

from hypothesis import given
from hypothesis import strategies as st

from vedette.parse.change.blocks import extract_blocks
from vedette.parse.html.page import parse_page

PAGE = """<body><nav><a href=/>Home</a></nav><div id=post-{number} class=entry><h1>{title}</h1><p>{text}<p>{text}</div>
<div class=ticker>{ticker}</div>"""
PIECES = (
    "<p>",
    "</p>",
    "<div>",
    "<div class=nav>",
    "</div>",
    "<nav>",
    "</nav>",
    "<li>",
    "<td>",
    "<span hidden>",
    "</span>",
)
MARKUP = st.lists(st.sampled_from([*PIECES, "word ", "It is a sentence of some length. ", "<a href=x>", "</a>"]))


def test_places_stay_when_the_text_changes() -> None:
    """Changed words, or numbers in class names, keep the block; another container makes it another block."""
    old = extract_blocks(PAGE.format(number=1, title="One", text="It was a calm day.", ticker="12:01"))
    new = extract_blocks(PAGE.format(number=22, title="Two", text="It was a stormy night.", ticker="13:37"))
    assert [block.place for block in old] == [block.place for block in new]
    home, title, first, second, ticker = (block.place for block in old)
    assert first == second
    assert len({home, title, first, ticker}) == 4


def test_blocks_know_what_is_content() -> None:
    """A menu is a block that is not content."""
    blocks = extract_blocks(PAGE.format(number=1, title="One", text="It was a calm day at sea.", ticker=""))
    assert [(block.text, block.in_main) for block in blocks][:2] == [("Home", False), ("One", True)]


@given(MARKUP.map("".join))
def test_blocks_are_the_text(markup: str) -> None:
    """For any markup, the blocks are the lines of the text, and content blocks are the lines of the main text."""
    page, blocks = parse_page(markup), extract_blocks(markup)
    assert "\n".join(block.text for block in blocks) == page.text
    assert "\n".join(block.text for block in blocks if block.in_main) == page.main
