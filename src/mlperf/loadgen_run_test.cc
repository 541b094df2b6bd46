// SPDX-License-Identifier: Apache-2.0
// The real LoadGen against answers of programmed delays. A build without LoadGen skips these tests.
#include "mlperf/loadgen_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/file_io.h"
#include "base/testing.h"
#include "loadgen/null_server.h"
#include "loadgen/statistics.h"
#include "mlperf/benchmarks.h"
#include "mlperf/engine_source.h"
#include "mlperf/fake_source_test.h"
#include "mlperf/http_source.h"
#include "mlperf/logs.h"
#include "mlperf/report.h"
#include "mlperf/user_conf.h"
#include "mlperf/warm_up.h"

#ifndef WEIR_HAVE_LOADGEN

TEST(LoadGen, IsInThisBuild) {
  const auto run = weir::mlperf::LoadgenRun::configure({});
  ASSERT_FALSE(run);
  GTEST_SKIP() << run.error().message;
}

#else
#include <early_stopping.h>
#include <test_settings.h>

namespace weir::mlperf {
namespace {

using std::chrono::milliseconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::size_t kSamples = 12;

struct Ran {
  RunEnd end;
  DetailLog log;
  bool tokens = false;
};

class LoadGen : public ::testing::Test {
 protected:
  Result<Ran> run(const ConfOptions& options, AnswerSource& source, std::optional<Mode> mode = {}, std::string_view users = {}) {
    WEIR_ASSIGN(const std::string conf, make_user_conf(options, users));
    WEIR_TRY(write_file_atomically(folder_.path() / "user.conf", conf));
    RunConfig config;
    config.scenario = options.scenario;
    config.mode = mode;
    config.model = model_key(options);
    config.user_conf = folder_.path() / "user.conf";
    config.output = folder_.path();
    config.audit = folder_.path() / "audit.config";
    WEIR_ASSIGN(const auto loadgen, LoadgenRun::configure(config));
    Ran out;
    out.tokens = loadgen->token_latencies();
    WEIR_ASSIGN(out.end, loadgen->run(source, kSamples, "set", [] { return true; }));
    WEIR_ASSIGN(out.log, read_detail(folder_.path()));
    return out;
  }

  static ConfOptions server(std::int64_t queries) {
    ConfOptions o;
    o.scenario = Scenario::kServer;
    o.target_qps = 4000;
    o.min_duration_ms = 10;
    o.min_query_count = queries;
    o.ttft_ms = o.tpot_ms = 60'000;  // no test may depend on how busy the machine is
    return o;
  }

  static FakeAnswer quick(std::uint64_t, std::size_t) { return {}; }

