"""Real models, small: each is a cell that builds it and one that runs it.

They are text because they go through the magic as a user's cell does. Sizes are the smallest at
which every part of the model still does its work; weights are random, and nothing is fetched.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MODELS", "Model", "build_cell", "inference_cell", "training_cell"]


@dataclass(frozen=True)
class Model:
    """A model: `build` defines `model` and `inputs`, `loss` is an expression over `output`."""

    name: str
    build: str
    loss: str

    def __str__(self) -> str:
        return self.name


ENCODER = """\
from torch import nn

layer = nn.TransformerEncoderLayer(32, nhead=4, dim_feedforward=64, dropout=0.0, batch_first=True)
model = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
inputs = {"src": torch.randn(2, 8, 32)}
"""

RESIDUAL = """\
from torch import nn

class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
        )

    def forward(self, x):
        return torch.relu(x + self.body(x))

class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.blocks = nn.Sequential(Residual(8), Residual(8))
        self.head = nn.Linear(8, 10)

    def forward(self, images):
        features = self.blocks(self.stem(images))
        return self.head(features.mean(dim=(2, 3)))

model = ConvNet()
inputs = {"images": torch.randn(2, 3, 16, 16)}
"""

LLAMA = """\
from transformers import LlamaConfig, LlamaForCausalLM

model = LlamaForCausalLM(LlamaConfig(
    vocab_size=100, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
    num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=32, use_cache=False,
))
tokens = torch.randint(0, 100, (2, 8))
inputs = {"input_ids": tokens, "labels": tokens}
"""

BERT = """\
from transformers import BertConfig, BertForMaskedLM

model = BertForMaskedLM(BertConfig(
    vocab_size=100, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
    num_attention_heads=4, max_position_embeddings=32,
    hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
))
tokens = torch.randint(0, 100, (2, 8))
inputs = {"input_ids": tokens, "labels": tokens}
"""

GPT2 = """\
from transformers import GPT2Config, GPT2LMHeadModel

model = GPT2LMHeadModel(GPT2Config(
    vocab_size=100, n_embd=32, n_layer=2, n_head=4, n_positions=32, use_cache=False,
    resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=1, eos_token_id=2,
    loss_type="ForCausalLM",
))
tokens = torch.randint(0, 100, (2, 8))
inputs = {"input_ids": tokens, "labels": tokens}
"""

MODELS = [
    Model("encoder", ENCODER, "output.pow(2).mean()"),
    Model("residual", RESIDUAL, "output.pow(2).mean()"),
    Model("llama", LLAMA, "output.loss"),
    Model("bert", BERT, "output.loss"),
    Model("gpt2", GPT2, "output.loss"),
]


def build_cell(model: Model) -> str:
    """Return the cell that makes `model` and `inputs`, the same at each run."""
    return f"import torch\n\n_ = torch.manual_seed(0)\n{model.build}"


def inference_cell(model: Model) -> str:
    """Return the cell that runs the model once, with nothing to differentiate."""
    return (
        "_ = model.eval()\n"
        "with torch.no_grad():\n"
        "    output = model(**inputs)\n"
        f"round({model.loss}.item(), 4)\n"
    )


def training_cell(model: Model) -> str:
    """Return the cell that takes one training step."""
    return (
        "_ = model.train()\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "output = model(**inputs)\n"
        f"loss = {model.loss}\n"
        "loss.backward()\n"
        "optimizer.step()\n"
        "round(loss.item(), 4)\n"
    )
