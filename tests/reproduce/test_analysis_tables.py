"""The tables of an analysis show what its file holds."""

from truepair.reproduce.render.analysis import PROBED, analyses
from truepair.reproduce.tables import Filled, Section, Table

SECTION = Section("docs.md", "toy", ["toy"], "analyses")


def shown(analysis):
    record = {"name": "toy", "analysis": analysis}
    return analyses(SECTION, Filled(Table("toy", "", [], {}), [record])).splitlines()


def run_facts(name, scale):
    def leak(side, parts):
        share = scale * (0.25 if side == "image" and name == "parted" else 1.0)
        return {
            "parts": parts,
            "mine": {"mean": 2.0 * share},
            "jensen_shannon": {"mean": 0.5 * share},
            "without_noise": 0.6 * share**0.5,
        }

    gains = {"shared": dict.fromkeys(PROBED, 0.61 * scale), "exclusive image": dict.fromkeys(PROBED, 0.17 * scale)}
    return {
        "name": name,
        "leakage": {side: leak(side, parts) for side, parts in (("image", ["V_S", "V_X"]), ("text", ["T_S", "T_X"]))},
        "retrieval": {"T_X mapped to V_X": {"rsum": 222.2 * scale}},
        "probes": {"summary": gains, "with_noise": {"noise": 0.5, "summary": {"shared": gains["shared"]}}},
    }


def facts(against=True):
    return {
        "run": run_facts("parted", 0.5),
        "against": run_facts("entangled", 1.0) if against else None,
        "chance": {"rsum": 6.4},
        "split": "test",
        "images": 1000,
        "seed": 3,
    }


def test_every_table_holds_both_runs():
    lines = shown(facts())
    assert lines[0].startswith("**`toy`**: `parted`, test split, 1,000 images; seed 3. The other run: `entangled`.")
    assert "| I(V_S; V_X), MINE, nats | 0.25 | 2.00 | 12 % |" in lines
    assert "| I(T_S; T_X), JS, nats | 0.250 | 0.500 | 50 % |" in lines
    assert "| I(V_S; V_X), JS without noise, nats | 0.212 | 0.600 | 35 % |" in lines
    assert "| T_X mapped to V_X | 111.1 | 222.2 |" in lines
    assert "| chance | 6.4 | 6.4 |" in lines
    assert lines.count(f"| the other | as they are | exclusive image |{' 0.17 |' * 6}") == 1
    assert lines.count(f"| the run | noise of 0.5 of their spread | shared |{' 0.30 |' * 6}") == 1


def test_one_run_alone():
    alone = facts(against=False)
    alone["run"]["probes"] = alone["run"]["leakage"] = None  # as with few images that are no drawings
    lines = shown(alone)
    assert "| T_X mapped to V_X | 111.1 | |" in lines and not any("entangled" in line for line in lines)
    assert not any("MINE" in line for line in lines)
