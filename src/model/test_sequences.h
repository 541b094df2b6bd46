// SPDX-License-Identifier: Apache-2.0
// For tests only: runs pieces of several sequences through a model, whose blocks lie scattered in the memory, and hands
// back the rows of every token.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "kernels/cpu_backend.h"
#include "model/model.h"

namespace weir::model::testing {

using Row = std::vector<float>;

struct Piece {
  std::int32_t sequence = 0;
  std::vector<TokenId> tokens;
};

class TestSequences {
 public:
  // `sequences` of up to `capacity` tokens each; `rope_length` as in SequenceSlice, for all of them.
  TestSequences(Model& model, std::int32_t sequences, std::int32_t capacity, std::int32_t rope_length = 0, std::int32_t block_tokens = 16,
                DType kv_type = DType::kF32)
      : model_(model), rope_length_(rope_length), lengths_(static_cast<std::size_t>(sequences)) {
    const std::int32_t each = (capacity + block_tokens - 1) / block_tokens;
    for (std::int32_t s = 0; s < sequences; ++s) {
      std::vector<BlockId>& blocks = blocks_.emplace_back();
      for (std::int32_t b = 0; b < each; ++b) blocks.emplace_back((each - 1 - b) * sequences + s);
    }
    memory_ = std::make_unique<SequenceMemory>(model.traits(), each * sequences, block_tokens, sequences, kv_type);
  }

  // One forward pass; the rows of each piece's tokens, piece after piece.
  Result<std::vector<Row>> feed(const std::vector<Piece>& pieces) {
    std::vector<TokenId> tokens;
    std::vector<kernels::SequenceSlice> slices;
    std::vector<std::int32_t> outputs;
    for (const Piece& p : pieces) {
      const auto s = static_cast<std::size_t>(p.sequence);
      const auto count = static_cast<std::int32_t>(p.tokens.size());
      slices.push_back({static_cast<std::int32_t>(tokens.size()), count, lengths_[s], rope_length_, blocks_[s], StateSlot(p.sequence)});
      tokens.insert(tokens.end(), p.tokens.begin(), p.tokens.end());
      lengths_[s] += count;
    }
    for (std::size_t i = 0; i < tokens.size(); ++i) outputs.push_back(static_cast<std::int32_t>(i));
    const std::int64_t width = model_.traits().encoder ? model_.traits().hidden : model_.traits().vocab_size;
    std::vector<float> out(tokens.size() * static_cast<std::size_t>(width));
    std::vector<const Adapter*> adapters;
    for (const Piece& p : pieces)
      if (!adapters_.empty()) adapters.push_back(adapters_[static_cast<std::size_t>(p.sequence)]);
    Batch batch{tokens, slices, outputs, {}};
    batch.adapters = adapters;
    WEIR_TRY(model_.forward(batch, *memory_, {out.data(), static_cast<std::int64_t>(tokens.size()), width}));
    std::vector<Row> rows;
    for (auto row = out.begin(); row != out.end(); row += width) rows.emplace_back(row, row + width);
    return rows;
  }

  // One sequence in chunks; the rows of all its tokens.
  Result<std::vector<Row>> feed_chunks(std::int32_t sequence, std::span<const TokenId> tokens, std::size_t chunk) {
    std::vector<Row> all;
    for (std::size_t i = 0; i < tokens.size(); i += chunk) {
      const auto part = tokens.subspan(i, std::min(chunk, tokens.size() - i));
      WEIR_ASSIGN(auto rows, feed({{sequence, {part.begin(), part.end()}}}));
      all.insert(all.end(), rows.begin(), rows.end());
    }
    return all;
  }

  // What each sequence takes from now on; null: none.
  void use_adapters(std::vector<const Adapter*> adapters) { adapters_ = std::move(adapters); }

  // `to` becomes what `from` is.
  void fork(std::int32_t from, std::int32_t to) {
    const auto a = static_cast<std::size_t>(from), b = static_cast<std::size_t>(to);
    for (std::size_t i = 0; i < blocks_[a].size(); ++i) memory_->copy_block(0, blocks_[a][i], blocks_[b][i], memory_->block_tokens());
    memory_->copy_state(StateSlot(from), StateSlot(to));
    lengths_[b] = lengths_[a];
  }

 private:
  Model& model_;
  std::int32_t rope_length_;
  std::vector<std::int32_t> lengths_;
  std::vector<const Adapter*> adapters_;
  std::vector<std::vector<BlockId>> blocks_;
  std::unique_ptr<SequenceMemory> memory_;
};

inline Result<std::unique_ptr<Model>> load(const std::filesystem::path& path, kernels::Activations activations, int threads = 1) {
  WEIR_ASSIGN(auto backend, kernels::make_cpu_backend({.threads = threads, .activations = activations, .isa = {}}));
  return Model::load(path, std::shared_ptr<kernels::Backend>(std::move(backend)));
}

inline std::vector<double> doubles(const json::Value& array) {
  std::vector<double> out;
  for (const json::Value& v : array.as_array()) out.push_back(v.to_number<double>());
  return out;
}
inline std::vector<TokenId> ids(const json::Value& array) {
  std::vector<TokenId> out;
  for (const json::Value& v : array.as_array()) out.push_back(v.to_number<TokenId>());
  return out;
}

inline TokenId argmax(const Row& row) { return static_cast<TokenId>(std::max_element(row.begin(), row.end()) - row.begin()); }

// Best minus second.
inline double margin(const Row& row) {
  const TokenId best = argmax(row);
  double second = -INFINITY;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (static_cast<TokenId>(i) != best) second = std::max<double>(second, row[i]);
  }
  return row[static_cast<std::size_t>(best)] - second;
}

inline double logsumexp(const Row& row) {
  const double most = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (float x : row) sum += std::exp(x - most);
  return most + std::log(sum);
}

// NaN counts as infinitely far.
inline double distance(double a, double b) { return std::isfinite(a - b) ? std::abs(a - b) : INFINITY; }
inline double distance(const Row& row, const std::vector<double>& expected) {
  double most = row.size() == expected.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < std::min(row.size(), expected.size()); ++i) most = std::max(most, distance(row[i], expected[i]));
  return most;
}

}  // namespace weir::model::testing
