// SPDX-License-Identifier: Apache-2.0
// Attention through the backend against a plain softmax in double, and the same bits whatever the paging, the chunks of
// the prompt, the neighbours and the threads.
#include <cmath>

#include "kernels/cpu_backend_impl.h"
#include "kernels/test_support.h"

namespace weir::kernels {
namespace {

using namespace test;

struct Shape {
  const char* name;
  std::int32_t heads, kv_heads, key_dim, value_dim;
  bool shared_values = false;  // MLA
  AttentionParams params{};
  DType type = DType::kF32;
  bool prompt = false;  // rows of one, which a table may multiply in another way
};

float rounded_as(DType type, float x) {
  return type == DType::kF16 ? f16_to_float(float_to_f16(x)) : type == DType::kBF16 ? bf16_to_float(float_to_bf16(x)) : x;
}

// What is left of values in the cache, so that what is stored is what the exact computation sees.
void round_as(DType type, Floats& x) {
  if (type != DType::kQ8_0) {
    for (float& v : x) v = rounded_as(type, v);
    return;
  }
  for (std::size_t i = 0; i < x.size(); i += 32) {
    float most = 0;
    for (std::size_t j = i; j < i + 32; ++j) most = std::max(most, std::abs(x[j]));
    const float scale = rounded_as(DType::kF16, most / 127), inverse = 1 / scale;
    for (std::size_t j = i; j < i + 32; ++j) x[j] = scale * std::nearbyint(x[j] * inverse);
  }
}

// One sequence's queries, keys and values.
struct Sequence {
  Sequence(const Shape& s, std::int64_t length, unsigned seed)
      : rows(length),
        q(random_floats(length * s.heads * s.key_dim, seed)),
        k(random_floats(length * s.kv_heads * s.key_dim, seed + 1)),
        v(random_floats(s.shared_values ? 0 : length * s.kv_heads * s.value_dim, seed + 2)) {
    round_as(s.type, k);
    round_as(s.type, v);
  }
  std::int64_t rows;
  Floats q, k, v;
};

bool in_bf16(const KernelTable& table, DType type) {
  return (type == DType::kBF16 || type == DType::kQ8_0) && table.attention.bf16.step != nullptr;
}

// The plain softmax in double. With BF16 arithmetic, of inputs rounded as that rounds them.
struct Exact {
  Floats out;
  Floats magnitude;  // the same weighted mean, of the values' magnitudes
};

Exact exact_attention(const Shape& s, const Sequence& seq, bool bf16, std::int64_t first_row = 0) {
  constexpr float kLog2E = 1.44269504f;
  const float capped = s.params.softcap > 0 ? s.params.softcap : 1, scale = s.params.scale / capped * (s.params.softcap > 0 ? 1 : kLog2E);
  const auto stored = [&](float x) { return static_cast<double>(bf16 ? rounded_as(DType::kBF16, x) : x); };
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  Exact exact;
  for (std::int64_t r = first_row; r < seq.rows; ++r) {
    const std::int64_t from = s.params.causal && s.params.window > 0 ? std::max<std::int64_t>(0, r - s.params.window + 1) : 0;
    const std::int64_t to = s.params.causal ? r + 1 : seq.rows;
    for (std::int64_t h = 0; h < s.heads; ++h) {
      const std::int64_t kv = h / (s.heads / s.kv_heads);
      std::vector<double> scores, sum(at(s.value_dim)), size(at(s.value_dim));
      double largest = s.params.sinks ? s.params.sinks[h] : -1e30;
      for (std::int64_t p = from; p < to; ++p) {
        double score = 0;
        for (std::int64_t d = 0; d < s.key_dim; ++d)
          score += stored(seq.q[at((r * s.heads + h) * s.key_dim + d)] * scale) * stored(seq.k[at((p * s.kv_heads + kv) * s.key_dim + d)]);
        score = s.params.softcap > 0 ? s.params.softcap * std::tanh(score) : score * std::log(2.0);
        scores.push_back(score);
        largest = std::max(largest, score);
      }
      double total = s.params.sinks ? std::exp(s.params.sinks[h] - largest) : 0;
      for (std::int64_t p = from; p < to; ++p) {
        const double weight = std::exp(scores[at(p - from)] - largest);
        total += weight;
        for (std::int64_t d = 0; d < s.value_dim; ++d) {
          const double value = stored(s.shared_values ? seq.k[at((p * s.kv_heads + kv) * s.key_dim + d)]
                                                      : seq.v[at((p * s.kv_heads + kv) * s.value_dim + d)]);
          sum[at(d)] += weight * value;
          size[at(d)] += weight * std::abs(value);
        }
      }
      for (const double x : sum) exact.out.push_back(static_cast<float>(x / total));
      for (const double x : size) exact.magnitude.push_back(static_cast<float>(x / total));
    }
  }
  return exact;
}

// In float: what summing a row's products and weights rounds. In BF16 each weight is off by up to 2^-8 and its polynomial's 8e-5.
void expect_close(const Floats& out, const Exact& exact, bool bf16, float floor) {
  ASSERT_EQ(out.size(), exact.out.size());
  const float share = bf16 ? 0x1p-8f + 2 * 8e-5f : 0;
  for (std::size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], exact.out[i], share * exact.magnitude[i] + floor) << i;
}

// The KV memory of one layer, with blocks handed out in a scattered order.
class Memory {
 public:
  Memory(const Shape& s, std::int32_t block_tokens, std::int32_t blocks) : free_(blocks) {
    const std::int64_t rows = block_tokens * s.kv_heads, key = rows * row_bytes(s.type, s.key_dim);
    const std::int64_t value = s.shared_values ? 0 : rows * row_bytes(s.type, s.value_dim);
    bytes_.resize(static_cast<std::size_t>(blocks * (key + value)), std::byte{0xff});  // NaN until written
    layer = {s.type, bytes_.data(), nullptr, block_tokens, s.kv_heads, s.key_dim, s.value_dim};
    if (block_tokens == 32) {  // all keys, then all values
      if (value > 0) layer.values = bytes_.data() + blocks * key;
    } else {  // block after block
      layer.block_stride = key + value;
      if (value > 0) layer.values = bytes_.data() + key;
    }
  }
  std::vector<BlockId> take(std::int64_t tokens) {
    std::vector<BlockId> ids;
    for (std::int64_t i = 0; i < tokens; i += layer.block_tokens) ids.emplace_back(--free_);
    return ids;
  }
  KvLayer layer;

