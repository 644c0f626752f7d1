"""Scripts that write words without gaps, and letters of the others."""

# Thai, Lao, Burmese, Khmer, kana, Han, Hangul: no space ends a word.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
LETTER = rf"[^\W{UNSPACED}]"
