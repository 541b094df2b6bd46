// SPDX-License-Identifier: Apache-2.0
// For tests only: the tiny models of tests/data/embedding, their cases, and copies of them with some of their files changed.
#pragma once

#include <cmath>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/file_io.h"
#include "base/json.h"
#include "base/testing.h"
#include "engine/loaded_model.h"
#include "engine/text_input.h"

namespace weir::engine::testing {

inline std::filesystem::path model_path(const std::string& name) { return weir::testing::data_path("embedding/" + name); }

inline LoadedModel load(const std::filesystem::path& path, int threads = 1) {
  auto loaded = load_model(path, {.threads = threads, .activations = kernels::Activations::kF32, .isa = ""});
  if (!loaded) throw std::runtime_error(loaded.error().message);
  return std::move(*loaded);
}

struct Case {
  TextInput input;
  std::vector<TokenId> ids, types;
  std::vector<double> expected;
};

inline std::vector<Case> cases(const std::string& name) {
  const json::Value file = json::parse(read_file(model_path(name) / "golden.json", 1 << 20).value(), "golden.json").value();
  std::vector<Case> out;
  for (const json::Value& item : file.at("cases").as_array()) {
    const json::Object& entry = item.as_object();
    Case& c = out.emplace_back();
    const std::string text(entry.at("text").as_string());
    if (entry.contains("pair")) {
      c.input = TextPair{text, std::string(entry.at("pair").as_string())};
    } else {
      c.input = text;
    }
    for (const json::Value& id : entry.at("ids").as_array()) c.ids.push_back(id.to_number<TokenId>());
    if (entry.contains("types"))
      for (const json::Value& type : entry.at("types").as_array()) c.types.push_back(type.to_number<std::int32_t>());
    for (const json::Value& v : entry.at(entry.contains("vector") ? "vector" : "logits").as_array())
      c.expected.push_back(v.to_number<double>());
  }
  return out;
}

inline double distance(std::span<const float> found, const std::vector<double>& expected) {
  double most = found.size() == expected.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < std::min(found.size(), expected.size()); ++i)
    most = std::isfinite(found[i]) ? std::max(most, std::abs(static_cast<double>(found[i]) - expected[i])) : INFINITY;
  return most;
}

// A copy of a model's folder that may be changed.
class ModelCopy {
 public:
  explicit ModelCopy(const std::string& name) : name_(name) {
    std::filesystem::copy(model_path(name), path(), std::filesystem::copy_options::recursive);
  }
  std::filesystem::path path() const { return folder_.path() / name_; }
  void write(const std::string& file, std::string_view text) const {
    std::filesystem::create_directories((path() / file).parent_path());
    std::ofstream(path() / file) << text;
  }
  json::Object config() const { return json::parse(read_file(path() / "config.json", 1 << 20).value(), "config.json").value().as_object(); }
  void write_config(const json::Object& config) const { write("config.json", boost::json::serialize(config)); }
  void remove(const std::string& file) const { std::filesystem::remove_all(path() / file); }

 private:
  weir::testing::TemporaryFolder folder_;
  std::string name_;
};

}  // namespace weir::engine::testing
