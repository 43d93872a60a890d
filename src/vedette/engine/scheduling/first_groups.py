"""To which groups an unseen URL belongs, by which is weighed what a first fetch of it brings."""

from vedette.pricing import in_links_group
from vedette.refresh.sections import section_of

__all__ = ["groups_of_unseen"]

DEEPEST = 9


def groups_of_unseen(url: str, in_links: int) -> tuple[str, str, str]:
    """Its section, how many folders deep it lies, and about how many pages link to it.

    >>> groups_of_unseen("https://example.org/docs/api/v3/sets.html", 5)
    ('https://example.org/docs/api/', 'depth 3', 'in 4')
    """
    folders = max(url.partition("?")[0].count("/") - 3, 0)
    return section_of(url), f"depth {min(folders, DEEPEST)}", in_links_group(in_links)
