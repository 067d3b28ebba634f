"""Settings of all tests."""

import os

from hypothesis import settings

# No test is about time: a first call imports and compiles.
settings.register_profile("quick", deadline=None, max_examples=40)
settings.register_profile("thorough", deadline=None, max_examples=200)
settings.load_profile(os.environ.get("SEQFLOW_TESTS", "quick"))
