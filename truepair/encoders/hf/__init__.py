"""Image–text models of the transformers library: CLIP, SigLIP, SigLIP 2, ALIGN, Chinese-CLIP and their like."""
