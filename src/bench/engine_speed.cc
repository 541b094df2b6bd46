// SPDX-License-Identifier: Apache-2.0
#include "bench/engine_speed.h"

#include <algorithm>

#include "base/system_memory.h"
#include "base/units.h"
#include "bench/model_cost.h"
#include "bench/prompts.h"
#include "engine/runner.h"
#include "model/sequence_memory.h"
#include "sampling/sampler.h"

namespace weir::bench {
namespace {

constexpr std::int32_t kBlockTokens = 32;
constexpr std::int64_t kMostTokens = std::int64_t{1} << 31;

// The sequences of one run, from opening them to closing them.
class Batch {
 public:
  Batch(engine::LoadedModel& loaded, const EngineSpeedOptions& options, engine::Runner& runner, const KeepGoing& keep_going)
      : options_(options), runner_(runner), keep_going_(keep_going), sampler_({}), tokens_(ordinary_tokens(loaded)) {}
  ~Batch() {
    for (const SeqId id : sequences_) runner_.close(id);
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  Status open(std::int32_t count, std::int64_t rope_length) {
    for (std::int32_t i = 0; i < count; ++i) {
      WEIR_ASSIGN(const SeqId id, runner_.open(static_cast<std::int32_t>(rope_length)));
      sequences_.push_back(id);
    }
    newest_.assign(sequences_.size(), 0);
    return {};
  }

  // Random tokens for each sequence in steps of at most `chunk` rows, which several sequences may share; then each one's first token.
  std::vector<std::vector<TokenId>> prompts(std::int64_t count, std::uint64_t salt) const {
    std::vector<std::vector<TokenId>> prompts;
    for (std::size_t i = 0; i < sequences_.size(); ++i)
      prompts.push_back(random_prompt(tokens_, count, options_.seed, salt * sequences_.size() + i));
    return prompts;
  }

  Status prefill(const std::vector<std::vector<TokenId>>& prompts) {
    std::vector<engine::Piece> pieces;
    std::vector<std::size_t> finished;  // sequences whose prompt ends in this step
    std::size_t rows = 0;
    const auto chunk = static_cast<std::size_t>(options_.chunk);
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      for (std::size_t begin = 0; begin < prompts[i].size();) {
        const std::size_t size = std::min(prompts[i].size() - begin, chunk - rows);
        const bool last = begin + size == prompts[i].size();
        pieces.push_back(
            {sequences_[i], std::span(prompts[i]).subspan(begin, size), last ? engine::Outputs::kLast : engine::Outputs::kNone});
        if (last) finished.push_back(i);
        begin += size;
        rows += size;
        if (rows == chunk) {
          WEIR_TRY(step(pieces, finished));
          rows = 0;
        }
      }
    }
    return rows > 0 ? step(pieces, finished) : Status();
  }

  // One token of each sequence.
  Status decode() {
    std::vector<engine::Piece> pieces;
    std::vector<std::size_t> all(sequences_.size());
    for (std::size_t i = 0; i < sequences_.size(); ++i) {
      pieces.push_back({sequences_[i], {&newest_[i], 1}, engine::Outputs::kLast});
      all[i] = i;
    }
    return step(pieces, all);
  }

 private:
  Status step(std::vector<engine::Piece>& pieces, std::vector<std::size_t>& outputs) {
    if (!keep_going_()) return fail(ErrorCode::kCancelled, "interrupted");
    WEIR_ASSIGN(const kernels::Matrix logits, runner_.step(pieces));
    for (std::size_t row = 0; row < outputs.size(); ++row) {
      WEIR_ASSIGN(newest_[outputs[row]], sampler_.sample(logits.row_span(static_cast<std::int64_t>(row)), 0));
    }
    pieces.clear();
    outputs.clear();
    return {};
  }

