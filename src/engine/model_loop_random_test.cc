// SPDX-License-Identifier: Apache-2.0
// The step loop on real arithmetic: tiny models with full, windowed and recurrent layers in random traffic, with caches that force
// preemption, prefix hits and guesses. Every answer must be, to the last bit of its logprobs, that of the request alone.
#include "base/testing.h"
#include "engine/loaded_model.h"
#include "engine/model_executor.h"
#include "engine/test_service.h"
#include "speculation/lookup_source.h"

namespace weir::engine {
namespace {

constexpr std::int32_t kPrompt = 60, kAnswer = 14;

LoadedModel load(const std::string& folder) { return load_model(testing::data_path("arch/" + folder), {.threads = 1, .isa = ""}).value(); }

CacheLayout layout_for(const LoadedModel& loaded, std::int64_t tokens, bool prefix_cache) {
  return cache_layout(loaded.model->traits(), {.tokens = tokens,
                                               .sequences = 4,
                                               .step_rows = 24,
                                               .block_tokens = 8,
                                               .checkpoint_blocks = 2,
                                               .prefix_cache = prefix_cache,
                                               .kv_type = loaded.backend->kv_type()})
      .value();
}

// One request after the other in a memory that is large enough, without prefixes and guesses.
class Lonely {
 public:
  explicit Lonely(LoadedModel& loaded)
      : layout_(layout_for(loaded, 400, false)),
        cache_(layout_.cache),
        scheduler_({.token_budget = 500, .max_running = 8}, cache_, scheduler::first_come(), clock_),
        executor_(ModelExecutor::create(*loaded.model, layout_.memory).value()),
        loop_(*executor_, scheduler_, cache_, loaded.tokenizer, clock_) {}

  Alone operator()(CompletionRequest request) {
    const auto channel = std::make_shared<CompletionChannel>(notice_, nullptr);
    const auto stream = make_stream(channel);
    request.time_limit = request.queue_limit = {};
    const std::int64_t limit = request.max_tokens;
    loop_.admit(
        {.request = std::move(request), .channel = channel, .matcher = {}, .adapter = {}, .salt = {}, .limit = limit, .queued = {}});
    while (loop_.open_requests() > 0) loop_.step();
    Alone alone{.answers = collect(*stream, {}).value().answers, .prompt_logprobs = {}};
    for (const auto& each : alone.answers[0].prompt_logprobs) alone.prompt_logprobs.push_back(each.token.logprob);
    return alone;
  }

 private:
  FakeClock clock_;
  CacheLayout layout_;
  kvcache::Cache cache_;
  scheduler::Scheduler scheduler_;
  std::unique_ptr<ModelExecutor> executor_;
  StepLoop loop_;
  std::shared_ptr<Notice> notice_ = std::make_shared<Notice>();
};

CompletionRequest wish(std::mt19937_64& random) {
  const auto below = [&](std::size_t bound) { return random() % bound; };
  CompletionRequest r;
  const std::size_t size = 1 + below(kPrompt);
  for (std::size_t i = 0; i < size; ++i) r.prompt.push_back(static_cast<TokenId>(i < 40 ? 70 + i % 5 : below(256)));
  r.max_tokens = 1 + static_cast<std::int64_t>(below(kAnswer));
  if (below(4) == 0) r.answers = 2 + static_cast<std::int32_t>(below(2));
  if (below(2) == 0) r.sampling.temperature = 1;
  r.sampling.seed = random();
  r.sampling.logprobs = below(2) == 0 ? 1 : -1;
  if (below(8) == 0) r.prompt_logprobs = 0;
  r.ignore_end = below(2) == 0;
  r.priority = static_cast<std::int32_t>(below(3));
  return r;
}

class ModelLoopRandomTest : public ::testing::TestWithParam<const char*> {
 protected:
  static void TearDownTestSuite() { EXPECT_GT(drafted, 50) << "not every model repeats itself, but some do"; }
  static inline std::int64_t drafted = 0;
};

TEST_P(ModelLoopRandomTest, AnswersAreThoseOfEachRequestAlone) {
  LoadedModel loaded = load(GetParam());
  Lonely lonely(loaded);
  const CacheLayout layout = layout_for(loaded, 112, true);
  ServiceSetup setup;
  setup.cache = layout.cache;
  setup.scheduler = {.token_budget = 24, .max_running = 4, .max_waiting = 12, .max_waiting_tokens = 400};
  setup.policy = scheduler::by_priority(std::chrono::milliseconds(50));
  setup.tokenizer = loaded.tokenizer;
  setup.wish = wish;
  setup.alone = [&](const CompletionRequest& request) { return lonely(request); };
  std::vector<std::unique_ptr<speculation::DraftSource>> sources;
  sources.push_back(std::make_unique<speculation::LookupSource>());
  setup.speculator = std::make_unique<speculation::Speculator>(speculation::SpeculatorOptions{}, std::move(sources));
  TestService service(std::move(setup), [&](const auto&) {
    auto executor = ModelExecutor::create(*loaded.model, layout.memory).value();
    int passes = 1;
    while (executor->warm_up()) ++passes;  // leaves no trace
    EXPECT_GE(passes, 3);
    EXPECT_FALSE(executor->warm_up());
    return executor;
  });
  for (int i = 0; i < 400 && !HasFailure(); ++i) ASSERT_NO_FATAL_FAILURE(service.step()) << "step " << i;
  ASSERT_NO_FATAL_FAILURE(service.finish());
  const ServiceStats stats = service.stats();
  EXPECT_GT(service.whole, 15);
  EXPECT_GT(stats.cache.found_tokens, 0);
  drafted += stats.drafted_tokens;
  EXPECT_GT(stats.scheduler.preemptions, 0);
}

// Its passes write where sequences may lie from the first step on.
TEST(ModelExecutor, DoesNotWarmUpAfterAStep) {
  LoadedModel loaded = load("llama");
  const CacheLayout layout = layout_for(loaded, 112, true);
  kvcache::Cache cache(layout.cache);
  FakeClock clock;
  scheduler::Scheduler scheduler({.token_budget = 24, .max_running = 4}, cache, scheduler::first_come(), clock);
  const auto executor = ModelExecutor::create(*loaded.model, layout.memory).value();
  EXPECT_TRUE(executor->warm_up());
  StepLoop loop(*executor, scheduler, cache, loaded.tokenizer, clock);
  std::mt19937_64 random(3);
  const auto channel = std::make_shared<CompletionChannel>(std::make_shared<Notice>(), nullptr);
  const auto stream = make_stream(channel);
  CompletionRequest request = wish(random);
  const std::int64_t limit = request.max_tokens;
  loop.admit({.request = std::move(request), .channel = channel, .matcher = {}, .adapter = {}, .salt = {}, .limit = limit, .queued = {}});
  EXPECT_TRUE(loop.step());
  EXPECT_FALSE(executor->warm_up());
}

INSTANTIATE_TEST_SUITE_P(Models, ModelLoopRandomTest,
                         ::testing::Values("llama", "mistral", "gemma3_text", "mamba2", "lfm2", "qwen3_next", "deepseek_v3"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace weir::engine
