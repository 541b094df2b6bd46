// SPDX-License-Identifier: Apache-2.0
// Models coming and going: who waits, who is refused, who leaves for whom.
#include "serving/model_registry.h"

#include "serving/serving_test_support.h"

namespace weir::serving::testing {
namespace {

// Models that are loaded from the same small files, when the test opens the gate.
struct Models {
  explicit Models(const std::function<void(ServeOptions&)>& change = {}) {
    options.cpu.threads = 1;
    options.engine.cache_tokens = 512;
    if (change) change(options);
    RegistryHooks hooks;
    hooks.load = [this](const ModelSpec& model, const std::filesystem::path& path) -> Result<std::shared_ptr<ModelHost>> {
      ++loads;
      while (closed) std::this_thread::sleep_for(1ms);
      if (broken) return fail(ErrorCode::kCorrupt, "the files are damaged");
      return ModelHost::load(model, path, options);
    };
    registry = ModelRegistry::create(options, hooks, clock);
    for (const char* name : {"a", "b", "c"}) EXPECT_TRUE(registry->add(spec(name, data_path("arch/llama"))));
  }
  ~Models() { registry->stop(); }
  ModelPhase phase(std::size_t index) const { return registry->list().at(index).phase; }

  ServeOptions options;
  TestClock clock;
  std::atomic<int> loads{0};
  std::atomic<bool> closed{false}, broken{false};
  std::shared_ptr<ModelRegistry> registry;
};

TEST(ModelRegistry, ManyRequestsWaitForOneLoad) {
  Models m([](ServeOptions& o) { o.max_load_waiters = 3; });
  m.closed = true;
  std::atomic<int> got{0}, refused{0};
  for (int i = 0; i < 5; ++i)
    m.registry->acquire("a", [&](api::ApiResult<ModelRegistry::Lease> lease) {
      if (!lease) {
        EXPECT_EQ(lease.error().status, 503);
        EXPECT_GT(lease.error().retry_after_s, 0);
      }
      ++(lease ? got : refused);
    });
  EXPECT_EQ(refused, 2);
  m.closed = false;
  EXPECT_TRUE(eventually([&] { return got == 3; }));
  EXPECT_EQ(m.loads, 1);
}

TEST(ModelRegistry, PatienceEndsAndAFaultIsToldToAllWhoWait) {
  Models m([](ServeOptions& o) { o.load_patience = 10s; });
  m.closed = true;
  std::atomic<int> status{0};
  m.registry->acquire("a", [&](api::ApiResult<ModelRegistry::Lease> lease) { status = lease ? 200 : lease.error().status; });
  m.clock.advance(11s);
  m.registry->tick();
  EXPECT_EQ(status, 503);
  m.closed = false;
  ASSERT_TRUE(eventually([&] { return m.phase(0) == ModelPhase::kReady; }));
  m.broken = true;
  const auto failed = m.registry->acquire_now("b");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, "model_load_failed");
  EXPECT_EQ(failed.error().message.find("damaged"), std::string::npos);  // for the log
  EXPECT_EQ(m.registry->list().at(1).error, "the files are damaged");
  m.broken = false;
  EXPECT_FALSE(m.registry->acquire_now("b"));  // not tried again at once
  m.clock.advance(6s);
  EXPECT_TRUE(m.registry->acquire_now("b"));
}

TEST(ModelRegistry, TheOneIdleForLongestLeavesForAnother) {
  std::uint64_t each = 0;
  {
    Models m;
    each = (*m.registry->acquire_now("a"))->host().bytes();
    EXPECT_GT(each, 0u);
  }
  Models m([&](ServeOptions& o) { o.memory_budget = each * 5 / 2; });
  ASSERT_TRUE(m.registry->acquire_now("a"));
  m.clock.advance(1s);
  ASSERT_TRUE(m.registry->acquire_now("b"));
  m.clock.advance(1s);
  auto a = *m.registry->acquire_now("a");
  const auto c = m.registry->acquire_now("c");
  ASSERT_TRUE(c);
  EXPECT_EQ(m.phase(0), ModelPhase::kReady);
  EXPECT_EQ(m.phase(1), ModelPhase::kUnloaded);
  EXPECT_LE(m.registry->bytes(), m.options.memory_budget);
  const auto b = m.registry->acquire_now("b");  // a and c are in use
  ASSERT_FALSE(b);
  EXPECT_EQ(b.error().code, "insufficient_memory");
  EXPECT_EQ(b.error().status, 503);
}

TEST(ModelRegistry, UnloadingWaitsForRequestsOrIsRefused) {
  Models m;
  auto lease = *m.registry->acquire_now("a");
  std::atomic<int> status{0};
  const auto note = [&](api::ApiResult<void> done) { status = done ? 200 : done.error().status; };
  m.registry->unload("a", 10s, note);
  m.registry->tick();
  EXPECT_EQ(status, 0);
  // Who comes meanwhile waits until it is settled.
  std::atomic<bool> came{false};
  m.registry->acquire("a", [&](api::ApiResult<ModelRegistry::Lease> other) { came = other.has_value(); });
  EXPECT_FALSE(came);
  m.clock.advance(11s);
  m.registry->tick();
  EXPECT_EQ(status, 409);
  EXPECT_TRUE(came);
  EXPECT_EQ(m.phase(0), ModelPhase::kReady);

  status = 0;
  m.registry->unload("a", 10s, note);
  std::atomic<bool> back{false};
  m.registry->acquire("a", [&](api::ApiResult<ModelRegistry::Lease> other) { back = other.has_value(); });
  lease.reset();
  EXPECT_TRUE(eventually([&] { return status == 200; }));
  EXPECT_TRUE(eventually([&] { return back.load(); }));
  EXPECT_EQ(m.loads, 2);
}

TEST(ModelRegistry, NamesAreTakenOnce) {
  Models m;
  ModelSpec other = spec("d", data_path("arch/llama"));
  other.aliases = {"gpt-4", "a"};
  EXPECT_FALSE(m.registry->add(other));
  other.aliases = {"gpt-4"};
  EXPECT_TRUE(m.registry->add(other));
  EXPECT_EQ(m.registry->find("gpt-4")->model, "d");
  EXPECT_FALSE(m.registry->find("gpt-5"));
  EXPECT_EQ((*m.registry->acquire_now("gpt-4"))->model(), "d");
}

}  // namespace
}  // namespace weir::serving::testing
