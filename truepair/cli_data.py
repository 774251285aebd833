"""What several commands say about their data argument."""

DATA_HELP = (
    "a folder in the field's precomp layout ({split}_ims.npy, {split}_caps.txt or .tsv, …), or scenes, the built-in "
    "drawings (scenes:500 for 500 training pictures)"
)
