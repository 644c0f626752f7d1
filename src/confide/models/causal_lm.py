"""Pretrained causal language models of transformers, fine-tuned whole or with low-rank adapters.

The family's own code computes the hidden states; the output layer, losses and contexts are ours,
as for every other model. A vocabulary of ours has the model's own tokens first and new ones behind
them (<MASK>, padding, control strings). Their rows are trained in any case: with adapters, whose
embeddings are frozen otherwise, they are a small embedding of their own.
"""

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from confide.errors import InputError
from confide.models import foreign
from confide.models.batches import repeated
from confide.models.head import Head
from confide.models.language_model import LanguageModel
from confide.models.pretrained import KEY
from confide.specs import AdapterSpec, CausalLMSpec

if TYPE_CHECKING:
    from transformers import Cache, PreTrainedModel

# Keys and values of each layer, (n, heads, t, d / heads), after t tokens.
State = Sequence[tuple[Tensor, Tensor]]
FROZEN = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class NewRows(nn.Module):
    """A frozen embedding whose last rows, those of new tokens, are trained."""

    def __init__(self, known: nn.Embedding, rows: Tensor):
        """`rows` (k, d) are what the new tokens' embeddings begin with."""
        super().__init__()
        self.known = known
        self.new = nn.Embedding(len(rows), rows.shape[1], _weight=rows)
        scale = getattr(known, "embed_scale", None)  # of Gemma's, a constant
        self.scale = torch.ones(()) if scale is None else scale

    def forward(self, ids: Tensor) -> Tensor:
        """Embeddings (B, L, d) of ids (B, L)."""
        first = self.known.num_embeddings
        known = self.known(ids.clamp(max=first - 1))
        new = self.new((ids - first).clamp(min=0)) * self.scale
        return torch.where((ids >= first).unsqueeze(-1), new.to(known.dtype), known)


