"""Decisions out to files and in again: nothing is lost, nothing foreign comes in."""

import csv
import json
from dataclasses import replace

import pyarrow
import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st
from pyarrow import parquet

from truepair.cli.main import main
from truepair.decisions import Decision, DecisionStore
from truepair.decisions.files import FILES, read_decisions, write_decisions
from truepair.decisions.sources import load_decisions
from truepair.errors import InputError

PAIRS = {"a": ("1.png", "a red shoe"), "b,\n\"'": ("2.png", ""), "=c": ("3.png", "x")}


@pytest.fixture
def audit(tmp_path):
    """A folder with the table of an audit, as far as decisions need it."""

    def make(name="audit", captions=("a red shoe", "", "x")):
        folder = tmp_path / name
        folder.mkdir()
        columns = {"pair_id": list(PAIRS), "image": ["1.png", "2.png", "3.png"], "caption": list(captions)}
        parquet.write_table(pyarrow.table({**columns, "p_match": [0.9, 0.2, 0.5]}), folder / "pairs.parquet")
        return folder

    return make


def decided(store):
    store.record(Decision(pair_id="a", verdict="match", person="Ada", chosen_by="gain", probability_chosen=1 / 3))
    store.record(
        Decision(pair_id="b,\n\"'", verdict="mismatch", person="Bo", chosen_by="worst", partner="a", seconds=0.1)
    )
    store.record(
        Decision(pair_id="a", verdict="mismatch", person="Ada", chosen_by="gain", caption='a "blue",\r\nshoe 👟')
    )
    store.undo("Ada")
    store.record(Decision(pair_id="=c", verdict="unsure", person="Ada", chosen_by="facet"))


def ordered(history):
    return sorted(history, key=lambda decision: decision.at)


@pytest.mark.parametrize("ending", FILES)
def test_the_round_trip_is_exact_with_the_history(tmp_path, ending):
    path = tmp_path / f"d{ending}"
    with DecisionStore.open(tmp_path / "a.sqlite") as store, DecisionStore.open(tmp_path / "b.sqlite") as other:
        decided(store)
        write_decisions(path, store.history(), PAIRS)
        rows = read_decisions(path)
        assert ordered(row.decision for row in rows) == store.history()
        assert {row.decision.pair_id: row.given_caption for row in rows} == {k: v[1] for k, v in PAIRS.items()}
        assert load_decisions(path).current() == store.current()
        assert other.merge(ordered(row.decision for row in rows)) == 5
        assert other.history() == store.history() and other.current() == store.current()


texts = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), min_size=1, max_size=8)
some_text = texts.filter(str.strip)
decisions = st.builds(
    Decision,
    pair_id=some_text,
    verdict=st.sampled_from(["match", "mismatch", "unsure", None]),
    person=some_text,
    chosen_by=some_text,
    caption=st.none() | some_text,
    partner=st.none() | some_text,
    probability_chosen=st.none() | st.floats(0, 1, exclude_min=True),
    seconds=st.none() | st.floats(0, 1e9),
    at=st.just("2026-01-31T12:00:00.000001Z"),
)


@settings(max_examples=30, deadline=None)
@for_all(st.lists(decisions, max_size=4), st.sampled_from([".parquet", ".csv", ".jsonl"]))
def test_any_values_survive(tmp_path_factory, history, ending):
    path = tmp_path_factory.mktemp("any") / f"d{ending}"
    history = [replace(decision, number=number) for number, decision in enumerate(history, start=1)]
    write_decisions(path, history, {})
    assert [row.decision for row in read_decisions(path)] == history


def test_the_command_exports_imports_and_says_what_it_did(audit, tmp_path, capsys):
    first, second = audit("first"), audit("second")
    with DecisionStore.open(first / "decisions.sqlite") as store:
        decided(store)
    for name in (file := str(tmp_path / "d.csv"),):
        assert main(["decisions", "export", str(first), "--out", name]) == 0
    assert "5 rows of history, 3 pairs decided" in capsys.readouterr().out
    for said in ("5 decisions taken over", "0 decisions taken over"):
        assert main(["decisions", "import", str(second), file]) == 0
        assert said in capsys.readouterr().out
    assert main(["decisions", "show", str(second)]) == 0
    shown = capsys.readouterr().out
    assert "3 pairs of 3 decided by Ada, Bo" in shown and "agrees on 2 of 2 pairs" in shown
    assert main(["decisions", "show", str(tmp_path)]) == 2
    assert "expected the folder of a finished audit" in capsys.readouterr().err


