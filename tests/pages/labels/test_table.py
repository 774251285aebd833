"""The label table of a run: what is read, how it is ranked, and what is refused."""

import json

import numpy as np
import pytest

from tests.pages.labels.made_runs import CLASSES, columns_of_a_run, write_run
from truepair.errors import InputError, RunFolderError
from truepair.pages.labels.table import read_label_table
from truepair.training.run_folder import RunFolder


def read(folder):
    return read_label_table(RunFolder(folder))


def test_reads_what_the_run_wrote(tmp_path):
    columns = columns_of_a_run()
    table = read(write_run(tmp_path / "run", columns))
    assert len(table) == 30
    assert table.classes == tuple(CLASSES)
    for name, column in [
        ("row", "row"), ("image_index", "image_index"), ("given", "given_class"), ("truth", "true_class"),
        ("corrected", "corrected_class"),
    ]:  # fmt: skip
        assert getattr(table, name).dtype == np.int64
        assert getattr(table, name).tolist() == columns[column].tolist()
    for name in ("pair_id", "image", "text", "caption"):
        assert list(getattr(table, name)) == columns[name]
    assert table.belief.tolist() == columns["label_belief"].tolist()
    assert table.confidence.tolist() == columns["confidence"].tolist()
    np.testing.assert_array_equal(table.distribution, np.array(columns["label_distribution"], np.float32))


def test_the_truth_may_be_unknown(tmp_path):
    columns = columns_of_a_run()
    for name in ("true_class", "true_label", "wrong_label"):
        del columns[name]
    assert read(write_run(tmp_path / "run", columns)).truth is None


def test_order_is_changed_first_then_by_suspicion_then_by_pair(tmp_path):
    columns = columns_of_a_run(pairs=60, seed=1)
    for name in ("label_belief", "confidence"):
        columns[name] = np.round(columns[name], 1)  # ties
    table = read(write_run(tmp_path / "run", columns))

    def key(row):
        changed = columns["corrected_class"][row] != columns["given_class"][row]
        return (not changed, -float(columns["confidence"][row]) * (1 - float(columns["label_belief"][row])), row)

    assert table.order.tolist() == sorted(range(60), key=key)
    assert ((table.suspicion >= 0) & (table.suspicion <= 1)).all()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("given_class", np.full(30, 3), "given_class is not classes in 0 … 2"),
        ("given_class", np.full(30, -1), "given_class is not classes"),
        ("given_class", np.zeros(30), "given_class is no int64 .it holds double"),
        ("true_class", np.full(30, 7), "true_class is not classes"),
        ("image_index", np.full(30, -1), "image_index is not whole numbers"),
        ("label_belief", np.full(30, 1.5), r"label_belief\[0\] is 1.5"),
        ("confidence", np.full(30, np.nan), r"confidence\[0\] is nan"),
        ("confidence", [None] * 30, "confidence"),
        ("label_distribution", [[0.5, 0.5]] * 30, "does not hold 3 numbers for each of 30 pairs"),
        ("label_distribution", [[0.5] * 3] * 28 + [[0.5] * 2, [0.5] * 4], "does not hold 3 numbers"),
        ("label_distribution", [[0.5, -0.5, 1.0]] * 30, r"distribution\[0, 1\] is -0.5"),
        ("label_distribution", np.zeros(30), "label_distribution is no list"),
    ],
)
def test_a_damaged_table_is_refused(name, value, message, tmp_path):
    folder = write_run(tmp_path / "run", {**columns_of_a_run(), name: value})
    with pytest.raises(RunFolderError, match=message) as caught:
        read(folder)
    assert "restore it from a copy" in str(caught.value)


def test_runs_that_cannot_be_inspected_are_refused(tmp_path):
    with pytest.raises(RunFolderError, match="not a run folder"):
        read(tmp_path / "missing")
    columns = columns_of_a_run()
    pairs_method = {name: values for name, values in columns.items() if "label" not in name}
    other = write_run(tmp_path / "other", pairs_method, method={"name": "crcl"}, classes=[])
    with pytest.raises(InputError, match="other was trained with --method crcl and holds nothing about class labels"):
        read(other)
    unfinished = write_run(tmp_path / "unfinished", columns)
    (unfinished / "result.json").unlink()
    with pytest.raises(RunFolderError, match="holds an unfinished run; continue it with: truepair train --resume"):
        read(unfinished)
    lost = write_run(tmp_path / "lost", columns)
    (lost / "pairs.parquet").unlink()
    with pytest.raises(RunFolderError, match="holds no pairs.parquet"):
        read(lost)
    broken = write_run(tmp_path / "broken", columns)
    (broken / "pairs.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(RunFolderError, match=r"pairs.parquet cannot be read"):
        read(broken)
    old = write_run(tmp_path / "old", columns)
    (old / "config.json").write_text(json.dumps({"method": {"name": "mrl"}}))
    with pytest.raises(InputError, match="--method mrl and holds nothing about class labels"):
        read(old)
