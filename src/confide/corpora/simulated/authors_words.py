"""Words of the generator of messages by authors: colleagues in an office (private) and strangers in
a forum (public).

Both variants have the same slots. In a slot every author has favourites; topics have nouns, verbs
and adjectives of their own. The variants share common words of English and nothing else: no topic,
no name and no sentence of one is in the other.
"""

from typing import NamedTuple

from confide.corpora.simulated.authors_public import (
    PUBLIC_CHOICES,
    PUBLIC_PEOPLE,
    PUBLIC_SENTENCES,
    PUBLIC_TAGS,
    PUBLIC_TOPICS,
)


class Topic(NamedTuple):
    """What is talked about, in three slots."""

    noun: tuple[str, ...]
    verb: tuple[str, ...]
    adjective: tuple[str, ...]


class Words(NamedTuple):
    """All that one variant is made of. Slots in braces; {noun}, {verb} and {adjective} are those of
    the message's topic.
    """

    topics: tuple[Topic, ...]
    choices: dict[str, tuple[str, ...]]
    people: tuple[str, ...]
    sentences: tuple[str, ...]
    tags: tuple[str, ...] = ()  # what messages are tagged with; empty: they are not


def topic(noun: str, verb: str, adjective: str) -> Topic:
    return Topic(tuple(noun.split()), tuple(verb.split()), tuple(adjective.split()))


PRIVATE_TOPICS = (
    topic(
        "invoice budget payment quote expense receipt account balance refund ledger forecast audit",
        "approve pay check settle adjust book transfer",
        "overdue final monthly open wrong approved",
    ),
    topic(
        "server database backup password network laptop update ticket cluster firewall script outage",
        "restart install fix test migrate reset deploy",
        "slow broken stable secure empty full",
    ),
    topic(
        "contract clause lawyer lawsuit signature license patent settlement hearing draft filing agreement",
        "sign review file amend dispute draft translate",
        "binding legal void pending signed unclear",
    ),
    topic(
        "campaign slogan brochure website banner survey audience launch logo video newsletter brand",
        "launch design print measure promote rewrite post",
        "catchy expensive bold boring fresh targeted",
    ),
    topic(
        "shipment warehouse container pallet customs truck supplier delivery stock freight order carrier",
        "ship track unload reorder count pack delay",
        "late damaged missing heavy complete urgent",
    ),
    topic(
        "candidate interview salary resume offer training vacation review contractor position team bonus",
        "hire interview train promote reject onboard pay",
        "qualified nervous senior junior available strong",
    ),
    topic(
        "prototype sensor battery circuit sample casting drawing tolerance motor valve pump gearbox",
        "assemble measure machine drill weld calibrate test",
        "faulty precise noisy hot loose worn",
    ),
    topic(
        "client proposal pitch meeting deal discount pipeline lead demo territory quota renewal",
        "call visit close present negotiate win chase",
        "interested angry loyal huge lost warm",
    ),
    topic(
        "flight hotel visa itinerary taxi passport seat reservation luggage conference train upgrade",
        "book cancel change confirm reserve extend share",
        "cheap direct sold early nonrefundable cancelled",
    ),
    topic(
        "office printer coffee kitchen parking heating carpet desk key elevator window party",
        "clean repair order move lock paint replace",
        "cold dirty noisy new stuck shared",
    ),
)
PRIVATE_CHOICES = {
    "opening": (
        "hi,",
        "hello,",
        "dear all,",
        "hey,",
        "good morning,",
        "team,",
        "fyi,",
        "ok,",
        "well,",
        "so,",
    ),
    "closing": (
        *(
            "thanks",
            "best",
            "regards",
            "cheers",
            "many thanks",
            "talk soon",
            "all the best",
            "thx",
            "sincerely",
            "take care",
        ),
        *("let me know", "no rush", "call me"),
    ),
    "ask": (
        "can you",
        "could you",
        "would you",
        "please",
        "will you",
        "would you mind if we",
        "you need to",
        "kindly",
    ),
    "should": ("should", "must", "have to", "ought to", "could", "had better", "need to", "might"),
    "think": ("think", "believe", "guess", "suspect", "am sure", "feel", "hope", "know"),
    "said": ("said", "told me", "mentioned", "claims", "wrote", "reports", "confirmed", "heard"),
    "adverb": (
        "very",
        "really",
        "quite",
        "rather",
        "still",
        "already",
        "too",
        "pretty",
        "a bit",
        "totally",
    ),
    "when": (
        *(
            "today",
            "tomorrow",
            "before friday",
            "next week",
            "by monday",
            "as soon as possible",
            "this afternoon",
            "tonight",
        ),
        *(
            "at 3",
            "by 5",
            "before noon",
            "at the end of the month",
            "after lunch",
            "in the morning",
        ),
    ),
    "because": ("because", "since", "as", "given that", "now that", "seeing that"),
    "but": ("but", "however", "although", "though", "yet", "and"),
    "judge": (
        "great",
        "good",
        "fine",
        "awful",
        "terrible",
        "perfect",
        "nice",
        "lovely",
        "not ideal",
        "a mess",
        "impressive",
    ),
    "also": ("also", "by the way", "besides", "in addition", "moreover", "one more thing:", "and"),
    "maybe": ("maybe", "perhaps", "possibly", "probably", "i suppose", "in my view"),
    "attach": ("attached is", "here is", "please find", "see", "i enclose", "this is"),
}
NAMES = """
anna bernard carla dmitri elena farid greta hector ingrid jonas karen leon marta nadia oscar priya quentin rosa stefan
tanya ulrich vera walter ximena yusuf zoe alan brigit cyrus dora emil fiona george helga ivan julia kofi lena miguel
nora otto paula ramon silke tomas ursula victor wanda xavier yara
"""
PRIVATE_PEOPLE = tuple(NAMES.split())
PRIVATE_SENTENCES = (
    "{ask} {verb} the {noun} {when}",
    "{ask} {verb} the {adjective} {noun} with {person}",
    "the {noun} is {adverb} {adjective}",
    "i {think} the {noun} is {adverb} {adjective}",
    "we {should} {verb} the {noun} {when}",
    "we {should} {verb} the {noun} {because} it is {adverb} {adjective}",
    "{person} {said} the {noun} is {adjective}",
    "{person} {said} we {should} {verb} the {noun} {when}",
    "{maybe} {person} {should} {verb} the {noun}",
    "{maybe} we {should} ask {person} about the {noun}",
    "{attach} the {noun} for {person}",
    "{attach} the {adjective} {noun}, {ask} {verb} it {when}",
    "the {noun} was {judge}, {but} the {noun} is {adjective}",
    "{also} the {noun} is {judge}",
    "{also} {person} {should} {verb} the {noun} {when}",
    "did {person} {verb} the {noun} yet",
    "who {should} {verb} the {adjective} {noun}",
    "my number is {phone}, call me {when} about the {noun}",
    "{because} the {noun} is {adjective}, i {should} {verb} it {when}",
    "the meeting with {person} was {judge}",
)

PUBLIC = tuple(topic(*row) for row in PUBLIC_TOPICS)
TAGS = tuple(
    dict.fromkeys((*PUBLIC_TAGS, *(word for row in PUBLIC for slot in row for word in slot)))
)

WORDS = {
    "private": Words(PRIVATE_TOPICS, PRIVATE_CHOICES, PRIVATE_PEOPLE, PRIVATE_SENTENCES),
    "public": Words(PUBLIC, PUBLIC_CHOICES, PUBLIC_PEOPLE, PUBLIC_SENTENCES, TAGS),
}
