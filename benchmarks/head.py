"""The output layer's losses and their gradients, its logits in rows that begin at lines of the
cache, beside rows that follow at once upon one another, as torch's own product leaves them.

    python benchmarks/head.py [--rounds 15]

Both give the same numbers (the script fails otherwise, up to rounding).
"""

from collections.abc import Callable

import torch
from machine import machine
from runner import arguments_of, compared, interleaved, shown
from torch import Tensor

from confide.files.io import write_json
from confide.models import head
from confide.runtime.memory import keep_pages

SIZES = {  # vocabulary: tokens and width of the hidden states
    1024: (4096, 200),
    1091: (4096, 200),
    2028: (4096, 200),
    50_257: (256, 768),  # GPT-2's
}


def losses_and_gradients(vocabulary: int, lines: bool) -> Callable[[], Tensor]:
    """A step that gives the gradient of the hidden states; all is as random as their seed."""
    tokens, width = SIZES[vocabulary]
    source = torch.Generator().manual_seed(vocabulary)
    hidden = torch.randn(1, tokens, width, generator=source).requires_grad_()
    weight = torch.nn.Parameter(torch.randn(vocabulary, width, generator=source))
    targets = torch.randint(vocabulary, (1, tokens), generator=source)
    layer = head.Head(weight)
    usual = head.fits_lines

    def step() -> Tensor:
        head.fits_lines = usual if lines else lambda _: False
        losses = layer(hidden, targets).sum()
        head.fits_lines = usual
        return torch.autograd.grad(losses, (hidden, weight))[0]

    return step


def main() -> None:
    arguments = arguments_of(__file__, __doc__, rounds=15).parse_args()
    torch.set_num_threads(1)
    keep_pages()
    cases = {}
    for vocabulary in SIZES:
        steps = {
            "rows at once": losses_and_gradients(vocabulary, lines=False),
            "rows at lines": losses_and_gradients(vocabulary, lines=True),
        }
        torch.testing.assert_close(*(step() for step in steps.values()))
        found = compared(interleaved(steps, arguments.rounds), "rows at once")
        cases[str(vocabulary)] = found
        shown(f"vocabulary {vocabulary}", found)
    write_json(arguments.output, {"hardware": machine("torch"), "cases": cases})


if __name__ == "__main__":
    main()
