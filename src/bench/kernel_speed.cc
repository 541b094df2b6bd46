// SPDX-License-Identifier: Apache-2.0
#include "bench/kernel_speed.h"

#include <algorithm>

#include "base/huge_memory.h"
#include "base/system_memory.h"
#include "base/units.h"
#include "bench/kernel_timing.h"
#include "kernels/limits/caches.h"
#include "kernels/reference/quantize.h"

namespace weir::bench {

using kernels::Arithmetic;

namespace {

constexpr std::int64_t kDistinctRows = 64;  // of a weight; quantising is slow, so these are repeated
constexpr std::int64_t kCheckedOuts = 64, kCheckedRows = 8;
constexpr std::int32_t kBlockTokens = 32;
constexpr std::int64_t kLargest = std::int64_t{1} << 24;

// Largest difference from the reference: sums of the same rounded values in another order, or, with floats, values rounded to bf16.
constexpr double kExactTolerance = 1e-3, kHalfTolerance = 3e-2;

Status check_memory(std::uint64_t bytes) {
  if (const auto free = available_memory(); free && bytes > *free / 2)
    return fail(ErrorCode::kExhausted, "this needs {} and {} of memory is free: use a smaller --shape, --depth or --rows",
                format_bytes(bytes), format_bytes(*free));
  return {};
}

// Weights of one shape, as often as the working set holds them: bytes as a file has them, or packed where the backend packs.
struct Copies {
  std::vector<std::byte> file;  // one weight
  HugeMemory memory;            // the copies
  std::vector<kernels::Weight> weights;
  std::uint64_t bytes = 0;  // of one
};

std::vector<std::byte> weight_bytes(const LinearShape& shape) {
  const auto row = static_cast<std::size_t>(row_bytes(shape.type, shape.in));
  std::vector<std::byte> bytes(row * static_cast<std::size_t>(shape.out));
  const std::int64_t distinct = std::min(kDistinctRows, shape.out);
  for (std::int64_t r = 0; r < distinct; ++r) {
    const auto values = random_values(static_cast<std::size_t>(shape.in), static_cast<std::uint64_t>(r) + 1);
    kernels::quantize_row(shape.type, values.data(), shape.in, bytes.data() + static_cast<std::size_t>(r) * row);
  }
  for (auto r = static_cast<std::size_t>(distinct); r < static_cast<std::size_t>(shape.out); ++r)
    std::copy_n(bytes.data() + (r % static_cast<std::size_t>(distinct)) * row, row, bytes.data() + r * row);
  return bytes;
}

Result<Copies> make_copies(kernels::Backend& backend, const LinearShape& shape, std::uint64_t working_set) {
  Copies copies{.file = weight_bytes(shape), .memory = {}, .weights = {}};
  const kernels::Weight plain{.view = {shape.type, {shape.out, shape.in}, copies.file}};
  const auto packed = static_cast<std::uint64_t>(backend.packed_bytes(plain));
  copies.bytes = packed > 0 ? packed : copies.file.size();
  const std::uint64_t stride = (copies.bytes + 4095) / 4096 * 4096, count = std::max<std::uint64_t>(working_set / stride, 1);
  WEIR_TRY(check_memory(stride * count));
  copies.memory = allocate_huge(stride * count);
  if (!copies.memory) return fail(ErrorCode::kExhausted, "there is no room for {} of weights", format_bytes(stride * count));
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto bytes = copies.memory.bytes.subspan(i * stride, copies.bytes);
    if (i > 0) {
      std::ranges::copy(copies.memory.bytes.first(copies.bytes), bytes.begin());
    } else if (packed > 0) {
      backend.pack(plain, bytes);
    } else {
      std::ranges::copy(copies.file, bytes.begin());
    }
    kernels::Weight weight = plain;
    if (packed > 0) weight.packed = bytes.data();
    if (packed == 0) weight.view.bytes = bytes;
    copies.weights.push_back(std::move(weight));
  }
  return copies;
}

Status check_shape(const LinearShape& shape) {
  const int block = dtype_info(shape.type).block_size;
  if (!dtype_info(shape.type).quantized && shape.type != DType::kF32 && shape.type != DType::kF16 && shape.type != DType::kBF16)
    return fail(ErrorCode::kInvalidArgument, "{} is no type of weights", dtype_name(shape.type));
  if (shape.rows < 1 || shape.out < 1 || shape.in < 1 || shape.rows > kLargest || shape.out > kLargest || shape.in > kLargest)
    return fail(ErrorCode::kInvalidArgument, "a layer of {} × {} for {} rows is none", shape.out, shape.in, shape.rows);
  if (shape.in % block != 0)
    return fail(ErrorCode::kInvalidArgument, "{} has blocks of {}, which do not divide {} inputs", dtype_name(shape.type), block, shape.in);
  const auto rows = static_cast<std::uint64_t>(shape.rows);
  return check_memory(static_cast<std::uint64_t>(shape.out * row_bytes(shape.type, shape.in)) +
                      rows * 4 * static_cast<std::uint64_t>(shape.in + shape.out));
}

void run_linear(kernels::Backend& backend, const kernels::Weight& weight, const float* x, std::int64_t rows, float* y, bool prompt) {
  const kernels::LinearJob job{{x, rows, weight.in()}, &weight, nullptr, {y, rows, weight.out()}, false, nullptr, prompt ? rows : 0};
  backend.linear({&job, 1});
}

}  // namespace

