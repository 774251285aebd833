import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from truepair.cli.main import main
from truepair.data.pairs import Images, Pairs, Texts
from truepair.engines.config import GlobalConfig
from truepair.errors import InputError, RunFolderError
from truepair.pages.demo import run as demo_run
from truepair.pages.demo.figures import belief_histogram
from truepair.pages.demo.page import believed, example_of, found
from truepair.pages.demo.run import SMALL, run_demo
from truepair.pages.kit.pictures import Album
from truepair.training.loop import Training

pytestmark = pytest.mark.usefixtures("few_drawings")

TINY = GlobalConfig(width=8, word_width=8, pooling="max")
SCRIPT = "<script>alert('caption')</script> & a red disc"


def tiny_demo(out: Path, source: str = "scenes:60", **changes: Any) -> dict[str, Any]:
    options: dict[str, Any] = {"epochs": 1, "noise": 0.4, "seed": 3, "model": TINY}
    return run_demo(out, source=source, **{**options, **changes})


def forbid_training(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("this must not train")

    monkeypatch.setattr(Training, "run", refuse)


def page_of(out: Path) -> str:
    return (out / "index.html").read_text(encoding="utf-8")


def words_of(page: str) -> str:
    """The page's text without tags, spaces joined."""
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("scenes") / "demo"
    return out, tiny_demo(out)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data without pictures, one caption an image; the caption of image 0 is a script in each split."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    for split, count in (("train", 40), ("dev", 12), ("test", 12)):
        np.save(folder / f"{split}_ims.npy", rng.normal(size=(count, 3, 5)).astype(np.float32))
        captions = [SCRIPT, *(f"a {'red' if number % 2 else 'blue'} thing {number}" for number in range(1, count))]
        (folder / f"{split}_caps.txt").write_text("\n".join(captions) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def without_pictures(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("folder") / "demo"
    tiny_demo(out, str(folder), epochs=2)
    return out


def test_facts_of_a_demo(finished: tuple[Path, dict[str, Any]]) -> None:
    out, demo = finished
    assert json.loads((out / "demo.json").read_text(encoding="utf-8")) == demo
    assert demo["data"] == {
        "source": "scenes:60",
        "pairs": 300,
        "train_images": 60,
        "dev_images": 30,
        "test_images": 30,
    }
    assert demo["noise"]["nominal"] == 0.4
    assert 0.3 < demo["noise"]["realised"] <= 0.4
    assert (demo["seed"], demo["epochs"]) == (3, 1)
    results = {name: run["result"] for name, run in demo["runs"].items()}
    assert {name: result["method"] for name, result in results.items()} == {
        "clean": "infonce",
        "plain": "infonce",
        "robust": "crcl",
    }
    assert results["clean"]["mismatch_rate"] is None
    assert results["plain"]["mismatch_rate"] == results["robust"]["mismatch_rate"] == demo["noise"]["realised"]
    for name, result in results.items():
        assert json.loads((out / "runs" / name / "result.json").read_text(encoding="utf-8")) == result


def test_plain_and_robust_see_the_same_pairs(finished: tuple[Path, dict[str, Any]]) -> None:
    configs = {
        name: json.loads((finished[0] / "runs" / name / "config.json").read_text(encoding="utf-8"))
        for name in ("clean", "plain", "robust")
    }
    assert configs["plain"]["pairs"] == configs["robust"]["pairs"] != configs["clean"]["pairs"]
    assert configs["clean"]["method"] == configs["plain"]["method"]
    for part in ("model", "training", "augmentation"):
        assert configs["clean"][part] == configs["plain"][part] == configs["robust"][part]


def test_page_loads_nothing(finished: tuple[Path, dict[str, Any]], without_pictures: Path) -> None:
    for out in (finished[0], without_pictures):
        page = page_of(out)
        assert "://" not in page.replace("data:image/png;base64,", "")
        assert "default-src 'none'" in page
        assert not re.search(r"""<(?:script|link|iframe|object|base)\b|@import|url\((?!#)""", page)
        assert all(source.startswith("data:image/png;base64,") for source in re.findall(r'src="([^"]*)"', page))


def test_page_shows_what_the_figures_say(finished: tuple[Path, dict[str, Any]]) -> None:
    out, demo = finished
    page = page_of(out)
    table = re.search(r"<tbody>(.*?)</tbody>", page, re.DOTALL)
    assert table
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", table[1])
    columns = ("rsum", "i2t_r1", "i2t_r5", "i2t_r10", "t2i_r1", "t2i_r5", "t2i_r10")
    expected = []
    for run in demo["runs"].values():
        expected += [f"{run['result']['test'][column]:.1f}" for column in columns]
        auroc = (run["result"]["detection"] or {}).get("auroc")
        expected.append("–" if auroc is None else f"{auroc:.3f}")
    assert cells == expected
    assert page.count('<svg role="img"') == 2
    assert "var(--robust)" in page
    assert "#0a00" not in page
    assert page.count("<img") == page.count('alt="scene-')
    assert page.count("<img") > 12


def test_suspicious_pairs_are_the_least_believed(finished: tuple[Path, dict[str, Any]]) -> None:
    from pyarrow import parquet

    out, _ = finished
    rows = parquet.read_table(out / "runs" / "robust" / "pairs.parquet").to_pylist()
    least = sorted(rows, key=lambda row: row["p_match"])[:12]
    section = page_of(out).split("The pairs it trusts least")[1].split("Where it errs")[0]
    shown = re.findall(r'alt="(scene-train-\d+): .*?<q>(.*?)</q>.*?(✓|✗)', section, re.DOTALL)
    assert shown == [(row["image"], row["caption"], "✗" if row["mismatched"] else "✓") for row in least]
    assert f"{sum(row['mismatched'] for row in least)} of them are mismatched in truth" in section


def test_table_is_printed(
    finished: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out, demo = finished
    forbid_training(monkeypatch)
    tiny_demo(out)
    printed = capsys.readouterr().out
    for run in demo["runs"].values():
        assert re.search(rf"^{re.escape(run['title'])} .* {run['result']['test']['rsum']:.1f} ", printed, re.MULTILINE)
    assert "40 % of them" in printed
    assert str(out / "index.html") in printed


def test_finished_runs_are_used_again(
    finished: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out, demo = finished
    page = page_of(out)
    (out / "index.html").unlink()
    forbid_training(monkeypatch)
    again = tiny_demo(out)
    assert again["runs"] == demo["runs"]
    assert page_of(out) == page
    assert capsys.readouterr().out.count("finished earlier") == 3


def test_an_interrupted_demo_goes_on(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tiny_demo(tmp_path / "whole", str(folder))
    train_epoch, calls = Training._train_epoch, []

    def interrupted(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:  # the second run
            raise KeyboardInterrupt
        return train_epoch(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Training, "_train_epoch", interrupted)
        with pytest.raises(KeyboardInterrupt):
            tiny_demo(tmp_path / "half", str(folder))
    assert not (tmp_path / "half" / "index.html").exists()
    after = tiny_demo(tmp_path / "half", str(folder))
    for name, run in whole["runs"].items():
        assert after["runs"][name]["result"] == run["result"]


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"epochs": 2}, "training.epochs = 1, now it is 2"),
        ({"noise": 0.2}, "data.noise = 0.4, now it is 0.2"),
        ({"seed": 4}, "training.seed = 3, now it is 4"),
        ({"source": "scenes:50"}, "data.source = 'scenes:60', now it is 'scenes:50'"),
        ({"model": SMALL}, "model."),
    ],
)
def test_another_demo_is_refused_before_any_work(
    finished: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], place: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("nothing may be loaded yet")

    monkeypatch.setattr(demo_run, "load_splits", refuse)
    with pytest.raises(RunFolderError, match=re.escape(place)) as caught:
        tiny_demo(finished[0], **changes)
    assert "--out" in str(caught.value)


def test_other_folders_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("mine", encoding="utf-8")
    for out in (tmp_path, tmp_path / "index.html"):
        with pytest.raises(RunFolderError, match="not the folder of a demo"):
            tiny_demo(out)
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]
    assert (tmp_path / "index.html").read_text(encoding="utf-8") == "mine"


def test_captions_are_escaped_and_stand_for_missing_pictures(without_pictures: Path) -> None:
    page = page_of(without_pictures)
    assert "<script" not in page
    assert "&lt;script&gt;alert(" in page
    assert "<img" not in page
    assert page.count('class="pic nopic') > 12
    assert "These data have no pictures to show" in page
    assert "CRCL trains in 2 pieces" in words_of(page)


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_without_one_kind_of_pair(folder: Path, tmp_path: Path, noise: float) -> None:
    demo = tiny_demo(tmp_path / "demo", str(folder), noise=noise)
    page, realised = page_of(tmp_path / "demo"), demo["noise"]["realised"]
    assert ("Matched pairs it suspects" in page) == (realised < 1)
    assert ("Mismatched pairs it trusts" in page) == (realised > 0)
    assert ("tells them apart" in page) == (0 < realised < 1)


def test_a_source_without_test_split_is_refused(folder: Path, tmp_path: Path) -> None:
    for split in ("train", "dev"):
        for name in (f"{split}_ims.npy", f"{split}_caps.txt"):
            (tmp_path / name).write_bytes((folder / name).read_bytes())
    with pytest.raises(InputError, match="has no test split"):
        tiny_demo(tmp_path / "demo", str(tmp_path))
    assert not (tmp_path / "demo").exists()


def test_threads_are_as_before(folder: Path, tmp_path: Path) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        tiny_demo(tmp_path / "demo", str(folder))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    config = json.loads((tmp_path / "demo" / "runs" / "plain" / "config.json").read_text(encoding="utf-8"))
    assert config["threads"] == 1


def four_pairs() -> Pairs:
    """Image 0 has its own caption a and b's; image 1 has none right."""
    return Pairs(
        images=Images(np.zeros((3, 1, 2), dtype=np.float32), ("x", "y", "z")),
        texts=Texts(("a", "b", "c"), ("0", "1", "2")),
        image_index=np.array([0, 0, 1]),
        text_index=np.array([0, 1, 2]),
        true_image=np.array([0, 1, 0]),
    )


def test_album_knows_what_really_belongs_together() -> None:
    album = Album(four_pairs())
    assert [album.picture(image).caption for image in range(3)] == ["a", "b", "(no caption)"]
    assert [believed(album, pair, 0.5).mismatched for pair in range(3)] == [False, True, True]
    picture, given = example_of(album)
    assert (picture.name, [(hit.item, hit.right) for hit in given]) == ("x", [("a", True), ("b", False)])


def test_found_gives_the_place_of_the_right_item() -> None:
    similarity = np.array([0.1, 0.9, 0.5, 0.5, 0.3, 0.2, 0.0])
    result = found(similarity, np.arange(7) == 6, str)
    assert [hit.item for hit in result.hits] == ["1", "2", "3", "4", "5"]
    assert not any(hit.right for hit in result.hits)
    assert result.place == 7
    assert found(similarity, np.isin(np.arange(7), (3, 6)), str).place == 3


def test_the_same_chart_is_the_same_bytes() -> None:
    belief, mismatched = np.linspace(0, 1, 50), np.arange(50) < 20
    first, second = (belief_histogram(belief, mismatched, 0.1, 'a "quoted" <text>') for _ in range(2))
    assert first == second
    assert "a &#34;quoted&#34; &lt;text&gt;" in first


def test_command_line(finished: tuple[Path, dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--out", str(finished[0])]) == 2
    assert "holds a demo with" in capsys.readouterr().err


def test_somebodys_own_runs_are_left_alone(tmp_path: Path) -> None:
    """A folder with runs of other names, or with files beside them, is not a demo's."""
    (tmp_path / "runs" / "first").mkdir(parents=True)
    (tmp_path / "index.html").write_text("mine")
    with pytest.raises(RunFolderError, match="nothing was changed"):
        tiny_demo(tmp_path)
    assert (tmp_path / "index.html").read_text() == "mine"
