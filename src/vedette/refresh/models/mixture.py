"""Mixture of change models, each trusted in a section by how well it predicted there."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from vedette.policy import Floats
from vedette.refresh.known_pages import KnownPages, Memory
from vedette.refresh.models.age import Ageing
from vedette.refresh.models.base import Belief, HazardModel, Rates, average_beliefs, to_chance
from vedette.refresh.models.pooled import Pooled
from vedette.refresh.models.rhythm import Rhythm
from vedette.refresh.models.rows import is_informative, slice_memory
from vedette.refresh.models.trust import get_weights, log_scores, update_weights
from vedette.refresh.models.two_stage import TwoStage
from vedette.refresh.models.waves import Waves
from vedette.refresh.models.young import Young

PARTS: tuple[HazardModel, ...] = (Waves(), Pooled(), Ageing(), TwoStage(), Rhythm(), Young())


@dataclass(frozen=True, slots=True)
class Mixture:
    """Average the predictions of several change models, by weights that each section learns; see ``trust``.

        chance = sum over models of weight * chance of the model

    Before the models learn from a fetch, each predicts its outcome, and is trusted more the higher the probability it
    gave to what was found. Rows contain the weights, then the rows of the parts side by side.

    Useful as the default model: it is about as good as the best of its parts in every section, without knowing in
    advance which that is. Not useful if it must be cheap: it costs as much as all its parts together.

    Reference: V. Vovk, *A Game of Prediction with Expert Advice*, 1998: with the logarithmic score it loses at most the
    logarithm of the number of parts to the best of them, plus what it gives back to stay adaptive.

    >>> model = Mixture()
    >>> daily = KnownPages(np.arange(1), np.array([86400.0]), np.array([True]), np.array([False]), np.array([np.nan]),
    ...               before_s=np.zeros(1))
    >>> memory = model.learn(Memory.empty(model.page_width, model.group_width), daily)
    >>> bool(0 < model.chance(memory, daily, np.array([2 * 86400.0]))[0] < 1)
    True
    """

    name: str = "mixture"
    parts: tuple[HazardModel, ...] = PARTS

    @property
    def page_width(self) -> int:
        """The memory width per page: that of all models of the mixture together."""
        return sum(part.page_width for part in self.parts)

    @property
    def group_width(self) -> int:
        """The memory width per group: that of all models of the mixture, the weights and their fetch count."""
        return 1 + len(self.parts) + sum(part.group_width for part in self.parts)

    def learn(self, memory: Memory, batch: KnownPages) -> Memory:
        """Update the mixture's weights, then let every model learn."""
        after = memory.grow_for(batch)
        judged = is_informative(batch)
        if judged.any():  # a first fetch is no evidence for any model
            chances = to_chance(self._beliefs(memory, _rewind_batch(batch), batch.last_fetch_s))
            update_weights(after.groups[:, : 1 + len(self.parts)], batch, log_scores(chances, batch.changed), judged)
        for (part, mine), (_, grown) in zip(self.iterate_parts(memory), self.iterate_parts(after), strict=True):
            learned = part.learn(mine, batch)
            grown.pages[:], grown.groups[:] = learned.pages, learned.groups
        return after

    def chance(self, memory: Memory, batch: KnownPages, at_s: Floats) -> Floats:
        """Return the weighted mean of the models' change probabilities."""
        return to_chance(self.belief(memory, batch, at_s))

    def belief(self, memory: Memory, batch: KnownPages, at_s: Floats) -> Belief:
        """Return the weighted mean of the models' beliefs."""
        return average_beliefs(self.weights(memory, batch), self._beliefs(memory, batch, at_s))

    def rates(self, memory: Memory, batch: KnownPages) -> Rates:
        """Return the weighted mean of the models' rates, and of the ends of their intervals."""
        weights = self.weights(memory, batch)
        rates = np.array([part.rates(mine, batch) for part, mine in self.iterate_parts(memory)])
        return Rates(*np.einsum("np,pkn->kn", weights, rates))

    def weights(self, memory: Memory, batch: KnownPages) -> Floats:
        """Return how far each model of the mixture (a column) is trusted for each page."""
        return get_weights(memory.groups[:, : 1 + len(self.parts)], batch)

    def _beliefs(self, memory: Memory, batch: KnownPages, at_s: Floats) -> Belief:
        """Return the beliefs of the models of the mixture, one column each."""
        beliefs = [part.belief(mine, batch, at_s) for part, mine in self.iterate_parts(memory)]
        return Belief(*(np.stack(columns, axis=1) for columns in zip(*beliefs, strict=True)))

    def iterate_parts(self, memory: Memory) -> Iterator[tuple[HazardModel, Memory]]:
        """Yield every model of the mixture with its memory columns."""
        page, group = 0, 1 + len(self.parts)
        for part in self.parts:
            yield part, slice_memory(memory, page, part.page_width, group, part.group_width)
            page, group = page + part.page_width, group + part.group_width


def _rewind_batch(batch: KnownPages) -> KnownPages:
    """Rewind a batch to before these fetches: drop everything they found."""
    nothing, unknown = np.zeros(len(batch), np.bool_), np.full(len(batch), np.nan)
    # Without an earlier fetch nothing is judged, but the time must still be a number.
    last_s = np.where(is_informative(batch), batch.before_s, batch.last_fetch_s)
    return replace(batch, last_fetch_s=last_s, before_s=unknown, changed=nothing, modified_s=unknown, gain=unknown)
