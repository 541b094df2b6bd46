// SPDX-License-Identifier: Apache-2.0
// What the files of an adapter say, whichever kind they are: for each changed weight its two matrices and the factor. What would change
// the result and is not understood is refused here, by the name of the key or tensor.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/mapped_file.h"
#include "base/result.h"
#include "tensor/view.h"

namespace weir::formats {
class GgufFile;
class TensorIndex;
}  // namespace weir::formats

namespace weir::model {

struct AdapterTensors {
  std::string module;  // the changed weight as this container names it, without ".weight"
  std::string a_name = {}, b_name = {};
  TensorView a = {}, b = {};  // [rank, in] and [out, rank]; experts in one tensor have one dimension more in front
  bool embedding = false;     // of tokens; a is then [vocab_size, rank] in GGUF and [rank, vocab_size] in PEFT
  double scale = 1;
};

struct AdapterFile {
  bool gguf = false;
  std::vector<AdapterTensors> tensors;
  std::vector<std::shared_ptr<const MappedFile>> files;  // that the views point into
};

// adapter_config.json and adapter_model.safetensors of a folder.
Result<AdapterFile> read_peft_adapter(const std::filesystem::path& folder);
Result<AdapterFile> read_peft_adapter(const json::Object& config, const formats::TensorIndex& index);
// `architecture`: of the model, as GGUF names it; null when it has no name there.
Result<AdapterFile> read_gguf_adapter(const formats::GgufFile& file, const char* architecture);

}  // namespace weir::model
