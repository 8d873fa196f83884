"""Every layer of every installed configuration class is described or named as not described; transformers counts them."""

import contextlib
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("transformers", reason="pip install posref[parity]")

import transformers

from posref.explain import explain, explanation, unrotated_layers
from posref.explain.configuration import UNKNOWN_TYPE, classes, facts, family
from posref.explain.parts import BUILT_IF, parts
from posref.explain.words import describe
from tests.every import some
from tests.programs import models, type_facts

STACKS = {"": "num_hidden_layers", "encoder": "encoder_layers", "decoder": "decoder_layers"}

# two attentions per layer; two stacks that are used several times; the number of a part's layers, or of two parts together
OTHERWISE_COUNTED = ("longcat_flash", "hrm_text", "maskformer", "clap", "pix2struct", "pix2struct_text_model")
OTHERWISE_COUNTED += ("pp_formulanet", "pp_formulanet_text")  # a decoder, whose file counts layers of an encoder too


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


def test_what_a_class_writes_is_read():
    """`to_dict()` of every class has what files do not have: keys that are numbers, every default, and parts written twice."""
    written, refused = {}, []
    for model_type in models.CONFIG_MAPPING_NAMES:
        with models.quiet(), contextlib.suppress(Exception):  # a class without a default configuration
            written[model_type] = models.CONFIG_MAPPING[model_type]().to_dict()
    for model_type, file in written.items():
        try:
            explain(file)
        except ValueError:
            refused.append(model_type)
    assert len(written) > 0.9 * len(models.CONFIG_MAPPING_NAMES)
    assert refused == ["cohere_compass_text"]  # its module needs rope_parameters, which its defaults lack


@pytest.mark.parametrize("model_type", some(models.types(), 4))
def test_no_layer_is_silent(model_type):
    try:
        with models.quiet():
            models.CONFIG_MAPPING[model_type]()
    except Exception as error:
        pytest.skip(f"transformers builds no default configuration of it: {type(error).__name__}")
    assert list(silent(model_type)) == []
    explained = explain({"model_type": model_type})
    assert explained["layers"] or explained["unsupported"]
    assert not any(layer.get("call") for layer in explained["layers"] if layer["encoding"] == "none")
    assert "None" not in describe(explanation({"model_type": model_type}), "file").replace("rope_parameters is None", "")


@pytest.mark.parametrize("model_type", [name for name, row in facts().items() if "text_config" in row.get("parts", {})])
def test_keys_of_the_text_at_the_top_are_read_where_the_class_reads_them(model_type):
    """A file says seven layers, at its top or in a part with an older name: `explain` counts seven if the class does."""
    for file in ({"num_hidden_layers": 7}, {"language_config": {"num_hidden_layers": 7}}):
        try:
            with models.quiet():
                built = models.CONFIG_MAPPING[model_type](**file).text_config.num_hidden_layers
        except Exception:  # a class that refuses these keys, or a text that counts its layers otherwise
            continue
        explained = explain({"model_type": model_type, **file})
        entries = [each for name in ("layers", "unsupported") for each in explained[name] if each["part"] == "text_config"]
        assert (len({i for entry in entries for i in entry["indices"]}) == 7) == (built == 7), file


def parts_of_class(configuration, path=""):
    """{part: its configuration} of all parts that a class built, and of the parts of these parts."""
    name, found = getattr(configuration, "model_type", None), {path: configuration}
    for key in facts().get(name, {}).get("parts", {}):
        if getattr(configuration, BUILT_IF.get(f"{name}.{key}", key), None):
            found |= parts_of_class(getattr(configuration, key), f"{path}.{key}".lstrip("."))
    return found


@pytest.mark.parametrize("model_type", [name for name, row in facts().items() if row.get("parts")])
def test_parts_that_a_file_leaves_out_are_those_that_the_class_builds(model_type):
    """Types and values are those of the class, without parts in the file, with null, and with keys that choose a backbone."""
    backbones = ({"use_timm_backbone": False}, {"backbone_kwargs": {"out_indices": [1, 2]}})
    for file in ({}, *({key: None} for key in facts()[model_type]["parts"]), *backbones):
        try:
            with models.quiet():
                configuration = models.CONFIG_MAPPING[model_type](**file)
        except Exception:  # a class that asks for a part
            continue
        theirs, ours = parts_of_class(configuration), {part.path: part for part in parts(file, model_type)}
        assert ours.keys() == theirs.keys(), file
        for path, part in ours.items():
            there = theirs[path] if isinstance(theirs[path], dict) else vars(theirs[path])
            if path and part.model_type != UNKNOWN_TYPE:
                assert part.model_type == (there.get("model_type") or getattr(theirs[path], "model_type", None)), (file, path)
            values = {**part.facts.get("defaults", {}), **part.file}
            other = {
                key: (value, there[key])
                for key, value in values.items()
                if value is not None and key in there and type_facts._plain(there[key]) != value
            }
            assert other == {}, (file, path)


