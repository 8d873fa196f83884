"""The golden cases, read from their files once per process."""

import functools

from posref import vectors

cases = functools.cache(vectors.cases)
