// SPDX-License-Identifier: Apache-2.0
// An adapter beside a model computes what the model with the adapter merged into its weights does; rows of different adapters and of none
// share a batch without a bit of difference; what does not belong to the model is refused with the reason.
#include "model/adapter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "base/testing.h"
#include "formats/gguf_reader.h"
#include "model/test_adapters.h"
#include "model/test_sequences.h"

namespace weir::model::testing {
namespace {

using kernels::Activations;
using ::testing::HasSubstr;
using weir::testing::data_path;
using weir::testing::TemporaryFolder;

const std::vector<TokenId> kPrompt = {5, 77, 30, 9, 101, 44, 44, 3, 99, 18, 50, 61};

// Every matrix of a layer that PEFT's "all-linear" would take, and the head.
TestAdapter adapter_for(const std::string& arch, std::uint32_t seed = 1, std::int64_t rank = 4) {
  TestAdapter adapter;
  adapter.rank = rank;
  const auto folder = formats::HfFolder::open(data_path("arch/" + arch));
  EXPECT_TRUE(folder.has_value());
  for (const formats::NamedTensor& t : folder->index.tensors()) {
    const bool in_layer =
        t.name.find("layers.") != std::string::npos || t.name.find("h.") != std::string::npos || t.name.find("layer.") != std::string::npos;
    const bool matrix = t.view.rank() == 2 && t.name.ends_with(".weight");
    if (!matrix || !(in_layer || t.name.starts_with("lm_head")) || t.name.find("embeddings") != std::string::npos) continue;
    if (t.name.find("norms.") != std::string::npos) continue;
    const bool in_out = arch == "gpt2" && in_layer;
    const std::int64_t out = t.view.dim(in_out ? 1 : 0), in = t.view.dim(in_out ? 0 : 1);
    adapter.changes.emplace_back(t.name.substr(0, t.name.size() - 7), out, in, rank, ++seed);
  }
  EXPECT_FALSE(adapter.changes.empty());
  return adapter;
}

std::unique_ptr<Model> loaded(const std::filesystem::path& path, int threads = 1, Activations activations = Activations::kF32) {
  auto model = load(path, activations, threads);
  EXPECT_TRUE(model.has_value()) << model.error().message;
  return model ? std::move(*model) : nullptr;
}

std::vector<Row> rows_with(Model& model, const Adapter* adapter) {
  TestSequences run(model, 1, static_cast<std::int32_t>(kPrompt.size()));
  run.use_adapters({adapter});
  auto rows = run.feed({{0, kPrompt}});
  EXPECT_TRUE(rows.has_value()) << rows.error().message;
  return rows.value_or(std::vector<Row>());
}

double farthest(const std::vector<Row>& a, const std::vector<Row>& b) {
  double most = a.size() == b.size() && !a.empty() ? 0 : INFINITY;
  for (std::size_t r = 0; r < std::min(a.size(), b.size()); ++r)
    for (std::size_t i = 0; i < a[r].size(); ++i) most = std::max(most, distance(a[r][i], b[r][i]));
  return most;
}

void expect_as_merged(Model& model, const std::filesystem::path& adapter_path, const std::filesystem::path& merged_path) {
  const auto adapter = load_adapter(adapter_path, model);
  ASSERT_TRUE(adapter.has_value()) << adapter.error().message;
  const auto merged = loaded(merged_path);
  ASSERT_TRUE(merged);
  const auto rows = rows_with(model, adapter->get());
  EXPECT_LT(farthest(rows, rows_with(*merged, nullptr)), 1e-4);
  EXPECT_GT(farthest(rows, rows_with(model, nullptr)), 1e-2) << "the adapter changes nothing";
}

class AdapterOf : public ::testing::TestWithParam<const char*> {};

TEST_P(AdapterOf, ComputesWhatMergedWeightsDo) {
  const std::string arch = GetParam();
  const TemporaryFolder folder;
  const TestAdapter adapter = adapter_for(arch);
  adapter.write_peft(folder.path() / "adapter");
  adapter.write_merged(data_path("arch/" + arch), folder.path() / "merged", arch == "gpt2");
  const auto model = loaded(data_path("arch/" + arch));
  ASSERT_TRUE(model);
  expect_as_merged(*model, folder.path() / "adapter", folder.path() / "merged");
}

INSTANTIATE_TEST_SUITE_P(Families, AdapterOf,
                         ::testing::Values("llama", "llama_tied", "llama_bias", "mistral", "qwen2", "qwen3", "qwen2_moe", "mixtral",
                                           "gemma2", "gemma3_text", "phi3", "phi", "smollm3", "olmo2", "granite", "deepseek_v2",
                                           "deepseek_v2_lite", "starcoder2", "gpt2", "gpt_neox", "bert", "cohere", "glm4", "falcon",
                                           "nemotron", "stablelm", "mamba2", "lfm2", "qwen3_5_text", "olmoe"));

// The same weights lie in a GGUF file, with rows of q and k in pairs for the llama class.
class AdapterAcrossContainers : public ::testing::TestWithParam<const char*> {};

TEST_P(AdapterAcrossContainers, OfPeftOnGguf) {
  const std::string arch = GetParam();
  const TemporaryFolder folder;
  const TestAdapter adapter = adapter_for(arch);
  adapter.write_peft(folder.path() / "adapter");
  adapter.write_merged(data_path("arch/" + arch), folder.path() / "merged", arch == "gpt2");
  const auto model = loaded(data_path("arch/" + arch + "/model-f32.gguf"));
  ASSERT_TRUE(model);
  expect_as_merged(*model, folder.path() / "adapter", folder.path() / "merged");
}

INSTANTIATE_TEST_SUITE_P(Families, AdapterAcrossContainers,
                         ::testing::Values("llama", "llama_tied", "qwen2", "qwen3", "qwen2_moe", "mixtral", "gemma2", "gemma3_text", "phi3",
                                           "phi", "smollm3", "olmo2", "granite", "deepseek_v2", "starcoder2", "gpt2", "cohere", "glm4",
                                           "nemotron", "stablelm"));

// What llama.cpp's converter makes of a llama adapter.
void write_gguf_adapter(const TestAdapter& adapter, const std::filesystem::path& path, const std::string& architecture, std::int64_t heads,
                        std::int64_t kv_heads, const std::string& type = "adapter", const std::string& kind = "lora") {
  const std::map<std::string, std::string> names = {
      {"self_attn.q_proj", "attn_q"}, {"self_attn.k_proj", "attn_k"}, {"self_attn.v_proj", "attn_v"}, {"self_attn.o_proj", "attn_output"},
      {"mlp.gate_proj", "ffn_gate"},  {"mlp.up_proj", "ffn_up"},      {"mlp.down_proj", "ffn_down"}};
  std::vector<NamedFloats> tensors;
  for (const RandomChange& c : adapter.changes) {
    std::string name = "output";
    if (c.module.starts_with("model.layers.")) {
      const std::string rest = c.module.substr(13);
      name = "blk." + rest.substr(0, rest.find('.')) + "." + names.at(rest.substr(rest.find('.') + 1));
    }
    std::vector<float> b = c.b;
    const std::int64_t n = name.ends_with("attn_q") ? heads : name.ends_with("attn_k") ? kv_heads : 0;
    for (std::int64_t h = 0; h < n; ++h) {
      const std::int64_t dim = c.out / n;
      for (std::int64_t i = 0; i < dim; ++i) {
        const std::int64_t from = h * dim + i, to = h * dim + 2 * (i % (dim / 2)) + i / (dim / 2);
        std::copy_n(c.b.begin() + from * c.rank, c.rank, b.begin() + to * c.rank);
      }
    }
    tensors.push_back({name + ".weight.lora_a", {c.rank, c.in}, c.a});
    tensors.push_back({name + ".weight.lora_b", {c.out, c.rank}, b});
  }
  formats::GgufWriter writer;
  for (const auto& [key, value] :
       std::map<std::string, std::string>{{"general.type", type}, {"adapter.type", kind}, {"general.architecture", architecture}})
    ASSERT_TRUE(writer.add(formats::gguf_string(key, value)).has_value());
  ASSERT_TRUE(writer.add(formats::gguf_f32("adapter.lora.alpha", static_cast<float>(kAlpha))).has_value());
  for (const NamedFloats& t : tensors)
    ASSERT_TRUE(writer.add(formats::NamedTensor{t.name, {DType::kF32, t.shape, std::as_bytes(std::span(t.values))}, 0}).has_value());
  ASSERT_TRUE(writer.write(path).has_value());
}

TEST(GgufAdapter, ComputesWhatMergedWeightsDoOnEitherContainer) {
  const TemporaryFolder folder;
  const TestAdapter adapter = adapter_for("llama");
  adapter.write_merged(data_path("arch/llama"), folder.path() / "merged", false);
  const auto hf = loaded(data_path("arch/llama")), gguf = loaded(data_path("arch/llama/model-f32.gguf"));
  ASSERT_TRUE(hf && gguf);
  const AttentionTraits& t = hf->traits().attention;
  write_gguf_adapter(adapter, folder.path() / "adapter.gguf", "llama", t.heads, t.kv_heads);
  expect_as_merged(*gguf, folder.path() / "adapter.gguf", folder.path() / "merged");
  expect_as_merged(*hf, folder.path() / "adapter.gguf", folder.path() / "merged");
}

TEST(Adapter, ChangesTheTokenEmbedding) {
  for (const char* arch : {"llama", "gemma2"}) {
    SCOPED_TRACE(arch);
    const TemporaryFolder folder;
    const auto model = loaded(data_path(std::string("arch/") + arch));
    ASSERT_TRUE(model);
    TestAdapter adapter;
    adapter.embedding = true;
    adapter.changes.emplace_back("model.embed_tokens", model->traits().vocab_size, model->traits().hidden, 4, 9);
    adapter.write_peft(folder.path() / "adapter");
    adapter.write_merged(data_path(std::string("arch/") + arch), folder.path() / "merged", false);
    // Gemma's head is the same tensor, which the adapter leaves as it is: hidden states are compared.
    const auto loaded_adapter = load_adapter(folder.path() / "adapter", *model);
    ASSERT_TRUE(loaded_adapter.has_value()) << loaded_adapter.error().message;
    const auto merged = loaded(folder.path() / "merged");
    ASSERT_TRUE(merged);
    std::vector<Row> states;
    for (Model* m : {model.get(), merged.get()}) {
      m->set_probe([&](std::int32_t layer, kernels::ConstMatrix x) {
        if (layer >= 0) return;
        for (std::int64_t r = 0; r < x.rows; ++r) states.emplace_back(x.row(r), x.row(r) + x.cols);
      });
      rows_with(*m, m == model.get() ? loaded_adapter->get() : nullptr);
    }
    const std::vector<Row> with(states.begin(), states.begin() + 12), expected(states.begin() + 12, states.end());
    EXPECT_LT(farthest(with, expected), 1e-4);
  }
}

TEST(Adapter, TakesRanksAndFactorsOfPatternsAndRankStabilisedOnes) {
  const TemporaryFolder folder;
  const auto model = loaded(data_path("arch/llama"));
  ASSERT_TRUE(model);
  TestAdapter adapter = adapter_for("llama");
  adapter.write_merged(data_path("arch/llama"), folder.path() / "merged", false);  // factor 6 / 4
  const auto merged = loaded(folder.path() / "merged");
  ASSERT_TRUE(merged);
  const auto expected = rows_with(*merged, nullptr);
  const json::Object cases[] = {
      {{"use_rslora", true}, {"lora_alpha", 3}},
      {{"alpha_pattern",
        {{"q_proj", 6},
         {"k_proj", 6},
         {"v_proj", 6},
         {"o_proj", 6},
         {"mlp.gate_proj", 6},
         {"layers\\.0\\.mlp\\.up_proj", 6},
         {"up_proj", 6},
         {"down_proj", 6},
         {"^lm_head", 6}}},
       {"lora_alpha", 50}},
      {{"r", 64},
       {"lora_alpha", 6},
       {"rank_pattern",
        {{"q_proj", 4}, {"k_proj", 4}, {"v_proj", 4}, {"o_proj", 4}, {"gate_proj", 4}, {"up_proj", 4}, {"down_proj", 4}, {"lm_head", 4}}}}};
  for (const json::Object& config : cases) {
    SCOPED_TRACE(boost::json::serialize(config));
    const auto path = folder.path() / "adapter";
    adapter.write_peft(path, config);
    const auto read = load_adapter(path, *model);
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_LT(farthest(rows_with(*model, read->get()), expected), 1e-4);
  }
}

// The prompt of each of several sequences in one batch, some with the first adapter, some with the second, some with none.
void expect_same_bits(const std::filesystem::path& path, const std::filesystem::path& first, const std::filesystem::path& second,
                      Activations activations) {
  std::vector<std::vector<Row>> expected;
  for (const int threads : {1, 2, 3}) {
    SCOPED_TRACE(fmt::format("{} threads", threads));
    const auto model = loaded(path, threads, activations);
    ASSERT_TRUE(model);
    const auto a = load_adapter(first, *model), b = load_adapter(second, *model);
    ASSERT_TRUE(a.has_value() && b.has_value()) << (a ? b : a).error().message;
    const std::vector<const Adapter*> each = {nullptr, a->get(), b->get()};
    if (expected.empty()) {
      const auto plain = loaded(path, 1, activations);
      expected = {rows_with(*plain, nullptr), rows_with(*model, each[1]), rows_with(*model, each[2])};
      EXPECT_GT(farthest(expected[1], expected[2]), 1e-3);
    }
    for (std::size_t i = 0; i < each.size(); ++i) EXPECT_TRUE(rows_with(*model, each[i]) == expected[i]) << "alone, adapter " << i;

    constexpr std::int32_t kSequences = 8;
    const auto adapter_of = [&](std::int32_t s) { return each[static_cast<std::size_t>(s * 2) % 3]; };  // none, b, a, none, …
    TestSequences run(*model, kSequences, 16);
    std::vector<const Adapter*> adapters;
    for (std::int32_t s = 0; s < kSequences; ++s) adapters.push_back(adapter_of(s));
    run.use_adapters(adapters);
    std::vector<std::vector<Row>> got(kSequences);
    const bool whole = model->traits().encoder;
    for (std::size_t begin = 0, step = whole ? kPrompt.size() : 5; begin < kPrompt.size(); begin += step, step = 1) {
      std::vector<Piece> pieces;
      const auto at = kPrompt.begin() + static_cast<std::ptrdiff_t>(begin);
      for (std::int32_t s = kSequences - 1; s >= 0; --s) pieces.push_back({s, {at, at + static_cast<std::ptrdiff_t>(step)}});
      const auto rows = run.feed(pieces);
      ASSERT_TRUE(rows.has_value()) << rows.error().message;
      for (std::size_t p = 0; p < pieces.size(); ++p) {
        auto& own = got[static_cast<std::size_t>(pieces[p].sequence)];
        const auto part = rows->begin() + static_cast<std::ptrdiff_t>(p * step);
        own.insert(own.end(), part, part + static_cast<std::ptrdiff_t>(step));
      }
    }
    for (std::size_t s = 0; s < got.size(); ++s) EXPECT_TRUE(got[s] == expected[s * 2 % 3]) << "sequence " << s << " among others";
  }
}

class AdaptersInOneBatch : public ::testing::TestWithParam<const char*> {};

TEST_P(AdaptersInOneBatch, ChangeNoBitOfOneAnother) {
  const std::string arch = GetParam();
  const TemporaryFolder folder;
  adapter_for(arch, 1).write_peft(folder.path() / "a");
  adapter_for(arch, 500, 8).write_peft(folder.path() / "b");
  expect_same_bits(data_path("arch/" + arch), folder.path() / "a", folder.path() / "b", Activations::kF32);
  expect_same_bits(data_path("arch/" + arch), folder.path() / "a", folder.path() / "b", Activations::kInt8);
}

INSTANTIATE_TEST_SUITE_P(Families, AdaptersInOneBatch,
                         ::testing::Values("llama", "qwen2_moe", "deepseek_v2", "mamba2", "qwen3_5_text", "bert", "gpt2", "phi3"));

// An adapter of SmolLM2's sizes.
TestAdapter smollm2_adapter(std::uint32_t seed, std::int64_t rank) {
  TestAdapter adapter;
  adapter.rank = rank;
  for (int layer = 0; layer < 30; ++layer) {
    const auto add = [&](const char* name, std::int64_t out, std::int64_t in) {
      adapter.changes.emplace_back(fmt::format("model.layers.{}.{}", layer, name), out, in, rank, ++seed);
    };
    add("self_attn.q_proj", 576, 576);
    add("self_attn.k_proj", 192, 576);
    add("self_attn.v_proj", 192, 576);
    add("self_attn.o_proj", 576, 576);
    add("mlp.gate_proj", 1536, 576);
    add("mlp.up_proj", 1536, 576);
    add("mlp.down_proj", 576, 1536);
  }
  return adapter;
}

TEST(AdaptersOfQuantised, SmolLm2KeepsEveryBit) {
  WEIR_REQUIRE_CACHED(weir::testing::smollm2_path());
  const TemporaryFolder folder;
  smollm2_adapter(1, 16).write_peft(folder.path() / "a");
  smollm2_adapter(999, 8).write_peft(folder.path() / "b");
  expect_same_bits(weir::testing::smollm2_path(), folder.path() / "a", folder.path() / "b", Activations::kInt8);
}

TEST(Adapter, LoadsAndEndsBesideARunningPass) {
  const TemporaryFolder folder;
  adapter_for("llama").write_peft(folder.path() / "a");
  const auto model = loaded(data_path("arch/llama"), 2);
  ASSERT_TRUE(model);
  const auto used = load_adapter(folder.path() / "a", *model);
  ASSERT_TRUE(used.has_value());
  const auto expected = rows_with(*model, used->get());
  std::atomic<bool> stop = false;
  std::atomic<int> loads = 0;
  std::thread loader([&] {
    const Model& shared = *model;
    while (!stop) loads += load_adapter(folder.path() / "a", shared).has_value();
  });
  for (int i = 0; i < 20 || loads < 3; ++i) ASSERT_TRUE(rows_with(*model, used->get()) == expected);
  stop = true;
  loader.join();
}

TEST(Adapter, OfAnotherModelOrForTooFewSlicesIsRefused) {
  const TemporaryFolder folder;
  adapter_for("llama").write_peft(folder.path() / "a");
  const auto model = loaded(data_path("arch/llama")), twin = loaded(data_path("arch/llama"));
  ASSERT_TRUE(model && twin);
  const auto adapter = load_adapter(folder.path() / "a", *twin);
  ASSERT_TRUE(adapter.has_value());
  TestSequences run(*model, 1, 16);
  run.use_adapters({adapter->get()});
  const auto rows = run.feed({{0, kPrompt}});
  ASSERT_FALSE(rows.has_value());
  EXPECT_EQ(rows.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(rows.error().message, HasSubstr("another model"));
}

class RefusedAdapter : public ::testing::Test {
 protected:
  void SetUp() override {
    model_ = loaded(data_path("arch/llama"));
    ASSERT_TRUE(model_);
  }
  // What is said about an adapter that is written so.
  std::string reason(const TestAdapter& adapter, json::Object config = {}) {
    std::filesystem::remove_all(path());
    adapter.write_peft(path(), std::move(config));
    return reason();
  }
  std::string reason() {
    const auto read = load_adapter(path(), *model_);
    return read ? "" : read.error().message;
  }
  std::filesystem::path path() const { return folder_.path() / "adapter"; }

  TemporaryFolder folder_;
  std::unique_ptr<Model> model_;
};

TEST_F(RefusedAdapter, ForKeysThatAskForMore) {
  const TestAdapter good = adapter_for("llama");
  EXPECT_EQ(reason(good), "");
  EXPECT_EQ(reason(good, {{"fan_in_fan_out", true}, {"init_lora_weights", "gaussian"}, {"layers_to_transform", json::Array{0}}}), "");
  EXPECT_THAT(reason(good, {{"use_dora", true}}), HasSubstr("use_dora"));
  EXPECT_THAT(reason(good, {{"bias", "all"}}), HasSubstr("bias"));
  EXPECT_THAT(reason(good, {{"lora_bias", true}}), HasSubstr("lora_bias"));
  EXPECT_THAT(reason(good, {{"modules_to_save", json::Array{"embed_tokens"}}}), HasSubstr("modules_to_save"));
  EXPECT_THAT(reason(good, {{"init_lora_weights", "pissa"}}), HasSubstr("pissa"));
  EXPECT_THAT(reason(good, {{"something_new", 3}}), HasSubstr("something_new"));
  EXPECT_THAT(reason(good, {{"peft_type", "LOHA"}}), HasSubstr("LOHA"));
  EXPECT_THAT(reason(good, {{"alpha_pattern", {{"q_proj|k_proj", 4}}}}), HasSubstr("q_proj|k_proj"));
  EXPECT_THAT(reason(good, {{"r", 8}}), HasSubstr("rank 8"));
  EXPECT_THAT(reason(good, {{"r", 0}}), HasSubstr("r is 0"));
}

TEST_F(RefusedAdapter, ForTensorsThatDoNotBelong) {
  TestAdapter wrong = adapter_for("llama");
  wrong.changes.emplace_back("model.layers.0.self_attn.x_proj", 8, 8, 4, 3);
  EXPECT_THAT(reason(wrong), HasSubstr("model.layers.0.self_attn.x_proj.lora_A"));
  wrong = adapter_for("llama");
  wrong.changes.emplace_back("model.layers.99.self_attn.q_proj", wrong.changes[0].out, wrong.changes[0].in, 4, 3);
  EXPECT_THAT(reason(wrong), HasSubstr("layers.99"));
  wrong = adapter_for("llama");
  wrong.changes[1] = RandomChange(wrong.changes[1].module, wrong.changes[1].out + 1, wrong.changes[1].in, 4, 3);
  EXPECT_THAT(reason(wrong), HasSubstr(wrong.changes[1].module));
  wrong = adapter_for("llama");
  wrong.changes[2].b[5] = NAN;
  EXPECT_THAT(reason(wrong), HasSubstr(wrong.changes[2].module + ".lora_B"));
  EXPECT_THAT(reason(adapter_for("qwen3")), HasSubstr("shape"));
}

TEST_F(RefusedAdapter, ForFilesThatAreNone) {
  EXPECT_THAT(reason(), HasSubstr("adapter"));
  adapter_for("llama").write_peft(path());
  std::filesystem::resize_file(path() / "adapter_model.safetensors", 2000);
  EXPECT_NE(reason(), "");
  std::filesystem::remove(path() / "adapter_model.safetensors");
  EXPECT_THAT(reason(), HasSubstr("adapter_model.safetensors"));
}

TEST_F(RefusedAdapter, ForGgufFilesOfAnotherKind) {
  const TestAdapter adapter = adapter_for("llama");
  const auto& t = model_->traits().attention;
  const auto file = folder_.path() / "adapter.gguf";
  const auto reason_of = [&](const char* architecture, const char* type, const char* kind) {
    write_gguf_adapter(adapter, file, architecture, t.heads, t.kv_heads, type, kind);
    const auto read = load_adapter(file, *model_);
    return read ? std::string() : read.error().message;
  };
  EXPECT_EQ(reason_of("llama", "adapter", "lora"), "");
  EXPECT_THAT(reason_of("qwen2", "adapter", "lora"), HasSubstr("qwen2"));
  EXPECT_THAT(reason_of("llama", "model", "lora"), HasSubstr("no adapter"));
  EXPECT_THAT(reason_of("llama", "adapter", "vera"), HasSubstr("vera"));
}

}  // namespace
}  // namespace weir::model::testing
