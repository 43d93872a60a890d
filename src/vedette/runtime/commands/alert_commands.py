"""Execute commands on alerts: add or remove an alert; each returns the commands that undo it."""

from vedette.adapters.crawl_store.data_folder import State
from vedette.errors import UsageError
from vedette.suggest import did_you_mean
from vedette.web.commands.commands import AddAlert, Command, RemoveAlert

# Each is evaluated for every batch of new pages.
MAX_ALERTS = 500

AlertCommand = AddAlert | RemoveAlert


def execute_alert_command(order: AlertCommand, state: State, now_s: float) -> tuple[str, tuple[Command, ...]]:
    """Execute a command on alerts in the state; return what was done, and the commands that undo it."""
    rows = {row.name: row for row in state.store.list_alerts()}
    if isinstance(order, AddAlert):
        watch = order.watch._replace(added_s=now_s)
        if watch.name in rows:
            raise UsageError(f'there is already a watch "{watch.name}": remove it first, or choose another name')
        if len(rows) >= MAX_ALERTS:
            raise UsageError(f"there are already {MAX_ALERTS} watches, the maximum: remove one first")
        state.store.add_alert(watch)
        return f'added the watch "{watch.name}"', (RemoveAlert(watch.name),)
    if order.name not in rows:
        advice = did_you_mean(order.name, rows, 'to list them: "vedette watch list"', show='"{}"', cutoff=0.75)
        raise UsageError(f'there is no watch "{order.name}"; {advice}')
    state.store.delete_alert(order.name)
    return f'removed the watch "{order.name}"', (AddAlert(rows[order.name]),)
