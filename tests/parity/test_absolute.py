"""Absolute encodings of transformers that no row of the corpus has (tests/parity/test_wild.py)."""

import importlib

import numpy as np
import pytest

from posref.absolute import learned, sinusoidal, zero_padding

torch = pytest.importorskip("torch", reason="pip install posref[parity]")
pytest.importorskip("transformers", reason="pip install posref[parity]")

from transformers import BertConfig, GPT2Config, OPTConfig  # noqa: E402
from transformers.generation import GenerationMixin  # noqa: E402
from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding  # noqa: E402
from transformers.models.opt.modeling_opt import OPTLearnedPositionalEmbedding  # noqa: E402

F32 = float(np.finfo(np.float32).eps)

# Tokens of 5 lanes: all words, padding on the right, on the left, in between, nothing but padding. 1 is padding.
TOKENS = np.array([[5, 6, 7, 8, 9], [5, 6, 7, 1, 1], [1, 1, 5, 6, 7], [5, 1, 6, 1, 7], [1, 1, 1, 1, 1]])
MASK = TOKENS != 1


def sinusoid_bound(positions, dim):
    """exp(-t ln(10000) / (dim/2 - 1)) in float32 errs by the rounded exponent and 1 ulp of exp, the angle by 1 rounding more;
    then sine and cosine by 1 ulp. The table of the specification, in float64, is exact in comparison."""
    exponent = np.log(1e4) * np.arange(dim // 2) / (dim // 2 - 1)
    angle = positions[:, None] * np.exp(-exponent)
    return np.tile(angle * (exponent + 2) * F32 + F32, (1, 2))


def test_m2m100_counts_from_padding_and_zeroes_its_row():
    dim, padding_idx = 16, 1
    released = M2M100SinusoidalPositionalEmbedding(30, dim, padding_idx)
    assert released.weights.shape == (32, dim)
    ids = learned.position_ids(MASK, convention="m2m100")
    theirs = released(torch.tensor(TOKENS)).numpy()
    assert np.array_equal(theirs, released.weights.numpy()[ids])
    table = sinusoidal.encode(np.arange(32), sinusoidal.frequencies(dim, divisor="dim - 2"), layout="half")
    bound = sinusoid_bound(np.arange(32), dim)
    table[padding_idx] = 0
    assert (np.abs(theirs - learned.encode(ids, table)) <= bound[ids]).all()
    assert not theirs[~MASK].any()
    # Tokens are encoded at 2, 3, ..: the first is not sin(0), cos(0).
    assert np.abs(theirs[0, 0] - table[0]).max() > 0.5
    embedded = released(inputs_embeds=torch.zeros(5, 5, dim)).numpy()
    all_tokens = learned.position_ids(np.ones_like(MASK), convention="m2m100")
    assert np.array_equal(embedded, released.weights.numpy()[all_tokens])


def test_generate_gives_padding_zero():
    tensors = {"input_ids": torch.tensor(TOKENS), "attention_mask": torch.tensor(MASK.astype(int))}
    theirs = GenerationMixin()._prepare_position_ids_for_generation(tensors["input_ids"], tensors)
    assert np.array_equal(theirs.numpy(), learned.position_ids(MASK, convention="generate"))


def test_presets_are_the_published_sizes():
    rows = {name: preset["rows"] for name, preset in learned.PRESETS.items()}
    opt = OPTLearnedPositionalEmbedding(OPTConfig().max_position_embeddings, 1)
    assert rows["bert_base"] == BertConfig().max_position_embeddings
    assert rows["gpt2"] == GPT2Config().max_position_embeddings
    assert rows["opt_125m"] == opt.num_embeddings
    for name, config in (("bert_base", BertConfig()), ("gpt2", GPT2Config()), ("opt_125m", OPTConfig())):
        assert learned.PRESETS[name]["dim"] == config.hidden_size


@pytest.mark.parametrize("model", ["wav2vec2", "hubert", "wavlm", "speecht5"])
@pytest.mark.parametrize("width", [4, 5])
def test_convolutional_position_embedding(model, width):
    """Groups are blocks of the kernel; an even width reaches one row further to the left, so an entry of zeros is the last."""
    name = {"wav2vec2": "Wav2Vec2", "hubert": "Hubert", "wavlm": "WavLM", "speecht5": "SpeechT5"}[model]
    theirs = importlib.import_module(f"transformers.models.{model}.modeling_{model}")
    config = getattr(theirs, f"{name}Config")(hidden_size=6, num_conv_pos_embeddings=width, num_conv_pos_embedding_groups=2)
    torch.manual_seed(1)
    module = getattr(theirs, f"{name}PositionalConvEmbedding")(config).double()
    x = torch.randn(2, 9, 6, dtype=torch.float64)
    groups = module.conv.weight.detach().numpy().transpose(2, 1, 0)  # (width, channels of a group, c_out)
    kernel = np.zeros((width, 6, 6))
    kernel[:, :3, :3], kernel[:, 3:, 3:] = groups[..., :3], groups[..., 3:]
    kernel = kernel if width % 2 else np.concatenate([kernel, 0 * kernel[:1]])
    y = zero_padding.convolve(x.numpy(), kernel, padding="zero") + module.conv.bias.detach().numpy()
    ours = torch.nn.functional.gelu(torch.tensor(y))
    with torch.no_grad():
        np.testing.assert_allclose(module(x).numpy(), ours.numpy(), rtol=0, atol=2.0**-46)
