// SPDX-License-Identifier: Apache-2.0
// Packed weights: the backend's own order of the same bits, made once, in parallel, kept in a cache file, and only mapped by later
// starts, through large pages, which stream faster. The model file's pages are given back as they are read, so that memory holds
// one copy.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"
#include "model/model.h"

namespace weir::model {

enum class HugePages {
  kAuto,  // the cache file is mapped; where that gives none, its pages are moved to private ones while the model works
  kOn,    // private memory, filled at the start
  kOff,   // the cache file is mapped
};

struct WeightCacheOptions {
  bool enabled = true;  // false: packed at each start, if there is memory for it
  HugePages huge_pages = HugePages::kAuto;
  bool interleave = true;                               // private memory over all NUMA nodes
  std::filesystem::path folder = {};                    // empty: $WEIR_CACHE/weights, else ~/.cache/weir/weights
  std::uint64_t limit_bytes = std::uint64_t{64} << 30;  // of the whole folder
  std::uint64_t least_bytes = 4 << 20;                  // smaller models gain nothing that anybody would see
};

struct WeightCacheReport {
  std::uint64_t bytes = 0;  // packed; 0 when nothing was to be packed
  bool made = false;        // by this call, rather than found
  double seconds = 0;
  std::string note = {};  // what the user should know: no cache, a damaged one
};

// Sets Weight::packed of every linear layer that the model's backend packs. A cache that cannot be written is no failure: the note
// says so, and the weights are packed in memory or used from the model's file, with the same results.The key is the digest of what each
// file holds, the layout of the backend, and every weight's place; see docs/performance.md.
WeightCacheReport attach_packed_weights(Model& model, const WeightCacheOptions& options);

// From WEIR_WEIGHT_CACHE ("off" turns it off, anything else is the folder), WEIR_HUGE_PAGES ("on", "off") and WEIR_NUMA ("interleave",
// "off"). Unset: the defaults. kInvalidArgument for other values.
Result<WeightCacheOptions> weight_cache_from_environment();

}  // namespace weir::model
