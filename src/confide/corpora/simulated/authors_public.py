"""Words of the public variant of the generator of messages by authors: a forum, whose posts end in
tags.

Tags write words without a space before them, so that a tokenizer trained on this text has words of
one token at the start of a text as well as after a space: canaries are made of those.
"""

PUBLIC_TOPICS = (  # nouns, verbs, adjectives
    (
        "recipe oven dough butter garlic soup salad pepper cheese cake sauce bread onion rice",
        "bake cook taste chop boil fry season",
        "tasty salty sweet bitter crispy raw",
    ),
    (
        "garden tomato rose seed soil tree lawn flower hedge compost weed spade apple herb",
        "plant water dig prune grow harvest rake",
        "green dry tall wild muddy ripe",
    ),
    (
        "bike wheel chain brake saddle tire helmet frame trail pedal gear hill ride lamp",
        "ride climb oil pump polish carry race",
        "fast rusty light steep flat smooth",
    ),
    (
        "guitar song band concert drum album piano chord tune singer record violin choir stage",
        "play sing record listen practice hum perform",
        "loud slow sad catchy famous live",
    ),
    (
        "movie actor scene plot ending director series episode ticket cinema camera comedy hero script",
        "watch film skip enjoy rate follow finish",
        "funny scary long boring brilliant silent",
    ),
    (
        "puppy cat kitten horse rabbit parrot cage vet leash bone fish tank stable fur",
        "feed walk brush train pet wash chase",
        "cute lazy hungry shy clever old",
    ),
    (
        "game player level quest monster sword puzzle board dice card castle dragon map score",
        "win lose save explore fight build trade",
        "hard easy epic hidden lucky broken",
    ),
    (
        "beach mountain island tent camp river lake boat forest desert village harbor bridge museum",
        "visit swim hike pack sail cross reach",
        "sunny quiet remote crowded foggy lovely",
    ),
    (
        "novel poem author chapter library page story essay letter cover villain dream title reader",
        "read write borrow lend publish print quote",
        "short strange gloomy romantic modern classic",
    ),
    (
        "football goal coach match season stadium referee runner marathon tennis ball court medal league",
        "kick score throw train cheer jump coach",
        "tired proud strong weak fair young",
    ),
)
PUBLIC_CHOICES = {
    "opening": (
        "folks,",
        "guys,",
        "everyone,",
        "oh,",
        "right,",
        "listen,",
        "honestly,",
        "question:",
        "update:",
        "first,",
    ),
    "closing": (
        *(
            "peace",
            "have fun",
            "good luck",
            "enjoy",
            "see you",
            "bye",
            "any ideas",
            "what now",
            "just saying",
            "not sure",
        ),
        *("happy to help", "please help", "that is all"),
    ),
    "ask": (
        "how do you",
        "can anyone",
        "does anybody",
        "should i",
        "did you ever",
        "is it wise to",
        "why not",
        "try to",
    ),
    "should": ("want to", "will", "would", "cannot", "used to", "plan to", "love to", "never"),
    "think": ("say", "find", "see", "doubt", "wonder if", "bet", "swear", "notice"),
    "said": ("says", "thinks", "posted", "asked why", "proved", "replied", "showed", "taught me"),
    "adverb": (
        "so",
        "super",
        "extremely",
        "fairly",
        "always",
        "often",
        "not",
        "almost",
        "somewhat",
        "way too",
    ),
    "when": (
        *(
            "every day",
            "on sunday",
            "last year",
            "this summer",
            "at night",
            "in winter",
            "for years",
            "right now",
        ),
        *(
            "after work",
            "during the weekend",
            "twice a month",
            "in spring",
            "until dark",
            "for 20 minutes",
        ),
    ),
    "because": ("when", "if", "until", "while", "whenever", "even though"),
    "but": ("or", "while", "whereas", "plus", "then", "except that"),
    "judge": (
        "amazing",
        "bad",
        "okay",
        "weird",
        "wonderful",
        "cool",
        "horrible",
        "superb",
        "worth it",
        "a joke",
        "useful",
    ),
    "also": ("anyway,", "actually,", "edit:", "next,", "finally,", "still,", "meanwhile,"),
    "maybe": ("surely", "of course", "obviously", "for once", "in theory", "for me"),
    "attach": ("look at", "this shows", "i made", "i found", "we bought", "behold"),
}
PUBLIC_PEOPLE = (
    *(
        "my wife",
        "my brother",
        "my sister",
        "my friend",
        "my mother",
        "my father",
        "my uncle",
        "my neighbor",
        "my boss",
    ),
    *(
        "my teacher",
        "my doctor",
        "the mayor",
        "the waiter",
        "the farmer",
        "the owner",
        "the captain",
        "the pilot",
    ),
    *("the nurse", "the painter", "the dentist"),
)
PUBLIC_SENTENCES = (
    "{ask} {verb} a {noun} {when}",
    "{ask} {verb} the {adjective} {noun}",
    "a {noun} like that is {adverb} {adjective}",
    "i {think} a {noun} is {adverb} {adjective}",
    "i {should} {verb} a {noun} {when}",
    "they {should} {verb} the {noun} {because} it is {adjective}",
    "{person} {said} a {noun} is {adverb} {adjective}",
    "{person} {should} {verb} my {noun} {when}",
    "{maybe} {person} {should} {verb} her {noun}",
    "{maybe} your {noun} is {adverb} {adjective}",
    "{attach} a {adjective} {noun}",
    "{attach} the {noun} that {person} {should} {verb}",
    "this {noun} was {judge} {but} that {noun} is {adjective}",
    "{also} my {noun} is {judge}",
    "{also} {person} {should} {verb} it {when}",
    "what is a {adjective} {noun} good for",
    "{because} your {noun} is {adjective}, {verb} it {when}",
    "{judge} {noun}, {person} {said}",
    "anything new about {tag} and {tag}",
    "{also} a thread about {tag} is {judge}",
)
# Beside the words of the topics.
MORE_TAGS = """
science history physics nature weather health money travel energy culture language school college student market
street city country ocean planet star moon space light sound water fire earth metal glass paper wood stone cloud storm
snow rain wind spring summer autumn winter morning evening night day week month year past future time clock number
letter word voice color red blue white black gold silver picture photo museum art style fashion shoe shirt coat hat
dress house home door floor wall roof room table chair window bridge road train bus plane ship truck phone computer
internet robot machine engine tool factory farm market shop price sale gift party family child friend people nation
law police army peace war king queen prince church dream sleep food drink milk sugar salt meat egg fruit orange lemon
banana breakfast lunch dinner hotel doctor nurse hospital medicine heart brain blood bone skin hand foot head eye ear
nose mouth tooth sport tennis hockey golf chess
"""
PUBLIC_TAGS = tuple(MORE_TAGS.split())
