// SPDX-License-Identifier: Apache-2.0
// Packed weights: the backend's own order of the same bits, made once, in parallel, kept in a cache file, and only mapped by
// later starts. The file's pages are given back as they are read, so that memory holds one copy.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"
#include "model/model.h"

namespace weir::model {

struct WeightCacheOptions {
  bool enabled = true;
  std::filesystem::path folder = {};                    // empty: $WEIR_CACHE/weights, else ~/.cache/weir/weights
  std::uint64_t limit_bytes = std::uint64_t{64} << 30;  // of the whole folder
};

struct WeightCacheReport {
  std::uint64_t bytes = 0;  // packed; 0 when nothing was to be packed
  bool made = false;        // by this call, rather than found
  double seconds = 0;
  std::string note = {};  // why weights are used as the file has them, when they are
};

// Sets Weight::packed of every linear layer that the model's backend packs. A cache that cannot be written is no failure: the note
// says so and the model works from its file, with the same results. The key is each file's path, size, time of change and
// inode, the layout of the backend, and every weight's place.
WeightCacheReport attach_packed_weights(Model& model, const WeightCacheOptions& options);

// From WEIR_WEIGHT_CACHE: "off" turns it off, anything else is the folder. Unset: the defaults.
WeightCacheOptions weight_cache_from_environment();

}  // namespace weir::model
