"""Pages not worth indexing are refused with a reason that the operator can overrule by name."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.parse.quality.indexability import Objection, PageQuality, RejectReason, find_objection, list_objections

GOOD = PageQuality(words=400, letters=2400, onward_links=12)
BAD = {
    RejectReason.NOINDEX: PageQuality(words=400, letters=2400, noindex=True),
    RejectReason.COPY: PageQuality(words=400, letters=2400, copy_of="https://example.org/a"),
    RejectReason.MISSING: PageQuality(words=30, letters=200, missing='says "Not found"'),
    RejectReason.SCRIPT: PageQuality(words=3, letters=20, needs_script=True),
    RejectReason.EMPTY: PageQuality(words=0, letters=0, onward_links=50),
    RejectReason.THIN: PageQuality(words=4, letters=25),
    RejectReason.SPAM: PageQuality(words=400, letters=2400, spam_score=0.97, spam_reasons=("one word", "many hosts")),
}
PAGES = st.builds(
    PageQuality,
    words=st.integers(0, 200),
    letters=st.integers(0, 2000),
    onward_links=st.integers(0, 20),
    noindex=st.booleans(),
    copy_of=st.none() | st.just("https://example.org/"),
    missing=st.none() | st.just("says so"),
    needs_script=st.booleans(),
    spam_score=st.floats(0, 1),
)


def kind_of(objection: Objection | None) -> RejectReason | None:
    """Return the name of an objection."""
    return objection.kind if objection else None


def test_an_ordinary_page_is_worth_indexing() -> None:
    """An ordinary page has no objections."""
    assert find_objection(GOOD) is None


@pytest.mark.parametrize("kind", list(RejectReason))
def test_every_objection_is_raised_by_its_page(kind: RejectReason) -> None:
    """Each name occurs in practice."""
    assert kind_of(find_objection(BAD[kind])) is kind


def test_a_reason_says_what_it_rests_on() -> None:
    """The reason contains the original page of a copy, or the signs of spam."""
    assert "https://example.org/a" in str(find_objection(BAD[RejectReason.COPY]))
    assert "one word; many hosts" in str(find_objection(BAD[RejectReason.SPAM]))


@given(PAGES)
def test_overruling_reveals_the_next_objection_and_in_the_end_none(page: PageQuality) -> None:
    """Overruling an objection removes it and no other."""
    overruled: list[RejectReason] = []
    for objection in list_objections(page):
        assert kind_of(find_objection(page, overruled)) is objection.kind
        overruled.append(objection.kind)
    assert find_objection(page, overruled) is None


def test_a_directory_of_links_is_no_thin_page() -> None:
    """A page with few words and many links is not thin."""
    assert find_objection(PageQuality(words=12, letters=70, onward_links=40)) is None


def test_one_sentence_under_a_title_is_an_answer() -> None:
    """A short text under a title is enough; less text, or text without a title, is thin."""
    room = PageQuality(words=12, letters=70, onward_links=1)
    assert find_objection(replace(room, is_titled=True)) is None
    assert find_objection(room) is not None
    assert find_objection(PageQuality(words=2, letters=11, is_titled=True)) is not None


def test_a_page_without_spaces_is_not_thin() -> None:
    """Chinese and Japanese texts have few words if only spaces are counted."""
    text = "港の朝は静かで、潮とともに届いた荷について尋ねる者は誰もいなかった。" * 4
    assert find_objection(PageQuality(words=len(text.split()), letters=len(text))) is None
