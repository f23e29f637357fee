"""What Pix2Struct's processor draws above a picture (transformers 5.23, image_processing_pix2struct.py: render_text, render_header), with
Pillow's basic layout: the reference takes Raqm's where libraqm and FriBidi are installed, and gives other pixels there.
tools/make_header_fixtures.py checks that these functions are transformers' own.
"""
import textwrap

from PIL import Image, ImageDraw, ImageFont

TEXT_SIZE, MARGIN, LINE_LENGTH = 36, 5, 80
FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"  # Debian: fonts-dejavu-core


def wrapped(text):
    return textwrap.TextWrapper(width=LINE_LENGTH).wrap(text=text)


def drawn(text, font_path):
    text = "\n".join(wrapped(text))
    font = ImageFont.truetype(font_path, encoding="UTF-8", size=TEXT_SIZE, layout_engine=ImageFont.Layout.BASIC)
    _, _, width, height = ImageDraw.Draw(Image.new("RGB", (1, 1))).textbbox((0, 0), text, font=font)
    image = Image.new("RGB", (width + 2 * MARGIN, height + 2 * MARGIN), "white")
    ImageDraw.Draw(image).text((MARGIN, MARGIN), text, fill="black", font=font)
    return image


def below(text, picture, font_path):
    header = drawn(text, font_path)
    width = max(header.width, picture.width)
    height = int(picture.height * (width / picture.width))
    header_height = int(header.height * (width / header.width))
    out = Image.new("RGB", (width, height + header_height), "white")
    out.paste(header.resize((width, header_height)), (0, 0))
    out.paste(picture.resize((width, height)), (0, header_height))
    return out
