"""CRCL in the `Trainer` of Hugging Face's transformers: a compute_loss_func and a callback.

pip install 'truepair[trainer]'
python examples/huggingface_trainer.py
"""

import tempfile
from pathlib import Path

from drawings import Prepared, found, mismatched_drawings, write_tiny_clip
from transformers import CLIPModel, Trainer, TrainingArguments

import truepair
from truepair.loops.trainers import TrainerLoss, epoch_callback


def main(count: int = 2000, epochs: int = 24) -> float:
    """Trains a tiny CLIP on drawings of which 40 % are mismatched; returns the AUROC of what it believes of them."""
    pixels, captions, mismatched = mismatched_drawings(count, noise=0.4)
    with tempfile.TemporaryDirectory() as folder:
        write_tiny_clip(Path(folder), captions)
        model, data = CLIPModel.from_pretrained(folder), Prepared(Path(folder), pixels, captions)
        criterion = truepair.Criterion("crcl", pairs=len(data), epochs=epochs, freeze_epochs=max(1, epochs * 2 // 5))
        trainer = Trainer(
            model=model,
            args=TrainingArguments(
                output_dir=f"{folder}/run",
                num_train_epochs=epochs,
                per_device_train_batch_size=64,
                learning_rate=5e-4,
                warmup_steps=60,
                lr_scheduler_type="constant_with_warmup",
                remove_unused_columns=False,  # or the ids are removed: the model itself reads no labels
                save_strategy="epoch",  # the state of the criterion is in every checkpoint, too
                report_to=[],
                disable_tqdm=True,
                use_cpu=True,
            ),
            train_dataset=data,
            compute_loss_func=TrainerLoss(criterion, scale=lambda: model.logit_scale.exp().clamp(max=100)),
            callbacks=[epoch_callback(criterion)],
        )
        trainer.train()
    auroc = found(criterion.belief, mismatched)
    print(f"the pairs it believes least are the mismatched ones with an AUROC of {auroc:.3f}")
    return auroc


if __name__ == "__main__":
    main()
