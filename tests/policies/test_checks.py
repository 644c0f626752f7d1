"""Check digits against numbers that authorities and standards publish, and against each of these
with one digit changed.
"""

import string

import pytest

from confide.policies.checks import CHECKS, MIN_ENTROPY, bits

# Published examples: standards, authorities' own guides, and issuers' numbers for tests.
EXAMPLES = {
    "iban": [  # SWIFT's IBAN registry
        "GB29 NWBK 6016 1331 9268 19",
        "DE89370400440532013000",
        "FR1420041010050500013M02606",
        "NO9386011117947",
        "MT84MALT011000012345MTLCAST001S",
        "gb29nwbk60161331926819",
    ],
    "card": [  # Visa, Mastercard, Amex, Discover, Diners, JCB, Maestro, 2-series
        "4111 1111 1111 1111",
        "4222222222222",
        "5555-5555-5555-4444",
        "378282246310005",
        "6011111111111117",
        "30569309025904",
        "3530111333300000",
        "6759649826438453",
        "2223003122003222",
    ],
    "us_ssn": ["078-05-1120", "219 09 9999", "123456789"],
    "uk_nhs": ["943 476 5919", "9434765919"],
    "de_tax_id": ["86 095 742 719", "47036892816", "65929970489"],
    "fr_nir": ["2 55 08 14 168 025 38", "255081416802538"],
    "nl_bsn": ["111222333", "123456782", "1112.22.333"],
    "es_dni": ["12345678Z", "54362315K", "X-2482300W"],
    "it_codice_fiscale": ["RSSMRA85T10A562S", "RCCMNL83S18D969H", "rssmra85t10a562s"],
    "br_cpf": ["390.533.447-05", "52998224725"],
    "pl_pesel": ["44051401359", "02070803628"],
    "se_personnummer": ["811218-9876", "19811218-9876", "8112189876"],
    "in_aadhaar": ["2341 2341 2346", "234123412346"],
    "entropy": ["wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "4f8b42c22dd3729b519ba6f68d2da7cc"],
    "ipv6": ["2001:db8::8a2e:370:7334", "fe80::1ff:fe23:4567:890a"],
}
CASES = [(label, number) for label, numbers in EXAMPLES.items() for number in numbers]
# Rules of parts instead of a check digit, and measures: a change may leave them right.
WITHOUT_DIGIT = {"us_ssn", "entropy", "ipv6"}
WITH_DIGIT = [(label, number) for label, number in CASES if label not in WITHOUT_DIGIT]


def test_each_check_has_examples():
    assert set(EXAMPLES) == set(CHECKS)


@pytest.mark.parametrize(("label", "number"), CASES)
def test_published_examples_hold(label, number):
    assert CHECKS[label](number) == len(number)


@pytest.mark.parametrize(("label", "number"), WITH_DIGIT)
def test_one_digit_changed_does_not_hold(label, number):
    """Every check digit notices every single wrong digit, but for the rare ones named here."""
    if label == "se_personnummer":
        number = number[-11:].lstrip("9")  # no check digit is of the century
    noticed = []
    for place, sign in enumerate(number):
        if sign.isdigit():
            for other in string.digits.replace(sign, ""):
                changed = number[:place] + other + number[place + 1 :]
                noticed.append(CHECKS[label](changed) == 0)
    # a CPF's and a tax id's remainders 0 and 1, or 10, share a digit; a code's odd places do not
    assert sum(noticed) / len(noticed) >= (0.97 if label in {"br_cpf", "de_tax_id"} else 1.0)


@pytest.mark.parametrize(
    ("label", "number"),
    [
        ("iban", "GB29 NWBK 6016 1331 9268 1"),  # a character short
        ("iban", "ZZ29NWBK60161331926819"),  # no country
        ("card", "9999999999999995"),  # Luhn holds, nobody issues it
        ("card", "411111111111116"),  # 15 digits of Visa
        ("us_ssn", "000-12-3456"),
        ("us_ssn", "666-12-3456"),
        ("us_ssn", "900-12-3456"),
        ("us_ssn", "123-00-4567"),
        ("us_ssn", "123-45-0000"),
        ("nl_bsn", "000000000"),
        ("br_cpf", "111.111.111-11"),
        ("pl_pesel", "44053201357"),  # the 32nd of a month
        ("se_personnummer", "811318-9874"),  # a thirteenth month
        ("entropy", "a" * 30 + "1"),
        ("entropy", "Donaudampfschifffahrtsgesellschaft"),
        ("ipv6", "12:30:45"),
        ("ipv6", "::1"),
    ],
)
def test_near_misses(label, number):
    assert CHECKS[label](number) == 0


def test_what_follows_an_iban_is_no_part_of_it():
    assert CHECKS["iban"]("GB29 NWBK 6016 1331 9268 19 thank you") == 27


def test_digits_of_any_script():
    arabic = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
    assert CHECKS["card"]("4111 1111 1111 1111".translate(arabic)) == 19


def test_entropy_is_shannons():
    assert bits("abab") == 1.0 and bits("abcd" * 5) == 2.0 and bits("a") == 0
    assert MIN_ENTROPY == 3.5
