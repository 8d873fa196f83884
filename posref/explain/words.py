"""The text of an explanation, which `posref explain FILE` prints."""

import re

import numpy as np

from posref._printable import in_one_line
from posref.explain.masks import in_words

LAYOUTS = {
    None: "NOT KNOWN: no key says which features form a pair",
    "half": "half: pairs (t, t + {half})",
    "interleaved": "interleaved: pairs (2t, 2t + 1)",
    "interleaved_to_half": "interleaved: reads pairs (2t, 2t + 1), writes (t, t + {half}): same scores, other cache order",
}
ENCODINGS = {
    "none": "no position in these layers",
    "learned": "a learned table at the input (absolute.learned), {table}",
    "sinusoidal": "a fixed table at the input (absolute.sinusoidal)",
    "boxes": "two learned tables of rows and columns at the input; biases by bucket of the offset and of boxes (relative.t5)",
    "learned_and_buckets": "a learned table at the input (absolute.learned), {table}; biases by bucket, which the query's "
    "token projects (relative.t5)",
    "learned_axial": "two learned tables at the input, joined (absolute.learned), {table}, [a, b]: place p reads row p // b "
    "of the first and row p % b of the second",
    "t5": "a bias by bucket of the offset (relative.t5)",
    "alibi": "a bias that grows with the distance (relative.alibi)",
    "disentangled": "scores with relative positions (relative.deberta)",
    "inkling": "a bias by distance: curves that the token of the query mixes (relative.inkling)",
    "xlnet": "scores with sinusoids of the distance, and a term for segments (relative.xlnet)",
    "delta": "order comes from a state that decays; each token replaces the value that its key recalls (state.delta)",
    "gated": "order comes from a state that decays by gates, which the tokens set (state.gated)",
    "retention": "order comes from a state that decays at a fixed rate (state.retention)",
    "convolution": "order comes from a short convolution (state.convolution)",
    "sinusoidal_2d_input": "a fixed table at the input, made in float64: sinusoids of the column, then of the row",
    "sinusoidal_3d_input": "a fixed table at the input, made in float64: sinusoids of the frame, the column, then the row",
    "sinusoidal_2d": "each layer adds a sinusoid of row and column to queries and keys (absolute.sinusoidal_2d), base {base:g}",
    "sinusoidal_2d_counted": "each layer adds sinusoids of row and column to queries and keys: (S(y w), C(y w), "
    "S(x w), C(x w)), base {base:g}, which is the convention mae of absolute.sinusoidal_2d with y and x exchanged",
    "two_angles_per_pair": "a third of a head for each of frame, row and column; the tables are made for halves but pairs are "
    "neighbours: the two features of a pair turn by different angles (axes.rotate_vjepa2, convention released), base {base:g}",
    "object_queries": "each layer adds the trained vector of an object to its queries and keys, {table}",
    "object_queries_and_patches": "each layer adds the vector of an object to queries, the sinusoid of a patch to keys",
    "object_boxes": "each layer adds to queries and keys what a network makes of the sinusoids of an object's box (y, x, width "
    "and height times 2 pi, base {base:g}); the boxes begin as a trained table, {table}",
    "object_points": "heads are twice as wide: beside the features, keys have the projected sinusoid of a patch, base "
    "{base:g}, and queries have the projected sinusoid of the object's centre, base 10000, in later layers times what a "
    "network makes of the object's features; in the first layer, projections of positions are also added to the features",
    "unordered": "no position: the tokens are trained queries",
    "learned_2d": "two learned tables at the input, {table}: one for the row of a patch, one for its column",
    "convolved": "no term for position: a convolution over neighbours in each feed-forward layer brings in the order of the "
    "patches",
    "convolution_input": "a convolution of the input is added to it, before the first layer (absolute.zero_padding)",
    "transformer_xl": "scores with sinusoids of the distance and two trained vectors (relative.transformer_xl); each layer "
    "also has a convolution over neighbours",
    "pooled": "scores with sinusoids of the distance and two trained vectors (relative.transformer_xl), and a term for "
    "segments; the first token, [CLS], has no distance terms and no segment term, as query or as key",
    "distances": "each query also meets projected sinusoids of the distance (relative.transformer_xl without trained vectors); "
    "each layer also has a convolution over neighbours",
    "offsets": "a trained bias per head and per offset; each layer also has a convolution over neighbours",
    "unsigned": "convolutions make the patches; a trained bias per head and per distance in rows and columns, the same on both "
    "sides (relative.swin)",
    "relative": "a trained vector for each offset, times the query (relative.shaw); each layer also has a convolution over "
    "neighbours",
    "relative_after_sinusoids": "sinusoids at the input (for sound a convolution of the input is added before); a trained "
    "vector for each offset, times the query (relative.shaw)",
    "sinusoids_of_the_class": "sinusoids at the input (absolute.sinusoidal): tokens of a text are counted as in M2M-100; "
    "frames of sound are counted from 0, and their sinusoids are multiplied by a trained number",
    "decomposed": "a bias by rows and one by columns, which the query's token chooses (relative.decomposed)",
    "swin": "a bias by rows and columns between patches of a window (relative.swin)",
    "swin_with_cls": "a bias by rows and columns between patches of a picture, with [CLS] in front (relative.swin)",
    "swin_v2": "a bias by a network of rows and columns between patches of a window (relative.swin)",
}
ATTENTIONS = {"rope": "attention with RoPE", "none": "attention without position"}
TRAINED = ("A_log", "dt_bias", "D", "recurrent_param")  # names of transformers in formulas of states
OF_TOKEN = ("a", "b", "f", "r", "g", "dt", "x", "z")
NORMS = {
    "before": "queries and keys are normalized before the rotation",
    "after": "queries and keys are normalized after the rotation",
    "alone": "queries and keys are normalized, and not rotated",
}


