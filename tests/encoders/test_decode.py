"""Decoding: large JPEG files at a part of their size, everything else as it is."""

import struct
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from truepair.encoders import decode
from truepair.encoders.decode import LONGEST_SIDE, read_picture
from truepair.encoders.descriptor import grid_descriptor
from truepair.errors import InputError


def scene(width, height, seed=0):
    """Soft blobs with a little noise, (height, width, 3) uint8."""
    rng = np.random.default_rng(seed)
    coarse = Image.fromarray(rng.integers(0, 256, (9, 12, 3), dtype=np.uint8)).resize((width, height), Image.BICUBIC)
    noisy = np.asarray(coarse, dtype=float) + rng.normal(0, 10, (height, width, 3))
    return Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8))


def file_of(image, kind="JPEG", **options):
    buffer = BytesIO()
    image.save(buffer, kind, **({"quality": 90} if kind == "JPEG" else {}), **options)
    return buffer


def read_whole(file):
    """The pixels without any short cut: all of them decoded, laid on white, then shrunk."""
    upright = ImageOps.exif_transpose(Image.open(file)).convert("RGBA")
    flat = Image.alpha_composite(Image.new("RGBA", upright.size, "white"), upright).convert("RGB")
    flat.thumbnail((192, 192))
    return np.asarray(flat)


def modes():
    colours = scene(70, 50)
    clear = colours.convert("RGBA")
    clear.putalpha(scene(70, 50, 1).convert("L"))
    yield "RGB", file_of(colours)
    yield "grey", file_of(colours.convert("L"))
    yield "CMYK", file_of(colours.convert("CMYK"))
    yield "alpha", file_of(clear, "PNG")
    yield "grey alpha", file_of(clear.convert("LA"), "PNG")
    yield "palette", file_of(colours.quantize(16), "PNG")
    yield "palette with a clear colour", file_of(colours.quantize(16), "PNG", transparency=3)
    yield "RGB with a clear colour", file_of(colours, "PNG", transparency=colours.getpixel((5, 5)))
    yield "just below the limit", file_of(scene(767, 300))
    yield "large, not JPEG", file_of(scene(1200, 800), "PNG")


@pytest.mark.parametrize(("name", "file"), [*modes()], ids=[name for name, _ in modes()])
def test_other_pictures_keep_every_bit(name, file):
    assert np.array_equal(read_picture(file), read_whole(file))


@pytest.mark.parametrize(
    ("kind", "white"), [(np.uint16, 65535), (np.int32, 65535), (np.int32, 255), (np.float32, 1), (np.float32, 255)]
)
def test_more_than_8_bits_are_scaled_not_cut(kind, white):
    grey = np.arange(100 * 80).reshape(80, 100) % 256
    values = (grey * (white / 255)).astype(kind)
    found = read_picture(file_of(Image.fromarray(values), "TIFF"))
    assert np.abs(found.astype(int) - grey[..., None]).max() <= 1
    if kind is np.uint16:
        assert np.array_equal(read_picture(file_of(Image.fromarray(values), "PNG")), found)
    odd = np.array([[np.nan, -5, 4e5, 1e6] * 4] * 16, dtype=np.float32)
    assert read_picture(file_of(Image.fromarray(odd), "TIFF"))[0, :4, 0].tolist() == [0, 0, 102, 255]
    assert (read_picture(file_of(Image.new("F", (9, 9)), "TIFF")) == 0).all()


@pytest.mark.parametrize("size", [(768, 500), (1600, 1200), (1201, 3203), (5000, 150)])
@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
def test_large_jpegs_are_nearly_the_same(size, mode):
    file = file_of(scene(*size).convert(mode))
    ours, whole = read_picture(file), read_whole(file)
    assert ours.shape == whole.shape and max(ours.shape) == 192
    assert np.abs(ours.astype(int) - whole).mean() < 3
    if min(ours.shape[:2]) >= 14:
        one, other = grid_descriptor(ours), grid_descriptor(whole)
        assert (one * other).sum() / np.linalg.norm(one) / np.linalg.norm(other) > 0.999


@pytest.mark.parametrize(("longer", "decoded"), [(767, 767), (768, 384), (1535, 768), (1536, 384), (4000, 500)])
def test_twice_the_pixels_needed_are_decoded(longer, decoded):
    for size in ((longer, 90), (90, longer)):
        with Image.open(file_of(Image.new("RGB", size))) as image:
            decode.decode_small(image)
            image.load()
            assert max(image.size) == decoded


