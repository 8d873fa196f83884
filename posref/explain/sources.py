"""Sources: reads a configuration from a file, from a dictionary, or by the name of a shipped model or a model type.

Every fault of a file becomes one ValueError that describes it in one line.
"""

import difflib
import functools
import json
import os
import re
from importlib import resources

from posref import _require
from posref.explain import diffusers, gguf, native
from posref.explain.configuration import facts, shown
from posref.explain.families import FAMILIES, UNKNOWN

LARGEST = 4 << 20  # bytes; the labels of ImageNet-21k, twice, make a configuration of about 2 MB
# limits on the levels and on the keys and lists of a configuration, on the characters of a path and on the elements of a list:
# released configurations have 7 levels, and labels of ImageNet-21k are 43,682 keys
DEEPEST, MOST_KEYS, LONGEST_PATH, LONGEST_LIST = 16, 50_000, 256, 100_000


def read(source):
    """The configuration of a source as a dictionary with the keys of transformers; files of diffusers keep their keys."""
    if not isinstance(source, (dict, str, os.PathLike)):  # an open file has a number, and a number would be opened
        raise TypeError(f"explain: source is {_require.kind(source)}, expected a dictionary, a path or a name")
    config = source if isinstance(source, dict) else _from_file(source)
    if gguf.recognised(config):
        config = gguf.without_vocabulary(config)
    _require_bounded(config)
    config = _with_texts(config)
    if diffusers.recognised(config):
        return config
    if native.recognised(config):
        return native.translate(config)
    if gguf.recognised(config):
        return gguf.translate(config)
    return with_type(config)


def _require_bounded(config):
    """ValueError for too many levels or keys, or a too long list or path, because time and memory grow with them."""
    waiting, count = [(config, 1, 0)], 0
    while waiting:
        outer, level, length = waiting.pop()
        if level > DEEPEST:
            raise ValueError(f"the configuration is nested more than {DEEPEST} levels deep; remove the inner levels")
        count += 1 + (len(outer) if isinstance(outer, dict) else 0)
        if count > MOST_KEYS:
            raise ValueError(f"the configuration has more than {MOST_KEYS} keys and lists; keep the keys about its layers")
        if len(outer) > LONGEST_LIST:
            raise ValueError(f"the configuration has a list of {len(outer)} elements, expected at most {LONGEST_LIST}")
        for key, value in outer.items() if isinstance(outer, dict) else (("", each) for each in outer):
            here = length + len(str(key))
            if here > LONGEST_PATH:
                raise ValueError(f"the path of the key {shown(key)} has {here} characters, expected at most {LONGEST_PATH}")
            if isinstance(value, (dict, list, tuple)):
                waiting.append((value, level + 1, here))


def _with_texts(value):
    """The value with all keys as strings, as in a file; `to_dict()` of transformers has integer keys for labels."""
    if isinstance(value, dict):
        return {str(key): _with_texts(inner) for key, inner in value.items()}
    return [*map(_with_texts, value)] if isinstance(value, (list, tuple)) else value


@functools.cache
def models():
    """{published name of a released model: the keys of its configuration that bear on position, and its source}."""
    return json.loads(resources.files(__package__).joinpath("models.json").read_text(encoding="utf-8"))


def model(name):
    """The published name of a shipped model, or None. Capitals, the owner before / and the choice of - _ . do not matter."""
    last = str(name).rsplit("/", 1)[-1] if str(name).count("/") == 1 else str(name)
    return next((each for each in models() if _plain(each) == _plain(last)), None)


def _near(path):
    """Names of shipped models that resemble a name: one is the beginning of the other, or the spelling is similar."""
    asked = _plain(str(path).rsplit("/", 1)[-1])
    names = {_plain(each): each for each in models()}
    begin = [each for plain, each in names.items() if len(asked) > 1 and (plain.startswith(asked) or asked.startswith(plain))]
    like = difflib.get_close_matches(asked, list(names), n=3, cutoff=0.5)
    return list(dict.fromkeys([*begin, *(names[plain] for plain in like)]))[:6]


