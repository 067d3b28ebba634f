"""Short names for arrays of one dtype."""

import numpy as np


def f32(*values):
    return np.array(values, np.float32)


def i32(*values):
    return np.array(values, np.int32)


def i64(*values):
    return np.array(values, np.int64)


def texts(*values):
    return np.array(values, object)
