// SPDX-License-Identifier: Apache-2.0
#include "model/adapter_builder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace weir::model {
namespace {

constexpr std::size_t kPiece = std::size_t{4} << 20, kLine = 64;

// The nearest half; |x| < 65520.
std::uint16_t half_bits(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude < 0x38800000u) return static_cast<std::uint16_t>(sign | std::lrint(std::abs(x) * 0x1p24f));  // subnormal
  const std::uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

// Whether halves hold the matrix as well as anything a quantised model computes: nothing overflows, and what is lost to subnormals is
// small beside the largest.
bool fits_half(const Floats& matrix) {
  float most = 0;
  for (const float v : matrix.values) most = std::max(most, std::abs(v));
  return most == 0 || (most < 65000 && most > 1e-3f);
}

void append(Floats& to, const Floats& more) {
  to.cols = more.cols;
  to.rows += more.rows;
  to.values.insert(to.values.end(), more.values.begin(), more.values.end());
}

}  // namespace

AdapterBuilder::AdapterBuilder(const kernels::Backend& backend, std::shared_ptr<const Naming> model) : backend_(backend) {
  parts_.model = std::move(model);
}

Result<std::span<std::byte>> AdapterBuilder::allocate(std::size_t bytes) {
  const std::size_t size = (bytes + kLine - 1) / kLine * kLine;
  if (free_.size() < size) {
    const HugeMemory memory = allocate_huge(std::max(kPiece, size));
    if (!memory) return fail(ErrorCode::kExhausted, "no memory for an adapter");
    parts_.memory.push_back(memory.owner);
    parts_.bytes += memory.bytes.size();
    free_ = memory.bytes;
  }
  const std::span<std::byte> out = free_.first(bytes);
  free_ = free_.subspan(size);
  return out;
}

// A backend that computes with floats as they are (its cache holds them) gets them so; others halves, which are half as much to read.
Result<kernels::Weight> AdapterBuilder::store(const Floats& matrix, bool packed) {
  const DType type = backend_.kv_type() != DType::kF32 && fits_half(matrix) ? DType::kF16 : DType::kF32;
  std::vector<std::uint16_t> halves;
  if (type == DType::kF16) {
    halves.resize(matrix.values.size());
    std::ranges::transform(matrix.values, halves.begin(), half_bits);
  }
  const std::span<const std::byte> plain = type == DType::kF16 ? std::as_bytes(std::span(halves)) : std::as_bytes(std::span(matrix.values));
  kernels::Weight weight{TensorView{type, {matrix.rows, matrix.cols}, plain}};
  const auto size = static_cast<std::size_t>(packed ? backend_.packed_bytes(weight) : 0);
  WEIR_ASSIGN(const std::span<std::byte> memory, allocate(std::max(size, plain.size())));
  if (size > 0) {
    backend_.pack_alone(weight, memory.first(size));
    weight.packed = memory.data();  // from here on the only form: `view` says type and shape
  } else {
    std::ranges::copy(plain, memory.begin());
  }
  weight.view.bytes = memory.first(plain.size());
  return weight;
}

std::int64_t AdapterBuilder::add_down(const Floats& down) {
  const std::int64_t first = group_.rows;
  append(group_, down);
  parts_.rank = std::max(parts_.rank, down.rows);
  return first;
}

Status AdapterBuilder::add_up(const kernels::Weight* weight, std::int64_t first, Floats up) {
  for (const Up& other : ups_)
    if (other.weight == weight) return fail(ErrorCode::kCorrupt, "two changes of one weight");
  if (parts_.changes.contains(weight)) return fail(ErrorCode::kCorrupt, "two changes of one weight");
  ups_.push_back({weight, first, std::move(up)});
  return {};
}

Status AdapterBuilder::end_group() {
  if (ups_.empty()) return {};
  WEIR_ASSIGN(kernels::Weight down, store(group_, true));
  parts_.downs.push_back(std::move(down));
  for (const Up& up : ups_) {
    WEIR_ASSIGN(kernels::Weight weight, store(up.matrix, true));
    parts_.changes.emplace(up.weight, LowRank{&parts_.downs.back(), up.first, up.matrix.cols, std::move(weight)});
  }
  group_ = {};
  ups_.clear();
  return {};
}

Status AdapterBuilder::set_embedding(const Floats& down, const Floats& up) {
  if (parts_.embedding) return fail(ErrorCode::kCorrupt, "two changes of the token embedding");
  WEIR_ASSIGN(kernels::Weight table, store(down, false));
  WEIR_ASSIGN(kernels::Weight weight, store(up, true));
  parts_.embedding = EmbeddingChange{std::move(table), std::move(weight)};
  parts_.rank = std::max(parts_.rank, down.cols);
  return {};
}

}  // namespace weir::model
