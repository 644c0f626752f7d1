"""The same secrets in ways that the search does not see through, by the names of the lists in
docs/scan.md.
"""

import base64
import codecs
import json
import zlib
from collections.abc import Callable

from planted_forms import NAME, SURNAME, file_of

UNSEEN: dict[str, list[tuple[str, Callable[[str], bytes]]]] = {
    "short secrets": [("Anna", file_of)],
    "another order of words": [(NAME, lambda text: file_of("Karenina, Anna"))],
    "parts that stand apart": [(NAME, lambda text: file_of("Anna came in. So did Mrs Karenina."))],
    "other spellings": [
        (SURNAME, lambda text: file_of("Zhukovsky")),
        (NAME, lambda text: file_of("Anna Karenine")),
    ],
    "look-alikes": [(NAME, lambda text: file_of(text.replace("a", "а")))],
    "other codes": [
        (NAME, lambda text: base64.b32encode(text.encode())),
        (NAME, lambda text: file_of(codecs.encode(text, "rot13"))),
        (NAME, lambda text: b"in the middle: " + zlib.compress(file_of(text))),
    ],
    "other encodings": [(SURNAME, lambda text: text.encode("koi8-r"))],
    "numbers of tokens": [
        (NAME, lambda text: json.dumps([ord(letter) for letter in text]).encode())
    ],
}
NOT_PLANTED = ["secrets that nobody marked", "public strings", "pictures", "what a model knows"]