std::uint64_t default_working_set() {
  const std::uint64_t wanted = std::max<std::uint64_t>(4 * kernels::read_cache_sizes().l3, 128u << 20);
  return std::min(wanted, available_memory().value_or(1u << 30) / 8);
}

Result<KernelBench> KernelBench::create(const KernelOptions& options, const kernels::Limits& limits) {
  KernelBench bench(options, limits);
  WEIR_ASSIGN(bench.backend_, kernels::make_cpu_backend(options.cpu));
  kernels::CpuOptions reference = options.cpu;
  reference.isa = "reference";
  WEIR_ASSIGN(bench.reference_, kernels::make_cpu_backend(reference));
  return bench;
}

Result<KernelCase> KernelBench::linear(const LinearShape& shape) {
  WEIR_TRY(check_shape(shape));
  WEIR_ASSIGN(Copies copies, make_copies(*backend_, shape, options_.working_set));
  const auto x = random_values(static_cast<std::size_t>(shape.rows * shape.in), 7);
  std::vector<float> y(static_cast<std::size_t>(shape.rows * shape.out));
  std::size_t next = 0;
  KernelCase result;
  result.seconds = time_calls(options_.seconds, options_.runs, [&] {
    run_linear(*backend_, copies.weights[next++ % copies.weights.size()], x.data(), shape.rows, y.data(), shape.prompt);
  });
  const double columns = static_cast<double>(shape.in + shape.out) * static_cast<double>(shape.rows);
  result.work.bytes = static_cast<double>(copies.bytes) + 4 * columns;
  const double ops = 2.0 * static_cast<double>(shape.rows) * static_cast<double>(shape.in) * static_cast<double>(shape.out);
  const bool rounded = shape.prompt && backend_->phases_differ() && dtype_info(shape.type).quantized;
  result.work.ops = {{kernels::arithmetic_for(rounded ? DType::kBF16 : shape.type, options_.cpu.activations, limits_), ops}};
  result.working_set = copies.bytes * copies.weights.size();

  // The reference takes the first outputs of the first rows; a row's result does not depend on the others.
  const std::int64_t outs = std::min(kCheckedOuts, shape.out), rows = std::min(kCheckedRows, shape.rows);
  const kernels::Weight piece{.view = {shape.type,
                                       {outs, shape.in},
                                       std::span(copies.file).first(static_cast<std::size_t>(outs * row_bytes(shape.type, shape.in)))}};
  std::vector<float> right(static_cast<std::size_t>(rows * outs)), ours;
  const Spread reference = time_calls(0.02, 1, [&] { run_linear(*reference_, piece, x.data(), rows, right.data(), false); });
  for (std::int64_t r = 0; r < rows; ++r) ours.insert(ours.end(), y.begin() + r * shape.out, y.begin() + r * shape.out + outs);
  result.error = relative_error(ours, right);
  const bool exact = !rounded && (dtype_info(shape.type).quantized || shape.type == DType::kF32);
  result.tolerance = exact ? kExactTolerance : kHalfTolerance;
  const double piece_ops = 2.0 * static_cast<double>(rows * outs) * static_cast<double>(shape.in);
  result.reference_speedup = (ops / result.seconds.median) / (piece_ops / reference.median);
  return result;
}

