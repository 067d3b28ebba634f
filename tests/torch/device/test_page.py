"""docs/devices.md lists the ops that run on any device."""

import pytest

pytest.importorskip("torch")

from seqflow.torch.device.page import PAGE, page


def test_the_page_lists_the_implementations():
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m seqflow.torch.device.page"
