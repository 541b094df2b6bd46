// SPDX-License-Identifier: Apache-2.0
// weir bench kernels: linear layers and attention alone, beside the limits of the machine and the reference.
#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "base/thread_pool.h"
#include "base/units.h"
#include "bench.h"
#include "bench/kernel_speed.h"
#include "bench/machine.h"
#include "verbs.h"

namespace weir::cli {
namespace {

struct KernelsVerb {
  std::vector<std::string> types = {"q4_0", "q4_1", "q8_0", "q4_k", "q6_k", "bf16"}, kv_types = {"f32", "f16", "bf16"};
  std::vector<std::int64_t> rows = {1, 8, 32, 512};
  std::vector<std::int32_t> depths = {512, 4096};
  std::string shape = "2048x8192", heads = "32x8x64", activations = "int8", isa;
  int threads = 0;
  bool prompt = false, no_linear = false, no_attention = false, json = false;
};

struct Row {
  std::string operation, type;
  std::int64_t rows = 1;
  bench::KernelCase result;
};

// "2048x8192" → its numbers, as many as `count`.
Result<std::vector<std::int64_t>> parse_sizes(const std::string& text, std::size_t count) {
  std::vector<std::int64_t> sizes;
  for (const std::string& part : CLI::detail::split(text, 'x')) {
    std::int64_t value = 0;
    if (!CLI::detail::lexical_cast(part, value) || value < 1 || value > 1 << 24)
      return fail(ErrorCode::kInvalidArgument, "'{}' is no size: use {} numbers with an x between them", text, count);
    sizes.push_back(value);
  }
  if (sizes.size() != count) return fail(ErrorCode::kInvalidArgument, "'{}': use {} numbers with an x between them", text, count);
  return sizes;
}

Result<std::vector<DType>> parse_types(const std::vector<std::string>& names) {
  std::vector<DType> types;
  for (const std::string& name : names) {
    if (name == "all") {
      for (int t = 0; t <= static_cast<int>(DType::kMXFP4); ++t) types.push_back(static_cast<DType>(t));
      continue;
    }
    const auto type = dtype_from_name(name);
    if (!type) return fail(ErrorCode::kInvalidArgument, "unknown type '{}'", name);
    types.push_back(*type);
  }
  return types;
}

double share(const bench::KernelCase& c, const kernels::Limits& limits) {
  return kernels::best_time(c.work, limits).seconds / c.seconds.median;
}

double total_ops(const bench::KernelCase& c) {
  double ops = 0;
  for (const auto& [arithmetic, count] : c.work.ops) ops += count;
  return ops;
}

void print_row(const Row& row, const kernels::Limits& limits) {
  const bench::KernelCase& c = row.result;
  fmt::print("{:<22} {:<7} {:>5}  {:>10} {:>8.1f} {:>8.1f}  {:>4.0f} % {:<7} {:>7.1f} ×  {:.1e} {}\n", row.operation, row.type, row.rows,
             format_duration(c.seconds.median), c.work.bytes / c.seconds.median * 1e-9, total_ops(c) / c.seconds.median * 1e-9,
             100 * share(c, limits), kernels::best_time(c.work, limits).bound, c.reference_speedup, c.error, c.right() ? "" : "WRONG");
  std::fflush(stdout);
}

json::Object to_json(const Row& row, const kernels::Limits& limits) {
  const bench::KernelCase& c = row.result;
  return {{"operation", row.operation},
          {"type", row.type},
          {"rows", row.rows},
          {"seconds", c.seconds.median},
          {"spread", json::Array{c.seconds.min, c.seconds.max}},
          {"bytes", c.work.bytes},
          {"working_set_bytes", c.working_set},
          {"gb_per_s", c.work.bytes / c.seconds.median * 1e-9},
          {"gop_per_s", total_ops(c) / c.seconds.median * 1e-9},
          {"share_of_limit", share(c, limits)},
          {"bound_by", kernels::best_time(c.work, limits).bound},
          {"speedup_over_reference", c.reference_speedup},
          {"error", c.error},
          {"tolerance", c.tolerance},
          {"right", c.right()}};
}

// Runs all cases; each finished one is printed at once.
class Cases {
 public:
  Cases(const KernelsVerb& verb, bench::KernelBench& bench, const kernels::Limits& limits) : verb_(verb), bench_(bench), limits_(limits) {}

  Status linear() {
    WEIR_ASSIGN(const auto types, parse_types(verb_.types));
    WEIR_ASSIGN(const auto size, parse_sizes(verb_.shape, 2));
    for (const DType type : types)
      for (const std::int64_t rows : verb_.rows) {
        if (interrupted()) return fail(ErrorCode::kCancelled, "interrupted");
        WEIR_ASSIGN(auto result, bench_.linear({.type = type, .rows = rows, .out = size[0], .in = size[1], .prompt = verb_.prompt}));
        add({.operation = fmt::format("linear {}x{}", size[0], size[1]),
             .type = dtype_name(type),
             .rows = rows,
             .result = std::move(result)});
      }
    return {};
  }

