r"""Resizing: a trained table of patches is read at more, or fewer, places than it has.

A model that was trained on images of one size is used on another size. How to interpolate between two rows of its table is a
convention.

Also called: position interpolation, interpolate_pos_encoding, resample_abs_pos_embed, bicubic, ViT, CLIP, DINO.

Definition. A table T of H by W patches, read at h by w places; each axis has its weights, n new places of m old ones:

    P[y, x] = sum_ab A[y, a] B[x, b] T[a, b]
    place(t) = (t + 1/2) m / n - 1/2              transformers, timm, beit, siglip2
    place(t) = (t + 1/2) m / (n + 1/10) - 1/2     dino
    place(t) = t (m - 1) / (n - 1)                vilt: corners on corners
    A[t, a] = sum of cubic(place(t) - b, -3/4) over all b whose nearest row is a        transformers, dino
    A[t, a] = cubic((place(t) - a) / max(m / n, 1), -1/2), divided by its sum over a    timm
    A[t, a] = max(1 - |place(t) - a|, 0)          beit, place held in 0 .. m - 1; vilt
    A[t, a] = max(1 - |place(t) - a| / max(m / n, 1), 0), divided by its sum over a     siglip2
    cubic(x, c) = (c + 2)|x|^3 - (c + 3)|x|^2 + 1          |x| <= 1
    cubic(x, c) = c |x|^3 - 5c |x|^2 + 8c |x| - 4c         1 < |x| < 2, else 0

Symbols.

    table T (height, width, d)      one vector a patch; [CLS] is left out and put in front again
    A, B (n, m)                     weights of the rows, of the columns

Conventions. Each convention is named after a library that follows it. "bicubic" means three different things: with c = -3/4
(torch), with c = -1/2 and a kernel that widens when patches get fewer (torch's antialias, timm), and with a scale that is a
little too large (DINO). "siglip2" is torch's bilinear with antialias: beit where patches get no fewer. With as many places as
rows nothing changes, but for "dino", whose code returns the table then.

Example. Two rows read at four places.

>>> for convention in CONVENTIONS:
...     print(f"{convention:13}", weights(2, 4, convention=convention)[:, 1].round(4))
transformers  [-0.1055  0.2266  0.7734  1.1055]
timm          [-0.0882  0.2071  0.7929  1.0882]
dino          [-0.1063  0.2078  0.7417  1.0977]
vilt          [0.     0.3333 0.6667 1.    ]
beit          [0.   0.25 0.75 1.  ]
siglip2       [0.   0.25 0.75 1.  ]

Where implementations differ.

    what | who | value | version | source
    convention | transformers' ViT, CLIP, SigLIP, Hiera, DINOv2, BEiT's absolute table | transformers | 5.23.0
      | interpolate_pos_encoding
    convention | transformers' DINOv2 with registers, RF-DETR, DeepSeek-OCR 2 | timm | 5.23.0
      | modeling_dinov2_with_registers.py
    convention | transformers' SigLIP 2, VideoPrism | siglip2 | 5.23.0 | modeling_siglip2.py: bilinear, antialias
    convention | MAE, detectron2 | transformers | 55145baee5 | detectron2 modeling/backbone/utils.py get_abs_pos
    convention | GLM-4V, GLM-Image: grid_sample, bicubic, border | transformers | 5.23.0 | modeling_glm4v.py
    convention | timm | timm | 1.0.31 | timm/layers/pos_embed.py resample_abs_pos_embed
    convention | open_clip | timm | 89fb801f | src/open_clip/model.py resize_pos_embed
    convention | open_clip's first versions | cubics with c = -3/4 and corners on corners: none of these | 02b48290
      | src/open_clip/model.py resize_pos_embed
    convention | DINO, DINOv2 by default | dino | 112792f1 | dinov2/models/vision_transformer.py interpolate_offset
    convention | transformers' ViLT, Qwen3-VL | vilt | 5.23.0 | align_corners=True
    convention | google vision_transformer | vilt, as zoom of order 1 | 16fc24d273 | vit_jax/checkpoint.py
    convention | transformers' BEiT, its table of offsets | beit | 5.23.0 | modeling_beit.py
    another size | OpenAI's CLIP, transformers' CLIP unless asked | an error | 5.23.0 | modeling_clip.py
    equal count, not square | transformers | resized all the same, from a square | 5.23.0 | modeling_vit.py

References. Dosovitskiy et al., ViT, arXiv 2010.11929, section 3.2; Keys, Cubic convolution interpolation, 1981.
"""

from typing import Literal, get_args

import numpy as np

from posref._contract import Array, Count, Number, Numbers, contract

Convention = Literal["transformers", "timm", "dino", "vilt", "beit", "siglip2"]
CONVENTIONS = get_args(Convention)


@contract
def cubic(x: Numbers[Array, "..."], *, a: Number) -> Numbers[Array, "..."]:
    """Keys's kernel of four rows, 1 at 0 and 0 at all other integers: shape of `x`. Eq. (15) of Keys has a = -1/2.

    With x >= 0: (a + 2) x^3 - (a + 3) x^2 + 1 up to 1, and a (x^3 - 5 x^2 + 8 x - 4) from 1 to 2.

    >>> cubic(np.array([0.0, 0.5, 1.0, 1.5, 2.0]), a=-0.75)
    array([ 1.     ,  0.59375,  0.     , -0.09375,  0.     ])
    """
    x = np.abs(x)
    near, far = (a + 2) * x**3 - (a + 3) * x**2 + 1, a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


@contract
def weights(length: Count, new: Count, *, convention: Convention) -> Numbers[Array, "new length"]:
    """A of one axis: A_ij is the weight of table row j at place i, `(new, length)`; every row of A sums to 1.

    DINO adds 1/10 to `new` in the places. The cubic kernel has a = -1/2 for timm, and a = -3/4 for the others.

    >>> weights(3, 2, convention="beit")
    array([[0.75, 0.25, 0.  ],
           [0.  , 0.25, 0.75]])
    """
    rows, odd = np.arange(length), 2 * np.arange(new)[:, None] + 1
    if convention == "vilt":
        return np.maximum(1 - np.abs((odd - 1) / 2 * (length - 1) / max(new - 1, 1) - rows), 0)
    place = (odd * (10 * length) / (10 * new + (1 if convention == "dino" else 0)) - 1) / 2
    if convention == "beit":
        return np.maximum(1 - np.abs(np.clip(place, 0, length - 1) - rows), 0)
    if convention in ("timm", "siglip2"):
        distance = (place - rows) / max(length / new, 1)
        kernel = cubic(distance, a=-1 / 2) if convention == "timm" else np.maximum(1 - np.abs(distance), 0)
        return kernel / kernel.sum(axis=-1, keepdims=True)
    beyond = np.arange(-2, length + 2)  # rows beyond an end are its row
    return cubic(place - beyond, a=-3 / 4) @ np.where(np.clip(beyond, 0, length - 1)[:, None] == rows, 1, 0)


@contract
def resize(
    table: Numbers[Array, "m_height! m_width! d"], height: Count, width: Count, *, convention: Convention
) -> Numbers[Array, "height width d"]:
    """P, the table at `height` x `width` places: `(height, width, d)`. A table in one row of patches is reshaped first.

    Computed in float64.

    >>> resize(np.array([[[0.0], [4.0]]]), 1, 3, convention="vilt")[..., 0]
    array([[0., 2., 4.]])
    """
    rows = weights(table.shape[0], height, convention=convention)
    columns = weights(table.shape[1], width, convention=convention)
    return np.swapaxes(rows @ np.swapaxes(columns @ table, 0, 1), 0, 1)
