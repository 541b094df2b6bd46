// SPDX-License-Identifier: Apache-2.0
#include "engine/classification.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "engine/pooling.h"
#include "formats/sentence_transformers.h"

namespace weir::engine {
namespace {

// "torch.nn.modules.activation.Sigmoid" and the like.
Result<std::optional<ScoreFunction>> named_function(const json::Object& config) {
  std::string name;
  if (const json::Value* section = json::find(config, "sentence_transformers"); section && section->is_object()) {
    WEIR_ASSIGN(name, json::get_string_or(section->get_object(), "activation_fn", ""));
  }
  if (name.empty()) {
    WEIR_ASSIGN(name, json::get_string_or(config, "sbert_ce_default_activation_function", ""));
  }
  if (name.empty()) return std::nullopt;
  if (name.ends_with("Identity")) return ScoreFunction::kNone;
  if (name.ends_with("Sigmoid")) return ScoreFunction::kSigmoid;
  if (name.ends_with("Softmax")) return ScoreFunction::kSoftmax;
  return fail(ErrorCode::kUnsupported, "config.json: the activation function {} is not supported", name);
}

Result<ScoreFunction> read_function(const LoadedModel& loaded) {
  WEIR_ASSIGN(const json::Object config, read_model_config(loaded.path));
  WEIR_ASSIGN(const auto named, named_function(config));
  if (named) return *named;
  WEIR_ASSIGN(const std::string problem, json::get_string_or(config, "problem_type", ""));
  if (problem == "regression") return ScoreFunction::kNone;
  const bool each = problem == "multi_label_classification" || loaded.model->traits().classifier.labels == 1;
  return each ? ScoreFunction::kSigmoid : ScoreFunction::kSoftmax;
}

double sigmoid(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }

}  // namespace

std::vector<double> apply_score_function(ScoreFunction function, std::span<const float> logits) {
  std::vector<double> scores(logits.begin(), logits.end());
  if (function == ScoreFunction::kSigmoid) std::ranges::transform(scores, scores.begin(), sigmoid);
  if (function != ScoreFunction::kSoftmax || scores.empty()) return scores;
  const double most = std::ranges::max(scores);
  double sum = 0;
  for (double& s : scores) sum += s = std::exp(s - most);
  for (double& s : scores) s /= sum;
  return scores;
}

Result<Classifier> Classifier::create(LoadedModel& loaded) {
  if (loaded.model->traits().classifier.labels == 0)
    return fail(ErrorCode::kUnsupported, "{} has no classification head", loaded.path.string());
  WEIR_ASSIGN(const ScoreFunction function, read_function(loaded));
  WEIR_ASSIGN(const auto files, formats::SentenceTransformers::read(loaded.path));
  return Classifier(loaded, function, files ? files->max_tokens.value_or(0) : 0);
}

std::string Classifier::label(std::int32_t index) const {
  const auto& names = loaded_->model->traits().classifier.names;
  const auto i = static_cast<std::size_t>(index);
  return i < names.size() ? names[i] : fmt::format("LABEL_{}", index);
}

// Logits of pooled states, row by row the same whatever their number.
Status Classifier::run_head(std::span<const float> states, std::span<Classification> out) {
  const std::int64_t hidden = loaded_->model->traits().hidden, rows = static_cast<std::int64_t>(out.size());
  std::vector<float> logits(out.size() * static_cast<std::size_t>(labels()));
  const kernels::Matrix matrix(logits.data(), rows, labels());
  WEIR_TRY(loaded_->model->classify({states.data(), rows, hidden}, matrix));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto row = matrix.row_span(static_cast<std::int64_t>(i));
    if (!std::ranges::all_of(row, [](float v) { return std::isfinite(v); }))
      return fail(ErrorCode::kCorrupt, "input {}: the model's output is not a finite number; its weights may be damaged", i);
    out[i].logits.assign(row.begin(), row.end());
  }
  return {};
}

Result<std::vector<Classification>> Classifier::classify_encoded(std::span<const EncodedInput> encoded, ScoreFunction function) {
  const model::Traits& traits = loaded_->model->traits();
  using Rows = SequencePass::Rows;
  const model::Pooling pooling = traits.classifier.pooling;
  const Rows rows = pooling == model::Pooling::kCls ? Rows::kFirst : pooling == model::Pooling::kLast ? Rows::kLast : Rows::kAll;
  std::vector<SequenceInput> inputs;
  for (const EncodedInput& e : encoded) inputs.push_back({e.ids, e.types});
  std::vector<float> states;
  std::optional<Pooler> pooler;
  WEIR_TRY(pass_.run(inputs, rows, model::Output::kHidden, [&](std::size_t i, std::int64_t first, kernels::ConstMatrix part) -> Status {
    if (!pooler) pooler.emplace(pooling, traits.hidden);
    pooler->add(first, part);
    if (rows == Rows::kAll && first + part.rows < static_cast<std::int64_t>(inputs[i].ids.size())) return {};
    const std::vector<float> pooled = pooler->finish();
    states.insert(states.end(), pooled.begin(), pooled.end());
    pooler.reset();
    return {};
  }));
  std::vector<Classification> out(inputs.size());
  WEIR_TRY(run_head(states, out));
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].scores = apply_score_function(function, out[i].logits);
    out[i].best = static_cast<std::int32_t>(std::ranges::max_element(out[i].scores) - out[i].scores.begin());
    out[i].tokens = static_cast<std::int64_t>(encoded[i].ids.size());
    out[i].cut = encoded[i].cut;
  }
  return out;
}

Result<std::vector<Classification>> Classifier::classify(const ClassifyRequest& request) {
  WEIR_ASSIGN(const InputLimits limits, request_limits(max_tokens(), request.max_tokens, request.cut));
  std::vector<EncodedInput> encoded;
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    auto input = encode_input(*loaded_, request.inputs[i], limits);
    if (!input) return std::unexpected(std::move(input).error().with_context(fmt::format("input {}", i)));
    encoded.push_back(std::move(*input));
  }
  return classify_encoded(encoded, request.function.value_or(function_));
}

}  // namespace weir::engine
