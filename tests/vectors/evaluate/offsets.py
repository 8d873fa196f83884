"""What each op of offsets.json is in posref."""

from posref.relative import offsets as relative


def offsets(case):
    return relative.offsets(case.tensors["queries"], case.tensors["keys"])


def clip(case):
    return relative.clip(case.tensors["offsets"], **case.params)


def toeplitz(case):
    return relative.toeplitz(case.tensors["by_offset"], **case.params)


def skew(case):
    return relative.skew(case.tensors["by_offset"])


def gather(case):
    at = offsets(case)
    batched = at if at.ndim == 2 else at[:, None]  # (batch, 1, n_query, n_key) beside (heads, width)
    return relative.gather(case.tensors["by_offset"], batched, case.params["lowest"])
