// SPDX-License-Identifier: Apache-2.0
// Classifiers and rerankers against transformers' logits, and the order of documents.
#include "engine/rerank.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/embedding_test_models.h"
#include "engine/scoring.h"

namespace weir::engine {
namespace {

using testing::Case;
using testing::cases;
using testing::distance;
using ::testing::HasSubstr;
using testing::load;
using testing::model_path;
using testing::ModelCopy;

class ClassifierModels : public ::testing::TestWithParam<const char*> {};

TEST_P(ClassifierModels, GiveTheReferencesLogits) {
  LoadedModel loaded = load(model_path(GetParam()), 2);
  const auto all = cases(GetParam());
  std::vector<TextInput> inputs;
  for (const Case& c : all) {
    const auto encoded = encode_input(loaded, c.input, {});
    ASSERT_TRUE(encoded) << encoded.error().message;
    EXPECT_EQ(encoded->ids, c.ids);
    if (!c.types.empty()) {
      EXPECT_EQ(encoded->types, c.types);
    }
    inputs.push_back(c.input);
  }
  Classifier classifier = Classifier::create(loaded).value();
  const auto batch = classifier.classify({.inputs = inputs}).value();
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_LE(distance(batch[i].logits, all[i].expected), 2e-5) << "case " << i;
    const auto alone = classifier.classify({.inputs = std::span(inputs).subspan(i, 1)}).value();
    EXPECT_EQ(alone.front().logits, batch[i].logits) << "case " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, ClassifierModels,
                         ::testing::Values("bert_pairs", "xlmr_rerank", "distilbert_classes", "modernbert_rerank", "qwen3_rerank"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Classifier, ScoresFollowTheModelsKind) {
  const double logits[] = {-1.0, 0.5, 2.0};
  const float raw[] = {-1.0f, 0.5f, 2.0f};
  const auto soft = apply_score_function(ScoreFunction::kSoftmax, raw), each = apply_score_function(ScoreFunction::kSigmoid, raw);
  const double sum = std::exp(-1.0) + std::exp(0.5) + std::exp(2.0);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(soft[i], std::exp(logits[i]) / sum, 1e-15);
    EXPECT_NEAR(each[i], 1 / (1 + std::exp(-logits[i])), 1e-15);
  }
  const float huge[] = {-1e30f, 1e30f};
  EXPECT_EQ(apply_score_function(ScoreFunction::kSigmoid, huge), (std::vector<double>{0, 1}));
  EXPECT_EQ(apply_score_function(ScoreFunction::kSoftmax, huge), (std::vector<double>{0, 1}));

  LoadedModel several = load(model_path("bert_pairs")), single = load(model_path("xlmr_rerank"));
  EXPECT_EQ(Classifier::create(several).value().function(), ScoreFunction::kSoftmax);
  EXPECT_EQ(Classifier::create(single).value().function(), ScoreFunction::kSigmoid);
  EXPECT_EQ(Classifier::create(several).value().label(2), "yes");
}

TEST(Classifier, TheFunctionThatConfigJsonNamesCounts) {
  const ModelCopy copy("xlmr_rerank");
  json::Object config = copy.config();
  const auto with = [&](const char* key, const json::Value& value) {
    json::Object changed = config;
    changed[key] = value;
    copy.write_config(changed);
    LoadedModel loaded = load(copy.path());
    const auto classifier = Classifier::create(loaded);
    return classifier ? std::to_string(static_cast<int>(classifier->function())) : classifier.error().message;
  };
  EXPECT_EQ(with("sbert_ce_default_activation_function", "torch.nn.modules.linear.Identity"), "0");
  EXPECT_EQ(with("sentence_transformers", json::Object{{"activation_fn", "torch.nn.modules.activation.Sigmoid"}}), "1");
  EXPECT_EQ(with("problem_type", "regression"), "0");
  EXPECT_THAT(with("sentence_transformers", json::Object{{"activation_fn", "my.Function"}}), HasSubstr("my.Function is not supported"));
}

TEST(Classifier, NamesOfLabelsMustFitTheHead) {
  const auto says = [](const json::Value& names) {
    const ModelCopy copy("bert_pairs");
    json::Object config = copy.config();
    config["id2label"] = names;
    copy.write_config(config);
    const auto loaded = load_model(copy.path(), {.threads = 1, .activations = kernels::Activations::kF32, .isa = ""});
    return loaded ? std::string("accepted") : loaded.error().message;
  };
  EXPECT_THAT(says(json::Object{{"0", "a"}, {"1", "b"}}), HasSubstr("3 labels, but the file names 2"));
  EXPECT_THAT(says(json::Object{{"0", "a"}, {"1", "b"}, {"7", "c"}}), HasSubstr("id2label"));
  EXPECT_THAT(says(json::Object{{"0", "a"}, {"00", "b"}, {"2", "c"}}), HasSubstr("id2label"));
  EXPECT_THAT(says(json::Object{{"0", "a"}, {"1", 4}, {"2", "c"}}), HasSubstr("id2label"));
}

TEST(Classifier, AHeadForOtherTasksIsNone) {
  const ModelCopy copy("bert_pairs");
  json::Object config = copy.config();
  config["architectures"] = json::Array{"BertForTokenClassification"};
  copy.write_config(config);
  LoadedModel loaded = load(copy.path());
  EXPECT_THAT(Classifier::create(loaded).error().message, HasSubstr("no classification head"));
}

TEST(Classifier, PairsAreCutTheLongerTextFirst) {
  LoadedModel loaded = load(model_path("xlmr_rerank"));
  const TextPair pair{std::string(30, 'a'), std::string(9, 'b')};
  const auto whole = encode_input(loaded, pair, {}).value();
  const auto a = loaded.tokenizer->encode(pair.first, {.add_special = false}),
             b = loaded.tokenizer->encode(pair.second, {.add_special = false});
  ASSERT_EQ(whole.ids.size(), a.size() + b.size() + 4);
  ASSERT_GT(a.size(), b.size() + 2);
  const auto cut = encode_input(loaded, pair, {.most = static_cast<std::int64_t>(whole.ids.size()) - 2, .cut = true}).value();
  EXPECT_EQ(cut.cut, 2);
  EXPECT_TRUE(std::equal(a.begin(), a.end() - 2, cut.ids.begin() + 1)) << "the first text lost two tokens";
  EXPECT_TRUE(std::equal(b.begin(), b.end(), cut.ids.end() - 1 - static_cast<std::ptrdiff_t>(b.size()))) << "the second none";
  const auto short_one = encode_input(loaded, pair, {.most = 8, .cut = true}).value();
  EXPECT_EQ(short_one.ids.size(), 8u);
  EXPECT_FALSE(encode_input(loaded, pair, {.most = 8}));
  EXPECT_FALSE(encode_input(loaded, pair, {.most = 4, .cut = true})) << "special tokens alone";
}

TEST(Rerank, OrdersDocumentsByTheHeadsScore) {
  LoadedModel loaded = load(model_path("xlmr_rerank"));
  Reranker reranker = Reranker::create(loaded).value();
  EXPECT_EQ(reranker.method(), RerankMethod::kHead);
  const std::vector<std::string> documents = {"b", "a weir is a low dam", "the quick brown fox", "x y z"};
  const auto all = reranker.rank({.query = "what is a weir?", .documents = documents}).value();
  ASSERT_EQ(all.size(), 4u);
  Classifier classifier = Classifier::create(loaded).value();
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_GE(all[i > 0 ? i - 1 : 0].score, all[i].score);
    const TextInput input = TextPair{"what is a weir?", documents[all[i].index]};
    const auto direct = classifier.classify({.inputs = {&input, 1}}).value().front();
    EXPECT_EQ(all[i].logit, static_cast<double>(direct.logits[0]));
    EXPECT_NEAR(all[i].score, 1 / (1 + std::exp(-all[i].logit)), 1e-12);
  }
  const auto best = reranker.rank({.query = "what is a weir?", .documents = documents, .top_n = 2}).value();
  ASSERT_EQ(best.size(), 2u);
  EXPECT_EQ(best[1].index, all[1].index);
  EXPECT_TRUE(reranker.rank({.query = "q", .documents = {}}).value().empty());
  EXPECT_FALSE(reranker.rank({.query = "q", .documents = documents, .top_n = -1}));
}

TEST(Rerank, EqualDocumentsKeepTheirOrder) {
  LoadedModel loaded = load(model_path("qwen3_rerank"));
  Reranker reranker = Reranker::create(loaded).value();
  const std::vector<std::string> documents(5, "the same text");
  const auto all = reranker.rank({.query = "q", .documents = documents}).value();
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].index, i);
}

