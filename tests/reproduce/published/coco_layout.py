"""MS-COCO as Karpathy's JSON has it, with a few small pictures: tests shrink the published protocol to these counts."""

import json
from pathlib import Path

from tests.data.formats.made_pictures import noise, picture_bytes
from tests.encoders.tiny_models import WORDS

SPLITS = {"train": 14, "restval": 6, "val": 6, "test": 8}
"""Split → images. Those of train lie in train2014/, the others in val2014/."""


def write_coco(folder: Path, splits: dict[str, int] | None = None) -> Path:
    """Five captions an image, of the words that the tiny models know, and a sixth of every third one."""
    words, images = WORDS.split(), []
    for split, count in (splits or SPLITS).items():
        of = "train2014" if split == "train" else "val2014"
        (folder / of).mkdir(parents=True, exist_ok=True)
        for _ in range(count):
            number = len(images)
            name = f"COCO_{of}_{number:012d}.jpg"
            (folder / of / name).write_bytes(picture_bytes(noise(number, 16, 20), "JPEG"))
            captions = [
                " ".join(words[(number * 7 + k * 3 + place * 5) % len(words)] for place in range(4))
                for k in range(6 if number % 3 == 0 else 5)
            ]
            sentences = [{"raw": caption, "tokens": caption.split()} for caption in captions]
            images.append({"filepath": of, "filename": name, "cocoid": number, "split": split, "sentences": sentences})
    (folder / "dataset_coco.json").write_text(json.dumps({"images": images, "dataset": "coco"}))
    return folder
