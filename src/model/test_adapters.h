// SPDX-License-Identifier: Apache-2.0
// For tests only: writes adapters with random matrices for a Hugging Face folder, and the same folder with them merged into its weights,
// which says what a model with the adapter must compute.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/json.h"
#include "formats/gguf_writer.h"
#include "formats/hf_folder.h"
#include "model/tensor_source.h"

namespace weir::model::testing {

struct NamedFloats {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

inline void write_safetensors(const std::filesystem::path& path, const std::vector<NamedFloats>& tensors) {
  json::Object header;
  std::size_t offset = 0;
  for (const NamedFloats& t : tensors) {
    const std::size_t end = offset + t.values.size() * sizeof(float);
    header[t.name] = {{"dtype", "F32"}, {"shape", json::Array(t.shape.begin(), t.shape.end())}, {"data_offsets", json::Array{offset, end}}};
    offset = end;
  }
  std::string text = boost::json::serialize(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t size = text.size();
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(&size), sizeof size);
  out << text;
  for (const NamedFloats& t : tensors)
    out.write(reinterpret_cast<const char*>(t.values.data()), static_cast<std::streamsize>(t.values.size() * sizeof(float)));
}

// B·A for one weight [out, in].
struct RandomChange {
  std::string module;
  std::int64_t out = 0, in = 0, rank = 0;
  std::vector<float> a, b;  // [rank, in], [out, rank]

  RandomChange(std::string name, std::int64_t outs, std::int64_t ins, std::int64_t r, std::uint32_t seed)
      : module(std::move(name)), out(outs), in(ins), rank(r), a(static_cast<std::size_t>(r * ins)), b(static_cast<std::size_t>(outs * r)) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (float& v : a) v = normal(random) / std::sqrt(static_cast<float>(ins));
    for (float& v : b) v = normal(random) * 0.1f;
  }
  float delta(std::int64_t o, std::int64_t i) const {
    double sum = 0;
    for (std::int64_t r = 0; r < rank; ++r)
      sum += static_cast<double>(b[static_cast<std::size_t>(o * rank + r)]) * static_cast<double>(a[static_cast<std::size_t>(r * in + i)]);
    return static_cast<float>(sum);
  }
};

constexpr double kAlpha = 6;

struct TestAdapter {
  std::vector<RandomChange> changes;
  std::int64_t rank = 4;
  bool embedding = false;  // changes.front() is of the token embedding: module [vocab_size, hidden]
  double scale() const { return kAlpha / static_cast<double>(rank); }

  // As PEFT saves it.
  void write_peft(const std::filesystem::path& folder, json::Object config = {}) const {
    std::filesystem::create_directories(folder);
    json::Object all{{"peft_type", "LORA"},
                     {"r", rank},
                     {"lora_alpha", kAlpha},
                     {"bias", "none"},
                     {"target_modules", json::Array{"q_proj"}},
                     {"base_model_name_or_path", "some/model"},
                     {"use_dora", false},
                     {"modules_to_save", nullptr},
                     {"lora_dropout", 0.1}};
    for (const auto& [key, value] : config) all[key] = value;
    std::ofstream(folder / "adapter_config.json") << boost::json::serialize(all);
    std::vector<NamedFloats> tensors;
    for (const RandomChange& c : changes) {
      const std::string base = "base_model.model." + c.module;
      if (embedding && &c == &changes.front()) {  // Wᵀ = B·A: [hidden, rank] · [rank, vocab_size]
        tensors.push_back({base + ".lora_embedding_A", {c.rank, c.out}, transposed(c.b, c.out, c.rank)});
        tensors.push_back({base + ".lora_embedding_B", {c.in, c.rank}, transposed(c.a, c.rank, c.in)});
        continue;
      }
      tensors.push_back({base + ".lora_A.weight", {c.rank, c.in}, c.a});
      tensors.push_back({base + ".lora_B.weight", {c.out, c.rank}, c.b});
    }
    write_safetensors(folder / "adapter_model.safetensors", tensors);
  }

  static std::vector<float> transposed(const std::vector<float>& m, std::int64_t rows, std::int64_t cols) {
    std::vector<float> out(m.size());
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < cols; ++c) out[static_cast<std::size_t>(c * rows + r)] = m[static_cast<std::size_t>(r * cols + c)];
    return out;
  }

  // The folder with B·A·scale in its weights, all F32.
  void write_merged(const std::filesystem::path& model, const std::filesystem::path& folder, bool in_out) const {
    std::filesystem::create_directories(folder);
    for (const auto& file : std::filesystem::directory_iterator(model))
      if (file.path().extension() == ".json" && file.path().filename() != "model.safetensors.index.json")
        std::filesystem::copy_file(file.path(), folder / file.path().filename());
    const auto opened = formats::HfFolder::open(model);
    std::map<std::string, const RandomChange*> by_name;
    for (const RandomChange& c : changes) by_name[c.module + ".weight"] = &c;
    std::vector<NamedFloats> tensors;
    for (const formats::NamedTensor& t : opened->index.tensors()) {
      NamedFloats values{t.name, t.view.shape, *to_floats(t.view, t.name)};
      if (const auto at = by_name.find(t.name); at != by_name.end()) {
        const RandomChange& c = *at->second;
        const bool head = t.name.starts_with("lm_head");
        for (std::int64_t o = 0; o < c.out; ++o)
          for (std::int64_t i = 0; i < c.in; ++i)
            values.values[static_cast<std::size_t>(in_out && !head ? i * c.out + o : o * c.in + i)] +=
                static_cast<float>(scale()) * c.delta(o, i);
      }
      tensors.push_back(std::move(values));
    }
    write_safetensors(folder / "model.safetensors", tensors);
  }
};

}  // namespace weir::model::testing
