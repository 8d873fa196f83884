"""Every rotary class of the installed transformers, asked for: does what is right pass, and is what is asked wrongly named?

A subject is a rotary class and a kind of layer, built small. It makes its tables, and a function of its file turns features by
them. Unit vectors at unit positions show what this does: which features form a pair and where the pair is written, which axis
it reads, its frequency, sign and magnitude. `posref.check` is asked for exactly that, and must pass; asked for another pairing
it must fail, and name the one that was read.

    python -m tests.programs.rotations [WORD ..]      prints each subject whose name has a WORD, and the number
"""

import contextlib
import functools
import importlib
import inspect
import itertools
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from posref.check import check, check_rope
from tests.programs import models
from tests.programs.models import torch, transformers

CLASS = re.compile(r"^class (\w*(?:Rotary|Rope|RoPE)\w*)\(nn\.Module", re.MULTILINE)
OTHER = {"half": "interleaved", "interleaved": "half", "interleaved_to_half": "half"}
NEAR = 1e-5
NOT_ASKED = {  # and why
    "efficientloftr.EfficientLoFTRRotaryEmbedding": "rows and columns of its own grid, counted from 1",
    "llama4.Llama4VisionRotaryEmbedding": "rows and columns of its own grid, from 1; as explained in tests.programs.drift",
    "musicflamingo.MusicFlamingoRotaryEmbedding": "angles are a row of a table times a time: no frequency times a position",
}
HEADS = 7  # no other extent here is 7
AXES = 4  # as many coordinates as ESMFold 2 has


class Subject(NamedTuple):
    """A function of features and positions, and its name."""

    name: str
    turn: Any
    module: Any
    axes: int


class Reading(NamedTuple):
    """What a function does with unit vectors: `pairs` are features, `left` where they are left, in the order of the pairs."""

    width: int
    pairs: list
    left: list
    axis: list
    angles: np.ndarray
    magnitude: float


class Verdict(NamedTuple):
    subject: str
    asked: str
    problem: str


def classes():
    """(file, name) of every rotary class that transformers defines."""
    for file in sorted(Path(transformers.__file__).parent.glob("models/*/modeling_*.py")):
        for name in CLASS.findall(file.read_text(encoding="utf-8")):
            if not name.endswith("Attention"):
                yield f"transformers.models.{file.parent.name}.{file.stem}", name


def built(home, name):
    """A class on the CPU from each configuration that it takes; the last problem, if it takes none."""
    kind, problem = getattr(importlib.import_module(home), name), None
    for configuration in configurations(home, kind):
        try:
            with models.quiet():
                module = kind(configuration()).eval()
        except Exception as error:  # each class has its own reasons
            problem = error
            continue
        yield module
    if problem is not None:
        raise problem


def configurations(home, kind):
    """Makers of what the class takes: a small configuration of its type, the text of a whole, the defaults."""
    annotation = list(inspect.signature(kind.__init__).parameters.values())[1].annotation
    named = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    package = importlib.import_module(home.rpartition(".")[0])
    files = [
        importlib.import_module(f"{package.__name__}.{path.stem}")
        for path in Path(package.__path__[0]).glob("configuration_*.py")
    ]
    found = [value for file in files for key, value in vars(file).items() if inspect.isclass(value) and key.endswith("Config")]
    found = [each for each in found if each.__module__.startswith(package.__name__)]
    found.sort(key=lambda each: (each.__name__ != named, "Text" not in each.__name__))
    for each in found:
        if each.model_type in models.types():
            yield lambda each=each: models.tiny(each.model_type)
            yield lambda each=each: models.tiny(each.model_type).get_text_config()
        yield each
        yield lambda each=each: each().get_text_config()


def kinds(module):
    """The kinds of layers of a class that has a table for each."""
    if "layer_type" not in inspect.signature(module.forward).parameters:
        return [None]
    tables = [name.removesuffix("_inv_freq") for name, _ in module.named_buffers() if name.endswith("_inv_freq")]
    return [name for name in tables if not name.endswith("_original")] or [None]


def forms(coordinates):
    """Positions `(batch, n, axes)` as classes want them; rows are alike where there is more than one axis."""
    at = torch.tensor(coordinates)
    if at.shape[-1] == 1:
        return [at[..., 0]]
    return [at.permute(2, 0, 1), at[0], at] if at.shape[-1] == 2 else [at.permute(2, 0, 1)]


