// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
int main() { fmt::print("weir {}\n", WEIR_VERSION); }
