"""Recheck URLs after a change of rules: reindex affected pages, and requeue URLs that are no longer blocked."""

from collections.abc import Iterable, Sequence

from vedette.adapters.crawl_store.data_folder import State
from vedette.adapters.crawl_store.reader import StateReader
from vedette.engine.search.hidden import HiddenRules, is_in_domains
from vedette.model import Refusal, origin_of, partition_of
from vedette.web.commands.commands import Rule

LAST_FRONT = 7
BATCH_SIZE = 500


def requeue_urls(state: State, ids: Sequence[int], *, without_pages: bool = False) -> None:
    """Requeue URLs at the end of the queue for a recheck, and drop their notes and, if wanted, their pages."""
    if ids:
        state.store.delete_url_data(ids, pages=without_pages)
        state.urls.requeue(ids, LAST_FRONT)


def reindex_pages(state: State, ids: Sequence[int]) -> None:
    """Enqueue those of the URLs that have a stored page for indexing again, in batches.

    A batch has a few hundred ids, as rows are larger than ids.
    """
    pieces = (ids[at : at + BATCH_SIZE] for at in range(0, len(ids), BATCH_SIZE))
    state.store.enqueue_page_ids([id_ for piece in pieces for id_ in state.store.get_pages(piece)])


DOMAIN_RULES = frozenset({"block", "raise", "lower"})


def load_blocked_domains(state: State) -> frozenset[str]:
    """Return the domains that a rule blocks from being fetched."""
    return frozenset(row.value for row in state.store.list_search_rules() if row.kind == "block")


def apply_rule_change(rules: Iterable[Rule], state: State) -> None:
    """Recheck the URLs that added or removed search rules affect: requeue unblocked ones, reindex pages."""
    said = HiddenRules.from_rules((rule.kind, rule.value) for rule in rules)
    if said.domains:
        _requeue_unblocked(state)
    if said.domains or said.urls or said.prefixes:
        partitions = _find_partitions(said, state)
        reindex_pages(
            state,
            [id_ for one in partitions for id_, url in state.store.iter_partition_urls(one) if said.get_reason(url)],
        )


def _find_partitions(said: HiddenRules, state: State) -> Sequence[int]:
    """Find the partitions with URLs that changed rules affect; a domain may contain many registered ones."""
    hosts = [origin_of(url).host for url in (*sorted(said.urls), *said.prefixes)]
    if said.domains:
        hosts += [name for (name,) in state.db.execute("SELECT name FROM host") if is_in_domains(name, said.domains)]
    return sorted(dict.fromkeys(map(partition_of, hosts)))


def _requeue_unblocked(state: State) -> None:
    """Requeue URLs that were refused because of a domain block that was removed."""
    blocked = load_blocked_domains(state)
    refused = StateReader(state.db).list_refused(Refusal.BLOCKED)
    requeue_urls(state, [id_ for id_, url in refused if not is_in_domains(origin_of(url).host, blocked)])