def test_large_jpegs_are_turned_upright_and_still_found_broken():
    exif = Image.Exif()
    exif[0x0112] = 6
    file = file_of(scene(1600, 1000), exif=exif)
    assert read_picture(file).shape == (192, 120, 3)
    assert np.abs(read_picture(file).astype(int) - read_whole(file)).mean() < 3
    with pytest.raises(InputError, match="truncated"):
        read_picture(BytesIO(file.getvalue()[: len(file.getvalue()) // 2]))


def noise(seed: int, height: int = 20, width: int = 24, channels: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).integers(256, size=(height, width, channels), dtype=np.uint8)


def test_pictures_are_upright_and_on_white(tmp_path: Path) -> None:
    clear = np.dstack([noise(1), np.zeros((20, 24), np.uint8)])
    clear[:, :12, 3] = 255
    Image.fromarray(clear).save(tmp_path / "clear.png")
    found = read_picture(tmp_path / "clear.png")
    assert np.array_equal(found[:, :12], clear[:, :12, :3])
    assert (found[:, 12:] == 255).all()

    Image.fromarray(noise(2, channels=1)[..., 0]).save(tmp_path / "grey.png")
    assert np.array_equal(read_picture(tmp_path / "grey.png"), noise(2, channels=1).repeat(3, axis=2))

    turned = Image.Exif()
    turned[0x0112] = 6  # to be shown turned by 90 degrees
    Image.fromarray(noise(3)).save(tmp_path / "turned.png", exif=turned)
    assert np.array_equal(read_picture(tmp_path / "turned.png"), np.rot90(noise(3), -1))


def test_large_pictures_are_shrunk(tmp_path: Path) -> None:
    Image.fromarray(noise(1, 300, 600)).save(tmp_path / "large.png")
    assert read_picture(tmp_path / "large.png").shape == (LONGEST_SIDE // 2, LONGEST_SIDE, 3)


def test_an_open_file_is_read_like_a_path_and_postscript_is_refused(tmp_path: Path) -> None:
    picture = tmp_path / "p.png"
    Image.fromarray(noise(1)).save(picture)
    assert np.array_equal(read_picture(BytesIO(picture.read_bytes())), noise(1))
    picture.write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 50 50\n%%EndComments\nshowpage\n")
    with pytest.raises(InputError, match=r"p\.png cannot be read .*it is PostScript") as caught:
        read_picture(picture)
    assert isinstance(caught.value.__cause__, decode.PostScript)


def test_squares_of_any_size_are_decoded_at_twice_their_side_at_least(tmp_path: Path) -> None:
    for size, side in (((1600, 1000), 64), ((20, 24), 32), ((300, 900), 224)):
        file = file_of(scene(*size))
        whole = Image.open(file).convert("RGB").resize((side, side), Image.Resampling.BICUBIC)
        found = read_picture(file, square=side)
        assert found.shape == (side, side, 3)
        assert np.abs(found.astype(int) - np.asarray(whole)).mean() < 3
    assert np.array_equal(decode.resized(noise(1), 7), np.asarray(Image.fromarray(noise(1)).resize((7, 7))))


def block(orientation: int, *tags: tuple[int, int, bytes]) -> bytes:
    """An EXIF block with further tags: (number, type, four bytes of value)."""
    entries = sorted([(0x0112, 3, struct.pack("<HH", orientation, 0)), *tags])
    listed = b"".join(struct.pack("<HHI", number, kind, 1) + value for number, kind, value in entries)
    return b"Exif\0\0II*\0" + struct.pack("<IH", 8, len(entries)) + listed + bytes(4)


ODD = (0x0128, 2, b"a\0\0\0")  # a unit of resolution that is a letter, not a number
XMP = b'<x:xmpmeta tiff:Orientation="%d"/>'


@pytest.mark.parametrize("orientation", range(10))
def test_turned_pictures_are_those_of_pillow(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    for name, file in modes():
        with Image.open(file) as image:
            if image.format == "JPEG" and image.mode == "RGB" and max(image.size) < 768:
                image.load()
                turned = file_of(image, "PNG", exif=exif)
                assert np.array_equal(read_picture(turned), read_whole(turned)), name
            if image.format == "PNG" and max(image.size) < 768:
                transparency = {k: v for k, v in image.info.items() if k == "transparency"}
                turned = file_of(image, "PNG", exif=exif, **transparency)
                assert np.array_equal(read_picture(turned), read_whole(turned)), name
    for kind in ("JPEG", "WEBP", "TIFF"):
        turned = file_of(scene(70, 50), kind, exif=exif)
        assert np.array_equal(read_picture(turned), read_whole(turned)), kind
    if orientation in range(1, 9):
        turned = file_of(scene(70, 50), xmp=XMP % orientation)
        assert np.array_equal(read_picture(turned), read_whole(turned)), "XMP"


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize(
    "exif", [b"Exif\0\0garbage!", b"garbage", b"Exif\0\0II*\0\xff\xff\xff\x7f", b"Exif\0\0MM\0*\0"]
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_damaged_block_is_none(kind, exif):
    plain, damaged = file_of(scene(70, 50), kind), file_of(scene(70, 50), kind, exif=exif)
    assert np.array_equal(read_picture(damaged), read_picture(plain))


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_odd_tags_do_not_matter(kind):
    sound, odd = (file_of(scene(70, 50), kind, exif=block(6, *tags)) for tags in ((), (ODD,)))
    assert read_picture(odd).shape == (70, 50, 3)
    assert np.array_equal(read_picture(odd), read_picture(sound))