def describe(explained, name):
    """The whole explanation as text."""
    explained, name = in_one_line(explained), in_one_line(name)
    lines = [f"{name}: model_type {explained.model_type}"]
    for groups in _alike(explained.layers):
        lines += ["", *block(groups)]
    if explained.unsupported:
        lines += ["", "NOT DESCRIBED", *(f"  {undescribed(entry)}" for entry in explained.unsupported)]
    listed = [("Common mistakes (`posref mistakes NAME` says more)", list(_slips(explained.layers))), *lists(explained)]
    for title, sentences in listed:
        lines += ["", title, *(f"  - {sentence}" for sentence in sentences)] if sentences else []
    return "\n".join(lines)


def lists(explained):
    """(title, sentences) for the traps and for the keys that were not understood."""
    yield "Traps", explained.traps
    yield "Keys of the configuration about position that were not understood", explained.unread
    strange = [", ".join(explained.foreign)] if explained.foreign else []
    yield "Keys of the configuration that no class of transformers 5.23.0 has; they may change position", strange


def undescribed(entry):
    """layers 0-2, 4-6 (6): linear_attention (a state that decays orders the tokens): not described"""
    part = f"{entry['part']}: " if entry["part"] else ""
    counted = f" of {entry['counted_by']}" if entry["counted_by"] else ""
    which = f"layers {runs(entry['indices'])} ({len(entry['indices'])}){counted}" if entry["indices"] else "all layers"
    kind = entry["kind"] or f"model_type {entry['model_type']}"
    return f"{part}{which}: {kind} ({entry['why']}): not described"


def _slips(groups):
    """A sentence for each different mistake: its name, what is wrong, its effect, and where it was seen."""
    found = {(slip["op"].split(".")[0], slip["mistake"], slip["effect"]): slip for group in groups for slip in group.slips}
    for (system, mistake, _), slip in found.items():
        seen = f" Seen in {', '.join(slip['seen_in'])}." if slip["seen_in"] else ""
        yield f"{system}.{mistake}: {slip['bug']}. {slip['effect']}{seen}"


def _alike(groups):
    """Lists of sets of layers: sets of one part and one source that differ in at most one line share a list."""
    found = []
    for group in groups:
        same = [each for each in found if (each[0].part, each[0].source) == (group.part, group.source)]
        together = next((each for each in same if len(_differing([*each, group])) == 1), None)
        together.append(group) if together else found.append([group])
    return found


def _differing(groups):
    """The first words of the lines in which sets of layers differ."""
    said = [_lines(group) for group in groups]
    return [
        word for word in dict.fromkeys(word for each in said for word in each) if len({each.get(word) for each in said}) > 1
    ]


def _lines(group):
    """{first word of a line: the text of this line and of the lines that continue it}."""
    found, last = {}, ""
    for word, text in rows(group):
        last = word or last
        found[last] = (*found.get(last, ()), text)
    return found


