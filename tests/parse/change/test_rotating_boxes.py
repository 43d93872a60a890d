"""Rotating boxes: text that changes on every fetch is learned and ignored, and all other changes still count."""

from hypothesis import given
from hypothesis import strategies as st

from vedette.parse.change.comparison import (
    MAX_PLACES,
    BoxComparison,
    PlacedText,
    PlaceRecord,
    compare_boxes,
    count_unchanged,
    pack_records,
    unpack_records,
)

ARTICLE, MENU, BOX = 11, 12, 13
SENTENCE = "the harbour was quiet at dawn and nobody asked about the cargo that came in with the tide "
BLOCKS = st.lists(st.tuples(st.integers(), st.text(max_size=30)), max_size=200)


def article(version: int) -> str:
    """Return a long text; each version has different last words."""
    return SENTENCE * 8 + letters(version)


def letters(number: int) -> str:
    """Return a word for a number, because digits are not words."""
    return "x" + "".join("abcdefghij"[int(digit)] for digit in str(number))


def page(fetch: int, *, version: int = 0, place: int = BOX) -> list[PlacedText]:
    """Return a page whose box is different on every fetch."""
    return [(MENU, "Home News About"), (ARTICLE, article(version)), (place, f"Quote {letters(fetch)} of the day")]


def fetched(*pages: list[PlacedText]) -> list[BoxComparison]:
    """Return the comparisons of successive versions."""
    turns, records = [], compare_boxes({}, pages[0]).records
    for blocks in pages[1:]:
        turns.append(compare_boxes(records, blocks))
        records = turns[-1].records
    return turns


def test_a_box_that_turns_every_time_is_learned() -> None:
    """The first changes count, because the box isn't known yet; later ones are attributed to the box."""
    turns = fetched(*(page(fetch) for fetch in range(8)))
    assert turns[0].steady_changes == 1
    assert all((seen.steady_changes, seen.box_changes) == (0, 1) for seen in turns[3:])


def test_an_edit_beside_a_turning_box_counts() -> None:
    """A change of the page's own text counts even while the box rotates."""
    *_, edited, after = fetched(*(page(fetch) for fetch in range(6)), page(6, version=1), page(7, version=1))
    assert (edited.steady_changes, edited.box_changes) == (1, 1)
    assert (after.steady_changes, after.box_changes) == (0, 1)


def test_a_box_whose_place_has_a_new_name_each_time_is_learned() -> None:
    """A box with a new class on every fetch is learned as a whole."""
    turns = fetched(*(page(fetch, place=100 + fetch) for fetch in range(8)))
    assert turns[0].steady_changes
    assert all((seen.steady_changes, seen.box_changes) == (0, 1) for seen in turns[4:])


def test_a_live_ticker_has_no_box() -> None:
    """If most of the text changes each time, there is no box, and every version is a change."""
    turns = fetched(*([(MENU, "Home"), (ARTICLE, article(fetch))] for fetch in range(10)))
    assert all(seen.steady_changes == 1 for seen in turns)


def test_a_large_part_that_changes_daily_is_content() -> None:
    """A list of headlines next to a longer menu that never changes still counts as content."""
    menu = SENTENCE * 3
    turns = fetched(*([(MENU, menu), (ARTICLE, SENTENCE + letters(day) * 9)] for day in range(10)))
    assert all(seen.steady_changes == 1 for seen in turns)


def test_a_box_that_stood_still_is_content_again() -> None:
    """After many fetches without a change, the next change of a former box counts."""
    turning = [page(fetch) for fetch in range(10)]
    still = [page(10)] * 20
    assert fetched(*turning, *still, page(11))[-1].steady_changes == 1


def test_the_same_bytes_are_evidence_of_standing_still() -> None:
    """A place that changed in all comparisons except those of equal bytes is not a rotating box."""
    records = compare_boxes({}, page(0)).records
    for fetch in range(1, 6):
        for _ in range(4):
            records = count_unchanged(records)
        seen = compare_boxes(records, page(fetch))
        records = seen.records
        assert seen.steady_changes == 1


def test_digits_do_not_turn_a_place() -> None:
    """A counter doesn't count as a change of its block."""
    (seen,) = fetched([(MENU, "7 readers today")], [(MENU, "1,204 readers today")])
    assert (seen.steady_changes, seen.box_changes) == (0, 0)


@given(BLOCKS, BLOCKS)
def test_records_stay_small_and_survive_packing(before: list[PlacedText], after: list[PlacedText]) -> None:
    """For any page there are few records of ten bytes, and they survive packing."""
    records = compare_boxes(compare_boxes({}, before).records, after).records
    assert len(records) <= MAX_PLACES
    assert len(pack_records(records)) == 10 * len(records)
    assert unpack_records(pack_records(records)) == records


@given(BLOCKS)
def test_an_equal_page_has_no_turned_place(blocks: list[PlacedText]) -> None:
    """This is true however many places it has."""
    seen = compare_boxes(compare_boxes({}, blocks).records, blocks)
    assert (seen.steady_changes, seen.box_changes, seen.box_share) == (0, 0, 0.0)


@given(st.binary(max_size=700), BLOCKS)
def test_foreign_bytes_are_read_as_something_harmless(packed: bytes, blocks: list[PlacedText]) -> None:
    """Invalid records don't raise, and the result can be packed."""
    records: dict[int, PlaceRecord] = unpack_records(packed)
    assert (
        unpack_records(pack_records(compare_boxes(records, blocks).records)) == compare_boxes(records, blocks).records
    )


def test_very_many_blocks_are_all_compared() -> None:
    """A change in the last of ten thousand blocks is seen."""
    blocks = [(number % 50, letters(number)) for number in range(10_000)]
    (seen,) = fetched(blocks, [*blocks[:-1], (0, "another word")])
    assert seen.steady_changes == 1
