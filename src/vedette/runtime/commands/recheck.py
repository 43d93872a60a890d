"""What follows from rules about URLs and domains: the index looks at pages again, and blocked ones may be fetched."""

from collections.abc import Iterable, Sequence

from vedette.adapters.crawl_store.data_folder import State
from vedette.adapters.crawl_store.reader import StateView
from vedette.engine.search.hidden import Concealed, lies_in
from vedette.model import Refusal, origin_of, partition_of
from vedette.web.commands.commands import Rule

__all__ = ["OF_DOMAINS", "blocked_domains", "reindex", "rules_changed", "wait_again"]

LAST_FRONT = 7
AT_ONCE = 500


def wait_again(state: State, ids: Sequence[int], *, without_pages: bool = False) -> None:
    """These URLs wait at the end of the queue, and what was noted of them holds no more; nor are pages kept of them."""
    if ids:
        state.book.forget(ids, pages=without_pages)
        state.urls.again(ids, LAST_FRONT)


def reindex(state: State, ids: Sequence[int]) -> None:
    """The index looks again at those of which a page is kept; a few hundred at a time, as rows are larger than ids."""
    pieces = (ids[at : at + AT_ONCE] for at in range(0, len(ids), AT_ONCE))
    state.book.tell_index_of([id_ for piece in pieces for id_ in state.book.copies(piece)])


OF_DOMAINS = frozenset({"block", "raise", "lower"})


def blocked_domains(state: State) -> frozenset[str]:
    """The domains of which nothing is fetched."""
    return frozenset(row.value for row in state.book.search_rules() if row.kind == "block")


def rules_changed(rules: Iterable[Rule], state: State) -> None:
    """These rules are new, or hold no more: whatever they speak of is looked at again."""
    said = Concealed.of((rule.kind, rule.value) for rule in rules)
    if said.domains:
        _release(state)
    if said.domains or said.urls or said.prefixes:
        partitions = _partitions(said, state)
        reindex(state, [id_ for one in partitions for id_, url in state.book.urls_of(one) if said.why(url)])


def _partitions(said: Concealed, state: State) -> Sequence[int]:
    """Where URLs lie that the rules speak of; a domain may stand above many registered ones."""
    hosts = [origin_of(url).host for url in (*sorted(said.urls), *said.prefixes)]
    if said.domains:
        hosts += [name for (name,) in state.db.execute("SELECT name FROM host") if lies_in(name, said.domains)]
    return sorted(dict.fromkeys(map(partition_of, hosts)))


def _release(state: State) -> None:
    """URLs that were refused because of a block which holds no more wait again."""
    blocked = blocked_domains(state)
    refused = StateView(state.db).urls_refused(Refusal.BLOCKED)
    wait_again(state, [id_ for id_, url in refused if not lies_in(origin_of(url).host, blocked)])
