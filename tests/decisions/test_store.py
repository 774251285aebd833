"""The database of decisions: what it keeps, whatever happens, and what it refuses."""

import random
import signal
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import truepair
from truepair.decisions import Decision, DecisionStore, schema
from truepair.errors import InputError

WRITER = [sys.executable, str(Path(__file__).with_name("one_by_one.py"))]
ENVIRONMENT = {"PYTHONPATH": str(Path(truepair.__file__).parents[1]), "PATH": ""}


def decided(pair, verdict="match", person="Ada", **more):
    return Decision(pair_id=pair, verdict=verdict, person=person, **{"chosen_by": "worst", **more})


@pytest.fixture
def store(tmp_path):
    with DecisionStore.open(tmp_path / "decisions.sqlite") as opened:
        yield opened


def test_what_is_recorded_is_there_after_opening_again(store):
    full = Decision(
        pair_id="a'); DROP TABLE decisions; --",
        verdict="mismatch",
        caption="ein roter Schuh 👟",
        partner="p2",
        person="Ada",
        chosen_by="gain",
        probability_chosen=0.125,
        seconds=1.5,
    )
    number = store.record(full)
    store.close()
    with DecisionStore.open(store.path, read_only=True) as again:
        (found,) = again.history()
        assert replace(found, number=None, at=None) == full and found.number == number
        assert again.current() == {full.pair_id: found} and again.count() == 1


def test_undo_is_a_row_and_goes_back_step_by_step(store):
    for pair, verdict in (("a", "match"), ("b", "match"), ("a", "mismatch")):
        store.record(decided(pair, verdict))
    store.record(decided("c", person="Bo"))
    assert [store.undo("Ada").verdict for _ in range(3)] == ["mismatch", "match", "match"]
    assert store.undo("Ada") is None
    assert list(store.current()) == ["c"] and store.count() == 1
    rows = store.history("a")
    assert [row.verdict for row in rows] == ["match", "mismatch", "match", None]
    assert [row.undoes for row in rows] == [None, None, rows[1].number, rows[0].number]
    assert len(store.history()) == 7


def test_a_correction_undone_brings_the_earlier_one_back(store):
    store.record(decided("a", "mismatch", caption="first"))
    store.record(decided("a", "mismatch", caption="second"))
    assert store.undo("Ada").caption == "second"
    assert store.current()["a"].caption == "first"


def test_several_people_the_majority_counts_and_ties_are_unsure(store):
    for person, verdict in (("Ada", "match"), ("Bo", "mismatch")):
        store.record(decided("a", verdict, person, chosen_by="gain", probability_chosen=0.5))
    assert store.current()["a"].verdict == "unsure"
    store.record(decided("a", "mismatch", "Cy", caption="better"))
    agreed = store.current()["a"]
    assert (agreed.verdict, agreed.caption, agreed.person) == ("mismatch", "better", "Ada, Bo, Cy")
    assert (agreed.chosen_by, agreed.probability_chosen) == ("gain", 0.5), "as it was chosen first"
    assert store.current("Ada")["a"].verdict == "match" and store.people() == ["Ada", "Bo", "Cy"]
    store.record(decided("a", None, "Cy"))
    assert store.current()["a"].verdict == "unsure"


def test_all_of_several_or_none(store):
    with pytest.raises(InputError, match="a verdict is 'wrong'"):
        store.record_all([decided("a"), decided("b", "wrong")])
    assert store.count() == 0
    assert len(store.record_all([decided("a"), decided("b")])) == 2


operations = st.lists(
    st.tuples(
        st.sampled_from(["Ada", "Bo"]),
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["match", "mismatch", "unsure", None, "undo"]),
    ),
    max_size=16,
)


@settings(max_examples=25, deadline=None)
@given(operations)
def test_the_store_is_a_pile_of_decisions_for_each_person(tmp_path_factory, sequence):
    """Against a list of each person's decisions, from which undo takes the last away."""
    piles = {"Ada": [], "Bo": []}
    with DecisionStore.open(tmp_path_factory.mktemp("pile") / "d.sqlite") as store:
        for person, pair, verdict in sequence:
            if verdict == "undo":
                last = store.undo(person)
                assert (last and (last.pair_id, last.verdict)) == (piles[person].pop() if piles[person] else None)
            else:
                store.record(decided(pair, verdict, person))
                piles[person].append((pair, verdict))
        for person, pile in piles.items():
            expected = {pair: verdict for pair, verdict in dict(pile).items() if verdict is not None}
            assert {pair: d.verdict for pair, d in store.current(person).items()} == expected
        everyone = {pair for pile in piles.values() for pair, verdict in dict(pile).items() if verdict}
        assert set(store.current()) == everyone and store.count() == len(everyone)
        assert len(store.history()) == len({row.at for row in store.history()}) <= len(sequence)


