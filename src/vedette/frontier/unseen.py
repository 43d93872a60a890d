"""Unseen URLs, which were never fetched: the batch that order policies of the frontier judge."""

from dataclasses import dataclass

from vedette.policy import Ints


@dataclass(frozen=True, slots=True)
class UnseenUrls:
    """A batch of unseen URLs in columns of equal length, one row per URL.

    ``depth`` is the number of links from a start URL, ``found`` a running number: smaller was found earlier.
    ``inlinks`` is how many pages are known to link to it.
    """

    depth: Ints
    found: Ints
    inlinks: Ints

    def __len__(self) -> int:
        return len(self.depth)
