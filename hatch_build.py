"""Compile the hot modules with mypyc: into wheels, as a hook of hatchling, and in place, for development.

Both are optional: the same files run interpreted. ``pyproject.toml`` lists the modules.

    VEDETTE_COMPILE=1 pip wheel --no-deps .    # a wheel for this platform; without the variable it is for all
    python hatch_build.py                      # in place, unless nothing changed; VEDETTE_COMPILE=0 removes it

Beside the compiled modules, ``vedette/compiled.txt`` has the checksum of each source, so that an edited source is
noticed (``vedette.compiled``).
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import zlib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent
SOURCE = ROOT / "src"
PACKAGE = SOURCE / "vedette"
STAMP = PACKAGE / "compiled.txt"
SUFFIX = str(sysconfig.get_config_var("EXT_SUFFIX"))
# The shared library of all modules, which are only a few lines each; mypyc adds the rest of its name.
LIBRARY = "vedette.hot"
# In a process of its own: mypyc reads its options from the command line and leaves files where it runs.
BUILD = """
import sys
from setuptools import Distribution
from mypyc.build import mypycify
library, out, *paths = sys.argv[1:]
extensions = mypycify(paths, group_name=library, target_dir=out + "/c", debug_level="0")
command = Distribution({"name": "vedette", "ext_modules": extensions}).get_command_obj("build_ext")
command.build_lib, command.build_temp = out + "/lib", out + "/o"
command.ensure_finalized()
command.run()
"""


def list_sources() -> list[str]:
    """Return the paths of the hot modules in the package."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return [f"{name.replace('.', '/')}.py" for name in settings["tool"]["vedette"]["compiled"]]


def can_compile() -> bool:
    """Check whether there are a C compiler, the headers of Python, and setuptools."""
    compiler = os.environ.get("CC") or (sysconfig.get_config_var("CC") or "cc").split()[0]
    has_headers = Path(sysconfig.get_paths()["include"], "Python.h").is_file()
    return bool(shutil.which(compiler)) and has_headers and bool(importlib.util.find_spec("setuptools"))


def build_stamp() -> str:
    """Build the stamp: the interpreter, and the checksum of each source."""
    sums = {path: f"{zlib.crc32((PACKAGE / path).read_bytes()):08x}" for path in list_sources()}
    return "".join(f"{name} {value}\n" for name, value in {"python": sys.implementation.cache_tag, **sums}.items())


def compile_modules(out: Path) -> dict[Path, str]:
    """Compile into a folder; return the libraries by where each belongs below ``src``."""
    paths = [f"src/vedette/{path}" for path in list_sources()]
    command = [sys.executable, "-c", BUILD, LIBRARY, str(out), *paths]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - our own command
    if done.returncode:
        raise SystemExit(f"{done.stdout}{done.stderr}\nCompiling failed. VEDETTE_COMPILE=0 leaves it out.")
    return {file: file.relative_to(out / "lib").as_posix() for file in sorted((out / "lib").rglob(f"*{SUFFIX}"))}


def remove_compiled() -> None:
    """Remove what was compiled in place."""
    for file in PACKAGE.rglob("*.so"):
        file.unlink()
    STAMP.unlink(missing_ok=True)


def compile_in_place() -> str:
    """Compile beside the sources if they changed, or remove what is out of date; return a message."""
    is_wanted = os.environ.get("VEDETTE_COMPILE") != "0"
    stamp = build_stamp()
    if is_wanted and STAMP.is_file() and STAMP.read_text(encoding="utf-8") == stamp:
        return ""
    remove_compiled()
    if not is_wanted or not importlib.util.find_spec("mypyc"):  # an environment to run in has no mypyc
        return ""
    if not can_compile():
        return "Vedette runs interpreted: to compile it, install a C compiler and python3-dev, and run make setup."
    sys.stderr.write("Compiling hot modules (when they change; under two minutes; VEDETTE_COMPILE=0 leaves it out)\n")
    with tempfile.TemporaryDirectory() as folder:
        built = compile_modules(Path(folder))
        # If this ends halfway, every command says so, and the next run starts over.
        STAMP.write_text("python unfinished\n", encoding="utf-8")
        for file, place in built.items():
            shutil.copy(file, SOURCE / place)
    STAMP.write_text(stamp, encoding="utf-8")
    return ""


class CompileHook(BuildHookInterface[Any]):
    """Add the compiled modules to a wheel if ``VEDETTE_COMPILE`` is 1."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Return what compiling needs: mypyc, and the types of everything that the modules import."""
        return ["mypy[mypyc]>=2.4", *self.metadata.core.dependencies] if self._is_wanted() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and say that the wheel is for this platform and Python alone."""
        if version == "editable" or not self._is_wanted():
            return
        out = Path(self.directory) / "compiled"
        shutil.rmtree(out, ignore_errors=True)
        built = compile_modules(out)
        stamp = out / STAMP.name
        stamp.write_text(build_stamp(), encoding="utf-8")
        places = {**built, stamp: STAMP.relative_to(SOURCE).as_posix()}
        build_data["force_include"].update({str(file): place for file, place in places.items()})
        build_data["pure_python"], build_data["infer_tag"] = False, True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 - the shape of a hook
        """Remove what is in the wheel now."""
        shutil.rmtree(Path(self.directory) / "compiled", ignore_errors=True)

    def _is_wanted(self) -> bool:
        return self.target_name == "wheel" and os.environ.get("VEDETTE_COMPILE") == "1"


if __name__ == "__main__":
    message = compile_in_place()
    if message:
        sys.stderr.write(f"{message}\n")
