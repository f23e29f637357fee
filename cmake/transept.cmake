# A folder under src/ is a library: transept_library(DEPS base text/unicode LINK absl::status ...) makes transept_NAME, where
# NAME is the folder's path with underscores.
#   x.cc          the library            x_test.cc   unit tests, one binary a folder
#   x_testlib.cc  for the tests of this folder and of those that name it in DEPS or TEST_DEPS
#   x_test_avx512_vnni.cc                part of them for a level
#   x_bench.cc    micro benchmarks       x_fuzz.cc   a libFuzzer target each
# DEPS are the folders whose headers this one may include; tools/check_includes.py holds that and the floors.
# Kernel files are compiled for the level that their name ends with, and are dispatched at run time.

add_library(transept_options INTERFACE)
target_include_directories(transept_options INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_options(transept_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
                       -Wno-missing-field-initializers -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(transept_options INTERFACE -Wno-restrict)  # false alarms on "text" + std::string (GCC bug 105651)
  if(TRANSEPT_SANITIZE STREQUAL "thread" OR TRANSEPT_PRECOMPILE)
    # Between that sanitizer's calls, and in what it has of precompiled headers, it takes vectors that grow for overruns.
    # ASan sees true ones.
    target_compile_options(transept_options INTERFACE -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
endif()
if(TRANSEPT_UNITY)
  # What is declared within a function of a header may have the name of a source's own, and means the same. Builds of single
  # sources and clang-tidy look for what is hidden within a source.
  target_compile_options(transept_options INTERFACE -Wno-shadow)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # A source in company is no main file, whose types may have members of unnamed namespaces; and in long ones GCC takes
    # optional values for uninitialised ones. clang's sanitizers see true ones.
    target_compile_options(transept_options INTERFACE -Wno-subobject-linkage -Wno-maybe-uninitialized)
    # Its collector of garbage goes through a long source again and again, a tenth of the time, unless it may have memory.
    cmake_host_system_information(RESULT processors QUERY NUMBER_OF_LOGICAL_CORES)
    cmake_host_system_information(RESULT megabytes QUERY TOTAL_PHYSICAL_MEMORY)
    math(EXPR share "${megabytes} / ${processors}")
    if(share GREATER_EQUAL 4000)
      target_compile_options(transept_options INTERFACE "SHELL:--param ggc-min-heapsize=1000000")
    endif()
  endif()
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(transept_options INTERFACE -Wthread-safety -Wthread-safety-beta)  # base/mutex.h
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_options(transept_options INTERFACE -march=x86-64-v2)
  set(TRANSEPT_FLAGS_avx2 -mavx2 -mfma -mf16c)
  set(TRANSEPT_FLAGS_avx512 -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512)
  set(TRANSEPT_FLAGS_avx512_vnni ${TRANSEPT_FLAGS_avx512} -mavx512vnni)
  set(TRANSEPT_FLAGS_avx512_bf16 ${TRANSEPT_FLAGS_avx512_vnni} -mavx512bf16)
  set(TRANSEPT_FLAGS_amx ${TRANSEPT_FLAGS_avx512_vnni} -mamx-tile -mamx-int8 -mamx-bf16)
  set(TRANSEPT_X86 ON)
endif()
if(TRANSEPT_SANITIZE)
  target_compile_options(transept_options INTERFACE -fsanitize=${TRANSEPT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(transept_options INTERFACE -fsanitize=${TRANSEPT_SANITIZE})
  target_compile_definitions(transept_options INTERFACE TRANSEPT_SANITIZED=1)
  if(TRANSEPT_SANITIZE STREQUAL "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(transept_options INTERFACE -Wno-tsan)  # Boost.Asio has fences, which that sanitizer does not see
  endif()
  # A hundred programs of 100 MB each: lld links them in half of gold's time, which takes half of ld's.
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=lld TRANSEPT_HAS_LLD)
  if(TRANSEPT_HAS_LLD)
    target_link_options(transept_options INTERFACE -fuse-ld=lld)
  endif()
endif()
if(TRANSEPT_POISON)
  target_compile_definitions(transept_options INTERFACE TRANSEPT_POISON=1)
endif()
target_link_libraries(transept_options INTERFACE Threads::Threads)

# Of the sources of tests, which call what is tested and need not be fast: half of a build's time goes to them. Those of a
# level hold kernels of their own, and are compiled as kernels are: contractions, and so bits, depend on it.
add_library(transept_test_options INTERFACE)
if(TRANSEPT_SANITIZE)
  set(TRANSEPT_KERNEL_OPTIONS -O1)
  if(TRANSEPT_SANITIZE MATCHES "address,undefined")
    # AddressSanitizer checks every access through a pointer, and the first page is never mapped. To check the pointer as well
    # is a quarter of the time that libraries take to compile, and three quarters of kernels'.
    target_compile_options(transept_options INTERFACE -fno-sanitize=null,pointer-overflow,object-size)
    if(TRANSEPT_SANITIZE MATCHES "fuzzer-no-link")
      list(APPEND TRANSEPT_KERNEL_OPTIONS -fno-sanitize=fuzzer-no-link)  # none of them is fuzzed
    endif()
  endif()
  # Folders that compute little and whose fuzz targets, if any, are small: the compiler's optimisers are a third of their time.
  set(TRANSEPT_PLAIN_FOLDERS apps async capi core device_vulkan disagg encoder_cache foreign hub load models net prompts proxy rank request server startup
      text/chat)
  target_compile_options(transept_test_options INTERFACE -O0)
  if(TRANSEPT_SANITIZE MATCHES "address,undefined")
    # Half of a test's object: what is tested has these checks in its library, and address,undefined's others stay.
    target_compile_options(transept_test_options INTERFACE -fno-sanitize=vptr,alignment,function)
  endif()
  if(TRANSEPT_SANITIZE MATCHES "fuzzer-no-link")
    target_compile_options(transept_test_options INTERFACE -fno-sanitize=fuzzer-no-link)
    # Folders whose code no fuzz target is after: without counters, up to a fifth of their time to compile.
    # Written so, the precompiled headers are theirs as well.
    set(TRANSEPT_UNFUZZED_FOLDERS async attention device_vulkan engine kv kv_storage layers load models ops recording sampling scheduling speculation
        tensor)
    set(TRANSEPT_NO_COUNTERS -fno-sanitize-coverage=trace-cmp,inline-8bit-counters,pc-table,indirect-calls)
  endif()
else()
  target_compile_options(transept_test_options INTERFACE $<$<CONFIG:Release>:-O1>)
  set(TRANSEPT_KERNEL_OPTIONS $<$<CONFIG:Release>:-O3>)
endif()

# Headers of the standard library, of abseil and of gtest that most sources include, read once for all libraries and once for
# all tests. A source includes what it uses all the same: clang-tidy and builds without these see it.
if(TRANSEPT_PRECOMPILE)
  set(TRANSEPT_PRECOMPILED <algorithm> <array> <atomic> <chrono> <cmath> <cstdint> <cstring> <functional> <limits> <map>
      <memory> <optional> <span> <string> <string_view> <thread> <utility> <vector> <absl/container/flat_hash_map.h>
      <absl/status/statusor.h>)
  file(CONFIGURE OUTPUT precompiled/empty.cc CONTENT "")
  file(CONFIGURE OUTPUT precompiled/main.cc CONTENT "int main() {}\n")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(transept_options INTERFACE -fpch-preprocess)  # for ccache
    set(suffix gch)
  else()
    set(suffix pch)
    target_compile_options(transept_options INTERFACE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
  # What ccache takes instead of the precompiled file: what it is made of. The same in builds without tests (packages), which
  # find the objects of those with tests then.
  if(NOT GTest_FOUND)
    find_package(GTest QUIET)
  endif()
  foreach(host transept_precompiled transept_precompiled_plain transept_precompiled_tests)
    file(CONFIGURE OUTPUT CMakeFiles/${host}.dir/cmake_pch.hxx.${suffix}.sum
         CONTENT "${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_BUILD_TYPE} ${TRANSEPT_SANITIZE} ${absl_VERSION} ${GTest_VERSION} ${TRANSEPT_PRECOMPILED}")
  endforeach()
  add_library(transept_precompiled STATIC ${CMAKE_BINARY_DIR}/precompiled/empty.cc)
  target_link_libraries(transept_precompiled PRIVATE transept_options absl::flat_hash_map absl::statusor)
  target_precompile_headers(transept_precompiled PRIVATE ${TRANSEPT_PRECOMPILED})
  if(TRANSEPT_PLAIN_FOLDERS)
    add_library(transept_precompiled_plain STATIC ${CMAKE_BINARY_DIR}/precompiled/empty.cc)
    target_link_libraries(transept_precompiled_plain PRIVATE transept_options absl::flat_hash_map absl::statusor)
    target_compile_options(transept_precompiled_plain PRIVATE -O0)
    target_precompile_headers(transept_precompiled_plain PRIVATE ${TRANSEPT_PRECOMPILED})
  endif()
  if(TRANSEPT_BUILD_TESTS)
    # An executable, as tests are: the compiler's options must be the same.
    add_executable(transept_precompiled_tests ${CMAKE_BINARY_DIR}/precompiled/main.cc)
    target_link_libraries(transept_precompiled_tests PRIVATE transept_options transept_test_options absl::flat_hash_map absl::statusor GTest::gtest GTest::gmock)
    target_precompile_headers(transept_precompiled_tests PRIVATE ${TRANSEPT_PRECOMPILED} <set> <gmock/gmock.h> <gtest/gtest.h>)
  endif()
endif()

function(transept_precompile target host)
  if(TRANSEPT_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM ${host})
  endif()
endfunction()

# Which sources one call of the compiler takes together: tools/unity_groups.py reads them all at each configuration.
if(TRANSEPT_UNITY)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  execute_process(COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/unity_groups.py ${CMAKE_SOURCE_DIR}/src
                  OUTPUT_FILE ${CMAKE_BINARY_DIR}/unity_groups.cmake COMMAND_ERROR_IS_FATAL ANY)
  include(${CMAKE_BINARY_DIR}/unity_groups.cmake)
endif()

function(transept_unity target folder)
  if(NOT TRANSEPT_UNITY)
    return()
  endif()
  foreach(source ${ARGN})
    get_filename_component(name ${source} NAME)
    if(DEFINED TRANSEPT_UNITY_GROUP_${folder}/${name})
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${TRANSEPT_UNITY_GROUP_${folder}/${name}})
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

function(transept_library)
  cmake_parse_arguments(ARG "" "" "DEPS;LINK;TEST_DEPS" ${ARGN})
  file(RELATIVE_PATH folder ${CMAKE_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR})
  string(REPLACE "/" "_" name ${folder})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  set(tests ${sources})
  set(benches ${sources})
  set(fuzzers ${sources})
  list(FILTER tests INCLUDE REGEX "_test(_avx512_vnni)?\\.cc$")
  list(FILTER benches INCLUDE REGEX "_bench\\.cc$")
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cc$")
  set(testlib ${sources})
  list(FILTER testlib INCLUDE REGEX "_testlib\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_(test(_avx512_vnni)?|testlib|bench|fuzz)\\.cc$|/main\\.cc$")

  foreach(level avx2 avx512 avx512_vnni avx512_bf16 amx)
    set(kernels ${sources} ${tests})
    list(FILTER kernels INCLUDE REGEX "_${level}\\.cc$")
    if(kernels)
      if(TRANSEPT_X86)
        set_source_files_properties(${kernels} PROPERTIES SKIP_PRECOMPILE_HEADERS ON
                                    COMPILE_OPTIONS "${TRANSEPT_FLAGS_${level}};${TRANSEPT_KERNEL_OPTIONS}")
      else()
        list(REMOVE_ITEM sources ${kernels})
        list(REMOVE_ITEM tests ${kernels})
      endif()
    endif()
  endforeach()

  list(TRANSFORM ARG_DEPS REPLACE "/" "_" OUTPUT_VARIABLE deps)
  list(TRANSFORM deps PREPEND transept_)
  if(sources)
    add_library(transept_${name} STATIC ${sources})
    target_link_libraries(transept_${name} PUBLIC transept_options ${deps} ${ARG_LINK})
    if(folder IN_LIST TRANSEPT_PLAIN_FOLDERS)
      target_compile_options(transept_${name} PRIVATE -O0)
      transept_precompile(transept_${name} transept_precompiled_plain)
    else()
      transept_precompile(transept_${name} transept_precompiled)
    endif()
    if(folder IN_LIST TRANSEPT_UNFUZZED_FOLDERS)
      target_compile_options(transept_${name} PRIVATE ${TRANSEPT_NO_COUNTERS})
    endif()
    transept_unity(transept_${name} ${folder} ${sources})
  else()
    add_library(transept_${name} INTERFACE)
    target_link_libraries(transept_${name} INTERFACE transept_options ${deps} ${ARG_LINK})
  endif()

  list(TRANSFORM ARG_TEST_DEPS REPLACE "/" "_" OUTPUT_VARIABLE test_deps)
  list(TRANSFORM test_deps PREPEND transept_)
  set(testlibs "")
  foreach(dep ${test_deps} ${deps})
    if(TARGET ${dep}_testlib)
      list(APPEND testlibs ${dep}_testlib)
    endif()
  endforeach()
  if(TRANSEPT_BUILD_TESTS AND testlib)
    add_library(transept_${name}_testlib STATIC ${testlib})
    target_link_libraries(transept_${name}_testlib PUBLIC transept_${name} ${test_deps} ${testlibs} PRIVATE transept_test_options)
    transept_unity(transept_${name}_testlib ${folder} ${testlib})
    list(PREPEND testlibs transept_${name}_testlib)
  endif()
  if(TRANSEPT_BUILD_TESTS AND tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE transept_${name} transept_test_options ${testlibs} ${test_deps} GTest::gtest GTest::gmock GTest::gtest_main)
    transept_precompile(${name}_test transept_precompiled_tests)
    transept_unity(${name}_test ${folder} ${tests})
    gtest_discover_tests(${name}_test DISCOVERY_TIMEOUT 120 PROPERTIES TIMEOUT 600 LABELS ${folder})
  endif()
  if(TRANSEPT_BUILD_BENCH AND benches)
    add_executable(${name}_bench ${benches})
    target_link_libraries(${name}_bench PRIVATE transept_${name} benchmark::benchmark benchmark::benchmark_main)
  endif()
  if(TRANSEPT_BUILD_FUZZERS)
    foreach(fuzzer ${fuzzers})
      get_filename_component(target ${fuzzer} NAME_WE)
      add_executable(${target} ${fuzzer})
      # What gives bytes to what is fuzzed need not be fast, nor be counted: compiled as tests are, by their headers.
      target_link_libraries(${target} PRIVATE transept_${name} transept_test_options GTest::gtest GTest::gmock)
      transept_precompile(${target} transept_precompiled_tests)
      target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    endforeach()
  endif()
endfunction()

# The same for the extension module of Python that the folder is: transept_python_module(_core DEPS base capi). Python and
# nanobind are found already.
function(transept_python_module name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  list(TRANSFORM ARG_DEPS PREPEND transept_ OUTPUT_VARIABLE deps)
  nanobind_add_module(${name} STABLE_ABI NB_STATIC NB_SUPPRESS_WARNINGS ${sources})
  target_link_libraries(${name} PRIVATE ${deps})
endfunction()