  Status attention() {
    WEIR_ASSIGN(const auto types, parse_types(verb_.kv_types));
    WEIR_ASSIGN(const auto heads, parse_sizes(verb_.heads, 3));
    for (const DType type : types)
      for (const std::int32_t depth : verb_.depths)
        for (const std::int64_t rows : verb_.rows) {
          if (rows > depth) continue;
          if (interrupted()) return fail(ErrorCode::kCancelled, "interrupted");
          WEIR_ASSIGN(auto result, bench_.attention({.kv_type = type,
                                                     .rows = static_cast<std::int32_t>(rows),
                                                     .depth = depth,
                                                     .heads = static_cast<std::int32_t>(heads[0]),
                                                     .kv_heads = static_cast<std::int32_t>(heads[1]),
                                                     .head_dim = static_cast<std::int32_t>(heads[2])}));
          add({.operation = fmt::format("attention at {}", depth), .type = dtype_name(type), .rows = rows, .result = std::move(result)});
        }
    return {};
  }

  const std::vector<Row>& rows() const { return rows_; }

 private:
  void add(Row row) {
    if (!verb_.json) print_row(row, limits_);
    rows_.push_back(std::move(row));
  }

  const KernelsVerb& verb_;
  bench::KernelBench& bench_;
  const kernels::Limits& limits_;
  std::vector<Row> rows_;
};

Status print_json(const KernelsVerb& verb, const bench::KernelBench& bench, const kernels::Limits& limits, const std::vector<Row>& rows) {
  json::Array results;
  for (const Row& row : rows) results.push_back(to_json(row, limits));
  const bench::Machine machine = bench::describe_machine();
  return write_json("-", {{"weir", WEIR_VERSION},
                          {"date", bench::utc_now()},
                          {"cpu", machine.cpu},
                          {"machine", bench::to_json(machine)},
                          {"isa", bench.backend().description()},
                          {"threads", verb.threads},
                          {"limits", kernels::to_json(limits)},
                          {"results", std::move(results)}});
}

Status run(KernelsVerb& verb, int& exit_status) {
  catch_interrupts();
  if (verb.threads == 0) verb.threads = usable_processors();
  bench::KernelOptions options;
  options.cpu = {.threads = verb.threads,
                 .activations = verb.activations == "f32" ? kernels::Activations::kF32 : kernels::Activations::kInt8,
                 .isa = verb.isa};
  options.working_set = bench::default_working_set();
  WEIR_ASSIGN(kernels::Limits limits, kernels::measure_limits(verb.threads, options.working_set));
  WEIR_ASSIGN(bench::KernelBench bench, bench::KernelBench::create(options, limits));
  if (!verb.json) {
    fmt::print("{}; limits now: read {:.1f} GB/s ({}, {})", bench.backend().description(), limits.read.per_s * 1e-9,
               format_bytes(limits.working_set), limits.read.by);
    for (const auto& [arithmetic, roof] : limits.arithmetic)
      fmt::print(", {} {:.0f} Gop/s", arithmetic_name(arithmetic), roof.per_s * 1e-9);
    fmt::print("\n\n{:<22} {:<7} {:>5}  {:>10} {:>8} {:>8}  {:>14} {:>9}  {}\n", "operation", "type", "rows", "time", "GB/s", "Gop/s",
               "of the limit", "reference", "difference");
  }
  Cases cases(verb, bench, limits);
  if (!verb.no_linear) WEIR_TRY(cases.linear());
  if (!verb.no_attention) WEIR_TRY(cases.attention());
  for (const Row& row : cases.rows())
    if (!row.result.right()) exit_status = kExitFailed;
  return verb.json ? print_json(verb, bench, limits, cases.rows()) : Status();
}

}  // namespace

void add_bench_kernels(CLI::App& bench, int& exit_status) {
  auto verb = std::make_shared<KernelsVerb>();
  CLI::App* app = bench.add_subcommand("kernels", "Linear layers and attention alone: GB/s, Gop/s, share of the limit");
  app->add_option("--type", verb->types, "Types of weights, separated by commas, or all")->delimiter(',')->capture_default_str();
  app->add_option("--rows", verb->rows, "Rows of activations, or queries")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app->add_option("--shape", verb->shape, "Outputs x inputs of a linear layer")->capture_default_str();
  app->add_option("--kv-type", verb->kv_types, "Types of the KV cache in attention")->delimiter(',')->capture_default_str();
  app->add_option("--depth", verb->depths, "Positions that attention goes over")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 22))
      ->capture_default_str();
  app->add_option("--heads", verb->heads, "Query heads x KV heads x head size of attention")->capture_default_str();
  app->add_flag("--prompt", verb->prompt, "Linear layers on rows of a prompt, which may have an arithmetic of their own");
  app->add_flag("--no-linear", verb->no_linear, "Only attention");
  app->add_flag("--no-attention", verb->no_attention, "Only linear layers");
  app->add_option("-t,--threads", verb->threads, "Threads; 0 takes all that this process may use")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app->add_option("--activations", verb->activations, "Activations in products with quantised weights")
      ->check(CLI::IsMember({"int8", "f32"}))
      ->capture_default_str();
  app->add_option("--isa", verb->isa, "Kernel table; default: WEIR_ISA, else the best this machine runs");
  app->add_flag("--json", verb->json, "Print JSON");
  app->footer(
      "Weights are packed as a model's are and repeated until they are larger than the caches, so that few rows read them from memory.\n"
      "Exit status 1 if a result differs from the reference by more than its arithmetic allows.\n"
      "Examples:\n"
      "  weir bench kernels --type q4_0,q4_k --rows 1,512 --no-attention\n"
      "  weir bench kernels --type all --rows 1 --shape 2048x2048 --no-attention\n");
  app->callback([verb, &exit_status] {
    if (auto status = run(*verb, exit_status); !status) exit_status = interrupted() ? kExitInterrupted : report_error(status.error());
  });
}

}  // namespace weir::cli
