// SPDX-License-Identifier: Apache-2.0
// The step loop on a model that is a hash of all that a row can see, with every kind of request, reader, policy and memory, with
// caches that are much too small, guesses that are often wrong and steps that fail: every request ends, once, with what it gets
// alone, and everything is given back. WEIR_RANDOM_STEPS makes it longer.
#include <cstdlib>
#include <map>
#include <set>

#include "base/testing.h"
#include "engine/loaded_model.h"
#include "engine/test_service.h"
#include "grammar/vocabulary.h"
#include "kvcache/test_memory.h"

namespace weir::engine {
namespace {

using std::chrono::milliseconds;

constexpr std::int32_t kVocabulary = 264;
constexpr TokenId kLetters = 64, kLetterCount = 8, kEndToken = 261;  // "a" to "h" are likely, the end now and then

std::shared_ptr<const tokenizer::Tokenizer> tokenizer() {
  static const auto loaded = load_tokenizer(testing::data_path("arch/mistral")).value();
  return loaded;
}

// The same for equal contents, and different for each token.
void logits_of(kvcache::Content content, std::span<float> logits) {
  for (std::size_t v = 0; v < logits.size(); ++v) {
    const std::uint64_t mixed = kvcache::fold_multiply(content ^ v, 0x9fb21c651e98df25);
    const auto id = static_cast<TokenId>(v);
    const bool likely = id >= kLetters && id < kLetters + kLetterCount;
    logits[v] = static_cast<float>(mixed >> 44) * 4e-6f + (likely ? 8.f : id == kEndToken ? 7.f : 0.f);
  }
}

TokenId likeliest(kvcache::Content content) {
  std::vector<float> logits(kVocabulary);
  logits_of(content, logits);
  return sampling::argmax(logits);
}

class HashModel final : public StepExecutor {
 public:
  HashModel(const kvcache::CacheOptions& options, const scheduler::Scheduler& scheduler)
      : scheduler_(scheduler), memory_(options), phases_differ_(options.phases_differ) {}
  std::int32_t vocabulary() const override { return kVocabulary; }

  Result<kernels::ConstMatrix> run(const scheduler::StepPlan& plan, std::span<const RowContext> contexts) override {
    kvcache::apply(plan.memory, memory_, nullptr);
    memory_.begin_step();
    logits_.clear();
    for (std::size_t i = 0; i < plan.rows.size(); ++i) run_row(plan.rows[i], contexts[i].rope_length);
    return kernels::ConstMatrix(logits_.data(), static_cast<std::int64_t>(logits_.size()) / kVocabulary, kVocabulary);
  }

 private:
  void run_row(const scheduler::Row& row, std::int64_t prompt) {
    const auto known = scheduler_.tokens(row.sequence).first(static_cast<std::size_t>(row.first_position));
    std::vector<TokenId> tokens(known.begin(), known.end());
    tokens.insert(tokens.end(), row.tokens.begin(), row.tokens.end());
    memory_.run(*row.memory, tokens, prompt, row.first_position);
    const auto all = kvcache::contents(tokens, prompt, phases_differ_);
    for (std::size_t p = all.size() - static_cast<std::size_t>(row.logits); p < all.size(); ++p) {
      logits_.resize(logits_.size() + kVocabulary);
      logits_of(all[p], std::span(logits_).last(kVocabulary));
    }
  }

  const scheduler::Scheduler& scheduler_;
  kvcache::TestMemory memory_;
  bool phases_differ_;
  std::vector<float> logits_;
};

// Guesses what greedy decoding says, but not always.
class HalfRightSource final : public speculation::DraftSource {
 public:
  explicit HalfRightSource(std::set<SeqId>& known) : known_(known) {}
  void offer(std::span<const speculation::SequenceView> views, std::span<speculation::Offer> offers) override {
    for (std::size_t i = 0; i < views.size(); ++i) {
      known_.insert(views[i].sequence);
      offers[i] = {.strength = static_cast<std::int32_t>(1 + random_() % 30), .most = static_cast<std::int32_t>(random_() % 7)};
    }
  }
  Status draft(std::span<const speculation::SequenceView> views, std::span<const speculation::Wish> wishes,
               std::span<std::vector<TokenId>> guesses) override {
    if (random_() % 50 == 0) return fail(ErrorCode::kInternal, "no guesses today");
    for (std::size_t w = 0; w < wishes.size(); ++w) {
      const auto tokens = views[wishes[w].view].tokens;
      std::vector<TokenId> all(tokens.begin(), tokens.end());
      for (std::int32_t i = 0; i < wishes[w].length; ++i) {
        const TokenId best = likeliest(kvcache::contents(all, 0, false).back());
        all.push_back(random_() % 6 == 0 ? kLetters + static_cast<TokenId>(random_() % kLetterCount) : best);
        guesses[w].push_back(all.back());
      }
    }
    return {};
  }
  double seconds(std::int64_t, std::int32_t) const override { return 0; }
  bool free() const override { return true; }
  void forget(SeqId sequence) override { known_.erase(sequence); }

