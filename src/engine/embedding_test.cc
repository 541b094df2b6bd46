// SPDX-License-Identifier: Apache-2.0
// Vectors against transformers' (tests/data/embedding), and what holds for every request: the same bits in any company, nothing cut in
// silence, no dimension that the model was not trained for.
#include "engine/embedding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "engine/embedding_test_models.h"

namespace weir::engine {
namespace {

using testing::Case;
using testing::cases;
using testing::distance;
using ::testing::HasSubstr;
using testing::load;
using testing::model_path;
using testing::ModelCopy;

std::vector<TextInput> inputs_of(const std::vector<Case>& cases) {
  std::vector<TextInput> inputs;
  for (const Case& c : cases) inputs.push_back(c.input);
  return inputs;
}

// The message of a request's failure.
std::string failure(Embedder& embedder, const EmbedRequest& request) {
  const auto result = embedder.embed(request);
  return result ? "no failure" : result.error().message;
}

class EmbeddingModels : public ::testing::TestWithParam<const char*> {};

TEST_P(EmbeddingModels, GiveTheReferencesVectors) {
  LoadedModel loaded = load(model_path(GetParam()));
  const auto all = cases(GetParam());
  for (const Case& c : all) {
    const auto encoded = encode_input(loaded, c.input, {});
    ASSERT_TRUE(encoded) << encoded.error().message;
    EXPECT_EQ(encoded->ids, c.ids);
  }
  auto embedder = Embedder::create(loaded);
  ASSERT_TRUE(embedder) << embedder.error().message;
  const auto inputs = inputs_of(all);
  const auto vectors = embedder->embed({.inputs = inputs});
  ASSERT_TRUE(vectors) << vectors.error().message;
  ASSERT_EQ(vectors->size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_LE(distance((*vectors)[i].values, all[i].expected), 5e-6) << "case " << i;
    EXPECT_EQ((*vectors)[i].tokens, static_cast<std::int64_t>(all[i].ids.size()));
    EXPECT_EQ((*vectors)[i].cut, 0);
  }
}

TEST_P(EmbeddingModels, GiveTheSameBitsAloneAndInABatch) {
  LoadedModel one = load(model_path(GetParam()), 1), two = load(model_path(GetParam()), 2);
  std::vector<TextInput> inputs = inputs_of(cases(GetParam()));
  for (int i = 0; i < 20; ++i) inputs.emplace_back("text number " + std::to_string(i * 7919));
  Embedder together = Embedder::create(two, {.max_rows = 256}).value(), small = Embedder::create(one, {.max_rows = 7}).value();
  Embedder alone = Embedder::create(one).value();
  const auto batch = together.embed({.inputs = inputs}).value(), pieces = small.embed({.inputs = inputs}).value();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto single = alone.embed({.inputs = std::span(inputs).subspan(i, 1)}).value().front().values;
    ASSERT_EQ(single.size(), batch[i].values.size());
    EXPECT_EQ(std::memcmp(single.data(), batch[i].values.data(), single.size() * sizeof(float)), 0) << "input " << i;
    EXPECT_EQ(std::memcmp(single.data(), pieces[i].values.data(), single.size() * sizeof(float)), 0) << "input " << i << " in pieces of 7";
  }
}

INSTANTIATE_TEST_SUITE_P(All, EmbeddingModels,
                         ::testing::Values("xlmr_embed", "modernbert_embed", "nomic_embed", "gte_embed", "qwen3_embed", "mistral_embed",
                                           "gemma_embed"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Embedding, MiniLmEqualsItsReferenceFromText) {
  const auto path = weir::testing::cached_path("minilm");
  WEIR_REQUIRE_CACHED(path);
  LoadedModel loaded = load(path, 2);
  const json::Value file = json::parse(read_file(weir::testing::data_path("minilm/golden.json"), 16 << 20).value(), "golden").value();
  std::vector<TextInput> texts;
  for (const json::Value& c : file.at("cases").as_array()) texts.emplace_back(std::string(c.at("text").as_string()));
  Embedder embedder = Embedder::create(loaded).value();
  EXPECT_EQ(embedder.spec().mode, model::Pooling::kMean);
  const auto vectors = embedder.embed({.inputs = texts, .normalize = true, .cut = true}).value();  // the last one is longer than 256 tokens
  for (std::size_t i = 0; i < texts.size(); ++i) {
    double cosine = 0;
    for (std::size_t d = 0; d < vectors[i].values.size(); ++d)
      cosine +=
          static_cast<double>(vectors[i].values[d]) * file.at("cases").as_array()[i].at("embedding").as_array()[d].to_number<double>();
    EXPECT_GE(cosine, 0.99999) << std::get<std::string>(texts[i]);
  }
}

TEST(Embedding, TokenIdsGiveTheVectorOfTheirText) {
  LoadedModel loaded = load(model_path("qwen3_embed"));
  Embedder embedder = Embedder::create(loaded).value();
  const Case c = cases("qwen3_embed").front();
  const TextInput inputs[] = {c.input, c.ids};
  const auto vectors = embedder.embed({.inputs = inputs}).value();
  EXPECT_EQ(vectors[0].values, vectors[1].values);
}

TEST(Embedding, PoolsInEveryWay) {
  LoadedModel loaded = load(model_path("modernbert_embed"));
  const Case c = cases("modernbert_embed").front();
  const auto hidden = encode_hidden(loaded, c.ids).value();
  const std::size_t width = 32, rows = hidden.size() / width;
  ASSERT_GE(rows, 3u);
  const auto pooled = [&](model::Pooling mode) {
    const TextInput inputs[] = {c.input};
    return Embedder::create(loaded, {.pooling = mode}).value().embed({.inputs = inputs, .normalize = false}).value().front().values;
  };
  for (std::size_t d = 0; d < width; ++d) {
    double sum = 0, weighted = 0, weights = 0, most = -INFINITY;
    for (std::size_t r = 0; r < rows; ++r) {
      const double v = hidden[r * width + d];
      sum += v, weighted += static_cast<double>(r + 1) * v, weights += static_cast<double>(r + 1), most = std::max(most, v);
    }
    EXPECT_FLOAT_EQ(pooled(model::Pooling::kCls)[d], hidden[d]);
    EXPECT_FLOAT_EQ(pooled(model::Pooling::kLast)[d], hidden[(rows - 1) * width + d]);
    EXPECT_NEAR(pooled(model::Pooling::kMean)[d], sum / static_cast<double>(rows), 1e-6);
    EXPECT_NEAR(pooled(model::Pooling::kMeanSqrt)[d], sum / std::sqrt(static_cast<double>(rows)), 1e-6);
    EXPECT_NEAR(pooled(model::Pooling::kWeightedMean)[d], weighted / weights, 1e-6);
    EXPECT_FLOAT_EQ(pooled(model::Pooling::kMax)[d], static_cast<float>(most));
  }
  EXPECT_EQ(pooled(model::Pooling::kNone), hidden);
}

TEST(Embedding, DimensionsAreCutAndNormalisedOnlyWhereTheModelWasTrainedForIt) {
  const Case c = cases("modernbert_embed").front();
  const TextInput inputs[] = {c.input};
  LoadedModel listed = load(model_path("modernbert_embed"));  // matryoshka_dims 8 and 16
  Embedder embedder = Embedder::create(listed).value();
  const auto whole = embedder.embed({.inputs = inputs}).value().front().values;
  const auto cut = embedder.embed({.inputs = inputs, .dimensions = 8}).value().front().values;
  ASSERT_EQ(cut.size(), 8u);
  double length = 0;
  for (std::size_t i = 0; i < 8; ++i) length += static_cast<double>(whole[i]) * static_cast<double>(whole[i]);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(cut[i], static_cast<double>(whole[i]) / std::sqrt(length), 1e-6);
  EXPECT_THAT(failure(embedder, {.inputs = inputs, .dimensions = 9}), HasSubstr("may have 8, 16, 32"));
  EXPECT_THAT(failure(embedder, {.inputs = inputs, .dimensions = 33}), HasSubstr("have 32"));
  EXPECT_THAT(failure(embedder, {.inputs = inputs, .dimensions = 0}), HasSubstr("0 dimensions"));
  EXPECT_THAT(failure(embedder, {.inputs = inputs, .dimensions = -8}), HasSubstr("-8 dimensions"));

  LoadedModel any = load(model_path("qwen3_embed"));  // is_matryoshka
  EXPECT_EQ(Embedder::create(any).value().embed({.inputs = inputs, .dimensions = 5}).value().front().values.size(), 5u);
  LoadedModel none = load(model_path("mistral_embed"));
  Embedder fixed = Embedder::create(none).value();
  EXPECT_THAT(failure(fixed, {.inputs = inputs, .dimensions = 16}), HasSubstr("not trained to be cut"));
  EXPECT_TRUE(fixed.embed({.inputs = inputs, .dimensions = 32}));
  EXPECT_TRUE(Embedder::create(none, {.any_dimension = true}).value().embed({.inputs = inputs, .dimensions = 16}));
}

TEST(Embedding, PromptsStandBeforeTheText) {
  LoadedModel loaded = load(model_path("qwen3_embed"));
  Embedder embedder = Embedder::create(loaded).value();
  const TextInput plain[] = {std::string("cats")}, whole[] = {std::string("Instruct: find\nQuery:cats")};
  const auto named = embedder.embed({.inputs = plain, .prompt_name = "query"}).value();
  EXPECT_EQ(named.front().values, embedder.embed({.inputs = whole}).value().front().values);
  EXPECT_EQ(named.front().values, embedder.embed({.inputs = plain, .prompt = "Instruct: find\nQuery:"}).value().front().values);
  EXPECT_THAT(failure(embedder, {.inputs = plain, .prompt_name = "passage"}), HasSubstr("it has \"document\", \"query\""));
}

TEST(Embedding, PromptsAreLeftOutOfThePoolingWhereTheModelSaysSo) {
  const ModelCopy copy("modernbert_embed");
  copy.write("1_Pooling/config.json", R"({"pooling_mode_mean_tokens": true, "include_prompt": false})");
  LoadedModel loaded = load(copy.path());
  Embedder embedder = Embedder::create(loaded).value();
  const TextInput inputs[] = {std::string("cats")};
  const auto found = embedder.embed({.inputs = inputs, .normalize = false, .prompt = "abc: "}).value().front().values;
  const auto ids = loaded.tokenizer->encode("abc: cats");
  const std::size_t skip = loaded.tokenizer->encode("abc: ").size() - 1;  // CLS and the prompt, without SEP
  const auto hidden = encode_hidden(loaded, ids).value();
  for (std::size_t d = 0; d < 32; ++d) {
    double sum = 0;
    for (std::size_t r = skip; r < ids.size(); ++r) sum += static_cast<double>(hidden[r * 32 + d]);
    EXPECT_NEAR(found[d], sum / static_cast<double>(ids.size() - skip), 1e-6);
  }
}

TEST(Embedding, NothingIsCutUnlessAskedFor) {
  LoadedModel loaded = load(model_path("xlmr_embed"));  // max_seq_length 120
  Embedder embedder = Embedder::create(loaded).value();
  EXPECT_EQ(embedder.max_tokens(), 120);
  const TextInput inputs[] = {std::string("short"), std::string(400, 'x')};
  EXPECT_THAT(failure(embedder, {.inputs = inputs}), HasSubstr("input 1: "));
  EXPECT_THAT(failure(embedder, {.inputs = inputs}), HasSubstr("at most 120"));
  const auto cut = embedder.embed({.inputs = inputs, .cut = true}).value();
  EXPECT_EQ(cut[0].cut, 0);
  EXPECT_EQ(cut[1].tokens, 120);
  const std::size_t whole = loaded.tokenizer->encode(std::string(400, 'x')).size();
  EXPECT_EQ(cut[1].cut, static_cast<std::int64_t>(whole) - 120);
  auto ids = loaded.tokenizer->encode(std::string(400, 'x'));
  ids.erase(ids.begin() + 119, ids.end() - 1);  // special tokens stay
  const TextInput same[] = {ids};
  EXPECT_EQ(cut[1].values, embedder.embed({.inputs = same}).value().front().values);
  EXPECT_THAT(failure(embedder, {.inputs = inputs, .cut = true, .max_tokens = 2}), HasSubstr("nothing is left"));
  EXPECT_THAT(failure(embedder, {.inputs = inputs, .cut = true, .max_tokens = 0}), HasSubstr("a limit of 0"));
}

TEST(Embedding, RefusesWhatCannotBeEmbedded) {
  LoadedModel loaded = load(model_path("xlmr_embed"));
  Embedder embedder = Embedder::create(loaded).value();
  const auto says = [&](const TextInput& input) {
    const TextInput inputs[] = {std::string("fine"), input};
    return failure(embedder, {.inputs = inputs});
  };
  EXPECT_THAT(says(std::vector<TokenId>{}), HasSubstr("input 1: there is nothing to embed"));
  EXPECT_THAT(says(std::vector<TokenId>{1, 264}), HasSubstr("input 1: the token id 264"));
  EXPECT_THAT(says(std::vector<TokenId>{-1}), HasSubstr("input 1: the token id -1"));
  EXPECT_THAT(says(std::vector<TokenId>(121, 5)), HasSubstr("at most 120"));
  EXPECT_TRUE(embedder.embed({.inputs = {}}).value().empty());
  const TextInput empty[] = {std::string()};
  EXPECT_EQ(embedder.embed({.inputs = empty}).value().front().tokens, 2) << "the special tokens alone";
}

TEST(Embedding, DamagedWeightsAreToldNotServed) {
  const ModelCopy copy("xlmr_embed");
  {  // the last tensors become NaN
    std::fstream file(copy.path() / "model.safetensors", std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(-40000, std::ios::end);
    file << std::string(40000, '\xff');
  }
  LoadedModel loaded = load(copy.path());
  Embedder embedder = Embedder::create(loaded).value();
  const TextInput inputs[] = {std::string("a cat that sits on the mat, 0123456789")};
  EXPECT_THAT(failure(embedder, {.inputs = inputs}), HasSubstr("not made of finite numbers"));
}

TEST(Embedding, StepsThatAreNotUnderstoodAreRefused) {
  const auto says = [](const char* file, const char* text) {
    const ModelCopy copy("modernbert_embed");
    copy.write(file, text);
    auto loaded = load_model(copy.path(), {.threads = 1, .activations = kernels::Activations::kF32, .isa = ""});
    if (!loaded) return loaded.error().message;
    const auto embedder = Embedder::create(*loaded);
    return embedder ? std::string("accepted") : embedder.error().message;
  };
  EXPECT_THAT(
      says("modules.json",
           R"([{"type": "a.Transformer", "path": ""}, {"type": "a.Pooling", "path": "1_Pooling"}, {"type": "a.LSTM", "path": "2"}])"),
      HasSubstr("a module LSTM"));
  EXPECT_THAT(says("modules.json", R"([{"type": "a.Pooling", "path": "../../1_Pooling"}])"), HasSubstr("leads out of the model's folder"));
  EXPECT_THAT(says("modules.json", R"([{"type": "a.Pooling", "path": "/etc"}])"), HasSubstr("leads out of the model's folder"));
  EXPECT_THAT(says("modules.json", R"([{"type": "a.Normalize"}, {"type": "a.Pooling", "path": "1_Pooling"}])"),
              HasSubstr("Pooling at this place"));
  EXPECT_THAT(says("modules.json", R"({"a": 1})"), HasSubstr("should be a list"));
  EXPECT_THAT(says("1_Pooling/config.json", R"({"pooling_mode_mean_tokens": true, "pooling_mode_cls_token": true})"),
              HasSubstr("joins 2 vectors"));
  EXPECT_THAT(says("1_Pooling/config.json", R"({"pooling_mode": "attention"})"), HasSubstr("\"attention\" is not supported"));
  EXPECT_THAT(says("1_Pooling/config.json", R"({"pooling_mode": "mean"})"), HasSubstr("accepted"));
  EXPECT_THAT(says("sentence_bert_config.json", R"({"max_seq_length": -4})"), HasSubstr("max_seq_length is -4"));
  EXPECT_THAT(says("config_sentence_transformers.json", R"({"default_prompt_name": "query"})"), HasSubstr("none of the prompts"));
  EXPECT_THAT(says("config_sentence_transformers.json", R"({"truncate_dim": 99})"), HasSubstr("truncate_dim is 99"));
}

TEST(Embedding, ADenseStepMustFitItsNeighbours) {
  const ModelCopy copy("gemma_embed");
  copy.write("2_Dense/config.json",
             R"({"in_features": 31, "out_features": 40, "activation_function": "torch.nn.modules.linear.Identity"})");
  LoadedModel loaded = load(copy.path());
  EXPECT_THAT(Embedder::create(loaded).error().message, HasSubstr("31 features in"));
  copy.write("2_Dense/config.json",
             R"({"in_features": 32, "out_features": 4000000, "activation_function": "torch.nn.modules.linear.Identity"})");
  EXPECT_THAT(Embedder::create(loaded).error().message, HasSubstr("4000000 out"));
  copy.write("2_Dense/config.json",
             R"({"in_features": 32, "out_features": 40, "activation_function": "torch.nn.modules.activation.Softplus"})");
  EXPECT_THAT(Embedder::create(loaded).error().message, HasSubstr("Softplus is not supported"));
}

TEST(Embedding, WithoutFilesOfItsOwnTheKindOfModelDecides) {
  const ModelCopy decoder("qwen3_embed"), encoder("nomic_embed");
  for (const ModelCopy* copy : {&decoder, &encoder}) {
    copy->remove("modules.json");
    copy->remove("1_Pooling");
  }
  LoadedModel a = load(decoder.path()), b = load(encoder.path());
  EXPECT_EQ(Embedder::create(a).value().spec().mode, model::Pooling::kLast);
  EXPECT_EQ(Embedder::create(b).value().spec().mode, model::Pooling::kMean);
  EXPECT_EQ(Embedder::create(b).value().spec().source, "default for encoders");
}

TEST(Embedding, ARecurrentModelKeepsItsSequencesApart) {
  LoadedModel loaded = load(weir::testing::data_path("arch/qwen3_next"));
  Embedder embedder = Embedder::create(loaded, {.max_rows = 64}).value();
  std::vector<TextInput> inputs;
  for (int i = 0; i < 9; ++i) inputs.emplace_back("sequence " + std::to_string(i * 31));
  const auto batch = embedder.embed({.inputs = inputs}).value();
  for (std::size_t i = 0; i < inputs.size(); ++i)
    EXPECT_EQ(batch[i].values, embedder.embed({.inputs = std::span(inputs).subspan(i, 1)}).value().front().values) << i;
}

TEST(Embedding, AModelSavedWithoutAHeadHasNoLogits) {
  LoadedModel loaded = load(model_path("mistral_embed"));
  SequencePass pass(*loaded.model);
  const std::vector<TokenId> ids = {1, 2, 3};
  const SequenceInput input{ids};
  const auto status = pass.run({&input, 1}, SequencePass::Rows::kLast, model::Output::kLogits,
                               [](std::size_t, std::int64_t, kernels::ConstMatrix) -> Status { return {}; });
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("saved without a head"));
}

}  // namespace
}  // namespace weir::engine
