"""Ways to part what both modalities share from what only one has: DisNCL's, and the rivals it compares with.

A disentangler holds what is trained beside the engine (discriminators, decoders) and gives named terms of the parts of
the clean pairs. All act on one vector an item; for region–word engines that is the mean over regions or words.

Shape letters: n clean pairs, D width of the features F, S width of a subspace.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from truepair.engines.subspaces import DisentangledEngine, Parts, three_layers
from truepair.losses.information import derangement, jensen_shannon, reverse_gradient, unit_gaussian_divergence
from truepair.methods.disncl.options import DisNCLConfig


@dataclass(frozen=True)
class Term:
    """A named part of the loss: its `value`, to be logged, and what it adds to the loss that is minimised (0-d both).

    They differ where a discriminator is fooled: it raises the value while the encoders, behind a reversed gradient,
    lower it.
    """

    name: str
    value: Tensor
    loss: Tensor


class Disentangler(nn.Module, ABC):
    """Terms of the parts of n ≥ 2 clean pairs."""

    @abstractmethod
    def terms(self, image: Parts, text: Parts) -> list[Term]:
        """All terms, weighted."""


class InformationBottleneck(Disentangler):
    """L_Dis + L_reg of DisNCL (eq. 1, 7, 9–12): information between parts and features, raised or lowered.

    Raised: I(V_S; F_T), I(T_S; F_V), I(V_X; F_V), I(T_X; F_T). Lowered, by reversed gradients: I(V_X; F_T), I(T_X; F_V)
    and, the regulariser, I(V_S; V_X), I(T_S; T_X).

    Raised or lowered, parts and features both learn: eq. 9 and 12 name both under their max and min.
    """

    RAISED = ("vs_ft", "ts_fv", "vx_fv", "tx_ft")
    LOWERED = ("vx_ft", "tx_fv", "vs_vx", "ts_tx")

    def __init__(self, engine: DisentangledEngine, config: DisNCLConfig) -> None:
        super().__init__()
        self.config = config
        width, sizes = engine.feature_width, engine.sizes
        self.discriminators = nn.ModuleDict(
            {
                name: three_layers(
                    sizes.width + (sizes.width if name in ("vs_vx", "ts_tx") else width), sizes.hidden, 1
                )
                for name in (*self.RAISED, *self.LOWERED)
            }
        )

    def terms(self, image: Parts, text: Parts) -> list[Term]:
        config, values = self.config, self.information(image, text)
        shared, exclusive = config.disentangle_weight * config.balance, config.disentangle_weight * (1 - config.balance)
        lowered = config.adversarial_weight
        weights = {
            "vs_ft": shared,
            "ts_fv": shared,
            "vx_fv": exclusive,
            "tx_ft": exclusive,
            "vx_ft": exclusive * (1 + config.exclusive_weight) * lowered,
            "tx_fv": exclusive * (1 + config.exclusive_weight) * lowered,
            "vs_vx": config.regularizer_weight * lowered,
            "ts_tx": config.regularizer_weight * lowered,
        }
        # KL in both directions; every information is raised here, and lowered ones turn round behind the discriminator.
        divergence = 2 * gaussian_divergence(image, text)
        found = [Term(name, value, -weights[name] * value) for name, value in values.items()]
        return [*found, Term("divergence", divergence, shared * config.invariant_weight * divergence)]

    def information(self, image: Parts, text: Parts) -> dict[str, Tensor]:
        """The Jensen–Shannon value of every two parts, drawn anew, and features, 0-d each."""
        fv, vs, vx = image.features, image.invariant, image.exclusive
        ft, ts, tx = text.features, text.invariant, text.exclusive
        pairs = {
            "vs_ft": (vs, ft),
            "ts_fv": (ts, fv),
            "vx_fv": (vx, fv),
            "tx_ft": (tx, ft),
            "vx_ft": (vx, ft),
            "tx_fv": (tx, fv),
            "vs_vx": (vs, vx),
            "ts_tx": (ts, tx),
        }
        values = {}
        for name, (first, second) in pairs.items():
            if name in self.LOWERED:
                first, second = reverse_gradient(first), reverse_gradient(second)
            values[name] = discriminated(self.discriminators[name], first, second)
        return values


class FeatureConsistency(Disentangler):
    """FDMER, as DisNCL compares it: ‖V_S − T_S‖² for what is shared; parts of one item orthogonal to each other."""

    def __init__(self, engine: DisentangledEngine, config: DisNCLConfig) -> None:
        super().__init__()
        self.weight = config.disentangle_weight

    def terms(self, image: Parts, text: Parts) -> list[Term]:
        consistency = (image.invariant - text.invariant).square().sum(dim=1).mean()
        overlap = torch.stack(
            [(side.invariant * side.exclusive).sum(dim=1).square().mean() for side in (image, text)]
        ).sum()
        return [
            Term("consistency", consistency, self.weight * consistency),
            Term("overlap", overlap, self.weight * overlap),
        ]


class Reconstruction(Disentangler):
    """The baseline of DisNCL's figure 4: nothing parts the parts, and together they rebuild what they come from.

    Decided: that is the features, in place of pixels and words; DisNCL takes them for all that the input says (IV-A).
    """

    def __init__(self, engine: DisentangledEngine, config: DisNCLConfig) -> None:
        super().__init__()
        self.weight = config.disentangle_weight
        width, sizes = engine.feature_width, engine.sizes
        self.image_decoder, self.text_decoder = (three_layers(2 * sizes.width, sizes.hidden, width) for _ in range(2))

    def terms(self, image: Parts, text: Parts) -> list[Term]:
        return [self.rebuilt("reconstruction", image, text, image.invariant, text.invariant)]

    def rebuilt(self, name: str, image: Parts, text: Parts, for_image: Tensor, for_text: Tensor) -> Term:
        """Squared error of both sides' features from the own exclusive part and some invariant part of each."""
        error = torch.zeros((), device=for_image.device)
        for decoder, side, invariant in ((self.image_decoder, image, for_image), (self.text_decoder, text, for_text)):
            # A sum over the features, which are unit vectors: 1 for a decoder that says nothing.
            target = side.features.detach()
            found = decoder(torch.cat([invariant, side.exclusive], dim=1))
            error = error + mse_loss(found, target) * target.shape[1]
        return Term(name, error, self.weight * error)


