"""Decisions as tasks of Label Studio, and back from its JSON export.

A task is a pair. Its annotations are what people think of it now, and its `data` keep the history, which Label Studio
hands back as it is; annotations that are new there, or were changed there, are new decisions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from truepair.data.formats.handed_on.label_studio import CONTROL, CORRECTION, MATCHED, MISMATCHED, PICTURE, UNSURE
from truepair.decisions.decision import CLOCK, Decision
from truepair.errors import InputError
from truepair.files import read_file

CHOICES = {"match": MATCHED, "mismatch": MISMATCHED, "unsure": UNSURE}
_VERDICTS = {choice: verdict for verdict, choice in CHOICES.items()}
_OURS = "truepair-"
_BESIDE = ("given_image", "given_caption")


def tasks_of(records: Sequence[dict[str, Any]], history: Sequence[Decision]) -> list[dict[str, Any]]:
    """A task for each pair of a history.

    Args:
        records: the rows of the history as they stand in other files.
        history: the same rows.
    """
    pairs: dict[str, list[tuple[dict[str, Any], Decision]]] = {}
    for record, decision in zip(records, history, strict=True):
        pairs.setdefault(decision.pair_id, []).append((record, decision))
    return [_task(pair_id, rows) for pair_id, rows in pairs.items()]


def _task(pair_id: str, rows: list[tuple[dict[str, Any], Decision]]) -> dict[str, Any]:
    first = rows[0][0]
    latest = {decision.person: decision for _, decision in rows}
    kept = [{name: value for name, value in record.items() if name not in _BESIDE} for record, _ in rows]
    return {
        "data": {
            "image": first["given_image"],
            "caption": first["given_caption"],
            "pair_id": pair_id,
            "decisions": kept,
        },
        "annotations": [_annotation(decision) for decision in latest.values() if decision.verdict is not None],
    }


def _annotation(decision: Decision) -> dict[str, Any]:
    common = {"to_name": PICTURE, "id": f"{_OURS}{decision.number}"}
    choice = {"choices": [CHOICES[str(decision.verdict)]]}
    result = [{**common, "from_name": CONTROL, "type": "choices", "value": choice}]
    if decision.caption is not None:
        text = {"text": [decision.caption]}
        result.append({**common, "from_name": CORRECTION, "type": "textarea", "value": text})
    return {"result": result, "was_cancelled": False, "lead_time": decision.seconds, "created_at": decision.at}


def records_of(path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    """The rows that the tasks of a file hold, each with its place; raises InputError where there is no list
    of tasks, or one lacks what it needs. OSError goes through.
    """
    try:
        tasks = json.loads(read_file(path))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read as JSON ({error}); expected Label Studio's JSON export") from error
    if not isinstance(tasks, list):
        raise InputError(f"{path} holds no list of tasks; expected Label Studio's JSON export, not JSON-MIN")
    for number, task in enumerate(tasks, start=1):
        place = f"{path}, task {number}"
        try:
            yield from ((record, place) for record in _records(task))
        except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
            raise InputError(f"{place}: it lacks {error}; expected a task that truepair wrote") from error


def _records(task: dict[str, Any]) -> Iterator[dict[str, Any]]:
    data = task["data"]
    pair_id, given = str(data["pair_id"]), data.get("caption")
    rows = data.get("decisions") or []
    for row in rows:
        yield {**row, "pair_id": pair_id, "given_caption": given}
    known = {f"{_OURS}{row.get('number')}": row for row in rows}
    for annotation in task.get("annotations", []):
        if annotation.get("was_cancelled"):
            continue
        found: dict[str, Any] = {}
        for result in annotation["result"]:
            if result["from_name"] == CONTROL:
                found["verdict"] = _VERDICTS[result["value"]["choices"][-1]]
            elif result["from_name"] == CORRECTION:
                found["caption"] = result["value"]["text"][-1]
            found["row"] = known.get(result.get("id"), found.get("row"))
        row = found.pop("row", None)
        if "verdict" not in found:
            continue
        if row is not None and found["verdict"] == row.get("verdict") and found.get("caption") == row.get("caption"):
            continue  # as it was exported
        at = annotation.get("updated_at") or annotation.get("created_at")
        person = annotation.get("completed_by")
        person = person.get("email") or person.get("id") if isinstance(person, dict) else person
        yield {
            **found,
            "pair_id": pair_id,
            "person": "Label Studio" if person is None else f"Label Studio {person}",
            "chosen_by": "Label Studio",
            "seconds": annotation.get("lead_time"),
            "at": None if at is None else datetime.fromisoformat(at).astimezone(UTC).strftime(CLOCK),
            "given_caption": given,
        }
