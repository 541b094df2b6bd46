// SPDX-License-Identifier: Apache-2.0
// Any text as a keys file: whatever is accepted has names, and no key finds another's entry.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "serving/keys.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::serving;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto hash = parse_key_hash(text)) WEIR_CHECK(text.size() == 12 + 32 + 1 + 64);
  const auto table = KeyTable::parse(text, "fuzz");
  if (!table) return 0;
  for (const KeyRecord& key : table->keys()) {
    WEIR_CHECK(!key.name.empty() && !key.tenant.empty());
    WEIR_CHECK(key.limits.requests_per_minute >= 0 && key.limits.tokens_per_minute >= 0 && key.limits.concurrent >= 0);
    (void)may_use_model(key, "smollm2");
    if (!key.certificate.empty()) WEIR_CHECK(table->find_certificate(key.certificate)->name == key.name);
  }
  WEIR_CHECK(table->find("sk-weir-nobody-has-this-key") == nullptr);
  return 0;
}
