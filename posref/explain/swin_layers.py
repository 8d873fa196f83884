"""Layers of Swin: the patches of one window see each other, and every second layer rolls the picture before windows are cut.

Swin and Donut do not roll a picture whose height or width one window covers. Swin v2 compares the window with the height of
image_size in the file, and MaskFormer's Swin rolls every picture. Each stage has half the rows and columns of the stage before
it, and twice the width; in Swin2SR all stages have the same sizes.
"""

from dataclasses import replace

from posref.explain import unrotated_layers


def groups(settings):
    """One group for the layers of each stage that do not roll the picture, and one for those that do."""
    found, first = [], 0
    for stage, (depth, heads) in enumerate(stages(settings)):
        window, shift = _window(settings, stage)
        for roll in dict.fromkeys((0, shift)):
            indices = [first + i for i in range(depth) if not shift or (i % 2 == 1) == (roll > 0)]
            found += [_group(settings, stage, indices, heads, window, roll)] if indices else []
        first += depth
    return found


def stages(settings):
    """The number of layers and of heads of each stage."""
    depths, heads = (settings.counts(key) for key in ("depths", "num_attention_heads"))
    if len(depths) != len(heads):
        words = f"depths names {len(depths)} stages and num_heads {len(heads)}; they must be as many"
        raise settings.error(f"{words}")
    return list(zip(depths, heads, strict=True))


def grid(settings, stage):
    """Rows and columns of patches in a stage, for the picture size in the file: rounded up, but rounded down for Swin v2."""
    sides = zip(*(unrotated_layers.sides(settings, key) for key in settings.family["grid"]), strict=True)
    step = growth(settings, stage)
    return [image // (patch * step) if _by_the_file(settings) else -(-image // (patch * step)) for image, patch in sides]


def growth(settings, stage):
    """The factor by which a stage is wider than the first stage, and has fewer rows and columns."""
    return 1 if settings.family.get("stages") == "equal" else 2**stage


def _by_the_file(settings):
    return settings.family.get("shifts") == "by the file"


def _window(settings, stage):
    """The side of a window, and the number of patches by which every second layer rolls the picture."""
    window, (height, width) = settings.count("window_size"), grid(settings, stage)
    if settings.family.get("shifts") == "everywhere":
        return window, window // 2
    if _by_the_file(settings):
        return min(window, height), window // 2 * (height > window)
    return window, window // 2 * (min(height, width) > window)


def _group(settings, stage, indices, heads, window, shift):
    first, encoding = settings.count(settings.family["whole"]), settings.family["encoding"]
    width = first * growth(settings, stage) // heads
    v2 = encoding == "swin_v2"
    height, columns = grid(settings, 0)
    return replace(
        unrotated_layers.plain(settings, settings.path, indices, heads, width, False, encoding),
        kind="shifted_window_attention" if shift else "window_attention",
        softmax_scale=None if v2 else width**-0.5,
        bias={
            **(_network(settings, stage, window) if v2 else {"call": "swin.bias", "height": window, "width": window}),
            "window": window,
            "shift": shift,
            "masked": (-200 if v2 else -100) if shift else None,  # Swin v2 adds its mask twice
            "input_table": height * columns if settings["use_absolute_embeddings"] else None,
        },
    )


def _network(settings, stage, window):
    """The bias network of Swin v2; it divides coordinates by the window of pretraining, if the file has one."""
    trained = (settings["pretrained_window_sizes"] or [0] * (stage + 1))[stage]
    height, width = trained if isinstance(trained, list) else (trained, trained)
    return {"call": "swin.continuous_bias", "height": height or window, "width": width or window}
