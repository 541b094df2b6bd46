// SPDX-License-Identifier: Apache-2.0
// Every architecture of the conformance set loads from both containers, with the traits that its config states.
#include "model/load.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "base/testing.h"
#include "formats/hf_folder.h"
#include "model/describe.h"

namespace weir::model {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::Pointwise;

ModelParts load(const std::string& name) {
  auto parts = load_parts(weir::testing::data_path("arch/" + name));
  EXPECT_TRUE(parts) << name << ": " << parts.error().message;
  return parts ? std::move(*parts) : ModelParts{};
}

TEST(LoadTest, EveryArchitectureLoadsFromEveryContainer) {
  int folders = 0, files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(weir::testing::data_path("arch"))) {
    if (!entry.is_directory()) continue;
    ++folders;
    const std::string name = entry.path().filename().string();
    const ModelParts from_folder = load(name);
    for (const auto& file : std::filesystem::directory_iterator(entry.path())) {
      if (file.path().extension() != ".gguf") continue;
      ++files;
      const ModelParts from_file = load(name + "/" + file.path().filename().string());
      EXPECT_EQ(from_file.traits.layers.size(), from_folder.traits.layers.size()) << name;
      EXPECT_EQ(from_file.traits.vocab_size, from_folder.traits.vocab_size) << name;
      EXPECT_EQ(from_file.traits.hidden, from_folder.traits.hidden) << name;
    }
  }
  EXPECT_EQ(folders, 47);
  EXPECT_EQ(files, 40);
}

TEST(LoadTest, LlamaHasTheSizesOfItsConfig) {
  for (const char* name : {"llama", "llama/model-f32.gguf"}) {
    const ModelParts m = load(name);
    EXPECT_EQ(m.traits.vocab_size, 264);
    EXPECT_EQ(m.traits.hidden, 40);
    ASSERT_EQ(m.traits.layers.size(), 2u);
    EXPECT_EQ(m.traits.attention.heads, 4);
    EXPECT_EQ(m.traits.attention.kv_heads, 2);
    EXPECT_EQ(m.traits.attention.head_dim, 10);
    EXPECT_EQ(m.traits.ropes.at(0).pairs, std::string(name).ends_with("gguf"));
    EXPECT_EQ(m.weights.layers.at(1).ffn.down.weight->in(), 72);
    EXPECT_FALSE(m.weights.layers.at(1).attention.q.bias.size());
  }
}

std::vector<std::int32_t> windows(const Traits& traits) {
  std::vector<std::int32_t> out;
  for (const LayerTraits& layer : traits.layers) out.push_back(layer.window);
  return out;
}

TEST(LoadTest, WindowsFollowThePattern) {
  EXPECT_THAT(windows(load("mistral").traits), ElementsAre(24, 24, 24));
  EXPECT_THAT(windows(load("qwen2").traits), ElementsAre(0, 0));  // sliding_window is there, use_sliding_window is false
  EXPECT_THAT(windows(load("qwen2_window").traits), ElementsAre(0, 20, 20));
  EXPECT_THAT(windows(load("gemma2").traits), ElementsAre(16, 0, 16));
  EXPECT_THAT(windows(load("gemma2/model-f32.gguf").traits), ElementsAre(16, 0, 16));
  EXPECT_THAT(windows(load("gemma3_pattern").traits), ElementsAre(16, 16, 0, 16));
  EXPECT_THAT(windows(load("gemma3_text/model-f32.gguf").traits), ElementsAre(16, 16, 16, 16, 16, 0, 16));
  EXPECT_THAT(windows(load("gpt_oss").traits), ElementsAre(16, 0));
  EXPECT_THAT(windows(load("cohere2").traits), ElementsAre(18, 18, 18, 0));
}

