"""What an implementation must refuse: small cases with one thing wrong each; the same id and op as others, and no result.

A row of `ROWS` is the case that it comes from, which is right; a name; what is other than there, `None` for a setting that is
not given; the kind of the error; and why. `expected` is empty: an implementation that refuses has no numbers, so a comparator
takes [] and nothing else.
"""

import numpy as np

from posref.vectors import MODELS
from posref.vectors import _case as read_case
from proofs.vectors import case

KINDS = {
    "shape": "axes do not fit together",
    "range": "a number has no meaning there",
    "choice": "an unknown word",
    "missing": "a setting on which implementations disagree is not given",
    "type": "fractions where integers are meant",
}


def cut(x):
    """One entry less on the last axis."""
    return x[..., :-1]


def fewer(x):
    """One row less: the axis before the last."""
    return x[..., :-1, :]


def halves(x):
    return x + 0.5


ROWS = (
    ("rope/half/d4-b1e4/one", "odd-dim", {"dim": 3}, "range", "Features turn in pairs."),
    ("rope/half/d4-b1e4/one", "no-layout", {"layout": None}, "missing", "Both layouts are in use, and neither is an error."),
    ("rope/half/d4-b1e4/one", "layout-neox", {"layout": "neox"}, "choice", "Words for layouts differ; nothing is guessed."),
    ("rope/half/d4-b1e4/one", "dim-too-large", {"dim": 6}, "shape", "Six features cannot turn where there are four."),
    ("rope/half/d4-b1e4/one", "dim-0", {"dim": 0}, "range", "Nothing turns."),
    ("rope/half/d4-b1e4/one", "base-0", {"base": 0.0}, "range", "The frequencies are infinite."),
    ("rope/half/d6-b1e4/fractional", "positions-short", {"positions": cut}, "shape", "Two positions for three rows."),
    ("rope/half-to-interleaved/h4-d8/q-bias", "heads", {"heads": 5}, "shape", "32 rows are no five heads."),
    ("rope/half-to-interleaved/h4-d8/q-bias", "odd-dim", {"dim": 7}, "range", "Features turn in pairs."),
    ("sinusoidal/interleaved-dim-2/d10-b1e4/offset", "odd-dim", {"dim": 9}, "range", "Sines and cosines come in pairs."),
    ("sinusoidal/interleaved-dim-2/d10-b1e4/offset", "no-layout", {"layout": None}, "missing", "Sines first, or in turn."),
    ("sinusoidal/interleaved-dim-2/d10-b1e4/offset", "divisor", {"divisor": "half"}, "choice", "dim or dim - 2."),
    ("sinusoidal_2d/mae/d8-b1e4/grid", "no-convention", {"convention": None}, "missing", "MAE, DETR and timm differ."),
    ("resizing/timm/3x5-to-4x2/table", "no-convention", {"convention": None}, "missing", "Five are in use."),
    ("learned/any/r10-d3/encode", "beyond-the-table", {"positions": [[0, 10]]}, "range", "The table has rows 0 to 9."),
    ("learned/any/r10-d3/encode", "negative", {"positions": [[0, -1]]}, "range", "Row -1 is not the last row."),
    ("learned/any/r10-d3/encode", "fractional", {"positions": [[0.5, 1.0]]}, "type", "There is no row between two rows."),
    ("learned/bert/any/ids", "no-convention", {"convention": None}, "missing", "The first row differs by model."),
    ("learned/bert/any/ids", "padding-idx", {"padding_idx": 1}, "choice", "BERT counts from 0 whatever the padding is."),
    ("learned/roberta/r7-d3/embed", "table-too-short", {"table": lambda t: t[:4]}, "range", "The third token has row 4."),
    ("hierarchical/a0.4-n5-d2/encode", "beyond-n-squared", {"positions": [[0, 25]]}, "range", "Five rows serve 25 positions."),
    ("hierarchical/a0.4-n5-d2/encode", "alpha-1", {"alpha": 1.0}, "range", "Division by 1 - alpha."),
    ("recurrent/linear/d3/integers", "negative", {"length": -1}, "range", "No fewer than 0 steps."),
    ("floater/field/d2-s1/field", "no-substeps", {"substeps": 0}, "range", "At least one step from time to time."),
    ("complex_order/released/d2/encode", "phase", {"phase": cut}, "shape", "One phase for each amplitude."),
    ("merge/add/d4/tiny", "width", {"p": cut}, "shape", "Three features are added to four."),
    ("merge/paper/d4/tiny", "no-convention", {"convention": None}, "missing", "x p or x (1 + p)."),
    ("zero_padding/zero/w3/constant", "padding", {"padding": "same"}, "choice", "What is written at the ends must be said."),
    ("index/length/n16/encode", "length-0", {"length": 0}, "range", "Division by the length."),
    ("alibi/signed/h6/decode", "no-form", {"form": None}, "missing", "-m (i - j), m j and -m |i - j| are all in use."),
    ("alibi/signed/h6/decode", "form", {"form": "relative"}, "choice", "signed, absolute or key."),
    ("alibi/slopes/h1-b8/slopes", "no-heads", {"heads": 0}, "range", "At least one head."),
    ("cope/nodiv/d4-r3/causal", "no-convention", {"convention": None}, "missing", "z is divided by sqrt(d), or not."),
    ("fire/bias/h3-c0.125/square", "c-0", {"c": 0.0}, "range", "Every distance would be 0."),
    ("forgetting/key/h3/painted", "no-form", {"form": None}, "missing", "c_i - c_j, or -c_j, which is the same after softmax."),
    ("stick_breaking/weights/h2/decode", "mask", {"seen": cut}, "shape", "A mask has a column for every key."),
    ("kerple/power/h3/square", "no-form", {"form": None}, "missing", "A logarithm or a power."),
    ("kerple/power/h3/square", "power", {"p": [0.75, 1.5, 2.5]}, "range", "A power above 2 is no kernel."),
    ("sandwich/bias/h3-d6/square", "odd-dim", {"dim": 5}, "range", "Frequencies belong to pairs of features."),
    ("swin/table/w2x3-h2/bias", "table", {"table": fewer}, "shape", "(2 height - 1) (2 width - 1) rows."),
    ("decomposed/square/d4/bias", "table", {"row_table": fewer}, "range", "2 max(m, n) - 1 rows, or a resized table."),
    ("t5/bidirectional/h3-b32-d128/chunk", "odd-buckets", {"table": fewer}, "range", "31 buckets have no half for each side."),
    ("t5/bidirectional/h3-b32-d128/chunk", "no-direction", {"bidirectional": None}, "missing", "Encoder or decoder."),
    ("t5/side/b16-d128/starts", "max-distance", {"max_distance": 8}, "range", "8 distances are exact already."),
    ("t5/side/b16-d128/starts", "one-bucket", {"buckets": 1}, "range", "No room for a logarithm."),
    ("shaw/relative-key/h3-d4-k2/scores-decode", "even-table", {"key_table": fewer}, "shape", "-k to k are 2k + 1 rows."),
    ("shaw/relative-key/h3-d4-k2/scores-decode", "variant", {"variant": "key"}, "choice", "relative_key or .._key_query."),
    ("nezha/paper/d6-k3/table", "no-convention", {"convention": None}, "missing", "Paper and code count otherwise."),
    ("nezha/paper/d6-k3/table", "odd-dim", {"dim": 5}, "range", "Sines and cosines come in pairs."),
    ("deberta/released/h3-d4-k3/c2p", "no-convention", {"convention": None}, "missing", "delta(i, j) or delta(j, i)."),
    ("deberta/transformers/b256-p512/log-buckets", "odd-buckets", {"buckets": 255}, "range", "Half for each side."),
    ("transformer_xl/causal/q1-k5-h3-d4/scores-decode", "distances", {"r": fewer}, "shape", "A row for every distance."),
    ("xlnet/bi/q1-k5-h3-d4/scores-decode", "distances", {"r": fewer}, "shape", "A row for every distance."),
    ("tupe/untied/h3-n5/reset", "no-theta", {"theta_2": cut}, "shape", "One number for every head."),
    ("offsets/clip/l4-h4/shaw", "low-above-high", {"low": 5}, "range", "No number is at least 5 and at most 4."),
    ("offsets/contiguous/h3-q2-k5/toeplitz", "width", {"by_offset": cut}, "shape", "2 queries and 5 keys have 6 offsets."),
    ("offsets/gather/h3-w7/chunk", "outside", {"keys": [0, 1, 2, 3, 9]}, "range", "Nothing wraps to the other end."),
    ("position_ids/cached/5-of-5/ids", "more-queries", {"n_query": 6}, "range", "Six new tokens among five."),
    ("position_ids/zigzag/0-of-2/ids", "uneven", {"n": 15}, "range", "Two ranks take four equal parts."),
    ("position_ids/zigzag/0-of-2/ids", "rank", {"rank": 2}, "range", "Ranks are 0 and 1."),
    ("position_ids/packed/three/ids", "negative", {"lengths": [3, -1]}, "range", "A text has no fewer than 0 tokens."),
    ("position_ids/temperature/llama4/f8192", "no-convention", {"convention": None}, "missing", "p or p + 1 is divided."),
    ("scaling/linear/vicuna-16k/frequencies", "factor-0", {"factor": 0.0}, "range", "A factor stretches, from 1 on."),
    ("scaling/ntk/d4/frequencies", "one-pair", {"dim": 2}, "range", "One pair is first and last: kept and divided."),
    ("scaling/yarn/gpt-oss/frequencies", "no-truncate", {"truncate": None}, "missing", "gpt-oss: false; elsewhere true."),
    ("scaling/yarn/gpt-oss/frequencies", "betas", {"beta_fast": 1.0, "beta_slow": 32.0}, "range", "The ramp would fall."),
    ("scaling/llama3/llama3.1/frequencies", "factors", {"low_freq_factor": 8.0}, "range", "The low one is above the high one."),
    ("scaling/longrope/quarters/frequencies", "factors", {"factors": cut}, "shape", "One factor for each pair."),
    ("scaling/proportional/gemma4/frequencies", "fraction", {"fraction": 1.5}, "range", "A part of the pairs."),
    ("axes/sections/16-24-24/axis", "empty", {"sizes": [16, 0, 24]}, "range", "Every axis has a pair."),
    ("axes/rotate/pixtral/tokens", "third-axis", {"axis": lambda a: a + 1}, "range", "A picture has two axes."),
    ("generators/planes-half/painted/made", "no-layout", {"layout": None}, "missing", "Both layouts are in use."),
    ("pope/half-key/d6/near", "no-layout", {"layout": None}, "missing", "[cos | sin], or in turn."),
    ("pope/half-key/d6/near", "phases", {"phases": cut}, "shape", "A phase for every feature."),
    ("pope/half-key/d6/near", "heads", {"phases": lambda p: p[[0, 1, 1]]}, "shape", "Three rows of phases for two heads."),
    ("fope/released/d8-l1024-w2/narrow", "no-convention", {"convention": None}, "missing", "sin is 1 or 0 in still pairs."),
    ("fope/released/d8-l1024-w2/narrow", "kept", {"length": 8192}, "shape", "Four frequencies, and coefficients for three."),
    ("fope/eye/k3-w3/step", "width-0", {"width": 0}, "range", "Nothing turns."),
    ("path/scores/h2-d3/painted", "beta", {"beta": cut}, "shape", "A number for every token."),
    ("xpos/half-query/d8/centered", "side", {"side": "value"}, "choice", "query or key."),
    ("layouts/interleaved-to-half/h6-k3-d8-r4-b1e4/scores", "odd-dim", {"dim": 3}, "range", "Features turn in pairs."),
    ("value/half-undone/d4-b1e4/one", "no-undo", {"undo": None}, "missing", "Turned back: relative; not: absolute."),
    ("linear_attention/half-causal/d4-b1e4/far", "no-layout", {"layout": None}, "missing", "Both layouts are in use."),
    ("decoupled/scores/tiny/scores", "widths", {"k_turned": cut}, "shape", "The turned parts are equally wide."),
    ("attention/attend/h2-d4/sinks", "keys", {"k": fewer}, "shape", "As many keys as values."),
    ("attention/attend/h2-d4/sinks", "heads", {"k": lambda k: k[[0, 1, 1]], "v": lambda v: v[[0, 1, 1]]}, "shape", "2 and 3."),
    ("attention/attend/h2-d4/sinks", "mask", {"seen": cut}, "shape", "A mask has a column for every key."),
    ("attention/by-offset/h4-d4/cached", "bias", {"bias_by_offset": cut}, "shape", "3 queries and 5 keys have 7 offsets."),
    ("attention/masks/w2/window", "width-0", {"width": 0}, "range", "A window holds its own token."),
)


def of(system, records):
    """The records of a system's rows, from the cases that they come from."""
    known = {record["id"]: record for record in records}
    for base, name, change, kind, why in ROWS:
        if base.split("/")[0] == system:
            yield _record(known[base], f"{system}/reject/{known[base]['op']}-{name}", change, f"{kind}: {why}")


def _record(record, id, change, comment):
    right = read_case(record)
    tensors = {key: np.array(_changed(value, change.get(key, value))) for key, value in right.tensors.items()}
    params = right.params | {key: value for key, value in change.items() if key not in tensors}
    given = {key: value for key, value in params.items() if value is not None}
    refused = case(
        id, op=right.op, params=given, tensors=tensors, expected=np.zeros(0, int), models=tuple(MODELS), comment=comment
    )
    return refused | {"status": "reject"}


def _changed(value, change):
    return change(value) if callable(change) else change
