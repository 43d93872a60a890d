"""The commands in docs/deploying.md and its files are understood by our own parsers."""

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

from vedette import config
from vedette.cli.main import parse_arguments
from vedette.web.metrics import Metrics

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "deploying.md").read_text(encoding="utf-8")
IMAGE = (DOCS / "deploy" / "Containerfile").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load((DOCS / "deploy" / "compose.yaml").read_text(encoding="utf-8"))["services"]["vedette"]
UNITS = sorted((DOCS / "deploy").glob("*.service"))
PROGRAM = "/opt/vedette/bin/vedette"


def in_units() -> list[list[str]]:
    """The command lines of vedette in units; a shell around them is taken off."""
    lines = [line for unit in UNITS for line in unit.read_text(encoding="utf-8").splitlines()]
    started = [line.partition("=")[2] for line in lines if line.startswith("ExecStart=")]
    inner = [shlex.split(line)[-1] if line.startswith("/bin/sh -c") else line for line in started]
    return [shlex.split(line.removeprefix("exec ")) for line in inner]


def in_image() -> list[str]:
    """What a container runs."""
    parts = [re.findall(rf"^{word} (\[.*\])$", IMAGE, re.MULTILINE)[-1] for word in ("ENTRYPOINT", "CMD")]
    return [word for part in parts for word in json.loads(part)]


def in_compose() -> list[str]:
    """What the service of the compose file runs, with a value for each variable that it demands."""
    return ["vedette", *(re.sub(r"\$\{SITE:\?[^}]+\}", "https://example.org/", word) for word in COMPOSE["command"])]


def in_page() -> list[list[str]]:
    """What the page tells people to type, with the program's whole path."""
    return [shlex.split(line) for line in re.findall(rf"^sudo -u vedette ({PROGRAM} .*)$", PAGE, re.MULTILINE)]


@pytest.mark.parametrize("line", [*in_units(), in_image(), in_compose(), *in_page()], ids=" ".join)
def test_every_command_is_one(line: list[str]) -> None:
    """Verbs and options exist, and settings are read from where the page says that they are."""
    program, *words = line
    assert program in {PROGRAM, "vedette"}
    options = parse_arguments(words)
    named = {getattr(options, "config", None), getattr(options, "data", None)} - {None}
    assert all(str(place).startswith(("/etc/vedette/", "/var/lib/vedette/")) for place in named)
    assert named


def test_the_settings_are_understood() -> None:
    """Those that the page shows whole, those of the image, and each that is named in passing."""
    for text in re.findall(r"^```toml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE):
        config.parse(text, "docs/deploying.md")
    known = {name for name, _, _ in config.describe()}
    assert set(re.findall(r"`((?:crawl|store|serve)\.[a-z_]+)", PAGE)) <= known


def test_the_image_listens_where_it_is_asked() -> None:
    """The port of the settings is the one that is published and whose health is checked."""
    (written,) = re.findall(r"printf '([^']*)' > /etc/vedette/vedette.toml", IMAGE)
    serve = config.parse(written.replace(r"\n", "\n"), "Containerfile").serve
    host, _, port = serve.listen.rpartition(":")
    assert host == "0.0.0.0"  # noqa: S104 - inside a container
    assert re.findall(r"^EXPOSE (.*)$", IMAGE, re.MULTILINE) == [port]
    assert f"http://127.0.0.1:{port}/healthz" in IMAGE


def test_the_image_follows_good_practice() -> None:
    """Known instructions, files that exist, exec form, pinned bases and packages, and an unprivileged user."""
    joined = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", IMAGE, flags=re.MULTILINE))
    steps = [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]
    known = {"FROM", "WORKDIR", "ENV", "RUN", "COPY", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK"}
    assert {word for word, _ in steps} <= known | {"ENTRYPOINT", "CMD"}
    assert all(re.search(r":[\d.]+", rest) for word, rest in steps if word == "FROM")
    copied = [rest.split()[:-1] for word, rest in steps if word == "COPY" and "--from=" not in rest]
    assert all((DOCS.parent / source).exists() for sources in copied for source in sources)
    assert all(rest.startswith("[") for word, rest in steps if word in {"ENTRYPOINT", "CMD"})
    assert all("--require-hashes" in rest or "--no-deps" in rest for word, rest in steps if "pip install" in rest)
    assert [rest for word, rest in steps if word == "USER"] == ["vedette"]


def test_the_compose_file_fits_the_image() -> None:
    """It builds that image, publishes its port on loopback, keeps its volume and sets settings that exist."""
    folder = DOCS / "deploy"
    assert (folder / COMPOSE["build"]["context"] / COMPOSE["build"]["dockerfile"]).samefile(folder / "Containerfile")
    (port,) = re.findall(r"^EXPOSE (.*)$", IMAGE, re.MULTILINE)
    assert COMPOSE["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert [volume.partition(":")[2] for volume in COMPOSE["volumes"]] == re.findall(
        r"^VOLUME (.*)$", IMAGE, re.MULTILINE
    )
    known = {f"VEDETTE_{name.upper().replace('.', '_')}" for name, _, _ in config.describe()}
    assert set(COMPOSE["environment"]) <= known


def test_ci_runs_every_python_that_is_supported() -> None:
    """From the oldest that the package allows on, without a gap."""
    root = DOCS.parent
    job = yaml.safe_load((root / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))["jobs"]["test"]
    minors = [int(version.removeprefix("3.")) for version in job["strategy"]["matrix"]["python"]]
    (oldest,) = re.findall(r'^requires-python = ">=3\.(\d+)"', (root / "pyproject.toml").read_text(), re.MULTILINE)
    assert minors == list(range(int(oldest), 15))
    assert any("make test" in step.get("run", "") for step in job["steps"])


def test_every_number_that_is_watched_is_counted() -> None:
    """Alerts that name a metric which no one has would never ring."""
    counted = {name for family in Metrics()._registry.collect() for name in (family.name, f"{family.name}_total")}
    watched = {name.removesuffix("_bucket") for name in re.findall(r"\bvedette_[a-z_]+", PAGE)}
    assert watched
    assert watched <= counted
