// SPDX-License-Identifier: Apache-2.0
// weir bench engine: prefill and decode speed of a model, by batch size, with shares of the machine's limits.
#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "base/clock.h"
#include "base/file_io.h"
#include "base/log.h"
#include "base/system_memory.h"
#include "base/units.h"
#include "bench.h"
#include "bench/cold_start.h"
#include "bench/engine_speed.h"
#include "bench/machine.h"
#include "bench/service_speed.h"
#include "bench_record.h"
#include "engine/generation.h"
#include "model_options.h"
#include "store/resolve.h"
#include "verbs.h"

namespace weir::cli {
namespace {

struct EngineVerb {
  ModelOptions model;
  bench::EngineSpeedOptions options;
  std::string kv_type = "auto", json;
  std::string through = "engine", csv;
  bool cold = false, first_token = false;
  RecordOptions record;
};

// What the run was made with: the same for every result of it.
struct Setting {
  bench::Machine machine = bench::describe_machine();
  std::string date = bench::utc_now();
  int threads = 1;
  double load_s = 0;
};

std::uint64_t file_bytes(const engine::LoadedModel& loaded) {
  std::uint64_t bytes = 0;
  for (const auto& file : loaded.model->weights().files) bytes += file->bytes().size();
  return bytes;
}

json::Object to_json(const Setting& setting, const engine::LoadedModel& loaded, const EngineVerb& verb, const kernels::Limits& limits,
                     const std::vector<bench::EngineCase>& cases) {
  json::Array results;
  for (const bench::EngineCase& c : cases) results.push_back(bench::to_json(c, limits));
  const ProcessMemory memory = process_memory();
  return {{"weir", WEIR_VERSION},
          {"date", setting.date},
          {"machine", bench::to_json(setting.machine)},
          {"cpu", setting.machine.cpu},
          {"isa", loaded.backend->description()},
          {"threads", setting.threads},
          {"model", loaded.path.string()},
          {"file_bytes", file_bytes(loaded)},
          {"kv_type", dtype_name(verb.options.kv_type)},
          {"activations", verb.model.activations},
          {"through", verb.through},
          {"runs", verb.options.runs},
          {"load_s", setting.load_s},
          {"resident_bytes", memory.resident},
          {"peak_resident_bytes", memory.peak},
          {"limits", kernels::to_json(limits)},
          {"results", std::move(results)}};
}

void print_case(std::FILE* to, const bench::EngineCase& c, const kernels::Limits& limits) {
  const Spread prefill = c.prefill_tokens_per_s(), decode = c.decode_tokens_per_s();
  const auto best_prefill = kernels::best_time(c.prefill_work, limits), best_step = kernels::best_time(c.step_work, limits);
  const double prefill_share = best_prefill.seconds * prefill.median / static_cast<double>(c.prefilled_tokens());
  const double step_share = best_step.seconds * decode.median / c.batch;
  fmt::print(to, "{:>5}  {:>9.1f} {:>17} {:>4.0f} % {:<6}  {:>9.1f} {:>17} {:>4.0f} % {:<6}  {:>9}\n", c.batch, prefill.median,
             fmt::format("{:.1f}..{:.1f}", prefill.min, prefill.max), 100 * prefill_share, best_prefill.bound, decode.median,
             fmt::format("{:.1f}..{:.1f}", decode.min, decode.max), 100 * step_share, best_step.bound,
             format_bytes(static_cast<std::uint64_t>(c.step_work.bytes)));
  std::fflush(to);
}

void print_header(std::FILE* to, const Setting& setting, const engine::LoadedModel& loaded, const EngineVerb& verb,
                  const kernels::Limits& limits) {
  fmt::print(to, "{} ({}), {}\n{}; loaded in {}\n", log::printable(loaded.path.filename().string()), format_bytes(file_bytes(loaded)),
             loaded.backend->description(), setting.machine.cpu, format_duration(setting.load_s));
  fmt::print(to, "limits now, {} threads: read {:.1f} GB/s ({}, {})", limits.threads, limits.read.per_s * 1e-9,
             format_bytes(limits.working_set), limits.read.by);
  for (const auto& [arithmetic, roof] : limits.arithmetic)
    fmt::print(to, ", {} {:.0f} Gop/s", kernels::arithmetic_name(arithmetic), roof.per_s * 1e-9);
  fmt::print(to, "\nthrough the {}: prompt {}, generate {}, depth {}, median of {} (min..max), share of the limit and what bounds it\n\n",
             verb.through, verb.options.prompt, verb.options.generate, verb.options.depth, verb.options.runs);
  fmt::print(to, "{:>5}  {:>9} {:>17} {:>13}  {:>9} {:>17} {:>13}  {:>9}\n", "batch", "prefill", "tokens/s", "share", "decode",
             "tokens/s, total", "share", "read/step");
}

Status write_csv(const std::string& target, const std::vector<bench::EngineCase>& cases, const kernels::Limits& limits) {
  std::string text =
      "batch,prompt,generate,depth,prefill_tokens_per_s,decode_tokens_per_s,decode_tokens_per_s_per_stream,"
      "decode_gb_per_s,prefill_share_of_limit,decode_share_of_limit\n";
  for (const bench::EngineCase& c : cases) {
    const double prefill = c.prefill_tokens_per_s().median, decode = c.decode_tokens_per_s().median;
    text += fmt::format("{},{},{},{},{:.2f},{:.2f},{:.2f},{:.3f},{:.4f},{:.4f}\n", c.batch, c.prompt, c.generate, c.depth, prefill, decode,
                        decode / c.batch, c.step_work.bytes * decode / c.batch * 1e-9,
                        kernels::best_time(c.prefill_work, limits).seconds * prefill / static_cast<double>(c.prefilled_tokens()),
                        kernels::best_time(c.step_work, limits).seconds * decode / c.batch);
  }
  if (target != "-") return write_file_atomically(target, text);
  fmt::print("{}", text);
  return {};
}

std::vector<loadgen::Figure> figures_of(const std::vector<bench::EngineCase>& cases) {
  std::vector<loadgen::Figure> figures;
  for (const bench::EngineCase& c : cases) {
    figures.push_back({fmt::format("batch {} prefill", c.batch), "tokens/s", c.prefill_tokens_per_s().median, true});
    figures.push_back({fmt::format("batch {} decode", c.batch), "tokens/s", c.decode_tokens_per_s().median, true});
  }
  return figures;
}

// What --cold starts: load, one token, one line.
Status print_first_token(const EngineVerb& verb) {
  const TimePoint start = steady_clock().now();
  WEIR_ASSIGN(engine::LoadedModel loaded, load(verb.model));
  WEIR_ASSIGN(const json::Object line, bench::take_first_token(loaded, to_seconds(steady_clock().now() - start), verb.options.seed));
  return write_json("-", line);
}

Status run_cold(const EngineVerb& verb) {
  WEIR_ASSIGN(const std::filesystem::path path, store::resolve(verb.model.model));
  std::vector<std::string> command = {"/proc/self/exe", "bench", "engine", path.string(), "--first-token"};
  command.push_back(fmt::format("--threads={}", verb.model.threads));
  command.push_back("--activations=" + verb.model.activations);
  if (!verb.model.isa.empty()) command.push_back("--isa=" + verb.model.isa);
  WEIR_ASSIGN(const auto runs, bench::measure_cold_starts(command, verb.options.runs));
  const json::Object cold = bench::to_json(runs);
  WEIR_ASSIGN(const double first, json::get_double(cold, "first_token_s"));
  WEIR_ASSIGN(const double resident, json::get_double(cold, "peak_resident_bytes"));
  fmt::print(verb.json == "-" ? stderr : stdout, "{}: process start to first token of a {}-token prompt {}, peak resident memory {}\n",
             log::printable(path.filename().string()), bench::kColdPrompt, format_duration(first),
             format_bytes(static_cast<std::uint64_t>(resident)));
  if (verb.json.empty()) return {};
  const bench::Machine machine = bench::describe_machine();
  return write_json(verb.json, {{"weir", WEIR_VERSION},
                                {"date", bench::utc_now()},
                                {"machine", bench::to_json(machine)},
                                {"cpu", machine.cpu},
                                {"threads", verb.model.threads > 0 ? verb.model.threads : usable_processors()},
                                {"model", path.string()},
                                {"cold", cold},
                                {"results", json::Array()}});
}

Status run(EngineVerb& verb) {
  if (verb.first_token) return print_first_token(verb);
  if (verb.cold && verb.record.wanted())
    return fail(ErrorCode::kInvalidArgument, "--record goes with the table of batches, not with --cold");
  if (verb.cold) return run_cold(verb);
  catch_interrupts();
  WEIR_ASSIGN(const auto kv_type, engine::parse_kv_type(verb.kv_type));
  verb.options.activations = cpu_options(verb.model).activations;
  Setting setting;
  setting.threads = verb.model.threads > 0 ? verb.model.threads : usable_processors();
  const TimePoint start = steady_clock().now();
  WEIR_ASSIGN(engine::LoadedModel loaded, pull_and_load(verb.model));
  setting.load_s = to_seconds(steady_clock().now() - start);
  verb.options.kv_type = kv_type.value_or(loaded.backend->kv_type());
  WEIR_TRY(bench::check_options(loaded, verb.options));

  const std::uint64_t working_set = loaded.model->active_weight_bytes();
  WEIR_ASSIGN(kernels::Limits limits, kernels::measure_limits(setting.threads, working_set));
  std::FILE* table = verb.json == "-" || verb.csv == "-" ? stderr : stdout;
  print_header(table, setting, loaded, verb, limits);
  std::vector<bench::EngineCase> cases;
  for (const std::int32_t batch : verb.options.batches) {
    const auto measure = verb.through == "model" ? bench::measure_engine : bench::measure_service;
    WEIR_ASSIGN(auto result, measure(loaded, verb.options, batch, limits, [] { return !interrupted(); }, steady_clock()));
    print_case(table, result, limits);
    cases.push_back(std::move(result));
  }
  if (!verb.csv.empty() && verb.record.may_write_others()) WEIR_TRY(write_csv(verb.csv, cases, limits));
  if (verb.json.empty() && !verb.record.wanted()) return {};
  WEIR_ASSIGN(const kernels::Limits after, kernels::measure_limits(setting.threads, working_set));
  kernels::merge_limits(limits, after);
  const json::Object results = to_json(setting, loaded, verb, limits, cases);
  WEIR_TRY(verb.record.write("engine", verb.options.seed, true, figures_of(cases), results));
  return verb.json.empty() || !verb.record.may_write_others() ? Status() : write_json(verb.json, results);
}

}  // namespace

void add_bench_engine(CLI::App& bench, int& exit_status) {
  auto verb = std::make_shared<EngineVerb>();
  bench::EngineSpeedOptions& o = verb->options;
  CLI::App* app = bench.add_subcommand("engine", "Prefill and decode speed of a model, by batch size, without a server");
  add_model_options(*app, verb->model);
  app->add_option("--prompt", o.prompt, "Tokens of each sequence's prompt")->check(CLI::Range(1, 1 << 30))->capture_default_str();
  app->add_option("--generate", o.generate, "Decode steps, one token of each sequence in each")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  app->add_option("--batch", o.batches, "Sequences at once; several sizes separated by commas")->delimiter(',')->capture_default_str();
  app->add_option("--depth", o.depth, "Tokens in each sequence before the prompt; not timed")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  app->add_option("--runs", o.runs, "Timed runs, after a warm-up; the median counts")->check(CLI::Range(1, 1000))->capture_default_str();
  app->add_option("--chunk", o.chunk, "Rows of a prefill step at most")->check(CLI::Range(1, 65536))->capture_default_str();
  app->add_option("--kv-type", verb->kv_type, "Element type of the KV cache: f32, f16, bf16 or q8_0; auto: what suits the processor")
      ->capture_default_str();
  app->add_option("--seed", o.seed, "Of the random prompts")->capture_default_str();
  app->add_option("--through", verb->through,
                  "What is measured: 'engine', requests from submission to events, or 'model', forward passes alone")
      ->check(CLI::IsMember({"engine", "model"}))
      ->capture_default_str();
  app->add_flag("--cold", verb->cold, "Only time fresh processes: from their start to the first token of a 16-token prompt");
  app->add_flag("--first-token", verb->first_token, "What --cold starts: load, choose one token, print a line of JSON")->group("");
  app->add_option("--csv", verb->csv, "Also write the table as CSV to this file; '-' is standard output");
  app->add_option("--json", verb->json, "Also write JSON to this file; '-' is standard output, the table then goes to standard error");
  verb->record.add_to(*app);
  app->footer(
      "Prompts are random tokens, choices are greedy and end-of-text does not end a sequence. Shares are of what the machine\n"
      "could do at most, measured in the same run: docs/benchmarking.md says how.\n"
      "Examples:\n"
      "  weir bench engine smollm2                                       batches of 1, 8, 16 and 32\n"
      "  weir bench engine model.gguf --batch 1 --prompt 512 --generate 128 --json -\n"
      "  weir bench engine model.gguf --batch 1 --depth 4096 --prompt 512\n"
      "  weir bench engine model.gguf --cold\n");
  app->callback([verb, &exit_status] {
    if (auto status = run(*verb); !status) exit_status = interrupted() ? kExitInterrupted : report_error(status.error());
  });
}

Status write_json(const std::string& target, const json::Object& object) {
  const std::string text = boost::json::serialize(object) + "\n";
  if (target != "-") return write_file_atomically(target, text);
  fmt::print("{}", text);
  return {};
}

}  // namespace weir::cli
