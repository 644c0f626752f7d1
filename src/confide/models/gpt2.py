"""GPT-2 from transformers: any size from scratch, or `pretrained` (hub name or local folder).

The embedding stays tied to the output layer.
"""

from typing import TYPE_CHECKING, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from confide.errors import InputError
from confide.models import pretrained
from confide.models.attention import attend
from confide.models.batches import repeated
from confide.models.head import Head
from confide.models.language_model import LanguageModel
from confide.specs import GPT2Spec

if TYPE_CHECKING:
    from transformers import GPT2Config, GPT2LMHeadModel
    from transformers.models.gpt2.modeling_gpt2 import GPT2Block

# Per token read: each layer's keys and values (m, width), and which of the m each of n contexts
# continues (n,).
State = list[tuple[list[tuple[Tensor, Tensor]], Tensor]]


def _network(spec: GPT2Spec, vocab_size: int, bos: int) -> "GPT2LMHeadModel":
    from transformers import GPT2LMHeadModel

    if spec.pretrained is None:
        if spec.width % spec.heads:
            raise InputError("is not a multiple of heads", key="model.width", value=spec.width)
        return GPT2LMHeadModel(_config(spec, vocab_size, bos))
    folder = pretrained.located(spec.pretrained)
    config, tensors = pretrained.checked(folder)
    stored = config["vocab_size"]
    if stored > vocab_size:
        raise InputError(
            f"has {stored} tokens, the tokenizer {vocab_size}",
            key=pretrained.KEY,
            value=spec.pretrained,
        )
    sizes = {"layers": config["n_layer"], "width": config["n_embd"], "heads": config["n_head"]}
    sized = spec.model_copy(update=sizes | {"positions": config["n_positions"]})
    network = GPT2LMHeadModel(_config(sized, stored, bos if bos < stored else None))
    pretrained.copy_into(network, tensors)
    pretrained.check_finite(network, spec.pretrained)
    if stored < vocab_size:  # special tokens of ours: rows start at the mean embedding
        network.resize_token_embeddings(vocab_size, mean_resizing=False)
        weight = network.transformer.wte.weight.data
        weight[stored:] = weight[:stored].mean(0)
    return network


def _config(spec: GPT2Spec, vocab_size: int, bos: int | None) -> "GPT2Config":
    """transformers' description of a model of these sizes."""
    from transformers import GPT2Config

    return GPT2Config(
        vocab_size=vocab_size,
        n_positions=spec.positions,
        n_embd=spec.width,
        n_layer=spec.layers,
        n_head=spec.heads,
        resid_pdrop=spec.dropout,
        embd_pdrop=spec.dropout,
        attn_pdrop=spec.dropout,
        bos_token_id=bos,
        eos_token_id=bos,
        activation_function="gelu_pytorch_tanh",  # gelu_new in one pass instead of eight
    )


def _adapt(network: nn.Module, rank: int) -> None:
    """Put LoRA adapters on all matrices of all blocks and freeze everything else.

    Hu et al. 2022.
    """
    try:
        import peft
    except ImportError:
        raise InputError(
            "needs the package peft: pip install 'confide[lora]'", key="model.lora_rank", value=rank
        ) from None
    targets = ["c_attn", "c_proj", "c_fc"]
    config = peft.LoraConfig(
        r=rank, lora_alpha=2 * rank, target_modules=targets, fan_in_fan_out=True
    )
    peft.inject_adapter_in_model(config, network)


class GPT2Model(LanguageModel):
    """See the module docstring."""

    spec: GPT2Spec
    network: "GPT2LMHeadModel"

    def __init__(self, spec: GPT2Spec, vocab_size: int, bos: int):
        super().__init__()
        self.network = _network(spec, vocab_size, bos)
        self.network.set_attn_implementation("sdpa")  # which is causal where it is given no mask
        if spec.lora_rank:
            _adapt(self.network, spec.lora_rank)
        self.head = Head(self.network.lm_head.weight)  # tied to the embedding
        config = self.network.config
        self.spec = GPT2Spec(
            kind="gpt2",
            layers=config.n_layer,
            width=config.n_embd,
            heads=config.n_head,
            positions=config.n_positions,
            dropout=spec.dropout,
            lora_rank=spec.lora_rank,
        )
        self.vocab_size = vocab_size
        self.bos = bos

    @property
    def positions(self) -> float:
        return self.spec.positions

    @property
    def cache_bytes(self) -> int:
        return 2 * self.spec.layers * self.spec.width * self.head.weight.element_size()

    @property
    def blocks(self) -> "list[GPT2Block]":
        """The blocks in order; torch's list does not say its type."""
        return cast("list[GPT2Block]", list(self.network.transformer.h))

    def hidden(self, ids: Tensor, keep: Tensor | None = None, ends: Tensor | None = None) -> Tensor:
        """Hidden states (B, L, d), as every model gives them; keep is ignored.

        Padding on the right needs no mask, as attention is causal. But it must be finite wherever
        the example is, since a weight of 0 on an infinite number is no number. So it repeats the
        last token at that token's place.
        """
        if ids.shape[1] > self.spec.positions:
            raise InputError(
                f"a point has {ids.shape[1]} tokens, the model {self.spec.positions} positions; "
                "choose more, or smaller points",
                key="model.positions",
                value=self.spec.positions,
            )
        # One row per example, which clipping needs.
        positions = torch.arange(ids.shape[1], device=ids.device).expand(ids.shape)
        if ends is not None:
            ids = repeated(ids, ends)
            positions = repeated(positions, ends)
        body = self.network.transformer
        x = body.drop(body.wte(ids) + body.wpe(positions))
        for block in self.blocks:
            read = block(x)
            x = read[0] if isinstance(read, tuple) else read  # as transformers 5.0 has it
        return body.ln_f(x)

    def start(self, count: int) -> State:
        return []

    def advance(self, contexts: State, tokens: Tensor) -> tuple[Tensor, State]:
        body = self.network.transformer
        x = body.wte(tokens) + body.wpe.weight[len(contexts)]
        layers = []  # keys and values of the new tokens
        for number, block in enumerate(self.blocks):
            query, key, value = block.attn.c_attn(block.ln_1(x)).chunk(3, dim=1)
            earlier = [(*read[number], rows) for read, rows in contexts]
            attended = attend(query, [*earlier, (key, value, slice(None))], self.spec.heads)
            x = after_attention(block, x, attended)
            layers.append((key, value))
        return body.ln_f(x), [*contexts, (layers, torch.arange(len(tokens), device=tokens.device))]

    def take(self, contexts: State, index: Tensor) -> State:
        return [(layers, rows[index]) for layers, rows in contexts]


def after_attention(block: "GPT2Block", x: Tensor, attended: Tensor) -> Tensor:
    """What a block without dropout makes of its input x, once its heads have attended."""
    x = x + block.attn.c_proj(attended)
    widened = block.mlp.c_fc(block.ln_2(x))
    return x + block.mlp.c_proj(F.gelu(widened, approximate="tanh"))
