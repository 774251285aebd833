"""The command line: what it prints and leaves, how fast help is, and what it says about bad input."""

import json
import resource
import subprocess
import sys

import numpy as np
import pytest

from tests.conftest import write_tiny_precomp
from truepair.cli.main import build_parser, main
from truepair.cli.options import whole_numbers
from truepair.cli.train import job_of
from truepair.data.config import DataConfig
from truepair.data.open import load_splits
from truepair.data.text import Vocabulary
from truepair.methods import METHODS
from truepair.training.fit import open_run
from truepair.training.run_folder import read_lines

pytestmark = pytest.mark.usefixtures("few_drawings")

QUICK = ["--epochs", "2", "--width", "16", "--batch-size", "16", "--minimum-count", "1"]


def train(data, out, *options):
    return main(["train", str(data), "--out", str(out), *QUICK, *options])


@pytest.fixture(scope="module")
def run(tiny, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "run"
    assert train(tiny, out, "--method", "infonce", "--noise", "0.4") == 0
    return out


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["demo", "--help"]])
def test_help_is_instant(arguments):
    """Under a second of work, as a whole process; the machine may be busy."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "truepair", *arguments], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1.0


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["train", "--method", "disncl", "--help"]])
def test_help_loads_no_torch(arguments):
    code = (
        f"import sys; from truepair.cli.main import main\ntry: main({arguments})\n"
        "except SystemExit: sys.exit(any(name in sys.modules for name in ('torch', 'sklearn', 'pyarrow', 'jinja2')))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def help_of(capsys, *arguments):
    with pytest.raises(SystemExit):
        main(["train", *arguments, "--help"])
    return capsys.readouterr().out


def test_help_of_train_shows_what_all_methods_share_and_where_the_rest_is(capsys):
    text = help_of(capsys)
    for expected in ["--noise-kind", "DECL", "[default: 128]", "truepair train --method gsc --help"]:
        assert expected in text
    for heading in ["\ndata:\n", "\ntraining:\n", "\naugmentation:\n"]:
        assert heading in text
    assert "--crcl-" not in text
    assert "--gsc-" not in text
    assert "--width" not in text


@pytest.mark.parametrize(
    ("arguments", "shown", "hidden"),
    [
        (["--method", "crcl"], ["--crcl-momentum", "(eq. 10)", "[default: 0.8]", "--pooling"], ["--gsc-", "--hidden"]),
        (["--method=gsc", "--model=sgr"], ["--gsc-co-train", "--reasoning-steps"], ["--crcl-", "--pooling"]),
        (["--model", "mlp"], ["--hidden-width", "[default: 512]"], ["--crcl-", "--pooling", "--dropout"]),
    ],
)
def test_help_of_train_shows_the_options_of_the_method_and_the_engine(arguments, shown, hidden, capsys):
    text = " ".join(help_of(capsys, *arguments).split())
    assert [option for option in shown if option not in text] == []
    assert [option for option in hidden if option in text] == []


@pytest.mark.parametrize("method", METHODS)
def test_help_of_a_method_shows_all_its_options_once(method, capsys):
    text = help_of(capsys, "--method", method)
    rows = [
        line.split()[0].rstrip(",")
        for line in text.split(f"method {method}:")[1].splitlines()
        if line.startswith("  --")
    ]
    options = [name for name, field in METHODS[method].options.__dataclass_fields__.items() if "help" in field.metadata]
    assert sorted(rows) == sorted(f"--{method}-{name}".replace("_", "-") for name in options)


def test_train_leaves_a_whole_run_folder(run, capsys):
    result = json.loads((run / "result.json").read_text())
    recalls = [result["test"][f"{way}_r{k}"] for way in ("i2t", "t2i") for k in (1, 5, 10)]
    assert result["test"]["rsum"] == pytest.approx(sum(recalls))
    assert 0 <= result["detection"]["auroc"] <= 1
    assert 0.2 < result["mismatch_rate"] < 0.45
    names = {"config.json", "metrics.jsonl", "pairs.parquet", "model.safetensors", "vocabulary.json", "timings.jsonl"}
    assert names <= {path.name for path in run.iterdir()}
    assert [line["epoch"] for line in read_lines(run / "metrics.jsonl")] == [1, 2]
    assert json.loads((run / "config.json").read_text())["data"]["noise"] == 0.4


def test_train_says_how_many_pairs_are_mismatched_where_the_truth_is_unknown(tmp_path, capsys):
    data = write_tiny_precomp(tmp_path / "many", images={"train": 400, "dev": 16, "test": 16})
    assert train(data, tmp_path / "run", "--method", "truepair", "--truepair-pieces", "3") == 0
    share = json.loads((tmp_path / "run" / "result.json").read_text())["mismatch_share"]
    assert share["low"] == 0 and share["share"] < 0.1
    assert (
        f"Share of mismatched pairs, by linear models that have not seen the pairs: {100 * share['share']:.0f} % "
        f"(95 % interval 0 to {100 * share['high']:.0f} %)"
    ) in capsys.readouterr().out


def test_evaluate_repeats_the_figures_of_the_run(run, tiny, tmp_path, capsys):
    assert main(["evaluate", str(run), str(tiny), "--json", str(tmp_path / "figures.json")]) == 0
    figures = json.loads((tmp_path / "figures.json").read_text())
    result = json.loads((run / "result.json").read_text())
    expected = result["test"]
    assert figures.pop("gallery") == result["gallery"]["test"] == {"images": 16, "texts": 32}
    assert figures == pytest.approx(expected)
    assert f"{expected['rsum']:.1f}" in capsys.readouterr().out


def test_evaluate_in_folds_is_the_mean_of_the_folds(run, tiny, tmp_path):
    assert main(["evaluate", str(run), str(tiny), "--folds", "4", "--json", str(tmp_path / "folds.json")]) == 0
    folds = json.loads((tmp_path / "folds.json").read_text())
    whole = json.loads((run / "result.json").read_text())["test"]
    assert folds["t2i_r1"] > whole["t2i_r1"]  # four images to choose from are easier than sixteen


def test_noise_writes_an_index_file_that_train_takes(tiny, tmp_path, capsys):
    index = tmp_path / "noise.npy"
    assert main(["noise", str(tiny), "--rate", "0.5", "--seed", "3", "--out", str(index)]) == 0
    assert "% of 96 pairs mismatched" in capsys.readouterr().out
    assert np.load(index).shape == (96,)
    assert train(tiny, tmp_path / "run", "--method", "infonce", "--noise-index", str(index)) == 0
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["mismatch_rate"] == pytest.approx(float((np.load(index) != np.arange(96) // 2).mean()))


def test_oracle_trains_on_the_matched_pairs_only(tiny, tmp_path):
    assert train(tiny, tmp_path / "run", "--method", "infonce", "--noise", "0.5", "--oracle") == 0
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["mismatch_rate"] == 0
    assert 40 < result["pairs"] < 70


def test_oracle_reads_the_words_of_all_pairs(tiny, tmp_path):
    """Its vocabulary is that of the methods it is a reference for, though a third of its captions is trained on."""
    options = ("--method", "infonce", "--noise", "0.7", "--minimum-count", "9")
    assert train(tiny, tmp_path / "all", *options) == 0
    assert train(tiny, tmp_path / "oracle", *options, "--oracle") == 0
    words, read = (Vocabulary.read(tmp_path / run / "vocabulary.json") for run in ("all", "oracle"))
    assert read == words
    pairs = load_splits(DataConfig(str(tiny), noise=0.7, oracle=True), seed=0).train
    assert len(Vocabulary.build(pairs.captions(), minimum_count=9)) < len(words)


def test_a_vocabulary_for_texts_without_words_is_refused(tmp_path, capsys):
    Vocabulary(("<pad>", "<start>", "<end>", "<unk>", "red")).write(tmp_path / "v_vocab.json")
    for side in ("images", "texts"):
        np.save(tmp_path / f"{side}.npy", np.random.default_rng(0).normal(size=(30, 6)).astype(np.float32))
    data = f"{tmp_path / 'images.npy'},{tmp_path / 'texts.npy'}"
    assert main(["train", data, "--out", str(tmp_path / "run"), "--vocabulary", str(tmp_path / "v_vocab.json")]) == 2
    assert "are vectors and have no words; leave it out" in capsys.readouterr().err and not (tmp_path / "run").exists()


def test_train_reads_a_published_vocabulary(tiny, tmp_path):
    """Of the ten words of the captions the file knows two: the others are read as unknown."""
    given = Vocabulary(("<pad>", "<start>", "<end>", "<unk>", "red", "blue"))
    given.write(tmp_path / "tiny_vocab.json")
    out = tmp_path / "run"
    words = [
        "train",
        str(tiny),
        "--out",
        str(out),
        "--method",
        "infonce",
        "--epochs",
        "1",
        "--width",
        "16",
        "--vocabulary",
    ]
    assert main([*words, str(tmp_path / "tiny_vocab.json")]) == 0
    assert Vocabulary.read(out / "vocabulary.json") == given
    assert open_run(out).model.preparation.vocabulary == given


def test_describe_prints_table_and_json(tiny, capsys):
    assert main(["describe", str(tiny)]) == 0
    assert "train" in capsys.readouterr().out
    assert main(["describe", "scenes:5"]) == 0
    assert "scenes/train" in capsys.readouterr().out
    assert main(["describe", str(tiny), "--json"]) == 0
    json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train"], "train needs --out"),
        (["train", "--out", "RUN"], "train needs DATA"),
        (["train", "nowhere", "--out", "RUN"], "nowhere"),
        (
            ["train", "TINY", "--out", "RUN", "--method", "infonce", "--crcl-momentum", "0.5"],
            "--crcl-momentum is an option of",
        ),
        (["train", "TINY", "--out", "RUN", "--as-printed"], "--as-printed needs --method"),
        (["train", "TINY", "--out", "RUN", "--noise", "1.5"], "--noise is 1.5; expected"),
        (["train", "TINY", "--out", "RUN", "--epochs", "0"], "epochs is 0"),
        (
            ["train", "TINY", "--out", "RUN", "--epochs", "2", "--method", "crcl", "--crcl-pieces", "none"],
            "needs more epochs than the 2",
        ),
        (["train", "TINY", "--out", "RUN", "--learning-rate", "-1"], "--learning-rate is -1"),
        (["train", "TINY", "--out", "RUN", "--word-share", "1"], "--word-share is 1"),
        (["train", "TINY", "--out", "RUN", "--device", "quantum"], "device is 'quantum'"),
        (["train", "TINY", "--out", "RUN", "--threads", "0"], "--threads is 0"),
        (["train", "TINY", "--out", "RUN", "--oracle", "--noise-index", "missing.npy"], "missing.npy"),
        (["train", "TINY", "--out", "RUN", "--noise", "0.2", "--noise-index", "x.npy"], "give one of them"),
        (["train", "TINY", "--out", "RUN", "--vocabulary", "missing_vocab.json"], "missing_vocab.json"),
        (["train", "TINY", "--out", "RUN", "--vocabulary", "BARE"], "without <start>, <unk>"),
        (["train", "TINY", "--out", "FINISHED"], "already holds a run"),
        (["train", "TINY", "--out", "TINY"], "not an empty folder"),
        (["train", "--resume", "TINY"], "not a run folder"),
        (["train", "--resume", "FINISHED", "--epochs", "9"], "leave --epochs out"),
        (["train", "TINY", "--resume", "FINISHED", "--epochs", "9"], "was started with"),
        (["train", "--resume", "FINISHED", "--method", "infonce"], "leave --method out"),
        (["train", "--resume", "FINISHED", "--epochs", "20"], "leave --epochs out"),
        (["train", "--resume", "FINISHED", "--out", "RUN"], "leave --out out"),
        (["evaluate", "TINY", "TINY"], "not a run folder"),
        (["evaluate", "FINISHED", "scenes:5"], "features are 56 wide, this model takes 8"),
        (["noise", "TINY", "--rate", "2", "--out", "x.npy"], "--rate is 2.0; expected"),
        (["describe", "nowhere"], "nowhere"),
    ],
)
def test_bad_input_is_one_clear_line(arguments, message, tiny, run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    places = {"TINY": str(tiny), "FINISHED": str(run), "RUN": str(tmp_path / "run")}
    words = {"<pad>": 0, "<end>": 1, "red": 2}
    bare = {"word2idx": words, "idx2word": {str(k): word for word, k in words.items()}, "idx": 3}
    (tmp_path / "bare_vocab.json").write_text(json.dumps(bare))
    places["BARE"] = str(tmp_path / "bare_vocab.json")
    before = {path: path.stat().st_mtime_ns for folder in (tiny, run) for path in folder.rglob("*")}
    assert main([places.get(argument, argument) for argument in arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
    assert not (tmp_path / "run").exists(), "nothing is left behind by a run that never began"
    assert before == {path: path.stat().st_mtime_ns for folder in (tiny, run) for path in folder.rglob("*")}


CONTRADICTIONS = [
    ("gsc", "--gsc-exchange after_epoch", "--gsc-exchange has no effect without --gsc-co-train"),
    ("gsc", "--gsc-intra-modal-weight 0 --gsc-intra-modal-temperature 2", "beside --gsc-intra-modal-weight 0.0"),
    ("gsc", "--as-printed --ablation --no-gsc-co-train --gsc-exchange after_epoch", "without --gsc-co-train"),
    ("crcl", "--crcl-labels given --crcl-momentum 0.5", "--crcl-momentum has no effect beside --crcl-labels given"),
    ("crcl", "--crcl-scale 0 --crcl-exponent 1", "--crcl-exponent has no effect beside --crcl-scale 0.0"),
    ("crcl", "--crcl-scale 0 --crcl-active-weight 0", "--crcl-scale and --crcl-active-weight are 0"),
    ("crcl", "--crcl-labels current --crcl-pieces 7,7,7", "labels are current, which no piece refines"),
    ("ugncl", "--ugncl-evidence exp_tanh --ugncl-background 0.5", "beside --ugncl-evidence exp_tanh"),
    (
        "ugncl",
        "--ugncl-margins soft --ugncl-sharpness 5",
        "--ugncl-sharpness has no effect beside --ugncl-margins soft",
    ),
    ("ugncl", "--ugncl-division probability --ugncl-threshold 0.3", "beside --ugncl-division probability"),
    ("disncl", "--disncl-disentangler none --disncl-regularizer-weight 1", "beside --disncl-disentangler none"),
    ("disncl", "--disncl-disentangler fdmer --disncl-balance 0.3", "beside --disncl-disentangler fdmer"),
    (
        "disncl",
        "--disncl-soft-weight 0 --disncl-log-floor -2",
        "--disncl-log-floor has no effect beside --disncl-soft-weight",
    ),
    ("disncl", "--disncl-soft-weight 0 --disncl-given-weight 0.2", "beside --disncl-soft-weight 0.0"),
    ("disncl", "--disncl-disentangle-weight 0 --disncl-balance 0.2", "beside --disncl-disentangle-weight 0.0"),
    ("ugncl", "--ugncl-kl-weight 0 --ugncl-divergence sum", "beside --ugncl-kl-weight 0.0"),
    ("ugncl", "--ugncl-ranking-weight 0 --ugncl-ranking-total sum", "beside --ugncl-ranking-weight 0.0"),
    ("disncl", "--disncl-disentangle-weight 0 --disncl-exclusive-weight 0.3", "beside --disncl-disentangle-weight 0.0"),
    ("disncl", "--disncl-adversarial-weight 0 --disncl-exclusive-weight 0.3", "beside --disncl-adversarial-weight 0.0"),
    (
        "disncl",
        "--disncl-disentangle-weight 0 --disncl-regularizer-weight 0 --disncl-adversarial-weight 2",
        "--disncl-adversarial-weight has no effect beside --disncl-disentangle-weight 0.0",
    ),
    ("uot-rcl", "--uot-rcl-relation-weight 0 --uot-rcl-confident random", "beside --uot-rcl-relation-weight 0.0"),
    ("uot-rcl", "--uot-rcl-relation-weight 0 --uot-rcl-pair-weight 0.5", "beside --uot-rcl-relation-weight 0.0"),
]


@pytest.mark.parametrize(("method", "options", "message"), CONTRADICTIONS)
def test_options_of_a_method_that_contradict_each_other_are_refused_with_the_pair_named(
    method, options, message, tiny, tmp_path, capsys
):
    assert train(tiny, tmp_path / "run", "--method", method, *options.split()) == 2
    error = capsys.readouterr().err
    assert message in error and "leave one" in error
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("method", "options", "taken"),
    [
        ("gsc", "--gsc-co-train --gsc-exchange after_epoch", {"co_train": True, "exchange": "after_epoch"}),
        (
            "disncl",
            "--disncl-disentangler none --disncl-soft-weight 0 --disncl-regularizer-weight 0",
            {"disentangler": "none", "soft_weight": 0.0, "regularizer_weight": 0.0},
        ),
        (
            "ugncl",
            "--as-printed --ablation --ugncl-evidence background --ugncl-background 0.5",
            {"evidence": "background", "background": 0.5},
        ),
    ],
)
def test_options_that_agree_are_taken(method, options, taken, tiny):
    words = ["train", str(tiny), "--out", "x", "--method", method, *options.split()]
    assert taken.items() <= job_of(build_parser(words).parse_args(words)).method_options.items()


def test_lists_of_whole_numbers():
    assert whole_numbers("7,7,7") == (7, 7, 7)
    assert whole_numbers("none") == ()
    with pytest.raises(SystemExit):
        main(["train", "scenes", "--out", "x", "--crcl-pieces", "7;7"])


def test_data_without_splits_are_told_how_to_have_figures(tiny, tmp_path, capsys):
    import numpy as np

    rng = np.random.default_rng(0)
    for side in ("images", "texts"):
        np.save(tmp_path / f"{side}.npy", rng.normal(size=(40, 8)).astype(np.float32))
    words = ["train", f"{tmp_path}/images.npy,{tmp_path}/texts.npy", "--method", "infonce", "--epochs", "1"]
    assert main([*words, "--width", "8", "--quiet", "--out", str(tmp_path / "run")]) == 0
    assert "No figures: the data have no dev or test split" in capsys.readouterr().out
    shares = ["--dev-share", "0.2", "--test-share", "0.2", "--width", "8", "--quiet", "--out", str(tmp_path / "with")]
    assert main([*words, *shares]) == 0
    assert "No figures" not in capsys.readouterr().out
