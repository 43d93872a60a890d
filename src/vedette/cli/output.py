"""Terminal output: numbers, sizes, durations and tables formatted for people, and sanitized text."""

from collections.abc import Mapping, Sequence

THIN_SPACE = "\u2009"


def format_number(number: int) -> str:
    """Format a number for the terminal with thin spaces between its thousands.

    >>> format_number(1234567).split(THIN_SPACE)
    ['1', '234', '567']
    """
    return f"{number:,}".replace(",", THIN_SPACE)


def format_count(number: int, noun: str) -> str:
    """Format a number for the terminal with its noun in singular or plural.

    >>> format_count(1, "host"), format_count(0, "page")
    ('1 host', '0 pages')
    """
    return f"{format_number(number)} {noun}{'' if number == 1 else 's'}"


def format_bytes(size: int) -> str:
    """Format a size in bytes for the terminal in the unit that keeps it short.

    >>> format_bytes(1_500_000), format_bytes(900)
    ('1.5 MB', '900 B')
    """
    for unit, scale in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size} B"


def format_duration(seconds: float) -> str:
    """Format a duration for the terminal in its two largest units.

    >>> format_duration(42.4), format_duration(75), format_duration(7260)
    ('42 s', '1 min 15 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def sanitize(text: str, most: int = 200) -> str:
    r"""Sanitize text from the web for a terminal: replace what moves the cursor, or hides or reverses text.

    >>> sanitize("a\x1b[31m b\u202ec")
    'a\ufffd[31m b\ufffdc'
    """
    cut = text if len(text) <= most else f"{text[: most - 1]}…"
    return "".join(each if each.isprintable() else "\ufffd" for each in cut)


def format_rough_duration(seconds: float) -> str:
    """Format a rough duration for the terminal, in its largest unit only.

    >>> format_rough_duration(42.4), format_rough_duration(250), format_rough_duration(3 * 86_400)
    ('42 s', '4 min', '3 d')
    """
    for unit, size_s in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= size_s:
            return f"{int(seconds // size_s)} {unit}"
    return f"{max(round(seconds), 0)} s"


def format_relative_time(at_s: float, now_s: float) -> str:
    """Format a time for the terminal relative to now, such as "4 min ago".

    >>> format_relative_time(0.0, 250.0), format_relative_time(7200.0, 0.0), format_relative_time(10.0, 10.2)
    ('4 min ago', 'in 2 h', 'just now')
    """
    if abs(now_s - at_s) < 1:
        return "just now"
    return f"{format_rough_duration(now_s - at_s)} ago" if now_s > at_s else f"in {format_rough_duration(at_s - now_s)}"


def format_counts(counts: Mapping[str, int], most: int = 4) -> str:
    """Format counts by kind for the terminal, the most frequent first.

    >>> format_counts({"too slow": 2, "status 500": 5})
    'status 500: 5, too slow: 2'
    """
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    named = [f"{kind}: {format_number(count)}" for kind, count in ranked[:most]]
    rest = sum(count for _, count in ranked[most:])
    return ", ".join([*named, f"other: {format_number(rest)}"] if rest else named)


def format_table(rows: Sequence[Sequence[str]], gap: str = "  ") -> list[str]:
    """Format rows as the lines of a terminal table: the first column left-aligned, the others right-aligned.

    >>> format_table([("policy", "pages"), ("uniform", "12")])
    ['policy   pages', 'uniform     12']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        gap.join(cell.rjust(width) if place else cell.ljust(width) for place, (cell, width) in enumerate(pairs))
        for pairs in (list(zip(row, widths, strict=True)) for row in rows)
    ]
