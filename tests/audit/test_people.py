"""An audit with decisions: decided pairs are fixed, nothing is scored anew, and what people wrote is exported."""

import numpy as np
import pytest

from tests.audit.small_audits import QUICK, contents, rows_of, run_cli, summary_of, write_embeddings
from truepair import inject_noise, load
from truepair.audit.people import allowed
from truepair.audit.result import Share
from truepair.cli.main import main
from truepair.decisions import Decision
from truepair.decisions.order import ReviewOrder
from truepair.decisions.population import decisions_of


def review(folder, verdicts, **more):
    store, pairs = decisions_of(folder)
    with store:
        for row, verdict in verdicts.items():
            store.record(Decision(pair_id=pairs.ids[row], verdict=verdict, person="Ada", chosen_by="worst", **more))


@pytest.fixture(scope="module")
def audited(tiny, tmp_path_factory):
    """An audit of the tiny data set, and the options that made it."""
    out = tmp_path_factory.mktemp("audits") / "tiny"
    assert run_cli(tiny, out, *QUICK) == 0
    return tiny, out


def test_decided_pairs_are_fixed_and_nothing_is_scored_anew(audited):
    data, out = audited
    before, files = rows_of(out), contents(out / "work" / "crossfit")
    assert "decision" not in before[0] and summary_of(out)["decisions"] is None
    review(out, {0: "mismatch", 1: "match", 2: "unsure", 5: "mismatch"})
    review(out, {7: "mismatch"}, caption="a caption & <b>better</b>")
    review(out, {9: "mismatch"}, partner="3")
    assert run_cli(data, out, *QUICK, "--decisions", str(out), "--export", "csv", "--export", "own") == 0
    assert contents(out / "work" / "crossfit") == files
    rows, facts = rows_of(out), summary_of(out)
    assert [rows[k]["p_match"] for k in (0, 1, 5, 7, 9)] == [0, 1, 0, 0, 0]
    assert 0 < rows[2]["p_match"] < 1 and rows[2]["decision"] == "unsure"
    assert [row["p_match_undecided"] for row in rows] == [row["p_match"] for row in before]
    assert [row["flagged"] for row in rows] == [row["p_match"] < 0.5 for row in rows]
    assert rows[0]["reason"] == "Ada called it mismatched" and rows[0]["decided_by"] == "Ada"
    assert (rows[7]["corrected_caption"], rows[9]["corrected_caption"]) == (
        "a caption & <b>better</b>",
        rows[3]["caption"],
    )
    worst = (out / "report.html").read_text().split('id="worst"')[1].split("</section>")[0]
    assert not {f'<p class="fact">pair {k}</p>' for k in (0, 1, 2, 5, 7, 9)} & set(worst.splitlines()[:200])
    assert rows[4]["decision"] == "" and rows[4]["corrected_caption"] is None
    told = facts["decisions"]
    assert (told["decided"], told["mismatched"], told["unsure"], told["drawn"], told["corrected"]) == (6, 4, 1, 0, 2)
    assert told["agreed"] + told["missed"] + told["mistaken"] == 5 and not told["taken_over"]
    page = (out / "report.html").read_text()
    assert "What people decided" in page and "a caption &amp; &lt;b&gt;better&lt;/b&gt;" in page
    kept = (out / "export" / "kept.csv").read_text()
    assert "7,3,a caption & <b>better</b>,1.0,1.0" in kept.splitlines()
    own = (out / "export" / "own" / "train_caps.txt").read_text().splitlines()
    assert "a caption & <b>better</b>" in own and rows[0]["caption"] not in own[:1]
    assert main(["decisions", "show", str(out)]) == 0, "estimates stand on what was believed without decisions"


def test_an_export_of_other_decisions_is_not_taken_for_this_one(tiny, tmp_path, capsys):
    """What lies there stays, and the audit says so before it begins."""
    (tmp_path / "out" / "export").mkdir(parents=True)
    note = tmp_path / "out" / "work"
    note.mkdir()
    (tmp_path / "out" / "export" / "kept.csv").write_text("")
    (note / "audit.json").write_text("{}")
    (note / "export.json").write_text('{"keep": 0.8, "decisions": "of others"}')
    assert run_cli(tiny, tmp_path / "out", *QUICK, "--export", "csv") == 2
    assert "made with other decisions; move it away" in capsys.readouterr().err


def test_decisions_of_other_data_are_refused_before_anything_is_scored(tmp_path, capsys):
    rng = np.random.default_rng(0)
    images = rng.normal(size=(80, 8)).astype(np.float32)
    source = write_embeddings(tmp_path / "e", images, images)
    (tmp_path / "d.csv").write_text("pair_id,verdict\nnobody,match\n")
    assert run_cli(source, tmp_path / "out", "--quiet", "--decisions", str(tmp_path / "d.csv")) == 2
    assert "none of its 1 decided pairs is among these" in capsys.readouterr().err
    assert run_cli(source, tmp_path / "new", "--quiet", "--decisions", str(tmp_path / "none.csv")) == 2
    assert "cannot be read" in capsys.readouterr().err and not (tmp_path / "new").exists()


