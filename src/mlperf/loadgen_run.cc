// SPDX-License-Identifier: Apache-2.0
#include "mlperf/loadgen_run.h"

#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <thread>

#ifdef WEIR_HAVE_LOADGEN
#include <loadgen.h>
#include <query_sample_library.h>
#include <system_under_test.h>
#include <test_settings.h>
#include <version.h>

extern const char* mlperf_conf;  // the text that is compiled into LoadGen

// LoadGen 6.0.17 never frees the copy of a first token's data that it makes for its accuracy log. Its sources stay as they are, so the leak
// detector is told; elsewhere nothing asks for this function.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:mlperf::loadgen::ResponseDelegateDetailed*::TokenComplete\n"; }
#endif

namespace weir::mlperf {

const char* scenario_name(Scenario scenario) {
  switch (scenario) {
    case Scenario::kSingleStream: return "SingleStream";
    case Scenario::kMultiStream: return "MultiStream";
    case Scenario::kServer: return "Server";
    case Scenario::kOffline: return "Offline";
  }
  return "";
}

const char* mode_name(Mode mode) {
  switch (mode) {
    case Mode::kPerformance: return "PerformanceOnly";
    case Mode::kAccuracy: return "AccuracyOnly";
    case Mode::kFindPeak: return "FindPeakPerformance";
  }
  return "";
}

#ifndef WEIR_HAVE_LOADGEN

bool loadgen_available() { return false; }
std::string loadgen_version() { return {}; }
std::string built_in_mlperf_conf() { return {}; }
Result<std::unique_ptr<LoadgenRun>> LoadgenRun::configure(const RunConfig&) {
  return fail(ErrorCode::kUnsupported,
              "this build has no MLPerf LoadGen: its sources could not be fetched when it was configured. With network, configure again "
              "(tools/fetch_loadgen.py says what is missing) and build");
}

#else

namespace {

constexpr std::uint64_t kHopeless = 64;  // failures before the first answer, or in a row

::mlperf::TestScenario to_loadgen(Scenario scenario) {
  switch (scenario) {
    case Scenario::kSingleStream: return ::mlperf::TestScenario::SingleStream;
    case Scenario::kMultiStream: return ::mlperf::TestScenario::MultiStream;
    case Scenario::kServer: return ::mlperf::TestScenario::Server;
    case Scenario::kOffline: return ::mlperf::TestScenario::Offline;
  }
  return ::mlperf::TestScenario::SingleStream;
}

::mlperf::TestMode to_loadgen(Mode mode) {
  switch (mode) {
    case Mode::kPerformance: return ::mlperf::TestMode::PerformanceOnly;
    case Mode::kAccuracy: return ::mlperf::TestMode::AccuracyOnly;
    case Mode::kFindPeak: return ::mlperf::TestMode::FindPeakPerformance;
  }
  return ::mlperf::TestMode::PerformanceOnly;
}

::mlperf::QuerySampleResponse response(std::uint64_t id, std::string_view data, std::int64_t tokens) {
  return {static_cast<::mlperf::ResponseId>(id), reinterpret_cast<std::uintptr_t>(data.data()), data.size(), tokens};
}

// The data set is in memory from the start, so there is nothing to load.
class Library final : public ::mlperf::QuerySampleLibrary {
 public:
  Library(std::size_t samples, std::string name) : samples_(samples), name_(std::move(name)) {}
  const std::string& Name() override { return name_; }
  std::size_t TotalSampleCount() override { return samples_; }
  std::size_t PerformanceSampleCount() override { return samples_; }
  void LoadSamplesToRam(const std::vector<::mlperf::QuerySampleIndex>&) override {}
  void UnloadSamplesFromRam(const std::vector<::mlperf::QuerySampleIndex>&) override {}

 private:
  std::size_t samples_;
  std::string name_;
};

class System final : public ::mlperf::SystemUnderTest, public AnswerSink {
 public:
  System(AnswerSource& source, bool tokens) : source_(source), tokens_(tokens) {}

  const std::string& Name() override { return source_.name(); }
  void FlushQueries() override {}
  void IssueQuery(const std::vector<::mlperf::QuerySample>& samples) override {
    std::vector<Asked> asked;
    asked.reserve(samples.size());
    for (const ::mlperf::QuerySample& sample : samples) asked.push_back({sample.id, sample.index});
    source_.ask(asked, *this);
  }

