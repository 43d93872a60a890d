"""What the operator orders for those who watch: a watch more, or one less. Each tells the orders that take it back."""

from vedette.adapters.crawl_store.data_folder import State
from vedette.errors import UsageError
from vedette.suggest import did_you_mean
from vedette.web.commands.commands import AddWatch, Command, RemoveWatch

# Each is asked for every batch of new pages.
MAX_ALERTS = 500

AlertCommand = AddWatch | RemoveWatch


def execute_alert_command(order: AlertCommand, state: State, now_s: float) -> tuple[str, tuple[Command, ...]]:
    """Write it into the state; what was done, in one line, and the orders that take it back."""
    rows = {row.name: row for row in state.store.list_alerts()}
    if isinstance(order, AddWatch):
        watch = order.watch._replace(added_s=now_s)
        if watch.name in rows:
            raise UsageError(f'there is a watch "{watch.name}" already: remove it first, or take another name')
        if len(rows) >= MAX_ALERTS:
            raise UsageError(f"there are {MAX_ALERTS} watches, which is as many as can be: remove one first")
        state.store.add_alert(watch)
        return f'added the watch "{watch.name}"', (RemoveWatch(watch.name),)
    if order.name not in rows:
        advice = did_you_mean(order.name, rows, '"vedette watch list" shows them', show='"{}"', cutoff=0.75)
        raise UsageError(f'there is no watch "{order.name}"; {advice}')
    state.store.delete_alert(order.name)
    return f'removed the watch "{order.name}"', (AddWatch(rows[order.name]),)