  testing::TemporaryFolder folder_;
};

TEST_F(LoadGen, ServerIsValidWithTheQueriesThatEarlyStoppingWants) {
  FakeSource source(quick);
  const auto ran = run(server(480), source);
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_TRUE(ran->log.valid()) << to_text(ran->log, Scenario::kServer, true);
  EXPECT_TRUE(ran->tokens);
  EXPECT_EQ(ran->log.number("result_query_count"), 480);
  EXPECT_EQ(ran->end.answered, 480u);
  EXPECT_TRUE(ran->log.errors.empty()) << ran->log.errors.front();
  EXPECT_THAT(to_text(ran->log, Scenario::kServer, true), HasSubstr("Result is: VALID"));
}

TEST_F(LoadGen, ServerIsInvalidWithTooFewQueriesForEarlyStopping) {
  FakeSource source(quick);
  const auto ran = run(server(396), source);  // 459 would do
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_FALSE(ran->log.valid());
  EXPECT_TRUE(ran->log.flag("result_perf_constraints_met"));
  EXPECT_FALSE(ran->log.flag("early_stopping_met"));
  EXPECT_THAT(ran->log.text("early_stopping_tpot_result"), HasSubstr("at least 63 more queries"));
}

TEST_F(LoadGen, ServerIsInvalidWhenFirstTokensComeTooLate) {
  FakeSource source([](std::uint64_t, std::size_t) { return FakeAnswer{.first = milliseconds(30)}; });
  ConfOptions o = server(480);
  o.ttft_ms = 20;
  const auto ran = run(o, source);
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_FALSE(ran->log.valid());
  EXPECT_FALSE(ran->log.flag("result_perf_constraints_met"));
  EXPECT_THAT(ran->log.text("result_invalid_reason"), HasSubstr("TTFT"));
}

TEST_F(LoadGen, ServerIsInvalidWhenTokensComeTooSlowly) {
  FakeSource source([](std::uint64_t, std::size_t) { return FakeAnswer{.rest = milliseconds(40), .tokens = 3}; });
  ConfOptions o = server(480);
  o.tpot_ms = 10;  // 40 ms for two tokens after the first
  const auto ran = run(o, source);
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_FALSE(ran->log.valid());
  EXPECT_THAT(ran->log.text("result_invalid_reason"), HasSubstr("TPOT"));
}

TEST_F(LoadGen, TooFewQueriesOrTooShortIsInvalid) {
  FakeSource source(quick);
  ConfOptions few = server(480);
  few.max_query_count = 96;
  const auto queries = run(few, source);
  ASSERT_TRUE(queries) << queries.error().message;
  EXPECT_FALSE(queries->log.valid());
  EXPECT_FALSE(queries->log.flag("result_min_queries_met"));

  ConfOptions longer;
  longer.scenario = Scenario::kOffline;
  longer.min_duration_ms = 60'000;
  longer.min_query_count = 24;
  longer.target_qps = 0.1;
  const auto duration = run(longer, source);
  ASSERT_TRUE(duration) << duration.error().message;
  EXPECT_FALSE(duration->log.valid());
  EXPECT_FALSE(duration->log.flag("result_min_duration_met"));
}

TEST_F(LoadGen, SingleStreamTakesTimesAsTheyWere) {
  FakeSource source([](std::uint64_t, std::size_t) { return FakeAnswer{.first = milliseconds(4), .rest = milliseconds(6), .tokens = 4}; });
  ConfOptions o;
  o.target_latency_ms = 1000;
  o.min_duration_ms = 10;
  o.min_query_count = 72;
  const auto ran = run(o, source);
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_TRUE(ran->log.valid()) << ran->log.text("result_invalid_reason");
  EXPECT_GE(ran->log.number("result_first_token_50.00_percentile_latency_ns"), 4e6);
  EXPECT_GE(ran->log.number("result_time_per_output_token_50.00_percentile_ns"), 2e6);  // 6 ms for three tokens
  EXPECT_GE(ran->log.number("result_min_latency_ns"), 10e6);
}

TEST_F(LoadGen, MultiStreamCountsTheSlowestOfAQuery) {
  FakeSource source([](std::uint64_t number, std::size_t) { return FakeAnswer{.first = milliseconds(number % 4 == 3 ? 5 : 0)}; });
  ConfOptions o;
  o.scenario = Scenario::kMultiStream;
  o.samples_per_query = 4;
  o.target_latency_ms = 1000;
  o.min_duration_ms = 10;
  o.min_query_count = 24;
  o.percentile = 50;
  const auto ran = run(o, source);
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_TRUE(ran->log.valid()) << ran->log.text("result_invalid_reason");
  EXPECT_GE(ran->log.number("result_min_query_latency_ns"), 5e6);
  EXPECT_EQ(ran->end.answered, 4 * 24u);
}

TEST_F(LoadGen, OfflineCountsTheTokensThatItIsTold) {
  FakeSource source([](std::uint64_t, std::size_t sample) { return FakeAnswer{.tokens = 2 + static_cast<std::int64_t>(sample)}; });
  ConfOptions o;
  o.scenario = Scenario::kOffline;
  o.min_duration_ms = 0;
  o.min_query_count = 24;
  o.target_qps = 1;
  const auto ran = run(o, source);
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_TRUE(ran->log.valid()) << ran->log.text("result_invalid_reason");
  // Each of 0..11 twice: 2 + 5.5 tokens on average.
  EXPECT_NEAR(ran->log.number("result_tokens_per_second") / ran->log.number("result_samples_per_second"), 7.5, 1e-3);
}

TEST_F(LoadGen, AnswersOfOneTokenAndFailuresAreErrorsOfTheRun) {
  FakeSource source([](std::uint64_t number, std::size_t) {
    FakeAnswer answer;
    if (number % 8 == 1) answer.tokens = 1;
    if (number % 8 == 2) answer.failure = "no such luck";
    return answer;
  });
  const auto ran = run(server(480), source);
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_EQ(ran->end.short_answers, 60u);
  EXPECT_EQ(ran->end.failed, 60u);
  EXPECT_EQ(ran->end.first_failure, "no such luck");
  EXPECT_EQ(ran->log.errors.size(), 120u);
  EXPECT_THAT(ran->log.errors, Contains(HasSubstr("Number of tokens need to be greater than 1")));
}

TEST_F(LoadGen, AccuracyLogHoldsEachSampleOnceWithItsBytes) {
  FakeSource source([](std::uint64_t, std::size_t sample) {
    FakeAnswer answer;
    answer.data = std::string("\0\xFF", 2) + std::to_string(sample);
    answer.first_data = "t" + std::to_string(sample);
    answer.tokens = 2 + static_cast<std::int64_t>(sample);
    return answer;
  });
  const auto ran = run(server(480), source, Mode::kAccuracy);
  ASSERT_TRUE(ran) << ran.error().message;
  const auto answers = read_accuracy(folder_.path());
  ASSERT_TRUE(answers) << answers.error().message;
  ASSERT_EQ(answers->size(), kSamples);
  std::set<std::uint64_t> seen;
  for (const LoggedAnswer& a : *answers) {
    EXPECT_EQ(a.data, std::string("\0\xFF", 2) + std::to_string(a.sample));
    EXPECT_EQ(a.first_token, "t" + std::to_string(a.sample));
    EXPECT_EQ(a.tokens, static_cast<std::int64_t>(2 + a.sample));
    seen.insert(a.sample);
  }
  EXPECT_EQ(seen.size(), kSamples);
}

// The first level holds, the second does not, all between them do: the search ends just below the second.
TEST_F(LoadGen, FindPeakSearchesBetweenWhatHoldsAndWhatDoesNot) {
  constexpr std::uint64_t kRound = 60;
  FakeSource source(
      [](std::uint64_t number, std::size_t) { return FakeAnswer{.first = number / kRound == 1 ? milliseconds(3000) : milliseconds(0)}; });
  ConfOptions o = server(kRound);
  o.min_duration_ms = 0;
  o.ttft_ms = 1500;
  o.target_qps = 1000;
  const auto ran = run(o, source, Mode::kFindPeak);
  ASSERT_TRUE(ran) << ran.error().message;
  const auto peak = peak_of(ran->log);
  ASSERT_TRUE(peak);
  EXPECT_NEAR(*peak, 2000, 1);
}

TEST_F(LoadGen, AnAuditConfigOverridesTheRun) {
  ASSERT_TRUE(write_file_atomically(folder_.path() / "audit.config", "*.*.min_query_count = 24\n*.*.performance_issue_same = 1\n"));
  std::set<std::size_t> samples;
  FakeSource source([&](std::uint64_t, std::size_t sample) {
    samples.insert(sample);
    return FakeAnswer{};
  });
  const auto ran = run(server(480), source);
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_EQ(samples.size(), 1u);
  EXPECT_TRUE(std::ranges::any_of(ran->log.warnings, [](const std::string& w) { return w.find("audit.config") != std::string::npos; }));
}

TEST_F(LoadGen, ReadsExactKeysBeforeWildcardsAndRefusesWhatItCannotRead) {
  FakeSource source(quick);
  ConfOptions o = server(480);
  o.target_qps.reset();
  const auto ran = run(o, source, {}, "weir.Server.target_qps = 3000\n*.Server.target_qps = 1\nother.Server.target_qps = 2\n");
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_EQ(ran->log.number("effective_target_qps"), 3000);
  const auto broken = run(o, source, {}, "weir.Server.target_qps = fast\n");
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().message, HasSubstr("model.scenario.key = number"));
}

TEST_F(LoadGen, ASecondOfficialConfIsAnErrorInItsLog) {
  const auto conf = folder_.path() / "a.conf";
  ASSERT_TRUE(write_file_atomically(conf, "*.Server.target_qps = 5\n"));
  ::mlperf::TestSettings settings;
  settings.FromConfig(conf.string(), "weir", "Server");  // perhaps the first of this process
  settings.FromConfig(conf.string(), "weir", "Server");
  FakeSource source(quick);
  const auto ran = run(server(480), source);
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_THAT(ran->log.errors, Contains(HasSubstr("Multiple conf files are used")));
}

TEST(LoadGenConf, OurTableOfBenchmarksIsItsOwn) {
  for (const Benchmark& b : benchmarks()) {
    for (const bool interactive : {false, true}) {
      const TokenBounds bounds = interactive ? b.interactive : b.server;
      if (interactive && bounds.ttft_ms == 0) continue;
      const std::string key = std::string(b.key) + (interactive ? "-interactive" : "");
      ::mlperf::TestSettings s;
      ASSERT_EQ(s.FromConfig("", key, "Server", 0), 0);
      EXPECT_EQ(s.performance_sample_count_override, static_cast<std::uint64_t>(b.samples)) << key;
      EXPECT_EQ(s.use_token_latencies, b.token_latencies) << key;
      EXPECT_EQ(s.server_target_latency_percentile, 0.99);
      if (bounds.ttft_ms > 0) {
        EXPECT_EQ(s.server_ttft_latency, std::uint64_t{1'000'000} * static_cast<std::uint64_t>(bounds.ttft_ms)) << key;
        EXPECT_EQ(s.server_tpot_latency, std::uint64_t{1'000'000} * static_cast<std::uint64_t>(bounds.tpot_ms)) << key;
      }
      if (b.server_latency_ms > 0) {
        EXPECT_EQ(s.server_target_latency_ns, std::uint64_t{1'000'000} * static_cast<std::uint64_t>(b.server_latency_ms)) << key;
      }
    }
  }
}

TEST(LoadGenEarlyStopping, OurTableIsItsOwnToTheInteger) {
  const std::int64_t known[5][6] = {{44, 64, 81, 127, 197, 1246},
                                    {90, 130, 165, 259, 398, 2504},
                                    {152, 219, 277, 433, 667, 4182},
                                    {459, 662, 838, 1307, 2010, 12571},
                                    {4603, 6636, 8403, 13105, 20140, 125826}};
  const double percentiles[] = {0.90, 0.95, 0.97, 0.99, 0.999};
  const std::int64_t over[] = {0, 1, 2, 5, 10, 100};
  for (int i = 0; i < 5; ++i) {
    ::mlperf::loadgen::MinPassingQueriesFinder find;
    for (int j = 0; j < 6; ++j) {
      const std::int64_t theirs = find(over[j], percentiles[i], 0, 0.99) + over[j];
      EXPECT_EQ(theirs, known[i][j]) << percentiles[i] << " " << over[j];
      EXPECT_EQ(loadgen::early_stopping_minimum(percentiles[i], over[j]), theirs) << percentiles[i] << " " << over[j];
    }
  }
}

Dataset questions(std::size_t count, const char* member) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += fmt::format("{{{}}}\n", fmt::format(fmt::runtime(member), i + 3));
  return *parse_dataset(text, "questions");
}

