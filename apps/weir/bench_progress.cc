// SPDX-License-Identifier: Apache-2.0
#include "bench_progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <thread>

#include "loadgen/progress_line.h"
#include "verbs.h"

namespace weir::cli {
namespace {

constexpr auto kTick = std::chrono::milliseconds(50);
constexpr double kTerminalEvery = 0.5, kLinesEvery = 5;  // seconds

// Looks at the run's counters until it is told that the run is over.
void watch(loadgen::Progress& progress, const Expected& expected, bool terminal, bool lines, const std::atomic<bool>& over) {
  const TimePoint start = steady_clock().now();
  loadgen::ProgressWatch watch;
  const double every = lines ? kLinesEvery : kTerminalEvery;
  double next = every;
  while (!over) {
    std::this_thread::sleep_for(kTick);
    if (interrupted()) progress.stop = true;
    const double elapsed = to_seconds(steady_clock().now() - start);
    if ((!terminal && !lines) || elapsed < next) continue;
    next = elapsed + every;
    loadgen::ProgressView view = watch.look(progress, elapsed);
    view.expected = expected.requests;
    view.length_s = expected.seconds;
    const std::string text = loadgen::progress_text(view);
    fmt::print(stderr, "{}{}{}", lines ? "" : "\r", text, lines ? "\n" : "\033[K");
    std::fflush(stderr);
  }
  if (terminal && !lines) fmt::print(stderr, "\r\033[K");
}

Expected expected_of(const loadgen::Scenario& scenario, const loadgen::Scenario::Variation& variation) {
  const loadgen::LoadSpec& spec = scenario.spec();
  Expected expected;
  const bool closed = variation.users || (spec.users > 0 && !variation.rate);
  if (!closed || spec.size.requests) expected.requests = scenario.expected_requests(variation);
  if (spec.size.length && !(closed && spec.size.requests)) expected.seconds = to_seconds(*spec.size.length);
  return expected;
}

}  // namespace

void ProgressOptions::add_to(CLI::App& app) {
  app.add_option("--progress", mode, "auto: a line that changes, on a terminal; lines: a plain line every 5 s; none")
      ->check(CLI::IsMember({"auto", "lines", "none"}))
      ->capture_default_str()
      ->group("Output");
  app.add_flag("-q,--quiet", quiet, "No progress")->group("Output");
}

Result<loadgen::Measured> measure_with_progress(const std::function<Result<loadgen::Measured>(loadgen::Progress&)>& measure,
                                                const Expected& expected, const ProgressOptions& options) {
  loadgen::Progress progress;
  std::atomic<bool> over{false};
  const bool lines = !options.quiet && options.mode == "lines";
  const bool terminal = !options.quiet && options.mode == "auto" && ::isatty(STDERR_FILENO);
  std::thread watcher([&] { watch(progress, expected, terminal, lines, over); });
  auto measured = measure(progress);
  over = true;
  watcher.join();
  return measured;
}

Result<loadgen::Measured> measure_with_progress(const loadgen::Scenario& scenario, const loadgen::Scenario::Variation& variation,
                                                const ProgressOptions& options) {
  return measure_with_progress([&](loadgen::Progress& progress) { return scenario.measure(variation, progress); },
                               expected_of(scenario, variation), options);
}

}  // namespace weir::cli
