"""CRCL in the trainer of sentence-transformers: a loss whose ids are the labels of the data set, and a callback.

pip install 'truepair[sentence-transformers]'
python examples/sentence_transformers_trainer.py
"""

import tempfile
from pathlib import Path

from datasets import Dataset
from drawings import found, mismatched_drawings, write_tiny_clip
from PIL import Image
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments

import truepair
from truepair.loops.trainers import SentenceTransformersLoss, epoch_callback


def main(count: int = 2000, epochs: int = 24) -> float:
    """Trains a tiny CLIP on drawings of which 40 % are mismatched; returns the AUROC of what it believes of them."""
    pixels, captions, mismatched = mismatched_drawings(count, noise=0.4)
    images = [Image.fromarray(picture) for picture in pixels]
    data = Dataset.from_dict({"image": images, "caption": captions, "label": list(range(len(captions)))})
    with tempfile.TemporaryDirectory() as folder:
        model = SentenceTransformer(str(write_tiny_clip(Path(folder) / "clip", captions)), device="cpu")
        criterion = truepair.Criterion("crcl", pairs=len(data), epochs=epochs, freeze_epochs=max(1, epochs * 2 // 5))
        trainer = SentenceTransformerTrainer(
            model=model,
            args=SentenceTransformerTrainingArguments(
                output_dir=f"{folder}/run",
                num_train_epochs=epochs,
                per_device_train_batch_size=64,
                learning_rate=5e-4,
                warmup_steps=60,
                lr_scheduler_type="constant_with_warmup",
                save_strategy="no",
                report_to=[],
                disable_tqdm=True,
                use_cpu=True,
            ),
            train_dataset=data,
            loss=SentenceTransformersLoss(model, criterion),
            callbacks=[epoch_callback(criterion)],
        )
        trainer.train()
    auroc = found(criterion.belief, mismatched)
    print(f"the pairs it believes least are the mismatched ones with an AUROC of {auroc:.3f}")
    return auroc


if __name__ == "__main__":
    main()
