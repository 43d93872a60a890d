"""The HTML walker: the state of one pass over a page's tags: text in blocks, links, headings, and head.

Text goes into one list of pieces. A tag that ends a block appends ``BREAK``, any other tag appends nothing, so
``<b>V</b>edette`` stays one word. Each block has one number: the marks of its containers (``Zone``), its kind, and how
many of its characters are links. The effect of a tag is looked up by its name (``tag_handlers``), and most tags have
none.

A page repeats the same tags, attributes included, so the table of a page caches whole tags that do nothing, or only end
a line. The effect of ``<p>`` and ``<span>`` depends on whether one with a mark is open, which is rare: a page is calm
until it opens the first, and while it is calm they are cached too.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from vedette.parse.html.attributes import collapse_space, decode_references
from vedette.parse.html.head import Head
from vedette.parse.html.tokenizer import Token

# A control character that the HTML standard forbids, both literally and as a reference.
BREAK = "\x01"
# Kinds of block, above the marks of ``zones``; the number of linked characters is in the highest bits.
HEADING, PREFORMATTED, ROW = 16, 32, 64
LINKED_SHIFT = 8
ALL_LINKED = 1 << 40
MAX_LINK_PIECES = 40
MAX_CACHED_TAGS = 2_000


class Link(NamedTuple):
    """A link of an HTML page: its address as written, its text, and whether it is nofollow."""

    href: str
    text: str
    nofollow: bool


class Heading(NamedTuple):
    """A heading of an HTML page: its level and text, the id that leads to it, and the number of its text block."""

    level: int
    text: str
    anchor: str
    block: int


class Zone:
    """An open HTML container with marks: how many of its name are open inside it, and the marks outside."""

    __slots__ = ("depth", "first_block", "name", "outer_marks", "start_piece")

    def __init__(self, name: str, scan: "Scan") -> None:
        self.name, self.outer_marks, self.depth = name, scan.zone, 1
        self.first_block, self.start_piece = len(scan.blocks), len(scan.pieces)


class Scan:
    """The state of a walk over the tags of an HTML page."""

    __slots__ = (
        *(
            "alt",
            "block",
            "blocks",
            "calm",
            "actions",
            "head",
            "anchor",
            "heading_at",
            "headings",
            "id_at",
            "id_source",
            "cached_actions",
            "link_at",
            "links",
        ),
        *("current_link", "pieces", "script_characters", "scripts", "template_characters", "tokens"),
        *("wants_script", "zone", "zones"),
    )

    def __init__(self) -> None:
        self.actions: Actions = {}
        self.cached_actions: dict[str | None, Action | None] = {}
        self.calm = True
        self.pieces = [BREAK]
        self.blocks: list[int] = []
        self.block = 0
        self.zone = 0
        self.zones: list[Zone] = []
        self.links: dict[str, Link] = {}
        self.current_link: tuple[str, bool] | None = None
        self.link_at = 0
        self.alt = ""
        self.headings: list[Heading] = []
        self.heading_at = 0
        self.anchor = ""
        self.id_source = ""
        self.id_at = 0
        self.head = Head()
        self.scripts = 0
        self.script_characters = 0
        self.template_characters = 0
        self.wants_script = False
        self.tokens: Iterable[Token] = ()

    def walk(self, does: "Actions", unlearnt: "Action", tokens: Iterable[Token]) -> None:
        """Walk over the tags of a page; ``unlearnt`` handles those not seen in this form before."""
        self.actions, self.tokens = does, tokens
        self.cached_actions = {**does, **_CALM_ACTIONS}
        pieces, append, learnt_of = self.pieces, self.pieces.append, self.cached_actions.get
        for text, tag in tokens:
            if text and (pieces[-1] is not BREAK or not text.isspace()):
                append(text)
            action = learnt_of(tag, unlearnt)
            if action is None:
                continue
            if action is not end_line:
                action(self, tag or "", "")
            elif pieces[-1] is not BREAK:
                self.end_block()

    def cache_action(self, tag: str, action: "Action | None") -> None:
        """Cache the effect of a tag, as written: from now on it does only this."""
        if len(self.cached_actions) < MAX_CACHED_TAGS:
            self.cached_actions[tag] = action

    def end_calm(self) -> None:
        """End the calm part of a page: a paragraph or span with a mark began, so cached effects are invalid."""
        if self.calm:
            self.calm = False
            self.cached_actions.clear()
            self.cached_actions.update(self.actions)

    def end_block(self) -> None:
        """End a text block of the page: everything since the last break is one block."""
        if self.current_link and len(self.pieces) - self.link_at < MAX_LINK_PIECES:
            self.block |= ALL_LINKED
        self.pieces.append(BREAK)
        self.blocks.append(self.block | self.zone)
        self.block = 0

    def get_text_since(self, position: int, longest: int) -> str:
        """Return the page's text since some piece, breaks as spaces, collapsed and cut."""
        text = "".join(self.pieces[position:]).replace(BREAK, " ")
        if len(text) < longest and text.isascii() and "&" not in text and "\0" not in text:
            return " ".join(text.split())
        # References are at most about ten characters for one; folding must not process megabytes.
        return collapse_space(decode_references(text[: 16 * longest]))[:longest].rstrip()


Action = Callable[[Scan, str, str], None]
Actions = Mapping[str | None, Action | None]


def end_line(scan: Scan, _name: str = "", _attributes: str = "") -> None:
    """Handle an HTML tag that ends a text block and does nothing else."""
    if scan.pieces[-1] is not BREAK:
        scan.end_block()


_CALM_ACTIONS: Actions = {"p": end_line, "/p": end_line, "span": None, "/span": None}