def tables(module, kind, at):
    """Its tables at positions in a form of theirs; ValueError if it counts by itself."""
    names = list(inspect.signature(module.forward).parameters)
    if "pixel_values" in names:
        return pictured(module, at)
    if names == ["hidden_states"]:
        return counted(module, at)
    if names[0] == "ref_pos":  # ESMFold 2: three coordinates and a number, the last axis
        return module(at[:3, ..., None].transpose(0, -1)[0].float(), at[3], torch.float32)
    if "position_ids" not in names:
        raise ValueError(f"it takes {', '.join(names)} and no positions")
    given = {"layer_type": kind} if kind is not None else {}
    with models.quiet(), torch.no_grad():
        result = module(torch.zeros(1, at.shape[-1], 8), at, **given)
    return result if isinstance(result, tuple) else (result,)


def counted(module, at):
    """Tables of classes that count by themselves, their rows at the positions asked for."""
    rows = module(torch.zeros(1, int(at.max()) + 1, 8))
    if rows.shape[0] == 2:  # wav2vec 2: cosines and sines (2, n, 1, 1, features)
        return tuple(rows[:, :, 0, 0][:, at])
    return rows[0].cos(), rows[0].sin()  # CLVP, whose function takes the rows itself


def pictured(module, at):
    """The tables of DINOv3, which turns by 2 pi times the centres of patches: here these are what is asked."""
    file = importlib.import_module(type(module).__module__)
    original = file.get_patches_center_coordinates
    file.get_patches_center_coordinates = lambda *_, **__: at.double() / (2 * np.pi)
    try:
        with torch.no_grad():
            return module(torch.zeros(1, 3, module.config.patch_size, module.config.patch_size))
    finally:
        file.get_patches_center_coordinates = original


def turns(module):
    """The functions of its file that turn features by tables; those of its tower, if it is one."""
    file = importlib.import_module(type(module).__module__)
    found = [f for name, f in vars(file).items() if inspect.isfunction(f) and models.ROTATION.match(name)]
    found = [f for f in found if not f.__name__.startswith("_")] or found or [of_attention(file)]
    vision = [f for f in found if "vision" in f.__name__]
    return (vision if "Vision" in type(module).__name__ and vision else [f for f in found if f not in vision]) or found


def of_attention(file):
    """The method of wav2vec 2's attention that turns, as a function."""
    owner = next(
        kind for name, kind in vars(file).items() if inspect.isclass(kind) and hasattr(kind, "_apply_rotary_embedding")
    )

    def turn(q, cos, sin):
        batch, heads, n, width = q.shape
        size = SimpleNamespace(num_heads=heads, head_size=width)
        embeddings = torch.stack([cos, sin]).transpose(1, 2)[:, :, :, None]
        y = owner._apply_rotary_embedding(size, q.transpose(1, 2).reshape(batch, n, heads * width), embeddings)
        return y.reshape(batch, n, heads, width).transpose(1, 2)

    return turn


def calls(module, turn, kind, axes):
    """The ways to call a function that turns: with a second array or without, heads before tokens or after."""
    names = list(inspect.signature(turn).parameters)
    two = len(names) > 1 and names[1] in ("k", "xk", "key", "key_states")

    def call(x, coordinates, form, places):
        at = forms(coordinates)[form]
        shaped = x.swapaxes(1, 2) if "tokens" in places else x
        shaped = shaped[0] if "flat" in places else shaped
        q = torch.tensor(np.ascontiguousarray(shaped))
        dimension = {"tokens": 2, "heads of one": 0}.get(places)
        given = {"unsqueeze_dim": dimension} if dimension is not None and "unsqueeze_dim" in names else {}
        given |= {"position_ids": at} if "position_ids" in names else {}
        more = [q.clone()] * (two + (len(names) > 2 and names[2] == "v"))
        y = turn(q, *more, *tables(module, kind, at), **given)
        y = (y[0] if isinstance(y, tuple) else y).detach().numpy()
        if y.shape != shaped.shape:
            raise ValueError(f"{turn.__name__} returns shape {y.shape} for {shaped.shape}")
        y = y[None] if "flat" in places else y
        return y.swapaxes(1, 2) if "tokens" in places else y

    ways = itertools.product(range(len(forms(unit(axes)))), ("heads", "heads of one", "tokens", "tokens flat"))
    return [functools.partial(call, form=form, places=places) for form, places in ways]


def widths(module):
    """What may be the width of its features: that of a head, of its rotated part, or what its frequencies say."""
    for name in ("head_dim", "qk_rope_head_dim", "index_head_dim", "global_head_dim"):
        try:
            width = getattr(module.config, name)
        except Exception:  # none, or one for each layer
            continue
        if isinstance(width, int):
            yield width
    with contextlib.suppress(Exception):  # not every class has a configuration with heads
        yield module.config.hidden_size // module.config.num_attention_heads
    if isinstance(getattr(module, "num_uid_pairs", None), int):  # ESMFold 2, which makes its frequencies anew
        yield 2 * (3 * module.num_spatial_pairs_per_axis + module.num_uid_pairs + module.num_inactive_channels)
    yield from (scale * len(table.frequencies) for table in models.tables(module) for scale in (4, 2, 1))


