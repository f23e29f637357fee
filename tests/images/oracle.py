"""What Pillow 12 and transformers' convert_to_rgb make of an image: the reference of src/media/image_reader.h."""
import io
import struct

from PIL import Image, ImageOps


def oriented(image):
    """load_image's exif_transpose. Metadata that Pillow cannot open are no orientation."""
    image.load()
    try:
        return ImageOps.exif_transpose(image)
    except (SyntaxError, struct.error, ValueError):
        return image


def upper_bytes(image):
    """16-bit grey by the upper byte, where Pillow clips to white; its transparent value is one of 16 bits."""
    values = image.tobytes()
    grey = Image.frombytes("L", image.size, values[1::2])
    key = image.info.get("transparency")
    if key is None:
        return grey
    alpha = bytes(0 if values[i] | values[i + 1] << 8 == key else 255 for i in range(0, len(values), 2))
    return Image.merge("LA", (grey, Image.frombytes("L", image.size, alpha)))


def on_white(image):
    """convert_to_rgb of transformers 5.23 (image_transforms.py)."""
    if "A" not in image.getbands() and image.info.get("transparency") is None:
        return image.convert("RGB")
    image = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", image.size, (255, 255, 255, 255)), image).convert("RGB")


def rgb(content, white=True):
    """((width, height), RGB bytes). Raises what Pillow raises."""
    image = oriented(Image.open(io.BytesIO(content), formats=("JPEG", "PNG", "WEBP")))
    image = upper_bytes(image) if image.mode == "I;16" else image
    image = on_white(image) if white else image.convert("RGB")
    return image.size, image.tobytes()
