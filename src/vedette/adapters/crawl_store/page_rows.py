"""Rows of the table of pages, as the database gives them."""

from collections.abc import Sequence
from typing import Any

from vedette.engine.messages import Place
from vedette.engine.ports import PageRow

__all__ = ["PAGE_COLUMNS", "page_of_row"]

PAGE_COLUMNS = (
    "id, host, status, kind, fetched_s, changed_s, title, content_type, etag, last_modified, digest, payload_digest, "
    "location, body_bytes, file, offset, length, interval_s, due_s"
)


def page_of_row(row: Sequence[Any]) -> PageRow:
    """A row of ``PAGE_COLUMNS``, which are the fields of a page in their order, but for the place in three parts."""
    file, offset, length = row[14:17]
    place = Place(file, offset, length) if file is not None else None
    return PageRow._make((*row[:14], place, *row[17:]))
