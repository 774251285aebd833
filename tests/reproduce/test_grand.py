"""The grand table: what is reused, what is missing, who is ranked over which conditions."""

import json
from dataclasses import replace

import pytest

from truepair.reproduce.cells import Cell, Context, Places
from truepair.reproduce.records import kept_in_warm_up
from truepair.reproduce.render.grand import Gap, costs, coverage, figures_table, grand, page_of, rank
from truepair.reproduce.render.grand_local import local_engines
from truepair.reproduce.render.markdown import of_warm_up
from truepair.reproduce.tables import Filled, Section, Table, read_specs
from truepair.reproduce.training import training_cells
from truepair.training.run_folder import RunFolder

TITLES = {"a": "first", "b": "second", "c": "third", "oracle": "told"}


def record(method, rate, seed, value, data="flickr8k", kind=None, **facts):
    cell = {"data": data, "method": method, "noise": rate, "seed": seed, **facts}
    cell |= {} if kind is None else {"kind": kind}
    name = f"{data}-{method}-{kind}{rate}-{seed}-{facts.get('engine')}"
    recalls = {f"{way}_r{k}": value / 6 for way in ("i2t", "t2i") for k in (1, 5, 10)}
    return {
        "name": name,
        "cell": cell,
        "command": f"train {name}",
        "date": "2026-11-22",
        "truepair": "0.1.0",
        "training_seconds": 360.0,
        "result": {
            "test": {**recalls, "rsum": value},
            "dev": {"rsum": value},
            "detection": {"auroc": 0.9},
            "best_epoch": 1,
        },
        "epochs": [{"epoch": 1, "dev_rsum": value}],
    }


def filled(records, missing=0):
    cells = [Cell(r["name"], r["cell"], r["command"], lambda _: {}) for r in records]
    cells += [replace(cells[0], name=f"missing{k}", command=f"m{k}") for k in range(missing)]
    return Filled(Table("grand", "", cells, TITLES), records)


SOME = [
    *(record(name, rate, seed, level - 100 * rate + seed) for name, level in (("a", 300), ("b", 280), ("c", 150))
      for rate in (0.2, 0.4, 0.6) for seed in (0, 1)),
    record("a", 0.4, 0, 250.0, kind="nearest"),
    record("oracle", 0.4, 0, 400.0),
]  # fmt: skip


def test_methods_are_ranked_over_what_all_of_them_have_and_the_oracle_is_not():
    found = rank(SOME)
    assert found.ranks == {"a": 1.0, "b": 2.0, "c": 3.0}
    assert found.blocks == [("flickr8k", "caption", rate) for rate in (0.2, 0.4, 0.6)]
    assert found.gaps["b"] == Gap(pytest.approx(-20), 6, pytest.approx(2 * 2 / 64))  # six of one sign, twice by Holm
    assert found.gaps["c"] == Gap(pytest.approx(-150), 6, pytest.approx(2 * 2 / 64))
    few = [r for r in SOME if not (r["cell"]["method"] == "c" and r["cell"]["noise"] != 0.2)]
    found = rank(few)
    assert set(found.ranks) == {"a", "b"} and found.unranked == ["c"] and found.chance is None
    assert found.gaps["c"].runs == 2, "its distance is told all the same"
    text = grand(Section("x", "x", ["grand"], "grand"), filled(few))
    assert "| third | – | -150.0 | 2 | 0.500, not told apart |" in text and "Not ranked" in text
    assert rank([SOME[0]]) is None


def test_a_method_with_few_runs_does_not_take_those_of_the_others_away():
    """Ranks are over its conditions, by the seeds that each has; distances over all runs it shares with the best."""
    few = [r for r in SOME if r["cell"]["method"] != "c" or (r["cell"]["noise"] < 0.6 and r["cell"]["seed"] == 0)]
    found = rank(few)
    assert found.ranks == {"a": 1.0, "b": 2.0, "c": 3.0}
    assert found.blocks == [("flickr8k", "caption", rate) for rate in (0.2, 0.4)]
    assert (found.gaps["b"].runs, found.gaps["c"].runs) == (6, 2)
    assert found.gaps["b"].chance == pytest.approx(2 * 2 / 64)
    text = grand(Section("x", "x", ["grand"], "grand"), filled(few))
    assert "| second | 2.00 | -20.0 | 6 | 0.062, not told apart |" in text
    other = [r for r in SOME if r["cell"]["method"] != "b"]
    other += [record("b", rate, 7, 10.0) for rate in (0.2, 0.4, 0.6)]
    text = grand(Section("x", "x", ["grand"], "grand"), filled(other))
    assert "| second | 3.00 | – | 0 | – |" in text, "no run of a seed that the best has"


def test_missing_runs_are_counted_and_their_cost_is_guessed_from_those_there():
    text = coverage(filled(SOME, missing=10))
    assert "20 of 30 runs are there, 10 are missing" in text
    assert "2.0 core-hours of training; the missing ones take about 1 more" in text
    assert "| `flickr8k`, global | 20 | 10 |" in text


