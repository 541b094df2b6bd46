// SPDX-License-Identifier: Apache-2.0
// Adapters over HTTP: loaded, used beside others, replaced and unloaded while streams that use them run.
#include "model/test_adapters.h"
#include "serving/serving_test_support.h"

namespace weir::serving::testing {
namespace {

void write_adapter(const std::filesystem::path& folder, int layers, std::int64_t hidden, std::int64_t inner, std::uint32_t seed) {
  model::testing::TestAdapter adapter;
  for (int layer = 0; layer < layers; ++layer) {
    adapter.changes.emplace_back(fmt::format("model.layers.{}.self_attn.q_proj", layer), hidden, hidden, adapter.rank, ++seed);
    adapter.changes.emplace_back(fmt::format("model.layers.{}.mlp.down_proj", layer), hidden, inner, adapter.rank, ++seed);
  }
  adapter.write_peft(folder);
}

std::string text_of(const Answer& answer) {
  EXPECT_EQ(answer.status, 200) << answer.text;
  return answer.status == 200 ? std::string(answer.json().at("choices").at(0).at("text").as_string()) : answer.text;
}

json::Object completion(std::string model, std::int64_t tokens) {
  return {{"model", model}, {"prompt", "A weir is a low dam built across a river to"}, {"max_tokens", tokens}, {"temperature", 0}};
}

TEST(Adapters, AreModelsOfTheirOwnNameWhileTheyAreLoaded) {
  const weir::testing::TemporaryFolder folder;
  write_adapter(folder.path() / "a", 2, 40, 72, 1);
  write_adapter(folder.path() / "b", 2, 40, 72, 1000);
  write_adapter(folder.path() / "misfit", 2, 48, 72, 1);
  ModelSpec lazy = spec("m", data_path("arch/llama"));
  lazy.preload = false;
  const TestServer s({lazy}, [&](ServeOptions& o, ServerParts&) { o.adapter_folder = folder.path(); });
  const auto load = [&](const char* name, const char* path, bool replace = false) {
    return s.post("/v1/load_lora_adapter", {{"lora_name", name}, {"lora_path", path}, {"load_inplace", replace}});
  };
  // Before its model is in memory: what does not fit is refused, and does not stand in the model's way.
  EXPECT_EQ(load("x", "misfit").status, 400);
  const std::string plain = text_of(s.post("/v1/completions", completion("m", 24)));
  EXPECT_EQ(s.post("/v1/completions", completion("x", 24)).error_code(), "model_not_found");

  EXPECT_EQ(load("a", "a").status, 200);
  EXPECT_EQ(load("a", "b").status, 400);  // the name is taken
  EXPECT_EQ(load("m", "b").status, 400);
  EXPECT_EQ(load("m", "b", true).status, 400);  // a model is not replaced by an adapter
  EXPECT_EQ(s.get("/v1/models/a").json().at("parent"), "m");
  const std::string with_a = text_of(s.post("/v1/completions", completion("a", 24)));
  EXPECT_NE(with_a, plain);
  EXPECT_EQ(text_of(s.post("/v1/completions", completion("m", 24))), plain);

  EXPECT_EQ(load("a", "misfit", true).status, 400);  // the old one stays
  EXPECT_EQ(text_of(s.post("/v1/completions", completion("a", 24))), with_a);
  EXPECT_EQ(load("a", "b", true).status, 200);
  const std::string with_b = text_of(s.post("/v1/completions", completion("a", 24)));
  EXPECT_NE(with_b, with_a);

  // They come back with their model.
  EXPECT_EQ(s.post("/v1/models/unload", {{"model", "m"}}).status, 200);
  EXPECT_EQ(text_of(s.post("/v1/completions", completion("a", 24))), with_b);

  EXPECT_EQ(s.post("/v1/unload_lora_adapter", {{"lora_name", "a"}}).status, 200);
  EXPECT_EQ(s.post("/v1/unload_lora_adapter", {{"lora_name", "m"}}).status, 404);
  EXPECT_EQ(s.post("/v1/completions", completion("a", 24)).error_code(), "model_not_found");
  EXPECT_EQ(text_of(s.post("/v1/completions", completion("m", 24))), plain);
}

TEST(Adapters, ChangeUnderNoStreamThatRuns) {
  WEIR_REQUIRE_CACHED(smollm2_path());
  const weir::testing::TemporaryFolder folder;
  write_adapter(folder.path() / "a", 30, 576, 1536, 1);
  write_adapter(folder.path() / "b", 30, 576, 1536, 1000);
  const TestServer s({spec("m", smollm2_path())}, [&](ServeOptions& o, ServerParts&) { o.adapter_folder = folder.path(); });
  const auto load = [&](const char* path, bool replace) {
    return s.post("/v1/load_lora_adapter", {{"lora_name", "l"}, {"lora_path", path}, {"load_inplace", replace}}).status;
  };
  ASSERT_EQ(load("a", false), 200);
  json::Object body = completion("l", 96);
  body["ignore_eos"] = true;
  const std::string expected = text_of(s.post("/v1/completions", body));

  body["stream"] = true;
  std::string streamed;
  std::atomic<int> events{0};
  std::promise<void> done;
  s.client->start(s.request("POST", "/v1/completions", boost::json::serialize(body)),
                  {.on_event =
                       [&](http::SseEvent& event) {
                         ++events;
                         if (event.data == "[DONE]") return;
                         const auto choices = json::parse(event.data, "an event")->at("choices").as_array();
                         if (!choices.empty()) streamed += std::string(choices.at(0).at("text").as_string());
                       },
                   .on_done = [&](Status, http::ClientResponse&) { done.set_value(); }});
  ASSERT_TRUE(eventually([&] { return events > 2; }));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(load("b", true), 200);
    EXPECT_EQ(s.post("/v1/unload_lora_adapter", {{"lora_name", "l"}}).status, 200);
    EXPECT_EQ(load("a", false), 200);
  }
  EXPECT_EQ(load("b", true), 200);
  done.get_future().wait();
  EXPECT_EQ(streamed, expected);
  body["stream"] = false;
  EXPECT_NE(text_of(s.post("/v1/completions", body)), expected);
}

}  // namespace
}  // namespace weir::serving::testing
