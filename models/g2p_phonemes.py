"""The phoneme alphabet of the g2p model: ARPAbet (as CMUdict writes it) <-> IPA.

Every ARPAbet phoneme with its stress digit is one IPA string and one token.
The 69 strings form a prefix code (none is the beginning of another), so IPA
text without separators reads back into ARPAbet in exactly one way; that is
why the affricates are single characters and OY is written with the "o" that
no other phoneme starts with except OW.
"""

VOWELS = {
    "AA": "ɑ", "AE": "æ", "AH": "ʌ", "AO": "ɔ", "AW": "aʊ", "AY": "aɪ",
    "EH": "ɛ", "ER": "ɝ", "EY": "eɪ", "IH": "ɪ", "IY": "i", "OW": "oʊ",
    "OY": "oɪ", "UH": "ʊ", "UW": "u",
}
REDUCED = {"AH": "ə", "ER": "ɚ"}  # what AH0 and ER0 are written as
CONSONANTS = {
    "B": "b", "CH": "ʧ", "D": "d", "DH": "ð", "F": "f", "G": "ɡ", "HH": "h",
    "JH": "ʤ", "K": "k", "L": "l", "M": "m", "N": "n", "NG": "ŋ", "P": "p",
    "R": "ɹ", "S": "s", "SH": "ʃ", "T": "t", "TH": "θ", "V": "v", "W": "w",
    "Y": "j", "Z": "z", "ZH": "ʒ",
}
STRESS = {"0": "", "1": "ˈ", "2": "ˌ"}


def _table():
    table = dict(CONSONANTS)
    for name, ipa in VOWELS.items():
        for digit, mark in STRESS.items():
            vowel = REDUCED.get(name, ipa) if digit == "0" else ipa
            table[name + digit] = mark + vowel
    return table


ARPABET_TO_IPA = _table()
IPA_TO_ARPABET = {ipa: name for name, ipa in ARPABET_TO_IPA.items()}
assert len(IPA_TO_ARPABET) == len(ARPABET_TO_IPA) == 69
assert not any(a != b and b.startswith(a) for a in IPA_TO_ARPABET for b in IPA_TO_ARPABET)


def to_ipa(phones):
    """["HH", "AH0", "L", "OW1"] -> "həlˈoʊ"."""
    return "".join(ARPABET_TO_IPA[p] for p in phones)


def split_ipa(text):
    """Cut IPA text into phonemes: "həlˈoʊ" -> ["h", "ə", "l", "ˈoʊ"].

    A character no phoneme starts with (space, punctuation, a digit) becomes a
    piece of its own, so the function is total.
    """
    pieces, at = [], 0
    while at < len(text):
        for width in (3, 2, 1):
            if width == 1 or text[at:at + width] in IPA_TO_ARPABET:
                pieces.append(text[at:at + width])
                break
        at += len(pieces[-1])
    return pieces


def without_stress(phones):
    """Drop the stress of IPA phonemes; ə/ʌ and ɚ/ɝ fall together (AH, ER)."""
    bare = (p.lstrip("ˈˌ") for p in phones)
    fold = {"ə": "ʌ", "ɚ": "ɝ"}
    return [fold.get(p, p) for p in bare]
