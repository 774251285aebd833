"""Folders that the tests of this folder read."""

import pytest

from tests.reproduce.published.field_layouts import write_features, write_layout


@pytest.fixture(scope="session")
def layouts(tmp_path_factory):
    """A folder with Flickr30K, MS-COCO and CC152K as the field distributes them."""
    folder = tmp_path_factory.mktemp("field")
    for name in ("f30k", "coco", "cc152k"):
        write_layout(folder, name)
    return folder


@pytest.fixture(scope="session")
def features(tmp_path_factory):
    """A folder with the feature files of NUS-WIDE and XMediaNet as MRL names them, and their published counts."""
    folder = tmp_path_factory.mktemp("features")
    write_features(folder / "nus_wide_deep_doc2vec_data_42941.h5py", {"train": 42941, "test": 28661})
    write_features(
        folder / "xmedianet_deep_doc2vec_data.h5py", {"train": 32000, "valid": 4000, "test": 4000}, classes=200
    )
    return folder


@pytest.fixture
def f30k(tmp_path):
    return write_layout(tmp_path, "f30k")
