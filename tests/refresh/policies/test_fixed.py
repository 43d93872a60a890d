"""A fixed interval: only the last fetch counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.errors import ConfigError
from vedette.policy import Due, rng_for
from vedette.refresh.known_pages import KnownPages
from vedette.refresh.policies.fixed import Fixed

times_s = st.lists(st.floats(0, 4e9), max_size=10)


def sources(fetched_s: list[float], *, changed: bool = False) -> KnownPages:
    """Return sources with these last fetches."""
    count = len(fetched_s)
    flags = np.full(count, changed)
    return KnownPages(np.arange(count), np.array(fetched_s, dtype=np.float64), flags, flags, np.full(count, np.nan))


def test_it_is_a_due_policy() -> None:
    """The type checker agrees that the policy has the shape that the coordinator needs."""
    policy: Due[None, tuple[()], KnownPages, KnownPages] = Fixed()
    assert policy.name == "fixed"


@given(
    fetched_s=times_s,
    interval_s=st.floats(1, 1e7),
    now_s=st.floats(0, 4e9),
    price=st.floats(0, 100),
    changed=st.booleans(),
)
def test_only_the_last_fetch_and_the_setting_count(
    fetched_s: list[float], interval_s: float, now_s: float, price: float, *, changed: bool
) -> None:
    """Neither outcome, time nor price affects a due time."""
    policy = Fixed(interval_s=interval_s)
    batch = sources(fetched_s, changed=changed)
    state = policy.observe(policy.start(None), batch, now_s)
    due_s = policy.due(state, batch, now_s, price, rng_for(1, "test"))
    assert due_s.tolist() == [moment_s + interval_s for moment_s in fetched_s]


@pytest.mark.parametrize("interval_s", [0.0, -1.0, float("inf"), float("nan")])
def test_an_interval_that_is_none_is_refused(interval_s: float) -> None:
    """A source that is always or never due is a configuration error."""
    with pytest.raises(ConfigError, match="fixed"):
        Fixed(interval_s=interval_s)


def test_the_reason_names_the_interval() -> None:
    """The interval is given in minutes."""
    policy = Fixed(interval_s=90.0)
    assert "1.5 min" in policy.reason(policy.start(None), sources([0.0]), 0, 0.0)
