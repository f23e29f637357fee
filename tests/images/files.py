"""Writes images that Pillow's encoders do not: PNG of every color type, depth, filter and interlace, JPEG of any sampling and
color space, EXIF and its flaws, chunks of WebP. Random where a `random.Random` is taken; the same bytes every time.
Standard library only."""
import struct
import zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"
PASSES = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def packed(samples, depth):
    """A row's samples as PNG stores them."""
    if depth == 16:
        return b"".join(struct.pack(">H", s) for s in samples)
    if depth == 8:
        return bytes(samples)
    out, bits, count = bytearray(), 0, 0
    for sample in samples:
        bits, count = bits << depth | sample, count + depth
        if count == 8:
            out.append(bits)
            bits, count = 0, 0
    if count:
        out.append(bits << (8 - count))
    return bytes(out)


def paeth(a, b, c):
    p = a + b - c
    pa, pb, pc = abs(p - a), abs(p - b), abs(p - c)
    return a if pa <= pb and pa <= pc else b if pb <= pc else c


def filtered(kind, row, before, bpp):
    """PNG's filters 0 to 4, the kind's byte in front."""
    out = bytearray([kind])
    for i, value in enumerate(row):
        a, b, c = row[i - bpp] if i >= bpp else 0, before[i], before[i - bpp] if i >= bpp else 0
        out.append((value - (0, a, b, (a + b) // 2, paeth(a, b, c))[kind]) & 255)
    return bytes(out)


def scanlines(samples, width, height, depth, channels, interlaced, rng):
    """Filtered rows of all passes. samples: [row][channel of pixel after pixel]."""
    out, bpp = [], max(1, depth * channels // 8)
    for x0, y0, dx, dy in PASSES if interlaced else [(0, 0, 1, 1)]:
        if x0 >= width:
            continue
        before = None
        for y in range(y0, height, dy):
            row = packed([samples[y][x * channels + c] for x in range(x0, width, dx) for c in range(channels)], depth)
            out.append(filtered(rng.randrange(5) if rng else y % 5, row, before or bytes(len(row)), bpp))
            before = row
    return b"".join(out)


def png(samples, width, height, depth, color, interlaced=False, before=(), after=(), idats=1, rng=None, level=6):
    """before, after: chunks (name, data) on both sides of the data; idats: in how many chunks these are."""
    data = zlib.compress(scanlines(samples, width, height, depth, CHANNELS[color], interlaced, rng), level)
    cuts = [len(data) * i // idats for i in range(idats + 1)]
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, int(interlaced))
    return b"".join([SIGNATURE, chunk(b"IHDR", header), *(chunk(*c) for c in before),
                     *(chunk(b"IDAT", data[a:b]) for a, b in zip(cuts, cuts[1:])), *(chunk(*c) for c in after), chunk(b"IEND", b"")])


def exif(orientation=6, order="<", kind=3, count=1, entries=(), tag=0x0112):
    """A TIFF header and one directory. entries: (tag, type, count, four bytes) before the orientation's."""
    value = struct.pack(order + {1: "B3x", 3: "H2x", 4: "I", 6: "b3x", 8: "h2x", 9: "i", 11: "f", 13: "I"}[kind], orientation)
    rows = [struct.pack(order + "HHI4s", *entry) for entry in entries] + [struct.pack(order + "HHI4s", tag, kind, count, value)]
    head = b"II*\0" if order == "<" else b"MM\0*"
    return head + struct.pack(order + "IH", 8, len(rows)) + b"".join(rows) + bytes(4)


def xmp(orientation, form='tiff:Orientation="{}"'):
    return ("<x:xmpmeta><rdf:Description " + form.format(orientation) + "/></x:xmpmeta>").encode()


def segment(marker, data):
    return bytes([0xff, marker]) + struct.pack(">H", len(data) + 2) + data


def with_segments(jpeg, *segments):
    """A JPEG with more segments behind its start."""
    return jpeg[:2] + b"".join(segments) + jpeg[2:]


def exif_segment(data):
    return segment(0xe1, b"Exif\0\0" + data)


def xmp_segment(data):
    return segment(0xe1, b"http://ns.adobe.com/xap/1.0/\0" + data)


class Bits:
    """Entropy-coded data: every code of a table has one length."""

    def __init__(self):
        self.out, self.bits, self.count = bytearray(), 0, 0

    def put(self, value, count):
        for i in reversed(range(count)):
            self.bits, self.count = self.bits << 1 | (value >> i & 1), self.count + 1
            if self.count == 8:
                self.out += bytes([self.bits] + ([0] if self.bits == 255 else []))
                self.bits, self.count = 0, 0

    def align(self):
        while self.count:
            self.put(1, 1)


AC_SYMBOLS = [0, 0xf0] + [run << 4 | size for run in range(16) for size in range(1, 11)]


def put_number(bits, value):
    size = abs(value).bit_length()
    bits.put(value if value > 0 else value + (1 << size) - 1, size)


def put_block(bits, coefficients, last_dc):
    difference = coefficients[0] - last_dc
    bits.put(abs(difference).bit_length(), 4)
    put_number(bits, difference)
    run = 0
    for value in coefficients[1:]:
        if not value:
            run += 1
            continue
        while run > 15:
            bits.put(AC_SYMBOLS.index(0xf0), 8)
            run -= 16
        bits.put(AC_SYMBOLS.index(run << 4 | abs(value).bit_length()), 8)
        put_number(bits, value)
        run = 0
    if run:
        bits.put(0, 8)


def random_block(rng):
    block = [rng.randrange(-120, 121)] + [0] * 63
    for _ in range(rng.randrange(6)):
        block[rng.randrange(1, 64)] = rng.randrange(-25, 26)
    return block


def jpeg(rng, width, height, samplings, ids=None, adobe=None, interleaved=True, restart=0, frame=0xc0, precision=8, jfif=False):
    """Random coefficients. samplings: (h, v) of each component; adobe: the transform of an APP14 segment."""
    ids = ids or list(range(1, len(samplings) + 1))
    out = [b"\xff\xd8"]
    out += [segment(0xe0, b"JFIF\0\1\1\0\0\1\0\1\0\0")] if jfif else []
    out += [segment(0xee, b"Adobe" + struct.pack(">HHHB", 100, 0, 0, adobe))] if adobe is not None else []
    out.append(segment(0xdb, bytes([0]) + bytes(4 + i // 16 for i in range(64))))
    parts = b"".join(bytes([i, h << 4 | v, 0]) for i, (h, v) in zip(ids, samplings))
    out.append(segment(frame, struct.pack(">BHHB", precision, height, width, len(samplings)) + parts))
    out.append(segment(0xc4, bytes([0, 0, 0, 0, 12] + [0] * 12) + bytes(range(12))))
    out.append(segment(0xc4, bytes([16] + [0] * 7 + [len(AC_SYMBOLS)] + [0] * 8) + bytes(AC_SYMBOLS)))
    out += [segment(0xdd, struct.pack(">H", restart))] if restart else []
    for scan in [list(range(len(samplings)))] if interleaved else [[i] for i in range(len(samplings))]:
        out.append(segment(0xda, bytes([len(scan)]) + b"".join(bytes([ids[i], 0]) for i in scan) + b"\0\x3f\0"))
        out.append(scan_data(rng, width, height, samplings, scan, restart))
    return b"".join(out) + b"\xff\xd9"


def scan_data(rng, width, height, samplings, scan, restart):
    most_h, most_v = max(h for h, _ in samplings), max(v for _, v in samplings)
    if len(scan) == 1:  # its own blocks alone
        h, v = samplings[scan[0]]
        across, down, units = -(-(-(-width * h // most_h)) // 8), -(-(-(-height * v // most_v)) // 8), [scan[0]]
    else:
        across, down = -(-width // (8 * most_h)), -(-height // (8 * most_v))
        units = [i for i in scan for _ in range(samplings[i][0] * samplings[i][1])]
    bits, dc = Bits(), {}
    for mcu in range(across * down):
        if restart and mcu and mcu % restart == 0:
            bits.align()
            bits.out += bytes([0xff, 0xd0 + (mcu // restart - 1) % 8])
            dc = {}
        for i in units:
            block = random_block(rng)
            put_block(bits, block, dc.get(i, 0))
            dc[i] = block[0]
    bits.align()
    return bytes(bits.out)


def riff_chunks(webp):
    """[(name, data)] of a WebP file."""
    out, at = [], 12
    while at + 8 <= len(webp):
        size = struct.unpack("<I", webp[at + 4:at + 8])[0]
        out.append((webp[at:at + 4], webp[at + 8:at + 8 + size]))
        at += 8 + size + size % 2
    return out


def riff(chunks):
    body = b"WEBP" + b"".join(name + struct.pack("<I", len(data)) + data + bytes(len(data) % 2) for name, data in chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def uint24(value):
    return struct.pack("<I", value)[:3]


def vp8x(width, height, flags):
    """flags: 2 animation, 4 XMP, 8 EXIF, 16 alpha, 32 profile."""
    return b"VP8X", bytes([flags, 0, 0, 0]) + uint24(width - 1) + uint24(height - 1)


def animation(width, height, frames, alpha):
    """frames: (x, y, width, height, a WebP file of one picture); x and y are even."""
    chunks = [vp8x(width, height, 2 | (16 if alpha else 0)), (b"ANIM", b"\xff\xff\xff\xff\0\0")]
    for x, y, w, h, webp in frames:
        inner = riff([c for c in riff_chunks(webp) if c[0] in (b"ALPH", b"VP8 ", b"VP8L")])[12:]
        chunks.append((b"ANMF", uint24(x // 2) + uint24(y // 2) + uint24(w - 1) + uint24(h - 1) + uint24(100) + b"\2" + inner))
    return riff(chunks)
