"""Hot modules may be compiled without any other difference, and an edit never silently has no effect."""

import importlib
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from vedette import compiled

ROOT = Path(__file__).parents[1]


SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
HOT: list[str] = SETTINGS["tool"]["vedette"]["compiled"]
SOURCES = [f"{name.replace('.', '/')}.py" for name in HOT]


def write_stamp(folder: Path, monkeypatch: pytest.MonkeyPatch, python: str) -> Path:
    """Pretend that a module of a package was compiled; return its source."""
    source = folder / "hot.py"
    source.write_text("x = 1\n", encoding="utf-8")
    (folder / "compiled.txt").write_text(f"python {python}\nhot.py {compiled.checksum(source)}\n", encoding="utf-8")
    monkeypatch.setattr(compiled, "PACKAGE", folder)
    monkeypatch.setattr(compiled, "STAMP", folder / "compiled.txt")
    return source


def test_the_form_is_that_of_the_imported_modules() -> None:
    """Either all hot modules are compiled or none; the output of ``vedette --version`` is correct."""
    files = [str(importlib.import_module(f"vedette.{name}").__file__) for name in HOT]
    assert [file.endswith(".so") for file in files] == [compiled.is_compiled()] * len(files)
    assert compiled.find_edited() == []


def test_an_edited_source_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The warning has the file and what to do; before the edit, there is none."""
    source = write_stamp(tmp_path, monkeypatch, str(sys.implementation.cache_tag))
    compiled.warn_if_edited()
    source.write_text("x = 2\n", encoding="utf-8")
    with pytest.warns(RuntimeWarning, match=re.escape("hot.py; run make setup")):
        compiled.warn_if_edited()


def test_modules_for_another_interpreter_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this case, the interpreter imports the sources, so edits have an effect."""
    write_stamp(tmp_path, monkeypatch, "cpython-27").write_text("x = 2\n", encoding="utf-8")
    assert not compiled.is_compiled()
    compiled.warn_if_edited()


def test_an_interrupted_compilation_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of the modules may have been compiled."""
    write_stamp(tmp_path, monkeypatch, "unfinished")
    with pytest.warns(RuntimeWarning, match="run make setup"):
        compiled.warn_if_edited()


@pytest.mark.parametrize("setting", [{"VEDETTE_COMPILE": "0"}, {"CC": "no-such-compiler"}], ids=["off", "no compiler"])
def test_what_cannot_be_compiled_again_is_removed(tmp_path: Path, setting: dict[str, str]) -> None:
    """Otherwise, an old compiled module would hide the newer source."""
    for name in ("hatch_build.py", "pyproject.toml", *(f"src/vedette/{path}" for path in SOURCES)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    old = [tmp_path / "src/vedette/compiled.txt", tmp_path / "src/vedette/hot.so"]
    for file in old:
        file.write_text("old", encoding="utf-8")
    command = [sys.executable, str(tmp_path / "hatch_build.py")]
    done = subprocess.run(command, env=os.environ | setting, capture_output=True, text=True, check=True)
    assert not any(file.exists() for file in old)
    assert ("install a C compiler" in done.stderr) == ("CC" in setting)


def test_without_a_stamp_it_runs_interpreted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This is not an error, and needs no compiler."""
    monkeypatch.setattr(compiled, "STAMP", tmp_path / "compiled.txt")
    assert not compiled.is_compiled()
    assert compiled.find_edited() == []
