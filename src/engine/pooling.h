// SPDX-License-Identifier: Apache-2.0
// How the hidden states of a sequence become one vector, as data: read from what sentence-transformers keeps beside a model, from a
// GGUF file's pooling_type, or the model's kind; and carried out in double, row after row, so that the result does not depend on
// how the rows were batched.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/loaded_model.h"

namespace weir::engine {

// A layer between pooling and normalisation ("2_Dense").
struct DenseStep {
  std::vector<float> weight;  // [out, in]
  std::vector<float> bias;    // [out] or empty
  std::int64_t in = 0, out = 0;
  bool tanh = false;
};

struct PoolingSpec {
  model::Pooling mode = model::Pooling::kMean;
  bool normalize = true;       // to Euclidean length 1
  bool include_prompt = true;  // false: the prompt's tokens are not pooled
  std::vector<DenseStep> dense;
  std::int64_t size = 0;  // of the vectors

  std::int64_t max_tokens = 0;  // of a text, as the files say; 0 = they do not
  std::map<std::string, std::string> prompts;
  std::string default_prompt;  // a key of `prompts` or ""

  bool any_dimension = false;            // vectors may be cut to any length (Matryoshka), or
  std::vector<std::int64_t> dimensions;  // to these
  std::int64_t cut_dimension = 0;        // to which the files say that they are cut; 0 = not at all

  std::string source;  // who says how to pool: "1_Pooling/config.json", "pooling_type", "default for decoders"
};

// kUnsupported names what the files ask for and this program does not do: never another vector in its place.
Result<PoolingSpec> read_pooling_spec(const LoadedModel& loaded);

// config.json of a folder; an empty object for a GGUF file.
Result<json::Object> read_model_config(const std::filesystem::path& path);

// Whether vectors may have this many dimensions; kInvalidArgument says which are possible.
Status check_dimensions(const PoolingSpec& spec, std::int64_t dimensions);

// One sequence's rows, given in order and in any number of pieces.
class Pooler {
 public:
  // The first `skip` rows of the sequence are left out. Pooling::kNone keeps all rows, one behind the other.
  Pooler(model::Pooling mode, std::int64_t hidden, std::int64_t skip = 0);
  void add(std::int64_t first, kernels::ConstMatrix rows);
  std::vector<float> finish() const;  // empty when no row was left

 private:
  void add_row(std::int64_t position, std::span<const float> row);

  model::Pooling mode_;
  std::int64_t skip_;
  std::vector<double> sums_;
  std::vector<float> rows_;
  std::int64_t count_ = 0;
  double weights_ = 0;
};

// A pooled state through the dense steps, cut to `dimensions` (0 = all) and normalised when `normalize`.
std::vector<float> finish_vector(const PoolingSpec& spec, std::vector<float> pooled, std::int64_t dimensions, bool normalize);

void normalize_l2(std::span<float> vector);

}  // namespace weir::engine
