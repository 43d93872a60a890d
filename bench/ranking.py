"""What do ranking policies achieve, in communities and in the joke study? The experiment ``ranking``, cell by cell.

All policies of a seed meet the same deaths, places and visitors. A table of means with 95% intervals over seeds is
printed for each world. Where settings of selective promotion are among the policies (``grid``), all others are held
against them, paired by world and seed: against the best setting of each world with hindsight, which has the luck of
these seeds, too; against the one that is best by the other seeds; and against each setting in all worlds. Rows are
appended to ``--rows`` as they come, and those that are there are not worked out again. The last line is JSON.

With ``--runs`` nothing is worked out: folders that ``vedette lab run ranking --out DIR`` left are read, and ``default``
is held against each other policy, world by world and over all worlds.

    python bench/ranking.py --worlds default,quiet,jester:jester5k.npz --policies default,popularity,grid --seeds 4
    python bench/ranking.py --runs DIR DIR
"""

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs as a script

from bench.peers.community_model import solve_community

from vedette.lab.core.experiment import Cell
from vedette.lab.core.registry import DEFAULT
from vedette.lab.core.report import read_run
from vedette.lab.core.statistics import bootstrap_interval, compare_paired
from vedette.lab.experiments.ranking import BEST_OF_GRID, EXPERIMENT, GRID
from vedette.lab.worlds.community import draw_qualities, ideal_qpc, parse_community
from vedette.policy import rng_for

SHOWN = ("qpc_share", "tbp", "became", "explored")
GRID_OF = "selective-r"
MODELLED = ((0.0, 1), (0.02, 1), (0.05, 1), (0.1, 1), (0.15, 1), (0.2, 1), (0.1, 2))
SETTINGS = [f"selective-r{degree:.2f}-k{first}" for degree, first in GRID]
Key = tuple[str, str, float, int]
Rows = dict[Key, Mapping[str, float]]


def main() -> None:
    """Compute missing cells, seed by seed, and print the progress."""
    asked = _asked()
    if asked.runs:
        _print_runs(asked.runs)
        return
    worlds = [name if ":" in name else f"community:{name}" for name in asked.worlds.split(",")]
    if asked.model:
        for world in worlds:
            _print_model(world)
        return
    policies = [name for part in asked.policies.split(",") for name in (SETTINGS if part == "grid" else [part])]
    rows = _read(asked.rows)
    seeds = range(asked.first_seed, asked.first_seed + asked.seeds)
    wanted = [(world, policy, asked.lives, seed) for seed in seeds for world in worlds for policy in policies]
    for key in wanted:
        if key not in rows:
            world, policy, lives, seed = key
            rows[key] = EXPERIMENT.run(Cell(EXPERIMENT.name, world, policy, lives, seed))[0]
            _append(asked.rows, key, rows[key])
    for world in worlds:
        _print_world(world, policies, {key: rows[key] for key in wanted if key[0] == world})
    settings = [policy for policy in policies if policy.startswith(GRID_OF)]
    others = [policy for policy in policies if policy not in settings]
    for policy in others if settings else []:
        _compare(policy, settings, rows, wanted)
    print(json.dumps({"cells": len(wanted), "worlds": worlds, "policies": policies, "seeds": list(seeds)}))


def _print_runs(folders: Sequence[Path]) -> None:
    """Tables of runs that are there, and how ``default`` does against each other policy that they have."""
    rows: Rows = {
        (each.cell.world, each.cell.policy, each.cell.budget, each.cell.seed): each.numbers
        for folder in folders
        for each in read_run(folder).rows
    }
    worlds = list(dict.fromkeys(key[0] for key in rows))
    policies = list(dict.fromkeys(key[1] for key in rows))
    for world in worlds:
        _print_world(world, policies, {key: row for key, row in rows.items() if key[0] == world})
    for rival in policies:
        ours = [key for key in rows if key[1] == DEFAULT and (key[0], rival, key[2], key[3]) in rows]
        for world in worlds if rival == BEST_OF_GRID else ():
            _against(DEFAULT, f"{rival} in {world}", [(key, rival) for key in ours if key[0] == world], rows)
        if rival != DEFAULT and ours:
            _against(DEFAULT, f"{rival} in all of them", [(key, rival) for key in ours], rows)
    print(json.dumps({"cells": len(rows), "worlds": worlds, "policies": policies}))


