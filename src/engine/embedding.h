// SPDX-License-Identifier: Apache-2.0
// Vectors for texts: many inputs in few forward passes, pooled and normalised as the model's files ask. A text's vector has the same
// bits alone and among others.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/loaded_model.h"
#include "engine/pooling.h"
#include "engine/sequence_pass.h"
#include "engine/text_input.h"

namespace weir::engine {

struct EmbedRequest {
  std::span<const TextInput> inputs;
  std::optional<std::int64_t> dimensions = {};  // fewer than the model's, where it was trained for that
  std::optional<bool> normalize = {};           // none: as the model's files say
  std::optional<std::string> prompt_name = {};  // one of the model's prompts, put before each text; none: its default one
  std::optional<std::string> prompt = {};       // or a text of the caller's own
  std::size_t first_number = 0;                 // of the first input, in errors
  bool cut = false;                             // inputs that are too long are cut, else they are an error
  std::optional<std::int64_t> max_tokens = {};  // a lower limit than the model's
};

struct Embedding {
  std::vector<float> values;  // with Pooling::kNone: a vector for each token, one behind the other
  std::int64_t tokens = 0;    // that were read, special ones included
  std::int64_t cut = 0;       // that were left out
};

// What the operator may set against the files.
struct EmbedderOptions {
  std::optional<model::Pooling> pooling = {};
  bool any_dimension = false;    // for Matryoshka models whose files do not say so
  std::int32_t max_rows = 1024;  // of a forward pass
};

class Embedder {
 public:
  // `loaded` must outlive it; its model serves one call at a time.
  static Result<Embedder> create(LoadedModel& loaded, const EmbedderOptions& options = {});

  const PoolingSpec& spec() const { return spec_; }
  std::int64_t max_tokens() const { return input_limit(*loaded_, spec_.max_tokens); }  // 0 = no end

  // In the order of the inputs. kInvalidArgument names the input; kCorrupt when a vector is not made of finite numbers.
  Result<std::vector<Embedding>> embed(const EmbedRequest& request);

 private:
  Embedder(LoadedModel& loaded, PoolingSpec spec, std::int32_t max_rows);
  Result<std::string> prompt_of(const EmbedRequest& request) const;
  Result<std::int64_t> prompt_tokens(const std::string& prompt) const;
  Result<std::vector<EncodedInput>> encode(const EmbedRequest& request, const std::string& prompt) const;

  LoadedModel* loaded_;
  PoolingSpec spec_;
  SequencePass pass_;
};

// All hidden states of the ids, row by row: [ids, hidden], after the final norm.
Result<std::vector<float>> encode_hidden(LoadedModel& loaded, std::span<const TokenId> ids);

std::vector<float> mean_rows(std::span<const float> hidden, std::size_t columns);

// BERT's pooler: tanh(W · first row + b). kUnsupported when the model has none.
Result<std::vector<float>> pooler_output(LoadedModel& loaded, std::span<const float> first_row);

}  // namespace weir::engine
