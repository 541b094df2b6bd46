// SPDX-License-Identifier: Apache-2.0
// From the tensors of an adapter's file to changes of a model's weights: each finds its place by name, is checked against it, and is
// brought into the order of rows that the model's container has.
#include "model/adapter.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>

#include "formats/gguf_reader.h"
#include "model/adapter_builder.h"
#include "model/adapter_file.h"
#include "model/adapter_sites.h"
#include "model/families/families.h"
#include "model/model.h"
#include "tensor/block_formats.h"

namespace weir::model {
namespace {

struct Found {
  const AdapterTensors* tensors;
  const AdapterSite* site;
};

Result<Vector> floats_of(const TensorView& view, const std::string& name) {
  if (view.type != DType::kQ8_0) return to_floats(view, name);
  Vector out;
  out.reserve(static_cast<std::size_t>(view.elements()));
  for (std::size_t at = 0; at < view.bytes.size(); at += sizeof(BlockQ8_0)) {
    BlockQ8_0 block;
    std::memcpy(&block, view.bytes.data() + at, sizeof block);
    WEIR_ASSIGN(const Vector d, to_floats({DType::kF16, {1}, std::as_bytes(std::span(block.d.bytes))}, name));
    for (const std::int8_t q : block.qs) out.push_back(d.front() * static_cast<float>(q));
  }
  return out;
}

// A tensor of rank 2 as floats, all of them numbers, times `scale`.
Result<Floats> matrix_of(const TensorView& view, const std::string& name, double scale = 1) {
  WEIR_ASSIGN(Vector values, floats_of(view, name));
  for (float& v : values) {
    v = static_cast<float>(v * scale);
    if (!std::isfinite(v)) return fail(ErrorCode::kCorrupt, "tensor {}: holds values that are no finite numbers", name);
  }
  return Floats{view.rows(), view.cols(), std::move(values)};
}

Floats transposed(const Floats& m) {
  Floats out{m.cols, m.rows, std::vector<float>(m.values.size())};
  for (std::int64_t r = 0; r < m.rows; ++r)
    for (std::int64_t c = 0; c < m.cols; ++c) out.at(c, r) = m.at(r, c);
  return out;
}

Floats rows_of(const Floats& m, std::int64_t first, std::int64_t count) {
  const auto begin = m.values.begin() + first * m.cols;
  return {count, m.cols, {begin, begin + count * m.cols}};
}

// From halves of a head (x, y) to pairs, or back.
Floats reordered(const Floats& m, std::int64_t heads, bool to_pairs) {
  Floats out = m;
  const std::int64_t size = m.rows / heads, half = size / 2;
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t i = 0; i < half; ++i) {
      for (std::int64_t s = 0; s < 2; ++s) {
        const std::int64_t pair = h * size + 2 * i + s, halves = h * size + s * half + i;
        const std::int64_t from = to_pairs ? halves : pair, to = to_pairs ? pair : halves;
        std::copy_n(m.values.begin() + from * m.cols, m.cols, out.values.begin() + to * m.cols);
      }
    }
  }
  return out;
}

using Shape = std::vector<std::int64_t>;

// The shape that B and A must have for the rank that B has.
std::pair<Shape, Shape> expected_shapes(const AdapterSite& site, const AdapterTensors& t, bool gguf) {
  const std::int64_t rank = t.b.cols();
  if (site.experts > 0) return {{site.experts, site.out, rank}, {site.experts, rank, site.in}};
  if (t.embedding && gguf) return {{site.out, rank}, {site.in, rank}};
  return {{site.out, rank}, {rank, site.in}};
}

class Loader {
 public:
  Loader(const AdapterFile& file, const Model& model)
      : file_(file),
        paired_here_(model.weights().naming->gguf),
        sites_(model.traits(), model.weights(), file.gguf),
        builder_(model.backend(), model.weights().naming) {}

