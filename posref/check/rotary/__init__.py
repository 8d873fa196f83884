"""Checks that apply to RoPE only: settings, schedules, how angles are computed, and what the phases of an output show."""
