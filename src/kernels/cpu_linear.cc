// SPDX-License-Identifier: Apache-2.0
// Linear layers: all jobs of a call are cut into tasks of (job, outputs, rows) that run in one parallel region. A task
// unpacks a panel of weights once and uses it for all of its rows. F32, F16 and BF16 weights: linear_plain.h.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu_backend_impl.h"
#include "kernels/linear_plain.h"
#include "kernels/packed_panels.h"

namespace weir::kernels {
namespace {

constexpr std::int64_t kTaskRows = 256;       // rows that share one unpacking of a panel
constexpr std::int64_t kPanelInputs = 512;    // inputs of a panel held at once: 8 KiB of int8, in the first-level cache
constexpr int kActivationBlock = 32;          // activations that share a scale
constexpr double kOutlierFactor = 2;          // an outlier block's scale is above this times the root mean square of its row's scales
constexpr std::int64_t kTaskWork = 96 << 10;  // multiply-adds that make a task worth its hand-over

// Activations of a matrix as int8, and once more what int8 lost of its outlier blocks. A block whose largest magnitude is far
// above those of its row's other blocks makes most of the row's rounding error; its residual is quantised too, as a block of
// its own, and added after the panel's own sum. Which blocks those are depends on the row alone.
struct QuantizedInput {
  QuantizedRows rows;
  QuantizedRows residuals;        // k = 32: entry e is one block; those of row r start at entry r · blocks
  std::int32_t* count = nullptr;  // [rows]: outlier blocks of the row
  std::int32_t* block = nullptr;  // as residuals: which block of the row it is, ascending
};

struct Task {
  const LinearJob* job;
  const QuantizedInput* quantized;  // null: float arithmetic
  std::int64_t out_begin, out_end, row_begin, row_end;
};

void check_job(const LinearJob& job) {
  WEIR_CHECK(job.weight != nullptr);
  const Weight& w = *job.weight;
  WEIR_CHECK(w.view.rank() == 2, "weight of rank {}", w.view.rank());
  WEIR_CHECK(w.in() == job.x.cols && w.out() == job.out.cols && job.x.rows == job.out.rows, "weight [{}, {}], x [{}, {}], out [{}, {}]",
             w.out(), w.in(), job.x.rows, job.x.cols, job.out.rows, job.out.cols);
  WEIR_CHECK(is_plain(w.view.type) || (dtype_info(w.view.type).quantized && w.layout == WeightLayout::kOutIn), "weight of type {}",
             dtype_name(w.view.type));
  WEIR_CHECK(static_cast<std::int64_t>(w.view.bytes.size()) >= w.view.rows() * w.view.bytes_per_row());
}

QuantizedRows allocate_rows(std::int64_t rows, std::int64_t k, Scratch& scratch) {
  return {.k = k,
          .q = scratch.take<std::int8_t>(rows * k),
          .scale = scratch.take<float>(rows * k / 32),
          .scaled_sum32 = scratch.take<float>(rows * k / 32),
          .scaled_sum16 = scratch.take<float>(rows * k / 16),
          .sum32 = scratch.take<std::int32_t>(rows * k / 32),
          .sum16 = scratch.take<std::int32_t>(rows * k / 16)};
}

QuantizedInput allocate_quantized(std::int64_t rows, std::int64_t k, Scratch& scratch) {
  const std::int64_t blocks = k / kActivationBlock;
  return {.rows = allocate_rows(rows, k, scratch),
          .residuals = allocate_rows(rows * blocks, kActivationBlock, scratch),
          .count = scratch.take<std::int32_t>(rows),
          .block = scratch.take<std::int32_t>(rows * blocks)};
}

void quantize_input_row(const KernelTable& table, const float* x, std::int64_t row, const QuantizedInput& out) {
  table.quantize_row(x, row, out.rows);
  const std::int64_t blocks = out.rows.k / kActivationBlock;
  const float* scale = out.rows.scale + row * blocks;
  double squares = 0;
  for (std::int64_t b = 0; b < blocks; ++b) squares += static_cast<double>(scale[b]) * scale[b];
  const auto limit = static_cast<float>(kOutlierFactor * std::sqrt(squares / static_cast<double>(blocks)));
  std::int32_t found = 0;
  for (std::int64_t b = 0; b < blocks; ++b) {
    if (!(scale[b] > limit)) continue;
    float residual[kActivationBlock];
    const std::int64_t at = row * out.rows.k + b * kActivationBlock;
    for (int i = 0; i < kActivationBlock; ++i)
      residual[i] = x[b * kActivationBlock + i] - static_cast<float>(out.rows.q[at + i]) * scale[b];
    const std::int64_t entry = row * blocks + found++;
    table.quantize_row(residual, entry, out.residuals);
    out.block[entry] = static_cast<std::int32_t>(b);
  }
  out.count[row] = found;
}

// One block's part of a panel.
Panel panel_block(const Panel& panel, std::int64_t block) {
  const std::int64_t groups = block * kActivationBlock / panel.traits.group * kPanelOuts;
  return {.traits = panel.traits,
          .k = kActivationBlock,
          .q = panel.q + block * kActivationBlock * kPanelOuts,
          .scale = panel.scale + groups,
          .offset = panel.offset + groups};
}

// Adds the residuals of the outlier blocks among the panel's inputs [k_begin, k_begin + panel.k).
void add_residuals(const KernelTable& table, const Panel& panel, const QuantizedInput& x, std::int64_t first_row, std::int64_t rows,
                   std::int64_t k_begin, float* acc) {
  const std::int64_t blocks = x.rows.k / kActivationBlock;
  const std::int64_t first = k_begin / kActivationBlock, last = first + panel.k / kActivationBlock;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t start = (first_row + r) * blocks;
    for (std::int64_t e = start; e < start + x.count[first_row + r] && x.block[e] < last; ++e) {
      if (x.block[e] < first) continue;
      table.panel_tile(panel_block(panel, x.block[e] - first), x.residuals, e, 1, 0, acc + r * kPanelOuts);
    }
  }
}

// Asks for the bytes of `outs` rows that the next panel reads. Rows lie apart, which no hardware prefetcher follows.
void prefetch_panel(const std::byte* w, std::int64_t stride, std::int64_t outs, std::int64_t bytes) {
  constexpr std::int64_t kLine = 64;
  if (stride == bytes) {  // whole rows: one run of memory
    bytes *= outs;
    outs = 1;
  }
  for (std::int64_t o = 0; o < outs; ++o, w += stride)
    for (std::int64_t at = 0; at < bytes; at += kLine) __builtin_prefetch(w + at, 0, 2);
}

Panel take_panel(DType type, Scratch& scratch) {
  Panel panel{.traits = quant_traits(type)};
  const std::int64_t groups = kPanelInputs / panel.traits.group;
  panel.q = scratch.take<std::uint8_t>(kPanelInputs * kPanelOuts);
  panel.scale = scratch.take<float>(groups * kPanelOuts);
  panel.offset = scratch.take<float>(groups * kPanelOuts);
  return panel;
}

// Loads inputs [begin, begin + panel.k) of outputs from `o` on: from the packed weight, or unpacked from the file's layout (and
// asking for what comes next).
void load_panel(const KernelTable& table, const Weight& weight, std::int64_t o, int outs, std::int64_t begin, Panel& panel) {
  const TensorView& w = weight.view;
  const std::int64_t stride = w.bytes_per_row(), k = w.cols();
  panel.k = static_cast<int>(std::min(kPanelInputs, k - begin));
  if (weight.packed) {
    const std::byte* from = weight.packed + o / kPanelOuts * packed_panel_shape(w.type, k).bytes;
    return table.expand_panel(w.type, from, k, begin, panel);
  }
  const std::int64_t next = begin + panel.k, next_outs = std::min<std::int64_t>(kPanelOuts, w.rows() - o - kPanelOuts);
  if (next < k) {
    prefetch_panel(w.bytes.data() + o * stride + row_bytes(w.type, next), stride, outs,
                   row_bytes(w.type, std::min(kPanelInputs, k - next)));
  } else if (next_outs > 0) {
    prefetch_panel(w.bytes.data() + (o + kPanelOuts) * stride, stride, next_outs, row_bytes(w.type, std::min(kPanelInputs, k)));
  }
  table.unpack_panel(w.type, w.bytes.data() + o * stride, stride, outs, begin, panel);
}

void run_int8(const KernelTable& table, const Task& t, Scratch& scratch) {
  const TensorView& w = t.job->weight->view;
  const std::int64_t rows = t.row_end - t.row_begin;
  Panel panel = take_panel(w.type, scratch);
  float* acc = scratch.take<float>(rows * kPanelOuts);
  for (std::int64_t o = t.out_begin; o < t.out_end; o += kPanelOuts) {
    const auto outs = static_cast<int>(std::min<std::int64_t>(kPanelOuts, t.out_end - o));
    std::fill_n(acc, rows * kPanelOuts, 0.0f);
    for (std::int64_t begin = 0; begin < w.cols(); begin += kPanelInputs) {
      load_panel(table, *t.job->weight, o, outs, begin, panel);
      table.panel_tile(panel, t.quantized->rows, t.row_begin, static_cast<int>(rows), begin, acc);
      add_residuals(table, panel, *t.quantized, t.row_begin, rows, begin, acc);
    }
    write_dots(table, *t.job, t.row_begin, t.row_end, acc, o, outs);
  }
}

// Quantised weights, float activations.
void run_wide(const KernelTable& table, const Task& t, Scratch& scratch) {
  const TensorView& w = t.job->weight->view;
  const std::int64_t rows = t.row_end - t.row_begin;
  Panel panel = take_panel(w.type, scratch);
  float* wide = scratch.take<float>(kPanelInputs * kPanelOuts);
  float* acc = scratch.take<float>(rows * 4 * kPanelOuts);
  float* dots = scratch.take<float>(rows * kPanelOuts);
  for (std::int64_t o = t.out_begin; o < t.out_end; o += kPanelOuts) {
    const auto outs = static_cast<int>(std::min<std::int64_t>(kPanelOuts, t.out_end - o));
    std::fill_n(acc, rows * 4 * kPanelOuts, 0.0f);
    for (std::int64_t begin = 0; begin < w.cols(); begin += kPanelInputs) {
      load_panel(table, *t.job->weight, o, outs, begin, panel);
      table.widen_panel(panel, wide);
      table.wide_tile(wide, panel.k, t.job->x.row(t.row_begin) + begin, t.job->x.stride, static_cast<int>(rows), acc);
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      const float* sums = acc + r * 4 * kPanelOuts;
      for (int i = 0; i < kPanelOuts; ++i)
        dots[r * kPanelOuts + i] = (sums[i] + sums[2 * kPanelOuts + i]) + (sums[kPanelOuts + i] + sums[3 * kPanelOuts + i]);
    }
    write_dots(table, *t.job, t.row_begin, t.row_end, dots, o, outs);
  }
}

// Cuts a job along its outputs and rows. The cut changes no result, so it may depend on anything.
template <class Emit>
void cut(const LinearJob& job, std::int64_t total_work, int threads, Emit emit) {
  const std::int64_t rows = job.x.rows, out = job.out.cols, in = std::max<std::int64_t>(job.x.cols, 1);
  const std::int64_t wanted = std::max(kTaskWork, total_work / (threads * 8));
  for (std::int64_t r = 0; r < rows; r += kTaskRows) {
    const std::int64_t row_end = std::min(rows, r + kTaskRows);
    const std::int64_t outs = std::max<std::int64_t>(1, wanted / (in * (row_end - r) * kPanelOuts)) * kPanelOuts;
    for (std::int64_t o = 0; o < out; o += outs) emit(o, std::min(out, o + outs), r, row_end);
  }
}

bool same_matrix(ConstMatrix a, ConstMatrix b) { return a.data == b.data && a.rows == b.rows && a.cols == b.cols && a.stride == b.stride; }

}  // namespace

