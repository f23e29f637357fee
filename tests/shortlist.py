"""Marian's binary lexical shortlists (src/weights/shortlist.h says how they are laid out): written for a tiny model, and read
back to say which ids a sentence's answer may hold."""
import random
import struct

MAGIC = 0xF11A48D5013417F5
NAME = "lex.s2t.bin"


def checksum(data):
    total = 0
    for (value,) in struct.iter_unpack("<Q", data[:len(data) // 8 * 8]):
        total ^= value + 0x9E3779B9 + (total << 6) + (total >> 2) & (1 << 64) - 1
    return total


def to_bytes(first, lists):
    """`lists`: of each source id, the target ids that may translate it."""
    offsets = [0]
    for ids in lists:
        offsets.append(offsets[-1] + len(ids))
    words = [i for ids in lists for i in ids]
    behind = struct.pack(f"<4Q{len(offsets)}Q{len(words)}I", first, max(map(len, lists)), len(offsets), len(words), *offsets, *words)
    return struct.pack("<2Q", MAGIC, checksum(behind)) + behind


def draw(seed, first, most, num_source, num_target):
    """A file of lists of up to `most` ids."""
    rng = random.Random(seed)
    return to_bytes(first, [sorted(rng.sample(range(num_target), rng.randint(0, most))) for _ in range(num_source)])


class Shortlist:
    def __init__(self, path, shared):
        data = path.read_bytes()
        magic, total, self.first, _, num_offsets, num_words = struct.unpack_from("<6Q", data)
        assert magic == MAGIC and total == checksum(data[16:])
        self.offsets = struct.unpack_from(f"<{num_offsets}Q", data, 48)
        self.words = struct.unpack_from(f"<{num_words}I", data, 48 + 8 * num_offsets)
        self.shared = shared

    def ids(self, source_ids, also):
        """Of one sentence: the commonest, the source words' lists, with one vocabulary those words, and `also`."""
        found = {*range(self.first), *also, *(source_ids if self.shared else ())}
        for i in source_ids:
            found.update(self.words[self.offsets[i]:self.offsets[i + 1]])
        return sorted(found)
