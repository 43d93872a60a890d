"""Decision code uses no clock, file, socket, log or randomness except its arguments, without exemptions.

The test lists what may be imported, so an unknown library is rejected. So is ``sys``: its arguments, streams and limits
belong to the process, not to the decision. The order of a set differs between processes, so nothing may iterate over
one; ``sorted(...)`` without a key, ``len`` and similar functions do not reveal the order. ``hash`` and ``id`` differ
between processes in the same way.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import vedette

SOURCE = Path(vedette.__file__).parent
PURE = (
    *(
        "model.py",
        "errors.py",
        "timeutil.py",
        "suggest.py",
        "version.py",
        "policy.py",
        "text.py",
        "attention.py",
        "pricing.py",
        "engine",
    ),
    *("discover", "frontier", "fetch", "parse", "index", "refresh", "serve", "learn", "lab/baselines"),
)


def words(text: str) -> tuple[str, ...]:
    """Return the words of a text, in order."""
    return tuple(text.split())


PURE_LIBRARIES = words("""
    abc array base64 binascii bisect cmath collections contextlib copy dataclasses datetime decimal difflib
    enum fractions functools hashlib heapq html ipaddress itertools json math numbers operator re statistics string
    stringprep struct textwrap types typing unicodedata zlib
    ada_url brotli chardetng_py numpy publicsuffixlist pycld2 selectolax xxhash zstandard vedette
    """)
# Of these libraries only a part is pure.
PURE_PARTS = words("urllib.parse email.utils.parsedate_tz email.utils.parsedate_to_datetime")
CALLS = words("open print input exec eval compile breakpoint __import__ globals hash id exit quit")
CLOCKS = frozenset({"now", "today", "utcnow"})
SEEDED = frozenset({"Generator", "BitGenerator", "PCG64", "PCG64DXSM", "Philox", "SeedSequence", "default_rng"})
NUMPY_FILES = words(
    "load save savez savez_compressed loadtxt savetxt genfromtxt fromfile tofile memmap fromregex DataSource"
)
ITERATING = words("""
    list tuple dict iter enumerate zip map filter reversed sum reduce fromkeys join array asarray fromiter chain
    from_iterable deque Counter OrderedDict extend writelines product permutations combinations starmap accumulate
    """)
SET_METHODS = frozenset({"union", "intersection", "difference", "symmetric_difference", "copy"})
SET_TYPES = frozenset({"set", "frozenset", "Set", "AbstractSet", "MutableSet", "FrozenSet"})


def violations(source: str) -> list[str]:
    """List a module's uses of what decision code must not use."""
    tree = ast.parse(source)
    sets = _set_names(tree)
    return [why for node in ast.walk(tree) for why in _wrong(node, sets)]


