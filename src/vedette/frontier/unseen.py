"""What is known of URLs that were never fetched: the batch that order policies judge."""

from dataclasses import dataclass

from vedette.policy import Ints


@dataclass(frozen=True, slots=True)
class UnseenUrls:
    """Columns of equal length, one row per unseen URL.

    ``depth`` is the number of links from a start URL, ``found`` a running number: smaller was seen earlier.
    ``inlinks`` is how many pages are known to link to it, as far as somebody counted.
    """

    depth: Ints
    found: Ints
    inlinks: Ints

    def __len__(self) -> int:
        return len(self.depth)
