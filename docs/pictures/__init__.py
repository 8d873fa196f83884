"""Pictures: SVG written directly, computed with the functions of posref; `python docs/make.py --figures` writes them.

`PICTURES` has a name -> (the systems whose pages show it, its drawing, panels abreast). A drawing returns panels
(`posref.drawing`); its docstring is the caption.
"""

from pictures import absolute, mathematics, overview, relative, rotary, start
from posref.drawing import compose

OVERVIEW = {
    "map": ("", lambda: [overview.map_wide()], 1),
    "map-tall": ("", lambda: [overview.map_tall()], 1),
    "sheet": ("", overview.sheet, 6),
}
PICTURES = OVERVIEW | absolute.PICTURES | rotary.PICTURES | relative.PICTURES | mathematics.PICTURES | start.PICTURES


def files():
    """File name -> a standalone SVG, for README and docs."""
    return {f"{name}.svg": compose(draw(), columns) for name, (_, draw, columns) in PICTURES.items()}
