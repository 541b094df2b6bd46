// SPDX-License-Identifier: Apache-2.0
// Times as Ollama writes them.
#pragma once

#include <cstdint>
#include <string>

namespace weir::api {

// "2026-12-02T08:23:24Z"; what is beyond the years 0 to 9999 is their border.
std::string rfc3339(std::int64_t unix_seconds);

}  // namespace weir::api
