"""`truepair audit`: help, what is refused before any work, trials, exports, and an input full of faults."""

import json
import resource
import subprocess
import sys

import numpy as np
import pytest

from tests.audit.array_collection import random_pairs
from tests.audit.small_audits import (
    FILES,
    QUICK,
    contents,
    rows_of,
    run_cli,
    summary_of,
    write_embeddings,
    write_picture_folder,
)
from tests.data.formats.made_pictures import bomb, noise, picture_bytes
from truepair.cli.main import main
from truepair.pages.audit.page import audit_with_page  # noqa: F401  loaded before a test replaces what it opens with

pytestmark = pytest.mark.usefixtures("few_drawings")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TRUEPAIR_CACHE", str(tmp_path / "cache"))


def test_help_is_instant_and_without_torch():
    code = (
        "import sys; from truepair.cli.main import main\n"
        "try: main(['audit', '--help'])\n"
        "except SystemExit: sys.exit('torch' in sys.modules or 'pyarrow' in sys.modules)"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1.0  # of work; the machine may be busy
    for option in ("--embeddings", "--run", "--export", "--engine", "--folds", "--noise-kind", "examples:"):
        assert option in done.stdout


def test_the_device_is_for_runs_as_well_as_for_models_that_are_trained(capsys):
    with pytest.raises(SystemExit):
        main(["audit", "--help"])
    shared, trained = capsys.readouterr().out.split("\naudit:\n")[1].split("\nmodels that are trained")
    assert "--device NAME" in shared
    assert "--device" not in trained


# ---- refused before any work ----


@pytest.fixture
def sources(tmp_path, tiny):
    """An input of each kind, by name."""
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    (pictures / "table.csv").write_text("image,caption\np0.png,a b\n")
    vectors = write_embeddings(tmp_path / "vectors", *random_pairs(5, 4))
    return {"pictures": str(pictures), "embeddings": vectors, "precomp": str(tiny), "scenes": "scenes:60"}


REFUSED = [
    ("pictures", ["--embeddings"], "holds no embeddings; give a folder with img_emb"),
    ("scenes", ["--embeddings"], "holds no embeddings"),
    ("embeddings", ["--run", "RUN"], "which are scored as they are; leave out --run"),
    ("pictures", ["--engine", "ray"], "--engine ray scores embeddings, and .*pictures has none; leave it out"),
    ("embeddings", ["--noise", "0.4"], "holds embeddings; a trial with noise needs pairs with features"),
    ("scenes", ["--noise", "0.4", "--noise-index", "i.npy"], "both say how to mismatch"),
    ("pictures", ["--export", "own", "--noise", "0.4"], "with noise its pairs are not those of its files"),
    ("scenes", ["--method", "uot-rcl"], "'uot-rcl' learns from class labels; the models of an audit"),
    ("scenes", ["--method", "mscn"], "'mscn' learns from pairs that are known to match; .*truepair, gsc"),
    ("scenes", ["--method", "osa"], "'osa' begins with an encoder that is trained already"),
    ("embeddings", ["--device", "cpu"], "--device is for models that an audit trains, and .* they are; leave it out"),
    ("embeddings", ["--epochs", "3"], "--epochs is for models that an audit trains, and .* as they are; leave it out"),
    ("embeddings", ["--synthetic-share", "0.1"], "--synthetic-share is for models that an audit trains"),
    ("precomp", ["--run", "nowhere", "--method", "gsc"], "--method is for models .* nowhere is trained already"),
    ("scenes", ["--method", "magic"], "'magic' is unknown; .* trained by .*crcl"),
    ("precomp", ["--run", "nowhere"], "nowhere"),
    ("precomp", ["--bank", "1"], "bank is 1; expected at least 2"),
    ("precomp", ["--threads", "0"], "--threads is 0"),
]


@pytest.mark.parametrize(("source", "options", "message"), REFUSED)
def test_refused_before_anything_is_opened(sources, tmp_path, monkeypatch, capsys, source, options, message):
    import re

    monkeypatch.setattr("truepair.data.open.open", lambda *a, **o: pytest.fail("it was opened"))
    assert run_cli(sources[source], tmp_path / "out", *options) == 2
    said = capsys.readouterr().err
    assert said.startswith("truepair: error: ") and re.search(message, said), said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--export", "xml"], "invalid choice: 'xml'"), (["--run", "a", "--embeddings"], "not allowed with")],
)
def test_refused_by_the_parser(tmp_path, capsys, options, message):
    with pytest.raises(SystemExit) as stopped:
        run_cli("scenes:60", tmp_path / "out", *options)
    assert stopped.value.code == 2 and message in capsys.readouterr().err


