"""The errors a user can cause, and what each message owes them.

Every message names the place (file, row, option), what was found, what was expected, and what to do.
"""


class TruepairError(Exception):
    """Base of every error that truepair raises on purpose; the command line prints it without a traceback."""

    exit_code = 2
    """Of a command that ends with it."""


class InputError(TruepairError, ValueError):
    """Something the user handed over (a file, an array, an option) cannot be used as it is."""


class NaNError(InputError):
    """Similarities are not numbers: of features that are not finite, or of a model that has diverged."""


class TooLargeError(InputError):
    """What was handed over needs more memory than there is."""


class RunFolderError(TruepairError):
    """A run folder is missing, incomplete, already in use, or belongs to another configuration."""


class TrainingError(TruepairError):
    """Training cannot go on (for example, another of its processes is gone)."""


class DivergedError(TrainingError):
    """Training diverged: the loss is no longer finite, or nothing is left to learn from. The same command would do so
    again.
    """

    exit_code = 3
