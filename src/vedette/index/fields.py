"""What a page is called, where its title is only the name of its site."""

from collections.abc import Sequence

__all__ = ["called"]

# A title that so many pages of a host bear names the host and not a page.
MANY = 30


def called(title: str, headings: Sequence[str], bearers: int) -> str:
    """The title, or the first heading where there is none or so many pages of the host are its ``bearers``.

    >>> called("Apache Kafka", ["Quick start"], 900), called("Quick start | Kafka", ["Contents"], 1)
    ('Quick start', 'Quick start | Kafka')
    """
    first = next((heading for heading in headings if heading.strip()), "")
    return first if first and (not title.strip() or bearers >= MANY) else title
