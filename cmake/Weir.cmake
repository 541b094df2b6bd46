# SPDX-License-Identifier: Apache-2.0
# Compiler settings and weir_library(): a folder of src/ becomes a static library, its *_test.cc a GoogleTest program,
# each *_fuzz.cc a libFuzzer target (with -DWEIR_FUZZ=ON, clang) or, beside the tests of any compiler, NAME_replay, which runs the
# seed corpus and some plain mutations; its *_bench.cc a Google Benchmark program.
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1")  # CHECKs stay on: no NDEBUG

set(WEIR_TESTS AUTO CACHE STRING "Build the tests: ON, OFF, or AUTO (when GoogleTest is installed)")
option(WEIR_BENCHMARKS "Build the benchmarks" OFF)
option(WEIR_FUZZ "Build the fuzz targets (clang)" OFF)
set(WEIR_SANITIZE "" CACHE STRING "address (with undefined) or thread")

find_program(CCACHE ccache)
if(CCACHE)
  # Paths relative to the source tree, so that build folders and clones share their objects.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
endif()

add_compile_options(-Wall -Wextra -Wpedantic -Werror -fno-math-errno -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-psabi -Wno-maybe-uninitialized -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow)  # false alarms of GCC 12 in the standard library
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options(-Wno-deprecated-declarations)  # libstdc++ 12's own stable_sort uses what C++17 deprecates
endif()
if(WEIR_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(WEIR_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread)
  add_link_options(-fsanitize=thread)
endif()
if(WEIR_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
  add_link_options(-fsanitize=address,undefined)
endif()

function(weir_library name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  set(dir ${CMAKE_SOURCE_DIR}/src/${name})
  file(GLOB_RECURSE all CONFIGURE_DEPENDS ${dir}/*.cc)
  set(sources ${all})
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz|bench)\\.cc$")
  add_library(weir_${name} STATIC ${sources} ${CMAKE_SOURCE_DIR}/cmake/empty.cc)
  target_include_directories(weir_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(weir_${name} PUBLIC ${ARG_DEPS})

  set(tests ${all})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  if(WEIR_TESTS AND tests)
    add_executable(weir_${name}_test ${tests})
    target_link_libraries(weir_${name}_test PRIVATE weir_${name} GTest::gmock_main)
    target_compile_definitions(weir_${name}_test PRIVATE WEIR_TEST_DATA="${CMAKE_SOURCE_DIR}/tests/data")
    set_property(GLOBAL APPEND PROPERTY WEIR_TEST_PROGRAMS weir_${name}_test)
  endif()

  set(fuzzers ${all})
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cc$")
  foreach(source ${fuzzers})
    get_filename_component(fuzzer ${source} NAME_WE)
    if(WEIR_FUZZ)
      add_executable(${fuzzer} ${source})
      target_link_libraries(${fuzzer} PRIVATE weir_${name})
      target_link_options(${fuzzer} PRIVATE -fsanitize=fuzzer)
      set_property(GLOBAL APPEND PROPERTY WEIR_FUZZ_PROGRAMS ${fuzzer})
    elseif(WEIR_TESTS)
      add_executable(${fuzzer}_replay ${source} ${CMAKE_SOURCE_DIR}/tests/fuzz/replay_main.cc)
      target_link_libraries(${fuzzer}_replay PRIVATE weir_${name})
      set_property(GLOBAL APPEND PROPERTY WEIR_FUZZ_PROGRAMS ${fuzzer}_replay)
    endif()
  endforeach()

  if(WEIR_BENCHMARKS)
    set(benches ${all})
    list(FILTER benches INCLUDE REGEX "_bench\\.cc$")
    if(benches)
      add_executable(weir_${name}_bench ${benches})
      target_link_libraries(weir_${name}_bench PRIVATE weir_${name} benchmark::benchmark_main)
      target_compile_definitions(weir_${name}_bench PRIVATE WEIR_TEST_DATA="${CMAKE_SOURCE_DIR}/tests/data")
    endif()
  endif()
endfunction()

# Call last: the target weir_tests builds every test and fuzz program, and test_programs.txt lists them for tools/run_tests.py.
function(weir_list_test_programs)
  get_property(tests GLOBAL PROPERTY WEIR_TEST_PROGRAMS)
  get_property(fuzzers GLOBAL PROPERTY WEIR_FUZZ_PROGRAMS)
  add_custom_target(weir_tests DEPENDS ${tests} ${fuzzers})
  set(lines "")
  foreach(program ${tests})
    string(APPEND lines "test ${program}\n")
  endforeach()
  foreach(program ${fuzzers})
    string(APPEND lines "fuzz ${program}\n")
  endforeach()
  file(WRITE ${CMAKE_BINARY_DIR}/test_programs.txt "${lines}")
endfunction()

# Builds the text of FILE (below the root) into TARGET as `const std::string_view SYMBOL` (namespace::name, declared extern).
function(weir_embed_text target file symbol)
  file(READ ${CMAKE_SOURCE_DIR}/${file} text)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${file})
  string(REGEX MATCH "^(.*)::([^:]+)$" parts ${symbol})
  set(namespace ${CMAKE_MATCH_1})
  set(name ${CMAKE_MATCH_2})
  set(source ${CMAKE_BINARY_DIR}/embedded/${name}.cc)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT [=[// Made from @file@ by CMake.
#include <string_view>
namespace @namespace@ {
extern const std::string_view @name@;
const std::string_view @name@ = R"text(@text@)text";
}  // namespace @namespace@
]=])
  target_sources(${target} PRIVATE ${source})
endfunction()