def subjects(module, name):
    """One subject for each kind of layer of a class and each function that turns by its tables, or why there is none."""
    for kind in kinds(module):
        title = f"{name}{f' {kind}' if kind else ''}"
        found = [subject for turn in turns(module) if (subject := turning(module, kind, turn, title))]
        yield from found or [Subject(title, "no function of its file turns by its tables", None, 0)]


def turning(module, kind, turn, title):
    """The first way to call it that turns features by every one of as many axes as it takes, the most axes first, or None."""
    for axes in range(AXES, 0, -1):
        for width in dict.fromkeys(widths(module)):
            for call in calls(module, turn, kind, axes):
                subject = Subject(f"{title} {turn.__name__}", call, (module, width), axes)
                try:
                    reading = read(subject)
                except Exception:  # another width or order of axes is meant
                    continue
                if set(reading.axis) == set(range(axes)):
                    return subject
    return None


def unit(axes):
    """The origin, and a step along each axis."""
    return np.concatenate([np.zeros((1, axes), int), np.eye(axes, dtype=int)])[None]


def read(subject):
    """What it does with unit vectors at the origin and one step along each axis; ValueError if that is no rotation of pairs."""
    axes, (_, width) = subject.axes, subject.module
    x = np.broadcast_to(np.eye(width, dtype=np.float32)[:, None, None, None], (width, 1, HEADS, 1 + axes, width))
    y = np.stack([subject.turn(each, unit(axes))[0, 0] for each in x]).astype(np.float64)  # (feature in, step, feature out)
    origin, turned = y[:, 0], y[:, 1:]
    magnitude = float(np.abs(origin).max())
    place = np.abs(origin).argmax(axis=1)
    moved = [f for f in range(width) if np.abs(turned[f] - origin[f]).max() > 0]
    pairs, axis, angles = [], [], []
    for f in moved:
        partners = [g for g in moved if g != f and np.abs(turned[f, :, place[g]]).max() > 0]
        if len(partners) != 1:
            raise ValueError(f"feature {f} goes to {len(partners) + 1} features")
        if f < partners[0]:
            g = partners[0]
            cosine, sine = turned[f, :, place[f]] / magnitude, turned[f, :, place[g]] / magnitude
            back = np.stack([turned[g, :, place[g]] - turned[f, :, place[f]], turned[g, :, place[f]] + turned[f, :, place[g]]])
            if np.abs(back).max() > NEAR * magnitude:
                raise ValueError(f"features {f} and {g} have two angles")
            angle = np.arctan2(sine, cosine)
            if np.count_nonzero(angle) != 1:
                raise ValueError(f"features {f} and {g} read {np.count_nonzero(angle)} axes")
            pairs.append((f, g))
            axis.append(int(np.abs(angle).argmax()))
            angles.append(angle[axis[-1]])
    if not pairs:
        raise ValueError("nothing turns")
    return Reading(width, pairs, [(int(place[f]), int(place[g])) for f, g in pairs], axis, np.array(angles), magnitude)


def blocks(reading):
    """Readings of the blocks of features that turn for themselves: the whole, its last features, or one for each axis."""
    first = min(min(pair) for pair in reading.pairs)
    count = 1 + (reading.axis[-1] if layout(reading) is None and first == 0 else 0)
    edges = np.linspace(first, reading.width, count + 1).astype(int)
    for start, stop in itertools.pairwise(edges):
        inside = [t for t, pair in enumerate(reading.pairs) if start <= min(pair) and max(pair) < stop]
        moved = [[(f - start, g - start) for f, g in (each[t] for t in inside)] for each in (reading.pairs, reading.left)]
        axis = [reading.axis[t] for t in inside]
        yield start, stop, Reading(stop - start, *moved, axis, reading.angles[inside], reading.magnitude)