@pytest.mark.parametrize("model_type", ["detr", "omdet-turbo", "rf_detr", "rt_detr", "upernet"])
@pytest.mark.parametrize("wanted", [{}, {"use_timm_backbone": False}])
def test_a_backbone_that_a_class_looks_up_has_no_type(model_type, wanted, monkeypatch):
    """A class that looks up the named model asks the network, as `asked` records; the other classes build a timm model."""
    asked = []
    network = SimpleNamespace(repo_exists=lambda name: asked.append(name))
    monkeypatch.setattr(transformers.backbone_utils, "hf_api", lambda: network)
    file = {"backbone": "resnet50", **wanted}
    with models.quiet():
        there = models.CONFIG_MAPPING[model_type](**file).backbone_config
    (part,) = (part for part in parts(file, model_type) if part.path == "backbone_config")
    assert part.model_type == (UNKNOWN_TYPE if asked else "timm_backbone")
    assert asked or (there["model_type"] if isinstance(there, dict) else there.model_type) == "timm_backbone"


@pytest.mark.parametrize(
    "file",
    [
        {"vit_config": {"num_hidden_layers": 27}},
        {"vit_config": {"num_hidden_layers": 3}},
        {"vit_config": {"num_hidden_layers": 27}, "adapter_config": {"vit_layers": [-9, -6]}},
        {"vit_config": {"num_hidden_layers": 30}, "adapter_config": {"vit_layers": None, "vision_feature_layer": [2]}},
        {"vit_config": {}, "vision_config": {"num_hidden_layers": 30}},
        {"vision_config": {"num_hidden_layers": 30}},
    ],
)
def test_layers_of_a_picture_under_an_older_name_are_those_that_the_class_builds(file):
    with models.quiet():
        there = models.CONFIG_MAPPING["molmo2"](**file).vision_config.num_hidden_layers
    explained = explain({"model_type": "molmo2", **file})
    assert [len(group["indices"]) for group in explained["layers"] if group["part"] == "vision_config"] == [there]
    assert "vit_config" not in {each["part"] for each in explained["unsupported"]}


def built(kind, file):
    """The names of the modules of one class, without weights."""
    with models.quiet(), models.torch.device("meta"):
        return [name for name, _ in kind(models.configuration(file)).named_modules()]


def named_classes(model_type):
    """The classes of a type's module that build a model of this type."""
    found = [getattr(transformers, name, None) for name in classes()[facts()[model_type]["module"]].split()]
    own = [kind for kind in found if getattr(getattr(kind, "config_class", None), "model_type", "") == model_type]
    # a head for segmentation needs four levels of a backbone, which a small one lacks; a stack alone has no names of stacks
    return [kind for kind in own if not re.search("(?i)pretrained|forsegmentation|(en|de)coder$", kind.__name__)]


# Seamless M4T has towers: the page says in words which classes build the towers
STACKED = [name for name in facts() if {"encoder", "decoder"} & {*unrotated_layers.STACKS[family(name).get("stacks", "one")]}]
STACKED = [name for name in STACKED if "towers" not in family(name)]


@pytest.mark.parametrize("model_type", some(STACKED, 4))
def test_stacks_are_those_that_the_named_class_builds(model_type):
    file = models.keys(model_type)
    for kind in named_classes(model_type):
        there = {stack for name in built(kind, file) for stack in re.findall(r"(?:^|\.)(encoder|decoder)\.", name)}
        explained = explain(file | {"architectures": [kind.__name__]})
        said = {group["part"] for group in explained["layers"]}
        left = {each["counted_by"] for each in explained["unsupported"] if not each["part"]}
        assert said | {name for name, count in STACKS.items() if count in left} == there, kind.__name__


def crossing(model_type):
    """Whether the source of a type's module reads add_cross_attention."""
    folder = Path(transformers.__file__).parent / "models" / facts()[model_type]["module"]
    return any("add_cross_attention" in path.read_text(encoding="utf-8") for path in folder.glob("modeling_*.py"))


def test_layers_that_attend_to_an_encoder_are_described():
    """Where add_cross_attention is set and the module reads it, and nowhere else."""
    described = [
        name for name in models.types() if name in facts() and family(name)["encoding"] and "stacks" not in family(name)
    ]
    for model_type in described:
        file = models.keys(model_type) | {"add_cross_attention": True, "is_decoder": True}
        explained = explain(file)
        if not crossing(model_type):
            assert "add_cross_attention" in explained["unread"], model_type
            continue
        if not explained["layers"]:  # it says that it does not describe decoders of this type
            continue
        model = models.build(models.configuration(file), device="meta")
        there = any(re.search("cross|encoder_attn", name) for name, _ in model.named_modules())
        assert there == any(group["kind"] == "cross_attention" for group in explained["layers"]), model_type
