"""What `posref.check` knows of RoPE alone: its settings, its schedules, how angles are computed, what phases say."""