  void first_token(std::uint64_t id, std::string_view data) override {
    if (!tokens_) return;
    auto r = response(id, data, 1);
    ::mlperf::FirstTokenComplete(&r, 1);
  }
  void finished(std::uint64_t id, std::string_view data, std::int64_t tokens) override {
    ++answered_;
    in_a_row_ = 0;
    if (tokens < 2) ++short_;
    auto r = response(id, data, tokens);
    ::mlperf::QuerySamplesComplete(&r, 1);
  }
  // LoadGen knows no failure: the sample ends without tokens, and the caller tells that the run is worth nothing.
  void failed(std::uint64_t id, bool had_first_token, const std::string& reason) override {
    if (!had_first_token) first_token(id, {});
    {
      const std::lock_guard lock(mutex_);
      if (first_failure_.empty()) first_failure_ = reason;
    }
    ++failed_;
    if (++in_a_row_ >= kHopeless) hopeless_ = true;
    auto r = response(id, "", 0);
    ::mlperf::QuerySamplesComplete(&r, 1);
  }

  bool hopeless() const { return hopeless_; }
  RunEnd end() const {
    const std::lock_guard lock(mutex_);
    return {.answered = answered_, .failed = failed_, .short_answers = short_, .first_failure = first_failure_};
  }

 private:
  AnswerSource& source_;
  const bool tokens_;
  std::atomic<std::uint64_t> answered_{0}, failed_{0}, short_{0}, in_a_row_{0};
  std::atomic<bool> hopeless_{false};
  mutable std::mutex mutex_;
  std::string first_failure_;
};

class Run final : public LoadgenRun {
 public:
  explicit Run(const RunConfig& config) : config_(config) {}

  Status read_settings() {
    settings_.scenario = to_loadgen(config_.scenario);
    // In a process LoadGen takes a single user.conf for the official one, together with which it loads its mlperf.conf; another run of the
    // same process reads the two in turn, which gives the same settings.
    static std::atomic<bool> used{false};
    const bool first = !used.exchange(true);
    if (!first) settings_.FromConfig("", config_.model, scenario_name(config_.scenario), 0);
    const int error = settings_.FromConfig(config_.user_conf.string(), config_.model, scenario_name(config_.scenario), first ? 1 : 2);
    if (error != 0)
      return fail(ErrorCode::kInvalidArgument, "LoadGen cannot read {}: it wants lines 'model.scenario.key = number'",
                  config_.user_conf.string());
    if (config_.mode) settings_.mode = to_loadgen(*config_.mode);
    if (settings_.mode == ::mlperf::TestMode::SubmissionRun)
      return fail(ErrorCode::kUnsupported, "mode 0 (SubmissionRun) is two runs in one: make one with --accuracy and one without");
    return {};
  }

  bool token_latencies() const override { return settings_.use_token_latencies; }
  Mode mode() const override {
    if (settings_.mode == ::mlperf::TestMode::AccuracyOnly) return Mode::kAccuracy;
    return settings_.mode == ::mlperf::TestMode::FindPeakPerformance ? Mode::kFindPeak : Mode::kPerformance;
  }
  Seeds seeds() const override { return {settings_.qsl_rng_seed, settings_.sample_index_rng_seed, settings_.schedule_rng_seed}; }

  Result<RunEnd> run(AnswerSource& source, std::size_t samples, const std::string& dataset,
                     const std::function<bool()>& keep_going) override {
    if (samples == 0) return fail(ErrorCode::kInvalidArgument, "the data set has no samples");
    system_ = std::make_unique<System>(source, settings_.use_token_latencies);
    library_ = std::make_unique<Library>(samples, dataset);
    ::mlperf::LogSettings logs;
    logs.log_output.outdir = config_.output.string();
    logs.enable_trace = config_.trace;
    std::promise<void> ended;
    std::future<void> end = ended.get_future();
    std::thread thread([this, logs, ended = std::move(ended)]() mutable {
      ::mlperf::StartTest(system_.get(), library_.get(), settings_, logs, config_.audit.string());
      ended.set_value();
    });
    while (end.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) {
      if (keep_going() && !system_->hopeless()) continue;
      thread.detach();
      if (!system_->hopeless()) return fail(ErrorCode::kCancelled, "interrupted: LoadGen's logs are incomplete");
      return fail(ErrorCode::kNetwork, "{} samples in a row failed: {}", kHopeless, system_->end().first_failure);
    }
    thread.join();
    return system_->end();
  }

 private:
  RunConfig config_;
  ::mlperf::TestSettings settings_;
  std::unique_ptr<System> system_;
  std::unique_ptr<Library> library_;
};

}  // namespace

bool loadgen_available() { return true; }
std::string loadgen_version() { return ::mlperf::LoadgenVersion(); }
std::string built_in_mlperf_conf() { return ::mlperf_conf; }

Result<std::unique_ptr<LoadgenRun>> LoadgenRun::configure(const RunConfig& config) {
  auto run = std::make_unique<Run>(config);
  WEIR_TRY(run->read_settings());
  return run;
}

#endif

}  // namespace weir::mlperf
