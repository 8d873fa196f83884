"""Whether `posref.explain` follows the keys of a file: each key about position of each type is changed, one at a time.

The keys are the fields about position of the class, those that it takes beside its fields, and `ALWAYS`. Where both explain
and transformers take the changed file, the drift program compares them; a key that explain prints as not understood, or as
the reason why it describes no layer, may change the module.

    python -m tests.programs.changed_keys [TYPE ..]       prints each difference
"""

import concurrent.futures
import os
import sys

import torch

from posref.explain import explain
from posref.explain.traps import SILENT, SPEAKS
from tests.programs import drift, models, type_facts

ALWAYS = (
    "is_causal is_decoder head_dim layer_types partial_rotary_factor rope_scaling rope_parameters rope_theta sliding_window"
)
SIZES = {"hidden_size", "embed_dim", "num_hidden_layers", "max_position_embeddings", "image_size", "patch_size", "vocab_size"}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
CONTRADICT = ("another name of it", "a divisor", "no pair is left")  # with another key, which is still in the file
BASES = {kind: {"rope_type": "default", "rope_theta": 5.0} for kind in ("full_attention", "sliding_attention")}
SCALED = [
    {"type": "linear", "factor": 2.0},
    {"rope_type": "dynamic", "factor": 2.0},
    YARN,
    YARN | {"truncate": False, "mscale": 0.7, "mscale_all_dim": 1.0},
    LLAMA3 | {"original_max_position_embeddings": 64},
    {"rope_type": "default", "partial_rotary_factor": 0.5},
]
VALUES = {"rope_scaling": SCALED, "rope_parameters": [{"rope_type": "default", "rope_theta": 33.0}, BASES]}
VALUES |= {"is_causal": [False], "is_decoder": [True], "rope_theta": [777.0], "partial_rotary_factor": [0.5]}
VALUES |= {"sliding_window": [None, 1, 3, 100], "attention_chunk_size": [3, 4, 100]}
VALUES |= {"head_dim": [8, 32], "num_attention_heads": [2], "num_key_value_heads": [1, 4]}


def fields(kind):
    """{key: value of the class} of the keys that are changed."""
    named = {name: getattr(kind, name, None) for name in getattr(kind, "__dataclass_fields__", {})}
    about = {*type_facts.KEYS.split()} - SIZES
    own = [
        name for name in [*named, *type_facts.taken(kind)] if name in about or (SPEAKS.search(name) and not SILENT.search(name))
    ]
    return {name: named.get(name) for name in dict.fromkeys([*ALWAYS.split(), *own]) if name not in SIZES}


def values(key, usual, layers):
    """Other values of a key: those of `VALUES`, lists of layers, or what its kind suggests."""
    if key in VALUES:
        return VALUES[key]
    if key == "layer_types":
        patterns = (["full_attention"], ["sliding_attention"], ["sliding_attention", "full_attention", "full_attention"])
        return [(pattern * layers)[:layers] for pattern in patterns]
    if isinstance(usual, bool):
        return [not usual]
    if isinstance(usual, int):
        return [usual + 2, 2 * usual] if usual > 0 else []
    if isinstance(usual, float):
        return [0.5 * usual] if usual else []
    return [usual[::-1]] if isinstance(usual, list) else [2, 4] if usual is None else []


def differences(model_type):
    """(key, value, sentence) for each changed file of which explain says something else than the module does."""
    file = models.keys(model_type)
    kind = models.CONFIG_MAPPING[model_type]
    for key, usual in fields(kind).items():
        now = file.get(key)
        for value in values(key, usual if now is None else now, file.get("num_hidden_layers", models.LAYERS)):
            changed = {**file, key: value}
            try:
                refusal, silent = "", silent_about(key, explain(changed))
            except ValueError as error:
                refusal, silent = str(error), False
            if any(words in refusal for words in CONTRADICT) or silent:
                continue  # nothing is said of it, whatever the module does
            found = run(changed)
            if found and refusal:
                yield key, value, f"refused: {refusal}"
            elif found:
                try:
                    drifted = drift.compare_module(model_type, drift.of_text(changed), *found).drifted
                except Exception as error:  # the numbers of what is explained do not fit those of the module
                    drifted = [f"{type(error).__name__}: {error}"]
                yield from ((key, value, words) for words in drifted)


def silent_about(key, explained):
    """Whether explain says that it did not understand this key, or that it describes no layer because of its value."""
    unread = any(key in path.split(".") for path in explained["unread"])
    return unread or (
        not explained["layers"] and any(each["why"].startswith(f"{key} is ") for each in explained["unsupported"])
    )


def run(file):
    """The module of a file and its record, or None where transformers does not build it, or runs nothing."""
    try:
        model = models.build(models.configuration(file))
        record = models.run(model)
        return (model, record) if all(call.scores.size for call in record.softmaxes) else None  # XLNet's half of one text
    except Exception:  # any error of a class or of a module
        return None


def lines(model_type):
    """A line for each changed file of a type that runs otherwise than explained; none if it drifts unchanged."""
    seen = {}
    try:
        for key, value, words in () if drift.compare(model_type).drifted else differences(model_type):
            seen.setdefault(f"{key} {str(value)[:60]}", words)
    except Exception as error:  # the type itself is not built: the drift program counts it
        return [], f"{model_type}: {type(error).__name__}: {error}"[:150]
    return [f"{model_type}: {change}: {words}"[:260] for change, words in seen.items()], ""


def main(names):
    """Print and count the changed files that run otherwise than explained."""
    lost = 0
    processes = len(os.sched_getaffinity(0))  # one thread each: threads that wait for each other take ten times as long
    with concurrent.futures.ProcessPoolExecutor(processes, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        for found, problem in pool.map(lines, names or drift.types()):
            print(*found, *[problem] * bool(problem), sep="\n", end="\n" * bool(found or problem), flush=True)
            lost += len(found)
    print(f"{lost} changed files of which explain says something else than the module does")
    return lost


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