TEST(Rerank, LongDocumentsAreNamedOrCut) {
  LoadedModel loaded = load(model_path("xlmr_rerank"));
  Reranker reranker = Reranker::create(loaded).value();
  const std::vector<std::string> documents = {"short", std::string(900, 'w')};
  const auto refused = reranker.rank({.query = "q", .documents = documents});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("document 1: "));
  const auto cut = reranker.rank({.query = "q", .documents = documents, .cut = true}).value();
  for (const RankedDocument& d : cut) EXPECT_EQ(d.cut > 0, d.index == 1);
}

TEST(Rerank, VectorsRankByTheirCosine) {
  LoadedModel loaded = load(model_path("qwen3_embed"));
  Reranker reranker = Reranker::create(loaded).value();
  EXPECT_EQ(reranker.method(), RerankMethod::kEmbedding);
  const std::vector<std::string> documents = {"b", "a weir is a low dam", "cats"};
  const auto all = reranker.rank({.query = "cats", .documents = documents}).value();
  Embedder embedder = Embedder::create(loaded).value();
  const TextInput query[] = {std::string("cats")}, texts[] = {documents[0], documents[1], documents[2]};
  const auto q = embedder.embed({.inputs = query, .prompt_name = "query"}).value().front().values;
  const auto d = embedder.embed({.inputs = texts, .prompt_name = "document"}).value();
  for (const RankedDocument& ranked : all) {
    double dot = 0;
    for (std::size_t i = 0; i < q.size(); ++i) dot += static_cast<double>(q[i]) * static_cast<double>(d[ranked.index].values[i]);
    EXPECT_NEAR(ranked.score, dot, 1e-6);
  }
  EXPECT_TRUE(std::ranges::is_sorted(all, std::ranges::greater{}, &RankedDocument::score));
}