void CpuBackend::linear(std::span<const LinearJob> jobs) {
  shared_.reset();
  const auto count = static_cast<std::int64_t>(jobs.size());
  const auto** quantized = shared_.take<const QuantizedInput*>(count);
  auto* inputs = shared_.take<QuantizedInput>(count);  // each distinct x once
  auto* sources = shared_.take<ConstMatrix>(count);
  std::int64_t distinct = 0, work = 0, tasks = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const LinearJob& job = jobs[static_cast<std::size_t>(i)];
    check_job(job);
    work += job.x.rows * job.x.cols * job.out.cols;
    quantized[i] = nullptr;
    if (activations_ != Activations::kInt8 || is_plain(job.weight->view.type)) continue;
    std::int64_t at = distinct;
    while (at > 0 && !same_matrix(sources[at - 1], job.x)) --at;
    if (at == 0) {
      inputs[distinct] = allocate_quantized(job.x.rows, job.x.cols, shared_);
      sources[distinct] = job.x;
      at = ++distinct;
    }
    quantized[i] = &inputs[at - 1];
  }
  for (std::int64_t i = 0; i < distinct; ++i) {
    for_rows(sources[i].rows, sources[i].cols, [&](std::int64_t row) { quantize_input_row(table_, sources[i].row(row), row, inputs[i]); });
  }
  for (const LinearJob& job : jobs) cut(job, work, pool_.size(), [&](auto...) { ++tasks; });
  auto* list = shared_.take<Task>(tasks);
  tasks = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const LinearJob& job = jobs[static_cast<std::size_t>(i)];
    cut(job, work, pool_.size(),
        [&](std::int64_t ob, std::int64_t oe, std::int64_t rb, std::int64_t re) { list[tasks++] = {&job, quantized[i], ob, oe, rb, re}; });
  }
  for_tasks(tasks, work / std::max<std::int64_t>(tasks, 1), [&](std::int64_t i, Scratch& scratch) {
    const Task& task = list[i];
    if (task.quantized) return run_int8(table_, task, scratch);
    if (!is_plain(task.job->weight->view.type)) return run_wide(table_, task, scratch);
    run_plain(table_, {task.job, task.out_begin, task.out_end, task.row_begin, task.row_end}, scratch);
  });
}

