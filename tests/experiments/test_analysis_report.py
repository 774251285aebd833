"""The tables of an analysis show what its file holds."""

import json

import pytest

from truepair.errors import InputError
from truepair.experiments.analysis_report import PROBED, analysis_report, read_analyses


def run_facts(name, scale):
    def leak(side, parts):
        return {"parts": parts, "mine": {"mean": 2.0 * scale}, "jensen_shannon": {"mean": 0.5 * scale}}

    gains = {"shared": dict.fromkeys(PROBED, 0.61 * scale), "exclusive image": dict.fromkeys(PROBED, 0.17 * scale)}
    return {
        "name": name,
        "leakage": {side: leak(side, parts) for side, parts in (("image", ["V_S", "V_X"]), ("text", ["T_S", "T_X"]))},
        "retrieval": {"T_X mapped to V_X": {"rsum": 222.2 * scale}},
        "probes": {"summary": gains, "with_noise": {"noise": 0.5, "summary": {"shared": gains["shared"]}}},
    }


def facts(against=True):
    left = {"image": 0.25, "text": 0.5}
    return {
        "run": run_facts("parted", 0.5),
        "against": run_facts("entangled", 1.0) if against else None,
        "left": {"mine": left, "jensen_shannon": left} if against else None,
        "chance": {"rsum": 6.4},
        "split": "test",
        "images": 1000,
        "seed": 3,
    }


def test_every_table_holds_both_runs(tmp_path):
    (tmp_path / "toy.json").write_text(json.dumps(facts()))
    lines = analysis_report(read_analyses(tmp_path)).splitlines()
    assert lines[0].startswith("**`toy`**: `parted`, test split, 1,000 images; seed 3. The other run: `entangled`.")
    assert "| I(V_S; V_X), MINE, nats | 1.00 | 2.00 | 25 % |" in lines
    assert "| I(T_S; T_X), JS, nats | 0.250 | 0.500 | 50 % |" in lines
    assert "| T_X mapped to V_X | 111.1 | 222.2 |" in lines
    assert "| chance | 6.4 | 6.4 |" in lines
    assert lines.count(f"| the other | as they are | exclusive image |{' 0.17 |' * 6}") == 1
    assert lines.count(f"| the run | noise of 0.5 of their spread | shared |{' 0.30 |' * 6}") == 1


def test_one_run_alone_and_none(tmp_path):
    alone = facts(against=False)
    alone["run"]["probes"] = None
    lines = analysis_report({"toy": alone}).splitlines()
    assert "| T_X mapped to V_X | 111.1 |  |" in lines and not any("entangled" in line for line in lines)
    with pytest.raises(InputError, match="no analyses"):
        read_analyses(tmp_path)