@pytest.mark.parametrize("ending", FILES)
def test_an_earlier_export_is_replaced_and_nothing_else(tmp_path, ending):
    path = tmp_path / f"d{ending}"
    with DecisionStore.open(tmp_path / "a.sqlite") as store, DecisionStore.open(tmp_path / "b.sqlite") as other:
        decided(store)
        write_decisions(path, store.history(), PAIRS)
        store.record(Decision(pair_id="a", verdict="unsure", person="Bo", chosen_by="gain"))
        write_decisions(path, store.history(), PAIRS)
        assert len(read_decisions(path)) == 6
        before = path.read_bytes()
        other.record(Decision(pair_id="a", verdict="unsure", person="Bo", chosen_by="gain"))
        for history in (other.history(), []):  # of another audit; fewer than the file has
            with pytest.raises(InputError, match="no earlier export of these decisions; it stays as it is"):
                write_decisions(path, history, PAIRS)
        assert path.read_bytes() == before
        write_decisions(path, store.history(), PAIRS)
        path.write_bytes(b"image,caption\n1.png,a red shoe\n")
        with pytest.raises(InputError, match="it stays as it is"):
            write_decisions(path, store.history(), PAIRS)
        assert path.read_bytes().startswith(b"image")


@pytest.mark.parametrize("ending", FILES)
def test_an_export_with_notes_of_somebody_stays(tmp_path, ending):
    path = tmp_path / f"d{ending}"
    with DecisionStore.open(tmp_path / "a.sqlite") as store:
        decided(store)
        write_decisions(path, store.history(), PAIRS)
        annotated(path)
        before = path.read_bytes()
        assert len(read_decisions(path)) == 5
        with pytest.raises(InputError, match="it stays as it is"):
            write_decisions(path, store.history(), PAIRS)
        assert path.read_bytes() == before


def annotated(path):
    """Notes beside the rows of an export, which readers leave out."""
    match path.suffix:
        case ".parquet":
            table = parquet.read_table(path)
            parquet.write_table(table.append_column("notes", pyarrow.array(["look again"] * len(table))), path)
        case ".csv":
            with path.open(newline="") as file:
                rows = list(csv.DictReader(file))
            with path.open("w", newline="") as file:
                writer = csv.DictWriter(file, [*rows[0], "notes"], restval="look again")
                writer.writeheader()
                writer.writerows(rows)
        case ".jsonl":
            path.write_text(path.read_text().replace("{", '{"notes": "look again", ', 1))
        case _:
            tasks = json.loads(path.read_text())
            tasks[0]["data"]["notes"] = "look again"
            path.write_text(json.dumps(tasks))


def test_a_file_of_few_columns_is_enough(audit, tmp_path):
    folder, path = audit(), tmp_path / "d.csv"
    path.write_text("pair_id,verdict,notes\na,mismatch,hm\n=c,match,\n")
    assert main(["decisions", "import", str(folder), str(path)]) == 0
    with DecisionStore.open(folder / "decisions.sqlite") as store:
        assert [(d.pair_id, d.verdict, d.person, d.chosen_by) for d in store.history()] == [
            ("a", "mismatch", "imported", "imported"),
            ("=c", "match", "imported", "imported"),
        ]


@pytest.mark.parametrize(
    "table",
    [
        "pair_id,image,caption,p_match,verdict\na,1.png,a red shoe,0.9,mismatch\n=c,3.png,y,0.5,match\n",
        "pair_id,image,caption,corrected_caption,verdict\na,1.png,a red shoe,,mismatch\n=c,3.png,x,y,match\n",
    ],
)
def test_in_a_table_of_pairs_the_given_caption_is_no_correction(audit, tmp_path, table):
    """As an audit's kept.csv and its pairs.parquet name them, with a column of verdicts beside."""
    folder, path = audit(), tmp_path / "d.csv"
    path.write_text(table)
    assert main(["decisions", "import", str(folder), str(path)]) == 0
    with DecisionStore.open(folder / "decisions.sqlite") as store:
        assert [(d.pair_id, d.verdict, d.caption) for d in store.history()] == [
            ("a", "mismatch", None),
            ("=c", "match", "y"),
        ]
    found = load_decisions(path).among(["=c", "a"], ["x", "a red shoe"])
    assert [(place, d.verdict, d.caption) for place, d in found.items()] == [(1, "mismatch", None), (0, "match", "y")]


def test_a_table_of_pairs_of_other_data_is_refused(audit, tmp_path, capsys):
    path = tmp_path / "d.csv"
    path.write_text("pair_id,caption,corrected_caption,verdict\na,a car,,match\n")
    assert main(["decisions", "import", str(audit()), str(path)]) == 2
    assert "was judged with the caption 'a car', but has 'a red shoe'" in capsys.readouterr().err


