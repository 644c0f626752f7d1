"""Sentences of the simulator. A slot in braces is a secret (name, address, phone, order, tracking)
or a word list below.

PRIVATE has the numbers of variants of Shi et al. (2021) per move of the agenda, in sentences of our
own. PUBLIC is another simulation with a wider range of intents: it trains the tokenizer and
warm-starts models, and shares no sentence with it.
"""

from dataclasses import dataclass

SECRETS = ("name", "address", "phone", "order", "tracking")
ASKED = ("phone", "order", "address")  # the slot asked beside the name, uniformly


@dataclass(frozen=True, slots=True)
class Intent:
    """One reason to write in the public simulation: what the user says, what is asked back, how it
    ends.
    """

    requests: tuple[str, ...]
    questions: tuple[str, ...]
    answers: tuple[str, ...]
    endings: tuple[str, ...]


def _list(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


PRIVATE: dict[str, tuple[str, ...]] = {
    "open": (
        "Hello, this is the customer support bot. What can I help you with?",
        "Hello, this is the customer support bot. What brings you here today?",
        "Hello, this is the customer support bot. How may I assist you?",
    ),
    "greet": ("Hi there.", "Hello.", "Hey bot."),
    "request": (
        "Where is the package I am waiting for?",
        "I would like some help with tracking my parcel.",
        "I bought something from you and wonder whether it is on its way.",
        "I ordered a lipstick some days ago but the tracking does not work.",
        "I ordered a mobile phone some days ago but the tracking does not work.",
        "I ordered a pot some days ago but the tracking does not work.",
        "I ordered a floor lamp some days ago but the tracking does not work.",
        "I ordered a chair some days ago but the tracking does not work.",
    ),
    "ask name": (
        "Could you tell me your full name?",
        "What is your full name, please?",
        "To look this up I need your full name.",
    ),
    "name": (
        "{name}",
        "{name}.",
        "I am {name}.",
        "My name's {name}.",
        "Sure, {name}.",
        "Yes, {name}.",
        "Of course, I'm {name}.",
    ),
    "ask phone": ("What is the phone number on the account?", "Please tell me your phone number."),
    "ask order": (
        "What is your order number?",
        "Please give me the order number as well.",
        "Do you have the order number at hand?",
    ),
    "ask address": (
        "Which shipping address did you give us?",
        "Now please confirm the shipping address.",
    ),
    "phone": (
        "{phone}.",
        "It is {phone}.",
        "You can call {phone}.",
        "{phone} is the number.",
        "The number is {phone}",
    ),
    "order": (
        "{order}",
        "{order}.",
        "The order number is {order}.",
        "Here it is: {order}.",
        "Yes, it is {order}",
    ),
    "address": (
        "{address}.",
        "It goes to {address}.",
        "I live at {address}.",
        "Sure, it is {address}.",
        "The address is {address}.",
    ),
    "tracking": (
        "Your tracking number is {tracking}.",
        "Please use {tracking} to track the package.",
        "I found the shipment, its tracking number is {tracking}.",
    ),
    "close": (
        "Is there something else?",
        "Does that answer your question?",
        "Can I do more for you?",
        "What else may I look up?",
    ),
    "satisfied": (
        "No, that is all.",
        "Great, that helps.",
        "That answers it.",
        "Nothing more from me.",
        "Perfect, thanks a lot.",
    ),
    "user bye": ("Goodbye.", "Have a good day.", "Many thanks, bye."),
    "bye": (
        "Goodbye.",
        "Thank you for your patience, bye.",
        "Have a pleasant day.",
        "It was nice to help you.",
    ),
}

PUBLIC: dict[str, tuple[str, ...]] = {
    "open": (
        "Welcome to the help desk, you are talking to an automatic assistant. Tell me what happened.",
        "Good morning and thanks for contacting us. What is the matter?",
        "Good afternoon, support speaking. Which problem can I solve?",
        "You have reached the service team. How are things going with your purchase?",
        "Thanks for waiting in line. I am the virtual agent on duty, so what do you require?",
        "Greetings from the shop. Please describe your question in a few words.",
    ),
    "greet": (
        "Good day,",
        "Hello again,",
        "Evening,",
        "Thanks for the quick reply,",
        "Excuse me,",
        "Dear team,",
        "Hi folks,",
        "OK,",
    ),
    "ask name": (
        "I am sorry to hear that. May I ask who I am speaking with?",
        "Let me open your file. Under which first and last name was it created?",
        "We can sort that out. Whose name is on the account?",
        "Before we go on, please type your first name and surname.",
        "Understood. How is your name spelled?",
    ),
    "name": (
        "The account belongs to {name}.",
        "You are speaking with {name}.",
        "That would be {name}, thanks.",
        "It is spelled {name}.",
        "{name} here.",
        "Look for {name}, please.",
        "My full name reads {name}.",
    ),
    "ask phone": (
        "Thank you, {name}. On which telephone can our technician call you back?",
        "What mobile number do you use, {name}?",
        "Please leave a number where we reach you during the day.",
        "Which contact number have you registered with us?",
    ),
    "phone": (
        "Call me on {phone} after lunch.",
        "My mobile is {phone}.",
        "The best number to reach us is {phone}.",
        "I registered {phone} last year.",
        "Try {phone}, and if nobody answers leave a message.",
    ),
    "ask order": (
        "Do you see a reference on the receipt, {name}?",
        "Please read me the reference printed at the top of the invoice.",
        "Which purchase is it about? The reference starts with letters or a hash sign.",
        "Could you copy the reference from the confirmation mail?",
    ),
    "order": (
        "The receipt says {order}.",
        "I have {order} in front of me.",
        "According to the mail it is {order}.",
        "Sure thing, the reference reads {order}.",
        "Let me see... {order}, I believe.",
    ),
    "ask address": (
        "Where do we deliver, {name}? Please include the postcode.",
        "What is the billing address on the card statement?",
        "Please type the street, the town and the postcode.",
        "Have you moved recently? Tell me where you live now.",
    ),
    "address": (
        "Please bring it to {address}.",
        "We live at {address} since the spring.",
        "My new home is {address}.",
        "Send everything to {address}, not to the office.",
        "The card statement goes to {address}.",
    ),
    "extra": (
        "How late are you open on weekends?",
        "Is there a discount for returning customers?",
        "Can my neighbour accept the delivery for me?",
        "Do you also ship to the islands?",
        "Could somebody send me a copy of the invoice?",
        "Will I get a confirmation by mail?",
        "Which payment methods do you support?",
        "And how do I leave a review?",
        "Is the {product} covered by the warranty too?",
        "Should I keep the original packaging?",
        "What happens if nobody is at home?",
        "Would it be cheaper to buy two of them?",
    ),
    "extra answer": (
        "Yes, that is possible without any additional cost.",
        "Unfortunately not, but we are working on it for next year.",
        "Our stores open from nine to six, and until four on Saturdays.",
        "That depends on the weight, though most parcels arrive within {days} days.",
        "I have just sent the document to the mailbox we have on file.",
        "You can find the details in the menu under settings.",
        "Certainly, the driver will try a second time on the following day.",
        "We accept cards, bank transfer and gift vouchers worth up to {amount}.",
        "The manual says so on page {days}, but I will ask a colleague to be sure.",
        "Every product has a warranty of two years, batteries have six months.",
    ),
    "close": (
        "Would you like to know anything further?",
        "Shall I note down another request?",
        "Have we covered everything, {name}?",
        "Are you satisfied with this solution?",
    ),
    "satisfied": (
        "That was quicker than I expected, well done.",
        "Good, I will wait for the message then.",
        "I suppose that will do for today.",
        "Wonderful, you have been very kind.",
        "Not ideal, but I understand.",
        "Everything is clear now, I appreciate it.",
        "Fine with me.",
    ),
    "user bye": ("Until next time!", "Take care.", "Have a nice evening.", "So long, and thanks."),
    "bye": (
        "You are welcome, and enjoy your {product}.",
        "We look forward to your next visit.",
        "Thanks for your trust, {name}.",
        "All the best from the whole team.",
        "This conversation is now closed. Take care!",
    ),
}

FILLERS: dict[str, tuple[str, ...]] = {
    "product": _list(
        "coffee machine,bicycle helmet,desk,wardrobe,pair of boots,winter jacket,tablet,laptop,keyboard,headset,camera,tent,"
        "backpack,sofa,mattress,rug,mirror,toaster,kettle,blender,frying pan,teapot,vase,picture frame,bookshelf,garden hose,"
        "drill,ladder,lawn mower,printer,monitor,router,smart watch,speaker,board game,puzzle,doll house,stroller,car seat,"
        "suitcase,umbrella,necklace,perfume,hair dryer,razor,yoga mat,tennis racket,football,guitar,piano stool"
    ),
    "when": _list(
        "yesterday,last Monday,two weeks ago,in March,on the weekend,this morning,ten days ago,before the holidays,last night,"
        "on Thursday,at the end of June,a month ago"
    ),
    "colour": _list("red,green,dark blue,grey,white,black,yellow,light brown,purple,orange"),
    "amount": _list("12.50,49.99,7.00,135.80,89.90,249.00,18.75,64.20,310.45,5.60"),
    "days": _list("3,4,5,6,7,8,10,12,14,21"),
    "part": _list(
        "screen,handle,lid,battery,cable,left wheel,zip,charger,power switch,hinge,drawer,remote control"
    ),
}
