"""params.yaml of a user's own corpus, as `confide init` writes it."""

import json
from collections.abc import Sequence
from string import Template

from confide.advisor.choices import DOUBTFUL, Choice
from confide.specs import CorpusSpec, MailSpec

SIMULATED = (
    "{ reader: customersim, variant: public, sizes: { train: 1000, valid: 100, test: 100 }, "
    "seed: 2222 }"
)
# of a pass over texts, padding included: half a gigabyte for the model here, and as fast as any
PASS_TOKENS = 8_192
PAGE = Template("""\
# One corpus of your own, and what to train on it. Everything here may be changed; `$program -n` \
says what a change reruns.

corpora:
  mine: # which documents are for validation and test is drawn, $drawn
$corpus
  public: $public # needs no protection: for the vocabulary, and to start from

tokenizers: # never of protected text: whole words of it would be in the model
  words: { kind: bpe, corpus: public, vocab_size: $vocabulary }

# What is redacted (`policy` of a dataset), and which points training reads with noise only \
(`conservative`; `everything`: all,
# so that no claim depends on that policy). `confide recommend` says what of your secrets they \
miss, and what follows.
policies:
  $policy:
$patterns
$conservative_patterns  everything: { kind: everything }
  # What has a shape of your own, or none, only you know. These can stand beside the \
one above in a union,
  # { kind: union, policies: [{ kind: preset, names: [...] }, ...] }:
  # { kind: regex, patterns: { order: '\\bORD-\\d{6}\\b' } }
  # { kind: words, path: customers.txt, label: name }, independent: true if no line of it is from \
this corpus
  # { kind: ner, model: en_core_web_sm, labels: [PERSON, GPE] } with \
pipelines: { en_core_web_sm: { package: en_core_web_sm } }

canaries: # secrets of nobody, planted to be looked for, and sentences about which coins decide, \
for audits of epsilon; a model may write them
  planted:
    template: "My ID is: {6}"
    count: 10
    copies: $copies
    controls: 10
$audits
datasets: # point: what one update reads and noise hides, a turn (line), sentence, dialogue \
(whole text) or window of words
  mine: &text { corpus: mine, point: $point, canaries: planted, policy: $policy, conservative: \
$conservative, tokenizer: words$labels }
  # made-up values in place of masks, English ones, which no noise needs; `fill: public` takes \
those of the public text, in its language
  mine_filled: { <<: *text, fill: true, review: null } # a review is of one dataset
  public: { corpus: public, public: true, point: $point, policy: $policy, conservative: \
$conservative, tokenizer: words }

models:
  lstm: { kind: lstm, embedding: $width, hidden: $width }

recipes: # physical_tokens bounds memory (a longer text is read alone), and changes nothing else
  warm: { lr: 0.01, batch_size: 32, epochs: 2, physical_tokens: $pass_tokens }
  exact: { lr: 0.01, batch_size: $batch, epochs: $epochs, physical_tokens: $pass_tokens }
  noisy:
    lr: 0.004
    noisy_lr: 0.02
    batch_size: $batch
    noisy_batch_size: $noisy_batch
    epochs: $epochs
    physical_tokens: $pass_tokens

privacy: # delta: less than 1 / $points, the number of your points; `unit: author` hides all of a \
person (no canaries then)
  # another epsilon needs other coins of audits, or the gate cannot tell: `confide init --epsilon`
  budget: { epsilon: $epsilon, delta: $delta, max_grad_norm: 1.0 }

attacks:
$attacks
runs: # noise_seed null: from the system's entropy, as a model that is released needs it
  start: { dataset: public, model: lstm, method: nonprivate, recipe: warm }
  nonprivate: &mine # to compare with, never to release
    { dataset: mine, model: lstm, init: start, dedup: false, method: nonprivate, recipe: exact, \
attacks: [$listed] }
  redacted: { <<: *mine, method: redacted }
  filled: { <<: *mine, dataset: mine_filled, method: redacted }
  crt: { <<: *mine, dedup: true, method: crt, recipe: noisy, privacy: budget, noise_seed: null }

studies:
  own:
    title: Your corpus
    runs: [nonprivate, redacted, filled, crt]
    figures: [$figures]

select: [own]
""")


def as_yaml(
    choice: Choice,
    corpus: CorpusSpec,
    public: CorpusSpec | None = None,
    *,
    program: str = "snakemake",
) -> str:
    """The whole file; paths are as seen from the folder that it lies in.

    program: what runs it.
    """
    attacks = {"exposure": "{ kind: exposure }"}
    if choice.game:
        attacks["game"] = f"{{ kind: game, delta: {choice.delta:g} }}"
    attacks["updates"] = f"{{ kind: gradients, delta: {choice.delta:g} }}"
    if choice.attacked:
        attacks["members"] = f"{{ kind: membership, label: {quoted(choice.attacked)} }}"
    numbers = choice._asdict() | {"epsilon": f"{choice.epsilon:g}", "delta": f"{choice.delta:.1e}"}
    doubtful = ""
    if choice.conservative == "doubtful":
        doubtful = f"  doubtful:\n{preset(DOUBTFUL, conservative=True)}\n"
    labels = ", ".join(map(quoted, choice.labels))
    numbers["labels"] = f", labels: [{labels}]" if labels else ""
    return PAGE.substitute(
        numbers,
        program=program,
        pass_tokens=PASS_TOKENS,
        drawn=drawn(corpus),
        corpus="\n".join(f"    {line}" for line in reader(corpus)),
        public=SIMULATED if public is None else f"{{ {', '.join(reader(public))} }}",
        patterns=preset(choice.presets),
        conservative_patterns=doubtful,
        audits=audits(choice),
        attacks="".join(f"  {name}: {spec}\n" for name, spec in attacks.items()),
        listed=", ".join(attacks),
        figures="tradeoff, utility, exposure, frontier" + ", membership" * bool(choice.attacked),
    )


def drawn(spec: CorpusSpec) -> str:
    """How a reader parts documents for validation and test from the others."""
    if isinstance(spec, MailSpec):
        return "for each sender"
    return 'author by author, unless lines say so ("split")'


def reader(spec: CorpusSpec) -> list[str]:
    """The keys of a corpus that are not as usual, in YAML."""
    fields = spec.model_dump(mode="json", exclude_defaults=True)
    name = fields.pop("reader")
    return [f"reader: {name}", *(f"{key}: {quoted(value)}" for key, value in fields.items())]


def preset(names: Sequence[str], *, conservative: bool = False) -> str:
    """Presets as one policy, in YAML."""
    lines = ["kind: preset", f"names: [{', '.join(names)}]"]
    lines += ["conservative: true"] if conservative else []
    return "\n".join(f"    {line}" for line in lines)


def audits(choice: Choice) -> str:
    """Sentences of the two audits, if there are any."""
    if not choice.game:
        return ""
    text = f'    game: {{ template: "The access code is {{6}}", count: {choice.game} }}\n'
    if choice.inclusion:
        template = '"The order code was {6}"'
        text += f"    inclusion: {{ template: {template}, count: {choice.inclusion} }}\n"
    return text


def quoted(text: str) -> str:
    """A string in YAML's double quotes, which JSON's are."""
    return json.dumps(text, ensure_ascii=False)
