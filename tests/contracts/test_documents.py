"""The docs match the code: they cover every folder, command, option, setting and policy, and only name what exists."""

import argparse
import ast
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from vedette import config
from vedette.cli.main import build_parser

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "vedette"

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_INDENTED = re.compile(r"^ {4}.*$", re.MULTILINE)
_COMMAND = re.compile(r"^\s*(?:\$ )?(make|vedette) +(.+)$", re.MULTILINE)
_TARGET = re.compile(r"^([a-z][a-z-]*%?):", re.MULTILINE)
_HOME = re.compile(r"(?<![\w./-])/(?:home|root|work|Users)/[\w.]")


def text_of(name: str) -> str:
    """Return a document of the repository."""
    return (ROOT / name).read_text(encoding="utf-8")


def documents() -> list[Path]:
    """List every document: at the root, under docs, and next to the code."""
    places = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *SOURCE.rglob("*.md")]
    return sorted(places)


def folders() -> list[str]:
    """List the folders of the package that contain code."""
    return sorted(entry.name for entry in SOURCE.iterdir() if entry.is_dir() and any(entry.glob("*.py")))


def tracked() -> list[Path]:
    """List the files in the repository."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("this is not a git work tree, so nothing says which files belong to it")
    listed = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def targets() -> frozenset[str]:
    """List the targets of the Makefile; one with ``%`` matches many."""
    return frozenset(_TARGET.findall(text_of("Makefile")))


def verbs(parser: argparse.ArgumentParser, name: str = "vedette") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """List every command and subcommand with its parser."""
    yield name, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, inner in action.choices.items():
                yield from verbs(inner, f"{name} {word}")


VERBS = tuple(verbs(build_parser()))
SETTINGS = tuple(name for name, _, _ in config.describe())
PLACES = (*SOURCE.glob("*/policies/*.py"), *(SOURCE / "lab" / "baselines").glob("[dor]*/*.py"))
POLICIES = tuple(path for path in sorted(PLACES) if path.name != "__init__.py")


@pytest.mark.parametrize("name", ["docs/glossary.md", "docs/references.md", "docs/cli.md", "docs/configuration.md"])
def test_the_document_is_there(name: str) -> None:
    """Glossary, references, commands and settings each have a page with content."""
    assert len(text_of(name)) > 200


def test_every_folder_has_its_section() -> None:
    """ARCHITECTURE.md says for each folder which question it answers."""
    headings = "\n".join(line for line in text_of("ARCHITECTURE.md").splitlines() if line.startswith("#"))
    assert [name for name in folders() if not re.search(rf"`{name}`.*\?$", headings, re.MULTILINE)] == []


def test_every_verb_and_option_is_described() -> None:
    """docs/cli.md has a section for each command, with all of its options and arguments."""
    text = text_of("docs/cli.md")
    missing = [(verb, word) for verb, parser in VERBS for word in _missing_words(parser, _section(text, verb))]
    assert missing == []


def _missing_words(parser: argparse.ArgumentParser, section: str) -> list[str]:
    options = [option for action in parser._actions for option in action.option_strings if option.startswith("--")]
    return [
        *(option for option in options if option != "--help" and not re.search(rf"{option}\b", section)),
        *(word for word in _arguments(parser) if word not in section),
    ]


def _arguments(parser: argparse.ArgumentParser) -> list[str]:
    plain = [a for a in parser._actions if not a.option_strings and not isinstance(a, argparse._SubParsersAction)]
    return [action.metavar if isinstance(action.metavar, str) else action.dest for action in plain]


def _section(text: str, verb: str) -> str:
    """Return the text under a command's heading; text before all headings belongs to the program itself."""
    opening, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    if verb == "vedette":
        return opening
    found = [section for section in sections if re.match(rf"`?{verb}\b", section)]
    assert found, f"docs/cli.md has no section for {verb}"
    return "\n".join(found)


def test_every_setting_is_described() -> None:
    """docs/configuration.md names each key with its section."""
    text = text_of("docs/configuration.md")
    assert [name for name in SETTINGS if f"`{name}`" not in text] == []


def test_every_policy_is_in_its_stages_readme() -> None:
    """A stage's README lists each policy with a link, and says whether it is live, a baseline or a bound."""
    assert [path for path in POLICIES if not re.search(r"\b(live|baseline|bound)\b", _readme_row(path))] == []


