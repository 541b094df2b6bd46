// SPDX-License-Identifier: Apache-2.0
// weir bench machine: what this machine can do at most.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <optional>

#include "base/thread_pool.h"
#include "base/units.h"
#include "bench.h"
#include "bench/disk_speed.h"
#include "bench/loopback_speed.h"
#include "bench/machine.h"
#include "bench/numa_speed.h"
#include "kernels/limits/machine_limits.h"
#include "store/store.h"
#include "verbs.h"

namespace weir::cli {
namespace {

struct MachineVerb {
  int threads = 0;
  bool quick = false, json = false, no_disk = false;
  std::string disk_folder;
};

struct Measured {
  kernels::MachineLimits limits;
  bench::NumaSpeed numa;
  std::optional<Result<bench::DiskSpeed>> disk;  // none: not asked for
  Result<bench::LoopbackSpeed> loopback;
};

std::string range(const Spread& s, double unit, int digits = 1) {
  return fmt::format("{0:>7.{3}f} ({1:.{3}f}..{2:.{3}f})", s.median * unit, s.min * unit, s.max * unit, digits);
}

void print_reads(const kernels::MachineLimits& limits) {
  fmt::print("\nReading memory, GB/s, median (min..max)\n");
  for (const kernels::ReadPoint& r : limits.reads)
    fmt::print("  {:<7} {:>9} per thread, {:>2} thread{:<2} {:<15} {}\n", r.where, format_bytes(r.bytes_per_thread), r.threads,
               r.threads > 1 ? "s," : ",", kernels::pages_name(r.pages), range(r.bytes_per_s, 1e-9));
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

std::string distances(const NumaNode& node) {
  std::string text;
  for (const int distance : node.distances) text += fmt::format(" {}", distance);
  return text.empty() ? " unknown" : text;
}

void print_numa(const bench::NumaSpeed& numa) {
  if (numa.nodes.empty()) return fmt::print("\nNUMA: the system does not tell its nodes\n");
  fmt::print("\nNUMA: {} node{}\n", numa.nodes.size(), numa.nodes.size() == 1 ? "" : "s");
  if (numa.nodes.size() < 2) return;
  for (const NumaNode& node : numa.nodes)
    fmt::print("  node {:<3} {} processors, {} ({} free), distances{}\n", node.number, node.processors.size(),
               format_bytes(node.memory_bytes), format_bytes(node.free_bytes), distances(node));
  for (const bench::NodeRead& r : numa.reads)
    fmt::print(
        "  processors of node {:<3} read memory of node {:<3} {}\n", r.processors_of, r.memory_of,
        r.problem.empty() ? fmt::format("{:>2} threads, GB/s {}", r.threads, range(r.bytes_per_s, 1e-9)) : "not measured: " + r.problem);
}

std::string latency(const bench::Latency& l) {
  return fmt::format("{:.1f} µs median, {:.1f} µs p99 of {}", l.median_s * 1e6, l.p99_s * 1e6, l.count);
}

void print_disk(const Result<bench::DiskSpeed>& disk) {
  fmt::print("\nDisk\n");
  if (!disk) return fmt::print("  not measured: {}\n", disk.error().message);
  fmt::print("  {} ({}), a file of {}, {}\n", disk->folder, disk->file_system, format_bytes(disk->bytes),
             disk->direct ? "past the page cache" : "through the page cache, its pages dropped before reading");
  fmt::print("  writing with fdatasync, GB/s  {}\n", range(disk->write_bytes_per_s, 1e-9, 2));
  fmt::print("  reading in order, GB/s        {}\n", range(disk->read_bytes_per_s, 1e-9, 2));
  fmt::print("  reading 4 KiB anywhere        {}\n", latency(disk->random_read));
}

void print_loopback(const Result<bench::LoopbackSpeed>& loopback) {
  fmt::print("\nTCP over 127.0.0.1\n");
  if (!loopback) return fmt::print("  not measured: {}\n", loopback.error().message);
  fmt::print("  one direction, GB/s           {}\n", range(loopback->stream_bytes_per_s, 1e-9, 2));
  fmt::print("  one byte there and back       {}\n", latency(loopback->round_trip));
  fmt::print("  connections per second        {}\n", range(loopback->connections_per_s, 1, 0));
}

// Where models lie, or would: the nearest folder that exists.
Result<std::filesystem::path> models_folder() {
  WEIR_ASSIGN(const store::Store store, store::Store::standard());
  std::error_code error;
  std::filesystem::path folder = std::filesystem::absolute(store.root() / "models", error);
  while (!std::filesystem::is_directory(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  return folder;
}

Result<bench::DiskSpeed> measure_disk(const MachineVerb& verb) {
  bench::DiskOptions options{.folder = verb.disk_folder};
  if (verb.disk_folder.empty()) {
    WEIR_ASSIGN(options.folder, models_folder());
  }
  if (verb.quick) options.bytes = 64u << 20, options.random_reads = 500, options.seconds = 1;
  return bench::measure_disk(options, [] { return !interrupted(); });
}

Result<Measured> measure(const MachineVerb& verb) {
  const int threads = verb.threads > 0 ? verb.threads : usable_processors();
  const auto go_on = [] { return !interrupted(); };
  WEIR_ASSIGN(kernels::MachineLimits limits,
              kernels::measure_machine(threads, verb.quick ? kernels::Effort::kQuick : kernels::Effort::kFull, go_on));
  WEIR_ASSIGN(bench::NumaSpeed numa,
              bench::measure_numa(read_numa_nodes(), {.caches = limits.caches, .most_threads = threads, .seconds = verb.quick ? 0.03 : 0.2},
                                  go_on));
  Measured all{.limits = std::move(limits),
               .numa = std::move(numa),
               .disk = verb.no_disk ? std::nullopt : std::optional(measure_disk(verb)),
               .loopback = bench::measure_loopback(verb.quick ? 0.3 : 1, go_on)};
  if (interrupted()) return fail(ErrorCode::kCancelled, "interrupted");
  return all;
}

// What could not be measured says why in the place of its figures.
template <class T>
json::Object json_or_problem(const Result<T>& measured) {
  return measured ? bench::to_json(*measured) : json::Object{{"problem", measured.error().message}};
}

json::Object to_json(const bench::Machine& machine, const Measured& all) {
  json::Object out{{"weir", WEIR_VERSION}, {"date", bench::utc_now()}, {"cpu", machine.cpu}, {"machine", bench::to_json(machine)}};
  for (auto& [key, value] : kernels::to_json(all.limits)) out[key] = std::move(value);
  out["limits"] = kernels::to_json(kernels::limits_of(all.limits));
  out["numa"] = bench::to_json(all.numa);
  if (all.disk) out["disk"] = json_or_problem(*all.disk);
  out["loopback"] = json_or_problem(all.loopback);
  return out;
}

Status run(const MachineVerb& verb) {
  catch_interrupts();
  const bench::Machine machine = bench::describe_machine();
  WEIR_ASSIGN(const Measured all, measure(verb));
  if (verb.json) return write_json("-", to_json(machine, all));
  const kernels::MachineLimits& limits = all.limits;
  const kernels::CacheSizes& c = limits.caches;
  fmt::print("{}, {} processors ({} usable), {:.1f} GiB, {}\n", machine.cpu, machine.processors, machine.usable, machine.memory_gib,
             machine.host);
  fmt::print("Caches{}: L1 {} KiB and L2 {} KiB per core, L3 {} KiB for {}\n", c.known ? "" : " (guessed)", c.l1 >> 10, c.l2 >> 10,
             c.l3 >> 10, c.l3_processors);
  print_reads(limits);
  print_peaks(limits);
  print_threads(limits);
  print_numa(all.numa);
  if (all.disk) print_disk(*all.disk);
  print_loopback(all.loopback);
  return {};
}

}  // namespace

void add_bench_machine(CLI::App& bench, int& exit_status) {
  auto verb = std::make_shared<MachineVerb>();
  CLI::App* app = bench.add_subcommand("machine", "What this machine can do at most: memory, arithmetic, threads, disk, loopback");
  app->add_option("-t,--threads", verb->threads, "Threads beside one; 0 takes all that this process may use")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app->add_flag("--quick", verb->quick, "In about 5 seconds instead of 20");
  app->add_option("--disk-folder", verb->disk_folder, "Where to measure the disk; default: where models lie")
      ->check(CLI::ExistingDirectory);
  app->add_flag("--no-disk", verb->no_disk, "Leave the disk out");
  app->add_flag("--json", verb->json, "Print JSON");
  app->footer(
      "Sizes follow from the caches; never more than an eighth of the free memory is used, and a tenth of the free disk space (256 MiB at\n"
      "most, 64 with --quick; the file has no name, so nothing stays behind). A machine's speed drifts: compare only what was measured in\n"
      "the same minutes.\n"
      "Example:\n"
      "  weir bench machine --quick\n");
  app->callback([verb, &exit_status] {
    if (auto status = run(*verb); !status) exit_status = interrupted() ? kExitInterrupted : report_error(status.error());
  });
}

}  // namespace weir::cli
