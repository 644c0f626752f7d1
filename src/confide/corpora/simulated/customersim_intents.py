"""Intents of the public simulation: a range of reasons to contact a shop, with what follows from
each.
"""

from confide.corpora.simulated.customersim_templates import Intent

INTENTS: tuple[Intent, ...] = (
    Intent(
        (
            "the {product} that I bought {when} came with a broken {part}.",
            "I unpacked the {product} and the {part} is missing.",
            "my {product} stopped working, the {part} makes a strange noise.",
            "there is a long scratch on the {colour} {product} you sent.",
        ),
        (
            "Was the box damaged when it arrived?",
            "Did you switch it off and on again?",
            "Can you describe the damage?",
        ),
        (
            "The box looked fine from the outside.",
            "I tried that twice, without any luck.",
            "One corner was wet and bent.",
        ),
        (
            "A replacement will leave our warehouse tomorrow, follow it with {tracking}.",
            "Please send it back to us, the return label {tracking} is free of charge.",
            "A technician will visit you within {days} days to repair the {part}.",
        ),
    ),
    Intent(
        (
            "I want to return the {product} because it is too small.",
            "how do I send back a {colour} {product}?",
            "I changed my mind about the {product} and would rather have my money back.",
            "you delivered a {colour} {product} although I chose another colour.",
        ),
        (
            "Is it still in its packaging?",
            "When did you receive it?",
            "Did you already print the return form?",
        ),
        ("Yes, I never opened it.", "It came {when}.", "No, my printer is out of ink."),
        (
            "Drop the parcel at any post office, its return number is {tracking}.",
            "We will refund {amount} as soon as the item is back.",
            "The courier collects it {days} days from now, write {tracking} on the box.",
        ),
    ),
    Intent(
        (
            "I was charged twice for one {product}.",
            "there is a payment of {amount} on my card that I do not recognise.",
            "the invoice for my {product} shows the wrong amount.",
            "my voucher over {amount} was not accepted at the checkout.",
        ),
        (
            "Which card did you use?",
            "On what date was the money taken?",
            "Do you see one or two lines on the statement?",
        ),
        ("The one that ends in 4402.", "It happened {when}.", "Two lines with the same amount."),
        (
            "You are right, {amount} goes back to your account today.",
            "Reference {order} was cancelled, so the second payment will disappear.",
            "I have corrected the invoice and the difference of {amount} is yours.",
        ),
    ),
    Intent(
        (
            "I cannot log in, the page says my password is wrong.",
            "somebody changed the mail address of my account {when}.",
            "the app asks for a code that never arrives.",
            "please delete my profile and all data in it.",
        ),
        (
            "Which device do you use?",
            "Do you get any error message?",
            "When did you last sign in successfully?",
        ),
        (
            "An old tablet and a new laptop.",
            "It only says try again later.",
            "I think it was {when}.",
        ),
        (
            "I unlocked the account, please choose a longer password this time.",
            "A new code is on its way to {phone}, it is valid for {days} minutes.",
            "Done. You should see the change after signing out and in again.",
        ),
    ),
    Intent(
        (
            "I moved house and need the {product} to go elsewhere.",
            "can you deliver the {product} on another day?",
            "the driver left my {product} with a neighbour I do not know.",
            "nobody rang the bell although I was at home {when}.",
        ),
        (
            "Is there a safe place to leave the parcel?",
            "Which day would suit you?",
            "Did the driver leave a card?",
        ),
        (
            "Behind the garage would be fine.",
            "Any day after {days} o'clock.",
            "There was nothing in the letter box.",
        ),
        (
            "The delivery now goes to {address}.",
            "I told the depot, and {tracking} will be delivered {days} days later.",
            "The driver comes back tomorrow and calls {phone} beforehand.",
        ),
    ),
    Intent(
        (
            "I wonder when my {product} will come.",
            "the parcel with the {colour} {product} has not moved since {when}.",
            "the status page has shown the same town for {days} days.",
            "is the {product} I paid for {when} already in the mail?",
        ),
        (
            "Did you get a message from the carrier?",
            "Was it a single item?",
            "Did you choose express delivery?",
        ),
        (
            "Only that it had left the harbour.",
            "No, there was a {part} in the basket as well.",
            "I paid {amount} for express.",
        ),
        (
            "It left the sorting centre this morning as shipment {tracking}.",
            "The carrier lost it, so we pack a new one with label {tracking}.",
            "Bad weather delays {tracking} by {days} days at most.",
        ),
    ),
    Intent(
        (
            "I would like to end my subscription.",
            "what does the yearly plan cost compared to the monthly one?",
            "my membership was renewed {when} without my consent.",
            "I want to pause the magazine during my holidays.",
        ),
        (
            "May I ask why you are leaving?",
            "For how many months should it pause?",
            "Have you seen our family plan?",
        ),
        (
            "It became too expensive for us.",
            "Let us say {days} weeks.",
            "No, but I am not interested.",
        ),
        (
            "The contract {order} ends this month and no further payment is taken.",
            "With the yearly plan you save {amount}.",
            "I paused it, and the next issue comes after {days} weeks.",
        ),
    ),
    Intent(
        (
            "could I book an appointment for the repair of my {product}?",
            "I have to move my visit to the store from {when} to next week.",
            "is there a free slot with an adviser on Friday?",
            "I need somebody to install the {product} at my flat.",
        ),
        (
            "Would the morning be convenient?",
            "How long will you need?",
            "Does the house have a lift?",
        ),
        (
            "Mornings are good.",
            "About {days} minutes, I think.",
            "No, and it is on the third floor.",
        ),
        (
            "You are booked, please show the code {order} at the desk.",
            "Our colleague comes to {address} and brings all tools.",
            "I moved the visit and a reminder goes to {phone}.",
        ),
    ),
    Intent(
        (
            "does the {colour} {product} come in a larger size?",
            "which {product} would you recommend for a small kitchen?",
            "will the {product} be in stock again soon?",
            "how heavy is the {product} with its {part}?",
        ),
        ("What is your budget?", "Do you prefer a certain colour?", "Is it meant as a present?"),
        (
            "Not more than {amount}.",
            "Something in {colour} would be lovely.",
            "Yes, it is for my sister's birthday.",
        ),
        (
            "Then I suggest the {colour} one, it costs {amount}.",
            "It comes back in {days} days, I reserved one under {order}.",
            "It weighs {days} kilograms and fits on any table.",
        ),
    ),
    Intent(
        (
            "the internet at home has been down since {when}.",
            "the new router keeps losing the connection.",
            "my television shows no picture after the update.",
            "the heating app does not find my {product}.",
        ),
        (
            "Which lights are on at the front?",
            "Is the cable plugged in firmly?",
            "Which version of the software is it?",
        ),
        (
            "One is {colour} and the other is off.",
            "I checked the cable and it looks all right.",
            "Version {days}, I believe.",
        ),
        (
            "I restarted the line from here, please wait {days} minutes.",
            "There is a fault in your street and we text {phone} when it is over.",
            "Your ticket is {order}, an engineer looks at it tonight.",
        ),
    ),
    Intent(
        (
            "I want to complain about the way I was treated in your shop {when}.",
            "your colleague promised to call me back and never did.",
            "this is the third time I write about the same {product}.",
            "I waited on the phone for {days} minutes.",
        ),
        (
            "Do you remember whom you spoke to?",
            "What would be a fair solution for you?",
            "Which branch was it?",
        ),
        (
            "Somebody on the evening shift, if I am not mistaken.",
            "An apology would be a start.",
            "The one next to the station.",
        ),
        (
            "Please accept our apologies and a voucher over {amount}.",
            "The manager will call you on {phone} before noon.",
            "I recorded your complaint under {order} and you hear from us soon.",
        ),
    ),
    Intent(
        (
            "I forgot my {colour} umbrella in your cafe {when}.",
            "somebody took my {product} from the counter by mistake.",
            "I lost the gift card that my parents gave me.",
            "did anyone hand in a {product} at the front desk?",
        ),
        (
            "Where exactly did you sit?",
            "Is there a name written on it?",
            "How much was left on the card?",
        ),
        (
            "Near the window at the back.",
            "It should say {name} on the inside.",
            "Around {amount}, I never used it.",
        ),
        (
            "We found it and send it to {address}.",
            "I blocked the card and the new one has the number {order}.",
            "Nothing was handed in so far, but I keep your note for {days} days.",
        ),
    ),
)
