// Loads FreeType when the first font is opened (--header-font), not at program start: few models draw text, and
// packages do not depend on it. Of header_text.cc alone, which has its types where the build has its headers
// (TRANSEPT_FREETYPE). The library stays loaded until the process ends. Thread-safe.
#pragma once

#include <ft2build.h>
// ft2build.h defines where these are.
#include FT_FREETYPE_H
#include FT_GLYPH_H

#include "base/dynamic_library.h"
#include "base/status.h"

// Every function in use. clang-format finds another form of the list each time.
// clang-format off
#define TRANSEPT_FREETYPE_FUNCTIONS(X) \
  X(FT_Done_FreeType) \
  X(FT_Done_Glyph) \
  X(FT_Get_Char_Index) \
  X(FT_Get_Glyph) \
  X(FT_Get_Kerning) \
  X(FT_Glyph_Get_CBox) \
  X(FT_Init_FreeType) \
  X(FT_Load_Glyph) \
  X(FT_New_Memory_Face) \
  X(FT_Render_Glyph) \
  X(FT_Request_Size)
// clang-format on

namespace transept {

struct FreetypeLibrary {
  TRANSEPT_FREETYPE_FUNCTIONS(TRANSEPT_FUNCTION_MEMBER)
};

// Loads the library once; later calls return the same status. Errors: kNotFound for a library that is missing or lacks
// a function.
Status load_freetype();

// REQUIRES: load_freetype() has succeeded.
const FreetypeLibrary& freetype();

}  // namespace transept
