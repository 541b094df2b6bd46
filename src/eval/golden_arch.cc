// SPDX-License-Identifier: Apache-2.0
// Architecture goldens: exact outputs of tiny random models (tests/data/arch), decoders and encoders, and sentence
// embeddings. `alt` holds the same for another reading of the file; a GGUF that cannot say `truncate: false` for gpt-oss's
// yarn ramp is compared with `truncated_ramp`.
#include <algorithm>
#include <cmath>

#include "engine/embedding.h"
#include "eval/golden_parts.h"
#include "sampling/logprobs.h"

namespace weir::eval {
namespace {

constexpr double kMinCosine = 0.99999;

double max_error(std::span<const float> found, std::span<const double> wanted) {
  double error = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) error = std::max(error, std::abs(found[i] - wanted[i]));
  return error;
}

// The sequences to compare with: the main ones, those of the named alternative, or for GGUF files of truncated_ramp.
Result<const json::Array*> choose_sequences(const engine::LoadedModel& loaded, const json::Object& root, const GoldenOptions& options,
                                            json::Object& summary) {
  std::string name = options.alternative;
  const json::Value* alternatives = json::find(root, "alt");
  const bool has = alternatives && alternatives->is_object();
  if (name.empty() && has && !std::filesystem::is_directory(loaded.path) && alternatives->get_object().contains("truncated_ramp"))
    name = "truncated_ramp";
  if (name.empty()) return read_array(root, "sequences");
  const json::Value* entry = has ? json::find(alternatives->get_object(), name) : nullptr;
  if (!entry || !entry->is_object()) return fail(ErrorCode::kNotFound, "no alternative '{}' in 'alt'", name);
  summary["alternative"] = name;
  return read_array(entry->get_object(), "sequences");
}

struct DecoderErrors {
  double last_logits = 0, log_sum_exp = 0, next_log_prob = 0, greedy_log_prob = 0;
  std::int64_t argmax_equal = 0, positions = 0;
  GreedyComparison greedy;
  double worst() const { return std::max(std::max(last_logits, log_sum_exp), std::max(next_log_prob, greedy_log_prob)); }
};

Result<DecoderErrors> compare_decoder(engine::LoadedModel& loaded, const json::Object& entry, const GoldenOptions& options) {
  const std::int32_t vocab = loaded.model->traits().vocab_size;
  WEIR_ASSIGN(const auto ids, read_ids(entry, "ids", vocab));
  WEIR_ASSIGN(const auto last_logits, read_doubles(entry, "last_logits"));
  WEIR_ASSIGN(const auto sums, read_doubles(entry, "logsumexp"));
  WEIR_ASSIGN(const auto next, read_doubles(entry, "next_logprob"));
  WEIR_ASSIGN(const auto argmax, read_ids(entry, "argmax", vocab));
  WEIR_ASSIGN(const auto greedy, read_ids(entry, "greedy", vocab));
  WEIR_ASSIGN(const auto margins, read_doubles(entry, "greedy_margin"));
  WEIR_ASSIGN(const auto log_probs, read_doubles(entry, "greedy_logprob"));
  if (ids.empty() || sums.size() != ids.size() || argmax.size() != ids.size() || next.size() + 1 != ids.size() ||
      last_logits.size() != static_cast<std::size_t>(vocab) || log_probs.size() != greedy.size())
    return fail(ErrorCode::kCorrupt, "the arrays of a sequence do not match its {} ids and the vocabulary of {}", ids.size(), vocab);

  DecoderErrors errors;
  WEIR_TRY(for_each_row(loaded, ids, options, [&](std::int64_t position, std::span<const float> logits) {
    const auto at = static_cast<std::size_t>(position);
    const double sum = sampling::log_sum_exp(logits);
    errors.log_sum_exp = std::max(errors.log_sum_exp, std::abs(sum - sums[at]));
    errors.argmax_equal += sampling::argmax(logits) == argmax[at];
    ++errors.positions;
    if (at < next.size())
      errors.next_log_prob = std::max(errors.next_log_prob, std::abs(logits[static_cast<std::size_t>(ids[at + 1])] - sum - next[at]));
    if (at + 1 == ids.size()) errors.last_logits = max_error(logits, last_logits);
  }));
  WEIR_ASSIGN(const auto found, run_greedy(loaded, ids, greedy));
  for (std::size_t i = 0; i < found.size(); ++i)
    if (found[i].id == greedy[i]) errors.greedy_log_prob = std::max(errors.greedy_log_prob, std::abs(found[i].log_prob - log_probs[i]));
  errors.greedy = compare_greedy(found, greedy, margins, greedy_epsilon(options));
  return errors;
}

CaseResult judge_decoder(const DecoderErrors& errors, double tolerance, std::size_t length) {
  CaseResult result{.name = fmt::format("length {}", length)};
  result.figures = {{"max_logit_error", errors.worst()},
                    {"last_logits_error", errors.last_logits},
                    {"logsumexp_error", errors.log_sum_exp},
                    {"next_logprob_error", errors.next_log_prob},
                    {"greedy_logprob_error", errors.greedy_log_prob},
                    {"positions", errors.positions},
                    {"argmax_equal", errors.argmax_equal},
                    {"steps_compared", errors.greedy.compared},
                    {"steps_equal", errors.greedy.equal}};
  if (errors.worst() > tolerance) {
    result.ok = false;
    result.detail = fmt::format("outputs differ by {:.3g}, allowed {:.3g}", errors.worst(), tolerance);
  } else if (!errors.greedy.ok()) {
    result.ok = false;
    result.detail = "greedy " + errors.greedy.detail;
  }
  return result;
}

Result<CaseResult> run_encoder_case(engine::LoadedModel& loaded, const json::Object& entry, double tolerance) {
  WEIR_ASSIGN(const auto ids, read_ids(entry, "ids", loaded.model->traits().vocab_size));
  WEIR_ASSIGN(const auto hidden, engine::encode_hidden(loaded, ids));
  const auto columns = static_cast<std::size_t>(loaded.model->traits().hidden);
  const std::span<const float> all(hidden);
  CaseResult result{.name = fmt::format("length {}", ids.size())};
  double worst = 0;
  const auto compare = [&](std::string_view key, std::span<const float> found) -> Status {
    if (!json::find(entry, key)) return {};
    WEIR_ASSIGN(const auto wanted, read_doubles(entry, key));
    if (wanted.size() != found.size())
      return fail(ErrorCode::kCorrupt, "'{}' has {} values, the model gives {}", key, wanted.size(), found.size());
    const double error = max_error(found, wanted);
    result.figures[fmt::format("{}_error", key)] = error;
    worst = std::max(worst, error);
    return {};
  };
  WEIR_TRY(compare("mean", engine::mean_rows(hidden, columns)));
  WEIR_TRY(compare("cls", all.first(columns)));
  WEIR_TRY(compare("last", all.last(columns)));
  if (loaded.model->weights().pooler) {
    WEIR_ASSIGN(const auto pooled, engine::pooler_output(loaded, all.first(columns)));
    WEIR_TRY(compare("pooler_output", pooled));
  }
  result.figures["max_logit_error"] = worst;
  result.ok = worst <= tolerance;
  if (!result.ok) result.detail = fmt::format("outputs differ by {:.3g}, allowed {:.3g}", worst, tolerance);
  return result;
}

Result<CaseResult> run_case(engine::LoadedModel& loaded, const json::Object& entry, double tolerance, const GoldenOptions& options) {
  if (loaded.model->traits().encoder) return run_encoder_case(loaded, entry, tolerance);
  WEIR_ASSIGN(const DecoderErrors errors, compare_decoder(loaded, entry, options));
  return judge_decoder(errors, tolerance, static_cast<std::size_t>(errors.positions));
}

// Totals over the cases: the largest of each error, the sum of each count.
void summarize(FileReport& report) {
  for (const CaseResult& c : report.cases) {
    for (const auto& [key, value] : c.figures) {
      const bool is_error = key.ends_with("_error");
      if (!report.summary.contains(key)) {
        report.summary[key] = value;
      } else if (is_error) {
        report.summary[key] = std::max(report.summary[key].to_number<double>(), value.to_number<double>());
      } else {
        report.summary[key] = report.summary[key].to_number<std::int64_t>() + value.to_number<std::int64_t>();
      }
    }
  }
}

}  // namespace

