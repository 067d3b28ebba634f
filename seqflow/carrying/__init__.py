"""How LoD rides along through ops that know nothing of it."""

from seqflow.carrying.arithmetic import call_operator, call_ufunc
from seqflow.carrying.call import Carried, carried

__all__ = ["Carried", "call_operator", "call_ufunc", "carried"]