std::int64_t CpuBackend::packed_bytes(const Weight& weight) const {
  const bool panels = !is_plain(weight.view.type) && weight.layout == WeightLayout::kOutIn;
  return panels ? kernels::packed_bytes(weight.view) : 0;
}

std::string CpuBackend::packed_layout() const { return fmt::format("panels {}", kPackedLayoutVersion); }

void CpuBackend::pack(const Weight& weight, std::span<std::byte> out) {
  const std::int64_t bytes = packed_panel_shape(weight.view.type, weight.in()).bytes, panels = (weight.out() + kPanelOuts - 1) / kPanelOuts;
  WEIR_CHECK(static_cast<std::int64_t>(out.size()) == panels * bytes, "{} bytes for {} panels", out.size(), panels);
  for_tasks(panels, weight.in() * kPanelOuts * 64,
            [&](std::int64_t p, Scratch&) { pack_panel(weight.view, p * kPanelOuts, out.data() + p * bytes); });
}

void CpuBackend::embed(const Weight& table, std::span<const TokenId> ids, float scale, Matrix out) {
  WEIR_CHECK(table.layout == WeightLayout::kOutIn && table.view.rank() == 2 && table.in() == out.cols, "table {}",
             shape_string(table.view.shape));
  WEIR_CHECK(static_cast<std::int64_t>(ids.size()) == out.rows);
  const std::int64_t stride = table.view.bytes_per_row();
  for_rows(out.rows, out.cols, [&](std::int64_t row) {
    const TokenId id = ids[static_cast<std::size_t>(row)];
    WEIR_CHECK(id >= 0 && id < table.out(), "token {} of {}", id, table.out());
    table_.widen(table.view.type, table.view.bytes.data() + id * stride, out.cols, out.row(row));
    if (scale != 1.0f) table_.scale(scale, 0.0f, out.cols, out.row(row));
  });
}

}  // namespace weir::kernels
