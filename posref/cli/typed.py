"""What was typed: words become numbers, settings, systems and functions, or Usage names the remedy."""

import argparse
import contextlib
import importlib
import importlib.util
import os
import re
import sys
from pathlib import Path

CHECK_OPTIONS = {
    "config": ("FILE|NAME", "rotate as this model does: its config.json, or a name of `posref explain --models`"),
    "layer": ("N", "which layer, if --config or --preset names a model"),
    "part": ("NAME", "which part, if --config or --preset names a model; for instance text_config"),
    "preset": ("NAME", "a released configuration, for instance bloom_176b or llama-3.1-8b"),
    "axes": ("AXES", "axes of the arrays of the function: b batch, h heads, n tokens, d features, t all tokens of the batch"),
    "dim": ("DIM", "width of a head"),
    "rotary_dim": ("DIM", "how many features are rotated, if not all"),
    "base": ("BASE", "base of the frequencies, for instance 10000"),
    "exponent_dim": ("DIM", "DIM in the frequencies base^(-2t/DIM), if it is not the number of rotated features"),
    "frequencies": ("LIST|FILE", "instead of a base: numbers with commas, or a .npy or .json file of them"),
    "schedule": (
        "NAME",
        "scale the frequencies with this function of rotary.scaling; its keywords are options: --schedule linear --factor 4",
    ),
    "layout": ("LAYOUT", "which features form a pair: half or interleaved (`posref aliases` translates)"),
    "to": (
        "CONVERTER",
        "converts NumPy arrays to your tensors: torch.from_numpy, torch.bfloat16, jax.float32 or MODULE:FUNCTION",
    ),
    "to_positions": ("CONVERTER", "converts positions, if --to would round them"),
    "max_position": ("N", "try no larger position, for instance because your table ends at N"),
    "seed": ("N", "also call with random sizes, positions and numbers, drawn from this seed"),
    "positions": (
        "FORM",
        "what your function receives: batch, an array (batch, n); shared, (n,); range, nothing or n; offset, one integer",
    ),
    "model": ("MODEL", "require this arithmetic, for instance bf16-f32math: bfloat16 arrays, computed in float32"),
}
LIBRARIES = {"torch": "torch", "jax": "jax.numpy"}  # where --to LIBRARY.dtype finds its dtypes
CONVERTERS = {"torch.from_numpy": "torch:from_numpy", "jax.numpy.asarray": "jax.numpy:asarray"}  # as in Python


class Usage(Exception):
    """An error of use: printed as one line, exit code 2."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, with the name that was meant, or an example of what is missing."""

    example = "posref list"

    def error(self, message):
        found = re.fullmatch(r"argument (\S+): invalid choice: '(.*)' \(choose from (.*)\)", message)
        if found:
            name, given, known = found[1], found[2], found[3].replace("'", "").split(", ")
            message = f"{name} is {given!r}, expected one of {', '.join(known)}{near(given, known)}"
        missing = message.startswith("the following arguments are required:")
        message = message.replace("the following arguments are required:", "needs").removeprefix("argument ")
        remedy = f"for instance `{self.example}`" if missing else f"`{self.prog} --help` explains it"
        raise Usage(f"{self.prog.removeprefix('posref')} {message}; {remedy}".strip())

    def refuse(self, rest):
        if rest:
            meant = near(rest[0], re.findall(r"--[\w-]+", self.format_usage()))
            raise Usage(f"{self.prog.removeprefix('posref ')} takes no {rest[0]}{meant}; see `{self.prog} --help`")


def near(name, known):
    from posref import _require

    return _require.near(name, known)


def option(name):
    return f"--{name.replace('_', '-')}"


def without_family(name):
    """t5.bias for relative.t5.bias: `find` and `list` print the family of a system, and no op has one."""
    from posref import discovery

    return re.sub(rf"^(posref\.)?(({'|'.join(discovery.FAMILIES)})\.)?", "", name)


def settings(parameters, rest, more=""):
    """The settings of an op that the command line has no option of its own for."""
    parser = Parser(prog="posref check", allow_abbrev=False, add_help=False)
    for name, parameter in parameters.items():
        said = option(name)
        if parameter.annotation is bool or isinstance(parameter.default, bool):
            parser.add_argument(said, action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS)
        elif name not in CHECK_OPTIONS:
            parser.add_argument(said, type=_value, default=argparse.SUPPRESS)
    found, unknown = parser.parse_known_args(rest)
    if unknown:
        if ":" in unknown[0]:
            raise Usage(f"put MODULE:FUNCTION first: posref check {unknown[0]} --as ..")
        names = [option(name) for name in parameters if name not in ("fn", "name", "settings")]
        meant = near(unknown[0].partition("=")[0], [*names, *map(option, CHECK_OPTIONS)])
        raise Usage(f"check has no {unknown[0]} here{meant}; the settings are {', '.join(names)}{more}")
    return vars(found)


def _value(text):
    """A number where it is one, an array where it is numbers with commas, nothing where it is none, else the word."""
    import numpy as np

    if text.lower() == "none":
        return None
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    parts = [_value(part) for part in text.split(",")] if "," in text else [text]
    return text if any(isinstance(part, str) for part in parts) else np.array(parts)


def or_usage(function, *arguments):
    try:
        return function(*arguments)
    except ValueError as error:
        raise Usage(error) from None


