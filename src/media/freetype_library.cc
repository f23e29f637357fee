#include "media/freetype_library.h"

namespace transept {
namespace {

Status find_functions(FreetypeLibrary& functions) {
  ASSIGN_OR_RETURN(const DynamicLibrary library, DynamicLibrary::open("libfreetype.so.6"));
  TRANSEPT_FREETYPE_FUNCTIONS(TRANSEPT_FIND_FUNCTION)
  return ok_status();
}

Status load(FreetypeLibrary& functions) {
  Status found = find_functions(functions);
  if (found.ok()) return found;
  return not_found("text cannot be drawn: ", error_message(found), "; install it (Debian: libfreetype6)");
}

const LoadedOnce<FreetypeLibrary>& loaded() {
  static const LoadedOnce<FreetypeLibrary> loaded(load);
  return loaded;
}

}  // namespace

Status load_freetype() { return loaded().status; }

const FreetypeLibrary& freetype() { return loaded().functions; }

}  // namespace transept
