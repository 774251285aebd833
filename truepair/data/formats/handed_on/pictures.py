"""The pictures of pairs as files beside what names them: links to the originals where there are such, else copies."""

from __future__ import annotations

import io
from pathlib import Path, PurePosixPath

from truepair.data.collection import Collection, PairsCollection
from truepair.data.pictures.pictures import PlacedPictures
from truepair.errors import InputError
from truepair.files import link_or_copy, open_file

_KINDS = {b"\xff\xd8\xff": ".jpg", b"\x89PNG": ".png", b"RIFF": ".webp", b"GIF8": ".gif", b"BM": ".bmp"}


def check_pictures(collection: Collection, layout: str) -> None:
    """Raises InputError: the images of the pairs are no pictures that could be written."""
    if not isinstance(collection, PairsCollection) or not collection.pairs.images.have_pixels:
        raise InputError(
            f"{collection.name} has no pictures that {layout} could hold, only what describes them. Export ids, csv, "
            "jsonl or parquet instead"
        )


class WrittenPictures:
    """Puts pictures into a folder, each once; from the pairs of a collection that `check_pictures` lets pass.

    Args:
        folder: where they lie in the end; made when the first is put there.
    """

    def __init__(self, collection: PairsCollection, folder: Path) -> None:
        self.collection, self.folder = collection, folder
        self.names: dict[int, str] = {}
        self.taken: set[str] = set()

    def name(self, row: int) -> str:
        """The path of the picture of a pair below the folder, with `/` between its parts."""
        image = int(self.collection.pairs.image_index[row])
        if image not in self.names:
            self.names[image] = self._put(image)
        return self.names[image]

    def _put(self, image: int) -> str:
        images = self.collection.pairs.images
        if isinstance(images.files, PlacedPictures):
            place = images.files.place(int(images.files.rows[image]))
            if place.size < 0:
                name = self._free(images.ids[image], Path(place.file).suffix)
                link_or_copy(Path(place.file), self.folder / name)
                return name
            with open_file(place.file) as file:
                file.seek(place.offset)
                data = file.read(place.size)
        else:
            data = as_png(images.picture(image), images.ids[image])
        kind = next((suffix for start, suffix in _KINDS.items() if data.startswith(start)), ".png")
        name = self._free(images.ids[image], kind)
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return name

    def _free(self, wanted: str, suffix: str) -> str:
        """A name inside the folder that no other picture has."""
        parts = [part for part in PurePosixPath(wanted.replace("\\", "/")).parts if part not in ("..", "/", ".")]
        path = PurePosixPath(*parts) if parts else PurePosixPath("picture")
        stem, ending = (str(path.with_suffix("")), path.suffix) if path.suffix else (str(path), suffix)
        name, number = stem + ending, 0
        while name.lower() in self.taken:
            number += 1
            name = f"{stem}-{number}{ending}"
        self.taken.add(name.lower())
        return name


def as_png(pixels: object, name: str) -> bytes:
    from PIL import Image

    if pixels is None:
        raise InputError(f"the picture {name} cannot be read any more; restore it, and export again")
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")  # type: ignore[arg-type]
    return buffer.getvalue()
