"""A file of records stays whole, sorted and readable, whoever writes to it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from truepair.errors import InputError
from truepair.reproduce.records import keep_record, read_records
from truepair.reproduce.training import kept_of

RESULTS = Path(__file__).parents[2] / "results"

WRITER = """
import sys
from pathlib import Path
from truepair.reproduce.records import keep_record
for number in range(20):
    keep_record(Path(sys.argv[1]), {"name": f"{sys.argv[2]}-{number:02d}", "value": number})
"""


def test_records_are_sorted_replaced_by_name_and_keep_their_order_of_keys(tmp_path):
    path = tmp_path / "new" / "table.jsonl"
    assert read_records(path) == []
    for record in ({"name": "b", "z": 1, "a": 0.1}, {"name": "a", "text": "é"}, {"name": "b", "z": 2, "a": 0.1}):
        keep_record(path, record)
    assert path.read_text() == '{"name": "a", "text": "é"}\n{"name": "b", "z": 2, "a": 0.1}\n'
    assert read_records(path) == [{"name": "a", "text": "é"}, {"name": "b", "z": 2, "a": 0.1}]


def test_processes_that_finish_at_the_same_time_lose_nothing(tmp_path):
    path = tmp_path / "table.jsonl"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, path, name]) for name in ("a", "b", "c")]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert [record["name"] for record in read_records(path)] == [f"{name}-{k:02d}" for name in "abc" for k in range(20)]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"name": "b"', "line 2 is no record"),
        ("[1]", "line 2 is no record"),
        ('{"name": "a"}', "a second record of a"),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(tmp_path, line, said):
    path = tmp_path / "table.jsonl"
    path.write_text(json.dumps({"name": "a"}) + "\n" + line + "\n")
    with pytest.raises(InputError, match=said):
        read_records(path)
    with pytest.raises(InputError, match=said):
        keep_record(path, {"name": "c"})
    assert path.read_text().count("\n") == 2


def test_a_figure_that_json_does_not_know_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "table.jsonl"
    keep_record(path, {"name": "a"})
    with pytest.raises(ValueError, match="not JSON compliant"):
        keep_record(path, {"name": "b", "value": float("nan")})
    assert path.read_text() == '{"name": "a"}\n'


def test_what_is_kept_of_an_analysis_names_the_data_and_no_place():
    run = {"name": "a", "retrieval": {"x": 1}, "plane": {"V_S": [[0.0, 1.0]]}}
    kept = kept_of({"source": "/somewhere/scenes", "run": run, "against": None, "seed": 0}, "scenes")
    assert kept == {"source": "scenes", "run": {"name": "a", "retrieval": {"x": 1}}, "against": None, "seed": 0}
    assert "plane" in run  # what was handed over stays as it was


def test_no_record_names_a_folder_of_a_machine():
    for path in sorted(RESULTS.glob("*.jsonl")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            found = re.search(r"[\"'`\s=](?:/|~/|[A-Z]:\\\\)[\w.-]+/[^\"]*", line)
            assert found is None, f"{path.name}, line {number}: {found and found[0][:80]}"
