"""What a trained model is used by from Python; everything else is the workflow's or a command's.

    import confide

    model, tokenizer = confide.load("released")
    texts = confide.generate(model, tokenizer, ["Dear customer,"], count=3)
    certificate = confide.verify("released/certificate.json")
    epsilon = confide.price(noise_multiplier=1.1, sample_rate=0.01, steps=1000, delta=1e-5)
    frame = confide.load_results("results")

What is wrong with an argument or a file is a `confide.errors.InputError`, a line to be shown.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confide.commands import epsilon as pricing
from confide.commands import generate as writing
from confide.commands.verify import verified
from confide.errors import InputError
from confide.models import LanguageModel
from confide.report.tables import tidy
from confide.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    import pandas


def load(
    folder: str | Path, tokenizer: str | Path | None = None, *, device: str = "auto"
) -> tuple[LanguageModel, Tokenizer]:
    """A trained model, in evaluation mode, and its tokenizer.

    `folder` is one of `models/`, or what `confide release` wrote. `tokenizer`: the tokenizer.json
    of the model's dataset; a released model has it beside it. A model with adapters needs the
    pretrained model that they belong to where its configuration names it.
    """
    return writing.opened(Path(folder), None if tokenizer is None else Path(tokenizer), device)


def generate(
    model: LanguageModel,
    tokenizer: Tokenizer,
    prompts: Sequence[str] = ("",),
    *,
    count: int = 1,
    temperature: float = 1.0,
    top_p: float = 1.0,
    top_k: int = 0,
    max_new_tokens: int = 64,
    seed: int = 0,
) -> list[list[str]]:
    """`count` continuations of each prompt, without the prompt itself.

    `top_k`: 0 for all tokens. A text depends on its prompt, on its place among the texts and on the
    seed, not on what the other prompts say.
    """
    spec = writing.sampling(
        temperature=temperature, top_p=top_p, top_k=top_k, max_new_tokens=max_new_tokens
    )
    wanted = writing.repeated(prompts, count)
    rows = writing.texts(model, tokenizer, wanted, spec=spec, seed=seed)
    texts = [str(row["text"]) for row in rows]
    return [texts[start : start + count] for start in range(0, len(texts), count)]


def price(
    *,
    noise_multiplier: float,
    sample_rate: float,
    steps: int,
    delta: float,
    relation: str = "replace_one",
) -> float:
    """Epsilon of Poisson-subsampled Gaussian updates, by privacy loss distributions.

    A second accountant, by Renyi divergences, must agree. `relation`: replace_one, add_or_remove or
    zero_out. `confide epsilon` says more of the same updates.
    """
    return pricing.priced(
        noise_multiplier=noise_multiplier,
        sample_rate=sample_rate,
        steps=steps,
        delta=delta,
        relation=relation,
    )


def verify(certificate: str | Path, *, key: str | Path | None = None) -> dict[str, Any]:
    """The certificate, once it is shown to hold for the files around it; else InputError.

    `key`: the public key of who must have signed the attestation beside it.
    """
    return verified(Path(certificate), key=None if key is None else Path(key))


def load_results(folder: str | Path = "results") -> "pandas.DataFrame":
    """The numbers of all studies in a folder of results, a line each: a tidy data frame.

    Columns: study, run, name (row of the sample sheet), method, variant, dataset, model, gamma,
    seed, dedup, redact, metric (a column of table.csv) and value. Infinity is inf; what was not
    measured or not claimed has no line. A run that several studies show is in each. InputError
    where the folder has no table, or pandas is not installed.
    """
    try:
        import pandas
    except ImportError:
        raise InputError("needs pandas: pip install pandas", key="load_results") from None
    return pandas.DataFrame(tidy.lines(Path(folder)), columns=tidy.FIELDS)
