"""Copies are folded under the best of them."""

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vedette.serve.rank.diversity import fold_copies


@given(st.lists(st.integers(0, 4)), st.randoms())
def test_each_group_is_shown_once(groups: list[int], chance: Random) -> None:
    """The first of each group represents all others; pages without copies all stay."""
    order = list(range(len(groups)))
    chance.shuffle(order)
    result = fold_copies(np.array(order, np.int64), np.array(groups, np.int64))
    expected: list[int] = []
    for row in order:
        if groups[row] == 0 or groups[row] not in [groups[kept] for kept in expected]:
            expected.append(row)
    assert result.rows.tolist() == expected
    for row, similar in zip(result.rows.tolist(), result.similar.tolist(), strict=True):
        assert similar == (groups.count(groups[row]) - 1 if groups[row] else 0)