def block(groups):
    """The lines about sets of layers that differ in at most one line; that line is written once per set."""
    part, kinds = groups[0].part, " and ".join(dict.fromkeys(map(kind, groups)))
    yield f"{f'{part}: ' * bool(part)}{_layers({i for group in groups for i in group.indices}, kinds)}   {groups[0].source}"
    said, differing = [(group, _lines(group)) for group in groups], _differing(groups)
    for word in dict.fromkeys(word for _, lines in said for word in lines):
        texts = said[0][1].get(word, ())
        if word in differing:
            own = [(_layers(group.indices, kind(group)), lines.get(word, ())) for group, lines in said]
            texts = [f"{which}: {text}" if not n else text for which, lines in own for n, text in enumerate(lines)]
        yield from (f"  {'' if n else word:12} {text}" for n, text in enumerate(texts))


def kind(group):
    """The kind of the layers and, if the kind does not say it, the block that reads position: a hybrid layer has two blocks."""
    named = group.kind.replace("_", " ")
    if group.state:
        return f"{named}: {'a state that decays' if 'log_decay' in group.state else 'a short convolution'}"
    return named if "attention" in named else f"{named}: {ATTENTIONS.get(group.encoding, 'attention with a bias')}"


def _layers(indices, kinds):
    return f"layers {runs(sorted(indices))} ({len(indices)}, {kinds})"


def runs(indices):
    """A list of indices as text, with runs as ranges.

    >>> runs([0, 1, 2, 4, 6, 7, 8])
    '0-2, 4, 6-8'
    """
    starts = [i for i in indices if i - 1 not in indices]
    ends = [i for i in indices if i + 1 not in indices]
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))


def rows(group):
    """(first word, text) of each line about a set of layers; a line that continues another has the word ""."""
    if group.encoding == "rope":
        yield from _rotation(group)
    else:
        yield (
            "position",
            ENCODINGS.get(group.encoding, group.encoding).format(
                table=f"{group.table} rows" if group.table else "a row for each patch, in some models also for [CLS]",
                base=group.base,
            ),
        )
        if group.call:
            yield "table", f"{group.call}, p: the coordinates of all patches"
        if group.convolution:
            yield "convolution", ", ".join(f"{key} {value}" for key, value in group.convolution.items())
        if group.bias:
            yield "bias", ", ".join(f"{key} {value}" for key, value in group.bias.items() if value is not None)
    if group.state:
        yield from _state(group.state)
        return
    if group.positions:
        yield from _positions(group.positions)
    yield "scale", _scale(group)
    yield "mask", _mask(group)
    if group.softcap:
        yield "cap", f"scores become {group.softcap:g} tanh(score / {group.softcap:g}), before the mask"
    if group.sinks:
        yield (
            "sinks",
            "each head has a trained score that no key has; the softmax counts it, so the weights of a row sum to less than 1",
        )
    if group.temperature:
        scaled = "products and bias" if group.bias else "queries"
        yield "temperature", f"{scaled} times {rule_in_words(group.temperature)}"
    if group.norm:
        yield "norm", NORMS[group.norm]
    if group.indexer:
        yield "indexer", "{head_dim} wide, reads {layout}, rotates the {rotated} features".format(**group.indexer)


def rule_in_words(temperature):
    """The rule by which queries grow with their position p, then the values of its letters."""
    return ", ".join([temperature["rule"], *(f"{name} = {temperature[name]:g}" for name in "af" if name in temperature)])


def _rotation(group):
    width, head = group.rotary_dim, group.head_dim
    pairs = len(group.axes or group.frequencies)
    place = "" if width == head else _rotated(group)
    yield "position", f"rotary.rope rotates {width} of {head} features of queries and keys{place}"
    if group.rotated_heads:
        others = f"heads {runs(range(group.rotated_heads, group.heads))}" if group.heads else "the other heads"
        words = f"; {others} have no position" if group.heads != group.rotated_heads else ""
        yield "", f"in head {runs(range(group.rotated_heads))} alone{words}"
    if group.input:
        yield "", "a learned table is also added to the patches, before the first layer (absolute.learned)"
    if group.learned_first:
        yield "", "the class token, which stands first, is rotated by trained angles"
    sign = " (clockwise: by minus the angle)" if group.sign < 0 else ""
    yield "layout", LAYOUTS.get(group.layout, str(group.layout)).format(half=pairs) + sign
    if group.axes:
        yield "axes", f"{group.order.replace('_', ' ')}: pairs read {counted(group.axes)}"
    yield "frequencies", group.call
    yield "", first_and_last(group.frequencies)
    if changed(group):
        yield "", changed(group)
    if group.frequencies_long is not None:
        yield "", f"long list: {first_and_last(group.frequencies_long)}"
    scores = f": on cosine and sine, so scores are multiplied by {group.magnitude**2:.6g}" if group.magnitude != 1 else ""
    yield "magnitude", f"{group.magnitude:.12g}{scores}"
    if group.undo:
        yield "output", "values are rotated with the keys, and the output is rotated back"
    if group.max_position_embeddings:
        yield "lengths", length_words(group)