def test_threads_and_connections_write_side_by_side(tmp_path):
    stores = [DecisionStore.open(tmp_path / "d.sqlite") for _ in range(3)]

    def work(store, name):
        for number in range(20):
            store.record(decided(f"{name} {number}", person=name))

    threads = [threading.Thread(target=work, args=(store, f"{n}{t}")) for n, store in enumerate(stores) for t in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {store.count() for store in stores} == {120}
    times = [row.at for row in stores[0].history()]
    assert times == sorted(times) and len(set(times)) == 120
    for store in stores:
        store.close()


def test_kill_nine_in_the_middle_loses_nothing(tmp_path):
    """Twenty writers of one database, each killed after a random number of decisions; some 1,000 in all."""
    rng, path, acknowledged = random.Random(0), tmp_path / "d.sqlite", 0
    for _ in range(20):
        writer = subprocess.Popen([*WRITER, str(path), "1000"], stdout=subprocess.PIPE, env=ENVIRONMENT)
        for expected in range(rng.randint(1, 99)):
            assert int(writer.stdout.readline()) == expected
        writer.send_signal(signal.SIGKILL)
        rest = writer.stdout.read().split(b"\n")[:-1]
        acknowledged += 1 + (int(rest[-1]) if rest else expected)
        writer.wait()
        with DecisionStore.open(path) as store:
            kept = len(store.history())
            assert kept >= acknowledged
            acknowledged = kept  # one may have been kept whose word came too late
            assert store._connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_full_disk_is_a_sentence_and_loses_nothing(tmp_path):
    path = tmp_path / "d.sqlite"
    ended = subprocess.run(
        [*WRITER, str(path), "3000", "300000"], capture_output=True, text=True, env=ENVIRONMENT, timeout=60
    )
    assert ended.returncode == 3
    assert "could not be written: the disk is full" in ended.stderr and "Traceback" not in ended.stderr
    with DecisionStore.open(path) as store:
        assert len(store.history()) == len(ended.stdout.split()) > 10
        store.record(decided("after"))
        assert store._connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_an_older_version_is_migrated_and_its_copy_kept(tmp_path, monkeypatch):
    path = tmp_path / "d.sqlite"
    with DecisionStore.open(path, audit="x") as store:
        store.record(decided("a"))
    monkeypatch.setattr(schema, "STEPS", (*schema.STEPS, ("CREATE TABLE notes (text TEXT)",)))
    monkeypatch.setattr("truepair.decisions.store.STEPS", schema.STEPS)
    with pytest.raises(InputError, match="version 1 of its tables, and reading alone changes nothing"):
        DecisionStore.open(path, read_only=True)
    with DecisionStore.open(path, audit="x") as store:
        assert list(store.current()) == ["a"]
        store._connection.execute("SELECT * FROM notes")
    copy = sqlite3.connect(tmp_path / "d.version1.sqlite")
    assert copy.execute("PRAGMA user_version").fetchone() == (1,)
    assert copy.execute("SELECT pair_id FROM decisions").fetchall() == [("a",)]
    monkeypatch.undo()
    with pytest.raises(InputError, match="newer truepair .version 2"):
        DecisionStore.open(path)


def test_a_migration_that_fails_changes_nothing(tmp_path, monkeypatch):
    path = tmp_path / "d.sqlite"
    DecisionStore.open(path).close()
    monkeypatch.setattr(schema, "STEPS", (*schema.STEPS, ("CREATE TABLE notes (text TEXT)", "no statement")))
    with pytest.raises(InputError, match="could not be used"):
        DecisionStore.open(path)
    monkeypatch.undo()
    DecisionStore.open(path).close()


def test_what_is_no_database_of_decisions_is_refused_and_left(tmp_path):
    text, other, folder = tmp_path / "a.txt", tmp_path / "b.sqlite", tmp_path / "c"
    text.write_text("no database, but long enough to be looked at as one " * 20)
    sqlite3.connect(other).execute("CREATE TABLE t (x)").connection.close()
    folder.mkdir()
    before = text.read_bytes(), other.read_bytes()
    for path, said in ((text, "is no database of decisions"), (other, "of another program"), (folder, "directory")):
        for read_only in (False, True):
            with pytest.raises(InputError, match=f"{path.name}.*{said}"):
                DecisionStore.open(path, read_only)
    assert (text.read_bytes(), other.read_bytes()) == before
    with pytest.raises(InputError, match="does not exist: nothing was decided"):
        DecisionStore.open(tmp_path / "none.sqlite", read_only=True)
    with pytest.raises(InputError, match="check that its folder exists"):
        DecisionStore.open(tmp_path / "no" / "d.sqlite")


def test_a_damaged_database_is_a_sentence(tmp_path):
    path = tmp_path / "d.sqlite"
    with DecisionStore.open(path) as store:
        store.record_all([decided(f"pair {number}" * 10) for number in range(500)])
    damaged = bytearray(path.read_bytes())
    damaged[5000:40000] = b"\xff" * 35000
    path.write_bytes(bytes(damaged))
    with pytest.raises(InputError, match="is damaged; restore it from a copy"):
        DecisionStore.open(path).history()


def test_another_audit_is_refused(tmp_path):
    path = tmp_path / "d.sqlite"
    DecisionStore.open(path).close()
    DecisionStore.open(path, audit="first").close()
    DecisionStore.open(path).close()
    for read_only in (False, True):
        with pytest.raises(InputError, match="another audit's pairs"):
            DecisionStore.open(path, read_only, audit="second")


def test_reading_alone_changes_nothing(store):
    store.record(decided("a"))
    with DecisionStore.open(store.path, read_only=True) as reader:
        with pytest.raises(InputError, match="open for reading alone"):
            reader.record(decided("b"))
        store.record(decided("b"))
        assert reader.count() == 2, "what others write meanwhile is seen"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"pair": ""}, "pair_id of a decision is ''"),
        ({"pair": "a\0b"}, "pair_id"),
        ({"pair": "\ud800"}, "no UTF-8"),
        ({"pair": "a", "verdict": "yes"}, "a verdict is 'yes'"),
        ({"pair": "a", "person": "  "}, "person of a decision"),
        ({"pair": "a", "person": "x" * 201}, "201 characters"),
        ({"pair": "a", "caption": " "}, "caption of a decision"),
        ({"pair": "a", "probability_chosen": 0.0}, "above 0, at most 1"),
        ({"pair": "a", "probability_chosen": float("nan")}, "above 0, at most 1"),
        ({"pair": "a", "probability_chosen": True}, "above 0, at most 1"),
        ({"pair": "a", "seconds": -1}, "number of seconds"),
        ({"pair": "a", "at": "2026-01-31 12:00"}, "expected a time like"),
        ({"pair": "a", "at": "2999-01-31T12:00:00.000000Z"}, "that is past"),
    ],
)
def test_values_that_cannot_be_kept(store, wrong, said):
    pair = wrong.pop("pair")
    with pytest.raises(InputError, match=said):
        store.record(decided(pair, **wrong))
    assert store.history() == []


