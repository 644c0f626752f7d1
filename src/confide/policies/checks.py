"""What tells a number with check digits, a token or an address from what merely looks like one.

`CHECKS` maps a label of presets.yaml to a function of what its expression matched: how many of its
characters, from the first on, are what was looked for; 0: none. A check looks at these characters
alone, in either case, and takes time linear in them.
"""

import ipaddress
import math
from collections import Counter
from collections.abc import Callable
from datetime import date

Check = Callable[[str], int]

# Characters of an IBAN by country: the IBAN registry of SWIFT, release 99.
IBAN_LENGTHS = {
    15: "NO",
    16: "BE",
    18: "DK FI FO GL NL SD",
    19: "MK SI",
    20: "AT BA EE KZ LT LU MN XK",
    21: "CH HR LI LV",
    22: "BG BH CR DE GB GE IE ME RS VA",
    23: "AE GI IL IQ OM SO TL",
    24: "AD CZ ES MD PK RO SA SE SK TN VG",
    25: "LY PT ST",
    26: "IS TR",
    27: "BI DJ FR GR IT MC MR SM",
    28: "AL AZ BY CY DO GT HU LB NI PL SV",
    29: "BR EG PS QA UA",
    30: "JO KW MU YE",
    31: "MT SC",
    32: "LC",
    33: "RU",
}
LENGTHS = {country: length for length, some in IBAN_LENGTHS.items() for country in some.split()}
# First digits of payment cards, as ranges of numbers of so many digits, and how long cards are.
CARDS = (
    (34, 34, (15,)),  # American Express
    (37, 37, (15,)),
    (300, 305, (14,)),  # Diners Club
    (36, 36, (14,)),
    (38, 39, (14, 16)),
    (4, 4, (13, 16, 19)),  # Visa
    (51, 55, (16,)),  # Mastercard
    (2221, 2720, (16,)),
    (2200, 2204, (16, 17, 18, 19)),  # Mir
    (3528, 3589, (16, 17, 18, 19)),  # JCB
    (6011, 6011, (16, 17, 18, 19)),  # Discover
    (644, 659, (16, 17, 18, 19)),
    (60, 60, (16,)),  # RuPay
    (81, 82, (16,)),
    (62, 62, (16, 17, 18, 19)),  # UnionPay
    (50, 50, (12, 13, 14, 15, 16, 17, 18, 19)),  # Maestro
    (56, 59, (12, 13, 14, 15, 16, 17, 18, 19)),
    (61, 69, (12, 13, 14, 15, 16, 17, 18, 19)),
)
DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)  # twice a digit, as the sum of its digits
# Verhoeff's tables: products of the dihedral group of ten elements, powers of one permutation.
PRODUCTS = (
    "0123456789",
    "1234067895",
    "2340178956",
    "3401289567",
    "4012395678",
    "5987604321",
    "6598710432",
    "7659821043",
    "8765932104",
    "9876543210",
)
PERMUTED = (
    "0123456789",
    "1576283094",
    "5803796142",
    "8916043527",
    "9453126870",
    "4286573901",
    "2793806415",
    "7046913258",
)
DNI_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"
# What a character of a codice fiscale counts at odd places, by its digit or its letter's number.
ODD_PLACES = (
    *(1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24),
    23,
)
MONTH_LETTERS = "ABCDEHLMPRST"
FROM_DIGIT = "LMNPQRSTUV"  # a codice fiscale that somebody has already is told apart by these
SEPARATORS = {ord(sign): None for sign in " .-+"}  # all that expressions with a check let through
MIN_ENTROPY = 3.5  # bits of a character


def whole(valid: Callable[[str], bool]) -> Check:
    """A check of letters and digits alone, in capitals: all of the match, or nothing of it."""

    def check(match: str) -> int:
        return len(match) if valid(compact(match)) else 0

    return check


def compact(match: str) -> str:
    """Letters and digits alone, in capitals; any script's digits as 0 to 9."""
    if match.isascii():
        return match.translate(SEPARATORS).upper()
    return "".join(
        str(int(sign)) if sign.isdecimal() else sign.upper() for sign in match if sign.isalnum()
    )


def iban(match: str) -> int:
    """ISO 13616: as long as its country's are, and 1 modulo 97 (ISO 7064, MOD 97-10)."""
    length = LENGTHS.get(match[:2].upper(), 0)
    places = [place for place, sign in enumerate(match, 1) if sign.isalnum()]
    if not length or len(places) < length:
        return 0
    end = places[length - 1]
    number = compact(match[:end])
    turned = number[4:] + number[:4]
    remainder = int("".join(str(int(sign, 36)) for sign in turned)) % 97
    return end if remainder == 1 else 0


def card(number: str) -> bool:
    """Digits that a payment card may begin with, as many as it has, and Luhn's check digit."""
    known = any(
        low <= int(number[: len(str(low))]) <= high and len(number) in lengths
        for low, high, lengths in CARDS
    )
    return known and luhn(number)


def luhn(number: str) -> bool:
    """ISO/IEC 7812: every second digit from the right counts twice, by the sum of its digits."""
    digits = [int(sign) for sign in number]
    doubled = sum(DOUBLED[digit] for digit in digits[-2::-2])
    return (sum(digits[-1::-2]) + doubled) % 10 == 0


def weighted(number: str, weights: tuple[int, ...]) -> int:
    """The sum of the first digits, each times its weight."""
    return sum(int(sign) * weight for sign, weight in zip(number, weights, strict=False))


