"""The pairs of an audit's folder, and its database of decisions."""

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from truepair.decisions import Decision
from truepair.decisions.population import Population, decisions_of
from truepair.errors import InputError


def write(folder, *, group=None, **columns):
    folder.mkdir(exist_ok=True)
    names = {
        "pair_id": ["a", "b", "c"],
        "image": ["1", "2", None],
        "caption": ["x", "", "ünf"],
        "p_match": [0.1, 0.5, 1],
    }
    table = pyarrow.table({**names, **columns})
    parquet.write_table(table, folder / "pairs.parquet", row_group_size=group)
    return folder


def test_the_digest_is_of_the_texts_however_they_are_cut(tmp_path):
    one, two = (Population.of_audit(write(tmp_path / str(size), group=size)).digest for size in (1, 3))
    assert one == two
    other = [
        Population.of_audit(write(tmp_path / f"c{n}", caption=captions)).digest
        for n, captions in enumerate((["xü", "", "nf"], ["", "x", "ünf"], ["x", "", "unf"]))
    ]
    assert len({one, *other}) == 4
    assert Population.of_audit(write(tmp_path / "p", p_match=[0.5, 0.5, 0.5])).digest == one, "not of what is believed"


def test_what_was_believed_without_decisions_is_read(tmp_path):
    pairs = Population.of_audit(write(tmp_path / "a", p_match_undecided=np.float32([0.25, 0.5, 0.75])))
    assert pairs.p_match.tolist() == [0.25, 0.5, 0.75] and pairs.rows == {"a": 0, "b": 1, "c": 2}


def test_decisions_lie_beside_the_audit_and_belong_to_it(tmp_path):
    folder = write(tmp_path / "a")
    store, pairs = decisions_of(folder)
    with store:
        store.record(Decision(pair_id="b", verdict="match", person="Ada", chosen_by="worst"))
    assert (folder / "decisions.sqlite").exists() and len(pairs) == 3
    write(folder, caption=["other", "", ""])
    with pytest.raises(InputError, match="another audit's pairs"):
        decisions_of(folder)


def test_no_audit(tmp_path):
    with pytest.raises(InputError, match="pairs.parquet cannot be read .No such file.*finished audit"):
        Population.of_audit(tmp_path)
    (tmp_path / "pairs.parquet").write_text("no table")
    with pytest.raises(InputError, match="pairs.parquet cannot be read"):
        Population.of_audit(tmp_path)
    parquet.write_table(pyarrow.table({"pair_id": ["a"], "image": ["i"], "caption": ["c"]}), tmp_path / "pairs.parquet")
    with pytest.raises(InputError, match="lacks the column p_match"):
        Population.of_audit(tmp_path)
