"""Audit by an encoder of images and texts: as it is where it knows the pairs, by heads where it knows too little."""

import json

import numpy as np
import pytest
from PIL import Image

import truepair
from truepair import encoders
from truepair.audit import AuditOptions, CrossFitting
from truepair.audit.scoring.by_encoder import auroc, of_matched
from truepair.audit.tables import summary_text
from truepair.cli.main import main
from truepair.encoders.decode import pixels_of
from truepair.encoders.encoder import ImageTextEncoder

PAIRS = 300


class Colours(ImageTextEncoder):
    """Pictures of one colour, captions that name it in numbers; the two sides turned apart where it knows nothing."""

    regions, width = 1, 12

    def __init__(self, knows):
        self.name, self.knows = ("knowing" if knows else "ignorant"), knows
        rng = np.random.default_rng(0)
        self.image_map, other = (np.linalg.qr(rng.normal(size=(12, 12)))[0].astype("f4") for _ in range(2))
        self.text_map = self.image_map if knows else other

    def identity(self):
        return f"colours-{self.name}"

    def prepare(self, picture):
        return pixels_of(picture, shortest=4).mean((0, 1))

    def encode(self, prepared):
        return (features_of(np.stack(prepared)) @ self.image_map)[:, None]

    def encode_texts(self, captions, moved=lambda done: None):
        return (
            features_of(np.array([[float(word) for word in caption.split()] for caption in captions])) @ self.text_map
        )


def features_of(colours):
    """(n, 12) of (n, 3): waves, so that near colours are near and far ones unrelated."""
    waves = colours[:, :, None] / 255 * np.array([2.0, 9.0])
    return np.concatenate([np.sin(waves), np.cos(waves)], axis=2).reshape(len(colours), -1).astype("f4")


@pytest.fixture
def photos(tmp_path, monkeypatch):
    """A folder of pictures, a fifth of them with the caption of the next one."""
    monkeypatch.setenv("TRUEPAIR_CACHE", str(tmp_path / "cache"))
    for knows in (True, False):
        encoder = Colours(knows)
        monkeypatch.setitem(encoders.ENCODERS, encoder.name, lambda encoder=encoder: encoder)
    colours = np.random.default_rng(1).integers(0, 256, (PAIRS, 3), dtype=np.uint8)
    (tmp_path / "photos").mkdir()
    lines = []
    for number, colour in enumerate(colours):
        Image.fromarray(np.tile(colour, (8, 8, 1))).save(tmp_path / "photos" / f"{number}.png")
        named = colours[(number + 1) % PAIRS if number % 5 == 0 else number]
        lines.append({"image": f"{number}.png", "caption": " ".join(map(str, named))})
    (tmp_path / "photos" / "table.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return tmp_path / "photos"


WRONG = np.arange(PAIRS) % 5 == 0


def test_an_encoder_that_knows_the_pairs_scores_them_as_they_are(photos, tmp_path):
    result = truepair.audit(str(photos), tmp_path / "out", encoder="knowing", progress=False)
    told = result.verdict.details["encoder"]
    assert result.scored_by == "encoder" and told["by"] == "zero-shot"
    assert told["matched_auroc"] > 0.98 and "heads_auroc" not in told
    assert auroc(result.verdict.p_match[~WRONG], result.verdict.p_match[WRONG]) > 0.97
    assert abs(result.verdict.noise_rate - 0.2) < 0.06
    assert "zero-shot: by the vectors of knowing as they are" in " ".join(summary_text(result).split())
    assert "zero-shot: by the vectors of knowing as they are" in (tmp_path / "out" / "report.html").read_text()
    options = json.loads((tmp_path / "out" / "summary.json").read_text())["options"]
    assert options["encoder"] == "knowing"  # by its name, so that the review opens the same pictures


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(("pairs", "caption"), [(1, None), (40, "9 9 9"), (12, None)])
def test_where_hardly_a_pair_can_be_mismatched_nothing_is_claimed(photos, tmp_path, capsys, pairs, caption):
    lines = [json.loads(line) for line in (photos / "table.jsonl").read_text().splitlines()[:pairs]]
    few = [{**line, "caption": caption or line["caption"]} for line in lines]
    (photos / "table.jsonl").write_text("\n".join(map(json.dumps, few)))
    assert main(["audit", str(photos), "--out", str(tmp_path / "out"), "--quiet", "--encoder", "knowing"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "95 % interval 0.0–100.0 %" in said and "Fewer than 20 pairs could be mismatched on purpose" in said
    assert "of 100 times" not in said and "Whether they tell anything of these pairs is not known" in said
    assert "No sign of noise" not in said


def test_where_it_knows_little_heads_are_trained_on_its_vectors(photos, tmp_path):
    crossfit = CrossFitting(folds=2, epochs=20, width=32, method="infonce")
    result = truepair.audit(
        str(photos),
        tmp_path / "out",
        encoder="ignorant",
        crossfit=crossfit,
        progress=False,
        options=AuditOptions(bank=128),
    )
    told = result.verdict.details["encoder"]
    assert told["by"] == "heads"
    assert told["zero_shot_auroc"] < 0.7 < told["heads_auroc"]
    assert "heads trained on the vectors of ignorant" in told["told"] and "less than the 95" in told["told"]
    assert auroc(result.verdict.p_match[~WRONG], result.verdict.p_match[WRONG]) > 0.7


def test_on_the_command_line_it_goes_on_and_refuses_another_encoder(photos, tmp_path, capsys):
    command = ["audit", str(photos), "--out", str(tmp_path / "out"), "--quiet", "--encoder"]
    assert main([*command, "knowing"]) == 0
    first = capsys.readouterr().out
    assert "encoder" in first
    assert main([*command, "knowing"]) == 0
    assert capsys.readouterr().out.splitlines()[:6] == first.splitlines()[:6]
    assert main([*command, "ignorant"]) == 2
    assert "holds an audit" in capsys.readouterr().err


def test_the_measure_of_what_is_known():
    above, below = np.array([3.0, 1.0, 2.0]), np.array([2.0, 0.0])
    naive = np.mean([(a > b) + 0.5 * (a == b) for a in above for b in below])
    assert auroc(above, below) == pytest.approx(naive)
    assert of_matched(0.9, 0.2) == pytest.approx(1.0)
    assert of_matched(0.75, 0.5) == pytest.approx(1.0)
    assert of_matched(0.5, 0.0) == of_matched(0.5, 1.0) == 0.5
