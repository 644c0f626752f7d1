"""`confide synthesize CERTIFICATE --count N --output FILE`: texts of a certified model as a corpus.

Sampling reads the model and public prompts alone, so that what is certified of the model is
certified of all its texts together, whatever their number: a certificate beside them says so.
What is begun and stopped goes on where it was.
"""

import os
from pathlib import Path

from confide.certify.drawing import Progress, begun_beside, corpus, counted, draw, key_of
from confide.certify.texts import CONFIG, certificate_of_texts, check_declared, check_files
from confide.commands.generate import opened, sampling
from confide.commands.verify import certificate_in, checked
from confide.errors import InputError
from confide.files.io import check_new, parsed_line, read_lines, sha256, write_json, write_jsonl
from confide.files.locks import exclusive
from confide.output.escaping import say, warn
from confide.specs import MixSpec, SynthesisSpec, parse
from confide.specs.files import CERTIFICATE


def synthesize(
    certificate: Path,
    *,
    count: int,
    output: Path,
    mix: Path | None = None,
    public_mix: bool = False,
    temperature: float = 1.0,
    top_p: float = 1.0,
    top_k: int = 0,
    max_new_tokens: int = 128,
    duplicates: bool = False,
    unfinished: bool = False,
    fill: bool = False,
    seed: int = 0,
    device: str = "auto",
) -> None:
    """Write `count` texts as JSON lines, and beside them FILE.certificate.json.

    certificate: of the model, or the folder of `confide release` that holds it.
    count: how many texts there shall be.
    output: the new file, a corpus as `confide init` takes it; its first line says where it is from.
    mix: JSON lines, one for each kind of text, with any of code, prompt, domain, share, min_tokens
    and max_tokens.
    public_mix: declares that the mix was made from no protected text.
    temperature: what logits are divided by; the lower, the likelier the words.
    top_p: draw from the fewest tokens that have this probability together.
    top_k: draw from so many of the likeliest tokens; 0 for all.
    max_new_tokens: longest text.
    duplicates: keep texts that the model has written before.
    unfinished: keep texts that the model did not end.
    fill: let the model write masks, and put made-up values in their place.
    seed: the same one gives the same texts.
    device: cpu, cuda, or auto for the GPU where there is one.
    """
    begun = begun_beside(output)
    if not begun.exists():
        check_new(output)
    place = certificate_in(certificate)
    certified, files, _ = checked(place, [*place.resolve().parents])
    spec = sampling(
        temperature=temperature, top_p=top_p, top_k=top_k, max_new_tokens=max_new_tokens
    )
    asked = parse(
        SynthesisSpec,
        {
            "count": count,
            "seed": seed,
            "sampling": spec,
            "mix": [] if mix is None else parts_of(mix),
            "public_mix": public_mix,
            "duplicates": duplicates,
            "unfinished": unfinished,
            "fill": fill,
        },
    )
    check_declared(asked, mix)
    for name in ("model", "tokenizer"):
        if not files.get(name):
            raise InputError("is not here", file=place, key=f"files.{name}")
    weights = files["model"][0]
    vocabulary = files["tokenizer"][0]
    # weights and vocabulary were verified where they lie; this file perhaps in another place
    check_files(certified, place, config=weights.with_name(CONFIG))
    with exclusive(begun):
        if not begun.stat().st_size:
            check_new(output)
        model, tokenizer = opened(weights.parent, vocabulary, device)
        progress = Progress(begun, key_of(certified, asked))
        try:
            draw(model, tokenizer, asked, progress)
        except KeyboardInterrupt:
            warn(
                f"stopped at {progress.there:,} of {count:,} texts: "
                "the same command goes on from here"
            )
            raise
        write_jsonl(output, corpus(certified, asked, progress))
        texts = {"path": output.name, "sha256": sha256(output), "count": count}
        said = certificate_of_texts(
            certified,
            asked=asked,
            drawn=counted(asked, progress),
            texts=texts,
            certificate=called(place, output),
        )
        write_json(output.with_name(f"{output.name}.{CERTIFICATE}"), said)
        begun.unlink()
    say(f"{output}: {said['says']}")
    if said["release_note"]:
        say(f"  {said['release_note']}")


def called(certificate: Path, output: Path) -> str:
    """What texts call their model's certificate: where it lies as seen from them if both lie below
    this folder, and else its name alone, since folders above are nobody's business.
    """
    here = Path.cwd().resolve()
    places = certificate.resolve(), output.resolve()
    if not all(place.is_relative_to(here) for place in places):
        return certificate.name
    return os.path.relpath(places[0], places[1].parent)


def parts_of(file: Path) -> list[MixSpec]:
    """The parts of a mix; InputError names the line that does not fit."""
    parts = []
    for number, (at, line) in enumerate(read_lines(file), 1):
        if line.strip():
            parts.append(parse(MixSpec, parsed_line(line, file, at), file=f"{file}:{number}"))
    if not parts:
        raise InputError("holds no part", file=file)
    return parts