def test_decisions_about_other_pairs_are_refused_before_models_are_trained(tiny, tmp_path, capsys):
    """Those of an audit without noise, or of other noise: ids and captions are the same, images are not."""
    given, out = load(str(tiny), "train"), tmp_path / "out"
    noisy = inject_noise(given, 0.5, seed=3)
    moved = given.ids()[int(np.flatnonzero(noisy.mismatched)[0])]
    image = given.images.ids[int(given.image_index[int(moved)])]
    noise = ["--noise", "0.5", "--noise-seed", "3"]
    judged = f"pair_id,verdict,given_image\n{moved},match,{image}\n"
    for text, why in (
        (judged, f"pair '{moved}' was judged with the image '{image}'"),
        (f"pair_id,verdict\n{moved},match\n", f"pair '{moved}' was mismatched by noise"),
        ("pair_id,verdict\nnobody,match\n", "none of its 1 decided pairs is among these"),
    ):
        (tmp_path / "d.csv").write_text(text)
        assert run_cli(tiny, out, *QUICK, *noise, "--decisions", str(tmp_path / "d.csv")) == 2
        assert why in capsys.readouterr().err and not (out / "work" / "crossfit").exists()
    assert run_cli(tiny, out, *QUICK, "--decisions", str(tmp_path / "d.csv")) == 2  # without noise, too
    assert "none of its 1" in capsys.readouterr().err and not (out / "work" / "crossfit").exists()
    assert run_cli(tiny, out, *QUICK, *noise) == 0
    review(out, {int(moved): "mismatch"})
    assert run_cli(tiny, out, *QUICK, *noise, "--decisions", str(out)) == 0  # those of this noise are taken
    assert rows_of(out)[int(moved)]["p_match"] == 0


def test_decided_pairs_bound_the_share_and_the_share_bounds_what_they_teach(tmp_path):
    """Embeddings that tell little: "no sign of noise", until the thirty worst pairs are all found mismatched. That says
    that there is some, and little of the pairs that nobody looked at.
    """
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(400, 8))
    images, wrong, texts = factors + rng.normal(size=(400, 8)) / 0.8, rng.permutation(400)[:80], factors.copy()
    texts[wrong] = factors[np.roll(wrong, 1)]
    texts += rng.normal(size=(400, 8)) / 0.8
    source, out = write_embeddings(tmp_path / "e", images.astype(np.float32), texts.astype(np.float32)), tmp_path / "o"
    assert run_cli(source, out, "--quiet", "--rematch", "0") == 0
    before, p_match = summary_of(out), np.array([row["p_match"] for row in rows_of(out)])
    worst = np.argsort(p_match)[:30]
    review(out, {int(row): "mismatch" for row in worst})
    assert run_cli(source, out, "--quiet", "--rematch", "0", "--decisions", str(out)) == 0
    after, learned = summary_of(out), np.array([row["p_match"] for row in rows_of(out)])
    assert "No sign of noise" in before["statement"] and "look mismatched" in after["statement"]
    assert after["noise_rate_low"] == pytest.approx((30 - 0.05 * 30) / 400) and before["noise_rate_low"] == 0
    assert (after["noise_rate"], after["noise_rate_high"]) == (before["noise_rate"], before["noise_rate_high"])
    assert (1 - learned).mean() == pytest.approx(after["noise_rate_high"], abs=1e-4), "else nothing was bounded"
    told = (out / "report.html").read_text().split('id="decisions"')[1].split("</p>")[0]
    assert "The estimate above is the audit's, within what the decided pairs alone" in told and "By the 0" not in told


@pytest.mark.parametrize(
    ("own", "matched", "expected"),
    [
        ((0.1, 0.0, 0.3), [], (0.1, 0.0, 0.3)),
        ((0.1, 0.0, 0.3), [False] * 20, (0.19, 0.19, 0.3)),
        ((0.1, 0.0, 0.3), [True] * 90, (0.1, 0.0, 0.145)),
        ((0.1, 0.0, 0.1), [False] * 20, (0.19, 0.19, 1.0)),
        ((0.9, 0.8, 1.0), [True] * 40 + [False] * 10, (0.625, 0.075, 0.625)),
    ],
    ids=["nothing", "at least", "at most", "too low", "too high"],
)
def test_the_share_is_within_what_the_decided_pairs_leave_possible(own, matched, expected):
    """Of a hundred pairs; one in twenty of the decided ones may be wrong."""
    found = allowed(Share(*own), np.array(matched, dtype=bool), 100)
    assert (found.share, found.low, found.high) == pytest.approx(expected)


def test_the_share_is_that_of_people_once_they_know_better(tmp_path):
    """Embeddings that tell nothing: the audit's interval is wide, random draws narrow it."""
    rng = np.random.default_rng(0)
    images = rng.normal(size=(150, 8)).astype(np.float32)
    source = write_embeddings(tmp_path / "e", images, rng.normal(size=(150, 8)).astype(np.float32))
    assert run_cli(source, tmp_path / "out", "--quiet", "--rematch", "0") == 0
    before = summary_of(tmp_path / "out")
    store, pairs = decisions_of(tmp_path / "out")
    with store:
        for row, probability in ReviewOrder(pairs).next(130):
            verdict = "mismatch" if row % 10 == 0 else "match"
            more = {"chosen_by": "gain", "probability_chosen": probability}
            store.record(Decision(pair_id=pairs.ids[row], verdict=verdict, person="Ada", **more))
    assert run_cli(source, tmp_path / "out", "--quiet", "--rematch", "0", "--decisions", str(tmp_path / "out")) == 0
    after = summary_of(tmp_path / "out")
    told = after["decisions"]
    assert before["noise_rate"] > 0.5 and told["taken_over"] and told["drawn"] == 130
    assert (
        after["noise_rate_low"] <= 0.1 <= after["noise_rate_high"] < 0.25 and "By 130 decisions" in after["statement"]
    )
