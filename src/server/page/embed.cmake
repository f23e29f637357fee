# The page's files as one source with their bytes:
#   include(page/embed.cmake)                                          # in src/server/CMakeLists.txt, and below it:
#   target_sources(transept_server PRIVATE ${TRANSEPT_PAGE_SOURCE})
# It is written anew when one of the files changes, comes or goes. Run with -P it is the writer itself.

if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(page_dir ${CMAKE_CURRENT_LIST_DIR})
  file(GLOB page_files CONFIGURE_DEPENDS ${page_dir}/*.html ${page_dir}/*.css ${page_dir}/*.js ${page_dir}/*.svg)
  set(TRANSEPT_PAGE_SOURCE ${CMAKE_CURRENT_BINARY_DIR}/page_files.cc)
  # The list is an input, too: nothing else would be newer when a file goes away.
  list(JOIN page_files "\n" page_list)
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/page_files.txt CONTENT "${page_list}\n" @ONLY)
  add_custom_command(
    OUTPUT ${TRANSEPT_PAGE_SOURCE}
    COMMAND ${CMAKE_COMMAND} -D OUTPUT=${TRANSEPT_PAGE_SOURCE} -D LIST=${CMAKE_CURRENT_BINARY_DIR}/page_files.txt
            -P ${CMAKE_CURRENT_LIST_FILE}
    DEPENDS ${page_files} ${CMAKE_CURRENT_BINARY_DIR}/page_files.txt ${CMAKE_CURRENT_LIST_FILE}
    COMMENT "Embedding the page" VERBATIM)
  return()
endif()

set(type_html "text/html; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_svg "image/svg+xml")

file(STRINGS ${LIST} page_files)
set(rows "")
set(count 0)
foreach(file ${page_files})
  get_filename_component(name ${file} NAME)
  get_filename_component(extension ${file} LAST_EXT)
  string(SUBSTRING ${extension} 1 -1 extension)
  set(path "/page/${name}")
  if(name STREQUAL "index.html")
    set(path "/")
  endif()
  file(READ ${file} bytes HEX)
  file(SHA256 ${file} hash)
  string(SUBSTRING ${hash} 0 32 hash)
  # A literal a line of 32 bytes: one of tens of thousands would be past what compilers must take.
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" bytes "${bytes}")
  string(REPEAT "...." 32 line)
  string(REGEX REPLACE "(${line})" "\\1\"\n    \"" bytes "${bytes}")
  string(APPEND rows "    {\"${path}\", \"${type_${extension}}\",\n    \"${bytes}\"sv,\n    \"\\\"${hash}\\\"\"},\n")
  math(EXPR count "${count} + 1")
endforeach()

file(WRITE ${OUTPUT} "// Written by src/server/page/embed.cmake from the files beside it.
#include \"server/page_files.h\"

#include <array>

namespace transept {
namespace {

using namespace std::string_view_literals;

constexpr std::array<PageFile, ${count}> kPageFiles{{
${rows}}};

}  // namespace

std::span<const PageFile> page_files() { return kPageFiles; }

}  // namespace transept
")