class CausalLM(LanguageModel):
    """See the module docstring."""

    spec: CausalLMSpec

    def __init__(self, spec: CausalLMSpec, vocab_size: int, bos: int):
        super().__init__()
        self.vocab_size = vocab_size
        self.bos = bos
        self.source = foreign.opened(spec)
        self.spec = spec.model_copy(update={"sha256": self.source.sha256})
        self.network = self.source.network(spec)
        self.flattens = self.network.config.model_type == "opt"  # its feed-forward layers
        self.layers = self.network.config.num_hidden_layers
        known = self.source.tokens
        if known > vocab_size:
            raise InputError(
                f"has {known} tokens, the tokenizer {vocab_size}",
                key=KEY,
                value=spec.pretrained,
            )
        more = None
        self.targets: list[str] = []  # last names of the layers with adapters
        if spec.adapter is None:
            _resize(self.network, known, vocab_size)
        else:
            self.targets = _adapt(self.network, spec.adapter, FROZEN[spec.frozen_dtype])
            more = _extend(self.network, known, vocab_size - known)
        self.head = Head(output_of(self.network).weight, output_of(self.network).bias, more)
        if not self.head.weight.is_meta:
            self._check_causal()

    @property
    def body(self) -> Any:
        """The network without its output layer."""
        return getattr(self.network, self.network.base_model_prefix)

    @property
    def positions(self) -> float:
        return self.network.config.max_position_embeddings

    @property
    def cache_bytes(self) -> int:
        config = self.network.config
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        width = (
            getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        )
        return 2 * self.layers * heads * width * self.head.weight.element_size()

    def stored(self) -> dict[str, Tensor]:
        """With adapters these and the new tokens' rows: all else is in the pretrained model."""
        parameters: dict[str, Tensor] = dict(self.named_parameters())
        if self.spec.adapter is None:
            return parameters
        return {name: value for name, value in parameters.items() if is_added(name)}

    def hidden(self, ids: Tensor, keep: Tensor | None = None, ends: Tensor | None = None) -> Tensor:
        """Hidden states (B, L, d), as every model gives them; keep is ignored.

        Attention is causal, so that padding on the right needs no mask. It repeats the last token,
        so that it is finite wherever the example is.
        """
        self._fits(ids.shape[1])
        # One row per example, which clipping needs.
        positions = torch.arange(ids.shape[1], device=ids.device).expand(ids.shape)
        if ends is not None:
            ids = repeated(ids, ends)
            if self.source.learned_positions:
                positions = repeated(positions, ends)
        return self.body(input_ids=ids, position_ids=positions, use_cache=False).last_hidden_state

    def start(self, count: int) -> State:
        return []

    def advance(self, contexts: State, tokens: Tensor) -> tuple[Tensor, State]:
        read = contexts[0][0].shape[2] if contexts else 0
        self._fits(read + 1)
        positions = torch.full_like(tokens, read).unsqueeze(1)
        hidden, state = self.read(tokens.unsqueeze(1), positions, None, contexts)
        return hidden[:, 0], state

    def take(self, contexts: State, index: Tensor) -> State:
        return [(keys[index], values[index]) for keys, values in contexts]

    def read(
        self, tokens: Tensor, positions: Tensor, mask: Tensor | None = None, contexts: State = ()
    ) -> tuple[Tensor, State]:
        """Read tokens (n, L) at positions (n, L): hidden states (n, L, d) and the contexts after.

        mask (n, t + L) is 0 where a context, of t tokens so far, has padding.
        """
        from transformers import DynamicCache
        from transformers.cache_utils import DynamicLayer

        cache = DynamicCache()
        for keys, values in contexts:
            layer = DynamicLayer()
            layer.lazy_initialization(keys, values)
            layer.keys = keys  # `update` would copy them first
            layer.values = values
            cache.layers.append(layer)
        hidden = self.read_into(cache, tokens, positions, mask)
        layers: list[Any] = cache.layers
        return hidden, [(layer.keys, layer.values) for layer in layers]

    def read_into(
        self, cache: "Cache", tokens: Tensor, positions: Tensor, mask: Tensor | None
    ) -> Tensor:
        """Read tokens (n, L) into a cache of transformers: hidden states (n, L, d)."""
        return self.body(
            input_ids=tokens,
            position_ids=positions,
            attention_mask=mask,
            past_key_values=cache,
            use_cache=True,
        ).last_hidden_state

    def merged(self) -> "CausalLM":
        """This model with its adapters added to the weights, all in float32.

        Attacks, evaluation and whoever gets the model see this one.
        """
        if self.spec.adapter is None:
            return self
        from peft.tuners.lora import LoraLayer

        network = self.network
        network.float()
        with torch.no_grad():
            for name, module in list(network.named_modules()):
                if isinstance(module, LoraLayer):
                    layer: Any = module
                    plain = layer.get_base_layer()
                    plain.weight += layer.get_delta_weight("default")
                    network.set_submodule(name, plain)
            if self.head.more is not None:
                extended = cast(NewRows, network.get_input_embeddings())
                network.set_input_embeddings(extended.known)
                known = self.source.tokens
                _resize(network, known, self.vocab_size)
                inputs_of(network).weight[known:] = extended.new.weight
                output_of(network).weight[known:] = self.head.more.weight
        self.head = Head(output_of(network).weight, output_of(network).bias)
        return self

    def as_used(self) -> "CausalLM":
        return self if self.spec.adapter is None else copy.deepcopy(self).merged()

    @torch.no_grad()
    def renew(self) -> None:
        """Adapters and the rows of new tokens as in a model that was just built.

        Adapters come from torch's global generator: seed it first.
        """
        from peft.tuners.lora import LoraLayer

        for module in self.network.modules():
            if isinstance(module, LoraLayer):
                module.reset_lora_parameters("default", True)
        if self.head.more is not None:
            extended = cast(NewRows, self.network.get_input_embeddings())
            extended.new.weight.copy_(extended.known.weight.float().mean(0))
            if self.head.more.weight is not extended.new.weight:
                self.head.more.weight.copy_(self.head.weight.float().mean(0))

    @torch.no_grad()
    def _check_causal(self) -> None:
        """InputError unless a position sees what stands before it in its own text, and no more.

        A later token that changed it, or another text of the batch, would pass padding and company
        on to an example's gradient.
        """
        training = self.network.training
        self.network.eval()
        ids = torch.arange(12).reshape(2, 6) % self.vocab_size
        together = self.hidden(ids)[0, :4]
        apart = self.hidden(ids[:1, :4])[0]
        self.network.train(training)
        if not torch.allclose(together, apart, rtol=1e-2, atol=1e-2 * float(apart.abs().max())):
            raise InputError(
                "looks at later tokens, or at other texts of a batch",
                key=KEY,
                value=self.spec.pretrained,
            )

    def _fits(self, length: int) -> None:
        if length > self.positions:
            raise InputError(
                f"a point has {length} tokens, the model {self.positions} positions; "
                "choose smaller points",
                key=KEY,
                value=self.spec.pretrained,
            )


