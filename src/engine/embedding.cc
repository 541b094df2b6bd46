// SPDX-License-Identifier: Apache-2.0
#include "engine/embedding.h"

#include <algorithm>
#include <cmath>

namespace weir::engine {

using model::Pooling;

Embedder::Embedder(LoadedModel& loaded, PoolingSpec spec, std::int32_t max_rows)
    : loaded_(&loaded), spec_(std::move(spec)), pass_(*loaded.model, max_rows) {}

Result<Embedder> Embedder::create(LoadedModel& loaded, const EmbedderOptions& options) {
  WEIR_ASSIGN(PoolingSpec spec, read_pooling_spec(loaded));
  if (options.pooling) spec.mode = *options.pooling;
  if (options.any_dimension) spec.any_dimension = true;
  return Embedder(loaded, std::move(spec), options.max_rows);
}

// What stands before each text.
Result<std::string> Embedder::prompt_of(const EmbedRequest& request) const {
  if (request.prompt) return *request.prompt;
  const std::string& name = request.prompt_name ? *request.prompt_name : spec_.default_prompt;
  if (name.empty()) return std::string{};
  const auto found = spec_.prompts.find(name);
  if (found != spec_.prompts.end()) return found->second;
  std::string known;
  for (const auto& [key, text] : spec_.prompts) known += fmt::format("{}\"{}\"", known.empty() ? "" : ", ", key);
  return fail(ErrorCode::kInvalidArgument, "this model has no prompt \"{}\"; it has {}", name, known.empty() ? "none" : known);
}

// Rows at the start of each text that belong to the prompt.
Result<std::int64_t> Embedder::prompt_tokens(const std::string& prompt) const {
  if (spec_.include_prompt || prompt.empty()) return 0;
  WEIR_ASSIGN(const tokenizer::Tokenizer* tokenizer, loaded_->require_tokenizer());
  return static_cast<std::int64_t>(tokenizer->encode(prompt).size() - tokenizer->text_suffix.size());
}

Result<std::vector<EncodedInput>> Embedder::encode(const EmbedRequest& request, const std::string& prompt) const {
  WEIR_ASSIGN(const InputLimits limits, request_limits(max_tokens(), request.max_tokens, request.cut));
  std::vector<EncodedInput> out;
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    const auto* text = std::get_if<std::string>(&request.inputs[i]);
    auto encoded =
        text && !prompt.empty() ? encode_input(*loaded_, prompt + *text, limits) : encode_input(*loaded_, request.inputs[i], limits);
    if (!encoded) return std::unexpected(std::move(encoded).error().with_context(fmt::format("input {}", request.first_number + i)));
    if (encoded->ids.empty()) return fail(ErrorCode::kInvalidArgument, "input {}: there is nothing to embed", request.first_number + i);
    out.push_back(std::move(*encoded));
  }
  return out;
}

namespace {

// The rows of a sequence that its pooling needs.
SequencePass::Rows rows_for(Pooling mode, std::int64_t skip) {
  if (mode == Pooling::kLast) return SequencePass::Rows::kLast;
  return mode == Pooling::kCls && skip == 0 ? SequencePass::Rows::kFirst : SequencePass::Rows::kAll;
}

bool all_finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float v) { return std::isfinite(v); });
}

}  // namespace

Result<std::vector<Embedding>> Embedder::embed(const EmbedRequest& request) {
  const std::int64_t dimensions = request.dimensions.value_or(spec_.cut_dimension > 0 ? spec_.cut_dimension : spec_.size);
  WEIR_TRY(check_dimensions(spec_, dimensions));
  WEIR_ASSIGN(const std::string prompt, prompt_of(request));
  WEIR_ASSIGN(const std::int64_t skip, prompt_tokens(prompt));
  WEIR_ASSIGN(const std::vector<EncodedInput> encoded, encode(request, prompt));
  const std::int64_t hidden = loaded_->model->traits().hidden;
  const bool normalize = request.normalize.value_or(spec_.normalize);

  std::vector<SequenceInput> inputs;
  for (const EncodedInput& e : encoded) inputs.push_back({e.ids, e.types});
  std::vector<Embedding> out(inputs.size());
  std::optional<Pooler> pooler;
  const auto finish = [&](std::size_t i) -> Status {
    const std::vector<float> pooled = pooler->finish();
    pooler.reset();
    if (pooled.empty())
      return fail(ErrorCode::kInvalidArgument, "input {}: nothing is left to embed behind its prompt", request.first_number + i);
    for (std::size_t at = 0; at < pooled.size(); at += static_cast<std::size_t>(hidden)) {
      const auto vector = finish_vector(
          spec_, {pooled.begin() + static_cast<std::ptrdiff_t>(at), pooled.begin() + static_cast<std::ptrdiff_t>(at) + hidden}, dimensions,
          normalize);
      out[i].values.insert(out[i].values.end(), vector.begin(), vector.end());
    }
    if (!all_finite(out[i].values))
      return fail(ErrorCode::kCorrupt, "input {}: the model's vector is not made of finite numbers; its weights may be damaged",
                  request.first_number + i);
    out[i].tokens = static_cast<std::int64_t>(encoded[i].ids.size());
    out[i].cut = encoded[i].cut;
    return {};
  };
  const SequencePass::Rows rows = rows_for(spec_.mode, skip);
  WEIR_TRY(pass_.run(inputs, rows, model::Output::kHidden, [&](std::size_t i, std::int64_t first, kernels::ConstMatrix states) -> Status {
    const bool text = std::holds_alternative<std::string>(request.inputs[i]);
    if (!pooler) pooler.emplace(spec_.mode, hidden, text ? skip : 0);
    pooler->add(first, states);
    const bool last = rows != SequencePass::Rows::kAll || first + states.rows == static_cast<std::int64_t>(inputs[i].ids.size());
    return last ? finish(i) : Status{};
  }));
  return out;
}

Result<std::vector<float>> encode_hidden(LoadedModel& loaded, std::span<const TokenId> ids) {
  if (ids.empty()) return fail(ErrorCode::kInvalidArgument, "nothing to embed: the text gives no tokens");
  SequencePass pass(*loaded.model);
  const SequenceInput input{ids};
  std::vector<float> out;
  WEIR_TRY(pass.run({&input, 1}, SequencePass::Rows::kAll, model::Output::kHidden,
                    [&](std::size_t, std::int64_t, kernels::ConstMatrix rows) -> Status {
                      out.insert(out.end(), rows.data, rows.data + rows.rows * rows.cols);
                      return {};
                    }));
  return out;
}

std::vector<float> mean_rows(std::span<const float> hidden, std::size_t columns) {
  const auto width = static_cast<std::int64_t>(columns);
  Pooler pooler(Pooling::kMean, width);
  pooler.add(0, {hidden.data(), static_cast<std::int64_t>(hidden.size()) / width, width});
  return pooler.finish();
}

Result<std::vector<float>> pooler_output(LoadedModel& loaded, std::span<const float> first_row) {
  std::vector<float> out(first_row.size());
  const auto width = static_cast<std::int64_t>(out.size());
  WEIR_TRY(loaded.model->pool({first_row.data(), 1, width}, {out.data(), 1, width}));
  return out;
}

}  // namespace weir::engine
