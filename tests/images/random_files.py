"""Random files of every kind that src/media/image_reader.h reads: draw(rng) gives a name of the kind and the content."""
import io

from PIL import ImageFile

import files
from pictures import picture, samples

ImageFile.MAXBLOCK = 1 << 22  # what progressive JPEG of noise needs


def size(rng, most=90):
    """(width, height): often one of them small, where blocks and passes end."""
    sides = [rng.randint(1, most), rng.randint(1, most)]
    if rng.random() < 0.2:
        sides[rng.randrange(2)] = rng.choice((1, 2, 3, 5, 8, 9, 16, 17))
    return tuple(sides)


def saved(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def maybe_exif(rng):
    return files.exif(rng.randint(1, 8), rng.choice("<>"), rng.choice((3, 4))) if rng.random() < 0.4 else b""


def jpeg_of_pillow(rng):
    mode = rng.choice(("RGB", "RGB", "RGB", "L", "CMYK"))
    options = {"quality": rng.choice((1, 30, 75, 90, 100)), "progressive": rng.random() < 0.4, "optimize": rng.random() < 0.3}
    if mode == "RGB":
        options["subsampling"] = rng.choice((0, 1, 2))
    if rng.random() < 0.3:
        options[rng.choice(("restart_marker_blocks", "restart_marker_rows"))] = rng.randint(1, 9)
    content = saved(picture(rng, *size(rng, 200), mode), "JPEG", **options)
    if data := maybe_exif(rng):
        content = files.with_segments(content, files.exif_segment(data))
    elif rng.random() < 0.1:
        content = files.with_segments(content, files.xmp_segment(files.xmp(rng.randint(0, 9))))
    return content


def jpeg_of_coefficients(rng):
    count = rng.choice((1, 3, 3, 3, 4))
    samplings = rng.choice([
        [(2, 2), (1, 1), (1, 1)], [(2, 1), (1, 1), (1, 1)], [(1, 2), (1, 1), (1, 1)], [(4, 1), (1, 1), (1, 1)], [(1, 4), (1, 1), (1, 1)],
        [(4, 2), (1, 1), (1, 1)], [(2, 2), (2, 1), (1, 2)], [(1, 1), (2, 2), (1, 1)], [(2, 2), (1, 2), (2, 1)], [(2, 1), (1, 1), (2, 1)],
        [(1, 1), (1, 1), (1, 1)]])
    if count == 1:
        samplings = [(rng.randint(1, 4), rng.randint(1, 4))]
    if count == 4:
        samplings = rng.choice([[(1, 1)] * 4, [(2, 2), (1, 1), (1, 1), (2, 2)], [(2, 1), (1, 1), (1, 1), (2, 1)]])
    ids = rng.choice((None, [ord(c) for c in "RGB"], [0, 1, 2])) if count == 3 else None
    return files.jpeg(rng, *size(rng), samplings, ids, rng.choice((None, 0, 1, 2) if count != 1 else (None,)), rng.random() < 0.7,
                      rng.choice((0, 0, 1, 3)), jfif=rng.random() < 0.5)


def png(rng):
    color = rng.choice(list(files.CHANNELS))
    depth = rng.choice(files.DEPTHS[color])
    width, height = size(rng, 60)
    before, after = [], []
    if color == 3:
        entries = rng.randint(1, 1 << depth)
        before.append((b"PLTE", rng.randbytes(3 * entries)))
        values = samples(rng, width, height, 1, min(entries, (1 << depth) - 1) if rng.random() < 0.9 else (1 << depth) - 1)
        if rng.random() < 0.5:
            alphas = [255] * rng.randint(1, entries)
            for _ in range(rng.choice((0, 1, len(alphas)))):
                alphas[rng.randrange(len(alphas))] = rng.choice((0, 0, 10, rng.randrange(256)))
            before.append((b"tRNS", bytes(alphas)))
    else:
        values = samples(rng, width, height, files.CHANNELS[color], (1 << depth) - 1)
    if color in (0, 2) and rng.random() < 0.5:
        count = files.CHANNELS[color]
        x = rng.randrange(width) * count
        key = rng.choice(values)[x:x + count] if rng.random() < 0.8 else [rng.randrange(1 << depth) for _ in range(count)]
        before.append((b"tRNS", b"".join(v.to_bytes(2, "big") for v in key)))
    if data := maybe_exif(rng):
        (before if rng.random() < 0.5 else after).append((b"eXIf", data))
    if rng.random() < 0.2:
        before.append((b"gAMA", (30000).to_bytes(4, "big")))
    content = files.png(values, width, height, depth, color, rng.random() < 0.4, before, after, rng.randint(1, 4), rng, rng.choice((0, 1, 9)))
    return content + (b"more" if rng.random() < 0.1 else b"")


def png_of_pillow(rng):
    image = picture(rng, *size(rng, 150), rng.choice(("L", "LA", "RGB", "RGBA")))
    if rng.random() < 0.3:
        return saved(image, "PNG", save_all=True, append_images=[image.rotate(180)], default_image=rng.random() < 0.5)
    if rng.random() < 0.4 and image.mode in ("RGB", "RGBA"):
        image = image.quantize(rng.choice((2, 4, 16, 200)))
    return saved(image, "PNG", compress_level=rng.choice((1, 9)), exif=maybe_exif(rng) and b"Exif\0\0" + maybe_exif(rng))


def webp(rng):
    image = picture(rng, *size(rng, 160), rng.choice(("RGB", "RGBA", "L")))
    options = {"quality": rng.choice((0, 20, 80, 100)), "method": rng.randint(0, 6), "lossless": rng.random() < 0.5, "exact": rng.random() < 0.5,
               "alpha_quality": rng.choice((0, 50, 100)), "exif": maybe_exif(rng)}
    if rng.random() < 0.25:
        return saved(image, "WEBP", save_all=True, append_images=[image.rotate(180)], minimize_size=rng.random() < 0.5, **options)
    if rng.random() < 0.2:  # a first frame that does not cover the canvas
        del options["exif"]
        x, y = 2 * rng.randint(0, 4), 2 * rng.randint(0, 4)
        frame = (x, y, *image.size, saved(image, "WEBP", **options))
        return files.animation(x + image.width + rng.randint(0, 3), y + image.height + rng.randint(0, 3), [frame], rng.random() < 0.7)
    return saved(image, "WEBP", **options)


KINDS = (jpeg_of_pillow, jpeg_of_coefficients, png, png_of_pillow, webp)


def draw(rng):
    kind = rng.choice(KINDS)
    return kind.__name__, kind(rng)