namespace {

// One layer's KV cache, filled by the backend itself, since it chooses how it lies.
struct FilledCache {
  HugeMemory memory;
  std::vector<BlockId> blocks;
  kernels::KvLayer layer;
};

Status check_shape(const AttentionShape& s) {
  if (s.rows < 1 || s.depth < s.rows || s.depth > (1 << 22) || s.heads < 1 || s.kv_heads < 1 || s.head_dim < 1 || s.heads > 4096 ||
      s.head_dim > 4096 || s.heads % s.kv_heads != 0)
    return fail(ErrorCode::kInvalidArgument, "attention of {} rows over {} positions, {} heads on {} of size {}, is none", s.rows, s.depth,
                s.heads, s.kv_heads, s.head_dim);
  if (s.kv_type != DType::kF32 && s.kv_type != DType::kF16 && s.kv_type != DType::kBF16 && s.kv_type != DType::kQ8_0)
    return fail(ErrorCode::kInvalidArgument, "the KV cache cannot be {}", dtype_name(s.kv_type));
  if (s.head_dim % dtype_info(s.kv_type).block_size != 0)
    return fail(ErrorCode::kInvalidArgument, "{} has blocks of {}, which do not divide heads of {}", dtype_name(s.kv_type),
                dtype_info(s.kv_type).block_size, s.head_dim);
  const auto kv_row = static_cast<std::uint64_t>(s.kv_heads) * static_cast<std::uint64_t>(s.head_dim);
  return check_memory(static_cast<std::uint64_t>(s.depth) * kv_row * 24);
}

Result<FilledCache> fill_cache(kernels::Backend& backend, const AttentionShape& s) {
  FilledCache cache;
  const std::int32_t blocks = (s.depth + kBlockTokens - 1) / kBlockTokens;
  const auto half = static_cast<std::size_t>(std::int64_t{blocks} * kBlockTokens * s.kv_heads * row_bytes(s.kv_type, s.head_dim));
  cache.memory = allocate_huge(2 * half);
  if (!cache.memory) return fail(ErrorCode::kExhausted, "there is no room for {} of keys and values", format_bytes(2 * half));
  for (std::int32_t i = 0; i < blocks; ++i) cache.blocks.emplace_back(i);
  cache.layer.type = s.kv_type;
  cache.layer.keys = cache.memory.bytes.data();
  cache.layer.values = cache.memory.bytes.data() + half;
  cache.layer.block_tokens = kBlockTokens;
  cache.layer.kv_heads = s.kv_heads;
  cache.layer.key_dim = cache.layer.value_dim = s.head_dim;
  const std::int64_t columns = std::int64_t{s.kv_heads} * s.head_dim;
  const auto keys = random_values(static_cast<std::size_t>(s.depth * columns), 3), values = random_values(keys.size(), 4);
  const kernels::SequenceSlice slice{
      .first_row = 0, .row_count = s.depth, .first_position = 0, .rope_length = 0, .blocks = cache.blocks, .state = {}};
  backend.store_kv({keys.data(), s.depth, columns}, {values.data(), s.depth, columns}, {&slice, 1}, cache.layer);
  return cache;
}

void run_attention(kernels::Backend& backend, const FilledCache& cache, const AttentionShape& s, std::int32_t rows, const float* q,
                   float* out) {
  const std::int64_t columns = std::int64_t{s.heads} * s.head_dim;
  const kernels::SequenceSlice slice{
      .first_row = 0, .row_count = rows, .first_position = s.depth - s.rows, .rope_length = 0, .blocks = cache.blocks, .state = {}};
  kernels::AttentionParams params;
  params.heads = s.heads;
  params.scale = 1 / std::sqrt(static_cast<float>(s.head_dim));
  backend.attention({q, rows, columns}, {&slice, 1}, cache.layer, params, {out, rows, columns});
}

}  // namespace

Result<KernelCase> KernelBench::attention(const AttentionShape& s) {
  WEIR_TRY(check_shape(s));
  WEIR_ASSIGN(const FilledCache cache, fill_cache(*backend_, s));
  WEIR_ASSIGN(const FilledCache reference_cache, fill_cache(*reference_, s));
  const std::int64_t columns = std::int64_t{s.heads} * s.head_dim;
  const auto q = random_values(static_cast<std::size_t>(s.rows * columns), 5);
  std::vector<float> out(q.size());
  KernelCase result;
  result.seconds = time_calls(options_.seconds, options_.runs, [&] { run_attention(*backend_, cache, s, s.rows, q.data(), out.data()); });
  const double context = s.depth - (s.rows - 1) / 2.0;  // that a row sees, on average
  result.work.bytes =
      2.0 * s.depth * static_cast<double>(s.kv_heads * row_bytes(s.kv_type, s.head_dim)) + 8.0 * static_cast<double>(s.rows * columns);
  result.work.ops = {{kernels::arithmetic_for(s.kv_type == DType::kBF16 ? DType::kBF16 : DType::kF32, options_.cpu.activations, limits_),
                      4.0 * static_cast<double>(s.rows * columns) * context}};
  result.working_set = cache.memory.bytes.size();

  const std::int32_t rows = std::min<std::int32_t>(s.rows, 2);
  std::vector<float> right(static_cast<std::size_t>(rows * columns));
  const Spread reference = time_calls(0.02, 1, [&] { run_attention(*reference_, reference_cache, s, rows, q.data(), right.data()); });
  result.error = relative_error(std::span(out).first(right.size()), right);
  result.tolerance = s.kv_type == DType::kF32 ? kExactTolerance : kHalfTolerance;
  result.reference_speedup = (static_cast<double>(s.rows) / result.seconds.median) / (static_cast<double>(rows) / reference.median);
  return result;
}

}  // namespace weir::bench
