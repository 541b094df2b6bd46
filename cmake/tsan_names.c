// SPDX-License-Identifier: Apache-2.0
// rustc's instrumentation calls these by the names of LLVM's runtime; GCC's has the same checks behind the plain names only.
#include <stddef.h>
#include <string.h>

void* __tsan_memcpy(void* to, const void* from, size_t bytes) { return memcpy(to, from, bytes); }
void* __tsan_memmove(void* to, const void* from, size_t bytes) { return memmove(to, from, bytes); }
void* __tsan_memset(void* to, int value, size_t bytes) { return memset(to, value, bytes); }