def inputs_of(network: "PreTrainedModel") -> nn.Embedding:
    """The embedding of a network; transformers does not say its type."""
    return cast(nn.Embedding, network.get_input_embeddings())


def output_of(network: "PreTrainedModel") -> nn.Linear:
    """The output layer of a network."""
    return cast(nn.Linear, network.get_output_embeddings())


def is_added(name: str) -> bool:
    """Whether a parameter of that name is an adapter's or a new token's."""
    return ".lora_" in name or ".new." in name or name.startswith("head.more.")


def _resize(network: "PreTrainedModel", known: int, vocab_size: int) -> None:
    """As many rows as there are tokens; those of new tokens begin at the mean of the others."""
    network.resize_token_embeddings(vocab_size, mean_resizing=False)
    with torch.no_grad():
        for weight in (inputs_of(network).weight, output_of(network).weight):
            weight[known:] = weight[:known].mean(0)


def _extend(network: "PreTrainedModel", known: int, new: int) -> nn.Linear | None:
    """Rows for new tokens behind a frozen embedding; the layer of their logits."""
    network.resize_token_embeddings(known, mean_resizing=False)
    network.requires_grad_(False)
    for name, parameter in network.named_parameters():
        parameter.requires_grad_(is_added(name))
    if not new:
        return None
    inputs = inputs_of(network)
    outputs = output_of(network)
    tied = inputs.weight is outputs.weight
    extended = NewRows(inputs, inputs.weight.detach().float().mean(0).repeat(new, 1))
    network.set_input_embeddings(extended)
    more = nn.Linear(outputs.in_features, new, bias=False, device="meta")
    if tied:
        more.weight = extended.new.weight
    else:
        more.weight = nn.Parameter(outputs.weight.detach().float().mean(0).repeat(new, 1))
    return more


def _adapt(network: "PreTrainedModel", spec: AdapterSpec, dtype: torch.dtype) -> list[str]:
    """Put adapters, in float32, on the linear layers of all blocks; frozen weights get a type.

    Buffers keep theirs: positions turn by frequencies in float32. Gives the last names of the
    layers that have an adapter.
    """
    try:
        import peft
    except ImportError:
        raise InputError(
            "needs the package peft: pip install 'confide[lora]'",
            key="model.adapter.rank",
            value=spec.rank,
        ) from None
    targets = linear_layers(network)
    chosen = targets if spec.targets is None else spec.targets
    unknown = [name for name in chosen if name not in targets]
    if unknown:
        raise InputError(
            f"is no linear layer of this model; it has {', '.join(targets)}",
            key="model.adapter.targets",
            value=unknown[0],
        )
    config = peft.LoraConfig(
        r=spec.rank,
        lora_alpha=cast(int, spec.alpha or 2 * spec.rank),
        lora_dropout=spec.dropout,
        target_modules=list(chosen),
        fan_in_fan_out=network.config.model_type == "gpt2",
    )
    peft.inject_adapter_in_model(config, network)
    for name, parameter in network.named_parameters():
        if not is_added(name):
            parameter.data = parameter.data.to(dtype)
    return list(chosen)


def linear_layers(network: "PreTrainedModel") -> list[str]:
    """Last names of the linear layers in a network's blocks."""
    from transformers.pytorch_utils import Conv1D

    output = network.get_output_embeddings()
    names = (
        name.rpartition(".")[2]
        for name, layer in network.named_modules()
        if isinstance(layer, nn.Linear | Conv1D) and layer is not output
    )
    return list(dict.fromkeys(names))
