"""The console's page Rules."""

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
def test_rules_that_cannot_be_meant_are_told_beside_their_field(form: dict[str, str], field: str) -> None:
    """And what was typed is kept."""
    console = signed_in()
    answer = console.post("/console/results/add", **form)
    assert answer.status_code == 422
    assert f'id="{field}-wrong"' in answer.text
    assert console.operator.orders == []


def test_rules_are_added_as_searching_knows_them() -> None:
    """One of each kind."""
    console = signed_in()
    console.post("/console/results/add", kind="raise", domain="https://Good.example/x")
    console.post("/console/results/add", kind="synonym", query="K8s", value="Kubernetes")
    rules = [Rule("raise", "", "good.example"), Rule("synonym", "k8s", "kubernetes")]
    assert console.operator.orders == [AddRules((rule,)) for rule in rules]
