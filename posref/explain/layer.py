"""The result of `explain`: an `Explanation` of a model, with a `Layer` for each set of layers that treat position alike."""

from dataclasses import dataclass, field
from typing import Any

FIRST = ("window_after", "compressed", "selected", "further_keys", "mask_unknown")  # in the dictionary of a layer
# fields that this dictionary leaves out where they are None
OPTIONAL = (
    *("indexer", "sign", "rotated", "undo", "call", "input", "max_position_embeddings", "phase_error", "frequencies_long"),
    *(
        "convolution",
        "axes",
        "index",
        "order",
        "learned_first",
        "selected_before",
        "tiled",
        "key_scale",
        "segment",
        "window_side",
        "state",
        "rotated_heads",
        "chunks_before",
        "chunks_after",
    ),
)
OF_OTHERS = ("table", "bias")  # of layers that rotate nothing


@dataclass(frozen=True)
class Layer:
    """One set of layers that do the same with position; a field is None where it does not apply to these layers."""

    part: str = ""  # where the part of these layers stands in the file: "" or text_config, ..
    model_type: str = ""  # of the part
    kind: str = "full_attention"  # in the words of transformers' layer_types
    encoding: str = "none"  # rope, or what the layers have instead
    head_dim: int = 0  # width of a query as it meets a key
    heads: int | None = None  # of the queries
    kv_heads: int | None = None  # of keys and values
    softmax_scale: float | None = None  # multiplies the product of queries and keys; None: not known
    query_scale: float = 1.0  # multiplies queries before that product
    key_scale: float = 1.0  # multiplies keys before that product
    causal: bool | None = None  # None: as the model is used
    window: int | None = None  # keys that a query sees at most on one side, the own included
    window_sides: str | None = None  # past or both
    chunk: int | None = None  # tokens of a chunk whose tokens see each other alone
    chunks_before: int = 0  # earlier chunks that a query also sees; -1: all
    chunks_after: int = 0  # later chunks that a query also sees
    sinks: bool = False  # a trained score per head that no key has
    softcap: float | None = None  # c of c tanh(score / c)
    norm: str | None = None  # of queries and keys: before or after the rotation, or alone
    temperature: dict[str, Any] | None = None  # the rule by which queries grow with their position, and its numbers
    layout: str | None = None  # half, interleaved or interleaved_to_half; None: no key says it, or nothing rotates
    rotary_dim: int = 0  # rotated features of a head
    base: float | None = None  # of the frequencies
    scaling: dict[str, Any] | None = None  # the schedule: its type, and the arguments of `posref.rotary.scaling`
    frequencies: list[float] = field(default_factory=list)  # one per pair; with `axes`, the table that `index` picks from
    magnitude: float = 1.0  # multiplies cosines and sines
    source: str = ""  # the file in which this behaviour was read
    indexer: dict[str, Any] | None = None  # the second rotation of sparse attention: layout, rotated, head_dim
    sign: int | None = None  # -1 where features rotate clockwise
    rotated: str | None = None  # first, first of each half, or last: the turned features of a head
    rotated_heads: int | None = None  # how many heads rotate, counted from the first; None: all
    undo: bool | None = None  # whether values are rotated too, and the output back
    call: str | None = None  # the calls of posref that give the frequencies
    input: str | None = None  # learned: a table is also added to the patches
    max_position_embeddings: int | None = None
    phase_error: dict[str, float] | None = None  # the largest error of an angle there, by the precision it is computed in
    frequencies_long: list[float] | None = None  # of texts beyond the original length
    axes: list[str] | None = None  # per pair: t, h or w, the coordinate that it reads
    index: list[int] | None = None  # per pair: its place in `frequencies`
    order: str | None = None  # the rule of `axes`
    learned_first: bool | None = None  # whether the class token rotates by trained angles
    convolution: dict[str, int] | None = None  # at the input: its width in tokens, stride, groups, and how many of them
    table: int | list[int] | None = None  # rows of the table at the input, or of two
    bias: dict[str, Any] | None = None  # of the scores: the op of posref in `call`, and its settings
    selected_before: bool | None = None  # True: the keys are those that an earlier layer selected
    tiled: bool | None = None  # True: query head h uses key head h % kv_heads
    indices: list[int] = field(default_factory=list)  # numbers of the layers
    window_after: int | None = None  # keys on the other side, where it has a width of its own
    compressed: dict[str, Any] | None = None  # keys made of several tokens: `rate` tokens each, `most` of them
    selected: dict[str, Any] | None = None  # `most` blocks of `block` keys that are left; the `local` last ones always
    further_keys: str | None = None  # which keys a query sees beside those of the mask
    mask_unknown: str | None = None  # why the mask is not described
    segment: str | None = ""  # which patches see each other
    window_side: int | None = None  # patches on a side of a window
    state: dict[str, Any] | None = None  # of layers that keep one: the call of posref.state, sizes, formulas, convolution
    positions: dict[str, Any] | None = None  # how tokens are counted (posref.explain.positions)
    slips: list[dict[str, Any]] = field(default_factory=list)  # mistakes made with layers like these (posref.explain.slips)

    def as_dict(self):
        """The layer as plain data, without the fields that do not apply to it."""
        without = {name for name in OPTIONAL if getattr(self, name) == getattr(Layer, name)}
        without.update(OF_OTHERS if self.encoding == "rope" else ())
        return {name: getattr(self, name) for name in dict.fromkeys((*FIRST, *vars(self))) if name not in without}


@dataclass(frozen=True)
class Explanation:
    """What a model does with position; the docstring of `posref.explain.explain` describes each field."""

    model_type: str
    layers: list[Layer]
    unsupported: list[dict[str, Any]]
    traps: list[str]
    unread: list[str]
    foreign: list[str]

    def as_dict(self):
        """The explanation as plain data, for `explain` and its JSON."""
        return vars(self) | {"layers": [layer.as_dict() for layer in self.layers]}
