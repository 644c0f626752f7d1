"""Where characters of a text begin in its UTF-8."""


class ByteCount:
    """Counts on from the character that was asked for last, so that one walk through a text gives
    the places of all its spans.
    """

    def __init__(self, text: str):
        self.text = text
        self.character = 0
        self.bytes = 0

    def before(self, character: int) -> int:
        """How many bytes stand before a character of the text."""
        if character < self.character:
            self.character = 0
            self.bytes = 0
        self.bytes += len(self.text[self.character : character].encode())
        self.character = character
        return self.bytes
