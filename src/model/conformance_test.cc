// SPDX-License-Identifier: Apache-2.0
// Every architecture of tests/data/arch against its float64 reference, from safetensors and from GGUF, with float
// activations: all positions' logits, prompt logprobs, and sixteen greedy tokens through the cache. A failure names the
// first layer whose hidden state is off.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file_io.h"
#include "base/testing.h"
#include "model/test_sequences.h"

namespace weir::model::testing {
namespace {

struct Case {
  std::string name;             // of the folder
  std::filesystem::path model;  // the folder, or a GGUF file in it
  std::string alternative;      // the golden's `alt` that applies to this file, or none
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.model.filename().string() << " of " << c.name; }

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const auto& folder : std::filesystem::directory_iterator(weir::testing::data_path("arch"))) {
    if (!folder.is_directory()) continue;
    const std::string name = folder.path().filename().string();
    cases.push_back({name, folder.path(), ""});
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      if (file.path().extension() != ".gguf") continue;
      // A GGUF cannot say that the ends of gpt-oss's yarn ramp are not rounded.
      cases.push_back({name, file.path(), name.starts_with("gpt_oss") ? "truncated_ramp" : ""});
    }
  }
  std::ranges::sort(cases, {}, [](const Case& c) { return c.model; });
  return cases;
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  return info.param.name + (info.param.model.extension() == ".gguf" ? "_gguf" : "");
}

// Norms of the last row's hidden states, as `hidden_l2_last` has them: the embedding, after each layer but the last, after
// the final norm.
class HiddenNorms {
 public:
  explicit HiddenNorms(Model& model) : layers_(static_cast<std::int32_t>(model.traits().layers.size())) {
    model.set_probe([this](std::int32_t layer, kernels::ConstMatrix states) {
      if (layer == -1) norms_.clear();
      if (layer == layers_ - 1) return;
      double sum = 0;
      for (float x : states.row_span(states.rows - 1)) sum += double{x} * x;
      norms_.push_back(std::sqrt(sum));
    });
  }
  std::string first_difference(const std::vector<double>& expected) const {
    if (norms_.size() != expected.size()) return fmt::format("{} hidden states, expected {}", norms_.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (distance(norms_[i], expected[i]) <= 1e-4 * (1 + expected[i])) continue;
      const std::string where = i == 0                     ? "the embedding"
                                : i + 1 == expected.size() ? "the last layer or the final norm"
                                                           : fmt::format("layer {}", i - 1);
      return fmt::format("first wrong after {}: norm {}, expected {}", where, norms_[i], expected[i]);
    }
    return "all hidden norms agree";
  }

 private:
  std::int32_t layers_;
  std::vector<double> norms_;
};

class Conformance : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    auto text = read_file(weir::testing::data_path("arch/" + GetParam().name + "/golden.json"));
    ASSERT_TRUE(text.has_value()) << text.error().message;
    golden_ = json::parse(*text, "golden.json").value();
    tolerance_ = golden_.at("tolerance_f32").to_number<double>();
    auto loaded = load(GetParam().model, kernels::Activations::kF32);
    ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
    model_ = std::move(*loaded);
  }
  const json::Array& sequences() const {
    const std::string& alternative = GetParam().alternative;
    const json::Value& from = alternative.empty() ? golden_ : golden_.at("alt").at(alternative);
    return from.at("sequences").as_array();
  }
  void see(double error, double factor, const char* what) {
    worst_ = std::max(worst_, error / factor);
    EXPECT_LE(error, tolerance_ * factor) << what;
  }
  void check_prompt(const json::Value& golden, const std::vector<TokenId>& prompt, const std::vector<Row>& rows);
  void check_greedy(const json::Value& golden, TestSequences& run, Row last);
  void check_encoder(const json::Value& golden, const std::vector<Row>& rows);

  json::Value golden_;
  double tolerance_ = 0, worst_ = 0;
  std::unique_ptr<Model> model_;
};

