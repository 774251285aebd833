"""Audits of embeddings: the mismatches that are made, a whole small cell, and the table."""

import numpy as np
import pytest

from truepair.reproduce.cells import Cell, Context, Places
from truepair.reproduce.embedding_audits import NOISES, Embedded, embedding_cells, mismatch
from truepair.reproduce.render.audit import embedding_audits
from truepair.reproduce.tables import Filled, Table


def pairs(images, captions=2, width=5):
    """Vectors of some images with several texts each; the text of pair i is told by its first number."""
    rng = np.random.default_rng(3)
    image = np.repeat(np.arange(images), captions)
    texts = rng.normal(size=(len(image), width))
    texts[:, 0] = np.arange(len(image))
    sides = rng.normal(size=(images, width))
    return Embedded(sides[image] / np.linalg.norm(sides[image], axis=1, keepdims=True), texts, image)


@pytest.mark.parametrize("kind", ["random", "near"])
def test_the_share_asked_for_is_mismatched_and_the_rest_stays(kind):
    clean = pairs(50)
    noisy, mismatched = mismatch(clean, kind, 0.4, seed=1)
    source = noisy.texts[:, 0].astype(int)
    assert (mismatched == (clean.image[source] != clean.image)).all()
    assert mismatched.sum() == 40 if kind == "near" else 35 <= mismatched.sum() <= 40
    assert (source[~mismatched] // 2 == clean.image[~mismatched]).all()
    assert (noisy.images == clean.images).all() and not mismatch(clean, kind, 0.0, seed=1)[1].any()
    if kind == "random":
        assert sorted(source) == list(range(100))


def test_a_near_mismatch_has_a_text_of_the_image_most_like_its_own():
    clean = pairs(12)
    noisy, mismatched = mismatch(clean, "near", 0.5, seed=0)
    for row in np.flatnonzero(mismatched):
        others = [other for other in range(24) if clean.image[other] != clean.image[row]]
        nearest = max(others, key=lambda other: float(clean.images[row] @ clean.images[other]))
        assert clean.image[int(noisy.texts[row, 0])] == clean.image[nearest]


def test_a_cell_trains_embeds_audits_and_is_shown(tiny, tmp_path, in_this_process):
    at = Context("audit-embeddings", {}, {})
    options = "--method infonce --epochs 1 --width 8 --minimum-count 1"
    (cell,) = embedding_cells(at, data=tiny.name, options=options, seeds=[2])
    assert isinstance(cell, Cell) and cell.facts["seed"] == 2
    record = cell.measure(Places(tiny.parent, tmp_path / "runs"))
    assert [(audit["kind"], audit["noise"]) for audit in record["audits"]] == [*NOISES]
    assert all(audit["auroc"] > 0.3 and audit["flagged"] <= 1 for audit in record["audits"][1:])
    for audit in record["audits"]:
        audit["near"] = audit["near"] or [0.0, 0.0, 0.5]
    record |= {"cell": cell.facts, "command": cell.command, "date": "2026-01-01"}
    shown = embedding_audits(None, Filled(Table("audit-embeddings", "", [cell], {}), [record]))
    assert "`tiny` near 20 %" in shown and "`tiny` without noise | 0.0 |" in shown
