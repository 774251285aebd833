"""`truepair analyse`: what it writes and prints for a run, alone and beside another, and what it refuses."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import truepair
from truepair.cli.main import main
from truepair.engines.config import GlobalConfig
from truepair.errors import InputError, RunFolderError
from truepair.evaluation.mutual_information import jensen_shannon_information, mine
from truepair.pages.analysis import analyse as analysis_module
from truepair.pages.analysis.analyse import analyse
from truepair.pages.analysis.page import probe_table, render_page
from truepair.pages.analysis.probes import PARTS
from truepair.pages.analysis.retrieval import cosine_recall, exclusive, fit_on_pairs, invariant, mapped_recall
from truepair.pages.analysis.subject import encoded, open_subject
from truepair.pages.analysis.write import facts_of, probe_rows
from truepair.training.setup import Setup

pytestmark = pytest.mark.usefixtures("few_drawings")

COLOURS = ("red", "blue", "green", "black", "white", "pink", "grey", "brown", "gold", "lilac", "teal", "rust")
SMALL = GlobalConfig(width=16, word_width=8)
SCRIPT = "<script> &"
OPTIONS = {
    "warm_up_epochs": 8,
    "warm_up_negatives": "all",
    "least_clean": 0.0,
    "head_rate": 1.0,
    "subspace_width": 8,
    "hidden_width": 16,
    "given_weight": 0.75,
}


@pytest.fixture(scope="module", autouse=True)
def one_short_estimate():
    """One estimate instead of three, of a twentieth of the steps: none of these tests is about how much leaks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("truepair.pages.analysis.leakage.ESTIMATES", 1)
        for estimate in (mine, jensen_shannon_information):
            patch.setattr(f"truepair.pages.analysis.leakage.{estimate.__name__}", partial(estimate, steps=50))
        yield


def write_data(folder, **images):
    """So many images a split, two captions each that name their colours and try to be a script."""
    rng = np.random.default_rng(0)
    colours = rng.normal(size=(len(COLOURS), 8))
    folder.mkdir()
    for split, count in images.items():
        chosen = np.array([rng.permutation(len(COLOURS))[:2] for _ in range(count)])
        np.save(
            folder / f"{split}_ims.npy", (colours[chosen] + 0.1 * rng.normal(size=(count, 2, 8))).astype(np.float32)
        )
        captions = [f"{COLOURS[one]} {COLOURS[other]} {SCRIPT}" for one, other in chosen.repeat(2, axis=0)]
        (folder / f"{split}_caps.txt").write_text("\n".join(captions) + "\n")
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """80 test images, enough to estimate leakage, and too few dev images."""
    return write_data(tmp_path_factory.mktemp("data") / "d", train=60, dev=10, test=80)


def trained(data, out, method="disncl", epochs=12, **options):
    chosen = truepair.build_method(method, {**OPTIONS, **options} if method == "disncl" else options)
    return truepair.fit(
        truepair.load(data), method=chosen, test=truepair.load(data, "test"), out=out, epochs=epochs, batch_size=24,
        minimum_count=1, learning_rate=1e-2, setup=Setup(model=SMALL, data={"source": str(data)}),
    )  # fmt: skip


