"""Icons with their names as a data set: pictures and a table, from a package of npm, for anybody to repeat a result on.

    npm pack @mdi/svg@7.4.47
    pip install cairosvg
    python examples/icons.py mdi-svg-7.4.47.tgz icons
    truepair train icons --dev-share 0.1 --test-share 0.1 --noise 0.4 --seed 5 --epochs 14 --out runs/icons

The package (Material Design Icons, Apache-2.0) holds one drawing an icon and a list of their names, other names and
tags. A caption is the name, up to two other names, and the first tag.
"""

import csv
import io
import json
import sys
import tarfile
from pathlib import Path

SIDE = 96  # pixels
OTHER_NAMES, TAGS = 2, 1


def caption_of(icon: dict) -> str:
    names = [icon["name"], *icon["aliases"][:OTHER_NAMES]]
    return ", ".join([*(name.replace("-", " ") for name in names), *icon["tags"][:TAGS]])


def write_icons(package: Path, folder: Path) -> int:
    """Draw every icon of the package on white, with `icons.csv` beside; returns how many there are."""
    import cairosvg

    folder.mkdir(parents=True)
    rows = []
    with tarfile.open(package) as files:
        icons = json.load(io.TextIOWrapper(files.extractfile("package/meta.json"), encoding="utf-8"))
        for icon in icons:
            drawing = files.extractfile(f"package/svg/{icon['name']}.svg").read()
            picture = f"{icon['name']}.png"
            cairosvg.svg2png(
                drawing,
                write_to=str(folder / picture),
                output_width=SIDE,
                output_height=SIDE,
                background_color="white",
            )
            rows.append((picture, caption_of(icon)))
    with (folder / "icons.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("image", "caption"))
        writer.writerows(rows)
    return len(rows)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: icons.py PACKAGE.tgz FOLDER")
    print(f"{write_icons(Path(sys.argv[1]), Path(sys.argv[2])):,} icons in {sys.argv[2]}")
