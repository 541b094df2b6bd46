// SPDX-License-Identifier: Apache-2.0
// Models with a classification head: scores for each label of a text, or of two texts that are read together. What becomes of the
// raw outputs follows sentence-transformers' CrossEncoder and transformers' pipelines: what config.json names, else the sigmoid of a
// single label, the softmax of several, or the sigmoid of each for "multi_label_classification".
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/sequence_pass.h"
#include "engine/text_input.h"

namespace weir::engine {

enum class ScoreFunction { kNone, kSigmoid, kSoftmax };

struct ClassifyRequest {
  std::span<const TextInput> inputs;
  bool cut = false;  // as in EmbedRequest
  std::optional<std::int64_t> max_tokens = {};
  std::optional<ScoreFunction> function = {};  // none: the model's own
};

struct Classification {
  std::vector<float> logits;   // one for each label
  std::vector<double> scores;  // the same through the score function
  std::int32_t best = 0;       // the label of the highest score; ties go to the lower one
  std::int64_t tokens = 0, cut = 0;
};

class Classifier {
 public:
  // kUnsupported when the model has no such head. `loaded` must outlive it; its model serves one call at a time.
  static Result<Classifier> create(LoadedModel& loaded);

  std::int32_t labels() const { return loaded_->model->traits().classifier.labels; }
  std::string label(std::int32_t index) const;  // "LABEL_0" where the file has no names
  ScoreFunction function() const { return function_; }
  std::int64_t max_tokens() const { return input_limit(*loaded_, files_limit_); }

  // In the order of the inputs. kInvalidArgument names the input; kCorrupt when an output is not a finite number.
  Result<std::vector<Classification>> classify(const ClassifyRequest& request);
  // The same for inputs that are encoded already.
  Result<std::vector<Classification>> classify_encoded(std::span<const EncodedInput> inputs, ScoreFunction function);

 private:
  Classifier(LoadedModel& loaded, ScoreFunction function, std::int64_t files_limit)
      : loaded_(&loaded), pass_(*loaded.model), function_(function), files_limit_(files_limit) {}
  Status run_head(std::span<const float> states, std::span<Classification> out);

  LoadedModel* loaded_;
  SequencePass pass_;
  ScoreFunction function_;
  std::int64_t files_limit_;
};

std::vector<double> apply_score_function(ScoreFunction function, std::span<const float> logits);

}  // namespace weir::engine
