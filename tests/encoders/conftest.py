"""Tiny models, written once a session."""

import pytest

from tests.encoders.tiny_models import write_model


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """kind → folder."""
    root = tmp_path_factory.mktemp("models")
    return {kind: write_model(root / kind, kind) for kind in ("clip", "siglip")}
