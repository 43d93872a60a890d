"""Sections of a site: group pages that change alike by the first folders of their URLs."""

from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import urlsplit

import numpy as np

from vedette.policy import Ints

# A folder in a folder is still about one topic; deeper ones contain too few pages to learn from.
DEPTH = 2


def site_of(url: str) -> str:
    """Return the site group of a page: the root URL of its host.

    >>> site_of("https://example.org/docs/api/sets.html?v=3")
    'https://example.org/'
    """
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/"


def section_of(url: str) -> str:
    """Return the section group of a page: the folder of its URL, up to a maximum depth.

    >>> section_of("https://example.org/docs/api/v3/sets.html?v=3"), section_of("https://example.org/about")
    ('https://example.org/docs/api/', 'https://example.org/')
    """
    folders = urlsplit(url).path.split("/")[1:-1][:DEPTH]
    return site_of(url) + "".join(f"{folder}/" for folder in folders)


class Groups(NamedTuple):
    """Section and site group numbers of each page, and the name of each group; group 0 is global."""

    section: Ints
    site: Ints
    names: tuple[str, ...]


def groups_of(urls: Iterable[str]) -> Groups:
    """Assign section and site groups to a list of page URLs, numbered in order of appearance.

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
