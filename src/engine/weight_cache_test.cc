// SPDX-License-Identifier: Apache-2.0
// The weight cache on the real model: found again, the same bits as without, and no cache is no failure.
#include "model/weight_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "base/file_io.h"
#include "base/testing.h"
#include "engine/loaded_model.h"
#include "engine/runner.h"
#include "formats/hf_folder.h"
#include "model/load.h"

namespace weir::engine {
namespace {

std::unique_ptr<model::Model> load(const std::filesystem::path& path = testing::smollm2_path()) {
  auto backend = kernels::make_cpu_backend({.threads = 2, .activations = kernels::Activations::kInt8, .isa = ""});
  return model::Model::load(path, std::move(backend.value())).value();
}

std::vector<float> logits(model::Model& model, const std::vector<TokenId>& tokens = {1, 9690, 198, 2683, 359, 253, 5356, 5646}) {
  Runner runner(model, {.max_tokens = 64});
  const SeqId sequence = runner.open().value();
  const Piece pieces[] = {{sequence, tokens, Outputs::kAll}};
  const kernels::Matrix rows = runner.step(pieces).value();
  return {rows.data, rows.data + rows.rows * rows.cols};
}

using model::HugePages;

std::filesystem::path cache_file_in(const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".cache") return entry.path();
  return {};
}

TEST(WeightCache, IsMadeOnceAndChangesNoBit) {
  WEIR_REQUIRE_CACHED(testing::smollm2_path());
  const testing::TemporaryFolder folder;
  const auto plain = load();
  const std::vector<float> wanted = logits(*plain);
  const std::pair<HugePages, bool> starts[] = {{HugePages::kOff, true}, {HugePages::kOff, false}, {HugePages::kOn, false}};
  for (const auto& [huge_pages, made] : starts) {
    const auto packed = load();
    const auto report = attach_packed_weights(*packed, {.huge_pages = huge_pages, .folder = folder.path() / "weights"});
    EXPECT_EQ(report.note, "");
    EXPECT_EQ(report.made, made);
    EXPECT_GT(report.bytes, 90u << 20);
    EXPECT_LT(report.bytes, 110u << 20);
    const std::vector<float> found = logits(*packed);
    EXPECT_EQ(std::memcmp(found.data(), wanted.data(), wanted.size() * sizeof(float)), 0);
  }
}

TEST(WeightCache, ADamagedFileIsPackedAgain) {
  WEIR_REQUIRE_CACHED(testing::smollm2_path());
  const testing::TemporaryFolder folder;
  const model::WeightCacheOptions options{.huge_pages = HugePages::kOn, .folder = folder.path() / "weights"};
  auto first = load();
  EXPECT_TRUE(attach_packed_weights(*first, options).made);
  const std::vector<float> wanted = logits(*first);
  first.reset();  // ends when its weights are kept
  std::fstream file(cache_file_in(options.folder), std::ios::in | std::ios::out);
  file.seekp(50 << 20);
  file.put('?').put('!');
  file.close();
  auto second = load();
  const auto report = attach_packed_weights(*second, options);
  EXPECT_TRUE(report.made);
  EXPECT_NE(report.note.find("damaged"), std::string::npos) << report.note;
  EXPECT_EQ(logits(*second), wanted);
  second.reset();
  const auto third = load();
  EXPECT_FALSE(attach_packed_weights(*third, options).made);
}

TEST(WeightCache, ACopyOfTheModelFindsWhatWasPackedAndAChangedOneDoesNot) {
  WEIR_REQUIRE_CACHED(testing::smollm2_path());
  const testing::TemporaryFolder folder;
  const model::WeightCacheOptions options{.huge_pages = HugePages::kOff, .folder = folder.path() / "weights"};
  EXPECT_TRUE(attach_packed_weights(*load(), options).made);
  const auto copy = folder.path() / "copy.gguf";
  std::filesystem::copy_file(testing::smollm2_path(), copy);
  EXPECT_FALSE(attach_packed_weights(*load(copy), options).made);
  std::fstream file(copy, std::ios::in | std::ios::out);
  file.seekp(-100, std::ios::end);
  file.put('?').put('!');
  file.close();
  EXPECT_TRUE(attach_packed_weights(*load(copy), options).made);
}

TEST(WeightCache, ExpertsInAnotherOrderThanTheFilesAreMadeOnlyForPacking) {
  const auto folder = formats::HfFolder::open(testing::data_path("arch/gpt_oss_mxfp4")).value();
  const auto load_experts = [&](model::Deferral deferral) {
    auto parts = model::load_folder(folder, deferral).value();
    auto backend = kernels::make_cpu_backend({.threads = 2, .activations = kernels::Activations::kInt8, .isa = ""});
    return std::make_unique<model::Model>(std::move(parts.traits), std::move(parts.weights), std::move(backend.value()));
  };
  const std::vector<TokenId> tokens{1, 5, 9, 20, 3, 17};
  const std::vector<float> wanted = logits(*load_experts(model::Deferral::kNone), tokens);
  const testing::TemporaryFolder cache;
  const std::pair<HugePages, bool> starts[] = {{HugePages::kOff, true}, {HugePages::kOff, false}, {HugePages::kOn, false}};
  for (const auto& [huge_pages, made] : starts) {
    const auto model = load_experts(model::Deferral::kUntilPacked);
    const std::byte* const gates = model->weights().layers[0].experts.experts[1].gate.weight->view.bytes.data();
    EXPECT_FALSE(model->weights().deferred.empty());
    const auto report = attach_packed_weights(*model, {.huge_pages = huge_pages, .folder = cache.path(), .least_bytes = 0});
    EXPECT_EQ(report.made, made) << report.note;
    EXPECT_TRUE(model->weights().deferred.empty());
    EXPECT_EQ(logits(*model, tokens), wanted);
    if (!made) {
      EXPECT_TRUE(std::all_of(gates, gates + 64, [](std::byte b) { return b == std::byte{0}; }));  // never made
    }
  }
  const auto unpacked = load_experts(model::Deferral::kUntilPacked);
  attach_packed_weights(*unpacked, {.enabled = false, .huge_pages = HugePages::kOff, .least_bytes = 0});
  EXPECT_EQ(logits(*unpacked, tokens), wanted);
}

TEST(WeightCache, WithoutAPlaceTheModelWorksFromItsFileOrPacksAtEachStart) {
  WEIR_REQUIRE_CACHED(testing::smollm2_path());
  const testing::TemporaryFolder folder;
  ASSERT_TRUE(write_file_atomically(folder.path() / "file", "x"));
  const auto no_folder = folder.path() / "file" / "weights";
  const auto model = load();
  const auto report = attach_packed_weights(*model, {.huge_pages = HugePages::kOff, .folder = no_folder});
  EXPECT_EQ(report.bytes, 0u);
  EXPECT_NE(report.note.find("weight cache is off"), std::string::npos);
  const std::vector<float> wanted = logits(*model);
  const auto small =
      attach_packed_weights(*model, {.huge_pages = HugePages::kOff, .folder = folder.path() / "weights", .limit_bytes = 1 << 20});
  EXPECT_NE(small.note.find("limit"), std::string::npos);
  EXPECT_EQ(attach_packed_weights(*model, {.enabled = false, .huge_pages = HugePages::kOff}).bytes, 0u);

  EXPECT_TRUE(attach_packed_weights(*model, {.huge_pages = HugePages::kOn, .folder = no_folder}).made);
  EXPECT_EQ(logits(*model), wanted);
  EXPECT_TRUE(attach_packed_weights(*model, {.enabled = false, .huge_pages = HugePages::kOn}).made);
  EXPECT_EQ(logits(*model), wanted);
}

}  // namespace
}  // namespace weir::engine
