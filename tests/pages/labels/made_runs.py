"""Finished run folders that learned from labels, as `truepair train` leaves them, made by hand."""

import json

import numpy as np
from pyarrow import parquet
from pyarrow import table as arrow_table

CLASSES = ["art", "<b>war</b>", "sport"]


def columns_of_a_run(pairs=30, seed=0):
    """Class of pair p is p % 3 in truth; every fifth label is wrong, and all but one of these are seen through."""
    rng = np.random.default_rng(seed)
    truth = np.arange(pairs) % 3
    given = np.where(np.arange(pairs) % 5 == 0, (truth + 1) % 3, truth)
    distribution = np.full((pairs, 3), 0.1)
    distribution[np.arange(pairs), truth] = 0.5 + 0.3 * rng.random(pairs)
    distribution[5] = [0.2, 0.2, 0.2]
    distribution[5, given[5]] = 0.6
    distribution /= distribution.sum(1, keepdims=True)
    corrected = distribution.argmax(1)
    return {
        "pair_id": [f"p{pair}" for pair in range(pairs)],
        "row": np.arange(pairs),
        "image_index": np.arange(pairs),
        "text_index": np.arange(pairs),
        "image": [f"image-{pair}" for pair in range(pairs)],
        "text": [f"text-{pair}" for pair in range(pairs)],
        "caption": [f"caption {pair} <script> & $x$" for pair in range(pairs)],
        "given_class": given,
        "given_label": [CLASSES[label] for label in given],
        "corrected_class": corrected,
        "corrected_label": [CLASSES[label] for label in corrected],
        "label_belief": distribution[np.arange(pairs), given].astype(np.float32),
        "confidence": distribution.max(1).astype(np.float32),
        "label_distribution": distribution.astype(np.float32).tolist(),
        "true_class": truth,
        "true_label": [CLASSES[label] for label in truth],
        "wrong_label": given != truth,
    }


RESULT = ("method", "pairs", "best_epoch", "dev", "test", "division", "detection")


def write_run(folder, columns, result=None, **config):
    folder.mkdir(parents=True)
    kept = {"method": {"name": "uot-rcl"}, "classes": CLASSES, "training": {"seed": 0}, "data": None, **config}
    (folder / "config.json").write_text(json.dumps(kept))
    parquet.write_table(arrow_table(columns), folder / "pairs.parquet")
    (folder / "result.json").write_text(json.dumps(dict.fromkeys(RESULT) | (result or {})))
    return folder