Result<FileReport> run_architecture_golden(engine::LoadedModel& loaded, const json::Object& root, const GoldenOptions& options) {
  FileReport report{.format = "architecture"};
  WEIR_ASSIGN(const double stored_tolerance, json::get_double_or(root, "tolerance_f32", 3.3e-4));
  const double tolerance = options.tolerance > 0 ? options.tolerance : 3 * stored_tolerance;
  WEIR_ASSIGN(const json::Array* sequences, choose_sequences(loaded, root, options, report.summary));
  for (const json::Value& value : *sequences) {
    WEIR_ASSIGN(const json::Object* entry, json::as_object(value, "sequences"));
    WEIR_ASSIGN(CaseResult result, run_case(loaded, *entry, tolerance, options));
    report.add(std::move(result));
  }
  report.summary["tolerance"] = tolerance;
  summarize(report);
  return report;
}

Result<FileReport> run_embedding_golden(engine::LoadedModel& loaded, const json::Object& root, const GoldenOptions&) {
  FileReport report{.format = "embedding"};
  double worst = 1;
  WEIR_ASSIGN(const json::Array* cases, read_array(root, "cases"));
  for (const json::Value& value : *cases) {
    WEIR_ASSIGN(const json::Object* entry, json::as_object(value, "cases"));
    WEIR_ASSIGN(const auto ids, read_ids(*entry, "ids", loaded.model->traits().vocab_size));
    WEIR_ASSIGN(const auto wanted, read_doubles(*entry, "embedding"));
    WEIR_ASSIGN(const auto hidden, engine::encode_hidden(loaded, ids));
    auto found = engine::mean_rows(hidden, static_cast<std::size_t>(loaded.model->traits().hidden));
    engine::normalize_l2(found);
    if (found.size() != wanted.size())
      return fail(ErrorCode::kCorrupt, "'embedding' has {} values, the model gives {}", wanted.size(), found.size());
    double dot = 0, norm = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      dot += found[i] * wanted[i];
      norm += wanted[i] * wanted[i];
    }
    const double cosine = norm > 0 ? dot / std::sqrt(norm) : 0;
    worst = std::min(worst, cosine);
    CaseResult result{.name = fmt::format("case {}", report.cases.size()), .ok = cosine >= kMinCosine};
    result.figures = {{"cosine", cosine}, {"max_error", max_error(found, wanted)}};
    if (!result.ok) result.detail = fmt::format("cosine {:.6f}, needed {}", cosine, kMinCosine);
    report.add(std::move(result));
  }
  report.summary = {{"min_cosine", worst}};
  return report;
}

}  // namespace weir::eval