 private:
  std::set<SeqId>& known_;
  std::mt19937_64 random_{5};
};

std::vector<std::shared_ptr<const grammar::Grammar>> grammars() {
  std::vector<std::shared_ptr<const grammar::Grammar>> all;
  const auto vocabulary = grammar::Vocabulary::create(tokenizer(), kVocabulary);
  for (const char* expression : {"[a-d]{2,9}", "abc(hello|help) [a-h]{3}", "(ab|cd|ef){1,6}"})
    all.push_back(grammar::compile({.kind = grammar::GrammarKind::kRegex, .text = expression}, vocabulary).value());
  return all;
}

const grammar::Grammar* grammar_of(const CompletionRequest& request) {
  static const auto all = grammars();
  return request.grammar ? all[static_cast<std::size_t>(request.grammar->text[0] - '0')].get() : nullptr;
}

std::optional<grammar::Matcher> matcher_of(const CompletionRequest& request) {
  const grammar::Grammar* grammar = grammar_of(request);
  if (grammar == nullptr) return std::nullopt;
  return grammar::Matcher::create(std::shared_ptr<const grammar::Grammar>(std::shared_ptr<void>(), grammar)).value();
}

// One answer, token by token, by the book.
CompletionEvent answer_alone(const CompletionRequest& request, std::int32_t number, bool phases_differ) {
  Answer answer(request, request.prompt, number, request.prompt_only ? 0 : request.max_tokens, tokenizer());
  auto matcher = matcher_of(request);
  std::vector<TokenId> tokens = request.prompt;
  std::vector<float> logits(kVocabulary);
  if (request.prompt_only) answer.end(FinishReason::kLength);
  while (!answer.ended()) {
    logits_of(kvcache::contents(tokens, static_cast<std::int64_t>(request.prompt.size()), phases_differ).back(), logits);
    const auto chosen = matcher ? answer.choose(logits, tokens.size(), *matcher) : answer.choose(logits, tokens.size());
    EXPECT_TRUE(chosen.has_value()) << chosen.error().message;
    if (!chosen) break;
    tokens.push_back(*chosen);
    answer.take(tokens.back());
    if (!matcher || answer.ended()) continue;
    const auto forced = request.sampling.logprobs < 0 && !matcher->must_end() ? matcher->forced().value() : std::vector<TokenId>();
    for (const TokenId id : forced) {
      EXPECT_TRUE(matcher->accept(id));
      tokens.push_back(id);
      if (answer.take_forced(id)) break;
    }
    if (matcher->must_end()) answer.end(FinishReason::kStop);
  }
  return *answer.take_event();
}

Alone alone(const CompletionRequest& request, bool phases_differ) {
  Alone all;
  for (std::int32_t i = 0; i < request.answers; ++i) all.answers.push_back(answer_alone(request, i, phases_differ));
  std::vector<float> logits(kVocabulary);
  const auto contents = kvcache::contents(request.prompt, static_cast<std::int64_t>(request.prompt.size()), phases_differ);
  for (std::size_t i = 1; i < contents.size() && request.prompt_logprobs >= 0; ++i) {
    logits_of(contents[i - 1], logits);
    all.prompt_logprobs.push_back(sampling::token_logprobs(logits, request.prompt[i], 0).token.logprob);
  }
  return all;
}

CompletionRequest wish(std::mt19937_64& random, bool constrained) {
  const auto below = [&](std::size_t bound) { return random() % bound; };
  CompletionRequest r;
  const std::size_t size = 1 + below(30);
  const auto kind = static_cast<TokenId>(below(3));
  for (std::size_t i = 0; i < size; ++i) r.prompt.push_back(i < 14 ? kind : static_cast<TokenId>(below(4)));
  r.max_tokens = 1 + static_cast<std::int64_t>(below(25));
  r.prompt_only = below(25) == 0;
  if (!r.prompt_only && below(4) == 0) r.answers = 2 + static_cast<std::int32_t>(below(4));
  if (below(2) == 0) r.sampling.temperature = 1;
  r.sampling.seed = random();
  if (below(8) == 0) r.sampling.frequency_penalty = 0.5f;
  if (below(8) == 0) r.sampling.logprobs = 1;
  if (below(8) == 0) r.prompt_logprobs = 0;
  if (below(6) == 0) r.sampling.stop_tokens = {kLetters + static_cast<TokenId>(below(kLetterCount))};
  if (below(6) == 0) r.sampling.stop = {std::string(1, static_cast<char>('a' + below(8))) + static_cast<char>('a' + below(8))};
  if (below(8) == 0) r.min_tokens = static_cast<std::int64_t>(below(static_cast<std::size_t>(r.max_tokens)));
  if (constrained && below(3) == 0) {
    r.grammar = grammar::GrammarSpec{.kind = grammar::GrammarKind::kRegex, .text = std::to_string(below(3))};
  } else {
    r.ignore_end = below(8) == 0;
  }
  r.priority = static_cast<std::int32_t>(below(3));
  r.tenant = below(3) == 0 ? "a" : "b";
  if (below(2) == 0) r.ttft_target = milliseconds(1 + below(300));
  if (below(2) == 0) r.tpot_target = milliseconds(5 + below(30));
  if (below(6) == 0) r.queue_limit = milliseconds(1 + below(500));
  if (below(10) == 0) r.time_limit = milliseconds(1 + below(300));
  if (below(50) == 0) r.time_limit = r.queue_limit = r.tpot_target = Duration::max();
  r.speculate = below(4) != 0;
  return r;
}

struct Kind {
  const char* name;
  std::vector<kvcache::GroupLayout> groups;
  std::int32_t slots = 0;
  bool phases_differ = false, prefix_cache = true, speculation = true, grammars = false;
  std::int32_t fail_every = 0;
  int policy = 0;
  std::size_t clients = 14;
};

std::unique_ptr<scheduler::Policy> policy(int number) {
  switch (number) {
    case 0: return scheduler::first_come();
    case 1: return scheduler::by_priority(milliseconds(50));
    case 2: return scheduler::by_deadline(milliseconds(200));
    default: return scheduler::fair_share({{"a", 3.0}});
  }
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::int64_t kSteps = 12'000;
#else
constexpr std::int64_t kSteps = 100'000;
#endif

std::int64_t steps() {
  const char* asked = std::getenv("WEIR_RANDOM_STEPS");
  return asked ? std::atoll(asked) : kSteps;
}

class StepLoopRandomTest : public ::testing::TestWithParam<Kind> {};

TEST_P(StepLoopRandomTest, EveryRequestEndsOnceWithWhatItGetsAlone) {
  const Kind& kind = GetParam();
  ServiceSetup setup;
  setup.cache.block_tokens = 4;
  setup.cache.groups = kind.groups;
  setup.cache.state_slots = kind.slots;
  setup.cache.checkpoint_blocks = 2;
  setup.cache.prefix_cache = kind.prefix_cache;
  setup.cache.phases_differ = kind.phases_differ;
  const kvcache::CacheOptions cache = setup.cache;
  setup.policy = policy(kind.policy);
  setup.tokenizer = tokenizer();
  setup.wish = [&](std::mt19937_64& random) { return wish(random, kind.grammars); };
  setup.alone = [&](const CompletionRequest& request) { return alone(request, kind.phases_differ); };
  setup.matcher = matcher_of;
  setup.clients = kind.clients;
  setup.fail_every = kind.fail_every;
  setup.seed = static_cast<std::uint64_t>(kind.policy) + 10;
  std::set<SeqId> guessed;
  if (kind.speculation) {
    std::vector<std::unique_ptr<speculation::DraftSource>> sources;
    sources.push_back(std::make_unique<HalfRightSource>(guessed));
    setup.speculator = std::make_unique<speculation::Speculator>(speculation::SpeculatorOptions{}, std::move(sources));
  }
  TestService service(std::move(setup), [&](const auto& scheduler) { return std::make_unique<HashModel>(cache, scheduler); });
  const std::int64_t count = steps();
  for (std::int64_t i = 0; i < count && !HasFailure(); ++i) ASSERT_NO_FATAL_FAILURE(service.step()) << "step " << i;
  ASSERT_NO_FATAL_FAILURE(service.finish());
  EXPECT_TRUE(guessed.empty()) << "sequences that the speculator was not told to forget";
  // The run met what it is about.
  const ServiceStats stats = service.stats();
  EXPECT_GT(service.whole, count / 60);
  EXPECT_LT(service.longest_stay, 1500);
  if (!kind.groups.empty() && kind.fail_every == 0) {
    EXPECT_GT(stats.scheduler.preemptions, count / 100);
  }
  EXPECT_EQ(stats.failed_steps > 0, kind.fail_every > 0);
  EXPECT_EQ(stats.accepted_tokens > count / 50, kind.speculation);
  EXPECT_EQ(stats.forced_tokens > 0, kind.grammars);
  EXPECT_EQ(stats.cache.found_tokens > 0, kind.prefix_cache);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, StepLoopRandomTest,
    ::testing::Values(Kind{.name = "FullAttention", .groups = {{15, 0}}},
                      Kind{.name = "FullAndWindowed", .groups = {{15, 0}, {9, 7}}, .phases_differ = true, .policy = 1},
                      Kind{.name = "WindowedOnly", .groups = {{9, 7}}, .speculation = false, .policy = 2},
                      Kind{.name = "Recurrent", .groups = {}, .slots = 7, .policy = 3},
                      Kind{.name = "Hybrid", .groups = {{15, 0}, {9, 7}}, .slots = 5, .policy = 1},
                      Kind{.name = "NothingIsKept", .groups = {{15, 0}}, .prefix_cache = false, .policy = 2},
                      Kind{.name = "StepsFail", .groups = {{15, 0}, {9, 7}}, .slots = 6, .fail_every = 150, .policy = 3},
                      Kind{.name = "QueueIsFull", .groups = {{15, 0}}, .clients = 40},
                      Kind{.name = "Grammars", .groups = {{15, 0}}, .grammars = true, .policy = 1},
                      Kind{.name = "GrammarsAndFailures", .groups = {{30, 0}}, .grammars = true, .fail_every = 100}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace weir::engine
