"""Real libraries warn about themselves. In this folder, and only here, their warnings are not errors."""

import os
import sys
import warnings

import pytest

THIRD_PARTY = (
    r"(torch|transformers|diffusers|onnx|onnxruntime|x_transformers|rotary_embedding_torch|einops|einx|huggingface_hub)(\.|$)"
)

os.environ["HF_HUB_OFFLINE"] = "1"  # models are built from configurations, nothing is downloaded


def tolerate():
    warnings.filterwarnings("ignore", module=THIRD_PARTY)
    warnings.filterwarnings("ignore", message=r"`torch.jit.*` is (deprecated|not supported)", category=DeprecationWarning)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    with warnings.catch_warnings():
        tolerate()
        return (yield)


@pytest.fixture(autouse=True)
def third_party_may_warn():
    with warnings.catch_warnings():
        tolerate()
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(1)
        yield
