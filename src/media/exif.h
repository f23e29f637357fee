// The orientation of a picture, from its metadata: EXIF's tag 0x0112 in the first directory, or without it what XMP
// says (tiff:Orientation). Reads the bytes as Pillow 12.3 does (Image.Exif, TiffImagePlugin.ImageFileDirectory_v2):
// entries before a flaw count, and the last of several. Two differences: what Pillow cannot open at all is no
// orientation, and not an error; only integers of 1, 2 and 4 bytes are numbers. Pure function: thread-safe.
#pragma once

#include <cstdint>
#include <span>

namespace transept {

// 1 to 8 (JEITA CP-3451, 4.6.4); 1: none, or malformed. `exif`: a TIFF header and what follows, with "Exif\0\0" before
// it or without; `xmp`: a packet of XMP. Either may be empty.
int32_t find_orientation(std::span<const uint8_t> exif, std::span<const uint8_t> xmp);

}  // namespace transept
