"""All change models, and batches of fetches for them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from vedette.lab.baselines.models.poisson import Poisson
from vedette.lab.baselines.models.replacement import Replacement
from vedette.lab.baselines.models.signals import SignalModel
from vedette.policy import Floats
from vedette.refresh.known_pages import KnownPages, Memory
from vedette.refresh.models.age import Ageing
from vedette.refresh.models.base import ChangeModel
from vedette.refresh.models.mixture import Mixture
from vedette.refresh.models.pooled import Pooled
from vedette.refresh.models.rhythm import Rhythm
from vedette.refresh.models.two_stage import TwoStage
from vedette.refresh.models.waves import Waves
from vedette.refresh.models.young import Young

DAY_S = 86_400.0
MODELS: tuple[ChangeModel, ...] = (
    *(Waves(), Poisson(), Pooled(), Ageing(), TwoStage(), Replacement(), Rhythm(), SignalModel(), Young(), Mixture()),
)
NAMES = [model.name for model in MODELS]


def looks(
    changed: npt.ArrayLike, day: float, gap_d: float | Sequence[float], *, first: bool = False, **columns: Any
) -> KnownPages:
    """Return one observation of each page on a day, at these intervals after the previous one."""
    count = len(np.asarray(changed))
    last_s = np.full(count, day * DAY_S)
    before_s = np.full(count, np.nan) if first else last_s - np.asarray(gap_d, np.float64) * DAY_S
    report = {name: np.asarray(values) for name, values in columns.items()}
    modified_s = report.pop("modified_s", np.full(count, np.nan))
    return KnownPages(
        np.arange(count),
        last_s,
        np.asarray(changed, bool),
        np.full(count, first),
        modified_s,
        before_s=before_s,
        **report,
    )


def taught(model: ChangeModel, batches: Sequence[KnownPages]) -> Memory:
    """Return a model's memory after these observations."""
    memory = Memory.empty(model.page_width, model.group_width)
    for batch in batches:
        memory = model.learn(memory, batch)
    return memory


def later(batch: KnownPages, days: float) -> Floats:
    """Return the time this many days after the last fetch of each page."""
    return batch.last_fetch_s + days * DAY_S


@st.composite
def stories(draw: st.DrawFn) -> list[KnownPages]:
    """Generate pages of some groups, observed a few times; some are gone, some have dates or signals."""
    count = draw(st.integers(1, 4))
    section = draw(st.lists(st.integers(0, 4), min_size=count, max_size=count))
    site = [min(number, 2) for number in section]
    day = draw(st.floats(0, 2e4))
    batches = [looks([False] * count, day, 0.0, first=True, section=section, site=site)]
    for gap in draw(st.lists(st.sampled_from([0.0, 1e-5, 0.04, 1.0, 6.5, 40.0, 3000.0]), max_size=6)):
        day += gap
        flags = st.lists(st.booleans(), min_size=count, max_size=count)
        report = st.lists(st.floats(-1e5, 3e9) | st.just(np.nan), min_size=count, max_size=count)
        columns: dict[str, Any] = {
            "modified_s": draw(report),
            "signal_s": draw(report),
            "words": draw(report),
            "links": draw(report),
        }
        gone = np.array(draw(flags)) & draw(st.booleans())
        batches.append(looks(draw(flags), day, gap, section=section, site=site, gone=gone, **columns))
    return batches