TEST(LoadTest, RopeIsPerLayerWhereTheModelSaysSo) {
  const Traits gemma = load("gemma3_text").traits;
  ASSERT_EQ(gemma.ropes.size(), 2u);
  EXPECT_NE(gemma.layers[0].rope, gemma.layers[5].rope);
  EXPECT_NEAR(gemma.ropes[static_cast<std::size_t>(gemma.layers[5].rope)].inverse_frequencies[0], 1.0 / 8,
              1e-15);  // linear, full layers only
  EXPECT_EQ(gemma.ropes[static_cast<std::size_t>(gemma.layers[0].rope)].inverse_frequencies[0], 1);
  const Traits smollm = load("smollm3").traits;
  EXPECT_GE(smollm.layers[2].rope, 0);
  EXPECT_EQ(smollm.layers[3].rope, -1);
  const Traits cohere = load("cohere2").traits;
  EXPECT_EQ(cohere.layers[3].rope, -1);
  EXPECT_TRUE(cohere.ropes[0].pairs);
  const Traits phi = load("phi3").traits;
  EXPECT_EQ(phi.ropes[0].long_above, 40);
  EXPECT_EQ(load("phi").traits.ropes[0].rotary_dim, 4);
}

TEST(LoadTest, ConventionsOfBothContainersGiveTheSameVectors) {
  for (const std::string name : {"gemma2", "nemotron", "qwen3_next", "mamba2", "deepseek_v3", "gpt2"}) {
    const ModelParts folder = load(name), file = load(name + "/model-f32.gguf");
    const LayerWeights &a = folder.weights.layers[1], &b = file.weights.layers[1];
    EXPECT_THAT(a.mixer_norm.weight, Pointwise(FloatNear(1e-6f), b.mixer_norm.weight)) << name;
    EXPECT_THAT(a.mixer_norm.bias, Pointwise(FloatNear(1e-6f), b.mixer_norm.bias)) << name;
    EXPECT_THAT(a.recurrent.a, Pointwise(FloatNear(1e-5f), b.recurrent.a)) << name;
    EXPECT_THAT(a.experts.router_correction, Pointwise(FloatNear(1e-6f), b.experts.router_correction)) << name;
    EXPECT_THAT(folder.weights.final_norm.weight, Pointwise(FloatNear(1e-6f), file.weights.final_norm.weight)) << name;
  }
}

TEST(LoadTest, FusedWeightsBecomeViewsOfTheirRows) {
  const ModelParts m = load("phi3");
  const LayerWeights& layer = m.weights.layers[0];
  EXPECT_EQ(m.traits.attention.qkv, QkvLayout::kSeparate);
  const auto& q = layer.attention.q.weight->view;
  const auto& k = layer.attention.k.weight->view;
  EXPECT_EQ(q.bytes.data() + q.bytes.size(), k.bytes.data());
  EXPECT_EQ(layer.ffn.gate.weight->view.bytes.data() + layer.ffn.gate.weight->view.bytes.size(), layer.ffn.up.weight->view.bytes.data());
  EXPECT_EQ(load("gpt2").traits.attention.qkv, QkvLayout::kFused);  // transposed: outputs are columns
  EXPECT_EQ(load("gpt_neox").traits.attention.qkv, QkvLayout::kPerHead);
}

TEST(LoadTest, LatentAttentionHasOneWeightPerHead) {
  for (const char* name : {"deepseek_v2", "deepseek_v2/model-f32.gguf"}) {
    const ModelParts m = load(name);
    const LatentWeights& latent = m.weights.layers[0].latent;
    ASSERT_EQ(latent.key_up.size(), 4u) << name;
    EXPECT_EQ(latent.key_up[3].in(), 12) << name;   // nope
    EXPECT_EQ(latent.key_up[3].out(), 20) << name;  // latent
    EXPECT_EQ(latent.value_up[3].in(), 20) << name;
    EXPECT_EQ(latent.value_up[3].out(), 12) << name;
    EXPECT_NEAR(m.traits.attention.scale, 0.2695867, 1e-6) << name;  // (1 + 0.0707 ln 4)² / sqrt(20)
  }
}

