"""Pages as refresh policies see them: columns made of what answers bring, or of what is at hand."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from vedette.engine.messages import Fetched
from vedette.engine.ports import Gained, Look, PageRow, Remembered
from vedette.engine.scheduling.group_rows import Picked
from vedette.engine.scheduling.schedule import has_changed, is_good, status_after
from vedette.header_dates import seconds_of
from vedette.policy import Floats
from vedette.refresh.known_pages import Known

__all__ = ["Came", "is_latest", "known_by_answers", "known_by_looks", "until_before", "with_gain"]


NOT_MODIFIED = 304
SAME_FETCH_S = 1.0


class Came(NamedTuple):
    """An answer for a page, with what was known of it; ``is_known`` where the policy remembers the page.

    ``links`` is how often pages have named it by now.
    """

    result: Fetched
    earlier: PageRow | None
    kept: Remembered
    is_known: bool
    links: int | None = None

    @property
    def is_gone(self) -> bool:
        """Whether there is no page any more."""
        return not is_good(status_after(self.result, self.earlier))

    @property
    def is_first(self) -> bool:
        """Whether there is nothing to compare with: it is new, has come back, or nobody remembers it."""
        return self.earlier is None or not self.is_known or not is_good(self.earlier.status)

    @property
    def is_unweighed(self) -> bool:
        """Whether a change was found that counts only if searches notice it."""
        content = self.result.content
        return content is not None and content.unweighed and not self.is_first and not self.is_gone

    @property
    def remembered(self) -> Remembered:
        """What is known after the answer; what it brought is measured later."""
        content, kept = self.result.content, self.kept
        return kept._replace(
            words=content.words if content else kept.words,
            share=content.change.share if content and content.change else None,
            before_s=None if self.is_first or self.earlier is None else self.earlier.fetched_s,
            gain=None,
            links=kept.links if self.links is None else self.links,
        )

    @property
    def body_bytes(self) -> int:
        """How large the page is; where nothing was sent, as it was."""
        known = self.earlier is not None and self.result.status == NOT_MODIFIED
        return self.earlier.body_bytes if known and self.earlier is not None else self.result.body_bytes

    @property
    def modified_s(self) -> float:
        """When the page says that it was changed, or its server does; NaN where neither does."""
        content = self.result.content
        said_s = content.modified_s if content and content.modified_s is not None else None
        return said_s if said_s is not None else _seconds(self.result.header("last-modified"))


def known_by_answers(came: Sequence[Came], picked: Picked, cost: Floats) -> Known:
    """The batch of pages that were just fetched."""
    batch = Known(
        place=np.arange(len(came)),
        last_fetch_s=np.array([one.result.ended_s for one in came]),
        changed=np.array([has_changed(one.result, one.earlier) for one in came], np.bool_),
        first_fetch=np.array([one.is_first for one in came], np.bool_),
        modified_s=np.array([one.modified_s for one in came]),
        section=picked.section,
        site=picked.site,
        gone=np.array([one.is_gone for one in came], np.bool_),
        cost=cost,
    )
    return _told(batch, [one.remembered for one in came])


def known_by_looks(looks: Sequence[Look], picked: Picked, cost: Floats) -> Known:
    """The batch of pages at hand, as their latest fetch left them."""
    first = np.array([look.kept.before_s is None for look in looks], np.bool_)
    batch = Known(
        place=np.arange(len(looks)),
        last_fetch_s=np.array([look.page.fetched_s for look in looks]),
        changed=np.array([look.page.changed_s == look.page.fetched_s for look in looks], np.bool_) & ~first,
        first_fetch=first,
        modified_s=np.array([_seconds(look.page.last_modified) for look in looks]),
        section=picked.section,
        site=picked.site,
        cost=cost,
    )
    return _told(batch, [look.kept for look in looks])


def until_before(batch: Known) -> Known:
    """The batch as it was before these fetches: the ones before them were the latest."""
    return replace(batch, last_fetch_s=batch.before_s, before_s=np.full(len(batch), np.nan))


def _told(batch: Known, kept: Sequence[Remembered]) -> Known:
    return replace(
        batch,
        before_s=_column([one.before_s for one in kept]),
        gain=_column([one.gain for one in kept]),
        views=_column([one.views for one in kept]),
        share=_column([one.share for one in kept]),
        born_s=_column([one.found_s for one in kept]),
        words=_column([one.words for one in kept]),
        links=_column([one.links for one in kept]),
        signal_s=_column([one.signal_s for one in kept]),
    )


def _column(values: Sequence[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], np.float64)


def _seconds(text: str) -> float:
    found = seconds_of(text) if text else None
    return np.nan if found is None else found


def is_latest(look: Look, gained: Gained) -> bool:
    """Whether the page was not fetched again since."""
    return abs(look.page.fetched_s - gained.fetched_s) <= SAME_FETCH_S


def with_gain(look: Look, gained: Gained) -> Look:
    """A page with what its latest fetch brought."""
    kept = look.kept
    gain = kept.gain if gained.gain is None else gained.gain
    views = kept.views if gained.views is None else gained.views
    return look._replace(kept=kept._replace(gain=gain, views=views))
