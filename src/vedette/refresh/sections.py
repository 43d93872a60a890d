"""Which pages change alike: those of one folder. Sections of a site, by the first folders of their addresses."""

from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import urlsplit

import numpy as np

from vedette.policy import Ints

# A folder in a folder is still about one thing; deeper ones hold too few pages to learn from.
DEPTH = 2


def site_of(url: str) -> str:
    """The group of all pages of a host.

    >>> site_of("https://example.org/docs/api/sets.html?v=3")
    'https://example.org/'
    """
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/"


def section_of(url: str) -> str:
    """The group of the pages that stand in the same folder, or below it.

    >>> section_of("https://example.org/docs/api/v3/sets.html?v=3"), section_of("https://example.org/about")
    ('https://example.org/docs/api/', 'https://example.org/')
    """
    folders = urlsplit(url).path.split("/")[1:-1][:DEPTH]
    return site_of(url) + "".join(f"{folder}/" for folder in folders)


class Groups(NamedTuple):
    """The rows of groups: those of the section and of the site of each page, and what each row is; 0 is everything."""

    section: Ints
    site: Ints
    names: tuple[str, ...]


def groups_of(urls: Iterable[str]) -> Groups:
    """Groups for a list of pages, numbered in the order in which they come.

    >>> groups_of(["https://a.example/x/1", "https://a.example/2"])
    Groups(section=array([2, 1]), site=array([1, 1]), names=('', 'https://a.example/', 'https://a.example/x/'))
    """
    rows: dict[str, int] = {"": 0}
    # Pages of one folder have the same groups, and a million pages have few folders.
    folders: dict[str, tuple[int, int]] = {}
    found: list[tuple[int, int]] = []
    for url in urls:
        folder = url.partition("?")[0].rpartition("/")[0]
        if folder not in folders:
            site = rows.setdefault(site_of(url), len(rows))
            folders[folder] = rows.setdefault(section_of(url), len(rows)), site
        found.append(folders[folder])
    section, site_rows = np.array(found, np.int64).reshape(-1, 2).T
    return Groups(section, site_rows, tuple(rows))
