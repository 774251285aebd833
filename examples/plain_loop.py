"""CRCL in a plain PyTorch loop, as open_clip's is: encode, normalise, loss, step.

python examples/plain_loop.py
"""

import tempfile
from pathlib import Path

import torch
from drawings import Prepared, found, mismatched_drawings, write_tiny_clip
from transformers import CLIPModel

import truepair


def main(count: int = 2000, epochs: int = 24) -> float:
    """Trains a tiny CLIP on drawings of which 40 % are mismatched; returns the AUROC of what it believes of them."""
    pixels, captions, mismatched = mismatched_drawings(count, noise=0.4)
    with tempfile.TemporaryDirectory() as folder:
        write_tiny_clip(Path(folder), captions)
        model, data = CLIPModel.from_pretrained(folder), Prepared(Path(folder), pixels, captions)
    # Of random weights: labels are left alone for some epochs more. A pretrained model takes the default, two epochs.
    criterion = truepair.Criterion("crcl", pairs=len(data), epochs=epochs, freeze_epochs=max(1, epochs * 2 // 5))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    warm_up = torch.optim.lr_scheduler.LinearLR(optimizer, 1 / 60, total_iters=60)
    for epoch in range(epochs):
        loader = torch.utils.data.DataLoader(data, batch_size=64, shuffle=True, drop_last=True)
        total = 0.0
        for batch in loader:
            ids = batch.pop("labels")
            outputs = model(**batch)
            scale = model.logit_scale.exp().clamp(max=100)
            loss = criterion(outputs.image_embeds, outputs.text_embeds, ids, scale=scale)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            warm_up.step()
            total += loss.item()
        figures = criterion.end_epoch()
        print(f"epoch {epoch + 1}: loss {total / len(loader):.3f}, seen {figures['seen']:.2f}")
    auroc = found(criterion.belief, mismatched)
    print(f"the pairs it believes least are the mismatched ones with an AUROC of {auroc:.3f}")
    return auroc


if __name__ == "__main__":
    main()