def us_ssn(number: str) -> bool:
    """No check digit: parts that are never issued."""
    area = number[:3]
    group = number[3:5]
    serial = number[5:]
    return area not in ("000", "666") and area < "900" and group != "00" and serial != "0000"


def uk_nhs(number: str) -> bool:
    """Modulo 11, weights 10 to 2."""
    return -weighted(number, tuple(range(10, 1, -1))) % 11 == int(number[9])


def de_tax_id(number: str) -> bool:
    """ISO 7064, MOD 11,10; of the first ten digits one stands twice or three times."""
    repeated = sorted(count for count in Counter(number[:10]).values() if count > 1)
    if repeated not in ([2], [3]):
        return False
    product = 10
    for sign in number[:10]:
        product = ((int(sign) + product) % 10 or 10) * 2 % 11
    return (11 - product) % 10 == int(number[10])


def fr_nir(number: str) -> bool:
    """97 less the number modulo 97; the departments of Corsica, 2A and 2B, count as 19 and 18."""
    body = number[:5] + number[5:7].replace("2A", "19").replace("2B", "18") + number[7:13]
    return 97 - int(body) % 97 == int(number[13:])


def nl_bsn(number: str) -> bool:
    """The test of eleven, the last digit counted negatively."""
    return number != "0" * 9 and weighted(number, (9, 8, 7, 6, 5, 4, 3, 2, -1)) % 11 == 0


def es_dni(number: str) -> bool:
    """A letter for the number modulo 23; X, Y and Z of a foreigner's stand for 0, 1 and 2."""
    body = number[:-1].replace("X", "0").replace("Y", "1").replace("Z", "2")
    return DNI_LETTERS[int(body) % 23] == number[-1]


def it_codice_fiscale(number: str) -> bool:
    """A letter for the sum of values modulo 26; a month and a day that there are."""
    odd = sum(ODD_PLACES[value(sign)] for sign in number[:15:2])
    even = sum(value(sign) for sign in number[1:15:2])
    digits = "".join(
        str(FROM_DIGIT.index(sign)) if sign in FROM_DIGIT else sign for sign in number[9:11]
    )
    born = number[8] in MONTH_LETTERS and 1 <= int(digits) % 40 <= 31 and int(digits) <= 71
    return born and chr(ord("A") + (odd + even) % 26) == number[15]


def value(sign: str) -> int:
    """A digit, or the place of a letter in the alphabet."""
    return int(sign) if sign.isdigit() else ord(sign) - ord("A")


def br_cpf(number: str) -> bool:
    """Two digits modulo 11; not the same digit eleven times."""

    def digit(count: int) -> int:
        rest = weighted(number[:count], tuple(range(count + 1, 1, -1))) % 11
        return 0 if rest < 2 else 11 - rest

    return len(set(number)) > 1 and (digit(9), digit(10)) == (int(number[9]), int(number[10]))


def pl_pesel(number: str) -> bool:
    """Modulo 10, weights 1, 3, 7, 9; a date of birth, whose month says the century."""
    right = weighted(number, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)) % 10 == 0
    century, month = divmod(int(number[2:4]), 20)
    year = (1900, 2000, 2100, 2200, 1800)[century] + int(number[:2])
    return right and is_date(year, month, int(number[4:6]))


def se_personnummer(number: str) -> bool:
    """Luhn over the last ten digits; a date of birth, its day raised by 60 in substitutes."""
    last = number[-10:]
    years = [int(number[:4])] if len(number) == 12 else [1900 + int(last[:2]), 2000 + int(last[:2])]
    day = int(last[4:6])
    day -= 60 if day > 60 else 0
    return luhn(last) and any(is_date(year, int(last[2:4]), day) for year in years)


def is_date(year: int, month: int, day: int) -> bool:
    """Whether there is such a day."""
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


def in_aadhaar(number: str) -> bool:
    """Verhoeff's check digit."""
    check = 0
    for place, sign in enumerate(reversed(number)):
        check = int(PRODUCTS[check][int(PERMUTED[place % 8][int(sign)])])
    return check == 0


def entropy(match: str) -> int:
    """Letters and digits, and MIN_ENTROPY bits of a character by their frequencies or more."""
    body = match.rstrip("=")
    mixed = any(map(str.isdigit, body)) and any(map(str.isalpha, body))
    return len(match) if mixed and bits(body) >= MIN_ENTROPY else 0


def bits(text: str) -> float:
    """Shannon's entropy of a character, in bits, by the frequencies of the text itself."""
    return -sum(
        count / len(text) * math.log2(count / len(text)) for count in Counter(text).values()
    )


def ipv6(match: str) -> int:
    """An address that `ipaddress` reads, with three hexadecimal digits or more."""
    try:
        ipaddress.IPv6Address(match)
    except ValueError:
        return 0
    return len(match) if sum(sign != ":" for sign in match) >= 3 else 0


CHECKS: dict[str, Check] = {
    "iban": iban,
    "card": whole(card),
    "us_ssn": whole(us_ssn),
    "uk_nhs": whole(uk_nhs),
    "de_tax_id": whole(de_tax_id),
    "fr_nir": whole(fr_nir),
    "nl_bsn": whole(nl_bsn),
    "es_dni": whole(es_dni),
    "it_codice_fiscale": whole(it_codice_fiscale),
    "br_cpf": whole(br_cpf),
    "pl_pesel": whole(pl_pesel),
    "se_personnummer": whole(se_personnummer),
    "in_aadhaar": whole(in_aadhaar),
    "entropy": entropy,
    "ipv6": ipv6,
}
