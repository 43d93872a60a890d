"""The console's Cluster page: machines, shards and their owners, delays, and what a failure would cost."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from vedette.web.console.ports.cluster import ClusterService
from vedette.web.console.ui.layout import ConsoleShell


@dataclass(frozen=True, slots=True)
class ClusterPage:
    """The console's Cluster page."""

    shell: ConsoleShell
    cluster: ClusterService

    def show(self, request: Request) -> Response:
        """Show machines and shards."""
        status = self.cluster.load_cluster()
        return self.shell.render_page(
            "cluster.html",
            request,
            here="cluster",
            title="Cluster",
            cluster=status,
            orphans=[shard.number for shard in status.shards if not shard.owner],
            waiting=sum(shard.waiting for shard in status.shards),
        )
