"""After an order: URLs that wait again, and pages that the index looks at again."""

from collections.abc import Sequence

from vedette.adapters.crawl_store.data_folder import State

__all__ = ["reindex", "wait_again"]

LAST_FRONT = 7
AT_ONCE = 500


def wait_again(state: State, ids: Sequence[int], *, without_pages: bool = False) -> None:
    """These URLs wait at the end of the queue, and what was noted of them holds no more; nor are pages kept of them."""
    if ids:
        state.book.forget(ids, pages=without_pages)
        state.urls.again(ids, LAST_FRONT)


def reindex(state: State, ids: Sequence[int]) -> None:
    """The index looks again at those of which a page is kept; a few hundred at a time, as rows are larger than ids."""
    pieces = (ids[at : at + AT_ONCE] for at in range(0, len(ids), AT_ONCE))
    state.book.tell_index_of([id_ for piece in pieces for id_ in state.book.copies(piece)])
