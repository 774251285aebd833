"""One place a paper: a file, or a folder where it needs several. `METHODS` says where each lives; nothing else does."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from truepair.errors import InputError

if TYPE_CHECKING:
    from truepair.methods.base import Method
    from truepair.methods.pair_field import PairFields


@dataclass(frozen=True)
class Place:
    """Where a method and its options live, as `module:class` below `truepair.methods`.

    The options are read for `--help`: their module must be importable without torch.

    Attributes:
        revision: raised when the method comes to other figures with the same options, data and seed. A run goes on
            with its own revision only, and records of an earlier one are marked.
        untouched: revision → pairs of an option and its value, with any of which it comes to the figures of the
            revision before.
    """

    method_class: str
    options_class: str
    revision: int = 1
    untouched: Mapping[int, tuple[tuple[str, str | float], ...]] = field(default_factory=dict)

    @property
    def method(self) -> type[Method]:
        """The method's class."""
        found: type[Method] = named(self.method_class)
        return found

    @property
    def options(self) -> type[Any]:
        """Its options, a frozen dataclass."""
        found: type[Any] = named(self.options_class)
        return found


DEFAULT = "truepair"
"""The method of `truepair train` where none is named."""

METHODS: dict[str, Place] = {
    "triplet": Place("triplet:Triplet", "triplet:TripletConfig"),
    "infonce": Place("infonce:InfoNCE", "infonce:InfoNCEConfig"),
    "crcl": Place("crcl.method:CRCL", "crcl.options:CRCLConfig"),
    "truepair": Place(
        "truepair.method:TruePair",
        "truepair.options:TruePairConfig",
        revision=9,
        untouched={
            6: (("labels", "given"), ("first_labels", "given")),  # no linear models are made
            7: (("labels", "given"), ("first_labels", "given"), ("credit", "label")),  # nor does π say who is believed
            8: (("labels", "given"), ("first_labels", "given")),
            9: (("labels", "given"), ("first_labels", "given")),
        },
    ),
    "gsc": Place("gsc.method:GSC", "gsc.options:GSCConfig"),
    "ugncl": Place("ugncl.method:UGNCL", "ugncl.options:UGNCLConfig"),
    "disncl": Place("disncl.method:DisNCL", "disncl.options:DisNCLConfig"),
    "rince": Place("rince:RINCE", "rince:RINCEConfig"),
    "rcl": Place("rcl:RCL", "rcl:RCLConfig"),
    "decl": Place("decl.method:DECL", "decl.options:DECLConfig"),
    "ncr": Place("ncr.method:NCR", "ncr.options:NCRConfig"),
    "bicro": Place("bicro.method:BiCro", "bicro.options:BiCroConfig"),
    "l2rm": Place("l2rm.method:L2RM", "l2rm.options:L2RMConfig"),
    "osa": Place("osa:OSA", "osa:OSAConfig"),
    "in2r": Place("in2r.method:IN2R", "in2r.options:IN2RConfig", revision=2),
    "mscn": Place("mscn.method:MSCN", "mscn.options:MSCNConfig"),
    "npc": Place("npc.method:NPC", "npc.options:NPCConfig"),
    "rcsl": Place("rcsl.method:RCSL", "rcsl.options:RCSLConfig", revision=2),
    "ce": Place("ce:CrossEntropy", "ce:CEConfig"),
    "mrl": Place("mrl:MRL", "mrl:MRLConfig"),
    "elr-cmr": Place("elr_cmr:ELRCMR", "elr_cmr:ELRCMRConfig"),
    "uot-rcl": Place(
        "uot_rcl.method:UOTRCL",
        "uot_rcl.options:UOTRCLConfig",
        revision=5,
        untouched={5: (("own_weight", 0.0),)},  # the pair was one of its nearest samples already, as printed
    ),
}


def named(place: str) -> Any:
    module, name = place.split(":")
    return getattr(import_module(f"truepair.methods.{module}"), name)


def learns_from_labels(name: str) -> bool:
    """Whether the method of that name needs the classes of the pairs, and is scored by mAP."""
    return name in METHODS and bool(getattr(METHODS[name].options, "learns_from_labels", False))


def shown_fields(name: str) -> PairFields:
    """How pages show what the method of that name keeps of every pair; none for a name that is not in the table."""
    return METHODS[name].method.fields if name in METHODS else {}


def revision_of(name: str) -> dict[str, int]:
    """What `config.json` and records keep of the revision of a method: nothing of the first."""
    revision = METHODS[name].revision if name in METHODS else 1
    return {"revision": revision} if revision > 1 else {}


def is_outdated(method: Mapping[str, Any], as_before: Collection[int] = ()) -> bool:
    """Whether a method, as `config.json` and records have it, comes to other figures today.

    Args:
        method: its name, revision and options.
        as_before: revisions that come to the figures of the one before on the data of the run.
    """
    place = METHODS.get(str(method.get("name")))
    if place is None:
        return False
    options = method.get("options") or {}
    since = range(int(method.get("revision", 1)) + 1, place.revision + 1)
    return any(
        all(options.get(name) != value for name, value in place.untouched.get(at, ()))
        for at in since
        if at not in as_before
    )


def build_method(name: str, options: dict[str, Any] | None = None) -> Method:
    """The method of that name with its own options.

    Raises:
        InputError: an unknown name, an option the method does not have, or a value out of range.
    """
    if name not in METHODS:
        raise InputError(f"method is {name!r}; expected one of {', '.join(METHODS)}")
    place = METHODS[name]
    known = place.options.__dataclass_fields__
    for option in options or {}:
        if option not in known:
            raise InputError(f"method {name} has no option {option!r}; it has {', '.join(known)}")
    return place.method(place.options(**(options or {})))
