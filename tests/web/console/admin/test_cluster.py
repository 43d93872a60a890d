"""The console's Cluster page: machines, shards, and those without an owner."""

from tests.web.small_operator import signed_in

from vedette.web.console.ports.cluster import ClusterStatus, MachineLine, ShardLine


class Cluster:
    """Two machines, and a shard without an owner."""

    def load_cluster(self) -> ClusterStatus:
        """Return the test's value."""
        machines = (MachineLine("north", 1.2, "10.0.0.5:8080", 1, 4321, 2.5), MachineLine("<south>", 3.4, "", 0, 0))
        return ClusterStatus(
            machines,
            (
                ShardLine(0, "0 to 511", "north", 3, 12.5, 4321, 9876, 5432, 0, 2.5),
                ShardLine(1, "512 to 1023", "", 2, 0.0, 1234, 2345, 3456, 7),
            ),
            has_storage=True,
        )


def test_machines_shards_and_losses_are_shown() -> None:
    """The page says which shard has no owner and what to do, and what would be lost with each machine."""
    page = signed_in(cluster=Cluster()).client.get("/console/cluster").text
    assert "Shard with no owner: 1" in page
    assert "vedette cluster join" in page
    assert "4,321 pages would be unsearchable" in page.replace("\u202f", ",").replace("\u00a0", ",")
    assert "the last 2.5 s of its crawl would be repeated" in page.replace("\u202f", " ").replace("\u00a0", " ")
    assert "&lt;south&gt;" in page


def test_only_a_cluster_has_the_page() -> None:
    """A cluster's navigation has no Push page, and a single machine's has no Cluster page.

    Every page mentions a missing shard.
    """
    gap = "Shard 1 did not respond"
    page = signed_in(cluster=Cluster(), get_gap=lambda: gap).client.get("/console/sites").text
    assert "/console/push" not in page
    assert "/console/queue" in page
    assert gap in page
    alone = signed_in().client
    assert "/console/cluster" not in alone.get("/console/sites").text
    assert alone.get("/console/cluster").status_code == 404
