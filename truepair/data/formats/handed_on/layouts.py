"""The table of the layouts that pairs are handed on in, by the names that `--export` takes."""

from __future__ import annotations

from truepair.data.formats.handed_on.datacomp import DataComp
from truepair.data.formats.handed_on.fiftyone import FiftyOne
from truepair.data.formats.handed_on.imagefolder import ImageFolder
from truepair.data.formats.handed_on.img2dataset import Img2Dataset
from truepair.data.formats.handed_on.label_studio import LabelStudio
from truepair.data.formats.handed_on.layout import Layout
from truepair.data.formats.handed_on.open_clip import OpenClip

LAYOUTS: dict[str, Layout] = {
    "datacomp": DataComp(),
    "img2dataset": Img2Dataset(),
    "imagefolder": ImageFolder(),
    "open-clip": OpenClip(),
    "label-studio": LabelStudio(),
    "fiftyone": FiftyOne(),
}
