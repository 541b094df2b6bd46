// SPDX-License-Identifier: Apache-2.0
// From a path to what a forward pass needs: traits and weights. Model::load adds a backend; tools that only look at a file
// (weir show) stop here.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "model/traits.h"
#include "model/weights.h"

namespace weir::formats {
class GgufFile;
struct HfFolder;
}  // namespace weir::formats

namespace weir::model {

struct ModelParts {
  Traits traits;
  Weights weights;
};

// A GGUF file (the first of a split one) or a Hugging Face folder. Errors name the tensor, or the key of the file.
Result<ModelParts> load_parts(const std::filesystem::path& path);

// The same from what is already open. The weights keep its mapped files; bytes that were parsed in place must outlive them.
// kUntilPacked leaves Weights::deferred to attach_packed_weights(), which must follow before a forward pass.
enum class Deferral { kNone, kUntilPacked };
Result<ModelParts> load_gguf(const formats::GgufFile& file);
Result<ModelParts> load_folder(const formats::HfFolder& folder, Deferral deferral = Deferral::kNone);

}  // namespace weir::model