def test_merging_keeps_times_undo_and_order_and_is_done_once(tmp_path):
    with DecisionStore.open(tmp_path / "a.sqlite") as a, DecisionStore.open(tmp_path / "b.sqlite") as b:
        a.record(decided("p", "mismatch", "Ada"))
        b.record(decided("q", person="Bo"))
        b.record(decided("p", "match", "Bo"))
        b.undo("Bo")
        assert (a.merge(b.history()), a.merge(b.history())) == (3, 0)
        assert [(row.pair_id, row.verdict) for row in a.history()] == [
            ("p", "mismatch"),
            ("q", "match"),
            ("p", "match"),
            ("p", None),
        ]
        assert set(a.current()) == {"p", "q"} and a.current()["p"].verdict == "mismatch"
        assert a.undo("Bo").pair_id == "q", "what was undone there is undone here"


def test_blank_cells_of_a_table_take_no_place_in_the_history(store):
    """The pair is drawn at random later, and counts as drawn."""
    rows = [decided("a", None, "Bo"), decided("b", "match", "Bo"), decided("b", None, "Bo")]
    assert store.merge(rows) == 2 and [d.pair_id for d in store.history()] == ["b", "b"]
    store.record(decided("a", None, "Cy"))
    store.record(decided("a", "mismatch", chosen_by="gain", probability_chosen=0.01))
    assert store.current()["a"].chosen_by == "gain" and store.current()["a"].probability_chosen == 0.01


def test_a_request_that_is_made_again_is_kept_once(tmp_path):
    with DecisionStore.open(tmp_path / "d.sqlite") as store:
        first = store.record_all([decided("a"), decided("b")], ["r1", "r2"])
        assert store.record_all([decided("b"), decided("c")], ["r2", "r3"]) == [first[1], first[1] + 1]
        taken = store.undo("Ada", "u1")
        assert taken is not None and taken.pair_id == "c" and store.undo("Ada", "u1") == taken
        assert len(store.history()) == 4 and store.count() == 2
        assert [row.number for row in store.history(after=first[1])] == [first[1] + 1, first[1] + 2]
    with DecisionStore.open(tmp_path / "d.sqlite") as store:
        assert store.record_all([decided("a")], ["r1"]) == first[:1] and len(store.history()) == 4
