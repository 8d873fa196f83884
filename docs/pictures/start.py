"""Pictures of the steps of start.md that no system has, computed with the functions of posref."""

import numpy as np

from posref import attention
from posref.absolute import index
from posref.drawing import Panel, Plot, power
from posref.explain import explain, explanation, picture
from posref.rotary import rope

WORDS = ["the", "dog", "chased", "another", "dog"]
VECTOR = dict(zip(["the", "dog", "chased", "another"], np.random.default_rng(0).normal(size=(4, 8)), strict=True))
MODELS = (  # from long ago to today
    *("gpt-j-6b", "Llama-2-7b-hf", "Mistral-7B-Instruct-v0.3", "Llama-3.1-8B", "DeepSeek-V3"),
    *("gemma-3-4b", "Qwen3-32B", "gpt-oss-20b"),
)


def order():
    """How much each word attends to each word, without positions: a row is a query, its weights sum to 1. Both rows of "dog"
    are the same. Right: the reversed sentence has the same weights, in reverse."""
    panels = []
    for title, words in (("the sentence", WORDS), ("reversed", WORDS[::-1])):
        x = np.array([VECTOR[word] for word in words])
        weights = attention.softmax(attention.scores(x, x, scale=8**-0.5))
        p = Panel(330, 300, f"weights of five words without positions, {title}").text(4, 16, title, "b")
        p.cells(
            68, 44, 50, weights.round(2), lambda i, j, v, words=words: "rot" if words[i] == "dog" else "mut", lambda i, j, v: v
        )
        for i, word in enumerate(words):
            p.text(62, 74 + 50 * i, word, "s", "end", "rot" if word == "dog" else "fg")
            p.text(93 + 50 * i, 38, word, "s m", "middle")
        panels.append(p)
    return panels


def count():
    """The eight features of each word, as dots, and the number of the word, as a line. From position 3 on the number is
    larger than every feature."""
    plot = Plot(660, 240, "features of words and their numbers", (0, 19), (-3, 20), left=34)
    m = np.arange(20)
    plot.axes([0, 5, 10, 15, 19], [0, 10, 20], "position", "features, and the number of the word")
    for i in m:
        for v in VECTOR[WORDS[i % 5]]:
            plot.dot(i, v, "abs", 2.2)
    plot.drawn(m, index.encode(m)[:, 0], "rot", 2.2)
    return [plot.name(11, 14, "number", "rot", "end").name(12, 3.2, "features", "abs")]


def binary():
    """Left: the four digits of the numbers 0 to 15, filled where a digit is 1; a column is a number. Right: how many digits
    change from the number before."""
    m = np.arange(16)
    digits = m[:, None] >> np.arange(4) & 1
    left, changed = Panel(330, 190, "binary digits of 0 to 15"), np.abs(np.diff(digits, axis=0)).sum(axis=1)
    left.text(4, 16, "digits", "b").heat(30, 30, 288, digits.T * 0.85, "abs", 120).rect(30, 30, 288, 120, None, "mut")
    for b in range(4):
        left.text(24, 49 + 30 * b, 2**b, "s m", "end")
    for v in (0, 7, 8, 15):
        left.text(39 + 18 * v, 166, v, "s m", "middle")
    left.text(174, 184, "number", "m s", "middle")
    right = Plot(330, 190, "number of digits that change", (0, 15), (0, 4.3), left=34)
    right.axes([1, 4, 8, 12, 15], [0, 1, 2, 3, 4], "number", "digits that change")
    for v, n in zip(m[1:], changed, strict=True):
        right.stem(v, n, "rot").dot(v, n, "rot", 3.5)
    return [left, right]


def rotated():
    """One query and one key, 0.5 radians per token, at three pairs of positions with offset 3. Both hands rotate with
    the position; the angle between them stays, and with it the score."""
    q, k, w, panels = np.array([[1.0, 2.0]]), np.array([[3.0, -1.0]]), np.array([0.5]), []
    for m in (0, 5, 900):
        p = Panel(210, 240, f"a query at {m} and a key at {m + 3}")
        p.text(4, 16, f"query at {m}, key at {m + 3}", "b").circle(105, 125, 90, None, "line")
        ends = [rope.rotate(x, *rope.tables(np.array([at]), w), layout="interleaved")[0] for x, at in ((q, m), (k, m + 3))]
        for (a, b), colour in zip(ends, ("rot", "rel"), strict=True):
            p.arrow(105, 125, 105 + 27 * a, 125 - 27 * b, colour)
        p.text(105, 234, f"score {ends[0] @ ends[1]:.3f}", "m", "middle")
        panels.append(p)
    panels[0].text(170, 44, "query", "b", fill="rot").text(170, 60, "key", "b", fill="rel")
    return panels


def today():
    """The tokens that each pair of features needs for one full turn, for the layers of eight models that see the whole text: a
    tick is a pair. The dot is the length that the configuration names; pairs right of the dot never come round within it."""
    plot = Plot(660, 460, "tokens for one full turn of each pair, eight models", (5, 6e7), (-0.3, 8), "log", left=12, top=8)
    plot.axes([(10.0**e, power(10, e)) for e in (1, 3, 5, 7)], [], "tokens for one full turn", "")
    for row, name in enumerate(MODELS):
        layers, y = next(each for each in explain(name)["layers"] if not each["window"]), plot.py(7.2 - row)
        plot.text(plot.left, y - 13, name, "s")
        for period in 2 * np.pi / np.array(layers["frequencies"]):
            plot.line(plot.px(period), y - 8, plot.px(period), y + 8, "rot", 1.4)
        plot.circle(plot.px(layers["max_position_embeddings"]), y, 5, "abs", "bg")
    return [plot]


def two_models():
    """What posref explain gpt-oss-20b --diff Llama-3.1-8B --plot both.svg draws."""
    names = ("gpt-oss-20b", "Llama-3.1-8B")
    return picture.panels_of_two(*map(explanation, names), names)


PICTURES = {
    "order": ("", order, 2),
    "count": ("", count, 1),
    "binary": ("", binary, 2),
    "rotated": ("", rotated, 3),
    "today": ("", today, 1),
    "two-models": ("", two_models, 1),
}
