"""The estimate of search quality: its weights, its start, and its accuracy if probabilities are true."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.memory_web import Drive, MemoryWeb, page, rules_for

from vedette.engine.ports import FetchGain
from vedette.engine.scheduling.forecast import ChangeLoss, Freshness, estimate_quality
from vedette.timeutil import DAY_S

shares = st.floats(0.0, 1.0)


@given(st.lists(st.tuples(shares, st.floats(0.0, 9.0) | st.just(float("nan"))), min_size=1, max_size=30), shares)
def test_quality_is_a_share_that_no_batching_changes(pages: list[tuple[float, float]], lost: float) -> None:
    """It is between 0 and 1, page by page or all at once, and loses no more than the share of views at stake."""
    chance, views = np.array(pages).T
    loss = ChangeLoss(1e9, lost, 1.0, 1.0)
    once = Freshness("any").observe(chance, views)
    bit_by_bit = Freshness("any")
    for row in range(len(pages)):
        bit_by_bit = bit_by_bit.observe(chance[row : row + 1], views[row : row + 1])
    quality = estimate_quality(once, loss)
    assert quality is not None
    assert -1e-9 <= quality <= 1.0
    assert abs(quality - (estimate_quality(bit_by_bit.end_round(), loss) or 0.0)) < 1e-9
    assert 1.0 - quality <= lost + 1e-6


def test_pages_count_by_their_views() -> None:
    """An outdated page that everyone sees costs more than one that no one sees; without views, all count the same."""
    chance, loss = np.array([0.9, 0.0]), ChangeLoss(1e9, 0.5, 1.0, 1.0)
    seen, unseen, unknown = (
        estimate_quality(Freshness("any").observe(chance, np.array(views)), loss)
        for views in ([1.0, 0.0], [0.0, 1.0], [np.nan, np.nan])
    )
    assert seen is not None
    assert unseen is not None
    assert unknown is not None
    assert seen < unknown < unseen == 1.0


def test_true_chances_and_losses_give_the_true_quality_on_average() -> None:
    """On average, the estimate equals the true loss of pages that become outdated as often as estimated."""
    rng = np.random.default_rng(3)
    chance, views, lost = rng.random(400), rng.pareto(1.5, 400), rng.uniform(0.0, 0.6, 400)
    per_view = 0.8
    loss = ChangeLoss(per_view=per_view).observe(np.tile(views * lost * per_view, 9), np.tile(views, 9))
    text = estimate_quality(Freshness("any").observe(chance, views), loss)
    outdated = rng.random((4_000, 400)) < chance
    truth = 1.0 - (outdated * views * lost).sum(axis=1) / views.sum()
    assert text is not None
    # Probability and loss are independent of one another here, page by page; that is the assumption.
    assert abs(text - truth.mean()) < 0.02


def test_a_crawl_estimates_its_quality_from_views_and_measured_gains() -> None:
    """There is no estimate before any page was judged; gains make an outdated copy cost less than all its views."""
    web = MemoryWeb({"https://a.test/": page("/1", "/2", "/3")})
    web.replies |= {f"https://a.test/{number}": page(title=str(number)) for number in (1, 2, 3)}
    drive = Drive(web, rules_for("https://a.test/", recrawl=True)).begin()
    assert drive.keeper.refresher.quality is None
    refresher = drive.run(2 * DAY_S).keeper.refresher
    before = refresher.quality
    assert before is not None
    assert before == refresher.freshness.share, "nobody has searched, and nothing was measured"
    rows = [row for url, row in drive.pages().items() if not url.endswith("test/")]
    drive.keeper.on_gains([FetchGain(row.id, row.fetched_s, 0.01, 0.5) for row in rows], drive.now_s, per_view=0.2)
    assert refresher.loss.share < 0.5
    assert refresher.quality is not None
    assert refresher.quality > before
    refresher.step(drive.now_s + 1.0)
    assert Drive(web, drive.rules, db=drive.db).keeper.refresher.loss == refresher.loss, "it outlives the run"
