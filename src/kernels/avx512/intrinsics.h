// SPDX-License-Identifier: Apache-2.0
// <immintrin.h> without a false alarm of GCC 12: its "undefined" registers initialise themselves with themselves.
#pragma once

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
