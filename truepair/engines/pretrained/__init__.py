"""Pretrained models of images and texts, trained further by any method of pairs."""