def _rotated(group):
    """Words for the features of a head that rotate; with halves, pairs of frequency 0 stand between the two runs."""
    moved, pairs = group.rotary_dim // 2, len(group.frequencies)
    if group.axes or pairs <= (group.rotary_dim + 1) // 2:
        return f", the {group.rotated} ones"
    first = group.head_dim - 2 * pairs if group.rotated == "last" else 0
    starts = [(first, moved), (first + pairs, moved)] if group.layout == "half" else [(first, 2 * moved)]
    return ": " + " and ".join(f"{start}-{start + count - 1}" for start, count in starts)


def _state(said):
    """The lines about a layer with a state, which has no scores; the convolution comes before the state."""
    rule = said.get("convolution")
    if rule:
        act, bias = f", then {rule['activation']}" if rule["activation"] else "", "with" if rule["bias"] else "without"
        after = f"; the result is multiplied by {rule['gated']}" if "gated" in rule else ""
        after += "; the result is added to its input" if rule.get("added") else ""
        yield (
            "convolution",
            f"state.convolution of {', '.join(rule['of'])} over {rule['width']} tokens, {bias} bias{act}{after}",
        )
    if "log_decay" not in said:
        return
    formulas = " ".join(str(said.get(name, "")) for name in ("step", "log_decay", "values", "strength", "skip", "gated"))
    words = set(re.findall(r"[A-Za-z]\w*", formulas))
    trained, of_token = ([name for name in names if name in words] for names in (TRAINED, OF_TOKEN))
    if of_token:
        position = "; p: the position" if "p" in words else ""
        yield "numbers", f"{', '.join(of_token)}: projected from the token; {', '.join(trained)}: trained{position}"
    if "multipliers" in said:
        each = ", ".join(f"{name} by {number:.9g}" for name, number in said["multipliers"].items())
        yield "multipliers", f"what is projected from the token is multiplied before the convolution: {each}"
    for label, name, words in (
        ("activation", "activation", "queries, keys and values go through {}"),
        ("keys", "keys", "{}"),
        ("step", "step", "step = {}"),
        ("decay", "log_decay", "ln(decay) = {}, one number per {decay_per}"),
        ("values", "values", "v = {}"),
        ("strength", "strength", "beta = {}"),
    ):
        if name in said:
            yield label, words.format(said[name], **said)
    reads = f"value head h reads key head {said['key_head']} of {said['key_heads']}"
    of = "" if said["key_heads"] == said["value_heads"] else f"; {reads if said['key_heads'] > 1 else 'all read one key head'}"
    yield "state", f"{said['value_heads']} heads of {said['key_width']} x {said['value_width']} numbers, keys by values{of}"
    if "normed" in said:
        yield "norm", said["normed"]
    if "unit" in said:
        yield "norm", f"queries and keys are divided by sqrt(sum x^2 + {said['unit']:g})"
    yield "scale", f"{said['scale']:.12g}"
    if "skip" in said:
        yield "output", f"q . S + {said['skip']}" + (f", times {said['gated']}" if "gated" in said else "")
    if "chunk" in said:
        yield "chunk", f"{said['chunk']} tokens at a time; the length changes only the rounding"


LONGER = "a text of n >"  # how a trap begins that says which other frequencies longer texts have
SCHEDULES = {
    "yarn": "YaRN",
    "llama3": "Llama 3",
    "longrope": "LongRoPE",
    "dynamic_ntk": "dynamic NTK",
    "dynamic_ntk_by_doubling": "dynamic NTK by doubling",
    "linear": "linear",
    "ntk": "NTK",
}


