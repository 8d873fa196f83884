"""Released rotations can be asked for: what transformers turns passes as what it is, and as nothing else."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="pip install posref[parity]")
pytest.importorskip("transformers", reason="pip install posref[parity]")

from tests.programs import rotations

KINDS = {
    "llama.LlamaRotary": ["half, 16 of features 0 to 15, axes [0]"],
    "deepseek_v32.": ["half, 8 of features 0 to 7, axes [0]", "interleaved_to_half, 8 of features 0 to 7, axes [0]"],
    "ernie4_5_vl_moe.Ernie4_5_VLMoeText": ["interleaved, 16 of features 0 to 15, axes [0, 1, 2]"],
    "gemma4.Gemma4Vision": ["half, 8 of features 0 to 7, axes [0]; half, 8 of features 8 to 15, axes [1]"],
    "deepseek_v4.": ["half, 2 of features 14 to 15, axes [0]"] * 2,
    "nanochat.": ["half, 16 of features 0 to 15, axes [0]"],
    "gpt_oss.": ["half, 16 of features 0 to 15, axes [0]"],
    "dinov3_vit.": ["half, 16 of features 0 to 15, axes [0, 1]"],
}


@pytest.mark.parametrize("word", KINDS)
def test_one_of_each_kind(word):
    verdicts = [verdict for verdict in rotations.report([word]) if verdict.subject.startswith(word)]
    assert [verdict.problem for verdict in verdicts] == [""] * len(KINDS[word])
    assert [verdict.asked for verdict in verdicts] == KINDS[word]


def subject_of(turn):
    (found,) = rotations.of_class("transformers.models.llama.modeling_llama", "LlamaRotaryEmbedding", "llama")
    return found._replace(turn=lambda x, p: turn(found.turn, x, p))


def test_what_is_no_rotation_is_not_read():
    with pytest.raises(ValueError, match="have two angles"):
        rotations.judge(subject_of(lambda turn, x, p: turn(x, p) * np.arange(1.0, 17.0)))


def test_what_fails_far_away_is_told():
    """Unit steps are right and position 2 is not: it is read as RoPE, asked for, and fails."""
    verdict = rotations.judge(subject_of(lambda turn, x, p: turn(x, p.clip(0, 1))))
    assert verdict.problem.startswith("it fails: ")


PARTS = 8


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_every_rotary_class(part):
    verdicts = list(rotations.report(part=slice(part, None, PARTS)))
    problems = {verdict.subject: verdict.problem for verdict in verdicts if verdict.problem}
    assert problems.keys() == rotations.NOT_ASKED.keys() & {verdict.subject for verdict in verdicts}, problems
    assert len(verdicts) >= 29  # of more than 250 in all, of 226 classes


def test_reasons_are_about_classes():
    titles = {f"{home.rpartition('.')[2].removeprefix('modeling_')}.{name}" for home, name in rotations.classes()}
    assert rotations.NOT_ASKED.keys() <= titles
    assert len(titles) > 220