def _wrong(node: ast.AST, sets: frozenset[str]) -> Iterator[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield from _imported(node)
    elif isinstance(node, ast.Call):
        yield from _called(node, sets)
    elif isinstance(node, ast.Attribute):
        yield from _reached(node)
    for iterated in _iterated(node):
        if _is_set(iterated, sets):
            yield f"iterates a set: {ast.unparse(iterated)}"


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        module = "vedette" if node.level else node.module or ""
        names = [f"{module}.{alias.name}" for alias in node.names]
    for name in names:
        if name.partition(".")[0] not in PURE_LIBRARIES and not f"{name}.".startswith(
            tuple(f"{p}." for p in PURE_PARTS)
        ):
            yield f"imports {name}, which is not on the list of pure libraries"
        if name.startswith("numpy.random.") and name.rpartition(".")[2] not in SEEDED:
            yield f"imports {name}, which draws from a global state"


def _called(node: ast.Call, sets: frozenset[str]) -> Iterator[str]:
    name = _last_name(node.func)
    if isinstance(node.func, ast.Name) and name in CALLS:
        yield f"calls {name}"
    if isinstance(node.func, ast.Attribute) and name in CLOCKS:
        yield f"asks the clock: {ast.unparse(node)}"
    if name == "datetime64" and any(isinstance(a, ast.Constant) and a.value in CLOCKS for a in node.args):
        yield f"asks the clock: {ast.unparse(node)}"
    if name in SEEDED and name != "Generator" and not node.args and not node.keywords:
        yield f"draws without a seed: {ast.unparse(node)}"
    handed = [argument for argument in node.args if _is_set(argument, sets)]
    ordered_by_key = name in {"min", "max", "sorted"} and any(word.arg == "key" for word in node.keywords)
    if handed and (name in ITERATING or ordered_by_key):
        yield f"iterates a set: {ast.unparse(node)}"
    if name == "pop" and isinstance(node.func, ast.Attribute) and _is_set(node.func.value, sets):
        yield f"takes any one of a set: {ast.unparse(node)}"


def _reached(node: ast.Attribute) -> Iterator[str]:
    inside = _last_name(node.value)
    if inside == "random" and node.attr not in SEEDED:
        yield f"draws from a global state: {ast.unparse(node)}"
    if node.attr in {"environ", "getenv"}:
        yield f"reads the environment: {ast.unparse(node)}"
    if node.attr == "tofile" or (inside in {"np", "numpy"} and node.attr in NUMPY_FILES):
        yield f"uses a file: {ast.unparse(node)}"


def _iterated(node: ast.AST) -> Iterator[ast.expr]:
    """Return the expressions that a node iterates over in a visible order."""
    if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        yield node.iter
    elif isinstance(node, ast.YieldFrom):
        yield node.value
    elif isinstance(node, ast.List | ast.Tuple | ast.Call):
        elements = node.args if isinstance(node, ast.Call) else node.elts
        yield from (element.value for element in elements if isinstance(element, ast.Starred))
    elif isinstance(node, ast.Assign) and any(isinstance(target, ast.Tuple | ast.List) for target in node.targets):
        yield node.value


def _is_set(node: ast.expr, sets: frozenset[str]) -> bool:
    """Check whether an expression is recognizably a set."""
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    if isinstance(node, ast.Name | ast.Attribute):
        return _last_name(node) in sets
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr | ast.BitAnd | ast.Sub | ast.BitXor):
        return _is_set(node.left, sets) or _is_set(node.right, sets)
    if isinstance(node, ast.IfExp):
        return _is_set(node.body, sets) or _is_set(node.orelse, sets)
    return isinstance(node, ast.Call) and _makes_set(node, sets)


def _makes_set(node: ast.Call, sets: frozenset[str]) -> bool:
    if isinstance(node.func, ast.Attribute) and node.func.attr in SET_METHODS:
        return _is_set(node.func.value, sets)
    return isinstance(node.func, ast.Name) and node.func.id in {"set", "frozenset"}


def _set_names(tree: ast.Module) -> frozenset[str]:
    """Return names that the module declares or fills as sets, and never as anything else."""
    message: dict[str, list[bool]] = {}
    for node in ast.walk(tree):
        for name, is_set in _declared(node):
            message.setdefault(name, []).append(is_set)
    return frozenset(name for name, each in message.items() if all(each))


def _declared(node: ast.AST) -> Iterator[tuple[str, bool]]:
    if isinstance(node, ast.AnnAssign):
        yield _last_name(node.target), _is_set_type(node.annotation)
    elif isinstance(node, ast.arg):
        yield node.arg, node.annotation is not None and _is_set_type(node.annotation)
    elif isinstance(node, ast.Assign):
        single = [target for target in node.targets if isinstance(target, ast.Name | ast.Attribute)]
        yield from ((_last_name(target), _is_set(node.value, frozenset())) for target in single)


def _is_set_type(annotation: ast.expr) -> bool:
    outer = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    return _last_name(outer) in SET_TYPES


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def pure_files() -> list[Path]:
    """List every module above the line of ARCHITECTURE.md, in a fixed order."""
    places = [SOURCE / name for name in PURE]
    return sorted(
        file for place in places for file in ([place] if place.suffix else place.rglob("*.py")) if file.is_file()
    )


