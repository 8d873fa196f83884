"""Explain a configuration: `explain` says what each layer of a model does with position."""

from posref.explain import diffusers, gguf, rotary_layers
from posref.explain.configuration import shown
from posref.explain.inventory import require_few, undescribed
from posref.explain.layer import Explanation
from posref.explain.parts import layer_counts, parts
from posref.explain.sources import read
from posref.explain.traps import foreign, traps, unread

__all__ = ["explain", "explanation", "read"]


def explain(source):
    """What each layer does with position: a dictionary of `model_type`, `layers`, `unsupported`, `traps`, `unread`, `foreign`.

    `source` is a configuration as a dictionary, or the path of a config.json, of a params.json (Meta, Mistral, DeepSeek) or of
    a GGUF file. It may also be the name of a shipped model, or a model type such as "llama", whose class then gives all sizes.
    Each entry of `layers` is a set of layers that do the same with position; `indices` are their numbers. `unsupported` names
    all other layers: their `indices`, their `kind` and the key that counts them. If no key counts the layers of a part, its
    entry has no indices. `unread` names the keys about position that posref did not understand, `foreign` all other keys that
    no class of transformers 5.23.0 has.
    ValueError, in one line, for a file that is broken or contradicts itself, unless other parts of it are described; TypeError
    if `source` is no dictionary, path or name.
    """
    return explanation(source).as_dict()


def explanation(source):
    """What `explain` returns, as an `Explanation`, whose layers are `Layer` objects."""
    config = read(source)
    if diffusers.recognised(config):
        return diffusers.explanation(config)
    found, unsupported, warnings, ignored, strange, errors = [], [], [], [], [], []
    every = parts(config, config["model_type"])
    require_few(layer_counts(every))
    for settings in every:
        try:
            groups, sentences, keys = _part(settings)
        except ValueError as error:
            spelled = [each for each in settings.spelled.items() if each[0] != each[1]]
            errors.append(gguf.renamed(error, settings.file.get("posref_names", ()), spelled))
            unsupported += [entry | {"why": str(errors[-1])} for entry in undescribed(settings, None)]
            continue
        found, warnings, ignored = [*found, *groups], [*warnings, *sentences], [*ignored, *keys]
        strange += [key for key in foreign(settings) if key not in keys]
        unsupported += undescribed(settings, groups) if settings.layered else []
    if errors and not found:
        of_class = "; the class has no other default: name a config.json" * ("posref_without_file" in config)
        raise ValueError(f"{errors[0]}{of_class}")
    return Explanation(config["model_type"], found, unsupported, warnings, ignored, strange)


def _part(settings):
    """The groups, traps and unread keys of one part; one ValueError for values of a type that the class cannot have."""
    try:
        groups = rotary_layers.groups(settings) if settings.layered and settings.family["encoding"] is not None else []
        keys = unread(settings, groups)  # before the traps look at them
        gguf.refuse(settings, keys)
        return groups, traps(settings, groups), keys
    except (TypeError, KeyError, IndexError, AttributeError, ArithmeticError) as error:
        # the types of the keys of some hundred classes are not listed, so the default values are compared
        usual = settings.facts.get("defaults", {})
        odd = {key: value for key, value in settings.file.items() if key in settings.read and not _alike(value, usual.get(key))}
        words = ", ".join(f"{key} is {shown(value)}" for key, value in odd.items()) or "which one is not known"
        raise settings.error(f"a key has a value that {settings.model_type} cannot have: {words}") from error


def _alike(value, usual):
    """Whether a value has the type of the default; an integer and a float have the same type here."""
    number = (int, float)
    return usual is None or type(value) is type(usual) or (isinstance(value, number) and isinstance(usual, number))
