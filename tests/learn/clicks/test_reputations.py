"""Learning from an event store: good pages, how positions are examined, and the limit for each person."""

import numpy as np
from tests.learn.sample_events import EXAMINED, made_record

from vedette.learn.clicks.impressions import build_impressions
from vedette.learn.clicks.reputations import MIN_CLICKS, LearnedQuality, learn_reputations
from vedette.learn.events import ClickEvent, SearchEvent

PAGES = {page: 0.03 * page for page in range(1, 11)}
HOSTS = dict.fromkeys(PAGES, 3)


def taught(record: tuple[list[SearchEvent], list[ClickEvent]], now_days: float = 3.0) -> LearnedQuality:
    """Return the result of learning from a large enough log."""
    found = learn_reputations(build_impressions(*record), HOSTS, now_days)
    assert found is not None
    return found


def test_few_clicks_teach_nothing() -> None:
    """Below the threshold, and with many clicks by few people, nothing is estimated."""
    record = made_record(PAGES, 40)
    assert sum(event.kind == "click" for event in record[1]) < MIN_CLICKS
    assert learn_reputations(build_impressions(*record), HOSTS, 3.0) is None
    alone = [slate._replace(visitor="00000001aaaaaaaa") for slate in made_record(PAGES, 2000)[0]]
    assert learn_reputations(build_impressions(alone, made_record(PAGES, 2000)[1]), HOSTS, 3.0) is None


def test_better_pages_are_believed_to_be_better() -> None:
    """With many clicks, the estimated order is close to the true one, overall and for the query."""
    found = taught(made_record(PAGES, 3000))
    assert np.corrcoef(found.mean, list(PAGES.values()))[0, 1] > 0.97
    assert np.corrcoef(found.pair_mean, list(PAGES.values()))[0, 1] > 0.97


def test_places_are_examined_as_the_log_says() -> None:
    """Orders were shuffled, so the position model finds how positions are examined."""
    found = taught(made_record(PAGES, 4000))
    assert np.abs(found.examined - EXAMINED).max() < 0.12


def test_evidence_fades() -> None:
    """A year later, the same clicks count less, and the estimate is closer to the general one."""
    record = made_record(PAGES, 2000)
    early, late = taught(record), taught(record, 400.0)
    assert late.looks.sum() < 0.1 * early.looks.sum()
    assert np.ptp(late.mean) < np.ptp(early.mean)


def test_one_address_with_many_browsers_moves_no_page() -> None:
    """A thousand clicks of one address on the poorest page count as a few people, and the reason is reported."""
    slates, events = made_record(PAGES, 2000)
    bad = [slate._replace(id=f"x{n}", visitor=f"0badcafe{n:08x}") for n, slate in enumerate(slates[:1000])]
    clicks = [ClickEvent(slate.id, "click", 1, slate.at_s + 5.0, 5.0, slate.visitor) for slate in bad]
    honest, attacked = taught((slates, events)), taught((slates + bad, events + clicks))
    assert abs(attacked.mean[0] - honest.mean[0]) < 0.02
    assert attacked.taken_off["same address"] > 900