def _plain(name):
    return re.sub(r"[-_.]+", "-", str(name).lower())


def _from_file(path):
    if "\0" in str(path):
        raise ValueError("the name of the file holds a null character; no file has such a name")
    if not os.path.exists(path) and model(path):
        return models()[model(path)]["config"]
    kind = str(path)
    if not os.path.exists(path) and (
        kind in facts() or ({"code", "variants"} & {*FAMILIES.get(kind, UNKNOWN)} and " " not in kind)
    ):
        return {"model_type": kind, "posref_without_file": _near(path)}  # a trap says so; "baichuan 7B" is a row of a type
    if os.path.isdir(path):
        inside = os.path.join(path, "config.json")
        hint = f"; name {inside}" if os.path.isfile(inside) else "; name the configuration in it"
        raise ValueError(f"{path} is a directory{hint}")
    try:
        with open(path, "rb") as file:
            first = file.read(4)
            if first == b"GGUF":
                file.seek(0)
                return gguf.read(file)
            text = first + file.read(LARGEST + 1)  # a pipe cannot be sought in
    except OSError as error:
        reason, words = error.strerror or error, f"did you mean {', '.join(_near(path))}? " * bool(_near(path))
        words += f"`posref explain --models` lists the {len(models())} models known by name"
        known = "a config.json, a params.json, a GGUF file or a model type such as llama"
        raise ValueError(f"{path}: {reason}; name {known}; {words}") from None
    return _parsed(path, text)


def _parsed(path, text):
    if len(text) > LARGEST:
        size = max(len(text), os.path.getsize(path))  # which is 0 for a pipe
        raise ValueError(f"{path} has at least {size} bytes, a configuration at most {LARGEST}; a GGUF file begins with GGUF")
    if text.lstrip()[:1] == b"<":
        raise ValueError(f"{path} is a web page, saved under this name; fetch the file itself")
    try:
        config = json.loads(text.decode("utf-8-sig"), object_pairs_hook=_without_contradiction, parse_int=_integer)
    except UnicodeDecodeError:
        raise ValueError(f"{path} is no text in UTF-8; name a config.json, a params.json or a GGUF file") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is no JSON: {error}") from None
    except RecursionError:
        raise ValueError(f"{path} is nested too deeply for a configuration") from None
    if not isinstance(config, dict):
        raise ValueError(f"{path} holds {_require.kind(config)}, expected a dictionary of keys")
    return config


def _integer(digits):
    if len(digits) > 300:  # beyond the largest float, whatever Python converts
        raise ValueError(f"a number in the file has {len(digits)} digits; no size, position or token has so many")
    return int(digits)


def _without_contradiction(pairs):
    found = {}
    for key, value in pairs:
        if key in found and found[key] != value:
            raise ValueError(f"{key} stands twice in the file, as {shown(found[key])} and as {shown(value)}")
        found[key] = value
    return found


def with_type(config):
    """The configuration with a `model_type`: its own, or the type of the class that `architectures` names."""
    if isinstance(config.get("model_type"), str) and (config["model_type"] in facts() or config["model_type"] in FAMILIES):
        return config
    if config.get("model_type") is not None and not isinstance(config["model_type"], str):
        raise ValueError(f"model_type is {shown(config['model_type'])}, expected a name")
    named = config.get("architectures")
    name = named[0] if isinstance(named, list) and named and isinstance(named[0], str) else None
    found = [model_type for model_type, row in facts().items() if name and _stem(name) == row["class"]]
    if not found and config.get("model_type"):
        return config
    if not found:
        words = "the configuration has no model_type, and no architectures that posref knows"
        raise ValueError(f'{words}; add "model_type": "llama", for instance')
    return {**config, "model_type": found[0], "posref_given_type": config.get("model_type")}  # a trap says so


def _stem(name):
    """Llama for LlamaForCausalLM and for LlamaModel."""
    return name.split("For")[0].removesuffix("Model").removesuffix("LMHead")