def test_costs_are_medians_of_processor_time_where_it_is_known():
    costly = [{**each, "training_seconds": 9000.0, "cpu_seconds": 360.0} for each in SOME]
    assert "2.0 core-hours of training" in coverage(filled(costly))
    one = [{**SOME[0], "training_seconds": 60.0 * minutes} for minutes in (1, 2, 30)]
    assert costs({"a": "A"}, one, [*one, *one]).splitlines()[-1] == "| A | 2.0 | 1.1 |"


def test_costs_of_runs_with_openblas_stand_apart():
    one = [{**SOME[0], "training_seconds": 60.0 * minutes} for minutes in (3, 5)]
    fast = [{**each, "preloaded": ["libopenblas.so.0"], "training_seconds": 120.0} for each in one]
    other = [{**each, "preloaded": ["libjemalloc.so.2"]} for each in one]
    runs = [*fast, *one, *other]
    text = costs({"a": "A"}, runs, runs).splitlines()
    assert text[0] == "| | `flickr8k` | `flickr8k`, OpenBLAS | hours |" and text[2:] == ["| A | 4.0 | 2.0 | 0.3 |"]


def test_cells_say_how_many_seeds_they_have_and_kinds_have_columns():
    text = figures_table(TITLES, SOME, "result.test.rsum", 1)
    assert text.splitlines()[0] == "| | 20 % | 40 % | 60 % | 40 % hard |"
    assert "| first | 280.5 ± 0.7 (2) | 260.5 ± 0.7 (2) | 240.5 ± 0.7 (2) | 250.0 (1) |" in text
    assert "| second |" in text and text.count("–") == 5


def test_without_noise_the_oracle_is_infonce():
    titles = {"oracle": "told", "infonce": "plain"}
    runs = [record("infonce", rate, seed, 300.0 - rate + seed) for rate in (0.0, 0.4) for seed in (0, 1)]
    text = figures_table(titles, runs, "result.test.rsum", 1).splitlines()
    assert text[2:] == ["| told | 300.5 ± 0.7 (2) | – |", "| plain | 300.5 ± 0.7 (2) | 300.1 ± 0.7 (2) |"]


def test_page_and_text_are_of_the_same_runs():
    shown = filled(SOME, missing=3)
    text, page = grand(Section("x", "x", ["grand"], "grand"), shown), page_of(shown)
    assert "Critical difference of mean ranks" in text and "20 of 23 runs are there" in text
    assert page.count('"name":') == 20 and "3 are missing" in page


def test_runs_of_another_version_are_marked_in_text_and_page():
    older = [{**run, "truepair": "0.0.9"} if run["cell"]["method"] == "b" else run for run in SOME]
    text = grand(Section("x", "x", ["grand"], "grand"), filled(older))
    assert "| second | 260.5 ± 0.7 (2)° | 240.5 ± 0.7 (2)° | 220.5 ± 0.7 (2)° | – |" in text
    assert "| first | 280.5 ± 0.7 (2) |" in text
    assert "°" not in grand(Section("x", "x", ["grand"], "grand"), filled(SOME))
    assert "several versions of truepair (0.0.9, 0.1.0)" in page_of(filled(older))
    assert "several versions" not in page_of(filled(SOME))


def warmed(run, best, warm_up=5, epochs=10):
    """The record with options of a warm-up, and the epoch that dev chose."""
    method = {"name": "x", "options": {"warm_up_epochs": warm_up}}
    result = {**run["result"], "best_epoch": best}
    return {**run, "options": {"method": method, "training": {"epochs": epochs}}, "result": result}


@pytest.mark.parametrize(
    ("best", "warm_up", "epochs", "kept"),
    [(5, 5, 10, True), (6, 5, 10, False), (3, 0, 10, False), (3, 10, 10, False), (None, 5, 10, False)],
)
def test_a_figure_of_the_warm_up_is_marked_in_text_and_page(best, warm_up, epochs, kept):
    records = [warmed(run, best, warm_up, epochs) if run["cell"]["method"] == "b" else run for run in SOME]
    assert kept_in_warm_up(records[6]) is kept and not kept_in_warm_up(SOME[0])
    text, page = grand(Section("x", "x", ["grand"], "grand"), filled(records)), page_of(filled(records))
    assert ("| second | 260.5 ± 0.7 (2)‡ | 240.5 ± 0.7 (2)‡ |" in text) is kept
    assert text.count("‡") == 3 * kept  # rSum alone: the AUROC is that of the last epoch
    assert ("‡: the best epoch on dev is one of the warm-up" in page) is kept
    assert page.count('"warm_up": true') == 6 * kept
    said = of_warm_up(records)
    assert said.startswith("‡ 6 runs whose best epoch on dev is one of the warm-up") is kept and bool(said) is kept


