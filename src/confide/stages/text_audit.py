"""Measure what texts that a model wrote give away: canaries, members, secrets, coins."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch

from confide.attacks.audits.game import read_audits
from confide.attacks.target import Target, opened
from confide.attacks.texts.audit import Written, audited
from confide.attacks.texts.sides import read
from confide.errors import InputError
from confide.files.io import read_json, read_jsonl, sha256, write_json
from confide.models.generation import ending, generate, uniforms
from confide.runtime.devices import device_of
from confide.runtime.memory import keep_pages
from confide.specs import SamplingSpec, TextAuditJobSpec, TextAuditSpec


def text_audit(
    spec: TextAuditJobSpec,
    *,
    texts: Path,
    model: Path,
    tokenizer: Path,
    points: Path,
    canaries: Path,
    output: Path,
) -> None:
    """Write all tests and bounds; InputError where there are no texts.

    Guarantees: numbers alone; no text, and no secret.
    """
    keep_pages()
    written = [row["text"] for row in read_jsonl(texts) if "text" in row]
    if not written:
        raise InputError("holds no text", file=texts)
    device = device_of(spec.audit.device)
    target = opened(model, tokenizer, device, points=points, canaries=canaries)
    planted = read_json(canaries)
    audits = read_audits(canaries)
    prefixes = [one["prefix"] for one in (planted, *audits.values()) if one.get("digits")]
    hot = spec.audit.temperature
    metrics = audited(
        spec.audit,
        Written(
            texts=written,
            hot=asked_for(target, [""], spec.audit, temperature=hot),
            prompted=asked_for(target, dict.fromkeys(prefixes), spec.audit, temperature=1.0),
        ),
        read(points, spec.audit.limit, np.random.default_rng(spec.audit.seed)),
        planted,
        audits,
    )
    of = {"attack": "text_audit", "run": spec.run, "texts_sha256": sha256(texts)}
    write_json(output, of | {"weights": target.weights} | metrics)


def asked_for(
    target: Target, prompts: Iterable[str], spec: TextAuditSpec, *, temperature: float
) -> list[str]:
    """Texts that begin with each prompt, `spec.probes` of each.

    A prompt ends before its last space, which tokenizers join to what follows.
    """
    wanted = [prompt.rstrip() for prompt in prompts]
    if not wanted:
        return []
    sampling = SamplingSpec(temperature=temperature, top_k=None, max_new_tokens=spec.max_new_tokens)
    source = torch.Generator().manual_seed(spec.seed)
    numbers = uniforms(len(wanted), spec.probes, sampling, source)
    encoded = [target.tokenizer.encode(prompt) for prompt in wanted]
    written = generate(target.model, encoded, numbers, sampling, ending(target.tokenizer))
    return [
        prompt + sample.text
        for prompt, samples in zip(wanted, written, strict=True)
        for sample in samples
    ]
