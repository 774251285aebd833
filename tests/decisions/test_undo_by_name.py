"""Taking back the very decisions that are named, whatever the same person decided elsewhere since."""

import pytest

from truepair.decisions import Decision, DecisionStore
from truepair.errors import InputError


def decided(pair, verdict="match", person="Ada"):
    return Decision(pair_id=pair, verdict=verdict, person=person, chosen_by="worst")


def keep(store, *pairs, verdict="match", person="Ada", tab="tab"):
    names = [f"{tab} {pair} {verdict}" for pair in pairs]
    store.record_all([decided(pair, verdict, person) for pair in pairs], names)
    return names


def outcome(undone):
    return [(each.name, each.left) for each in undone]


@pytest.fixture
def store(tmp_path):
    with DecisionStore.open(tmp_path / "decisions.sqlite") as opened:
        yield opened


def test_what_is_named_is_taken_back_the_last_one_first(store):
    first = keep(store, "a", "b", "c", tab="first")
    keep(store, "d", "e", tab="second")
    assert outcome(store.undo_named("Ada", first, "u")) == [(name, None) for name in reversed(first)]
    assert list(store.current("Ada")) == ["d", "e"]
    assert [row.undoes for row in store.history()] == [None] * 5 + [3, 2, 1]


def test_one_that_was_decided_anew_is_left_and_the_others_are_taken_back(store):
    names = keep(store, "a", "b", tab="first")
    keep(store, "b", verdict="mismatch", tab="second")
    changed, taken = store.undo_named("Ada", names, "u")
    assert (changed.left, changed.decision.pair_id, taken.left, taken.decision.pair_id) == ("changed", "b", None, "a")
    assert {pair: each.verdict for pair, each in store.current("Ada").items()} == {"b": "mismatch"}


def test_what_was_decided_elsewhere_and_taken_back_again_is_no_change(store):
    (name,) = keep(store, "a", tab="first")
    again = keep(store, "a", verdict="mismatch", tab="second")
    store.undo_named("Ada", again, "u1")
    assert store.current("Ada")["a"].verdict == "match"
    assert outcome(store.undo_named("Ada", [name], "u2")) == [(name, None)]
    assert store.current("Ada") == {}


def test_a_correction_and_the_decision_before_it_are_taken_back_together(store):
    names = [*keep(store, "a"), *keep(store, "a", verdict="mismatch")]
    assert outcome(store.undo_named("Ada", names, "u")) == [(name, None) for name in reversed(names)]
    assert store.current() == {}


def test_what_was_taken_back_is_not_taken_back_twice(store):
    names = keep(store, "a", "b")
    assert store.undo("Ada").pair_id == "b"
    assert outcome(store.undo_named("Ada", names, "u")) == [(names[1], "taken back"), (names[0], None)]
    assert len(store.history()) == 4


def test_the_same_request_again_says_the_same_and_writes_nothing(store):
    names = keep(store, "a", "b", tab="first")
    keep(store, "b", verdict="unsure", tab="second")
    asked = [outcome(store.undo_named("Ada", names, "u")) for _ in range(2)]
    assert asked[0] == asked[1] == [(names[1], "changed"), (names[0], None)]
    assert len(store.history()) == 4


def test_names_of_nobody_of_others_and_of_undos_are_unknown(store):
    (bo,) = keep(store, "a", person="Bo")
    (mine,) = keep(store, "b")
    store.undo_named("Ada", [mine], "u")
    names = ["none", bo, f"u/{mine}"]
    assert [each.left for each in store.undo_named("Ada", names, "v")] == ["unknown"] * 3
    assert list(store.current()) == ["a"]


def test_all_is_written_or_nothing(store, monkeypatch):
    names = keep(store, "a", "b")
    insert, calls = store._insert, []

    def full_at_the_second(decision):
        calls.append(decision)
        if len(calls) == 2:
            raise InputError("the disk is full")
        return insert(decision)

    monkeypatch.setattr(store, "_insert", full_at_the_second)
    with pytest.raises(InputError, match="the disk is full"):
        store.undo_named("Ada", names, "u")
    assert len(store.history()) == 2 and store.count() == 2