@pytest.mark.parametrize("existing", ["run", "export"])
def test_refused_for_what_lies_in_the_way(sources, tmp_path, monkeypatch, capsys, existing):
    monkeypatch.setattr("truepair.data.open.open", lambda *a, **o: pytest.fail("it was opened"))
    out = tmp_path / "out"
    kept = out / ("export/own/x" if existing == "export" else "pairs.parquet")
    kept.parent.mkdir(parents=True)
    kept.write_text("mine")
    if existing == "export":
        (out / "work").mkdir()
        (out / "work" / "audit.json").write_text("{}")
    assert run_cli(sources["precomp"], out, "--export", "own", "--export", "csv") == 2
    expected = "export exists already, without csv; move it away" if existing == "export" else "holds no audit"
    assert expected in capsys.readouterr().err
    assert kept.read_text() == "mine"


# ---- whole audits ----


def test_scenes_with_noise_of_a_trial_and_exports(tmp_path, capsys):
    out = tmp_path / "out"
    options = [*QUICK, "--noise", "0.4", "--noise-seed", "5", "--export", "ids", "--export", "jsonl"]
    assert run_cli("scenes:60", out, *options) == 0
    facts, rows = summary_of(out), rows_of(out)
    assert {path.name for path in out.iterdir()} == {*FILES, "work", "export"}
    assert (facts["pairs"], len(rows)) == (300, 300)
    assert facts["mismatch_rate"] == np.mean([row["mismatched"] for row in rows]) > 0.3
    asked = {"source": "scenes:60", "noise": 0.4, "noise_seed": 5, "noise_kind": "caption", "run": None}
    assert {name: facts["options"][name] for name in asked} == asked
    kept = (out / "export" / "kept_ids.txt").read_text().split()
    assert kept == [row["pair_id"] for row in rows if row["p_match"] >= 0.8]
    listed = [json.loads(line) for line in (out / "export" / "kept.jsonl").read_text().splitlines()]
    assert [entry["caption"] for entry in listed] == [row["caption"] for row in rows if row["p_match"] >= 0.8]
    assert "AUROC" in capsys.readouterr().out
    before = contents(out)
    assert run_cli("scenes:60", out, *options) == 0, "the same command again"
    after = contents(out)
    assert {name for name in after if after[name] != before.get(name)} <= {"summary.json", "report.html"}
    assert run_cli("scenes:60", out, *options, "--keep", "0.5") == 2
    assert "export exists already, made with keep = 0.8, now it is 0.5; move it away" in capsys.readouterr().err
    assert run_cli("scenes:60", out, *QUICK, "--noise", "0.4", "--noise-seed", "6") == 2
    assert "holds an audit of other pairs" in capsys.readouterr().err
    assert contents(out) == after


def test_the_own_format_of_a_precomp_folder(tiny, tmp_path):
    """Through Python by name as well: the summary knows the source."""
    import truepair
    from tests.audit.small_audits import QUICK_OPTIONS

    assert run_cli(tiny, tmp_path / "cli", *QUICK, "--export", "own") == 0
    truepair.audit(tiny, tmp_path / "python", **QUICK_OPTIONS, export=["own"], progress=False)
    ours, theirs = (contents(tmp_path / name / "export") for name in ("cli", "python"))
    assert ours == theirs and "own/train_ims.npy" in ours
    kept = sum(row["p_match"] >= 0.8 for row in rows_of(tmp_path / "cli"))
    assert len(truepair.load(tmp_path / "cli" / "export" / "own")) == kept


