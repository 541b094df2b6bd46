// SPDX-License-Identifier: Apache-2.0
// The golden formats' front door and shared parts.
#include "eval/golden.h"

#include <algorithm>

#include "base/file_io.h"
#include "eval/golden_parts.h"
#include "sampling/logprobs.h"

namespace weir::eval {
namespace {

// The pieces of a run: a runner with room for one sequence of this length.
engine::RunnerOptions room_for(std::size_t tokens) { return {.max_tokens = static_cast<std::int64_t>(tokens) + 1}; }

bool first_entry_has(const json::Object& root, std::string_view list, std::string_view key) {
  const json::Value* value = json::find(root, list);
  if (!value || !value->is_array() || value->get_array().empty()) return false;
  const json::Value& first = value->get_array().front();
  return first.is_object() && first.get_object().contains(key);
}

Result<FileReport> dispatch(engine::LoadedModel& loaded, const json::Object& root, const GoldenOptions& options) {
  if (first_entry_has(root, "sequences", "argmax_all")) return run_logit_golden(loaded, root, options);
  if (first_entry_has(root, "prompts", "generated_ids")) return run_greedy_golden(loaded, root, options);
  if (first_entry_has(root, "cases", "embedding")) return run_embedding_golden(loaded, root, options);
  if (first_entry_has(root, "sequences", "last_logits") || first_entry_has(root, "sequences", "mean"))
    return run_architecture_golden(loaded, root, options);
  return fail(ErrorCode::kCorrupt,
              "none of the golden formats (sequences[].argmax_all, prompts[].generated_ids, sequences[].last_logits or mean, "
              "cases[].embedding)");
}

}  // namespace

Result<FileReport> run_golden(engine::LoadedModel& loaded, const std::filesystem::path& file, const GoldenOptions& options) {
  WEIR_ASSIGN(const std::string text, read_file(file));
  WEIR_ASSIGN(const json::Value value, json::parse(text, file.string()));
  WEIR_ASSIGN(const json::Object* root, json::as_object(value, file.string()));
  auto report = dispatch(loaded, *root, options);
  if (!report) return std::unexpected(std::move(report.error()).with_context(file.string()));
  report->file = file.string();
  return report;
}

Result<const json::Array*> read_array(const json::Object& object, std::string_view key) {
  const json::Value* value = json::find(object, key);
  if (!value || !value->is_array()) return fail(ErrorCode::kCorrupt, "'{}' should be an array", key);
  return &value->get_array();
}

Result<std::vector<TokenId>> read_ids(const json::Object& object, std::string_view key, std::int32_t vocab_size) {
  WEIR_ASSIGN(const json::Array* array, read_array(object, key));
  std::vector<TokenId> ids;
  ids.reserve(array->size());
  for (const json::Value& value : *array) {
    WEIR_ASSIGN(const std::int64_t id, json::to_int(value, key));
    if (id < 0 || id >= vocab_size) return fail(ErrorCode::kCorrupt, "'{}' holds id {} but the model has {} tokens", key, id, vocab_size);
    ids.push_back(static_cast<TokenId>(id));
  }
  return ids;
}

Result<std::vector<double>> read_doubles(const json::Object& object, std::string_view key) {
  WEIR_ASSIGN(const json::Array* array, read_array(object, key));
  std::vector<double> values;
  values.reserve(array->size());
  for (const json::Value& value : *array) {
    WEIR_ASSIGN(const double number, json::to_double(value, key));
    values.push_back(number);
  }
  return values;
}

Status for_each_row(engine::LoadedModel& loaded, std::span<const TokenId> ids, const GoldenOptions& options,
                    const std::function<void(std::int64_t, std::span<const float>)>& row) {
  if (ids.empty()) return fail(ErrorCode::kCorrupt, "a sequence has no ids");
  const std::size_t piece = loaded.model->traits().encoder ? ids.size() : static_cast<std::size_t>(std::max(options.chunk, 1));
  engine::Runner runner(*loaded.model, room_for(ids.size()));
  WEIR_ASSIGN(const SeqId sequence, runner.open(static_cast<std::int32_t>(ids.size())));
  for (std::size_t begin = 0; begin < ids.size(); begin += piece) {
    const auto tokens = ids.subspan(begin, std::min(piece, ids.size() - begin));
    const engine::Piece pieces[] = {{sequence, tokens, engine::Outputs::kAll, !options.as_answer}};
    WEIR_ASSIGN(const kernels::Matrix rows, runner.step(pieces));
    for (std::int64_t r = 0; r < rows.rows; ++r) row(static_cast<std::int64_t>(begin) + r, rows.row_span(r));
  }
  return {};
}

Result<std::vector<GreedyStep>> run_greedy(engine::LoadedModel& loaded, std::span<const TokenId> prompt,
                                           std::span<const TokenId> reference) {
  engine::Runner runner(*loaded.model, room_for(prompt.size() + reference.size()));
  WEIR_ASSIGN(const SeqId sequence, runner.open(static_cast<std::int32_t>(prompt.size())));
  WEIR_ASSIGN(kernels::Matrix logits, runner.prefill(sequence, prompt, 64));
  std::vector<GreedyStep> steps;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const auto row = logits.row_span(0);
    const TokenId best = sampling::argmax(row);
    const float top = row[static_cast<std::size_t>(best)];
    steps.push_back({best, top - sampling::log_sum_exp(row), top});
    if (i + 1 == reference.size()) break;
    const engine::Piece pieces[] = {{sequence, reference.subspan(i, 1), engine::Outputs::kLast}};
    WEIR_ASSIGN(logits, runner.step(pieces));
  }
  return steps;
}

GreedyComparison compare_greedy(std::span<const GreedyStep> found, std::span<const TokenId> wanted, std::span<const double> margins,
                                double epsilon) {
  GreedyComparison result;
  for (std::size_t i = 0; i < wanted.size() && i < found.size(); ++i) {
    const double margin = i < margins.size() ? margins[i] : 0;
    if (margin < epsilon) {
      ++result.near_ties;
      continue;
    }
    ++result.compared;
    if (found[i].id == wanted[i]) {
      ++result.equal;
    } else if (result.detail.empty()) {
      result.detail = fmt::format("step {} gives {} instead of {} (reference margin {:.4g})", i, found[i].id, wanted[i], margin);
    }
  }
  return result;
}

double greedy_epsilon(const GoldenOptions& options) {
  if (options.epsilon >= 0) return options.epsilon;
  return options.activations == kernels::Activations::kInt8 ? 0.35 : 1e-3;
}

}  // namespace weir::eval