class CrossPrediction(Reconstruction):
    """DMIM, as DisNCL compares it: features rebuilt from the own exclusive part and either side's invariant part."""

    def terms(self, image: Parts, text: Parts) -> list[Term]:
        crossed = self.rebuilt("cross_prediction", image, text, text.invariant, image.invariant)
        return [*super().terms(image, text), crossed]


class InformationRegularization(Disentangler):
    """MVIB, as DisNCL compares it: I(V_S; T_S) raised, and the divergence of the two encodings lowered."""

    def __init__(self, engine: DisentangledEngine, config: DisNCLConfig) -> None:
        super().__init__()
        self.weight = config.disentangle_weight
        self.divergence_weight = config.disentangle_weight * config.balance * config.invariant_weight
        self.discriminator = three_layers(2 * engine.sizes.width, engine.sizes.hidden, 1)

    def terms(self, image: Parts, text: Parts) -> list[Term]:
        information = self.information(image, text)
        divergence = gaussian_divergence(image, text)
        return [
            Term("vs_ts", information, -self.weight * information),
            Term("divergence", divergence, self.divergence_weight * divergence),
        ]

    def information(self, image: Parts, text: Parts) -> Tensor:
        return discriminated(self.discriminator, image.invariant, text.invariant)


DISENTANGLERS: dict[str, type[Disentangler]] = {
    "disncl": InformationBottleneck,
    "fdmer": FeatureConsistency,
    "dmim": CrossPrediction,
    "mvib": InformationRegularization,
    "reconstruction": Reconstruction,
}


def discriminated(discriminator: nn.Module, first: Tensor, second: Tensor) -> Tensor:
    """The Jensen–Shannon value of paired rows (n, ·), n ≥ 2, against rows of `second` that belong to other pairs."""
    other = second[derangement(len(second)).to(second.device)]
    joint, marginal = discriminator(
        torch.cat([torch.cat([first, second], dim=1), torch.cat([first, other], dim=1)])
    ).chunk(2)
    return jensen_shannon(joint, marginal)


def gaussian_divergence(image: Parts, text: Parts) -> Tensor:
    """The mean KL of unit Gaussians around V_S and T_S (eq. 10), 0-d, 0 to 2."""
    return unit_gaussian_divergence(image.invariant, text.invariant).mean()


def select_parts(side: Parts, rows: Tensor) -> Parts:
    """The parts of some items."""
    return Parts(side.features[rows], side.invariant[rows], side.exclusive[rows])