def system(name):
    """The ops of a system; Usage with the systems that a word of the field means."""
    from posref import finding, ops

    try:
        return ops.system(name)
    except ValueError as error:
        meant = [each.split(".")[-1] for each in finding.meant(name) if each.split(".")[-1] in ops.names()]
        raise Usage(f"no system {name}; did you mean {' or '.join(meant)}?" if meant and name.strip() else error) from None


def resolved(name):
    """The system of a name, or the one that a word of the field means."""
    from posref import discovery, finding

    try:
        return discovery.resolve(name)
    except LookupError as error:
        meant = finding.meant(name) if name.strip() else []
        if not meant:
            raise Usage(error) from None
        if len(meant) > 1:
            raise Usage(f"{name!r} can mean {', '.join(meant)}; show one of them, or see `posref find {name}`") from None
        return meant[0]


def known_layout(layout):
    from posref.check.frameworks import layout_of
    from posref.check.rotary.rotation import LAYOUTS

    if layout not in LAYOUTS:
        meant = layout_of(layout)
        remedy = f"{layout} is {meant}, write --layout {meant}" if meant else "`posref aliases` says which is yours"
        remedy = f"{near(layout, LAYOUTS)[2:]}; {remedy}".removeprefix("; ")
        raise Usage(f"--layout {layout}: expected {', '.join(LAYOUTS)}; {remedy}")


def numbers(option, text):
    """An array from numbers with commas, or from a .npy or .json file."""
    import numpy as np

    from posref.check import tensors

    remedy = "give numbers with commas, or a .npy or .json file with a list of them"
    try:
        if text.endswith((".npy", ".json")):
            return tensors.load_numbers(text)
    except OSError as error:
        raise Usage(f"{option} {text}: {error.strerror}; give the path of a .npy or .json file") from None
    except ValueError as error:
        raise Usage(f"{option}: {error}; {remedy}") from None
    try:
        return np.array([float(number) for number in text.split(",")])
    except ValueError:
        raise Usage(f"{option} {text}: no list of numbers; {remedy}") from None


def function(path):
    """The object behind MODULE:FUNCTION, looked for from the current directory first, or FILE.py:FUNCTION."""
    from posref.check.call import raised

    name, _, attribute = path.rpartition(":")
    if not name or not all(part.isidentifier() for part in attribute.split(".")):
        raise Usage(f"{path!r} is no function; write MODULE:FUNCTION or FILE.py:FUNCTION, for instance my_ops:rope")
    try:
        found = _module(name)
    except Usage:
        raise
    except ModuleNotFoundError as error:
        top = name.split(".")[0]
        remedy = f"run posref where {top}.py lies" if error.name == top else "install what it imports"
        raise Usage(f"{path}: {error}; {remedy}") from None
    except (Exception, SystemExit) as error:
        raise Usage(f"{path}: importing {name} raises {raised(error)}; make that work first") from None
    try:
        for part in attribute.split("."):
            found = getattr(found, part)
    except AttributeError as error:
        meant = near(part, [name for name in dir(found) if not name.startswith("_")])
        raise Usage(f"{path}: {error}{meant or '; check the name after the colon'}") from None
    if not callable(found):
        from posref import _require

        raise Usage(f"{path} is {_require.kind(found)}, not a function; name what takes the arrays")
    return found


def _module(name):
    """The module of a dotted name, or of a file: inside its package, if it lies in one."""
    file = Path(name)
    if file.suffix != ".py" and file.name == name:
        sys.path.insert(0, os.getcwd())
        return importlib.import_module(name)
    file = file.with_suffix(".py").absolute()
    if not file.is_file():
        meant = near(file.name, [each.name for each in file.parent.glob("*.py")])
        raise Usage(f"{name}: there is no file {file}{meant}; write MODULE:FUNCTION or FILE.py:FUNCTION")
    folder, dotted = file.parent, file.stem
    while (folder / "__init__.py").is_file():
        folder, dotted = folder.parent, f"{folder.name}.{dotted}"
    sys.path.insert(0, str(folder))
    spec = importlib.util.spec_from_file_location(dotted, file)
    module = sys.modules[dotted] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def converter(name, text):
    """A function of NumPy arrays: MODULE:FUNCTION, what Python calls it, or a dtype of torch or jax such as torch.bfloat16.

    A dtype is that of all arrays of its kind: floats or integers. Other arrays keep theirs.
    """
    text = CONVERTERS.get(text, text)
    library, _, dtype = text.partition(".")
    if library not in LIBRARIES or ":" in text:
        return function(text)
    said = f"{option(name)} {text}"
    try:
        module = importlib.import_module(LIBRARIES[library])
    except ImportError as error:
        raise Usage(f"{said}: {error}; pip install {library}") from None
    made = getattr(module, dtype, None)
    if not isinstance(made, type(module.float32)):
        raise Usage(f"{said}: {library} has no such dtype; try {library}.float32 or {library}.bfloat16")
    if library == "jax":
        kind = module.dtype(made).kind.replace("V", "f")  # bfloat16 is none of NumPy's
        return lambda array: module.asarray(array, dtype=made if array.dtype.kind == kind else None)
    kind = "f" if made.is_floating_point else "i"
    return lambda array: module.from_numpy(array).to(made) if array.dtype.kind == kind else module.from_numpy(array)
