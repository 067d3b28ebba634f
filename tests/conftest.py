"""Settings of all tests."""

import os
import signal

from hypothesis import settings

# No test is about time: a first call imports and compiles.
# The quick profile draws the same examples every time, so that a red run is about the change; the thorough one draws anew.
settings.register_profile("quick", deadline=None, max_examples=40, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=200)
settings.load_profile(os.environ.get("SEQFLOW_TESTS", "quick"))

# A shell's background jobs, and what runs under nohup, ignore signals that tests send to processes they start.
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)