def length_words(group):
    """Words for max_position_embeddings, for the length that a schedule extends, and for the rounding error of angles there."""
    found = f"max_position_embeddings {group.max_position_embeddings}"
    words = group.scaling or {}
    if words.get("factor"):
        original = f"{words['original_length']} x " if words.get("original_length") else "factor "
        found += f"; {SCHEDULES.get(words['type'], words['type'])}: {original}{words['factor']:g}"
    error = {name: f"{value:.2g}" + " (the largest possible)" * (value >= np.pi) for name, value in group.phase_error.items()}
    return found + f"; angles there are off by up to {error['float32']} rad in float32, by {error['bfloat16']} in bf16"


COUNTED = {  # what an expression of posref.explain.positions says
    "arange(n)": "0, 1, 2, ..; padding is counted",
    "arange(n) - (~mask).sum()": "0, 1, 2, .. less the number of padded ones, which stand first",
    **{f"position_ids.padded(mask, filler={i})": f"the tokens of the mask are counted from 0; padding has {i}" for i in (0, 1)},
    "learned.position_ids(mask, convention='opt')": "the tokens of the mask are counted from 2; padding has 1",
}


def _positions(found):
    rows = [f"without position_ids: {_in_words(found['forward'])}: {found['forward']}"] if found["forward"] else []
    rows += [f"in generate(): {_in_words(found['generate'])}: {found['generate']}"] if found["generate"] else []
    rows += [f"after c cached tokens: {found['cached']}"] if found["cached"] else []
    rows += [f"patches of images: {found['images']}"] if found.get("images") else []
    rows += [f"tokens of the text: {found['text']}"] if "text" in found else []
    rows += [f"timestep: {found['timestep']}"] if "timestep" in found else []
    yield from zip(["positions", *[""] * len(rows)], rows, strict=False)


def _in_words(expression):
    if expression not in COUNTED and expression.startswith("arange(n) + "):
        first = expression.removeprefix("arange(n) + ")
        counts = [int(first) + i if first.isdigit() else f"{first} + {i}" for i in range(3)]
        return ", ".join(map(str, counts)) + ", ..; padding is counted"
    return COUNTED.get(expression, "tokens that are no padding are counted from padding_idx + 1; padding has padding_idx")


def counted(axes):
    """The number of pairs that read each axis, in words."""
    return ", ".join(f"{axis} {axes.count(axis)}" for axis in "thwl" if axis in axes)


def first_and_last(values):
    """The first and last numbers of a list, in words."""
    shown = [f"{value:.9g}" for value in (values if len(values) <= 6 else [*values[:3], *values[-2:]])]
    return "[" + ", ".join(shown if len(values) <= 6 else [*shown[:3], "...", *shown[3:]]) + f"]  {len(values)} numbers"


def changed(group):
    """Words for the pairs that keep their frequency, the pairs that are blended, and the pairs that are divided."""
    if not group.scaling or group.scaling["type"] not in ("yarn", "llama3"):
        return ""
    found, factor = np.array(group.frequencies), group.scaling["factor"]
    ratio = group.base ** (-2 * np.arange(len(found)) / group.rotary_dim) / found
    kept, divided = int(np.sum(np.isclose(ratio, 1, rtol=1e-12))), int(np.sum(np.isclose(ratio, factor, rtol=1e-12)))
    return f"{kept} pairs unchanged, {len(found) - kept - divided} blended, {divided} divided by {factor:g}"


def _scale(group):
    if group.softmax_scale is None:
        return (
            "cosines times min(exp(logit_scale), 100), which is trained per head"
            if group.encoding == "swin_v2"
            else "NOT KNOWN"
        )
    before = f"; queries are multiplied by {group.query_scale:.9g} before" if group.query_scale != 1 else ""
    before += f"; keys are multiplied by {group.key_scale:.9g} before" if group.key_scale != 1 else ""
    return f"{group.softmax_scale:.12g}{before}"


def _mask(group):
    seen = in_words(group)
    if group.encoding in ("swin", "swin_v2"):
        seen = "patches of one window of {window} x {window} see each other".format(**group.bias)
        if group.bias["shift"]:
            seen += ", after a roll by -{shift}; {masked} for those that the roll brought together".format(**group.bias)
    grouped = group.kv_heads and group.heads and group.heads // group.kv_heads > 1
    which = f"h % {group.kv_heads}" if group.tiled else f"h // {group.heads // group.kv_heads}" if grouped else ""
    share = f"; query head h uses key head {which}" if grouped else ""
    return seen + share