  Result<AdapterParts> load() {
    std::vector<Found> all;
    for (const AdapterTensors& tensors : file_.tensors) {
      WEIR_ASSIGN(const AdapterSite* site, place_of(tensors));
      all.push_back({&tensors, site});
    }
    std::ranges::sort(all, {}, [](const Found& f) { return std::tuple(f.site->layer, f.site->input, f.site); });
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool shares =
          i > 0 && all[i].site->input >= 0 && all[i].site->input == all[i - 1].site->input && all[i].site->layer == all[i - 1].site->layer;
      if (!shares) WEIR_TRY(builder_.end_group());
      if (Status added = add(*all[i].tensors, *all[i].site); !added)
        return std::unexpected(std::move(added).error().with_context("tensor " + all[i].tensors->b_name));
    }
    WEIR_TRY(builder_.end_group());
    return builder_.take();
  }

 private:
  Result<const AdapterSite*> place_of(const AdapterTensors& t) {
    const auto candidates = sites_.find(t.module);
    if (candidates.empty())
      return fail(ErrorCode::kUnsupported, "tensor {}: this model has no weight of that name which an adapter could change", t.a_name);
    for (const AdapterSite* site : candidates) {
      const auto [b, a] = expected_shapes(*site, t, file_.gguf);
      if (t.b.shape != b || t.a.shape != a || site->embedding != t.embedding) continue;
      if (t.b.cols() < 1) return fail(ErrorCode::kCorrupt, "tensor {}: rank 0", t.b_name);
      if (site->other_order && !sites_.same_container())
        return fail(ErrorCode::kUnsupported,
                    "tensor {}: {} models keep this weight in another order in the other container; convert the adapter", t.a_name,
                    file_.gguf ? "Hugging Face" : "GGUF");
      return site;
    }
    const AdapterSite& site = *candidates.front();
    return fail(ErrorCode::kCorrupt, "tensors {} and {}: shapes {} and {} for a weight of shape [{}, {}]{}", t.a_name, t.b_name,
                shape_string(t.a.shape), shape_string(t.b.shape), site.out, site.in,
                site.experts > 0 ? fmt::format(" of each of {} experts", site.experts) : "");
  }

  Status add(const AdapterTensors& t, const AdapterSite& site) {
    if (site.embedding) {
      WEIR_ASSIGN(Floats down, matrix_of(t.a, t.a_name));
      WEIR_ASSIGN(const Floats up, matrix_of(t.b, t.b_name, t.scale));
      return builder_.set_embedding(file_.gguf ? down : transposed(down), up);
    }
    if (site.experts == 0) return add_matrices(t, t.a, t.b, site.parts);
    const std::size_t each = site.parts.size() / static_cast<std::size_t>(site.experts);
    for (std::int64_t e = 0; e < site.experts; ++e) {
      const std::span parts = std::span(site.parts).subspan(static_cast<std::size_t>(e) * each, each);
      WEIR_TRY(add_matrices(t, t.a.slice(e), t.b.slice(e), parts));
      WEIR_TRY(builder_.end_group());
    }
    return {};
  }

  Status add_matrices(const AdapterTensors& t, const TensorView& a, const TensorView& b, std::span<const AdapterPart> parts) {
    WEIR_ASSIGN(const Floats down, matrix_of(a, t.a_name));
    WEIR_ASSIGN(const Floats up, matrix_of(b, t.b_name, t.scale));
    const std::int64_t first = builder_.add_down(down);
    for (const AdapterPart& part : parts) {
      if (part.backwards) continue;
      Floats rows = rows_of(up, part.first, part.weight->out());
      if (part.heads > 0 && !sites_.same_container()) rows = reordered(rows, part.heads, paired_here_);
      WEIR_TRY(builder_.add_up(part.weight, first, std::move(rows)));
    }
    for (const AdapterPart& part : parts) {  // (B·A)ᵀ = Aᵀ·Bᵀ
      if (!part.backwards) continue;
      WEIR_TRY(builder_.end_group());
      const std::int64_t own = builder_.add_down(transposed(rows_of(up, part.first, part.weight->in())));
      WEIR_TRY(builder_.add_up(part.weight, own, transposed(down)));
    }
    return {};
  }

  const AdapterFile& file_;
  bool paired_here_;
  AdapterSites sites_;
  AdapterBuilder builder_;
};

Result<std::shared_ptr<const Adapter>> build(const AdapterFile& file, const Model& model) {
  WEIR_ASSIGN(AdapterParts parts, Loader(file, model).load());
  return std::make_shared<const Adapter>(std::move(parts));
}

}  // namespace

bool Adapter::made_for(const Model& model) const { return parts_.model == model.weights().naming; }

Result<std::shared_ptr<const Adapter>> load_adapter(const formats::GgufFile& file, const Model& model) {
  const std::string& family = model.traits().family;
  const Family* known = model.weights().naming->gguf ? find_family_by_architecture(family) : find_family_by_type(family);
  WEIR_ASSIGN(const AdapterFile tensors, read_gguf_adapter(file, known ? known->architecture : nullptr));
  return build(tensors, model);
}

Result<std::shared_ptr<const Adapter>> load_adapter(const std::filesystem::path& path, const Model& model) try {
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(path, ignored);
  const auto loaded = [&]() -> Result<std::shared_ptr<const Adapter>> {
    if (folder || path.extension() == ".safetensors") {
      WEIR_ASSIGN(const AdapterFile file, read_peft_adapter(folder ? path : path.parent_path()));
      return build(file, model);
    }
    WEIR_ASSIGN(const formats::GgufFile file, formats::GgufFile::open(path));
    return load_adapter(file, model);
  };
  auto result = loaded();
  if (!result) return std::unexpected(std::move(result).error().with_context(path.string()));
  return result;
} catch (const std::bad_alloc&) {
  return fail(ErrorCode::kExhausted, "{}: no memory for the adapter", path.string());
}

}  // namespace weir::model
