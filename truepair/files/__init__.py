"""Files written whole or not at all, read without trusting them, and folders that one process at a time works in."""

from truepair.files.cache import cache_folder
from truepair.files.lock import foreign_in, locked
from truepair.files.reading import (
    check_values,
    map_npy,
    open_file,
    options_from,
    read_file,
    read_json_lines,
    read_json_object,
    require_file,
)
from truepair.files.tensors import read_tensors, require_like, tensor_bytes
from truepair.files.writing import (
    atomic_file,
    clear_leftovers,
    leftovers,
    link_or_copy,
    temporary_name,
    write_bytes_atomically,
    write_json_atomically,
    write_text_atomically,
    writing,
)

__all__ = [
    "atomic_file",
    "cache_folder",
    "check_values",
    "clear_leftovers",
    "foreign_in",
    "leftovers",
    "link_or_copy",
    "locked",
    "map_npy",
    "open_file",
    "options_from",
    "read_file",
    "read_json_lines",
    "read_json_object",
    "read_tensors",
    "require_file",
    "require_like",
    "temporary_name",
    "tensor_bytes",
    "write_bytes_atomically",
    "write_json_atomically",
    "write_text_atomically",
    "writing",
]
