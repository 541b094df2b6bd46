// SPDX-License-Identifier: Apache-2.0
// Any text as a configuration: whatever is accepted is printed as a file that reads back to the same.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "serving/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::serving;
  ServeConfig config;
  if (!read_config_text({reinterpret_cast<const char*>(data), size}, "fuzz", config)) return 0;
  (void)check_config(config);
  const std::string printed = print_config(config);
  ServeConfig again;
  WEIR_CHECK(read_config_text(printed, "printed", again).has_value());
  again.spans.headers = config.spans.headers;  // secrets are not printed
  WEIR_CHECK(print_config(again) == printed);
  return 0;
}
