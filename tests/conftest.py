"""Settings of all tests."""

from hypothesis import settings

settings.register_profile(
    "seqflow", deadline=None
)  # no test is about time: a first call imports and compiles
settings.load_profile("seqflow")
