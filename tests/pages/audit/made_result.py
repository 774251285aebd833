"""Audits made by hand, with everything that a report must survive."""

import numpy as np

from truepair.audit.result import AuditResult, DuplicateGroup, Fault, Rematch, Verdict
from truepair.data.collection import PairsCollection, Problem
from truepair.data.pairs import Images, Pairs, Texts

HOSTILE = "<script>alert(1)</script>"
NOTHING = np.empty(0, dtype=np.int64)
NO_REMATCH = Rematch(NOTHING, NOTHING, np.empty(0, np.float32), NOTHING, np.empty(0, np.float32), NOTHING)


def made_collection(size=40, *, pictures=True, seed=0):
    rng = np.random.default_rng(seed)
    ids = tuple(f"dir/image {row}.png" for row in range(size))
    captions = [f"caption {row}" for row in range(size)]
    captions[0], captions[1] = HOSTILE, "long " * 5000
    captions[2], captions[3] = "half \ud800 \x1b[31m \u202e{{ 7 * 7 }}", ""
    pixels = rng.integers(0, 256, (size, 20, 30, 3), dtype=np.uint8) if pictures else None
    images = Images(rng.normal(size=(size, 4)).astype(np.float32), ids, pixels)
    index = np.arange(size, dtype=np.int64)
    names = [f"p{row}" for row in range(size)]
    pairs = Pairs(images, Texts(tuple(captions), ids), index, index, name="made <b>up</b>", pair_ids=names)
    return PairsCollection(pairs)


def made_result(*, collection=None, truth=True, clean=False, seed=0):
    """An audit of the rows but 5 and 6 of a collection: the first quarter of them is flagged."""
    collection = made_collection() if collection is None else collection
    rng = np.random.default_rng(seed)
    rows = np.delete(np.arange(len(collection)), [5, 6])
    size = len(rows)
    flagged = np.arange(size) < size // 4
    p_match = np.where(flagged, np.linspace(0, 0.45, size), np.linspace(0.5, 1, size)).astype(np.float32)
    rematch = Rematch(
        rows=np.array([0, 1, 2, 3]),
        caption_from=np.array([1, 0, -1, len(collection) - 1]),
        caption_fit=np.array([0.9, 0.8, 0.0, 0.7], np.float32),
        image_from=np.array([1, 0, 11, -1]),
        image_fit=np.array([0.6, 0.5, 0.4, 0.0], np.float32),
        swap_with=np.array([1, 0, -1, -1]),
    )
    faults = [
        Fault("shifted-captions", np.array([7, 8, 9]), f"shifted by 50 % {HOSTILE}", 1, np.array([8, 9, -1])),
        Fault("one-colour-picture", np.array([20]), "1 picture holds one colour \ud800"),
    ]
    problems = [
        Problem("x.png", "table.csv", 3, "missing-picture", f"x.png is not there; {HOSTILE}"),
        Problem("p1", "table.csv", 1, "long-caption", "cut", used=True),
        Problem("y.png", "", -1, "missing-picture", "half \ud800"),
    ]
    bins = [
        {"low": 0.0, "high": 0.5, "pairs": 9, "p_match": 0.2, "matched": 0.1},
        {"low": 0.5, "high": 0.6, "pairs": 0, "p_match": None, "matched": None},
        {"low": 0.6, "high": 1.0, "pairs": 29, "p_match": 0.9, "matched": 0.95},
    ]
    scores = {
        "auroc": 0.98,
        "average_precision": 0.9,
        "f1": None,
        "calibration_error": float("nan"),
        "reliability": bins,
    }
    verdict = (
        Verdict(
            np.linspace(0.3, 1, size).astype(np.float32), np.zeros(size, bool), 0.004, 0.0, 0.011, False, "no group"
        )
        if clean
        else Verdict(p_match, flagged, 0.38, 0.36, 0.4, True, None, {"weights": np.float32([1, np.nan]), "x": np.inf})
    )
    return AuditResult(
        collection=collection,
        scored_by="cross-fitting",
        rows=rows,
        similarity=rng.uniform(-1, 1, size).astype(np.float32),
        indicators={"matching": p_match, "rank": np.ones(size, np.float32), "memory": np.zeros(size, np.float32)},
        verdict=verdict,
        reasons=[f"because {HOSTILE}" if mark else "" for mark in verdict.flagged],
        rematch=NO_REMATCH if clean else rematch,
        duplicates=[
            DuplicateGroup("same-image", np.array([9, 12, 22])),
            DuplicateGroup("near-image", np.array([10, 11])),
            DuplicateGroup("near-image", np.array([12, 13])),
        ],
        faults=[] if clean else faults,
        problems=[] if clean else problems,
        mismatched=flagged if truth else None,
        scores=scores if truth else None,
        seconds={"train": 61.0, "score": 2.0},
        options={"seed": 0, "paths": ("a", "b")},
    )
