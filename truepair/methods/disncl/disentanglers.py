"""Ways to part what both modalities share from what only one has: DisNCL's, and the rivals it compares with.

A disentangler holds what is trained beside the engine (discriminators, decoders) and gives named terms of the parts of
the clean pairs. All act on one vector an item; for region–word engines that is the mean over regions or words.

Shape letters: n clean pairs, D width of the features F, S width of a subspace.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from truepair.engines.subspaces import DisentangledEngine, Parts, three_layers
from truepair.losses.information import blurred, derangement, jensen_shannon, reverse_gradient, unit_gaussian_divergence
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

    def discriminator_loss(self, image: Parts, text: Parts) -> Tensor | None:
        """What the discriminators alone minimise on given parts; None where there are none."""
        return None


class InformationBottleneck(Disentangler):
    """L_Dis + L_reg of DisNCL (eq. 1, 7, 9–12): information between parts and features, raised or lowered.

    Raised: I(V_S; F_T), I(T_S; F_V), I(V_X; F_V), I(T_X; F_T). Lowered, by reversed gradients: I(V_X; F_T), I(T_X; F_V)
    and, the regulariser, I(V_S; V_X), I(T_S; T_X).

    Decided: the features are a fixed reference, and in what is lowered the invariant parts are one too. It is the
    exclusive part that has to give way: the other side could lower an information just as well by forgetting what
    retrieval needs.
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
        noise = self.config.part_noise
        vs, vx, ts, tx = (
            blurred(part, noise) for part in (image.invariant, image.exclusive, text.invariant, text.exclusive)
        )
        fv, ft = blurred(image.features.detach(), 0.0), blurred(text.features.detach(), 0.0)
        pairs = {
            "vs_ft": (vs, ft),
            "ts_fv": (ts, fv),
            "vx_fv": (vx, fv),
            "tx_ft": (tx, ft),
            "vx_ft": (vx, ft),
            "tx_fv": (tx, fv),
            "vs_vx": (vs.detach(), vx),
            "ts_tx": (ts.detach(), tx),
        }
        values = {}
        for name, (first, second) in pairs.items():
            if name in self.LOWERED:
                first, second = reverse_gradient(first), reverse_gradient(second)
            values[name] = discriminated(self.discriminators[name], first, second)
        return values

    def discriminator_loss(self, image: Parts, text: Parts) -> Tensor | None:
        return -torch.stack(list(self.information(image, text).values())).sum()


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


class CrossPrediction(Disentangler):
    """DMIM, as DisNCL compares it: features rebuilt from the own exclusive part and either side's invariant part."""

    def __init__(self, engine: DisentangledEngine, config: DisNCLConfig) -> None:
        super().__init__()
        self.weight = config.disentangle_weight
        width, sizes = engine.feature_width, engine.sizes
        self.image_decoder, self.text_decoder = (three_layers(2 * sizes.width, sizes.hidden, width) for _ in range(2))

    def terms(self, image: Parts, text: Parts) -> list[Term]:
        def rebuilt(decoder: nn.Module, invariant: Tensor, side: Parts) -> Tensor:
            # A sum over the features, which are unit vectors: 1 for a decoder that says nothing.
            target = side.features.detach()
            return mse_loss(decoder(torch.cat([invariant, side.exclusive], dim=1)), target) * target.shape[1]

        own = rebuilt(self.image_decoder, image.invariant, image) + rebuilt(self.text_decoder, text.invariant, text)
        crossed = rebuilt(self.image_decoder, text.invariant, image) + rebuilt(self.text_decoder, image.invariant, text)
        return [
            Term("reconstruction", own, self.weight * own),
            Term("cross_prediction", crossed, self.weight * crossed),
        ]


class InformationRegularization(Disentangler):
    """MVIB, as DisNCL compares it: I(V_S; T_S) raised, and the divergence of the two encodings lowered."""

    def __init__(self, engine: DisentangledEngine, config: DisNCLConfig) -> None:
        super().__init__()
        self.weight = config.disentangle_weight
        self.divergence_weight = config.disentangle_weight * config.balance * config.invariant_weight
        self.noise = config.part_noise
        self.discriminator = three_layers(2 * engine.sizes.width, engine.sizes.hidden, 1)

    def terms(self, image: Parts, text: Parts) -> list[Term]:
        information = self.information(image, text)
        divergence = gaussian_divergence(image, text)
        return [
            Term("vs_ts", information, -self.weight * information),
            Term("divergence", divergence, self.divergence_weight * divergence),
        ]

    def discriminator_loss(self, image: Parts, text: Parts) -> Tensor | None:
        return -self.information(image, text)

    def information(self, image: Parts, text: Parts) -> Tensor:
        return discriminated(
            self.discriminator, blurred(image.invariant, self.noise), blurred(text.invariant, self.noise)
        )


DISENTANGLERS: dict[str, type[Disentangler]] = {
    "disncl": InformationBottleneck,
    "fdmer": FeatureConsistency,
    "dmim": CrossPrediction,
    "mvib": InformationRegularization,
}


def discriminated(discriminator: nn.Module, first: Tensor, second: Tensor) -> Tensor:
    """The Jensen–Shannon value of paired rows (n, ·), n ≥ 2, against rows of `second` that belong to other pairs."""
    other = second[derangement(len(second)).to(second.device)]
    joint, marginal = discriminator(
        torch.cat([torch.cat([first, second], dim=1), torch.cat([first, other], dim=1)])
    ).chunk(2)
    return jensen_shannon(joint, marginal)


def gaussian_divergence(image: Parts, text: Parts) -> Tensor:
    """The mean KL of unit Gaussians around V_S and T_S, spread out to values of size one, 0-d.

    Decided: the parts are unit vectors, on which unit noise would drown everything and the term hardly be felt. Yet it
    is this term that takes from V_S and T_S what only one side has. Spread out, no closeness is had by shrinking.
    """
    return unit_gaussian_divergence(blurred(image.invariant, 0.0), blurred(text.invariant, 0.0)).mean()


def select_parts(side: Parts, rows: Tensor) -> Parts:
    """The parts of some items."""
    return Parts(side.features[rows], side.invariant[rows], side.exclusive[rows])


def detached(side: Parts) -> Parts:
    """The parts, with no gradient into the encoders."""
    return replace(
        side, features=side.features.detach(), invariant=side.invariant.detach(), exclusive=side.exclusive.detach()
    )
