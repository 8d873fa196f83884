"""Decoupled RoPE: sizes as in DeepSeek-V3's heads. Equality with transformers is in tests/parity."""
