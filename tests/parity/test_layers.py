"""Every layer of every installed configuration class is described or named as not described; transformers counts them."""

import pytest

pytest.importorskip("transformers", reason="pip install posref[parity]")

from posref.explain import explain
from tests.parity import models

STACKS = {"": "num_hidden_layers", "encoder": "encoder_layers", "decoder": "decoder_layers"}

# two attentions per layer; two stacks that are used several times; the number of a part's layers, or of two parts together
OTHERWISE_COUNTED = ("longcat_flash", "hrm_text", "maskformer", "clap", "pix2struct", "pix2struct_text_model")


def counted(configuration, path=""):
    """{part: layers} as the classes of transformers count them, those of parts too."""
    found = {}
    both = {name: getattr(configuration, key, None) for name, key in STACKS.items()}
    if isinstance(both["encoder"], int) and isinstance(both["decoder"], int):
        both[""] = None  # num_hidden_layers is one of the two
    elif isinstance(both[""], int):
        both = {"": both[""]}  # another name of the one stack
    for name, count in both.items():
        if isinstance(count, int) and count > 0:
            found[".".join(filter(None, (path, name)))] = count
    for key in getattr(configuration, "sub_configs_defaults", {}):
        part = getattr(configuration, key, None)
        if part is not None and not isinstance(part, dict):
            found |= counted(part, ".".join(filter(None, (path, key))))
    return found


def answered(explained):
    """{part: indices} of all layers that are described or named as not described."""
    found = {}
    for entry in (*explained["layers"], *explained["unsupported"]):
        key = entry.get("counted_by")
        stack = next((name for name, counts in STACKS.items() if name and counts == key), None)
        for name in {entry["part"], ".".join(filter(None, (entry["part"], stack)))}:
            found.setdefault(name, set()).update(entry["indices"])
    return found


def silent(model_type):
    """Layers of the default configuration of a type that the explanation does not mention."""
    with models.quiet():
        configuration = models.CONFIG_MAPPING[model_type]()
    explained = explain({"model_type": model_type})
    said, whole = answered(explained), {entry["part"] for entry in explained["unsupported"] if not entry["indices"]}
    for part, count in counted(configuration).items():
        missing = set(range(count)) - (said.get(part) or said.get(f"{part}.encoder".lstrip("."), set()))
        above = {part.rsplit(".", i)[0] for i in range(part.count(".") + 1)} | {part}
        if missing and not above & whole and model_type not in OTHERWISE_COUNTED:
            yield f"{part or 'text'}: {sorted(missing)}"


@pytest.mark.parametrize("model_type", models.types())
def test_no_layer_is_silent(model_type):
    try:
        with models.quiet():
            models.CONFIG_MAPPING[model_type]()
    except Exception as error:
        pytest.skip(f"transformers builds no default configuration of it: {type(error).__name__}")
    assert list(silent(model_type)) == []
    explained = explain({"model_type": model_type})
    assert explained["layers"] or explained["unsupported"]
