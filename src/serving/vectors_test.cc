// SPDX-License-Identifier: Apache-2.0
// Vectors over HTTP: what waits together is computed together, errors stay with whose they are, and no wait is without an end.
#include "serving/serving_test_support.h"

namespace weir::serving::testing {
namespace {

std::shared_ptr<ModelHost> host_of(const std::filesystem::path& path) {
  ServeOptions options;
  options.cpu.threads = 1;
  options.engine.cache_tokens = 1024;
  auto host = ModelHost::load(spec("m", path), path, options);
  EXPECT_TRUE(host) << host.error().message;
  return *host;
}

using Vectors = Result<std::vector<engine::Embedding>>;

// Many requests that wait behind one that is being answered.
class Waiting {
 public:
  explicit Waiting(ModelHost& host) : host_(host) {
    ModelHost::VectorWork first{.inputs = {std::string("first")}};
    first.done = [this](const Vectors&) {
      busy_.set_value();
      free_.get_future().wait();
    };
    EXPECT_TRUE(host_.embed(std::move(first)));
    busy_.get_future().wait();
  }
  void add(ModelHost::VectorWork work) {
    const std::size_t at = vectors_.size();
    vectors_.emplace_back();
    work.done = [this, at](Vectors vectors) {
      vectors_[at] = std::move(vectors);
      ++done_;
    };
    works_.push_back(std::move(work));
  }
  std::vector<Vectors> run() {
    for (auto& work : works_) EXPECT_TRUE(host_.embed(std::move(work)));
    free_.set_value();
    EXPECT_TRUE(eventually([&] { return done_ == vectors_.size(); }));
    return std::move(vectors_);
  }

 private:
  ModelHost& host_;
  std::promise<void> busy_, free_;
  std::vector<ModelHost::VectorWork> works_;
  std::vector<Vectors> vectors_;
  std::atomic<std::size_t> done_{0};
};

Vectors alone(ModelHost& host, ModelHost::VectorWork work) {
  std::promise<Vectors> promise;
  work.done = [&](Vectors vectors) { promise.set_value(std::move(vectors)); };
  EXPECT_TRUE(host.embed(std::move(work)));
  return promise.get_future().get();
}

std::string text(int i) { return std::string(static_cast<std::size_t>(1 + i * 5 % 17), static_cast<char>('a' + i)); }

TEST(Vectors, RequestsThatWaitSharePassesAndGetTheBitsOfEachAlone) {
  for (const char* model : {"arch/bert", "arch/llama"}) {
    const auto host = host_of(data_path(model));
    std::vector<std::vector<float>> expected;
    for (int i = 0; i < 12; ++i) expected.push_back(alone(*host, {.inputs = {text(i)}}).value().front().values);
    const std::int64_t before = host->vector_batches();
    Waiting waiting(*host);
    for (int i = 0; i < 12; i += 2) waiting.add({.inputs = {text(i), text(i + 1)}});
    const auto vectors = waiting.run();
    for (int i = 0; i < 12; ++i)
      EXPECT_EQ(vectors.at(static_cast<std::size_t>(i / 2)).value().at(static_cast<std::size_t>(i % 2)).values,
                expected[static_cast<std::size_t>(i)]);
    EXPECT_EQ(host->vector_batches() - before, 2) << model;  // the first, and all others
  }
}

TEST(Vectors, OnlyLikeRequestsAreMerged) {
  const auto host = host_of(data_path("arch/bert"));
  const std::int64_t before = host->vector_batches();
  Waiting waiting(*host);
  for (int i = 0; i < 4; ++i) waiting.add({.inputs = {text(1)}, .normalize = i % 2 == 0});
  const auto vectors = waiting.run();
  EXPECT_EQ(host->vector_batches() - before, 3);
  EXPECT_EQ(vectors[0]->front().values, vectors[2]->front().values);
  EXPECT_EQ(vectors[1]->front().values, vectors[3]->front().values);
  EXPECT_NE(vectors[0]->front().values, vectors[1]->front().values);
}

TEST(Vectors, OneThatCannotBeReadFailsAlone) {
  const auto host = host_of(data_path("arch/bert"));
  Waiting waiting(*host);
  std::string many;
  for (int i = 0; i < 200; ++i) many += "a b ";
  waiting.add({.inputs = {text(1)}});
  waiting.add({.inputs = {text(2), many}});
  waiting.add({.inputs = {text(3)}});
  const auto vectors = waiting.run();
  EXPECT_TRUE(vectors[0]);
  ASSERT_FALSE(vectors[1]);
  EXPECT_TRUE(vectors[1].error().message.starts_with("input 1:")) << vectors[1].error().message;
  EXPECT_TRUE(vectors[2]);
}

TEST(Vectors, WhoIsGoneCostsNothing) {
  const auto host = host_of(data_path("arch/bert"));
  const std::int64_t before = host->vector_batches();
  std::promise<void> busy, free;
  EXPECT_TRUE(host->embed({.inputs = {text(0)}, .done = [&](const Vectors&) {
                             busy.set_value();
                             free.get_future().wait();
                           }}));
  busy.get_future().wait();
  std::atomic<bool> made{false};
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(host->embed({.inputs = {text(i)}, .wanted = [] { return false; }, .done = [&](const Vectors&) { made = true; }}));
  free.set_value();
  EXPECT_TRUE(alone(*host, {.inputs = {text(4)}}));
  EXPECT_FALSE(made);
  EXPECT_EQ(host->vector_batches() - before, 2);
}

// A model that also generates makes vectors between its steps; one that hangs there keeps nobody for ever.
TEST(Vectors, AStepThatDoesNotEndIs504InTime) {
  const TestServer s({spec("m", data_path("arch/llama"))});
  engine::Engine& engine = *s.server->registry().hosts().front()->engine();
  auto entered = std::make_shared<std::promise<void>>();
  auto leave = std::make_shared<std::promise<void>>();
  std::thread other([&] {
    EXPECT_TRUE(engine.run_between_steps(
        [entered, wait = leave->get_future().share()] {
          entered->set_value();
          wait.wait();
        },
        1min));
  });
  entered->get_future().wait();
  http::ClientRequest request = s.request("POST", "/v1/embeddings", R"({"model": "m", "input": "a"})");
  request.headers.add("x-request-timeout-ms", "50");
  const Answer late = s.send(std::move(request));
  EXPECT_EQ(late.status, 504) << late.text;
  EXPECT_EQ(late.error_code(), "timeout");
  std::atomic<bool> ran{false};
  const auto given_up = engine.run_between_steps([&] { ran = true; }, 10ms);
  ASSERT_FALSE(given_up);
  EXPECT_EQ(given_up.error().code, ErrorCode::kDeadline);
  leave->set_value();
  other.join();
  EXPECT_EQ(s.post("/v1/embeddings", {{"model", "m"}, {"input", "a"}}).status, 200);
  EXPECT_FALSE(ran);  // what nobody waits for any longer is not begun
}

}  // namespace
}  // namespace weir::serving::testing