def _readme_row(path: Path) -> str:
    readme = (path.parents[1] / "README.md").read_text(encoding="utf-8")
    return next((line for line in readme.splitlines() if f"({path.parent.name}/{path.name})" in line), "")


def test_every_module_says_why_it_is_there() -> None:
    """A module starts with a docstring, unless it is empty."""
    modules = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))}
    assert [path for path, module in modules.items() if module.body and not ast.get_docstring(module)] == []


def test_links_lead_somewhere() -> None:
    """Every link to a file of the repository works."""
    assert [(path, place) for path in documents() for place in _linked_places(path) if not place.exists()] == []


def _linked_places(path: Path) -> list[Path]:
    prose = _FENCE.sub("", path.read_text(encoding="utf-8"))
    places = [link.partition("#")[0] for link in _LINK.findall(prose) if not re.match(r"[a-z]+:", link)]
    return [path.parent / place for place in places if place]


def test_commands_in_documents_exist() -> None:
    """Every documented command is a target of the Makefile or known to the parser."""
    names = frozenset(name for name, _ in VERBS)
    typed = [(path, program, rest) for path in documents() for program, rest in _COMMAND.findall(_blocks(path))]
    assert [command for command in typed if not _exists(*command[1:], names)] == []


def _blocks(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    return "\n".join(_FENCE.findall(text) + _INDENTED.findall(text))


def _exists(program: str, rest: str, names: frozenset[str]) -> bool:
    words = rest.partition("#")[0].split()
    if program == "make":
        wanted = [word for word in words if "=" not in word and re.fullmatch(r"[a-z-]+", word)]
        return bool(wanted) and all(word in targets() or _fits(word) for word in wanted[:1])
    return words[0].startswith("--") or f"vedette {words[0]}" in names


def _fits(word: str) -> bool:
    return any(target.endswith("%") and word.startswith(target[:-1]) for target in targets())


def test_the_readme_is_short_and_its_badges_are_true() -> None:
    """At most 90 lines; the badges name the Python versions and the license of the package."""
    readme, package = text_of("README.md"), text_of("pyproject.toml")
    assert len(readme.splitlines()) <= 90
    versions = re.findall(r"Programming Language :: Python :: (3\.\d+)", package)
    assert f"{versions[0]} to {versions[-1]}" in text_of("docs/images/badge-python.svg")
    assert re.findall(r'^license = "([^"]+)"', package, re.MULTILINE)[0].replace("-", " ") in text_of(
        "docs/images/badge-license.svg"
    )


def test_the_two_commands_of_the_readme_are_targets() -> None:
    """``make demo`` and ``make test`` are what a newcomer types first."""
    readme = text_of("README.md")
    assert {"demo", "test"} <= targets()
    assert "make demo" in readme
    assert "make test" in readme


def test_make_help_names_targets_that_exist() -> None:
    """Each line of ``make help`` starts with a target, and every described target is listed."""
    make = shutil.which("make")
    if make is None:
        pytest.skip("make is not installed")
    shown = subprocess.run([make, "--no-print-directory", "help"], cwd=ROOT, capture_output=True, check=True)
    listed = [line.split()[0] for line in shown.stdout.decode().splitlines() if line.strip()]
    assert [name for name in listed if name not in targets() and not _fits(name)] == []
    assert "test" in listed
    benches = {f"bench-{path.stem}" for path in (ROOT / "bench").glob("*.py")}
    assert benches <= set(listed)


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock", "requirements-tools.lock"])
def test_lock_files_pin_by_hash_and_name_no_index(name: str) -> None:
    """Everyone installs the same files, from whatever index they use."""
    lock = text_of(name)
    assert not re.search(r"^\s*--(?!hash=)|://", lock, re.MULTILINE)
    pinned = re.findall(r"^([a-z0-9._-]+)==", lock, re.MULTILINE)
    assert len(pinned) >= 8
    assert lock.count("--hash=sha256:") >= len(pinned)


def test_no_file_knows_where_somebody_works() -> None:
    """No file of the repository contains a path of a home or work folder."""
    found = [str(path.relative_to(ROOT)) for path in tracked() if _HOME.search(_readable(path))]
    assert found == []


def _readable(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "ignore")


def test_a_path_of_a_home_folder_would_be_found() -> None:
    """The search finds what it should, and ignores web addresses."""
    assert all(_HOME.search(f"see {'/'}{place}/x") for place in ("home", "root", "work", "Users"))
    assert not _HOME.search("https://example.org/work/1 and work/2")
