"""Dependencies are pinned and checked for known vulnerabilities, and releases are made with few rights."""

import re
from pathlib import Path

import pytest
import yaml
from tools.audit import LOCKS, find_advisories, list_pinned, load_file

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("lock", LOCKS)
def test_no_pinned_version_has_a_known_vulnerability(lock: str) -> None:
    """The versions of the lock files are affected by no advisory of the file, except those accepted with a reason."""
    accepted = load_file()["accepted"]
    pinned = list_pinned(lock)
    assert len(pinned) > 20
    found = {f"{name} {version}": each["id"] for name, version in pinned for each in find_advisories(name, version)}
    assert {name: id_ for name, id_ in found.items() if id_ not in accepted} == {}


def test_advisories_are_about_what_we_use() -> None:
    """Each one is for a pinned package, and accepted ones are in the list, with a reason."""
    file = load_file()
    used = {name for lock in LOCKS for name, _ in list_pinned(lock)}
    assert {affected["package"]["name"] for each in file["advisories"] for affected in each["affected"]} <= used
    ids = [each["id"] for each in file["advisories"]]
    assert len(set(ids)) == len(ids)
    assert set(file["accepted"]) <= set(ids)
    assert all(len(reason) > 20 for reason in file["accepted"].values())


@pytest.mark.parametrize(
    ("name", "version", "id_"),
    [
        ("jinja2", "3.1.5", "CVE-2025-27516"),
        ("starlette", "0.49.0", "CVE-2025-62727"),
        ("mcp", "1.27.1", "GHSA-jpw9-pfvf-9f58"),
        ("cryptography", "48.0.0", "GHSA-537c-gmf6-5ccf"),
    ],
)
def test_a_vulnerable_version_is_found(name: str, version: str, id_: str) -> None:
    """The last version before a fix is affected."""
    assert id_ in {each["id"] for each in find_advisories(name, version)}


@pytest.mark.parametrize(
    ("name", "version", "id_"),
    [
        ("jinja2", "3.1.6", "CVE-2025-27516"),
        ("starlette", "0.38.6", "CVE-2025-62727"),
        ("mcp", "1.27.2", "GHSA-jpw9-pfvf-9f58"),
        ("markupsafe", "1.0", "CVE-2025-27516"),
    ],
)
def test_another_version_is_not(name: str, version: str, id_: str) -> None:
    """Neither the fixed version, nor one from before the flaw, nor another package."""
    assert id_ not in {each["id"] for each in find_advisories(name, version)}


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_workflows_have_few_rights(file: Path) -> None:
    """They can only read by default, each job lists what it needs, and no script contains input from strangers."""
    workflow = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    assert "pull_request_target" not in workflow[True]  # YAML reads the key "on" as a boolean
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"]
        rights = job.get("permissions", {})
        assert set(rights) <= {"contents", "id-token", "attestations"}
        for step in job["steps"]:
            assert "${{ github.event" not in step.get("run", "")
            assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|[0-9a-f]{40})", step.get("uses", "a/b@v1"))


def test_a_release_is_audited_built_twice_and_signed() -> None:
    """The steps of docs/releasing.md are the steps of the workflow, in this order."""
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    steps = ["make test", "make audit ONLINE=1", "make dist", "make sbom", "attest-build-provenance", "gh release"]
    places = [text.index(step) for step in steps]
    assert places == sorted(places)
    page = (ROOT / "docs" / "releasing.md").read_text(encoding="utf-8")
    assert all(step in page for step in ("make audit", "make dist", "make sbom", "gh attestation verify", "minisign"))
