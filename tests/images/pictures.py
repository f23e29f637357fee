"""Random pictures for the encoders: noise, slopes, few colors, and sharp edges."""
from PIL import Image

MODES = {"L": 1, "LA": 2, "RGB": 3, "RGBA": 4, "CMYK": 4}


def samples(rng, width, height, channels, most=255):
    """[row][channel of pixel after pixel], 0 to most."""
    kind = rng.choice(("noise", "slope", "few", "edges"))
    few = [[rng.randint(0, most) for _ in range(channels)] for _ in range(rng.randint(2, 5))]
    slopes = [(rng.uniform(-1, 1), rng.uniform(-1, 1), rng.random()) for _ in range(channels)]
    rows = []
    for y in range(height):
        row = []
        for x in range(width):
            if kind == "noise":
                row += [rng.randint(0, most) for _ in range(channels)]
            elif kind == "few":
                row += rng.choice(few)
            elif kind == "edges":
                row += few[(x // 3 + y // 4) % len(few)]
            else:
                row += [min(most, max(0, round(most * (c + a * x / width + b * y / height)))) for a, b, c in slopes]
        rows.append(row)
    return rows


def picture(rng, width, height, mode):
    values = samples(rng, width, height, MODES[mode])
    return Image.frombytes(mode, (width, height), bytes(value for row in values for value in row))
