// SPDX-License-Identifier: Apache-2.0
// Closes target_begin.h. GCC instantiates templates at the end of the file, so its target stays on until there.
#if defined(__clang__)
#pragma clang attribute pop
#endif
