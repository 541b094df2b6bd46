# SPDX-License-Identifier: Apache-2.0
# What comes from outside: Debian packages (deps/debian.txt) and the Rust library of native/text.
find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS json)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(CURL REQUIRED IMPORTED_TARGET libcurl)
find_package(tomlplusplus REQUIRED)
find_package(prometheus-cpp REQUIRED COMPONENTS core)
if(WEIR_TESTS STREQUAL "AUTO")
  find_package(GTest QUIET)
  set(WEIR_TESTS ${GTest_FOUND})
elseif(WEIR_TESTS)
  find_package(GTest REQUIRED)
endif()
if(WEIR_BENCHMARKS)
  find_package(benchmark REQUIRED)
endif()

# native/text: chat templates (minijinja) and constrained output (llguidance), as one static library.
# Any cargo from 1.87 will do; rustup's is looked at first, Debian's cargo-web and rustc-web are the fallback.
function(weir_usable_cargo result path)
  execute_process(COMMAND ${path} --version OUTPUT_VARIABLE version ERROR_QUIET RESULT_VARIABLE failed)
  if(failed OR NOT version MATCHES "cargo ([0-9.]+)" OR CMAKE_MATCH_1 VERSION_LESS 1.87)
    message(STATUS "Passing over ${path}: too old or not working")
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()
find_program(CARGO cargo HINTS ENV CARGO_HOME $ENV{HOME}/.cargo PATHS /usr/bin PATH_SUFFIXES bin VALIDATOR weir_usable_cargo)
if(NOT CARGO)
  message(FATAL_ERROR "No usable cargo (Rust 1.87 or newer) was found. On Debian: apt-get install cargo-web rustc-web. "
    "Else install Rust from https://rustup.rs, or name it with -DCARGO=/path/to/cargo.")
endif()
set(native_text_dir ${CMAKE_SOURCE_DIR}/native/text)
set(WEIR_NATIVE_TEXT_OUT ${CMAKE_BINARY_DIR}/native-text CACHE PATH "Where cargo builds; build folders may share it")
set(native_text_out ${WEIR_NATIVE_TEXT_OUT})
set(native_text_library ${native_text_out}/release/libweir_text.a)
set(native_text_cargo ${CARGO})
if(WEIR_SANITIZE STREQUAL "thread")
  # The thread sanitizer must see the locks of the Rust code too, those of its standard library included, else every hand-over there looks
  # like a race. These flags are not stable ones, hence the bootstrap variable; `rustup component add rust-src` brings the library's source.
  set(native_text_library ${native_text_out}/x86_64-unknown-linux-gnu/release/libweir_text.a)
  set(native_text_cargo ${CMAKE_COMMAND} -E env RUSTC_BOOTSTRAP=1
    RUSTFLAGS=-Zsanitizer=thread CARGO_BUILD_TARGET=x86_64-unknown-linux-gnu CARGO_UNSTABLE_BUILD_STD=std,panic_unwind ${CARGO})
endif()
file(GLOB_RECURSE native_text_sources CONFIGURE_DEPENDS ${native_text_dir}/src/*.rs)
add_custom_command(
  OUTPUT ${native_text_library}
  COMMAND ${native_text_cargo} build --release --locked --quiet --manifest-path ${native_text_dir}/Cargo.toml --target-dir ${native_text_out}
  COMMAND ${CMAKE_COMMAND} -E touch ${native_text_library}  # cargo leaves what is up to date as it is
  DEPENDS ${native_text_sources} ${native_text_dir}/Cargo.toml ${native_text_dir}/Cargo.lock
  COMMENT "Building native/text (Rust)"
  VERBATIM)
add_custom_target(weir_native_text_build DEPENDS ${native_text_library})
add_library(weir_native_text INTERFACE)
add_dependencies(weir_native_text weir_native_text_build)
target_include_directories(weir_native_text INTERFACE ${native_text_dir}/include)
if(WEIR_SANITIZE STREQUAL "thread" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
  add_library(weir_tsan_names STATIC ${CMAKE_SOURCE_DIR}/cmake/tsan_names.c)
  target_compile_options(weir_tsan_names PRIVATE -fno-builtin)
  set(native_text_library ${native_text_library} weir_tsan_names)
endif()
target_link_libraries(weir_native_text INTERFACE ${native_text_library} Threads::Threads ${CMAKE_DL_LIBS} m)