def test_ctrl_c_says_how_to_go_on(tiny, tmp_path, monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("truepair.audit.scoring.cross_fitting.fit", interrupted)
        assert run_cli(tiny, tmp_path / "out", *QUICK) == 130
    assert "Nothing is lost. The same command goes on where it stopped." in capsys.readouterr().err
    with monkeypatch.context() as patch:
        patch.setattr("truepair.data.open.open", interrupted)
        assert run_cli(tiny, tmp_path / "none", *QUICK) == 130
    assert "Nothing is lost" not in capsys.readouterr().err  # nothing was begun
    assert run_cli(tiny, tmp_path / "out", *QUICK) == 0


# ---- faults in the input ----


def broken_folder(folder, good):
    """`good` usable pairs among entries that are wrong in every way; returns reason → entries."""
    entries = write_picture_folder(folder, good)
    photo = picture_bytes(noise(1, 60, 80), "JPEG")
    files = {
        "cut.jpg": (photo[: len(photo) // 2], "broken-picture"),
        "bomb.png": (bomb(60_000, 60_000), "huge-picture"),
        "text.png": (b"this is no picture", "not-a-picture"),
        "nothing.png": (b"", "not-a-picture"),
        "program.eps": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 50 50\n", "not-a-picture"),
        "tiny.png": (picture_bytes(noise(2, 4, 40)), "tiny-picture"),
    }
    expected = {}
    for name, (data, reason) in files.items():
        (folder / name).write_bytes(data)
        entries.append((name, "red cat and blue house"))
        expected.setdefault(reason, []).append(name)
    entries += [("gone.png", "a red dog"), ("../outside.png", "a dog"), ("p0.png", ""), ("p1.png", "long " * 20_000)]
    expected |= {"missing-picture": ["gone.png"], "outside-folder": ["../outside.png"], "empty-caption": ["p0.png"]}
    expected |= {"long-caption": ["p1.png"], "encoding": ["table.csv"], "wrong-field-count": [f"row {good + 11}"]}
    table = "".join(f"{name},{caption}\n" for name, caption in [("image", "caption"), *entries])
    latin = b"p2.png,caf\xe9 rouge et maison bleue\n"  # in a file of UTF-8
    (folder / "table.csv").write_bytes(table.encode() + latin + b"p3.png,one,too,many,fields\n")
    return expected


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_a_folder_full_of_faults_is_audited_all_the_same(tmp_path, capsys):
    folder, out = tmp_path / "pictures", tmp_path / "out"
    expected = broken_folder(folder, 80)
    before = contents(folder)
    assert run_cli(folder, out, *QUICK, "--export", "own") == 0
    problems, rows = rows_of(out, "problems.parquet"), rows_of(out)
    found = {}
    for problem in problems:
        assert problem["file"] == "table.csv" and problem["detail"]
        found.setdefault(problem["reason"], []).append(problem["entry"])
    assert found == expected
    assert [problem["reason"] for problem in problems if problem["used"]] == ["encoding", "long-caption"]
    assert summary_of(out)["problems"].keys() == expected.keys()
    used = {row["image"] for row in rows}
    assert {f"p{k}.png" for k in range(80)} <= used
    assert not used & {"cut.jpg", "bomb.png", "text.png", "nothing.png", "program.eps", "tiny.png", "gone.png"}
    assert len({row["pair_id"] for row in rows}) == len(rows) >= 80
    assert contents(folder) == before, "nothing of the input is changed"
    assert (out / "export" / "own" / "table.csv").exists()
    assert "problems" in capsys.readouterr().out


def test_nothing_usable_is_an_error_that_says_why(tmp_path, capsys):
    folder = tmp_path / "pictures"
    folder.mkdir()
    (folder / "p0.png").write_bytes(b"no picture")
    (folder / "table.csv").write_text("image,caption\np0.png,a cat\np1.png,a dog\np2.png,\n")
    assert run_cli(folder, tmp_path / "out", *QUICK) == 2
    said = capsys.readouterr().err
    assert said.startswith("truepair: error: ")
    for words in ("table.csv holds no pair that can be used", "the file holds something else", "no such file", "empty"):
        assert words in said
    assert not (tmp_path / "out").exists()


def test_too_few_pairs_say_what_else_can_be_done(tmp_path, capsys):
    folder = tmp_path / "pictures"
    with (write_picture_folder(folder, 20) and folder / "table.csv").open("w") as file:
        file.write("image,caption\n" + "".join(f"p{k}.png,thing number {k}\n" for k in range(20)))
    assert run_cli(folder, tmp_path / "out", *QUICK) == 2
    assert "20 pairs are too few" in capsys.readouterr().err


def test_main_knows_the_command(capsys):
    with pytest.raises(SystemExit):
        main(["audit"])
    assert "DATA" in capsys.readouterr().err


def test_a_model_that_learned_nothing_is_not_believed_without_a_word(tmp_path, capsys):
    arguments = ["--epochs", "1", "--width", "16", "--threads", "1", "--quiet", "--noise", "0.3"]
    assert main(["audit", "scenes:60", "--out", str(tmp_path / "audit"), *arguments]) == 0
    facts = json.loads((tmp_path / "audit/summary.json").read_text())
    assert facts["noise_rate"] > 0.8 and "looks the same where nearly all pairs are mismatched" in facts["warnings"][0]
    said = " ".join(capsys.readouterr().out.split())
    assert all(f"Careful: {warning}" in said for warning in facts["warnings"])
    page = (tmp_path / "audit/report.html").read_text()
    assert "captions of 30\xa0% of the pairs were exchanged on purpose" in page and ">Careful<" in page