TEST_F(LoadGen, AServerIsAskedOverHttp) {
  loadgen::NullServerOptions null;
  null.ttft = loadgen::Distribution::constant(0.001);
  null.itl = loadgen::Distribution::constant(0);
  auto server = loadgen::NullServer::start(null);
  ASSERT_TRUE(server) << server.error().message;
  HttpSourceOptions options;
  options.target.url = "http://" + (*server)->address();
  options.model = "null";
  options.max_tokens = 5;
  auto source = HttpSource::start(options, questions(kSamples, "\"prompt\": \"number {}\""));
  ASSERT_TRUE(source) << source.error().message;
  ConfOptions o;
  o.scenario = Scenario::kOffline;
  o.min_duration_ms = 0;
  o.min_query_count = 240;
  const auto ran = run(o, **source);
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_TRUE(ran->log.valid());
  EXPECT_EQ(ran->end.answered, 240u);
  EXPECT_EQ(ran->end.first_failure, "");
  EXPECT_NEAR(ran->log.number("result_tokens_per_second") / ran->log.number("result_samples_per_second"), 5, 1e-3);
  EXPECT_EQ((*source)->notes().uncounted, 0);
}

TEST_F(LoadGen, AServersErrorsAndCutConnectionsAreFailures) {
  loadgen::NullServerOptions null;
  null.tokens = loadgen::Distribution::constant(4);
  null.error_every = 6;
  null.cut_every = 8;
  auto server = loadgen::NullServer::start(null);
  ASSERT_TRUE(server) << server.error().message;
  HttpSourceOptions options;
  options.target.url = "http://" + (*server)->address();
  options.target.chat = false;
  options.model = "null";
  auto source = HttpSource::start(options, questions(kSamples, "\"tokens\": [1, {}]"));
  ASSERT_TRUE(source) << source.error().message;
  ConfOptions o;
  o.scenario = Scenario::kOffline;
  o.min_duration_ms = 0;
  o.min_query_count = 48;
  const auto ran = run(o, **source);
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_EQ(ran->end.answered + ran->end.failed, 48u);
  EXPECT_GE(ran->end.failed, 8u);
  EXPECT_NE(ran->end.first_failure, "");
}

