# SPDX-License-Identifier: Apache-2.0
# MLPerf LoadGen, unmodified, as the static library mlperf_loadgen. tools/fetch_loadgen.py brings its source distribution; where that
# cannot be had the target is missing, and `weir bench mlperf` says that this build has no LoadGen.
set(WEIR_LOADGEN AUTO CACHE STRING "Build with MLPerf LoadGen: ON, OFF, or AUTO (when its sources can be had)")
set(WEIR_LOADGEN_SOURCE "" CACHE PATH "LoadGen's folder, else it is downloaded")

if(NOT WEIR_LOADGEN STREQUAL "OFF")
  set(loadgen_source "${WEIR_LOADGEN_SOURCE}")
  if(NOT loadgen_source)
    find_package(Python3 COMPONENTS Interpreter QUIET)
    if(Python3_FOUND)
      execute_process(COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/fetch_loadgen.py
        OUTPUT_VARIABLE loadgen_source ERROR_VARIABLE loadgen_error OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_STRIP_TRAILING_WHITESPACE
        TIMEOUT 300)
    endif()
  endif()
  set(loadgen_files early_stopping.cc issue_query_controller.cc loadgen.cc logging.cc test_settings_internal.cc utils.cc version.cc
    results.cc bindings/c_api.cc generated/version_generated.cc)
  list(TRANSFORM loadgen_files PREPEND "${loadgen_source}/")
  if(loadgen_source AND EXISTS "${loadgen_source}/loadgen.cc")
    add_library(mlperf_loadgen STATIC ${loadgen_files})
    target_include_directories(mlperf_loadgen SYSTEM PUBLIC ${loadgen_source})
    target_compile_options(mlperf_loadgen PRIVATE -w)
    set_target_properties(mlperf_loadgen PROPERTIES CXX_STANDARD 14)
    target_link_libraries(mlperf_loadgen PUBLIC Threads::Threads)
  elseif(WEIR_LOADGEN STREQUAL "ON")
    message(FATAL_ERROR "MLPerf LoadGen is wanted and cannot be had. ${loadgen_error}")
  else()
    message(STATUS "Without MLPerf LoadGen. ${loadgen_error}")
  endif()
endif()
