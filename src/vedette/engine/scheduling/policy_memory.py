"""What the refresh policy remembers, between the book and its mind: batches with their rows, dated, and kept again.

Rows of pages are read from the book for each batch, those of groups are held here; both are written with what else the
batch writes. Each row begins with the mark of its policy: what another one left is no memory. A page whose change waits
to be weighed has the mark turned round.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal, NamedTuple

import numpy as np

from vedette.engine.decision_record import Decision, Witness
from vedette.engine.messages import Fetched, Result
from vedette.engine.ports import Book, Look, Remembered
from vedette.engine.scheduling.fetch_cost import FetchCost
from vedette.engine.scheduling.group_rows import GroupRows, Picked
from vedette.engine.scheduling.host_seconds import HostSeconds
from vedette.engine.scheduling.known_pages import Came, known_by_answers, known_by_looks
from vedette.engine.scheduling.policy_runner import Mind
from vedette.engine.scheduling.schedule import is_good, is_source
from vedette.policy import Floats, rng_for
from vedette.refresh.known_pages import Known, Memory

__all__ = ["Made", "Recollection", "Stage"]

# Fetches were learned from and dated; pages were asked about; gains were learned from.
Stage = Literal["fetched", "asked", "gained"]
MARK_BYTES, NUMBER_BYTES = 4, 8
COST, SECONDS = "refresh cost", "connection seconds"
# Means of hosts are many, so they are written now and then: a crash loses some minutes of them.
KEEP_EVERY_S = 600.0


class Made(NamedTuple):
    """A batch of pages with what is remembered of them and of their groups."""

    batch: Known
    memory: Memory
    picked: Picked


class Recollection:
    """The memory of one policy. A ``witness`` is told each batch with what was decided."""

    def __init__(self, mind: Mind, book: Book, seed: int, witness: Witness | None) -> None:
        self._mind, self._book, self._seed, self._witness = mind, book, seed, witness
        page_width, group_width = mind.widths
        self._page_bytes = MARK_BYTES + NUMBER_BYTES * page_width
        self._unweighed = bytes(255 - byte for byte in mind.mark)
        kept = [(name, _numbers(blob)) for name, blob in book.groups() if blob.startswith(mind.mark)]
        self._groups = GroupRows(group_width, kept)
        self._cost = FetchCost.from_json(book.life(COST))
        self._seconds = HostSeconds.from_json(book.life(SECONDS))
        self._kept_s: float | None = None

    def knows(self, kept: Remembered) -> bool:
        """Whether the policy remembers a page."""
        return len(kept.memory) == self._page_bytes and kept.memory.startswith((self._mind.mark, self._unweighed))

    def awaits(self, kept: Remembered) -> bool:
        """Whether the latest fetch of a page found a change from which nothing was learned yet."""
        return self.knows(kept) and kept.memory.startswith(self._unweighed)

    def judges(self, look: Look) -> bool:
        """Whether it is for the policy to say when a page is due."""
        return is_good(look.page.status) and not is_source(look.url, look.page.kind) and self.knows(look.kept)

    def of_answers(self, came: Sequence[Came]) -> Made:
        """Pages that were just fetched; what is usual to send is learned from them."""
        self._learn_cost([one for one in came if not one.is_gone])
        picked = self._groups.pick([one.result.errand.url for one in came])
        seconds = self._seconds.of([one.result.errand.url for one in came])
        batch = known_by_answers(came, picked, self._cost.of([one.body_bytes for one in came], seconds))
        return Made(batch, self._memory([one.kept for one in came], picked), picked)

    def of_looks(self, looks: Sequence[Look]) -> Made:
        """Pages at hand."""
        picked = self._groups.pick([look.url for look in looks])
        seconds = self._seconds.of([look.url for look in looks])
        batch = known_by_looks(looks, picked, self._cost.of([look.page.body_bytes for look in looks], seconds))
        return Made(batch, self._memory([look.kept for look in looks], picked), picked)

    def costs(self, results: Sequence[Result]) -> Floats:
        """What these fetches cost, in ordinary ones."""
        sizes = [result.body_bytes if isinstance(result, Fetched) else 0 for result in results]
        return self._cost.of(sizes, [result.held_s for result in results])

    def _learn_cost(self, came: Sequence[Came]) -> None:
        if not came:
            return
        held_s = [one.result.held_s for one in came]
        self._cost = self._cost.after([one.body_bytes for one in came], held_s)
        self._book.set_life(COST, self._cost.to_json())
        self._seconds.after([one.result.errand.url for one in came], held_s)
        now_s = came[-1].result.ended_s
        if self._kept_s is None or abs(now_s - self._kept_s) >= KEEP_EVERY_S:
            self._book.set_life(SECONDS, self._seconds.to_json())
            self._kept_s = now_s

    def dated(self, stage: Stage, made: Made, after: Memory, now_s: float, price: float) -> Floats:
        """When these pages are due at a price, by what is remembered after the batch."""
        due_s = self._mind.due(after, made.batch, now_s, price, rng_for(self._seed, _stream(stage, now_s)))
        self.tell(stage, made, after, now_s, {"price": price, "due_s": due_s})
        return due_s

    def tell(self, stage: Stage, made: Made, after: Memory, now_s: float, dates: Mapping[str, Any]) -> None:
        """Tell the witness all that the policy was handed, and what it answered; rows are those of the batch."""
        if self._witness is None:
            return
        columns = {name: getattr(made.batch, name).tolist() for name in Known.__slots__}
        facts = {**columns, **_rows(made.memory), "price": [dates.get("price", 0.0)]}
        outcome = {"due_s": dates["due_s"].tolist()} if dates else {}
        outcome |= _rows(after) if stage != "asked" else {}
        policies = {self._mind.policy.name: _settings(self._mind.policy)}
        stream = _stream(stage, now_s)
        self._witness(Decision(f"refresh/{stage}", now_s, self._seed, stream, policies, facts, outcome))

    def keep(self, made: Made, after: Memory, kept: Sequence[Remembered], *, unweighed: bool = False) -> None:
        """This is remembered from now on; ``unweighed`` where the latest fetches wait to be learned from."""
        mark = self._mind.mark
        row_mark = self._unweighed if unweighed else mark
        rows = zip(kept, after.pages, strict=True)
        self._book.keep_remembered([one._replace(memory=row_mark + row.tobytes()) for one, row in rows])
        self._groups.put(made.picked, after.groups)
        self._book.keep_groups([(name, mark + row.tobytes()) for name, row in self._groups.changed()])

    def _memory(self, kept: Sequence[Remembered], picked: Picked) -> Memory:
        pages = np.zeros((len(kept), self._mind.widths[0]))
        for row, one in enumerate(kept):
            if self.knows(one):
                pages[row] = _numbers(one.memory)
        return Memory(pages, picked.rows)


def _stream(stage: Stage, now_s: float) -> str:
    return f"refresh/{stage}/{now_s}"


def _numbers(blob: bytes) -> Floats:
    return np.frombuffer(blob, np.float64, offset=MARK_BYTES)


def _rows(memory: Memory) -> dict[str, Any]:
    return {"pages": memory.pages.tolist(), "groups": memory.groups.tolist()}


def _settings(policy: Any) -> dict[str, object]:  # noqa: ANN401 - each policy is a dataclass of its own
    """The settings of a policy, with sets in order."""
    values = asdict(policy).items()
    return {name: sorted(value) if isinstance(value, frozenset) else value for name, value in values}