void Conformance::check_prompt(const json::Value& golden, const std::vector<TokenId>& prompt, const std::vector<Row>& rows) {
  see(distance(rows.back(), doubles(golden.at("last_logits"))), 1, "last_logits");
  const auto logsumexps = doubles(golden.at("logsumexp")), logprobs = doubles(golden.at("next_logprob"));
  const auto best = ids(golden.at("argmax"));
  ASSERT_EQ(rows.size(), logsumexps.size());
  ASSERT_EQ(rows.size(), logprobs.size() + 1);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    see(distance(logsumexp(rows[i]), logsumexps[i]), 1, "logsumexp");
    EXPECT_TRUE(argmax(rows[i]) == best[i] || margin(rows[i]) <= 2 * tolerance_) << "argmax at position " << i;
    if (i + 1 == rows.size()) break;
    see(distance(rows[i][static_cast<std::size_t>(prompt[i + 1])] - logsumexp(rows[i]), logprobs[i]), 2, "next_logprob");
  }
}

void Conformance::check_greedy(const json::Value& golden, TestSequences& run, Row last) {
  const auto expected = ids(golden.at("greedy"));
  const auto logprobs = doubles(golden.at("greedy_logprob"));
  ASSERT_FALSE(expected.empty());
  for (std::size_t step = 0; step < expected.size(); ++step) {
    ASSERT_EQ(argmax(last), expected[step]) << "greedy step " << step;
    see(distance(last[static_cast<std::size_t>(expected[step])] - logsumexp(last), logprobs[step]), 2, "greedy_logprob");
    auto rows = run.feed({{0, {expected[step]}}});
    ASSERT_TRUE(rows.has_value()) << rows.error().message;
    last = rows->front();
  }
}

void Conformance::check_encoder(const json::Value& golden, const std::vector<Row>& rows) {
  Row mean(rows.front().size());
  for (std::size_t c = 0; c < mean.size(); ++c) {
    double sum = 0;
    for (const Row& row : rows) sum += row[c];
    mean[c] = static_cast<float>(sum / static_cast<double>(rows.size()));
  }
  see(distance(mean, doubles(golden.at("mean"))), 1, "mean");
  see(distance(rows.front(), doubles(golden.at("cls"))), 1, "cls");
  see(distance(rows.back(), doubles(golden.at("last"))), 1, "last");
  if (!model_->weights().pooler) return;  // GGUF has none
  Row pooled(mean.size());
  const auto width = static_cast<std::int64_t>(pooled.size());
  const auto status = model_->pool({rows.front().data(), 1, width}, {pooled.data(), 1, width});
  ASSERT_TRUE(status.has_value()) << status.error().message;
  see(distance(pooled, doubles(golden.at("pooler_output"))), 1, "pooler_output");
}

TEST_P(Conformance, EqualsTheReference) {
  for (const json::Value& golden : sequences()) {
    const auto prompt = ids(golden.at("ids"));
    SCOPED_TRACE(fmt::format("{} tokens", prompt.size()));
    HiddenNorms norms(*model_);
    TestSequences run(*model_, 1, static_cast<std::int32_t>(prompt.size()) + 16);
    auto rows = run.feed({{0, prompt}});
    ASSERT_TRUE(rows.has_value()) << rows.error().message;
    if (model_->traits().encoder) {
      check_encoder(golden, *rows);
      continue;
    }
    check_prompt(golden, prompt, *rows);
    if (HasFailure()) FAIL() << norms.first_difference(doubles(golden.at("hidden_l2_last")));
    model_->set_probe({});
    check_greedy(golden, run, rows->back());
    if (HasFailure()) return;
  }
  RecordProperty("worst_error", fmt::format("{:.2g}", worst_));
  EXPECT_GT(worst_, 0) << "nothing was compared";
}

TEST(ConformanceData, HasAllArchitecturesOfTheReferenceSet) {
  const auto cases = all_cases();
  EXPECT_EQ(std::ranges::count(cases, "", [](const Case& c) { return c.model.extension().string(); }), 47);
  EXPECT_EQ(std::ranges::count(cases, ".gguf", [](const Case& c) { return c.model.extension().string(); }), 40);
}

INSTANTIATE_TEST_SUITE_P(Architectures, Conformance, ::testing::ValuesIn(all_cases()), case_name);

}  // namespace
}  // namespace weir::model::testing
