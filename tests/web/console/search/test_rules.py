"""The console's Rules page."""

import pytest
from tests.web.small_operator import signed_in

from vedette.web.commands.commands import AddRules, Rule


@pytest.mark.parametrize(
    ("form", "field"),
    [
        ({"kind": "synonym", "query": "?", "value": "lag"}, "query"),
        ({"kind": "pin", "query": "lag", "value": "no url"}, "value"),
        ({"kind": "block", "domain": "nothing"}, "domain"),
        ({"kind": "conceal", "url": "not a url*"}, "url"),
    ],
)
def test_invalid_rules_are_reported_next_to_their_field(form: dict[str, str], field: str) -> None:
    """The input is kept."""
    console = signed_in()
    answer = console.post("/console/results/add", **form)
    assert answer.status_code == 422
    assert f'id="{field}-wrong"' in answer.text
    assert console.operator.orders == []


def test_all_kinds_of_rules_can_be_added() -> None:
    """One of each kind."""
    console = signed_in()
    console.post("/console/results/add", kind="raise", domain="https://Good.example/x")
    console.post("/console/results/add", kind="synonym", query="K8s", value="Kubernetes")
    rules = [Rule("raise", "", "good.example"), Rule("synonym", "k8s", "kubernetes")]
    assert console.operator.orders == [AddRules((rule,)) for rule in rules]