TEST(LoadTest, Mxfp4ExpertsOfBothContainersAreTheSameBytes) {
  const ModelParts folder = load("gpt_oss_mxfp4"), file = load("gpt_oss_mxfp4/model-mxfp4.gguf");
  for (std::size_t e = 0; e < 3; ++e) {
    const FfnWeights &a = folder.weights.layers[1].experts.experts[e], &b = file.weights.layers[1].experts.experts[e];
    for (const auto& [x, y] : {std::pair{&a.gate, &b.gate}, std::pair{&a.up, &b.up}, std::pair{&a.down, &b.down}}) {
      EXPECT_EQ(x->weight->view.type, DType::kMXFP4);
      EXPECT_TRUE(std::ranges::equal(x->weight->view.bytes, y->weight->view.bytes)) << "expert " << e;
      EXPECT_THAT(x->bias, Pointwise(FloatNear(1e-6f), y->bias)) << "expert " << e;
    }
  }
}

TEST(LoadTest, EncodersSayHowTheyPool) {
  for (const char* name : {"bert", "bert/model-f32.gguf"}) {
    const ModelParts m = load(name);
    EXPECT_TRUE(m.traits.encoder);
    EXPECT_FALSE(m.traits.attention.causal);
    EXPECT_EQ(m.traits.pooling, Pooling::kMean);
  }
}

// The folder's tensors under other names.
template <class Rename>
formats::HfFolder renamed(const char* name, Rename rename) {
  auto folder = formats::HfFolder::open(weir::testing::data_path(std::string("arch/") + name)).value();
  formats::TensorIndex index;
  for (const auto& file : folder.index.files()) index.add_file(file);
  for (formats::NamedTensor tensor : folder.index.tensors()) {
    tensor.name = rename(tensor.name);
    EXPECT_TRUE(index.add(tensor));
  }
  folder.index = std::move(index);
  return folder;
}

TEST(LoadTest, TheLanguageModelOfAMultimodalModelIsFound) {
  for (const std::string root : {"language_model.", "outer.inner."}) {
    auto folder = renamed("llama", [&](const std::string& name) { return root + name; });
    json::Object text = std::move(folder.config);
    folder.config = json::Object{{"model_type", "some_vision_model"}, {"text_config", std::move(text)}};
    const auto parts = load_folder(folder);
    ASSERT_TRUE(parts) << parts.error().message;
    EXPECT_EQ(parts->traits.family, "llama");
    EXPECT_NE(parts->weights.head.weight->view.bytes.data(), parts->weights.token_embedding.view.bytes.data());
  }
}

TEST(LoadTest, AModelSavedWithoutItsHeadsRootIsFound) {
  const auto folder = renamed("gpt2", [](const std::string& name) { return name.substr(std::string_view("transformer.").size()); });
  const auto parts = load_folder(folder);
  ASSERT_TRUE(parts) << parts.error().message;
  EXPECT_EQ(parts->weights.head.weight->view.bytes.data(), parts->weights.token_embedding.view.bytes.data());
}

TEST(LoadTest, BuffersOfOldCheckpointsAndFurtherHeadsAreLeftAside) {
  auto folder = formats::HfFolder::open(weir::testing::data_path("arch/llama")).value();
  const TensorView view = folder.index.tensors().front().view;
  for (const char* name :
       {"model.layers.0.self_attn.rotary_emb.inv_freq", "model.layers.2.embed_tokens.weight", "score.weight", "mtp.fc.weight"})
    ASSERT_TRUE(folder.index.add({name, view}));
  const auto parts = load_folder(folder);
  EXPECT_TRUE(parts) << parts.error().message;
}

TEST(LoadTest, TraitsAreDescribedInWords) {
  const auto lines = describe(load("gpt_oss").traits);
  EXPECT_THAT(lines, Contains(Pair("family", "gpt_oss")));
  EXPECT_THAT(lines, Contains(Pair("size", "2 layers of width 32, vocabulary of 264")));
  EXPECT_THAT(lines, Contains(Pair("windows", "1 of 2 layers see 16 positions")));
  EXPECT_THAT(lines, Contains(Pair("ffn", "clamped swiglu, 2 layers with 4 experts, 2 for each token")));
}

TEST(LoadTest, APathThatHoldsNoModelIsNamed) {
  const auto missing = load_parts("/nowhere/model.gguf");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("/nowhere/model.gguf"));
  const auto folder = load_parts(weir::testing::data_path("arch"));
  ASSERT_FALSE(folder);
  EXPECT_THAT(folder.error().message, HasSubstr("a folder without config.json"));
}

}  // namespace
}  // namespace weir::model
