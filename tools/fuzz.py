"""Fuzz the parsers of foreign input, guided by coverage (atheris), and print what was found.

    tools/fuzz.py TARGET… --runs N    N inputs for each target; all of them by default
    tools/fuzz.py TARGET… --keep      also put the most useful inputs into tests/fuzz/corpus

Inputs are kept in build/fuzz/TARGET and are the start of the next run. An input that breaks its target is written to
build/fuzz/crashes and printed; the run goes on. An input may take ``CPU_LIMIT_S`` of CPU time, like a page or document
of a crawl. `make fuzz` installs what this needs.
"""

import argparse
import json
import os
import re
import shlex
import site
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
WORK = ROOT / "build" / "fuzz"
KEPT = ROOT / "tests" / "fuzz" / "corpus"
CPU_LIMIT_S = 5.0
MAX_KEPT_BYTES = 48_000  # for each target
MAX_CRASHES = 20
HANG_S = 600
MEMORY_MIB = 2_048
_STATUS = re.compile(rb"#(\d+)\s+(\w+)\s+cov: (\d+) ft: (\d+)(?: corp: (\d+)/)?")
_EXECUTED = re.compile(rb"stat::number_of_executed_units:\s+(\d+)")


def main() -> None:
    """Fuzz the targets one after the other, and print a line of JSON for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--keep", action="store_true", help="put the most useful inputs into tests/fuzz/corpus")
    sys.path[:0] = [str(ROOT), str(ROOT / "src")]
    if sys.argv[1:2] == ["--child"]:
        fuzz_here(sys.argv[2], sys.argv[3:])
        return
    options = parser.parse_args()
    from tests.fuzz.target import TARGETS

    unknown = [name for name in options.targets if name not in TARGETS]
    if unknown:
        parser.error(f"no target {unknown[0]}; choose from {', '.join(TARGETS)}")
    found = [fuzz(name, options.runs, options.keep) for name in options.targets or TARGETS]
    sys.exit(1 if any(one["crashes"] for one in found) else 0)


def fuzz(name: str, runs: int, keep: bool) -> dict[str, object]:  # noqa: FBT001 - one caller
    """Run one target until it has had all its inputs, starting again after each that breaks it."""
    corpus, before = prepare_corpus(name)
    done, started_s = 0, time.monotonic()
    crashes: list[str] = []
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    while done < runs and len(crashes) < MAX_CRASHES:
        executed, statuses, crash = run_once(name, corpus, runs - done, seed=1 + len(crashes))
        first, last = first or statuses[0], statuses[-1]
        done += executed
        if crash is None:
            break
        crashes.append(crash.name)
        sys.stderr.write(f"{name}: {crash.relative_to(ROOT)}\n")
    if keep:
        keep_corpus(name, corpus)
    summary = {
        "target": name,
        "runs": done,
        "corpus": [before, len(list(corpus.iterdir()))],
        "edges": [first.get("cov", 0), last.get("cov", 0)],
        "features": [first.get("ft", 0), last.get("ft", 0)],
        "crashes": crashes,
        "slowest_cpu_s": read_slowest(name),
        "wall_s": round(time.monotonic() - started_s),
    }
    sys.stdout.write(json.dumps(summary) + "\n")
    sys.stdout.flush()
    return summary


def prepare_corpus(name: str) -> tuple[Path, int]:
    """Write seeds and kept inputs beside what earlier runs found; return the folder and the number of inputs."""
    from tests.fuzz.target import load_corpus, load_target

    folder = WORK / name
    folder.mkdir(parents=True, exist_ok=True)
    (WORK / "crashes").mkdir(exist_ok=True)
    (WORK / f"{name}.slowest").unlink(missing_ok=True)
    target = load_target(name)
    for data in (*target.seeds, *load_corpus(name)):
        (folder / sha256(data).hexdigest()[:20]).write_bytes(data)
    tokens = [re.sub(rb"[^ -!#-\[\]-~]", lambda found: b"\\x%02x" % found[0][0], token) for token in target.tokens]
    (WORK / f"{name}.dict").write_bytes(b"".join(b'"%s"\n' % token for token in tokens))
    return folder, len(list(folder.iterdir()))


def run_once(name: str, corpus: Path, runs: int, seed: int) -> tuple[int, list[dict[str, int]], Path | None]:
    """Run libFuzzer until it is done or an input breaks the target."""
    from tests.fuzz.target import load_target

    known = set((WORK / "crashes").iterdir())
    flags = {
        "runs": runs,
        "seed": seed,
        "max_len": load_target(name).most_bytes,
        "timeout": HANG_S,
        "report_slow_units": HANG_S,  # by the wall clock; ours is CPU time
        "rss_limit_mb": MEMORY_MIB,
        "dict": WORK / f"{name}.dict",
        "artifact_prefix": f"{WORK / 'crashes'}/{name}-",
        "print_final_stats": 1,
    }
    command = [sys.executable, __file__, "--child", name, *(f"-{key}={value}" for key, value in flags.items())]
    with (WORK / f"{name}.log").open("wb") as log:
        subprocess.run([*command, str(corpus)], stdout=log, stderr=log, check=False, cwd=ROOT, env=_environment())
    said = (WORK / f"{name}.log").read_bytes()
    statuses = [{"runs": int(each[1]), "cov": int(each[3]), "ft": int(each[4])} for each in _STATUS.finditer(said)]
    if not statuses:
        sys.exit(f"{name}: the fuzzer did not start; see {WORK / f'{name}.log'}")
    executed = _EXECUTED.search(said)
    crash = next(iter(set((WORK / "crashes").iterdir()) - known), None)
    return (int(executed[1]) if executed else statuses[-1]["runs"]), statuses, crash


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONHASHSEED": "0", "VEDETTE_FUZZING": "1"}


def fuzz_here(name: str, flags: list[str]) -> None:
    """Fuzz a target in this process; its modules are instrumented as they are imported."""
    tools = ROOT / ".venv-tools" / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    site.addsitedir(str(tools))
    atheris: Any = import_module("atheris")
    from tests.fuzz.target import load_target

    with atheris.instrument_imports(include=["vedette", "markdown_it"]):
        target = load_target(name)
    more: dict[str, Any] = {}
    mutate = target.mutate
    if mutate is not None:
        more["custom_mutator"] = lambda data, most, seed: mutate(data, lambda part: atheris.Mutate(part, most), seed)[
            :most
        ]
    # libFuzzer starts itself again for a merge, by a shell.
    atheris.Setup([shlex.join([sys.executable, __file__, "--child", name]), *flags], _timed(name, target.check), **more)
    atheris.Fuzz()


def _timed(name: str, check: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """Check an input, remember the slowest, and fail for one over the limit."""
    slowest_s = 0.0

    def run(data: bytes) -> None:
        nonlocal slowest_s
        started_s = time.process_time()
        check(data)
        spent_s = time.process_time() - started_s
        if spent_s > slowest_s:
            slowest_s = spent_s
            (WORK / f"{name}.slowest").write_text(f"{spent_s:.3f}")
        assert spent_s <= CPU_LIMIT_S, f"took {spent_s:.1f} s of CPU time"

    return run


def read_slowest(name: str) -> float:
    """Return the CPU time of the slowest input of the last run."""
    file = WORK / f"{name}.slowest"
    return float(file.read_text()) if file.exists() else 0.0


def keep_corpus(name: str, corpus: Path) -> None:
    """Put a minimal set of inputs with the same coverage into the repository, the smallest first up to a bound."""
    merged = WORK / f"{name}.merged"
    merged.mkdir(exist_ok=True)
    for file in merged.iterdir():
        file.unlink()
    command = [sys.executable, __file__, "--child", name, "-merge=1", f"-timeout={HANG_S}", str(merged), str(corpus)]
    subprocess.run(command, capture_output=True, check=True, cwd=ROOT, env=_environment())
    inputs = sorted((file.read_bytes() for file in merged.iterdir()), key=lambda data: (len(data), data))
    if not inputs:
        sys.exit(f"{name}: the merge kept nothing; the kept corpus is unchanged")
    room = MAX_KEPT_BYTES
    KEPT.mkdir(exist_ok=True)
    with zipfile.ZipFile(KEPT / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for data in inputs:
            room -= len(data)
            if room < 0:
                break
            archive.writestr(zipfile.ZipInfo(sha256(data).hexdigest()[:20]), data, zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    main()
