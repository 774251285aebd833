"""Who imports whom, read from the source: every import statement of a package, those inside functions included."""

import ast
from pathlib import Path
from typing import NamedTuple


class Arrow(NamedTuple):
    """One import: the module that has it, the module it names, whether it runs as the module is loaded."""

    importer: str
    imported: str
    at_load: bool


def modules_of(package: Path) -> dict[str, Path]:
    """Dotted name → file of every module below a package folder."""
    names = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


def arrows_of(package: Path) -> list[Arrow]:
    """All imports of modules of the package by modules of the package; those for the type checker alone left out."""
    modules = modules_of(package)
    found = []
    for name, path in modules.items():
        for imported, at_load in _imports(ast.parse(path.read_text("utf-8")).body, True, modules):
            if imported != name:
                found.append(Arrow(name, imported, at_load))
    return found


def _imports(body, at_load, modules):
    for node in body:
        if isinstance(node, ast.Import):
            yield from ((alias.name, at_load) for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name their module in full"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if inner in modules or node.module in modules:
                    yield (inner if inner in modules else node.module), at_load
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _imports(node.orelse, at_load, modules)
        else:
            inside = at_load and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            for field in ("body", "orelse", "finalbody", "handlers", "cases"):
                yield from _imports(getattr(node, field, []), inside, modules)


def circles(arrows: list[Arrow]) -> list[list[str]]:
    """Groups of modules that reach each other by imports at load; a module that imports itself is none."""
    graph: dict[str, set[str]] = {}
    for arrow in arrows:
        if arrow.at_load:
            graph.setdefault(arrow.importer, set()).add(arrow.imported)
    reach = {name: _reached(graph, name) for name in graph}
    groups = {tuple(sorted(b for b in reach[a] if a in reach.get(b, set()))) for a in graph if a in reach[a]}
    return [list(group) for group in sorted(groups)]


def _reached(graph, start):
    seen, ahead = set(), [start]
    while ahead:
        for name in graph.get(ahead.pop(), ()):
            if name not in seen:
                seen.add(name)
                ahead.append(name)
    return seen


def room_of(module: str, rooms: list[str]) -> str | None:
    """The room a module is in: `truepair.data.noise` is in data, `truepair.files` in files; None for none of them."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in rooms else None


def upward(arrows: list[Arrow], rooms: list[str]) -> list[Arrow]:
    """Imports, at any time, from a lower room to a higher one; `rooms` runs from the highest down."""
    found = []
    for arrow in arrows:
        here, there = room_of(arrow.importer, rooms), room_of(arrow.imported, rooms)
        if here is not None and there is not None and rooms.index(there) < rooms.index(here):
            found.append(arrow)
    return found
