"""The house stands: arrows point down, no circles, small folders, small files."""

import ast
from functools import cache
from pathlib import Path

import pytest

import truepair
from tests.structure.imports import arrows_of, circles, modules_of, upward

PACKAGE = Path(truepair.__file__).parent
TESTS = Path(__file__).parents[1]

ROOMS = [  # the highest first: a module imports from its own room and from those below
    *("cli", "serve", "reproduce", "pages", "audit", "training", "loops", "methods", "evaluation", "engines"),
    *("search", "correspondence", "losses", "transport", "decisions", "data", "encoders"),
    *("cluster", "option", "phrases", "progress", "files", "device", "optimizers", "seeding", "errors"),
]
FACADE = {"truepair", "truepair.__main__"}  # names of all rooms, loaded when used

OPTIONAL = {"torchvision", "timm", "open_clip", "transformers"}  # never needed by the core
LOADERS = {"import_module", "__import__", "required"}  # load a module by its name
EXTRAS = ("encoders/hf/", "loops/trainers.py")  # where model libraries are, of who installed the extra
MOST_FILES = 25  # of a folder, at one level
MOST_LINES = 400  # of a file


@cache
def arrows():
    return [arrow for arrow in arrows_of(PACKAGE) if not FACADE & set(arrow[:2])]


def test_every_module_is_in_a_room():
    assert {name.split(".")[1] for name in modules_of(PACKAGE) if name not in FACADE} <= set(ROOMS)


def test_arrows_point_down():
    """Imports inside functions count: they are dependencies all the same."""
    assert upward(arrows(), ROOMS) == []


def test_there_are_no_circles():
    """Imports inside functions count here, too."""
    assert circles([arrow._replace(at_load=True) for arrow in arrows()]) == []


def test_the_core_imports_no_model_library():
    assert [(name, found) for name, found in outside(PACKAGE) if found in OPTIONAL] == []


def test_model_libraries_are_loaded_by_name_in_their_own_rooms_and_when_used():
    found = [each for each in by_name(PACKAGE) if each[1] in OPTIONAL]
    assert found, "the search finds what is there"
    assert [each for each in found if not each[0].startswith(EXTRAS) or not each[2]] == []


@pytest.mark.parametrize("folder", [PACKAGE, TESTS], ids=["package", "tests"])
def test_folders_are_small(folder):
    assert crowded(folder) == []


def test_files_are_small():
    print(sum(len(path.read_text("utf-8").splitlines()) for path in PACKAGE.rglob("*.py")), "lines in the package")
    assert long_files(PACKAGE) == []


def test_all_that_is_no_module_is_installed_too():
    """A file that no pattern of package-data names is missing where the package is installed."""
    import tomllib

    told = tomllib.loads((TESTS.parent / "pyproject.toml").read_text("utf-8"))
    patterns = told["tool"]["setuptools"]["package-data"]["truepair"]
    installed = {path for pattern in patterns for path in PACKAGE.glob(pattern)}
    files = {path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    assert files - installed == set() and files


def outside(package):
    """(file, top-level name) of all that is imported anywhere in a package."""
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                yield from ((path.name, alias.name.split(".")[0]) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield path.name, (node.module or "").split(".")[0]


def by_name(package):
    """(path in the package, top-level name, whether inside a function) of what is imported by its name as text."""
    for path in package.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        inside = {
            id(node)
            for function in ast.walk(tree)
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            for node in ast.walk(function)
        }
        for node in ast.walk(tree):
            function = getattr(node, "func", None)
            called = getattr(function, "id", getattr(function, "attr", None))
            if isinstance(node, ast.Call) and called in LOADERS and isinstance(node.args[0], ast.Constant):
                place = path.relative_to(package).as_posix()
                yield place, str(node.args[0].value).split(".")[0], id(node) in inside


def crowded(folder):
    inside = [folder, *(path for path in folder.rglob("*") if path.is_dir() and path.name != "__pycache__")]
    return [path for path in inside if sum(child.is_file() for child in path.iterdir()) > MOST_FILES]


def long_files(folder):
    return [path for path in folder.rglob("*.py") if len(path.read_text("utf-8").splitlines()) > MOST_LINES]


# --- The tests themselves: what they must find, planted ---------------------------------------------------------


@pytest.fixture
def house(tmp_path):
    """A package of two rooms, `top` above `base`, in which nothing is wrong."""
    for name, text in {
        "__init__.py": "",
        "top/__init__.py": "",
        "top/page.py": "from pack.base.numbers import one\n",
        "base/__init__.py": "",
        "base/numbers.py": "one = 1\n",
        "base/words.py": "import pack.base.numbers\n",
    }.items():
        path = tmp_path / "pack" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "pack"


def found(house):
    read = arrows_of(house)
    every = [arrow._replace(at_load=True) for arrow in read]
    return {"up": [arrow[:2] for arrow in upward(read, ["top", "base"])], "circles": circles(every)}


UP = ("pack.base.numbers", "pack.top.page")


@pytest.mark.parametrize(
    ("text", "up"),
    [
        ("one = 1\n", []),
        ("from pack.top.page import one\n", [UP]),
        ("from pack.top import page\n", [UP]),
        ("import pack.top.page as p\n", [UP]),
        ("def f():\n    if True:\n        from pack.top import page\n", [UP]),
        ("class A:\n    def f(self):\n        import pack.top.page\n", [UP]),
        ("try:\n    x = 1\nexcept OSError:\n    import pack.top.page\n", [UP]),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pack.top import page\n", []),
    ],
)
def test_an_arrow_up_is_found(house, text, up):
    (house / "base" / "numbers.py").write_text(text)
    assert found(house)["up"] == up
    assert found(house)["circles"] == ([["pack.base.numbers", "pack.top.page"]] if up else [])


def test_a_circle_within_a_room_is_found(house):
    (house / "base" / "numbers.py").write_text("def f():\n    from pack.base.words import x\n")
    assert found(house) == {"up": [], "circles": [["pack.base.numbers", "pack.base.words"]]}
    assert circles(arrows_of(house)) == []  # at load there is none


def test_a_library_of_models_is_found(house):
    (house / "base" / "numbers.py").write_text("def f():\n    from transformers.models import clip\n    import timm\n")
    assert OPTIONAL & {found for _, found in outside(house)} == {"transformers", "timm"}


def test_a_library_that_is_loaded_by_name_is_found(house):
    text = 'required("timm")\n\ndef f():\n    return importlib.import_module("open_clip.model")\n'
    (house / "base" / "numbers.py").write_text(text)
    assert set(by_name(house)) == {("base/numbers.py", "timm", False), ("base/numbers.py", "open_clip", True)}


def test_a_crowded_folder_and_a_long_file_are_found(house):
    assert crowded(house) == long_files(house) == []
    for number in range(MOST_FILES - 2):
        (house / "base" / f"file{number}.txt").touch()
    assert crowded(house) == [house / "base"]
    (house / "top" / "page.py").write_text("x = 1\n" * (MOST_LINES + 1))
    assert long_files(house) == [house / "top" / "page.py"]