TEST(HttpSourceStart, RefusesWhatTheEndpointCannotTake) {
  auto server = loadgen::NullServer::start({});
  ASSERT_TRUE(server);
  HttpSourceOptions options;
  options.target.url = "http://" + (*server)->address();
  EXPECT_FALSE(HttpSource::start(options, questions(1, "\"tokens\": [{}]")));
  options.target.chat = false;
  EXPECT_FALSE(HttpSource::start(options, questions(1, "\"messages\": [{{\"role\": \"user\", \"content\": \"{}\"}}]")));
}

TEST_F(LoadGen, TheEngineInProcessAnswersAllAtOnceAndTheSameEachTime) {
  auto loaded = engine::load_model(testing::data_path("arch/llama/model-f32.gguf"), {.threads = 1});
  ASSERT_TRUE(loaded) << loaded.error().message;
  const Dataset set = questions(kSamples, "\"tokens\": [1, 2, {}]");
  std::vector<std::string> before;
  for (const Scenario scenario : {Scenario::kOffline, Scenario::kSingleStream}) {
    auto source = EngineSource::start(*loaded, {.max_tokens = 6, .min_tokens = 2, .max_running = 4}, set);
    ASSERT_TRUE(source) << source.error().message;
    const auto warm = warm_up(**source, kSamples, 2, 3, std::chrono::minutes(1), [] { return true; });
    ASSERT_TRUE(warm) << warm.error().message;
    EXPECT_GE(warm->least_tokens, 2);
    ConfOptions o;
    o.scenario = scenario;
    const auto ran = run(o, **source, Mode::kAccuracy);
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_EQ(ran->end.failed, 0u) << ran->end.first_failure;
    const auto answers = read_accuracy(folder_.path());
    ASSERT_TRUE(answers) << answers.error().message;
    std::vector<std::string> now(kSamples);
    for (const LoggedAnswer& a : *answers) {
      EXPECT_EQ(a.data.size(), 4 * static_cast<std::size_t>(a.tokens));
      EXPECT_TRUE(a.tokens >= 2 && a.tokens <= 6) << a.tokens;
      if (scenario == Scenario::kSingleStream) {
        EXPECT_EQ(a.first_token, a.data.substr(0, 4));
      }
      now[a.sample] = a.data;
    }
    if (!before.empty()) {
      EXPECT_EQ(now, before);
    }
    before = now;
  }
}

TEST_F(LoadGen, AnEnginesRefusalIsAFailureOfTheSample) {
  auto loaded = engine::load_model(testing::data_path("arch/llama/model-f32.gguf"), {.threads = 1});
  ASSERT_TRUE(loaded) << loaded.error().message;
  const Dataset set = questions(1, "\"tokens\": [2000000000, {}]");  // no such token
  auto source = EngineSource::start(*loaded, {.max_tokens = 6}, set);
  ASSERT_TRUE(source) << source.error().message;
  const auto warm = warm_up(**source, 1, 1, 1, std::chrono::minutes(1), [] { return true; });
  ASSERT_FALSE(warm);
  EXPECT_EQ(warm.error().code, ErrorCode::kNetwork);
}

}  // namespace
}  // namespace weir::mlperf

#endif
