"""Execute commands on remote observers in the state; each returns the commands that undo it."""

from vedette.adapters.crawl_store.data_folder import State
from vedette.adapters.observers.registry import ObservedHostRow, ObserverRegistry, ObserverRow, create_observer_tables
from vedette.errors import UsageError
from vedette.suggest import did_you_mean
from vedette.web.commands.commands import AddObserver, AssignHosts, Command, RevokeObserver

ObserverCommand = AddObserver | RevokeObserver | AssignHosts


def revoke_observer(registry: ObserverRegistry, row: ObserverRow, now_s: float, why: str) -> list[str]:
    """Revoke an observer; its hosts return to home immediately. Return them."""
    registry.save_observer(row._replace(revoked_s=now_s, why=why))
    return registry.drop_hosts(row.name)


def execute_observer_command(order: ObserverCommand, state: State, now_s: float) -> tuple[str, tuple[Command, ...]]:
    """Execute a command on observers in the state; return what was done, and the commands that undo it."""
    create_observer_tables(state.db)
    registry = ObserverRegistry(state.db)
    if isinstance(order, AddObserver):
        return _add_observer(order, registry, state, now_s)
    if isinstance(order, RevokeObserver):
        row = _find(order.name, registry)
        hosts = revoke_observer(registry, row, now_s, order.why or "manually")
        freed = f"; home now fetches from {', '.join(hosts[:5])}{' and others' * (len(hosts) > 5)}" if hosts else ""
        return f'revoked observer "{order.name}"{freed}', ()
    return _assign_hosts(order, registry, now_s)


def _add_observer(
    order: AddObserver, registry: ObserverRegistry, state: State, now_s: float
) -> tuple[str, tuple[Command, ...]]:
    rows = {row.name: row for row in registry.list_observers()}
    old = rows.get(order.name)
    if old is not None and old.revoked_s is None:
        raise UsageError(f'an observer named "{order.name}" already exists: revoke it first, or choose another name')
    starts = {row.site.start for row in state.store.list_sites() if row.site.secrets}
    for site in order.secret_sites:
        if site not in starts:
            raise UsageError(f"{site} has no credentials; {did_you_mean(site, starts, 'see vedette sites list')}")
    generation = old.generation + 1 if old else 1
    registry.save_observer(ObserverRow(order.name, generation, order.secret_sites, now_s, is_auto=order.is_auto))
    return f'added observer "{order.name}"', (RevokeObserver(order.name),)


def _assign_hosts(order: AssignHosts, registry: ObserverRegistry, now_s: float) -> tuple[str, tuple[Command, ...]]:
    if order.observer:
        _find(order.observer, registry)
    before: dict[str, ObservedHostRow] = {row.host: row for row in registry.list_hosts()}
    if not order.observer and not registry.list_observers():
        raise UsageError("there is no observer: home fetches from all hosts; to add one: vedette observers add NAME")
    hosts = order.hosts
    registry.assign(hosts, order.observer, now_s, "assigned manually", by_hand=True)
    back: dict[str, list[str]] = {}
    for host in hosts:
        back.setdefault(before[host].observer if host in before else "", []).append(host)
    undo = tuple(AssignHosts(tuple(names), observer) for observer, names in back.items())
    whom = f'observer "{order.observer}"' if order.observer else "home"
    return f"assigned {', '.join(hosts[:5])}{' and others' * (len(hosts) > 5)} to {whom}", undo


def _find(name: str, registry: ObserverRegistry) -> ObserverRow:
    row = registry.find_observer(name)
    if row is None:
        known = [each.name for each in registry.list_observers() if each.revoked_s is None]
        advice = did_you_mean(name, known, 'for a list, run "vedette observers list"', show='"{}"')
        raise UsageError(f'there is no observer "{name}"; {advice}')
    return row
