"""`pairs.parquet`: the same columns of a run and of an audit, joinable; older layouts are read."""

from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

import truepair
from tests.audit.small_audits import QUICK_OPTIONS
from tests.methods.labelled import labelled_pairs
from truepair.data.pair_columns import AUDIT, COLUMNS, LABELS, RUN, SHARED, markdown
from truepair.data.pairs import Pairs
from truepair.engines.config import GlobalConfig, MLPConfig
from truepair.errors import RunFolderError
from truepair.training.pair_table import read_pair_table

DOCS = Path(__file__).parents[2] / "docs" / "pairs.md"
TRAINED = {"epochs": 3, "batch_size": 16, "minimum_count": 1}


@pytest.fixture(scope="module")
def noisy(tiny) -> Pairs:
    """Every third pair is left out, so that rows and places differ; the ids are words."""
    pairs = truepair.inject_noise(truepair.load(tiny), 0.3, seed=1)
    named = Pairs(**{**vars(pairs), "pair_ids": [f"pair {row}" for row in range(len(pairs))]})
    return named.take(np.flatnonzero(np.arange(len(named)) % 3 > 0))


@pytest.fixture(scope="module")
def tables(noisy, tmp_path_factory):
    """The table of a run and that of an audit by this run, of the same pairs."""
    folder = tmp_path_factory.mktemp("tables")
    truepair.fit(
        noisy, method="crcl", out=folder / "run", setup=truepair.Setup(model=GlobalConfig(width=16)), **TRAINED
    )
    truepair.audit(noisy, folder / "audit", run=folder / "run", options=QUICK_OPTIONS["options"], progress=False)
    return [parquet.read_table(folder / name / "pairs.parquet") for name in ("run", "audit")]


def test_run_and_audit_join_on_the_id(tables, noisy):
    run, audit = tables
    both = run.join(audit.select(["pair_id", "row", "caption", "p_match", "flagged"]), "pair_id", right_suffix="_audit")
    assert both.num_rows == len(noisy) == 64
    assert both["row"].to_pylist() == both["row_audit"].to_pylist()
    assert sorted(both["row"].to_pylist()) == noisy.source_rows.tolist()
    assert both["caption"].to_pylist() == both["caption_audit"].to_pylist()
    assert both["pair_id"].to_pylist() == [f"pair {row}" for row in both["row"].to_pylist()]
    assert both["p_match"].to_pylist() != both["p_match_audit"].to_pylist()


def test_every_column_has_the_type_and_the_words_of_the_one_description(tables):
    for table, own in zip(tables, (RUN, AUDIT), strict=True):
        names = set(table.column_names)
        assert set(SHARED) | {name for name in own if not name.endswith("…")} == {
            name for name in names if not name.startswith(("memory_", "indicator_"))
        }
        assert list(table.column_names)[: len(SHARED) - 1] == list(SHARED)[:-1]
        for field in table.schema:
            assert field.metadata[b"description"]
            if field.name in COLUMNS:
                kind, text = COLUMNS[field.name]
                assert str(field.type) == {"float32": "float"}.get(kind, kind)
                assert field.metadata[b"description"].decode() == text


def test_a_run_that_learns_from_labels_has_the_columns_of_labels(tmp_path):
    run = truepair.fit(
        labelled_pairs(40),
        method="ce",
        out=tmp_path / "run",
        setup=truepair.Setup(model=MLPConfig(width=16)),
        **TRAINED,
    )
    names = set(read_pair_table(run.folder.pairs).column_names)
    unknown = {"true_label", "wrong_label", "true_class"}
    assert set(LABELS) - unknown <= names
    assert "p_match" not in names
    assert "flagged" in names


def test_the_docs_say_the_same():
    assert markdown() in DOCS.read_text(encoding="utf-8")


def test_the_table_of_an_older_version_is_read(tmp_path):
    old = {"pair_id": [0, 1], "image_id": ["a", "b"], "text_id": ["s", "t"], "caption": ["x", "y"]}
    old |= {"belief": [0.25, 0.75], "taken_as_matched": [False, True], "memory_label": [0.25, 0.75]}
    parquet.write_table(pyarrow.table(old), tmp_path / "pairs.parquet")
    found = read_pair_table(tmp_path / "pairs.parquet", ["image", "p_match"]).to_pydict()
    assert found == {
        "pair_id": ["0", "1"], "row": [0, 1], "image": ["a", "b"], "text": ["s", "t"], "caption": ["x", "y"],
        "p_match": [0.25, 0.75], "flagged": [True, False], "memory_label": [0.25, 0.75],
    }  # fmt: skip
    labels = {**old, "label_belief": [0.5, 1.0]}
    parquet.write_table(pyarrow.table(labels), tmp_path / "pairs.parquet")
    assert "p_match" not in read_pair_table(tmp_path / "pairs.parquet").column_names


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.unlink(), "holds no pairs.parquet"),
        (lambda path: path.write_bytes(b"PAR1 and then nothing"), "cannot be read as Parquet"),
        (lambda path: parquet.write_table(pyarrow.table({"pair_id": ["a"]}), path), "lacks the column p_match"),
        (lambda path: parquet.write_table(pyarrow.table({"p_match": np.empty(0)}), path), "holds no pair"),
    ],
)
def test_what_is_no_table_of_a_run_is_refused(tmp_path, damage, message):
    path = tmp_path / "pairs.parquet"
    path.write_bytes(b"")
    damage(path)
    with pytest.raises(RunFolderError, match=message):
        read_pair_table(path, ["p_match"])
