"""`seqflow info`."""

import platform

from seqflow.cli.job_options import AsJson
from seqflow.cli.printing import print_json, print_table
from seqflow.version import __version__


def info(json: AsJson = False) -> None:
    """Show versions, kernels, and kinds of files."""
    import numpy as np
    import pyarrow as pa

    from seqflow import kernels
    from seqflow.providers.opening import file_kinds

    facts = {
        "seqflow": __version__,
        **kernels.info(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "pyarrow": pa.__version__,
        "platform": platform.platform(),
        "kinds of files": file_kinds(),
    }
    if json:
        print_json(facts)
    else:
        print_table((name, _shown(value)) for name, value in facts.items() if value is not None)


def _shown(value: object) -> str:
    return (", ".join(map(str, value)) or "none") if isinstance(value, list) else str(value)
