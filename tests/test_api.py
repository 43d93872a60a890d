"""The public Python API: fast to import, and with the same effects as the command line."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from tests.tree_runs import PATIENCE_S

import vedette
from vedette.errors import SiteError, UsageError
from vedette.model import Site

ROOT = Path(__file__).parents[1]
HEAVY = ("numpy", "tantivy", "starlette", "rich", "vedette.api", "vedette.config", "vedette.runtime", "vedette.lab")


def run_python(code: str, *arguments: str) -> str:
    """Run code in a fresh interpreter and return its output."""
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout


def test_importing_the_package_imports_nothing_heavy() -> None:
    """``import vedette`` is fast, and its names are still there."""
    code = "import sys, vedette; print(vedette.__version__, [name for name in sys.argv[1:] if name in sys.modules])"
    assert run_python(code, *HEAVY) == f"{vedette.__version__} []\n"
    assert set(vedette.__all__) <= set(dir(vedette))


def test_every_public_name_is_there() -> None:
    """Each name in ``__all__`` can be imported, and any other name is an ordinary error."""
    assert all(getattr(vedette, name) is not None for name in vedette.__all__)
    with pytest.raises(AttributeError, match="no attribute 'serach'"):
        vedette.serach  # type: ignore[attr-defined]  # noqa: B018 - that is the test


def test_what_is_below_uses_the_package_for_its_version_alone() -> None:
    """The import contract ignores the package's own lazy import, so nothing below may reach the API through it."""
    source = Path(vedette.__file__).parent
    for path in source.rglob("*.py"):
        if path.relative_to(source).parts[0] in {"cli", "__init__.py"}:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "vedette":
                names = {alias.name for alias in node.names}
                assert not names & (set(vedette.__all__) - {"__version__"}), f"{path} imports {names}"
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "vedette":
                assert node.attr.startswith("__"), f"{path} uses vedette.{node.attr}"


def test_sites_are_added_listed_and_removed(tmp_path: Path) -> None:
    """Settings are those of ``vedette sites``, wrong ones are reported, and nothing is created before it is needed."""
    folder = vedette.open_folder(tmp_path / "data")
    assert folder.sites() == []
    assert not folder.path.exists()
    site = folder.add_site("https://example.org/docs/", scope="prefix", delay="2s", exclude=["*.zip$"])
    assert site == Site("https://example.org/docs/", scope="prefix", delay_s=2.0, exclude=("*.zip$",))
    assert folder.sites() == [site]
    with pytest.raises(UsageError, match="did you mean"):
        folder.add_site("https://example.org/", dealy="2s")
    folder.remove_site("https://example.org/docs/")
    assert folder.sites() == []


def test_what_cannot_be_done_is_said(tmp_path: Path) -> None:
    """A folder without a crawl is not searched, one without sites is not crawled, and neither is created."""
    folder = vedette.open_folder(tmp_path / "none")
    with pytest.raises(UsageError, match="has no crawl yet"):
        folder.search("anything")
    with pytest.raises(SiteError, match="has no site to crawl"):
        folder.crawl()
    with pytest.raises(UsageError, match="--contact"):
        folder.crawl("https://8.8.8.8/")
    assert not folder.path.exists()


def test_a_configuration_names_the_folder(tmp_path: Path) -> None:
    """Without a path, the configured folder is used."""
    (tmp_path / "vedette.toml").write_text(f'[store]\ndata = "{tmp_path}/elsewhere"\n')
    assert vedette.open_folder(config=tmp_path / "vedette.toml").path == tmp_path / "elsewhere"


def test_policies_are_found_by_name_stage_and_place() -> None:
    """A name in several stages needs a stage; an unknown one gets a suggestion."""
    assert vedette.load_policy("vedette.refresh.policies.uniform:Uniform").name == "uniform"
    assert vedette.load_policy("random", "discover").name == "random"
    for wrong, words in (
        ("random", "pass one of these stages"),
        ("default", "pass one of these stages"),
        ("no_such:Thing", "no module"),
    ):
        with pytest.raises(UsageError, match=words):
            vedette.load_policy(wrong)
