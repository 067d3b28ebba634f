"""What `import seqflow as sf` gives."""

import pytest

import seqflow as sf


@pytest.mark.parametrize("name", sf.__all__)
def test_every_public_name_is_there(name):
    assert getattr(sf, name) is not None
    assert name in dir(sf)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'seqflow' has no attribute 'Looder'"):
        sf.Looder  # noqa: B018
