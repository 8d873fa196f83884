"""Theorems about several systems, or about numbers: rounding, expressivity, decay, gauges, exact truths."""
