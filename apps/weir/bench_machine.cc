// SPDX-License-Identifier: Apache-2.0
// weir bench machine: what this machine can do at most.
#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "base/thread_pool.h"
#include "base/units.h"
#include "bench.h"
#include "bench/machine.h"
#include "kernels/limits/machine_limits.h"
#include "verbs.h"

namespace weir::cli {
namespace {

struct MachineVerb {
  int threads = 0;
  bool quick = false, json = false;
};

std::string range(const Spread& s, double unit) {
  return fmt::format("{:>7.1f} ({:.1f}..{:.1f})", s.median * unit, s.min * unit, s.max * unit);
}

void print_reads(const kernels::MachineLimits& limits) {
  fmt::print("\nReading memory, GB/s, median (min..max)\n");
  for (const kernels::ReadPoint& r : limits.reads)
    fmt::print("  {:<7} {:>9} per thread, {:>2} thread{:<2} {:<15} {}\n", r.where, format_bytes(r.bytes_per_thread), r.threads,
               r.threads > 1 ? "s," : ",", r.pages == kernels::Pages::kHuge ? "2 MiB pages" : "ordinary pages", range(r.bytes_per_s, 1e-9));
}

void print_peaks(const kernels::MachineLimits& limits) {
  fmt::print("\nMultiply and add, Gop/s, median (min..max)\n");
  for (const kernels::Peak& p : limits.peaks)
    fmt::print("  {:<26} {:>2} thread{:<2} {}\n", p.name, p.threads, p.threads > 1 ? "s" : "", range(p.ops_per_s, 1e-9));
  for (const kernels::MultiplyAddLoop& loop : kernels::multiply_add_loops())
    if (!loop.usable) fmt::print("  {:<26} not on this processor\n", loop.name);
}

void print_threads(const kernels::MachineLimits& limits) {
  fmt::print("\nThreads\n");
  for (const kernels::HandOver& h : limits.hand_overs)
    fmt::print("  handing work to {} thread{} and waiting for all: {:.0f} ns when they spin, {:.1f} µs when they sleep\n", h.threads,
               h.threads > 1 ? "s" : "", h.spinning_s.median * 1e9, h.parked_s.median * 1e6);
  for (const kernels::PairSpeed& p : limits.pairs)
    fmt::print("  processors {} and {} together: {:.2f} × one alone: {}\n", p.first, p.second, p.speed,
               p.shares_core() ? "they share a core" : "cores of their own");
}

Status run(const MachineVerb& verb) {
  catch_interrupts();
  const int threads = verb.threads > 0 ? verb.threads : usable_processors();
  const bench::Machine machine = bench::describe_machine();
  WEIR_ASSIGN(
      const kernels::MachineLimits limits,
      kernels::measure_machine(threads, verb.quick ? kernels::Effort::kQuick : kernels::Effort::kFull, [] { return !interrupted(); }));
  if (verb.json) {
    json::Object out{{"weir", WEIR_VERSION}, {"date", bench::utc_now()}, {"cpu", machine.cpu}, {"machine", bench::to_json(machine)}};
    for (auto& [key, value] : kernels::to_json(limits)) out[key] = std::move(value);
    return write_json("-", out);
  }
  const kernels::CacheSizes& c = limits.caches;
  fmt::print("{}, {} processors ({} usable), {:.1f} GiB, {}\n", machine.cpu, machine.processors, machine.usable, machine.memory_gib,
             machine.host);
  fmt::print("Caches{}: L1 {} KiB and L2 {} KiB per core, L3 {} KiB for {}\n", c.known ? "" : " (guessed)", c.l1 >> 10, c.l2 >> 10,
             c.l3 >> 10, c.l3_processors);
  print_reads(limits);
  print_peaks(limits);
  print_threads(limits);
  return {};
}

}  // namespace

void add_bench_machine(CLI::App& bench, int& exit_status) {
  auto verb = std::make_shared<MachineVerb>();
  CLI::App* app = bench.add_subcommand("machine", "What this machine can do at most: memory, arithmetic, threads");
  app->add_option("-t,--threads", verb->threads, "Threads beside one; 0 takes all that this process may use")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app->add_flag("--quick", verb->quick, "In about 3 seconds instead of 15");
  app->add_flag("--json", verb->json, "Print JSON");
  app->footer(
      "Sizes follow from the caches; never more than an eighth of the free memory is used. A machine's speed drifts: compare only what\n"
      "was measured in the same minutes.\n"
      "Example:\n"
      "  weir bench machine --quick\n");
  app->callback([verb, &exit_status] {
    if (auto status = run(*verb); !status) exit_status = interrupted() ? kExitInterrupted : report_error(status.error());
  });
}

}  // namespace weir::cli
