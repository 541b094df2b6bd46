// SPDX-License-Identifier: Apache-2.0
// What a figure was measured on, and when: without it a figure cannot be compared with another.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace weir::bench {

struct Machine {
  std::string cpu;     // "AMD EPYC 9R14", as the system names it
  std::string host;    // "Linux 6.1.0 x86_64"
  int processors = 1;  // online
  int usable = 1;      // by affinity and quota
  double memory_gib = 0;
};
Machine describe_machine();
json::Object to_json(const Machine& machine);

// The first value of `key` in a text like /proc/cpuinfo; "" when absent.
std::string cpuinfo_value(std::string_view text, std::string_view key);

std::string utc_now();  // "2026-12-01T23:10:05Z"

}  // namespace weir::bench
