"""What the sender of a message wrote.

That is its text without quoted replies, forwarded parts and signatures.

Rules of whole lines. (1) The text ends where another message begins: at "-----Original
Message-----", "Forwarded by", "Begin forwarded message:", "On ... wrote:", or a block of header
lines (From: or To:, and within the next four Sent:, To:, cc: or Subject:) with the lines "NAME" and
"05/02/2001 04:11 PM" above it. (2) It ends at a signature: a line that is "--", or begins with six
underscores. (3) Lines that begin with ">" are left out. (4) So are lines of separators alone (====,
****). Signatures that nothing marks stay: they are the sender's own words.
"""

import re
from itertools import islice

ANOTHER = re.compile(
    r"\s*(?:-{2,}\s*(?:original\s+message|original\s+appointment|forwarded\s)|begin\s+forwarded\s+message:"
    r"|on\s.{4,120}\swrote:\s*$)",
    re.IGNORECASE,
)
# "On ..., NAME", which goes on in the next line with "wrote:".
BROKEN = re.compile(r"\s*on\s.{4,120}$", re.IGNORECASE)
WROTE = re.compile(r".{0,120}\bwrote:\s*$", re.IGNORECASE)
FIRST = re.compile(r"\s*(?:from|to):\s*\S", re.IGNORECASE)
NEXT = re.compile(r"\s*(?:sent|to|cc|subject):", re.IGNORECASE)
STAMP = re.compile(
    r".*\d{1,2}/\d{1,2}/\d{2,4},?\s+\d{1,2}:\d\d(?::\d\d)?(?:\s*[ap]m)?\s*$", re.IGNORECASE
)
SIGNATURE = re.compile(r"--\s*$|_{6,}")
RULE = re.compile(r"\s*[=*#~+-]{4,}\s*$")
WITHIN = 4  # lines after the first of a block of headers in which a second one stands
ABOVE = 4  # lines before it in which another program says who sent it when


def own_words(text: str) -> str:
    """The lines that the sender wrote, by the rules above."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    end = next((number for number in range(len(lines)) if ends(lines, number)), len(lines))
    if end < len(lines) and FIRST.match(lines[end]):
        stamp = next(
            (number for number in range(max(0, end - ABOVE), end) if STAMP.match(lines[number])),
            None,
        )
        if stamp is not None:  # a line that has the time alone has the name above it
            end = stamp - (
                stamp > 0 and lines[stamp].strip()[0].isdigit() and bool(lines[stamp - 1].strip())
            )
    return "\n".join(
        line for line in lines[:end] if not line.startswith(">") and not RULE.match(line)
    )


def ends(lines: list[str], number: int) -> bool:
    """Whether the sender's own text ends before this line."""
    line = lines[number]
    if ANOTHER.match(line) or SIGNATURE.match(line):
        return True
    if BROKEN.match(line) and number + 1 < len(lines) and WROTE.match(lines[number + 1]):
        return True
    following = islice(lines, number + 1, number + 1 + WITHIN)
    return bool(FIRST.match(line)) and any(NEXT.match(other) for other in following)