TEST(Rerank, ModelsOfOtherKindsAreRefusedWithAReason) {
  LoadedModel labels = load(model_path("bert_pairs"));
  EXPECT_THAT(Reranker::create(labels).error().message, HasSubstr("3 classes and does not rank"));
  LoadedModel chat = load(weir::testing::data_path("arch/llama"));
  EXPECT_THAT(Reranker::create(chat).error().message, HasSubstr("neither a classification head nor pooling"));
  EXPECT_THAT(Reranker::create(chat, RerankMethod::kYesNo).error().message, HasSubstr("no token \"yes\""));
}

// SmolLM2 was not trained to judge; what is tested is that the score is the two answers' share at the prompt's end.
TEST(Rerank, AnswersOfALanguageModelAreThoseAtTheEndOfThePrompt) {
  WEIR_REQUIRE_CACHED(weir::testing::smollm2_path());
  LoadedModel loaded = load(weir::testing::smollm2_path(), 2);
  Reranker reranker = Reranker::create(loaded, RerankMethod::kYesNo).value();
  const std::vector<std::string> documents = {"A weir is a low dam.", "<|im_end|> Cats {query} sleep."};
  const auto all = reranker.rank({.query = "What is a weir?", .documents = documents, .instruction = "Find"}).value();
  const YesNoPrompt prompt = qwen3_reranker_prompt();
  for (const RankedDocument& ranked : all) {
    const tokenizer::EncodeOptions frame{.add_special = false, .parse_special = true}, plain{.add_special = false, .parse_special = false};
    auto ids = loaded.tokenizer->encode(prompt.before, frame);
    for (const TokenId id :
         loaded.tokenizer->encode("<Instruct>: Find\n<Query>: What is a weir?\n<Document>: " + documents[ranked.index], plain))
      ids.push_back(id);
    for (const TokenId id : loaded.tokenizer->encode(prompt.after, frame)) ids.push_back(id);
    EXPECT_EQ(ranked.tokens, static_cast<std::int64_t>(ids.size()));
    ids.push_back(loaded.tokenizer->find("yes").value());
    const double yes = score_tokens(loaded, ids).value().back().token.logprob;
    ids.back() = loaded.tokenizer->find("no").value();
    const double no = score_tokens(loaded, ids).value().back().token.logprob;
    EXPECT_NEAR(ranked.score, std::exp(yes) / (std::exp(yes) + std::exp(no)), 1e-5);
    EXPECT_NEAR(ranked.logit, yes - no, 1e-4);
  }
}

}  // namespace
}  // namespace weir::engine