def test_a_run_that_diverged_is_not_missing_and_says_why():
    shown = filled(SOME, missing=3)
    cut = {**record("c", 0.8, 0, 0.0), "diverged": {"epoch": 2, "said": "training diverged in epoch 2"}}
    shown.table.cells.append(Cell(cut["name"], cut["cell"], cut["command"], lambda _: {}))
    del cut["result"]
    shown = shown._replace(diverged=[cut])
    text = grand(Section("x", "x", ["grand"], "grand"), shown)
    assert "21 of 24 runs are there, of which 1 diverged, 3 are missing" in text and "2.1 core-hours" in text
    assert f"`{cut['name']}` diverged, so it is not in the tables: training diverged in epoch 2" in text
    assert "| `flickr8k`, global | 21 | 3 |" in text
    at = "flickr8k", "caption", 0.6
    table = figures_table(TITLES, SOME, "result.test.rsum", 1, stops={("oracle", at), ("b", at)})
    assert "| told | – | 400.0 (1) | diverged | – |" in table and "| second | 260.5" in table
    assert table.count("diverged") == 1, "where others have a figure, it stands"
    page = page_of(shown)
    assert "21 of 24 runs are there, 3 are missing. 1\ndiverged and have no figures." in page


def test_records_of_other_tables_count_where_the_command_is_the_same(tmp_path):
    cell = Cell("x", {"seed": 0, "kind": "image"}, "do this", lambda _: {})
    table = Table("grand", "", [cell, replace(cell, name="y", command="do that")], {}, ("other",))
    other = {"name": "elsewhere", "cell": {"seed": 0}, "command": "do this", "value": 7}
    (tmp_path / "other.jsonl").write_text(json.dumps(other) + "\n")
    assert table.records(tmp_path) == [{**other, "name": "x", "cell": cell.facts}]
    own = {"name": "x", "cell": cell.facts, "command": "do this", "value": 8}
    (tmp_path / "grand.jsonl").write_text(json.dumps(own) + "\n")
    assert table.records(tmp_path) == [own]


def test_a_member_trained_for_another_table_is_taken(tmp_path):
    trained = []

    def cell(table):
        def measure(places):
            trained.append(table)

        return Cell("run", {}, "the same", measure)

    known = {"one/run": cell("one"), "two/run": cell("two")}
    folder = tmp_path / "one" / "run"
    folder.mkdir(parents=True)
    (folder / "result.json").write_text("{}")
    (folder / "config.json").write_text('{"method": {"name": "crcl"}}')
    assert RunFolder(folder).finished
    assert Context("two", {}, known).trained("two/run", Places(tmp_path, tmp_path)).path == folder
    assert not trained
    (folder / "result.json").unlink()
    Context("two", {}, known).trained("two/run", Places(tmp_path, tmp_path))
    assert trained == ["two"]


def test_kinds_of_noise_have_cells_of_their_own_with_the_commands_of_other_tables():
    rows = {"crcl": "crcl", "mscn": "mscn"}
    options = {"data": "x", "methods": "crcl mscn", "rates": [0.0, 0.4], "seeds": [0], "settings": "--word-share 0.1"}
    options["method_options"] = {"mscn": "--clean-pairs 9"}
    cells = [*training_cells(Context("t", rows, {}), **options, noise_kind="nearest")]
    assert [cell.name for cell in cells] == [
        "x-crcl-nearest0-seed0",
        "x-crcl-nearest40-seed0",
        "x-mscn-nearest40-seed0",
    ]
    assert cells[1].command.endswith("--word-share 0.1 --noise-kind nearest") and cells[1].facts["kind"] == "nearest"


def test_runs_of_the_smaller_tables_are_not_trained_again():
    tables = read_specs()[0]
    own = {cell.command for cell in tables["grand"].cells}
    for name in tables["grand"].reuses:
        assert own & {cell.command for cell in tables[name].cells}, name


def test_local_engines_stand_apart_and_say_how_small_they_are():
    def local(engine, method, value, **more):
        made = record(method, 0.4, 0, value, data="fashion_precomp", engine=engine, epochs=16)
        return made | more

    each = [local(engine, "a", value) for engine, value in (("sgr", 230.0), ("saf", 240.0))]
    each = [run | {"result": {**run["result"], "pairs": 3000}} for run in each]
    both = local("sgraf", "a", 250.0, command="truepair evaluate one other fashion_precomp --images 500")
    heading, shown = local_engines(TITLES, [*SOME, *each, both, local("sgraf", "b", 245.0)])
    assert "trained on 3,000 pairs, scored on 500 test images, 16 epochs" in heading
    assert shown.splitlines()[0] == "| | SGR | SAF | both (SGRAF) |"
    assert shown.splitlines()[2:] == ["| first | 230.0 (1) | 240.0 (1) | 250.0 (1) |", "| second | – | – | 245.0 (1) |"]
    assert local_engines(TITLES, SOME) == []