 private:
  std::vector<std::byte> bytes_;
  std::int32_t free_;
};

// Runs the sequence in steps of `chunk` rows. Of the first `stored` rows there is no result: they are only stored.
Floats run(Backend& backend, const Shape& s, const Sequence& seq, std::int32_t block_tokens, std::int64_t chunk, std::int64_t stored = 0) {
  Memory memory(s, block_tokens, static_cast<std::int32_t>(seq.rows / block_tokens + 2));
  const auto blocks = memory.take(seq.rows);
  const std::int64_t qc = s.heads * s.key_dim, oc = s.heads * s.value_dim;
  Floats out(static_cast<std::size_t>((seq.rows - stored) * oc));
  const std::int64_t kc = s.kv_heads * s.key_dim, vc = s.shared_values ? 0 : s.kv_heads * s.value_dim;
  for (std::int64_t r = 0, n = 0; r < seq.rows; r += n) {
    n = r < stored ? stored : std::min(chunk, seq.rows - r);
    const SequenceSlice slice{0, static_cast<std::int32_t>(n), static_cast<std::int32_t>(r), 0, blocks, {}, s.prompt};
    backend.store_kv({seq.k.data() + r * kc, n, kc}, {seq.v.data() + r * vc, n, vc}, {&slice, 1}, memory.layer);
    if (r >= stored)
      backend.attention({seq.q.data() + r * qc, n, qc}, {&slice, 1}, memory.layer, s.params, {out.data() + (r - stored) * oc, n, oc});
  }
  return out;
}

const Floats kSinks{0.5f, -1.0f, 2.0f, 0.0f};

std::vector<Shape> shapes() {
  return {{"gqa", 4, 2, 24, 24, false, {.heads = 4, .scale = 0.2f}},
          {"gqa_bf16", 8, 2, 64, 64, false, {.heads = 8, .scale = 0.125f}, DType::kBF16},
          {"gqa_q8_0", 6, 2, 64, 32, false, {.heads = 6, .scale = 0.125f}, DType::kQ8_0},
          {"mqa_wide_half", 3, 1, 64, 64, false, {.heads = 3, .scale = 0.125f}, DType::kF16},
          {"mha_80_half", 2, 2, 80, 80, false, {.heads = 2, .scale = 0.11f}, DType::kF16},
          {"mha_112_bf16", 2, 2, 112, 112, false, {.heads = 2, .scale = 0.1f}, DType::kBF16},
          {"gqa_256_bf16", 5, 1, 256, 256, false, {.heads = 5, .scale = 0.06f}, DType::kBF16},
          {"bf16", 2, 2, 20, 36, false, {.heads = 2, .scale = 0.2f}, DType::kBF16},
          {"odd_bf16", 3, 1, 21, 35, false, {.heads = 3, .scale = 0.2f}, DType::kBF16},
          {"odd_half", 3, 1, 21, 35, false, {.heads = 3, .scale = 0.2f}, DType::kF16},
          {"window_softcap", 4, 2, 16, 16, false, {.heads = 4, .scale = 1.0f, .softcap = 5.0f, .window = 37}},
          {"window_softcap_bf16", 4, 2, 16, 16, false, {.heads = 4, .scale = 1.0f, .softcap = 5.0f, .window = 37}, DType::kBF16},
          {"sinks", 4, 1, 16, 16, false, {.heads = 4, .scale = 0.3f, .window = 21, .sinks = kSinks.data()}},
          {"sinks_bf16", 4, 1, 16, 16, false, {.heads = 4, .scale = 0.3f, .window = 21, .sinks = kSinks.data()}, DType::kBF16},
          {"latent", 4, 1, 40, 24, true, {.heads = 4, .scale = 0.15f}},
          {"latent_bf16", 4, 1, 80, 72, true, {.heads = 4, .scale = 0.11f}, DType::kBF16},
          {"latent_half", 4, 1, 40, 24, true, {.heads = 4, .scale = 0.15f}, DType::kF16},
          {"latent_q8_0", 4, 1, 96, 64, true, {.heads = 4, .scale = 0.1f}, DType::kQ8_0},
          {"latent_many_heads", 20, 1, 24, 16, true, {.heads = 20, .scale = 0.2f}},
          {"encoder", 2, 2, 16, 16, false, {.heads = 2, .scale = 0.25f, .causal = false}},
          {"encoder_bf16", 2, 2, 32, 32, false, {.heads = 2, .scale = 0.18f, .causal = false}, DType::kBF16},
          {"gqa_prompt", 9, 3, 64, 64, false, {.heads = 9, .scale = 0.125f}, DType::kBF16, true},
          {"gqa_256_prompt", 5, 1, 256, 256, false, {.heads = 5, .scale = 0.06f}, DType::kBF16, true},
          {"gqa_q8_0_prompt", 6, 2, 64, 32, false, {.heads = 6, .scale = 0.125f}, DType::kQ8_0, true},
          {"mha_80_prompt", 2, 2, 80, 80, false, {.heads = 2, .scale = 0.11f}, DType::kBF16, true},
          {"float_prompt", 2, 2, 64, 64, false, {.heads = 2, .scale = 0.11f}, DType::kF32, true},
          {"window_softcap_prompt", 4, 2, 32, 16, false, {.heads = 4, .scale = 1.0f, .softcap = 5.0f, .window = 37}, DType::kBF16, true},
          {"sinks_prompt", 4, 1, 96, 112, false, {.heads = 4, .scale = 0.1f, .window = 53, .sinks = kSinks.data()}, DType::kBF16, true},
          {"latent_prompt", 20, 1, 96, 64, true, {.heads = 20, .scale = 0.1f}, DType::kBF16, true},
          {"encoder_prompt", 2, 2, 32, 32, false, {.heads = 2, .scale = 0.18f, .causal = false}, DType::kBF16, true}};
}

class Attention : public ::testing::TestWithParam<std::tuple<const KernelTable*, Shape>> {
 protected:
  const Shape& shape() const { return std::get<1>(GetParam()); }
  std::unique_ptr<Backend> backend(int threads = 1) const {
    return std::make_unique<CpuBackend>(*std::get<0>(GetParam()), Activations::kInt8, threads);
  }
  bool bf16() const { return in_bf16(*std::get<0>(GetParam()), shape().type); }
};
INSTANTIATE_TEST_SUITE_P(All, Attention, ::testing::Combine(::testing::ValuesIn(runnable_tables()), ::testing::ValuesIn(shapes())),
                         [](const auto& info) {
                           return fmt::format("{}_{}", std::get<0>(info.param)->name, std::get<1>(info.param).name);
                         });

TEST_P(Attention, EqualsThePlainSoftmax) {
  const Sequence seq(shape(), 100, 1);
  const Floats out = run(*backend(), shape(), seq, 16, 100);
  expect_close(out, exact_attention(shape(), seq, bf16()), bf16(), 1e-5f);
}

TEST_P(Attention, PagingChunksAndThreadsDoNotShow) {
  const Sequence seq(shape(), 150, 2);
  const Floats expected = run(*backend(), shape(), seq, 16, 150);
  EXPECT_TRUE(same_bits(run(*backend(3), shape(), seq, 16, 150), expected));
  for (const std::int32_t block_tokens : {1, 7, 24, 32, 48, 64, 200})
    EXPECT_TRUE(same_bits(run(*backend(), shape(), seq, block_tokens, 150), expected)) << block_tokens;
  if (!shape().params.causal) return;
  for (const std::int64_t chunk : {1, 7, 64}) EXPECT_TRUE(same_bits(run(*backend(2), shape(), seq, 16, chunk), expected)) << chunk;
}

TEST_P(Attention, SegmentsOfLongContextsCombineInOrder) {
  if (!shape().params.causal) return;
  const Sequence seq(shape(), 1100, 3);
  const Floats expected = run(*backend(2), shape(), seq, 32, 200, 1060);
  expect_close(expected, exact_attention(shape(), seq, bf16(), 1060), bf16(), 2e-5f);
  // Rows alone, two by two and five by five, cut for other numbers of threads.
  EXPECT_TRUE(same_bits(run(*backend(3), shape(), seq, 32, 1, 1060), expected));
  EXPECT_TRUE(same_bits(run(*backend(16), shape(), seq, 48, 2, 1060), expected));
  EXPECT_TRUE(same_bits(run(*backend(1), shape(), seq, 32, 5, 1060), expected));
}

// A window's blocks are given back once no row sees them: their entries of the table name no block.
TEST_P(Attention, BlocksBeforeTheWindowMayBeGone) {
  const Shape& s = shape();
  if (s.params.window == 0) return;
  const std::int64_t rows = 150, last = 5;
  const Sequence seq(s, rows, 6);
  const Floats expected = run(*backend(), s, seq, 16, rows, rows - last);
  for (const std::int32_t block_tokens : {5, 16, 32}) {
    Memory memory(s, block_tokens, static_cast<std::int32_t>(rows / block_tokens + 2));
    auto blocks = memory.take(rows);
    const std::int64_t kc = s.kv_heads * s.key_dim, vc = s.kv_heads * s.value_dim, qc = s.heads * s.key_dim, oc = s.heads * s.value_dim;
    const SequenceSlice all{0, static_cast<std::int32_t>(rows), 0, 0, blocks, {}, s.prompt};
    const auto cpu = backend(2);
    cpu->store_kv({seq.k.data(), rows, kc}, {seq.v.data(), rows, vc}, {&all, 1}, memory.layer);
    auto kept = blocks;
    const std::int64_t lowest = rows - last - s.params.window + 1;
    for (std::int64_t b = 0; (b + 1) * block_tokens <= lowest; ++b) kept[static_cast<std::size_t>(b)] = BlockId();
    const SequenceSlice end{0, static_cast<std::int32_t>(last), static_cast<std::int32_t>(rows - last), 0, kept, {}, s.prompt};
    Floats out(static_cast<std::size_t>(last * oc));
    cpu->attention({seq.q.data() + (rows - last) * qc, last, qc}, {&end, 1}, memory.layer, s.params, {out.data(), last, oc});
    EXPECT_TRUE(same_bits(out, expected)) << block_tokens;
  }
}

TEST_P(Attention, NeighboursInTheBatchDoNotShow) {
  const Shape& s = shape();
  const Sequence a(s, 40, 4), b(s, 70, 5);
  const Floats alone_a = run(*backend(), s, a, 16, 40), alone_b = run(*backend(), s, b, 16, 70);
  Memory memory(s, 16, 12);
  const auto blocks_a = memory.take(40), blocks_b = memory.take(70);
  const std::vector<SequenceSlice> slices{{0, 40, 0, 0, blocks_a, {}, s.prompt}, {40, 70, 0, 0, blocks_b, {}, s.prompt}};
  const auto join = [](const Floats& x, const Floats& y) {
    Floats both = x;
    both.insert(both.end(), y.begin(), y.end());
    return both;
  };
  const Floats q = join(a.q, b.q), k = join(a.k, b.k), v = join(a.v, b.v);
  Floats out(static_cast<std::size_t>(110 * s.heads * s.value_dim));
  const auto cpu = backend(2);
  cpu->store_kv({k.data(), 110, s.kv_heads * s.key_dim}, {v.data(), 110, s.shared_values ? 0 : s.kv_heads * s.value_dim}, slices,
                memory.layer);
  cpu->attention({q.data(), 110, s.heads * s.key_dim}, slices, memory.layer, s.params, {out.data(), 110, s.heads * s.value_dim});
  EXPECT_TRUE(same_bits(out, join(alone_a, alone_b)));
}

}  // namespace
}  // namespace weir::kernels
