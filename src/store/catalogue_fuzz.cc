// SPDX-License-Identifier: Apache-2.0
// Any text as a catalogue: whatever is accepted has names that are safe to become paths.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "store/catalogue.h"
#include "store/names.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto catalogue = weir::store::Catalogue::parse({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!catalogue) return 0;
  for (const weir::store::CatalogueEntry& entry : catalogue->entries()) {
    WEIR_CHECK(weir::store::check_model_name(entry.name).has_value());
    WEIR_CHECK(!entry.entry_point().empty());
    for (const weir::store::CatalogueFile& file : entry.files) WEIR_CHECK(weir::store::check_file_name(file.name).has_value());
  }
  return 0;
}