def _compare(policy: str, settings: Sequence[str], rows: Rows, wanted: Sequence[Key]) -> None:
    """A policy against the best setting of each world with hindsight, the best by other seeds, and each everywhere."""
    keys = [key for key in wanted if key[1] == policy]

    def best(world: str, *, without: int | None = None) -> str:
        counted = [key for key in keys if key[0] == world and key[3] != without]
        return max(settings, key=lambda each: sum(rows[world, each, key[2], key[3]]["qpc"] for key in counted))

    _against(policy, "the best in each world, by these seeds", [(key, best(key[0])) for key in keys], rows)
    if len(frozenset(key[3] for key in keys)) > 1:
        by_others = [(key, best(key[0], without=key[3])) for key in keys]
        _against(policy, "the best in each world, by the other seeds", by_others, rows)
    for setting in settings:
        _against(policy, f"{setting} everywhere", [(key, setting) for key in keys], rows)


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", default="default")
    parser.add_argument("--policies", default="default,popularity,grid")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--lives", type=float, default=EXPERIMENT.budgets[0])
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--runs", type=Path, nargs="+", help="folders of finished lab runs")
    parser.add_argument("--model", action="store_true", help="what the formulas say of communities, without a run")
    return parser.parse_args()


def _read(path: Path | None) -> Rows:
    lines = path.read_text(encoding="utf-8").splitlines() if path and path.exists() else []
    found = [json.loads(line) for line in lines]
    return {(one["world"], one["policy"], one["lives"], one["seed"]): one["row"] for one in found}


def _append(path: Path | None, key: Key, row: Mapping[str, float]) -> None:
    line = json.dumps(dict(zip(("world", "policy", "lives", "seed"), key, strict=True)) | {"row": dict(row)})
    print(line, file=sys.stderr, flush=True)
    if path:
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")


def _print_world(world: str, policies: Iterable[str], rows: Rows) -> None:
    print(f"{world}\n{'policy':24}" + "".join(f"{name:>28}" for name in SHOWN))
    for policy in policies:
        ours = [row for (_, name, _, _), row in rows.items() if name == policy]
        if not ours:
            continue
        found = [bootstrap_interval([row.get(name, float("nan")) for row in ours]) for name in SHOWN]
        print(f"{policy:24}" + "".join(f"{f'{one.mean:.3f} [{one.low:.3f}, {one.high:.3f}]':>28}" for one in found))


def _print_model(world: str) -> None:
    """Quality per click, days until popular, and the law of awareness of the best page, by degree and first place."""
    community = parse_community(world.partition(":")[2])
    ideal = ideal_qpc(draw_qualities(community, 1))
    print(
        f"{world}: r, k, qpc share, tbp in days, the same within a life, visits handed out, rounds, known to 0, >90 %"
    )
    for degree, first in MODELLED:
        model = solve_community(community, degree, first)
        within = model.tbp_within_life(rng_for(1, "bench/ranking"))
        known = model.awareness_distribution[0, int(0.9 * community.monitored_users) + 1 :].sum()
        print(
            f"{degree:.2f} {first} {model.qpc / ideal:.3f} {model.tbp_days():.0f} {within:.0f} {model.visit_share:.3f} "
            f"{model.iterations} {model.awareness_distribution[0, 0]:.3f} {known:.3f}"
        )


def _against(policy: str, whom: str, rivals: Sequence[tuple[Key, str]], rows: Rows) -> None:
    """Differences by world and seed: of quality per click as a share of the ideal, and of time in days."""
    pairs = [(rows[key], rows[key[0], rival, key[2], key[3]]) for key, rival in rivals]
    qpc, tbp = (
        compare_paired([a[name] for a, _ in pairs], [b[name] for _, b in pairs]) for name in ("qpc_share", "tbp")
    )
    theirs = sum(b["qpc_share"] for _, b in pairs) / len(pairs)
    print(
        f"{policy} against {whom}: qpc_share {qpc.mean:+.3f} [{qpc.low:+.3f}, {qpc.high:+.3f}] of {theirs:.3f} "
        f"({100 * qpc.mean / theirs:+.1f} %), tbp {tbp.mean:+.1f} d [{tbp.low:+.1f}, {tbp.high:+.1f}], {qpc.n} pairs"
    )


if __name__ == "__main__":
    main()
