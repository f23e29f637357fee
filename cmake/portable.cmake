# TRANSEPT_PORTABLE: a binary and a library that run on any x86-64 Linux of glibc 2.28 or later. Every library but glibc's own
# is linked in (docs/decisions/0029-packages.md). The compiler and its flags are those of the release preset, so Transept's
# objects are the same, to the byte.
execute_process(COMMAND python3 ${CMAKE_SOURCE_DIR}/packaging/portable/glibc_floor.py ${CMAKE_BINARY_DIR}/glibc COMMAND_ERROR_IS_FATAL ANY)
add_link_options(-B${CMAKE_BINARY_DIR}/glibc -L${CMAKE_BINARY_DIR}/glibc -static-libstdc++ -static-libgcc -Wl,-z,relro,-z,now)

set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
set(OPENSSL_USE_STATIC_LIBS ON)
set(CMAKE_SKIP_RPATH ON)

# For an imported target, in place of Debian's archive: a copy whose `stderr` is a pointer that glibc_compat.c has. Code that is
# not compiled for shared libraries reads the C library's own variables as only a program may.
function(transept_archive_for_libraries target)
  get_target_property(location ${target} IMPORTED_LOCATION_RELEASE)
  get_filename_component(name ${location} NAME)
  execute_process(COMMAND ${CMAKE_OBJCOPY} --redefine-sym stderr=transept_stderr ${location} ${CMAKE_BINARY_DIR}/${name} COMMAND_ERROR_IS_FATAL ANY)
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION ${CMAKE_BINARY_DIR}/${name} IMPORTED_LOCATION_RELEASE ${CMAKE_BINARY_DIR}/${name})
endfunction()

# An archive of an installed package's own source, for the targets PREFIX::* that find_package made: Debian has none of
# prometheus-cpp, and its archives of abseil cannot become part of a shared library.
function(transept_archive_of_source prefix package)
  execute_process(COMMAND python3 ${CMAKE_SOURCE_DIR}/packaging/debian_source.py ${package} ${CMAKE_BINARY_DIR}/sources
                  OUTPUT_VARIABLE source OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(globs ${ARGN})
  list(TRANSFORM globs PREPEND ${source}/)
  file(GLOB_RECURSE files ${globs})
  list(FILTER files EXCLUDE REGEX "_test|test_|benchmark|testing|mock_|/internal/.*_gentables|/print_hash_of|/gaussian_distribution_gentables|scoped_set_env")
  add_library(${prefix}_archive STATIC ${files})
  target_include_directories(${prefix}_archive SYSTEM PRIVATE ${source})
  get_property(targets DIRECTORY PROPERTY IMPORTED_TARGETS)
  list(FILTER targets INCLUDE REGEX "^${prefix}::")
  foreach(target ${targets})
    get_target_property(location ${target} IMPORTED_LOCATION_NONE)
    if(location)
      set_target_properties(${target} PROPERTIES IMPORTED_LOCATION_NONE ${CMAKE_CURRENT_BINARY_DIR}/lib${prefix}_archive.a)
      add_dependencies(${target} ${prefix}_archive)
    endif()
  endforeach()
endfunction()
