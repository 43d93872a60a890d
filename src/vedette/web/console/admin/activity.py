"""The console's Actions page: the activity log of operator commands, and undoing one of them."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from vedette.errors import VedetteError
from vedette.web.commands.commands import Undo
from vedette.web.console.admin.guard import safe_redirect
from vedette.web.console.ports.sites import ActionLine
from vedette.web.console.ui.forms import parse_number
from vedette.web.console.ui.layout import ConsoleShell, read_form
from vedette.web.console.ui.tables import csv_response
from vedette.web.formatting import exact

ACTIONS_PER_PAGE: Final = 50
MAX_ACTIONS: Final = 10_000


@dataclass(frozen=True, slots=True)
class ActivityPage:
    """The console's activity log page, and the POST handler that undoes a logged action."""

    shell: ConsoleShell

    def show(self, request: Request) -> Response:
        """Show the activity log of operator actions, latest first, or export it as CSV."""
        if request.query_params.get("csv"):
            return _export_actions(self.shell.admin.list_actions(MAX_ACTIONS, None))
        before = parse_number(request.query_params.get("before", ""))
        lines = self.shell.admin.list_actions(ACTIONS_PER_PAGE + 1, before)
        more = f"/console/actions?{urlencode({'before': lines[-2].id})}" if len(lines) > ACTIONS_PER_PAGE else ""
        return self.shell.render_page(
            "actions.html",
            request,
            here="actions",
            title="Actions",
            lines=lines[:ACTIONS_PER_PAGE],
            more=more,
            is_first=before is None,
        )

    def undo(self, request: Request) -> Response:
        """Undo a logged operator action, then redirect back to the page it was requested from."""
        form = read_form(request)
        action, back = parse_number(form.get("action", "")), safe_redirect(form.get("back", ""))
        if action is None:
            return self._not_undone(request, "Choose an action to undo.", back)
        try:
            return self.shell.run_command(request, Undo(action), back)
        except VedetteError as error:
            return self._not_undone(request, str(error), back)

    def _not_undone(self, request: Request, message: str, back: str) -> Response:
        title = "Undo failed"
        return self.shell.render_page(
            "undone.html", request, here="actions", title=title, status=422, message=message, back=back
        )


def _export_actions(lines: list[ActionLine]) -> Response:
    rows = [[exact(line.at_s), line.what, line.by, exact(line.undone_s) if line.undone_s else ""] for line in lines]
    return csv_response("actions", ["Time", "Action", "By", "Undone"], rows)
