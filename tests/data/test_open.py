from pathlib import Path

import numpy as np
import pytest

from tests.data.formats.made_pictures import write_pictures
from tests.data.formats.test_shards import samples, write_tar
from truepair.cli.main import main
from truepair.data.collection import EmbeddingCollection, PairsCollection
from truepair.data.formats.precomp.precomp import PrecompCollection
from truepair.data.formats.shards.shards import ShardCollection
from truepair.data.formats.tables.tables import TableCollection
from truepair.data.open import open as open_source
from truepair.errors import InputError


def write_table(folder: Path, name: str = "table.csv") -> Path:
    write_pictures(folder / "img", 2)
    (folder / name).write_text("image,caption\nimg/p0.png,a\nimg/p1.png,b\n")
    return folder / name


def test_pairs_that_need_no_reading(tiny: Path) -> None:
    precomp = open_source(tiny, split="dev")
    assert type(precomp) is PrecompCollection and precomp.name == "tiny/dev" and len(precomp) == 32
    assert open_source(tiny).name == "tiny/train"
    scenes = open_source("scenes:8")
    assert len(scenes) % 8 == 0 and len(scenes) > 0
    picture = scenes.picture(0)
    assert picture is not None and picture.shape[2] == 3
    with pytest.raises(InputError, match="holds features, for which there is no option caption"):
        open_source(tiny, caption="first")


def test_labelled_features(wikipedia: Path) -> None:
    collection = open_source(wikipedia, split="test")
    assert isinstance(collection, PairsCollection) and collection.pairs.labels is not None


def test_tables_and_shards(tmp_path: Path) -> None:
    table = write_table(tmp_path / "a")
    assert isinstance(open_source(tmp_path / "a"), TableCollection)
    assert isinstance(open_source(str(table)), TableCollection)
    write_tar(tmp_path / "b" / "x.tar", samples(0, 2))
    assert isinstance(open_source(tmp_path / "b"), ShardCollection)
    assert isinstance(open_source(f"{tmp_path}/b/*.tar"), ShardCollection)
    write_table(tmp_path / "b", "named.tsv").write_text("image\tcaption\nimg/p0.png\ta\n")
    assert isinstance(open_source(tmp_path / "b", table="named.tsv"), TableCollection)


def test_which_of_several_tables(tmp_path: Path) -> None:
    write_table(tmp_path)
    (tmp_path / "about.json").write_text("{}")
    assert len(open_source(tmp_path)) == 2  # a .json is often something else
    write_table(tmp_path, "other.csv")
    with pytest.raises(InputError, match="several tables: about.json, other.csv, table.csv"):
        open_source(tmp_path)
    assert len(open_source(tmp_path, table="other.csv")) == 2
    with pytest.raises(InputError, match="no such table"):
        open_source(tmp_path, table="none.csv")
    (tmp_path / "words.txt").write_text("a")
    with pytest.raises(InputError, match="no table that is understood; expected .csv"):
        open_source(tmp_path, table="words.txt")


def test_embeddings(tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    for name in ("images", "texts"):
        np.save(tmp_path / f"{name}.npy", vectors)
    for source in (tmp_path, f"{tmp_path}/images.npy,{tmp_path}/texts.npy"):
        collection = open_source(source)
        assert isinstance(collection, EmbeddingCollection) and len(collection) == 5
    with pytest.raises(InputError, match="has no split 'dev', nor any other; ask for a share"):
        open_source(tmp_path, split="dev")
    assert open_source(tmp_path, split="train").ids(0, 9) == ["0", "1", "2", "3", "4"]


def test_an_empty_name_is_not_the_current_folder(capsys: pytest.CaptureFixture[str]) -> None:
    """An unset variable of a script must not have another folder audited."""
    with pytest.raises(InputError, match="DATA is empty"):
        open_source("")
    for command in (["describe", ""], ["audit", "", "--out", "never"], ["train", "", "--out", "never"]):
        assert main(command) == 2 and "DATA is empty" in capsys.readouterr().err


def test_anything_else_is_told_what_is_understood(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="(?s)is none of the inputs that are understood.*webdataset layout"):
        open_source(tmp_path)
    with pytest.raises(InputError, match="(?s)does not exist.*precomp layout"):
        open_source(tmp_path / "none")
    (tmp_path / "a.txt").write_text("")
    with pytest.raises(InputError, match="is none of the inputs"):
        open_source(tmp_path / "a.txt")


def test_real_drawings_split_by_vendor(emoji: Path) -> None:
    collection = open_source(emoji, split="dev", label="group", caption="first", progress=False)
    assert isinstance(collection, TableCollection)
    assert len(collection) == len(collection.pairs.images) > 1000 and collection.problems == []
