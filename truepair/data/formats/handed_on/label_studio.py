"""Label Studio: tasks for people to look at, with what the audit believes as predictions.

`tasks.json` is a list of tasks; `labelling.xml` the configuration they go with. Pictures are served from this machine
(LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true, LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT= the folder). What people decide
is read back from Label Studio's JSON export.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from truepair import __version__
from truepair.data.collection import Collection, PairsCollection
from truepair.data.formats.handed_on.layout import Layout, rounded, scores_of
from truepair.data.formats.handed_on.pictures import WrittenPictures, check_pictures
from truepair.data.selection import Selection
from truepair.errors import InputError

MATCHED, MISMATCHED, UNSURE = "matched", "mismatched", "unsure"
CONTROL, PICTURE, CORRECTION = "match", "image", "correction"
CONFIGURATION = f"""\
<View>
  <Image name="{PICTURE}" value="$image"/>
  <Text name="caption" value="$caption"/>
  <Choices name="{CONTROL}" toName="{PICTURE}" choice="single" showInline="true">
    <Choice value="{MATCHED}"/>
    <Choice value="{MISMATCHED}"/>
    <Choice value="{UNSURE}"/>
  </Choices>
  <TextArea name="{CORRECTION}" toName="{PICTURE}" maxSubmissions="1" placeholder="a caption that fits"/>
</View>
"""


class LabelStudio(Layout):
    """`label-studio/`: a task for each flagged pair, the most suspicious first, their pictures, the configuration."""

    holds = "label-studio"

    def check(self, collection: Collection) -> None:
        check_pictures(collection, "Label Studio")

    def write(self, collection: Collection, selection: Selection, folder: Path) -> None:
        assert isinstance(collection, PairsCollection)
        target, scores = folder / self.holds, scores_of(selection)
        target.mkdir()
        pictures = WrittenPictures(collection, target / "pictures")
        flagged = np.flatnonzero(selection.flagged)
        order = flagged[np.argsort(scores[flagged], kind="stable")].tolist()
        tasks = [task(collection, row, pictures.name(row), rounded(scores[row]) or 0.0) for row in order]
        (target / "tasks.json").write_text(json.dumps(tasks, ensure_ascii=False, indent=1), encoding="utf-8")
        (target / "labelling.xml").write_text(CONFIGURATION, encoding="utf-8")


def task(collection: Collection, row: int, picture: str, p_match: float) -> dict[str, Any]:
    """A task of one flagged pair; the score of its prediction is how sure that is."""
    pair_id, caption = collection.ids(row, row + 1)[0], collection.captions(row, row + 1)[0]
    choice = {
        "id": f"pair-{row}",
        "from_name": CONTROL,
        "to_name": PICTURE,
        "type": "choices",
        "value": {"choices": [MISMATCHED]},
    }
    prediction = {"model_version": f"truepair {__version__}", "score": round(1 - p_match, 6), "result": [choice]}
    image = f"/data/local-files/?d=pictures/{quote(picture)}"
    return {
        "data": {"image": image, "caption": caption, "pair_id": pair_id, "p_match": p_match},
        "predictions": [prediction],
    }


def read_decisions(path: Path) -> dict[str, bool]:
    """Pair id → whether people say it matches, of the tasks that they decided; the last annotation of a task counts.

    Args:
        path: Label Studio's JSON export of tasks that `LabelStudio` wrote.

    Raises:
        InputError: it is none; the message names the task.
    """
    try:
        tasks = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read as JSON ({error}); expected Label Studio's JSON export") from error
    if not isinstance(tasks, list):
        raise InputError(f"{path} holds no list of tasks; expected Label Studio's JSON export, not JSON-MIN")
    found: dict[str, bool] = {}
    for number, entry in enumerate(tasks):
        try:
            pair_id = entry["data"]["pair_id"]
            answers = [
                choice
                for annotation in entry.get("annotations", [])
                if not annotation.get("was_cancelled")
                for result in annotation["result"]
                if result["from_name"] == CONTROL
                for choice in result["value"]["choices"]
            ]
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{path}, task {number}: it lacks {error}; expected a task that truepair wrote") from error
        if answers and answers[-1] != UNSURE:
            found[str(pair_id)] = answers[-1] == MATCHED
    return found