def test_the_same_file_again_overrides_nothing_that_was_decided_since(audit, tmp_path, capsys):
    folder, path = audit(), tmp_path / "d.csv"
    path.write_text("pair_id,verdict,person\na,match,Ada\na,mismatch,Ada\na,match,Ada\n=c,match,\n")
    assert main(["decisions", "import", str(folder), str(path)]) == 0
    with DecisionStore.open(folder / "decisions.sqlite") as store:
        assert len(store.history()) == 4 and store.current()["a"].verdict == "match"  # as the file has them
        store.record(Decision(pair_id="a", verdict="unsure", person="Ada", chosen_by="gain"))
        store.record(Decision(pair_id="=c", verdict="mismatch", person="imported", chosen_by="gain"))
    capsys.readouterr()
    path.write_text(path.read_text() + "=c,match,Bo\n")
    assert main(["decisions", "import", str(folder), str(path)]) == 0
    assert "1 decision taken over" in capsys.readouterr().out
    with DecisionStore.open(folder / "decisions.sqlite") as store:
        assert store.current("Ada")["a"].verdict == "unsure" and store.current("Bo")["=c"].verdict == "match"
        assert store.current("imported")["=c"].verdict == "mismatch" and len(store.history()) == 7


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("pair_id,verdict\na,match\nzz,match\n", "row 2: pair 'zz' is not in this audit; nothing was imported"),
        ("pair_id,verdict,given_caption\na,match,a blue shoe\n", "row 1: pair 'a' was judged with the caption 'a blue"),
        ("pair_id,verdict,partner\na,mismatch,zz\n", "partner 'zz' is no pair of this audit"),
        ("pair_id,verdict\na,match\na,maybe\n", "row 2: a verdict is 'maybe'; expected match, mismatch, unsure"),
        ("pair_id,verdict,seconds\na,match,soon\n", "row 1: seconds is 'soon'; expected a number"),
        ("pair_id,verdict,number\na,match,-1\n", "row 1: number is -1"),
        ("pair_id,verdict,at\na,match,today\n", "row 1: at of a decision is 'today'"),
        ("pair_id,opinion\na,match\n", "row 1 has no verdict"),
        ("pair_id,verdict\na,match,more\n", "row 1 has more values than there are columns"),
        ('pair_id,verdict\na,"match\n', "is no CSV"),
    ],
)
def test_rows_that_cannot_be_taken_over(audit, tmp_path, capsys, text, said):
    folder, path = audit(), tmp_path / "d.csv"
    path.write_text(text)
    assert main(["decisions", "import", str(folder), str(path)]) == 2
    assert said in capsys.readouterr().err
    with DecisionStore.open(folder / "decisions.sqlite") as store:
        assert store.history() == []


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("d.txt", b"", "ends in .txt; expected .parquet, .csv, .jsonl, .json"),
        ("d.csv", b"\xff\xfe", "is no UTF-8 text"),
        ("d.csv", b"", "is empty; expected a table with the columns pair_id and verdict"),
        ("d.jsonl", b"{}\n", "line 1 has no pair_id"),
        ("d.jsonl", b"[1]\n", "line 1 is no JSON object"),
        ("d.parquet", b"PAR1", "is no parquet table"),
        ("d.json", b"{}", "holds no list of tasks"),
        ("d.json", b"[{}]", "task 1: it lacks 'data'"),
        ("d.json", b"[", "cannot be read as JSON"),
    ],
)
def test_files_that_are_none(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_decisions(tmp_path / name)
    with pytest.raises(InputError, match="cannot be read .No such file"):
        read_decisions(tmp_path / "none.csv")


def test_what_people_decide_in_label_studio_comes_in_as_theirs(tmp_path):
    """A task that was exported, then changed and decided anew there, as Label Studio exports it."""
    path = tmp_path / "d.json"
    with DecisionStore.open(tmp_path / "a.sqlite") as store:
        decided(store)
        write_decisions(path, store.history(), PAIRS)
    tasks = json.loads(path.read_text())
    assert [task["data"]["image"] for task in tasks] == ["1.png", "2.png", "3.png"]
    tasks[2]["annotations"][0]["result"][0]["value"]["choices"] = ["mismatched"]
    tasks[2]["annotations"][0]["updated_at"] = "2026-05-01T12:00:00+02:00"
    choice = {"from_name": "match", "to_name": "image", "type": "choices", "value": {"choices": ["matched"]}, "id": "x"}
    text = {"from_name": "correction", "to_name": "image", "type": "textarea", "value": {"text": ["two shoes"]}}
    new = {"result": [choice, text], "completed_by": {"email": "cy@example.org"}, "lead_time": 3.5}
    tasks[1]["annotations"].append({**new, "created_at": "2026-04-01T12:00:00.5Z"})
    tasks[1]["annotations"].append({**new, "was_cancelled": True})
    path.write_text(json.dumps(tasks))
    rows = [row.decision for row in read_decisions(path)]
    assert len(rows) == 7
    (cy,) = (row for row in rows if row.person == "Label Studio cy@example.org")
    assert (cy.verdict, cy.caption, cy.seconds, cy.at) == ("match", "two shoes", 3.5, "2026-04-01T12:00:00.500000Z")
    (changed,) = (row for row in rows if row.person == "Label Studio")
    assert (changed.pair_id, changed.verdict, changed.at) == ("=c", "mismatch", "2026-05-01T10:00:00.000000Z")


def test_decisions_of_other_data_are_refused(audit):
    folder = audit()
    with DecisionStore.open(folder / "decisions.sqlite") as store:
        decided(store)
    for path in (folder, folder / "decisions.sqlite"):
        found = load_decisions(path)
        assert found.places_in(["x", "a"], ["", "a red shoe"]) == {"a": 1}
        with pytest.raises(InputError, match="'a' was judged with the caption 'a red shoe', but has 'a car' here"):
            found.places_in(["a"], ["a car"])
        with pytest.raises(InputError, match="none of its 3 decided pairs is among these"):
            found.places_in(["x"], ["a car"])