  const EngineSpeedOptions& options_;
  engine::Runner& runner_;
  const KeepGoing& keep_going_;
  sampling::Sampler sampler_;  // greedy
  std::vector<TokenId> tokens_;
  std::vector<SeqId> sequences_;
  std::vector<TokenId> newest_;
};

std::int64_t whole_blocks(std::int64_t tokens) { return (tokens + kBlockTokens - 1) / kBlockTokens * kBlockTokens; }

Status check_sizes(const EngineSpeedOptions& o) {
  if (o.prompt < 1 || o.generate < 1 || o.depth < 0 || o.prompt > kMostTokens || o.generate > kMostTokens || o.depth > kMostTokens)
    return fail(ErrorCode::kInvalidArgument, "--prompt and --generate must be at least 1, --depth at least 0, all at most {}", kMostTokens);
  if (o.runs < 1 || o.chunk < 1) return fail(ErrorCode::kInvalidArgument, "--runs and --chunk must be at least 1");
  if (o.batches.empty()) return fail(ErrorCode::kInvalidArgument, "--batch names no batch size");
  for (const std::int32_t batch : o.batches)
    if (batch < 1 || batch > 4096) return fail(ErrorCode::kInvalidArgument, "a batch of {}: use 1 to 4096", batch);
  return {};
}

Status warm_up(Batch& batch, const EngineSpeedOptions& options, std::int32_t size) {
  WEIR_TRY(batch.open(size, options.prompt));
  const std::int64_t enough = (2 * std::int64_t{options.chunk} + size - 1) / size;  // two full steps in all
  WEIR_TRY(batch.prefill(batch.prompts(std::min(options.prompt, enough), 0)));
  for (int i = 0; i < 2 && i < options.generate; ++i) WEIR_TRY(batch.decode());
  return {};
}

Result<EngineRun> run_once(Batch& batch, const EngineSpeedOptions& options, std::int32_t size, const Clock& clock) {
  WEIR_TRY(batch.open(size, options.depth + options.prompt));
  if (options.depth > 0) WEIR_TRY(batch.prefill(batch.prompts(options.depth, 1)));
  const auto prompts = batch.prompts(options.prompt, 2);
  EngineRun run;
  const TimePoint start = clock.now();
  WEIR_TRY(batch.prefill(prompts));
  TimePoint last = clock.now();
  run.prefill_s = to_seconds(last - start);
  for (std::int64_t i = 0; i < options.generate; ++i) {
    WEIR_TRY(batch.decode());
    const TimePoint now = clock.now();
    run.decode_s += to_seconds(now - last);
    run.slowest_step_s = std::max(run.slowest_step_s, to_seconds(now - last));
    last = now;
  }
  return run;
}

Spread rates(const std::vector<EngineRun>& runs, std::int64_t tokens, double EngineRun::* seconds) {
  std::vector<double> values;
  for (const EngineRun& run : runs) values.push_back(run.*seconds > 0 ? static_cast<double>(tokens) / run.*seconds : 0);
  return spread_of(std::move(values));
}

}  // namespace

Spread EngineCase::prefill_tokens_per_s() const { return rates(runs, prefilled_tokens(), &EngineRun::prefill_s); }
Spread EngineCase::decode_tokens_per_s() const { return rates(runs, decoded_tokens(), &EngineRun::decode_s); }

void count_work(EngineCase& result, const engine::LoadedModel& loaded, const EngineSpeedOptions& options, const kernels::Limits& limits) {
  const ModelCost cost(*loaded.model, options.kv_type, options.activations, limits);
  const std::int64_t rows = result.prefilled_tokens(), chunk = options.chunk;
  for (std::int64_t done = 0; done < rows; done += chunk) {
    const std::int64_t here = std::min(chunk, rows - done);
    const kernels::Work work = cost.step(here, std::min<std::int64_t>(here, (done + here) / options.prompt - done / options.prompt));
    result.prefill_work.bytes += work.bytes;
    for (const auto& [arithmetic, ops] : work.ops) result.prefill_work.ops[arithmetic] += ops;
  }
  const double context = static_cast<double>(options.depth + options.prompt) + static_cast<double>(options.generate + 1) / 2;
  result.weight_bytes = cost.weight_bytes(result.batch);
  result.kv_bytes = result.batch * cost.context_bytes(context);
  result.step_work = cost.step(result.batch, result.batch);
  result.step_work.bytes += result.kv_bytes;
}

std::int64_t tokens_per_sequence(const EngineSpeedOptions& o) { return o.depth + o.prompt + o.generate; }

Status check_options(const engine::LoadedModel& loaded, const EngineSpeedOptions& options) {
  WEIR_TRY(check_sizes(options));
  const model::Traits& traits = loaded.model->traits();
  if (traits.encoder)
    return fail(ErrorCode::kUnsupported, "{} is an encoder: it generates nothing that could be measured", loaded.path.string());
  const std::int64_t tokens = tokens_per_sequence(options);
  const std::int64_t most = traits.max_positions > 0 ? traits.max_positions : traits.max_context;
  if (most > 0 && tokens > most)
    return fail(ErrorCode::kInvalidArgument, "depth {}, prompt {} and {} generated tokens make {}, and {} was made for {} at most",
                options.depth, options.prompt, options.generate, tokens, loaded.path.filename().string(), most);
  const std::int32_t largest = std::ranges::max(options.batches);
  const double needed =
      static_cast<double>(largest) *
      (static_cast<double>(model::SequenceMemory::bytes_per_token(traits, options.kv_type)) * static_cast<double>(whole_blocks(tokens)) +
       static_cast<double>(model::SequenceMemory::bytes_per_state(traits)));
  if (const auto free = available_memory(); free && needed > 0.9 * static_cast<double>(*free))
    return fail(ErrorCode::kExhausted,
                "{} sequences of {} tokens need {} for keys and values, and {} of memory is free: use a smaller "
                "--batch, --depth or --prompt, or --kv-type f16",
                largest, tokens, format_bytes(static_cast<std::uint64_t>(needed)), format_bytes(*free));
  return {};
}

Result<EngineCase> measure_engine(engine::LoadedModel& loaded, const EngineSpeedOptions& options, std::int32_t batch,
                                  const kernels::Limits& limits, const KeepGoing& keep_going, const Clock& clock) {
  WEIR_TRY(check_options(loaded, options));
  engine::Runner runner(*loaded.model, {.max_tokens = batch * whole_blocks(tokens_per_sequence(options)),
                                        .block_tokens = kBlockTokens,
                                        .max_sequences = batch,
                                        .kv_type = options.kv_type});
  EngineCase result{.batch = batch, .prompt = options.prompt, .generate = options.generate, .depth = options.depth};
  {
    Batch first(loaded, options, runner, keep_going);
    WEIR_TRY(warm_up(first, options, batch));
  }
  for (int i = 0; i < options.runs; ++i) {
    Batch sequences(loaded, options, runner, keep_going);
    WEIR_ASSIGN(const EngineRun run, run_once(sequences, options, batch, clock));
    result.runs.push_back(run);
  }
  count_work(result, loaded, options, limits);
  return result;
}

json::Object to_json(const EngineCase& result, const kernels::Limits& limits) {
  const Spread prefill = result.prefill_tokens_per_s(), decode = result.decode_tokens_per_s();
  const auto range = [](const Spread& s) { return json::Array{s.min, s.max}; };
  json::Array runs;
  for (const EngineRun& run : result.runs)
    runs.push_back(json::Object{{"prefill_s", run.prefill_s}, {"decode_s", run.decode_s}, {"slowest_step_s", run.slowest_step_s}});
  const kernels::BestTime prefill_best = kernels::best_time(result.prefill_work, limits),
                          step_best = kernels::best_time(result.step_work, limits);
  const double prefilled = static_cast<double>(result.prefilled_tokens());
  return {{"batch", result.batch},
          {"prompt", result.prompt},
          {"generate", result.generate},
          {"depth", result.depth},
          {"prefill_tokens_per_s", prefill.median},
          {"decode_tokens_per_s", decode.median},
          {"spread", json::Object{{"prefill_tokens_per_s", range(prefill)}, {"decode_tokens_per_s", range(decode)}}},
          {"bytes", result.weight_bytes + result.kv_bytes},
          {"weight_bytes", result.weight_bytes},
          {"kv_bytes", result.kv_bytes},
          {"share_of_limit", json::Object{{"prefill", prefill_best.seconds * prefill.median / prefilled},
                                          {"decode", step_best.seconds * decode.median / result.batch}}},
          {"bound_by", json::Object{{"prefill", prefill_best.bound}, {"decode", step_best.bound}}},
          {"prefilled_tokens", result.prefilled_tokens()},
          {"decoded_tokens", result.decoded_tokens()},
          {"runs", std::move(runs)}};
}

}  // namespace weir::bench
