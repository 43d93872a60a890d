"""What containers do: begin and end blocks, and put what stands in them into another zone.

An element counts while it is open, by the number of its own name that are open inside it. Pages leave elements open,
so the end of a landmark ends everything in it, and content that cannot stand in a navigation ends that.
"""

from vedette.parse.html.walker import BREAK, Scan, Zone, end_line
from vedette.parse.html.zones import APART, BY_NAME, CORE, HIDDEN, SUSPECT, zone_of

__all__ = [
    "close_container",
    "close_inline",
    "close_landmark",
    "leave",
    "open_article",
    "open_container",
    "open_header",
    "open_inline",
    "open_main",
    "open_paragraph",
]


def open_container(scan: Scan, name: str, attributes: str) -> None:
    """A container begins: it ends a paragraph, and may put all that stands in it into another zone."""
    if scan.zones and scan.zones[-1].name == "p":
        close_container(scan, "/p", "")
    if scan.pieces[-1] is not BREAK:
        scan.end_block()
    marks = BY_NAME.get(name, 0)
    _enter(scan, name, marks | zone_of(attributes) if attributes else marks)


def _enter(scan: Scan, name: str, marks: int) -> None:
    if marks & ~scan.zone:
        if name in {"p", "span"}:
            scan.alarm()
        scan.zones.append(Zone(name, scan))
        scan.zone |= marks
    elif scan.zones and scan.zones[-1].name == name:
        scan.zones[-1].depth += 1


def close_container(scan: Scan, name: str, _attributes: str) -> None:
    """The end of a container is the end of its marks, if it was the outermost of its name."""
    end_line(scan)
    if scan.zones and scan.zones[-1].name == name[1:]:
        scan.zones[-1].depth -= 1
        if not scan.zones[-1].depth:
            scan.zone = scan.zones.pop().before


def close_landmark(scan: Scan, name: str, attributes: str) -> None:
    """The end of a ``<nav>`` ends what was left open inside it, too."""
    if any(zone.name == name[1:] for zone in scan.zones):
        while scan.zones[-1].name != name[1:]:
            end_line(scan)
            scan.zone = scan.zones.pop().before
    close_container(scan, name, attributes)


def open_header(scan: Scan, name: str, attributes: str) -> None:
    """The header of an article is part of it; that of a page is not."""
    if scan.zone & CORE and not scan.zone & (APART | SUSPECT):
        end_line(scan)
        if scan.zones[-1].name == name:
            scan.zones[-1].depth += 1
    else:
        open_container(scan, name, attributes)


def open_main(scan: Scan, name: str, attributes: str) -> None:
    """Content begins, so that whatever was left open before is over."""
    end_line(scan)
    while scan.zone & (APART | SUSPECT) and not scan.zone & HIDDEN:
        scan.zone = scan.zones.pop().before
    open_container(scan, name, attributes)


def open_article(scan: Scan, name: str, attributes: str) -> None:
    """An article does not stand in a navigation: that was left open."""
    leave(scan, ("nav", "header", "footer"))
    open_container(scan, name, attributes)


def open_paragraph(scan: Scan, name: str, attributes: str) -> None:
    """Most paragraphs have no marks, and are nothing but lines."""
    if scan.calm and not zone_of(attributes):
        scan.learn(name + attributes, end_line)
        end_line(scan)
    else:
        open_container(scan, name, attributes)


def open_inline(scan: Scan, name: str, attributes: str) -> None:
    """A span is nothing, unless it hides something."""
    hides = zone_of(attributes) & HIDDEN if attributes else 0
    if scan.calm and not hides:
        scan.learn(name + attributes, None)
        return
    if hides & ~scan.zone:
        end_line(scan)
    _enter(scan, name, hides)


def close_inline(scan: Scan, name: str, attributes: str) -> None:
    """A span ends; it matters if something hidden does."""
    if scan.zones and scan.zones[-1].name == name[1:]:
        close_container(scan, name, attributes)


def leave(scan: Scan, names: tuple[str, ...]) -> None:
    """Something began that cannot stand in these: they were left open."""
    while scan.zones and scan.zones[-1].name in names:
        end_line(scan)
        scan.zone = scan.zones.pop().before