def test_decision_code_is_pure() -> None:
    """Results depend only on arguments, at any time and on any machine."""
    assert [(file, why) for file in pure_files() for why in violations(file.read_text(encoding="utf-8"))] == []


def test_all_of_the_pure_side_was_read() -> None:
    """Every folder of the package is declared pure or not, and the pure side is not empty."""
    outside = {"adapters", "web", "runtime", "lab", "cli", "config", "api.py", "__init__.py", "__main__.py", "py.typed"}
    outside |= {"compiled.py", "compiled.txt"}
    assert {entry.name for entry in SOURCE.iterdir() if entry.suffix != ".so"} <= {*PURE, *outside, "__pycache__"}
    folders = {file.relative_to(SOURCE).parts[0] for file in pure_files()}
    assert {"model.py", "policy.py", "discover", "frontier", "fetch", "parse", "engine"} <= folders
    assert len(pure_files()) >= 25


@pytest.mark.parametrize(
    "name",
    words("""
    os io pathlib time socket ssl select selectors asyncio threading multiprocessing subprocess concurrent.futures
    logging sqlite3 random secrets uuid tempfile shutil glob http.client urllib.request signal sys importlib warnings
    locale platform getpass email.message mmap pickle ctypes gc weakref pycurl uvloop rich requests
    """),
)
def test_an_outside_library_is_named(name: str) -> None:
    """A library with side effects is found, however it is imported."""
    first, _, rest = name.partition(".")
    assert violations(f"import {name}")
    assert violations(f"import {name} as harmless")
    assert violations(f"def f():\n    from {name} import anything")
    assert violations(f"from {first} import {rest or 'anything'}")


@pytest.mark.parametrize(
    "line",
    [
        "open('x')",
        "print(1)",
        "input()",
        "exec('1')",
        "eval('1')",
        "breakpoint()",
        "__import__('os')",
        "hash('text')",
        "id(x)",
        "datetime.now(UTC)",
        "date.today()",
        "datetime.datetime.utcnow()",
        "np.datetime64('now')",
        "np.random.random()",
        "numpy.random.seed(1)",
        "from numpy.random import shuffle",
        "np.random.default_rng()",
        "default_rng()",
        "np.random.Generator(np.random.PCG64())",
        "np.load('x')",
        "array.tofile('x')",
        "os.environ['HOME']",
        "for x in {1, 2}: pass",
        "for x in set(y): pass",
        "for x in frozenset(y) | z: pass",
        "[x for x in {1, 2}]",
        "{x: 1 for x in {y for y in z}}",
        "list({1, 2})",
        "tuple(set(y))",
        "dict.fromkeys({1, 2})",
        "', '.join({'a', 'b'})",
        "np.array({1, 2})",
        "sum({.1, .2, .3})",
        "enumerate(set(y).union(z))",
        "sorted({1, 2}, key=f)",
        "[*{1, 2}]",
        "f(*set(y))",
        "a, b = {1, 2}",
        "{1, 2}.pop()",
        "names = {1, 2}\nfor x in names: pass",
        "class A:\n    known: set[int]\ndef f(a):\n    return list(a.known)",
        "def f(seen: frozenset[int]):\n    yield from seen",
    ],
)
def test_a_planted_violation_is_named(line: str) -> None:
    """Each kind of violation is found, so a passing test means something."""
    assert violations(line)


@pytest.mark.parametrize(
    "line",
    [
        "import re\nre.compile('x')",
        "from urllib.parse import urlsplit",
        "from vedette.model import Site",
        "rng = np.random.Generator(np.random.PCG64([1, 2]))\nrng.random()",
        "rng: np.random.Generator = np.random.default_rng(7)",
        "x in {1, 2}",
        "sorted({1, 2})",
        "len(set(y)) + max({1, 2})",
        "{*a, *b}",
        "known: set[int] = set()\nknown.add(1)\nknown.update(others)",
        "for x in sorted(set(y)): pass",
        "for x in dict.fromkeys(y): pass",
    ],
)
def test_honest_code_is_left_alone(line: str) -> None:
    """Valid code passes: a check with false alarms would soon be disabled."""
    assert violations(line) == []
