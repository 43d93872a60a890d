"""Requeue URLs: those affected by a rule change, and failed ones that the operator wants to retry."""

from collections import Counter
from collections.abc import Iterable, Sequence

from vedette.adapters.crawl_store.data_folder import State
from vedette.adapters.crawl_store.reader import StateReader
from vedette.discover.urls.normalize import normalize
from vedette.discover.urls.scope import SiteIndex, check_scope
from vedette.engine.search.hidden import HiddenRules, is_in_domains
from vedette.errors import UsageError
from vedette.model import Failure, Refusal, origin_of, partition_of
from vedette.web.commands.commands import Command, RetryFailed, Rule

LAST_FRONT = 7
BATCH_SIZE = 500
NOTHING_FAILED = "nothing to retry: no URL has failed"


def requeue_urls(state: State, ids: Sequence[int], *, without_pages: bool = False) -> None:
    """Requeue URLs at the end of the queue for a recheck, and drop their notes and optionally their pages."""
    if ids:
        state.store.delete_url_data(ids, pages=without_pages)
        state.urls.requeue(ids, LAST_FRONT)


def reindex_pages(state: State, ids: Sequence[int]) -> None:
    """Enqueue those of the URLs that have a stored page for indexing again, in batches.

    A batch has a few hundred ids, since rows are larger than ids.
    """
    pieces = (ids[at : at + BATCH_SIZE] for at in range(0, len(ids), BATCH_SIZE))
    state.store.enqueue_page_ids([id_ for piece in pieces for id_ in state.store.get_pages(piece)])


DOMAIN_RULES = frozenset({"block", "raise", "lower"})


def load_blocked_domains(state: State) -> frozenset[str]:
    """Return the domains that a rule blocks from being fetched."""
    return frozenset(row.value for row in state.store.list_search_rules() if row.kind == "block")


def apply_rule_change(rules: Iterable[Rule], state: State) -> None:
    """Recheck the URLs that added or removed search rules affect: requeue unblocked ones, reindex pages."""
    hidden = HiddenRules.from_rules((rule.kind, rule.value) for rule in rules)
    if hidden.domains:
        _requeue_unblocked(state)
    if hidden.domains or hidden.urls or hidden.prefixes:
        partitions = _find_partitions(hidden, state)
        reindex_pages(
            state,
            [id_ for one in partitions for id_, url in state.store.iter_partition_urls(one) if hidden.get_reason(url)],
        )


def _find_partitions(hidden: HiddenRules, state: State) -> Sequence[int]:
    """Find the partitions with URLs that changed rules affect; a domain may contain many registered ones."""
    hosts = [origin_of(url).host for url in (*sorted(hidden.urls), *hidden.prefixes)]
    if hidden.domains:
        hosts += [name for (name,) in state.db.execute("SELECT name FROM host") if is_in_domains(name, hidden.domains)]
    return sorted(dict.fromkeys(map(partition_of, hosts)))


def requeue_refused_addresses(state: State) -> None:
    """Requeue URLs whose host has an address that was not allowed, since a contact allows public ones."""
    requeue_urls(state, [id_ for id_, _ in StateReader(state.db).list_refused(Failure.ADDRESS)])


def _requeue_unblocked(state: State) -> None:
    """Requeue URLs that were refused because of a domain block that was removed."""
    blocked = load_blocked_domains(state)
    refused = StateReader(state.db).list_refused(Refusal.BLOCKED)
    requeue_urls(state, [id_ for id_, url in refused if not is_in_domains(origin_of(url).host, blocked)])


def retry_failed(command: RetryFailed, state: State, _now_s: float) -> tuple[str, tuple[Command, ...]]:
    """Requeue failed URLs as if they had never been tried; return how many, in words. It cannot be undone."""
    failed = [(id_, url, why) for id_, url, why in _list_failed(state, command.target) if command.why in {"", why}]
    ids = [id_ for id_, _, _ in failed]
    state.store.delete_failures(ids)
    requeue_urls(state, ids)
    if not ids:
        return NOTHING_FAILED, ()
    reasons = Counter(why for _, _, why in failed).most_common(3)
    hosts = len({origin_of(url).host for _, url, _ in failed})
    urls = f"{len(ids)} failed URL{'' if len(ids) == 1 else 's'}"
    where = "" if hosts == 1 else f" on {hosts} hosts"
    return f"{urls}{where} queued again ({', '.join(f'{count} x {why}' for why, count in reasons)})", ()


def _list_failed(state: State, target: str) -> list[tuple[int, str, str]]:
    """List the failed URLs that a target selects: a site by its start, a URL as its site spells it, or all."""
    failed = StateReader(state.db).list_failed()
    if not target:
        return failed
    sites = [row.site for row in state.store.list_sites()]
    site = next((one for one in sites if one.start == target), None)
    if site is not None:
        return [row for row in failed if check_scope(row[1], site) is None]
    own = SiteIndex(sites).find_site(target)
    if own is None:
        raise UsageError(f'{target} does not belong to any site in this folder; for a list, run "vedette sites list"')
    known_as = normalize(target, own)
    found = [row for row in failed if row[1] == known_as]
    if not found:
        raise UsageError(f'{target} has not failed; for details, run "vedette explain {target}"')
    return found
