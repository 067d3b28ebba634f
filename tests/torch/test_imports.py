"""PyTorch is imported by what makes tensors, and by nothing else."""

import subprocess
import sys


def test_torch_is_not_imported():
    code = "import sys, seqflow.torch; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