@pytest.fixture(scope="module")
def runs(data, tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    trained(data, root / "parted")
    other = trained(data, root / "entangled", adversarial_weight=0.0)
    assert other.metrics[-1]["clean_share"] > 0.05  # else no term was ever computed, and both runs were the same
    trained(data, root / "plain", method="infonce")
    return root


@pytest.fixture(scope="module")
def both(runs, tmp_path_factory):
    """Two runs analysed by the command: exit code, folder."""
    out = tmp_path_factory.mktemp("out") / "there"
    return main(["analyse", str(runs / "parted"), "--against", str(runs / "entangled"), "--out", str(out)]), out


def words_of(page):
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def test_it_writes_a_page_that_needs_nothing_else_and_the_numbers(both):
    code, out = both
    assert code == 0
    assert {path.name for path in out.iterdir()} == {"index.html", "analysis.json"}
    page = (out / "index.html").read_text(encoding="utf-8")
    assert "<script" not in page and "&lt;script&gt;" in page
    assert not re.search(r'(?:src|href)="(?!data:)', page)
    assert page.count("data:image/png;base64,") == 2  # one plane a run: these data have no pictures
    assert "These data have no pictures" in page
    assert "adversarial_weight 1.0 against 0.0" in words_of(page)
    assert "Probes" not in page


def test_the_numbers_are_those_of_the_run(both, runs):
    facts = json.loads((both[1] / "analysis.json").read_text(encoding="utf-8"))
    result = json.loads((runs / "parted" / "result.json").read_text(encoding="utf-8"))
    found = facts["run"]["retrieval"]
    assert found["V_S, T_S by cosine"] == pytest.approx(result["test"])
    other = json.loads((runs / "entangled" / "result.json").read_text(encoding="utf-8"))
    assert facts["against"]["retrieval"]["V_S, T_S by cosine"] == pytest.approx(other["test"])
    assert list(found)[1:] == ["V_X, T_X by cosine", "T_S mapped to V_S", "T_X mapped to V_X"]
    assert (facts["images"], facts["texts"], facts["fitted_pairs"], facts["fitted_images"]) == (80, 160, 120, 60)
    assert facts["chance"]["t2i_r5"] == pytest.approx(100 * 5 / 80)
    for side in ("image", "text"):
        ours, theirs = (facts[who]["leakage"][side] for who in ("run", "against"))
        assert ours["rows"] == 80
        assert ours["jensen_shannon"]["mean"] > 0 < theirs["jensen_shannon"]["mean"]
        assert ours["jensen_shannon"] != theirs["jensen_shannon"]
        for measure in ("mine", "jensen_shannon"):
            expected = ours[measure]["mean"] / theirs[measure]["mean"] if theirs[measure]["mean"] else None
            assert facts["left"][measure][side] == (expected if expected is None else pytest.approx(expected))
    soft = facts["soft_targets"]
    assert (soft["candidates"], soft["given"], soft["temperature"]) == (24, 0.75, 0.05)
    assert {query["query"] for query in soft["queries"]} == {"image", "text"}
    for query in soft["queries"]:
        match = query["candidates"][0]
        assert match["role"] == "match" and match["target"] >= 0.75
        assert all(candidate["target"] <= 0.25 for candidate in query["candidates"][1:])


def test_each_row_of_the_retrieval_table_compares_what_it_says(both, runs, data):
    """Every row against the parts themselves: a row that used the wrong parts would read well and be false."""
    facts = json.loads((both[1] / "analysis.json").read_text(encoding="utf-8"))
    subject = open_subject(runs / "parted")
    test, train = (encoded(subject, truepair.load(data, split)) for split in ("test", "train"))
    maps = {part: fit_on_pairs(train, part, seed=0) for part in (invariant, exclusive)}
    expected = {
        "V_S, T_S by cosine": cosine_recall(test, invariant),
        "V_X, T_X by cosine": cosine_recall(test, exclusive),
        "T_S mapped to V_S": mapped_recall(test, invariant, maps[invariant]),
        "T_X mapped to V_X": mapped_recall(test, exclusive, maps[exclusive]),
    }
    for name, figures in expected.items():
        assert facts["run"]["retrieval"][name] == pytest.approx(figures), name
    assert len({tuple(figures.values()) for figures in expected.values()}) == 4  # else a swap would not show


def test_the_plane_can_be_drawn_again(both):
    facts = json.loads((both[1] / "analysis.json").read_text(encoding="utf-8"))
    assert facts["run"]["plane"].keys() == {"V_S", "V_X", "T_S", "T_X"}
    places = [np.array(points) for points in facts["run"]["plane"].values()]
    assert len({points.shape for points in places}) == 1 and all(np.isfinite(points).all() for points in places)
    assert not np.allclose(places[0], places[1])


def test_every_number_of_the_tables_is_on_the_page(both):
    words = words_of((both[1] / "index.html").read_text(encoding="utf-8"))
    facts = json.loads((both[1] / "analysis.json").read_text(encoding="utf-8"))
    for run in (facts["run"], facts["against"]):
        for figures in [*run["retrieval"].values(), facts["chance"]]:
            row = [figures[name] for name in ("rsum", "i2t_r1", "i2t_r5", "i2t_r10", "t2i_r1", "t2i_r5", "t2i_r10")]
            assert " ".join(f"{value:.1f}" for value in row) in words
        for leakage in run["leakage"].values():
            assert f"{leakage['mine']['mean']:.2f} ({leakage['mine']['lowest']:.2f} –" in " ".join(words.split())
    assert "–  –" not in words


def test_it_prints_the_tables_and_where_the_page_is(runs, both, capsys):
    assert main(["analyse", str(runs / "parted")]) == 0
    printed = capsys.readouterr().out
    assert "I(V_S; V_X) MINE" in printed and "R² of T_S by T_X" in printed and "left" not in printed
    assert "T_X mapped to V_X" in printed and "chance" in printed
    assert str(runs / "parted" / "analysis" / "index.html") in printed
    facts = json.loads((runs / "parted" / "analysis" / "analysis.json").read_text(encoding="utf-8"))
    beside = json.loads((both[1] / "analysis.json").read_text(encoding="utf-8"))
    assert facts["run"] == beside["run"] != beside["against"]  # what stands beside a run changes nothing of it
    assert facts["against"] is None and facts["left"] is None


def test_the_same_seed_gives_the_same_page(runs):
    one, again, other = (analyse(runs / "parted", split="dev", seed=seed) for seed in (0, 0, 1))
    assert render_page(one) == render_page(again)
    assert facts_of(other)["soft_targets"] != facts_of(one)["soft_targets"]
    assert "trained without soft targets" not in render_page(one)
    one.run.options["soft_weight"] = 0.0
    assert "trained without soft targets" in render_page(one)


def test_few_images_leave_the_leakage_out_and_another_split_may_have_them(runs, data, capsys):
    few = analyse(runs / "parted", split="dev")
    assert few.run.leakage is None
    words = words_of(render_page(few))
    assert "Not estimated: it takes at least 64 images" in words and "split dev has fewer" in words
    assert facts_of(few)["run"]["leakage"] is None
    more = analyse(runs / "parted", split="dev", leakage_split="test")
    assert more.run.leakage is not None and more.run.leakage["text"].rows == 80
    assert "split test" in words_of(render_page(more))


def test_drawings_have_pictures_and_probes(tmp_path, monkeypatch):
    run = trained("scenes:60", tmp_path / "run", epochs=2, warm_up_epochs=1)
    rows = [
        {"factor": "kind", "belongs": "shared", "part": part, "accuracy": accuracy, "chance": 0.5}
        for part, accuracy in (("V_S", 0.911), ("V_X", 0.522))
    ]
    monkeypatch.setattr(
        analysis_module, "probe_scenes", lambda model, *, seed, noise: {"rows": rows, "summary": {}, "seed": seed}
    )
    monkeypatch.setattr(analysis_module, "leakage", lambda split, *, noise, seed: None)
    found = analyse(run.path, seed=3)
    assert found.run.probes == {"rows": rows, "summary": {}, "seed": 3}
    page = render_page(found)
    assert page.count('<img class="pic"') > 8 and "These data have no pictures" not in page
    assert "kind shared 91.1 52.2 50.0" in words_of(page)
    assert probe_table(found.run)["parts"] == ["V_S", "V_X"]


def test_the_terminal_shows_probes_with_noise_and_without():
    found = analysis_module.RunAnalysis("parted", {}, None, {}, {}, None, None)
    assert probe_rows(found) == []
    gains = {"shared": dict.fromkeys(PARTS, 0.625)}
    probes = {"summary": gains, "with_noise": {"noise": 0.5, "summary": {"shared": dict.fromkeys(PARTS, 0.25)}}}
    rows = probe_rows(replace(found, probes=probes))
    assert rows[0] == ["parted: read from", *PARTS]
    assert rows[1:] == [["shared, with noise of 0.5", *["0.25"] * 6], ["shared, as they are", *["0.62"] * 6]]


def test_probes_without_rows_are_no_section(runs):
    found = analyse(runs / "parted", split="dev")
    for probes in (None, {}, {"rows": []}):
        object.__setattr__(found.run, "probes", probes)
        assert "Probes:" not in render_page(found)


def test_what_cannot_be_analysed_is_refused_before_anything_is_written(runs, data, tmp_path, capsys):
    out = tmp_path / "there"

    def refused(*arguments):
        assert main(["analyse", *map(str, arguments), "--out", str(out)]) == 2
        assert not out.exists()
        return capsys.readouterr().err

    assert "--method infonce" in refused(runs / "plain")
    assert "--method infonce" in refused(runs / "parted", "--against", runs / "plain")
    assert "not a run folder" in refused(tmp_path)
    assert "--seed is -1" in refused(runs / "parted", "--seed", "-1")
    assert "--seed is 2147483648" in refused(runs / "parted", "--seed", "2147483648")
    assert "nowhere" in refused(runs / "parted", "--data", tmp_path / "nowhere")
    assert "testall" in refused(runs / "parted", "--split", "testall")
    other = write_data(tmp_path / "other", train=4, test=1)
    assert "nothing to compare" in refused(runs / "parted", "--data", other)


def test_a_run_whose_data_are_gone_or_unknown_asks_for_them(data, tmp_path):
    here = tmp_path / "moved"
    here.mkdir()
    for file in Path(data).iterdir():
        (here / file.name).write_bytes(file.read_bytes())
    run = trained(here, tmp_path / "run")
    here.rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="which is not there; give --data"):
        analyse(run.path)
    assert analyse(run.path, data=str(tmp_path / "elsewhere"), split="dev").source.endswith("elsewhere")
    config = json.loads(run.folder.config.read_text())
    run.folder.config.write_text(json.dumps({**config, "data": None}))
    with pytest.raises(InputError, match="does not name its data"):
        analyse(run.path)
    run.folder.result.unlink()
    with pytest.raises(RunFolderError, match="unfinished"):
        analyse(run.path)


def test_the_command_is_known_without_loading_anything_heavy():
    code = (
        "import sys, truepair.cli.analyse; "
        "sys.exit(any(name in sys.modules for name in ('torch', 'matplotlib', 'numpy', 'sklearn', 'jinja2')))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