def layout(reading):
    """half, interleaved or interleaved_to_half, and the number of pairs, of which the first turn; None for other pairs."""
    turning = len(reading.pairs)
    for count in dict.fromkeys([turning, reading.width // 2]):
        known = {"half": [(t, t + count) for t in range(turning)], "interleaved": [(2 * t, 2 * t + 1) for t in range(turning)]}
        first, left = (next((k for k in known if known[k] == each), None) for each in (reading.pairs, reading.left))
        if first and left:
            return (first if first == left else f"{first}_to_{left}"), count
    return None


def question(module, axes, reading):
    """The keywords of check_rope, or of `check` for several axes; ValueError for what neither can be asked."""
    if layout(reading) is None:
        raise ValueError(f"pairs {reading.pairs[:2]} .. {reading.pairs[-1:]} of {reading.width} features")
    exact = np.concatenate([table.frequencies for table in models.tables(module)] or [np.zeros(0)])
    frequencies = np.abs(reading.angles)
    for t, w in enumerate(frequencies):  # the module's own numbers, which are not rounded by a sine
        near = exact[np.abs(exact - w) <= NEAR * w]
        frequencies[t] = near[0] if len(near) else w
    magnitudes = {table.magnitude for table in models.tables(module)} | {1.0}
    magnitude = min(magnitudes, key=lambda each: abs(each - reading.magnitude))
    sign = int(np.sign(reading.angles).sum() / len(reading.angles))
    words, count = layout(reading)
    frequencies = np.pad(frequencies, (0, count - len(frequencies)))
    asked = {"dim": reading.width, "layout": words, "frequencies": frequencies}
    if axes > 1:
        if sign != 1 or abs(reading.magnitude - 1) > NEAR:
            raise ValueError(f"several axes with sign {sign} and magnitude {reading.magnitude}")
        axis = reading.axis + [0] * (count - len(reading.axis))
        return asked | {"dim": 2 * count, "head_dim": reading.width, "axis": axis}
    asked |= {"rotary_dim": 2 * len(frequencies)} if 2 * len(frequencies) < reading.width else {}
    asked |= {"magnitude": magnitude} if magnitude != 1 else {}
    return asked | ({"sign": sign} if sign != 1 else {})


def asked(subject, start, stop, words):
    """The report on features `start` to `stop`, which turn for themselves."""
    _, width = subject.module

    def turn(x, coordinates):
        whole = np.zeros((*x.shape[:-1], width), np.float32)
        whole[..., start:stop] = x
        return subject.turn(whole, coordinates)[..., start:stop]

    def rows(x, coordinates):  # a block may read one axis alone
        every = np.pad(coordinates, ((0, 0), (0, subject.axes - coordinates.shape[-1])))
        return np.concatenate([turn(row[None], every[None]) for row in x])

    if subject.axes == 1:
        return check_rope(lambda x, p: turn(x, p[..., None]), max_position=4096, **words)
    return check(rows, "axes.rotate", **words)


def judge(subject):
    """The verdict on one subject: no problem if it passes as read, and is named where another pairing is asked for."""
    if subject.module is None:
        return Verdict(subject.name, "", subject.turn)
    shown = []
    for start, stop, reading in blocks(read(subject)):
        try:
            words = question(subject.module[0], subject.axes, reading)
        except ValueError as error:
            return Verdict(subject.name, "", str(error))
        shown.append(
            f"{words['layout']}, {2 * len(words['frequencies'])} of features {start} to {stop - 1}, "
            f"axes {sorted(set(reading.axis))}"
        )
        right = asked(subject, start, stop, words)
        if not right.ok:
            return Verdict(subject.name, shown[-1], f"it fails: {' '.join(str(right).split())[:300]}")
        if len(words["frequencies"]) == 1:  # one pair is of every layout
            continue
        wrong = asked(subject, start, stop, words | {"layout": OTHER[words["layout"]]})
        claims = re.findall(r'equals [\w.]+ with layout="(\w+)"', str(wrong))
        if wrong.ok or claims != [words["layout"]]:
            return Verdict(subject.name, shown[-1], f"asked for another pairing: {' '.join(str(wrong).split())[:300]}")
    return Verdict(subject.name, "; ".join(shown), "")


def report(words=(), part=slice(None)):
    """A verdict for each subject of a part of the classes, in the order of the files."""
    for home, name in [*classes()][part]:
        if words and not any(word.lower() in f"{home}.{name}".lower() for word in words):
            continue
        title = f"{home.rpartition('.')[2].removeprefix('modeling_')}.{name}"
        yield from map(judge, of_class(home, name, title))


def of_class(home, name, title):
    """The subjects of the first configuration of a class for which a function turns by its tables."""
    problem = "it is not built"
    try:
        for module in built(home, name):
            found = list(subjects(module, title))
            if all(subject.module for subject in found):
                return found
            problem = found[0].turn
    except Exception as error:
        problem = f"{type(error).__name__}: {error}" if problem == "it is not built" else problem
    return [Subject(title, problem, None, 0)]


def main(words):
    verdicts = []
    for verdict in report(words):
        verdicts.append(verdict)
        print(
            f"{verdict.subject:90} {verdict.asked if not verdict.problem else verdict.problem.splitlines()[0][:220]}",
            flush=True,
        )
    others = [verdict for verdict in verdicts if verdict.problem]
    passed = len(verdicts) - len(others)
    print(f"{passed} of {len(verdicts)} rotations pass as what they are, and are named where another pairing is asked for")
    print(*(f"not asked: {each.subject}: {NOT_ASKED.get(each.subject, each.problem)}" for each in others), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
