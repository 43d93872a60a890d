"""Can one core record 1 000 slates a second without delaying results?

A server's part (ten results with twelve features each, appended one by one at a steady pace) and the recorder share one
core. ``append`` is how long a search waits for its line; ``plain write`` is a bare write of the same bytes, one in ten
among them, and so the ceiling; ``late`` is how far behind its pace the server's part was when it began to write, which
is what anyone else on that core costs it. First without the recorder, then with it. The bench fails if a slate that was
logged is not folded in the end. The last line is one JSON object.

    python bench/slates.py [--rate N] [--seconds S]
"""

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np

from vedette.adapters.clock import real_clock
from vedette.adapters.event_store.reader import EventReader
from vedette.adapters.event_store.search_log import EventLog
from vedette.config import Config
from vedette.learn.events import SearchEvent, ShownResult, encode_event
from vedette.policy import rng_for
from vedette.runtime.processes.event_recorder import run_event_recorder
from vedette.runtime.processes.settings import RuntimeSettings

FEATURES = (
    *("title", "headings", "anchors", "url", "body", "coverage"),
    *("phrase", "nearness", "importance", "host", "freshness", "spelling"),
)
POOL = 2000
PLAIN_EVERY = 10
CONTROL_SHARE = 4


def made_slates() -> list[SearchEvent]:
    """Searches as unevenly common as people's, by many visitors."""
    rng = rng_for(1, "bench/slates")
    slates = []
    for rank in (POOL ** rng.random(POOL)).astype(int).tolist():
        scores = rng.random((10, 1 + len(FEATURES))).round(4).tolist()
        shown = tuple(
            ShownResult(int(rng.integers(1 << 20)), place, score, 1.0, tuple(zip(FEATURES, values, strict=True)))
            for place, (score, *values) in enumerate(scores, 1)
        )
        words = f"what people call thing {rank}"
        slates.append(SearchEvent("", 0.0, words.title(), words, 250, rng.bytes(8).hex(), took_ms=4.2, results=shown))
    return slates


def log_at_pace(folder: Path, slates: list[SearchEvent], rate: int, seconds: float) -> dict[str, float]:
    """The server's part: how long each append took, in microseconds, and CPU spent."""
    lines = [encode_event(slate) for slate in slates]
    plain = os.open(folder / "plain", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    append_s, plain_s, late_s = [], [], []
    count, now_s = int(rate * seconds), time.perf_counter
    with closing(EventLog(folder, "server")) as log:
        begun_s, cpu_s = now_s(), time.process_time()
        for number in range(count):
            time.sleep(max(begun_s + number / rate - now_s(), 0.0))
            slate = slates[number % POOL]._replace(id=os.urandom(16).hex(), at_s=time.time())
            before_s = now_s()
            late_s.append(before_s - begun_s - number / rate)
            log.append(slate)
            append_s.append(now_s() - before_s)
            if number % PLAIN_EVERY == 0:
                before_s = now_s()
                os.write(plain, lines[number % POOL])
                plain_s.append(now_s() - before_s)
        cpu_s, took_s = time.process_time() - cpu_s, now_s() - begun_s
    figures = {"slates": float(count), "rate": count / took_s, "cpu": cpu_s / took_s}
    for name, times in (("append", append_s), ("plain", plain_s), ("late", late_s)):
        quantiles = np.quantile(times, (0.5, 0.99, 1.0)) * 1e6
        figures |= dict(zip((f"{name}_p50_us", f"{name}_p99_us", f"{name}_max_us"), quantiles.tolist(), strict=True))
    return figures


def forked(work: Callable[[], int]) -> int:
    """A child that does this, on the core that this process is bound to."""
    pid = os.fork()
    if pid == 0:
        os._exit(work())
    return pid


def turn(slates: list[SearchEvent], rate: int, seconds: float, *, recorder: bool) -> dict[str, float]:
    """One run in a separate folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "format").write_text("4\n")
        settings = RuntimeSettings(Config(), real_clock(), folder, "bench")
        pid = forked(lambda: run_event_recorder(settings)) if recorder else 0
        figures = log_at_pace(folder, slates, rate, seconds)
        if not recorder:
            return figures
        figures["backlog"] = figures["slates"] - EventReader(folder).read_totals(0.0).searches
        os.kill(pid, signal.SIGTERM)
        _, status, used = os.wait4(pid, 0)
        figures["recorder_cpu"] = (used.ru_utime + used.ru_stime) / seconds
        figures["record_bytes"] = (folder / "record.db").stat().st_size / figures["slates"]
        folded = len({slate.id for slate in EventReader(folder).iter_searches(0.0)})
        if status or folded != figures["slates"]:
            sys.exit(f"{figures['slates']:.0f} slates were logged and {folded} are in the record")
        return figures


def main() -> None:
    """Without the recorder, then with it; the table and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    slates = made_slates()
    alone = turn(slates, options.rate, options.seconds / CONTROL_SHARE, recorder=False)
    both = turn(slates, options.rate, options.seconds, recorder=True)
    print(f"{'microseconds':24}{'p50':>9}{'p99':>9}{'max':>9}")
    for name, figures in (("without recorder", alone), ("with recorder", both)):
        print(f"{name}, {figures['rate']:.0f} slates/s")
        for what, words in (("append", "append"), ("plain", "plain write"), ("late", "late")):
            cells = "".join(f"{figures[f'{what}_{at}_us']:9.0f}" for at in ("p50", "p99", "max"))
            print(f"  {words:22}{cells}")
    print(f"CPU: server's part {both['cpu']:.0%} of the core, recorder {both['recorder_cpu']:.0%}")
    print(
        f"not folded yet at the end: {both['backlog']:.0f} slates; {both['record_bytes']:.0f} bytes each in record.db"
    )
    control = {f"alone_{name}": alone[name] for name in ("cpu", "append_p99_us", "late_p99_us")}
    print(json.dumps({name: round(value, 3) for name, value in (both | control).items()}))


if __name__ == "__main__":
    main()
