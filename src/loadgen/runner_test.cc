// SPDX-License-Identifier: Apache-2.0
// The generator against the null server, over real sockets. A loaded machine makes everything later, never earlier: so these tests look at
// what is said and at lower bounds; how exact the figures are on a quiet machine is for loadgen_bench.
#include "loadgen/runner.h"

#include <gtest/gtest.h>

#include "loadgen/metrics.h"
#include "loadgen/null_server.h"

namespace weir::loadgen {
namespace {

using namespace std::chrono_literals;

class Rig {
 public:
  explicit Rig(NullServerOptions options = {}) {
    auto started = NullServer::start(std::move(options));
    EXPECT_TRUE(started) << (started ? "" : started.error().message);
    server = std::move(*started);
    plan.shape.model = "null";
    plan.conversations = {ask("one two three", 4)};
  }
  static Conversation ask(const std::string& text, std::int64_t max_tokens) {
    return {{{.content = message("user", text), .max_tokens = max_tokens}}};
  }
  Rig& constant(int requests, Duration gap) {
    for (int i = 0; i < requests; ++i) plan.arrivals.push_back(gap * i);
    return *this;
  }
  RunResult measure() {
    const auto target = Target::resolve({.url = server->address(), .chat = plan.shape.chat, .headers = {}, .api_key = {}, .tls = {}});
    EXPECT_TRUE(target);
    auto result = run(plan, *target, options, progress);
    EXPECT_TRUE(result) << (result ? "" : result.error().message);
    return std::move(*result);
  }
  std::unique_ptr<NullServer> server;
  LoadPlan plan;
  RunOptions options;
  Progress progress;
};

NullServerOptions paced(Duration ttft, Duration itl, int tokens = 0) {
  NullServerOptions options;
  options.ttft = Distribution::constant(to_seconds(ttft));
  options.itl = Distribution::constant(to_seconds(itl));
  options.tokens = Distribution::constant(tokens);
  return options;
}

TEST(Runner, MeasuresWhatTheServerDoes) {
  Rig rig(paced(20ms, 3ms, 6));
  const RunResult result = rig.constant(10, 5ms).measure();
  ASSERT_EQ(result.records.size(), 10u);
  for (const RequestRecord& r : result.records) {
    EXPECT_EQ(r.outcome, Outcome::kOk);
    EXPECT_EQ(r.status, 200);
    EXPECT_EQ(r.events, 6);
    EXPECT_EQ(r.output_tokens, 6);
    EXPECT_EQ(r.prompt_tokens, 3);
    EXPECT_EQ(r.gaps.size(), 5u);
    EXPECT_GE(r.sent, r.scheduled);
    EXPECT_GE(r.first_token - r.sent, 20ms - 100us);  // the server's clock starts when it has read, which may be before send() returns
    EXPECT_GE(r.done - r.sent, 35ms - 100us);
    EXPECT_GE(r.done, r.last_token);
  }
  EXPECT_EQ(result.first_error, "");
}

TEST(Runner, TheServersOwnTimesAndUsage) {
  NullServerOptions options = paced(4ms, 1ms, 3);
  options.cached_tokens = 2;
  Rig rig(std::move(options));
  rig.plan.shape.timings = true;
  const RunResult result = rig.constant(2, 1ms).measure();
  for (const RequestRecord& r : result.records) {
    EXPECT_EQ(r.cached_tokens, 2);
    EXPECT_NEAR(r.prefill_s, 0.004, 1e-6);  // programmed, not measured
    EXPECT_NEAR(r.decode_s, 0.002, 1e-6);
    EXPECT_GE(r.queue_s, 0);
  }
}

TEST(Runner, ACapMakesRequestsWaitAndTheirLatencyGrow) {
  Rig rig(paced(30ms, 0ms, 1));
  rig.options.max_concurrency = 1;
  const RunResult result = rig.constant(6, 2ms).measure();
  EXPECT_EQ(result.connections_opened, 1u);
  for (std::size_t i = 0; i < 6; ++i) {
    const RequestRecord& r = result.records[i];
    EXPECT_EQ(r.outcome, Outcome::kOk);
    EXPECT_EQ(r.scheduled, 2ms * static_cast<int>(i));
    // Each waits for all before it: coordinated omission would report 30 ms for every one.
    EXPECT_GE(r.done - r.scheduled, 30ms * static_cast<int>(i + 1) - 2ms * static_cast<int>(i) - 100us * static_cast<int>(i + 1));
    if (i > 0) {
      EXPECT_EQ(r.eligible, result.records[i - 1].done);
    }
  }
}

TEST(Runner, ASerialServerShowsItsQueue) {
  NullServerOptions options = paced(15ms, 0ms, 1);
  options.slots = 1;
  Rig rig(std::move(options));
  const RunResult result = rig.constant(5, 1ms).measure();
  Duration last{};
  for (const RequestRecord& r : result.records) last = std::max(last, r.done);
  EXPECT_GE(last, 75ms);
}

TEST(Runner, AStallShowsInTheLatencies) {
  NullServerOptions options = paced(5ms, 2ms, 20);
  options.stalls = {{20ms, 150ms}};
  Rig rig(std::move(options));
  const RunResult result = rig.constant(40, 2ms).measure();
  std::size_t hit = 0, long_gaps = 0;
  for (const RequestRecord& r : result.records) {
    hit += r.done - r.scheduled >= 150ms;
    for (const Duration gap : r.gaps) long_gaps += gap >= 140ms;
  }
  EXPECT_GE(hit, 8u);  // what was under way at 20 ms
  EXPECT_GE(long_gaps, 1u);
}

TEST(Runner, ErrorsAndCutsAreCountedByKind) {
  NullServerOptions options = paced(1ms, 1ms, 4);
  options.error_every = 5;
  options.error_status = 429;
  options.cut_every = 4;
  Rig rig(std::move(options));
  const RunResult result = rig.constant(40, 1ms).measure();
  std::size_t errors = 0, cuts = 0, ok = 0;
  for (const RequestRecord& r : result.records) {
    errors += r.outcome == Outcome::kHttpError && r.status == 429;
    cuts += r.outcome == Outcome::kCut;
    ok += r.outcome == Outcome::kOk;
  }
  EXPECT_EQ(errors, 8u);  // every fifth of 40
  EXPECT_EQ(cuts, 8u);    // every fourth that is not a fifth
  EXPECT_EQ(ok, 24u);
  EXPECT_FALSE(result.first_error.empty());
}

TEST(Runner, TimeoutsEndARequestAlone) {
  NullServerOptions options = paced(0ms, 0ms, 1);
  options.ttft = Distribution::empirical({0.0, 30.0});
  Rig rig(std::move(options));
  rig.options.timeout = 100ms;
  const RunResult result = rig.constant(20, 1ms).measure();
  std::size_t timeouts = 0, ok = 0;
  for (const RequestRecord& r : result.records) timeouts += r.outcome == Outcome::kTimeout, ok += r.outcome == Outcome::kOk;
  EXPECT_EQ(timeouts + ok, 20u);
  EXPECT_GT(timeouts, 0u);
}

TEST(Runner, TurnsRepeatWhatWasSaid) {
  Rig rig(paced(1ms, 0ms, 5));
  rig.plan.conversations = {
      {{{.content = message("user", "a b c"), .max_tokens = 5}, {.content = message("user", "d e"), .max_tokens = 5}}}};
  const RunResult result = rig.constant(3, 1ms).measure();
  ASSERT_EQ(result.records.size(), 6u);
  for (const RequestRecord& r : result.records) {
    EXPECT_EQ(r.outcome, Outcome::kOk);
    EXPECT_EQ(r.prompt_tokens, r.turn == 0 ? 3 : 3 + 5 + 2);  // the null server counts words: its answer has five
  }
}

TEST(Runner, ClosedLoopKeepsItsUsersBusy) {
  Rig rig(paced(2ms, 0ms, 1));
  rig.plan.users = 3;
  rig.plan.closed_requests = 20;
  rig.plan.think = Distribution::constant(0.001);
  const RunResult result = rig.measure();
  EXPECT_EQ(result.records.size(), 20u);
  EXPECT_FALSE(result.open_loop);
  // At no time more than three requests.
  for (const RequestRecord& r : result.records) {
    int others = 0;
    for (const RequestRecord& o : result.records) others += &o != &r && o.sent <= r.sent && o.done > r.sent;
    EXPECT_LE(others, 2);
  }
}

TEST(Runner, WholeAnswersAndCompletionsAndThreads) {
  Rig rig(paced(1ms, 1ms, 3));
  rig.plan.shape.stream = false;
  rig.options.threads = 2;
  const RunResult whole = rig.constant(10, 1ms).measure();
  ASSERT_EQ(whole.records.size(), 10u);
  for (const RequestRecord& r : whole.records) {
    EXPECT_EQ(r.outcome, Outcome::kOk);
    EXPECT_EQ(r.output_tokens, 3);
    EXPECT_EQ(r.first_token, kNever);
  }
  Rig text(paced(1ms, 1ms, 3));
  text.plan.shape.chat = false;
  text.plan.conversations = {{{{.content = "\"a b\"", .max_tokens = 3}}}};
  const RunResult pieces = text.constant(3, 1ms).measure();
  for (const RequestRecord& r : pieces.records) {
    EXPECT_EQ(r.outcome, Outcome::kOk);
    EXPECT_EQ(r.prompt_tokens, 2);
    EXPECT_EQ(r.events, 3);
  }
}

TEST(Runner, NobodyListensIsAnErrorAndNonsenseIsRefused) {
  EXPECT_FALSE(Target::resolve({.url = "http://127.0.0.1:1", .chat = true, .headers = {}, .api_key = {}, .tls = {}}));
  EXPECT_FALSE(Target::resolve({.url = "ftp://127.0.0.1", .chat = true, .headers = {}, .api_key = {}, .tls = {}}));
  Rig rig;
  const auto target = Target::resolve({.url = rig.server->address(), .chat = true, .headers = {}, .api_key = {}, .tls = {}});
  EXPECT_FALSE(run(rig.plan, *target, rig.options, rig.progress));  // neither arrivals nor users
  rig.plan.conversations.clear();
  EXPECT_FALSE(run(rig.constant(1, 0ms).plan, *target, rig.options, rig.progress));
}

TEST(Runner, StopsWhenAsked) {
  Rig rig(paced(60s, 0ms, 1));
  rig.progress.stop = true;
  const RunResult result = rig.constant(3, 1ms).measure();
  EXPECT_TRUE(result.interrupted);
  for (const RequestRecord& r : result.records) EXPECT_EQ(r.outcome, Outcome::kUnfinished);
}

}  // namespace
}  // namespace weir::loadgen
