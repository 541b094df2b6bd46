// SPDX-License-Identifier: Apache-2.0
#include "model/tensor_source.h"

#include <bit>
#include <cstring>

namespace weir::model {
namespace {

float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fu;
  const std::uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0) {  // zero and subnormals: mantissa · 2^-24
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

std::uint16_t load_u16(const std::byte* bytes) {
  std::uint16_t value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// Ones are dropped from the left and the middle, never the last dimension's own size.
Shape without_ones(const Shape& shape) {
  Shape out;
  for (const std::int64_t d : shape)
    if (d != 1) out.push_back(d);
  return out;
}

bool same_shape(const Shape& found, const Shape& expected) { return found == expected || without_ones(found) == without_ones(expected); }

}  // namespace

Result<Vector> to_floats(const TensorView& view, std::string_view name) {
  const auto count = static_cast<std::size_t>(view.elements());
  Vector out(count);
  if (count == 0) return out;
  switch (view.type) {
    case DType::kF32: std::memcpy(out.data(), view.bytes.data(), count * sizeof(float)); return out;
    case DType::kF16:
      for (std::size_t i = 0; i < count; ++i) out[i] = half_to_float(load_u16(view.bytes.data() + 2 * i));
      return out;
    case DType::kBF16:
      for (std::size_t i = 0; i < count; ++i)
        out[i] = std::bit_cast<float>(static_cast<std::uint32_t>(load_u16(view.bytes.data() + 2 * i)) << 16);
      return out;
    default: return fail(ErrorCode::kUnsupported, "tensor {}: a vector of type {}, expected F32, F16 or BF16", name, dtype_name(view.type));
  }
}

const TensorView* TensorSource::peek(std::string_view name) const {
  const formats::NamedTensor* tensor = index_.find(name);
  return tensor ? &tensor->view : nullptr;
}

Result<const formats::NamedTensor*> TensorSource::take(const std::string& name) {
  const formats::NamedTensor* tensor = index_.find(name);
  if (!tensor) return fail(ErrorCode::kCorrupt, "tensor {}: missing", name);
  taken_.insert(name);
  return tensor;
}

Result<TensorView> TensorSource::raw(const std::string& name, const Shape& shape) {
  WEIR_ASSIGN(const formats::NamedTensor* tensor, take(name));
  const TensorView& view = tensor->view;
  if (!same_shape(view.shape, shape))
    return fail(ErrorCode::kCorrupt, "tensor {}: shape {}, expected {}", name, shape_string(view.shape), shape_string(shape));
  TensorView out = view;
  out.shape = shape;
  return out;
}

Result<TensorView> TensorSource::matrix(const std::string& name, const Shape& shape) {
  WEIR_ASSIGN(TensorView view, raw(name, shape));
  if (view.type > DType::kMXFP4)
    return fail(ErrorCode::kUnsupported, "tensor {}: type {} cannot be the weight of a layer", name, dtype_name(view.type));
  // A last dimension of 1 that was dropped or added would break the blocks of quantised rows.
  if (view.cols() % dtype_info(view.type).block_size)
    return fail(ErrorCode::kCorrupt, "tensor {}: rows of {} in blocks of {}", name, view.cols(), dtype_info(view.type).block_size);
  return view;
}

Result<Vector> TensorSource::vector(const std::string& name, std::int64_t count) {
  WEIR_ASSIGN(const formats::NamedTensor* tensor, take(name));
  if (tensor->view.elements() != count)
    return fail(ErrorCode::kCorrupt, "tensor {}: shape {}, expected {} values", name, shape_string(tensor->view.shape), count);
  return to_floats(tensor->view, name);
}

void TensorSource::release(std::string_view name) const {
  const formats::NamedTensor* tensor = index_.find(name);
  if (!tensor || tensor->file < 0 || static_cast<std::size_t>(tensor->file) >= index_.files().size()) return;
  const auto& file = index_.files()[static_cast<std::size_t>(tensor->file)];
  const std::byte* begin = file->bytes().data();
  file->release(static_cast<std::size_t>(tensor->view.bytes.data() - begin), tensor->view.bytes.size());
}

}  // namespace weir::model
