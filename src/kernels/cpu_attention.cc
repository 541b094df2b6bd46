// SPDX-License-Identifier: Apache-2.0
// Attention over paged keys and values (FlashAttention's online softmax, Dao et al. 2022, arXiv:2205.14135). Positions are
// taken in chunks at fixed absolute borders and combined in segments at fixed borders, so that neither paging nor the cut
// of the work shows in a result. A task is a block of rows of one sequence and one KV head; a single row over a long
// context is cut into its segments (as Flash-Decoding does), combined in order.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cpu_backend_impl.h"

namespace weir::kernels {
namespace {

constexpr std::int64_t kEntriesPerTask = 64;  // (row, head) pairs that share one reading of a chunk of keys and values
constexpr std::int64_t kHeadsPerTask = 16;    // of a large group (MLA, MQA), so that one row still gives every thread work

// A block of rows of a slice and of query heads of one KV head, over segments [segment_begin, segment_end).
struct Task {
  const SequenceSlice* slice;
  std::int32_t kv_head;
  std::int64_t first_head, heads;
  std::int32_t row_begin, row_end;  // within the slice
  std::int64_t segment_begin, segment_end;
  std::int64_t partial;  // first of its partial results, -1: the task writes the output itself
};

struct Call {
  const KernelTable& table;
  ConstMatrix q;
  const KvLayer& layer;
  const AttentionParams& params;
  Matrix out;
  std::int64_t group;  // query heads per KV head
};

struct Range {
  std::int64_t begin, end;
};

Range visible(const Call& call, const SequenceSlice& slice, std::int64_t row) {
  const std::int64_t position = slice.first_position + row;
  if (!call.params.causal) return {slice.first_position, std::int64_t{slice.first_position} + slice.row_count};
  return {call.params.window > 0 ? std::max<std::int64_t>(0, position - call.params.window + 1) : 0, position + 1};
}

// Results of the (row, head) pairs of a task: maximum, sum of weights, weighted values.
struct Partials {
  SoftmaxState* states;
  float* acc;  // [entries][value_dim]

  static Partials take(std::int64_t entries, std::int64_t dim, Scratch& scratch) {
    return {scratch.take<SoftmaxState>(entries), scratch.take<float>(entries * dim)};
  }
  void clear(std::int64_t entries, std::int64_t dim) const {
    std::fill_n(states, entries, SoftmaxState{-std::numeric_limits<float>::infinity(), 0.0f});
    std::fill_n(acc, entries * dim, 0.0f);
  }
};

void combine(SoftmaxState& total, float* total_acc, const SoftmaxState& part, const float* part_acc, std::int64_t dim) {
  if (part.sum == 0) return;
  if (total.sum == 0) {
    total = part;
    std::copy_n(part_acc, dim, total_acc);
    return;
  }
  const float largest = std::max(total.max, part.max);
  const float a = std::exp(total.max - largest), b = std::exp(part.max - largest);
  for (std::int64_t d = 0; d < dim; ++d) total_acc[d] = total_acc[d] * a + part_acc[d] * b;
  total = {largest, total.sum * a + part.sum * b};
}

void finish(const Call& call, std::int64_t head, SoftmaxState state, const float* acc, float* out) {
  float factor = 1;
  if (call.params.sinks) {
    const float sink = call.params.sinks[head], largest = std::max(state.max, sink);
    factor = std::exp(state.max - largest);
    state.sum = state.sum * factor + std::exp(sink - largest);
  }
  for (std::int64_t d = 0; d < call.layer.value_dim; ++d) out[d] = acc[d] * factor / state.sum;
}

// Memory of a task's inner loop.
struct ChunkBuffers {
  float *keys, *values, *scores, *factors;
  int *begin, *end;
  const float** q;
  float** acc;

  static ChunkBuffers take(const KvLayer& layer, std::int64_t entries, Scratch& s) {
    return {s.take<float>(std::int64_t{layer.key_dim} * kKvChunk),
            s.take<float>(std::int64_t{layer.value_dim} * kKvChunk),
            s.take<float>(entries * kKvChunk),
            s.take<float>(entries),
            s.take<int>(entries),
            s.take<int>(entries),
            s.take<const float*>(entries),
            s.take<float*>(entries)};
  }
};

// Where the key and value of a position lie, and how many of the following positions lie beside it in the same block.
struct Place {
  const std::byte *key, *value;
  std::int64_t count;
};

Place place_of(const Call& call, const Task& task, std::int64_t position, std::int64_t end) {
  const KvLayer& layer = call.layer;
  const std::int64_t element = row_bytes(layer.type, 1), token = position % layer.block_tokens;
  const std::int64_t block = task.slice->blocks[static_cast<std::size_t>(position / layer.block_tokens)].value;
  const std::int64_t row = (block * layer.kv_heads + task.kv_head) * layer.block_tokens + token;
  const std::byte* key = layer.keys + row * layer.key_dim * element;
  return {key, layer.values ? layer.values + row * layer.value_dim * element : key, std::min(end - position, layer.block_tokens - token)};
}

void prefetch(const std::byte* from, std::int64_t bytes) {
  for (std::int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(from + at, 0, 2);
}

// Values of a chunk as rows of floats.
struct Values {
  const float* data;
  std::int64_t stride;
};

void widen_values(const Call& call, const Place& at, float* out) {
  const KvLayer& layer = call.layer;
  if (layer.values) return call.table.widen(layer.type, at.value, at.count * layer.value_dim, out);
  for (std::int64_t i = 0; i < at.count; ++i)
    call.table.widen(layer.type, at.value + i * row_bytes(layer.type, layer.key_dim), layer.value_dim, out + i * layer.value_dim);
}

// Brings positions [begin, end) of one chunk to floats: keys transposed, values as rows (where they lie, if they can stay).
Values load_chunk(const Call& call, const Task& task, std::int64_t begin, std::int64_t end, const ChunkBuffers& buffers) {
  const KvLayer& layer = call.layer;
  const std::int64_t first = begin % kKvChunk, value_stride = layer.values ? layer.value_dim : layer.key_dim;
  if (end - begin < kKvChunk) std::fill_n(buffers.keys, std::int64_t{layer.key_dim} * kKvChunk, 0.0f);
  const Place whole = place_of(call, task, begin, end);
  const bool stay = layer.type == DType::kF32 && whole.count == end - begin;
  for (std::int64_t position = begin; position < end;) {
    const Place at = place_of(call, task, position, end);
    call.table.load_keys(layer.type, at.key, layer.key_dim, static_cast<int>(first + position - begin), static_cast<int>(at.count),
                         buffers.keys);
    if (!stay) widen_values(call, at, buffers.values + (position - begin) * layer.value_dim);
    position += at.count;
  }
  if (stay) return {reinterpret_cast<const float*>(whole.value), value_stride};
  return {buffers.values, layer.value_dim};
}

// One segment of all (row, head) pairs of the task into `out`.
void attend_segment(const Call& call, const Task& task, std::int64_t segment, const ChunkBuffers& b, const Partials& out) {
  const std::int64_t rows = task.row_end - task.row_begin, dim = call.layer.value_dim, entries = rows * task.heads;
  out.clear(entries, dim);
  for (std::int64_t e = 0; e < entries; ++e) b.acc[e] = out.acc + e * dim;
  const std::int64_t lowest = visible(call, *task.slice, task.row_begin).begin;
  const std::int64_t highest = visible(call, *task.slice, task.row_end - 1).end;
  const std::int64_t segment_begin = std::max(lowest, segment * kKvSegment), segment_end = std::min(highest, (segment + 1) * kKvSegment);
  for (std::int64_t begin = segment_begin; begin < segment_end;) {
    const std::int64_t origin = begin / kKvChunk * kKvChunk, end = std::min(segment_end, origin + kKvChunk);
    const Values values = load_chunk(call, task, begin, end, b);
    if (end < segment_end) {
      const Place next = place_of(call, task, end, std::min(segment_end, end + kKvChunk));
      prefetch(next.key, next.count * row_bytes(call.layer.type, call.layer.key_dim));
      if (call.layer.values) prefetch(next.value, next.count * row_bytes(call.layer.type, dim));
    }
    call.table.scores(b.q, static_cast<int>(entries), b.keys, call.layer.key_dim, b.scores);
    for (std::int64_t e = 0; e < entries; ++e) {
      const Range range = visible(call, *task.slice, task.row_begin + e / task.heads);
      b.begin[e] = static_cast<int>(std::clamp(range.begin, begin, end) - origin);
      b.end[e] = static_cast<int>(std::clamp(range.end, begin, end) - origin);
      b.factors[e] = 1;
      if (b.begin[e] >= b.end[e]) continue;
      b.factors[e] =
          call.table.softmax_chunk(b.scores + e * kKvChunk, b.begin[e], b.end[e], call.params.scale, call.params.softcap, out.states[e]);
    }
    call.table.weigh_values({b.scores, b.factors, b.begin, b.end, static_cast<int>(entries), values.data, values.stride,
                             static_cast<int>(begin - origin), dim, b.acc});
    begin = end;
  }
}

void run_task(const Call& call, const Task& task, Partials shared, Scratch& scratch) {
  const std::int64_t rows = task.row_end - task.row_begin, entries = rows * task.heads, dim = call.layer.value_dim;
  const ChunkBuffers buffers = ChunkBuffers::take(call.layer, entries, scratch);
  for (std::int64_t e = 0; e < entries; ++e) {
    const std::int64_t row = task.slice->first_row + task.row_begin + e / task.heads;
    buffers.q[e] = call.q.row(row) + (task.first_head + e % task.heads) * call.layer.key_dim;
  }
  if (task.partial >= 0) {
    attend_segment(call, task, task.segment_begin, buffers, {shared.states + task.partial, shared.acc + task.partial * dim});
    return;
  }
  const Partials total = Partials::take(entries, dim, scratch), part = Partials::take(entries, dim, scratch);
  total.clear(entries, dim);
  for (std::int64_t s = task.segment_begin; s < task.segment_end; ++s) {
    attend_segment(call, task, s, buffers, part);
    for (std::int64_t e = 0; e < entries; ++e) combine(total.states[e], total.acc + e * dim, part.states[e], part.acc + e * dim, dim);
  }
  for (std::int64_t e = 0; e < entries; ++e) {
    const std::int64_t row = task.slice->first_row + task.row_begin + e / task.heads, head = task.first_head + e % task.heads;
    finish(call, head, total.states[e], total.acc + e * dim, call.out.row(row) + head * dim);
  }
}

// A row whose segments were separate tasks: their partials follow each other, segment by segment.
void finish_split(const Call& call, const Task& task, std::int64_t segments, Partials shared, Scratch& scratch) {
  const std::int64_t dim = call.layer.value_dim, row = task.slice->first_row + task.row_begin;
  const Partials total = Partials::take(1, dim, scratch);
  for (std::int64_t g = 0; g < task.heads; ++g) {
    total.clear(1, dim);
    for (std::int64_t s = 0; s < segments; ++s) {
      const std::int64_t at = task.partial + s * task.heads + g;
      combine(total.states[0], total.acc, shared.states[at], shared.acc + at * dim, dim);
    }
    const std::int64_t head = task.first_head + g;
    finish(call, head, total.states[0], total.acc, call.out.row(row) + head * dim);
  }
}

// Calls emit(task) for the tasks of the batch; `partials` counts the partial results handed out.
template <class Emit>
void cut(const Call& call, std::span<const SequenceSlice> slices, std::int64_t& partials, Emit emit) {
  const std::int64_t heads_per_task = std::min(call.group, kHeadsPerTask);
  const auto rows_per_task = static_cast<std::int32_t>(kEntriesPerTask / heads_per_task);
  for (const SequenceSlice& slice : slices) {
    for (std::int32_t row = 0; row < slice.row_count; row += rows_per_task) {
      const std::int32_t row_end = std::min(slice.row_count, row + rows_per_task);
      const std::int64_t first = visible(call, slice, row).begin / kKvSegment;
      const std::int64_t last = (visible(call, slice, row_end - 1).end + kKvSegment - 1) / kKvSegment;
      const bool split = row_end - row == 1 && last - first > 1;
      for (std::int32_t kv_head = 0; kv_head < call.layer.kv_heads; ++kv_head) {
        for (std::int64_t h = 0; h < call.group; h += heads_per_task) {
          Task task{&slice, kv_head, kv_head * call.group + h, std::min(heads_per_task, call.group - h), row, row_end, first, last, -1};
          if (!split) emit(task);
          for (std::int64_t s = first; split && s < last; ++s, partials += task.heads) {
            task.segment_begin = s;
            task.partial = partials;
            emit(task);
          }
        }
      }
    }
  }
}

void check_call(const Call& call, std::span<const SequenceSlice> slices) {
  const KvLayer& layer = call.layer;
  WEIR_CHECK(layer.kv_heads > 0 && call.params.heads > 0 && call.params.heads % layer.kv_heads == 0 && layer.block_tokens > 0);
  WEIR_CHECK(layer.type == DType::kF32 || layer.type == DType::kF16 || layer.type == DType::kBF16);
  WEIR_CHECK(layer.values || (layer.value_dim <= layer.key_dim), "values of {} in keys of {}", layer.value_dim, layer.key_dim);
  WEIR_CHECK(call.q.cols == std::int64_t{call.params.heads} * layer.key_dim &&
             call.out.cols == std::int64_t{call.params.heads} * layer.value_dim && call.q.rows == call.out.rows);
  for (const SequenceSlice& s : slices) {
    WEIR_CHECK(s.first_row >= 0 && s.row_count >= 0 && s.first_row + s.row_count <= call.q.rows && s.first_position >= 0);
    WEIR_CHECK(static_cast<std::int64_t>(s.blocks.size()) * layer.block_tokens >= std::int64_t{s.first_position} + s.row_count,
               "{} blocks for position {}", s.blocks.size(), s.first_position + s.row_count - 1);
  }
}

}  // namespace

void CpuBackend::attention(ConstMatrix q, std::span<const SequenceSlice> slices, const KvLayer& layer, const AttentionParams& params,
                           Matrix out) {
  const Call call{table_, q, layer, params, out, layer.kv_heads > 0 ? params.heads / layer.kv_heads : 0};
  check_call(call, slices);
  shared_.reset();
  std::int64_t count = 0, partials = 0, work = 0;
  cut(call, slices, partials, [&](const Task& t) {
    ++count;
    const std::int64_t segments = t.partial >= 0 ? 1 : t.segment_end - t.segment_begin;
    const std::int64_t positions = std::min(segments * kKvSegment, visible(call, *t.slice, t.row_end - 1).end);
    work += (t.row_end - t.row_begin) * t.heads * positions * (layer.key_dim + layer.value_dim);
  });
  const Partials shared = Partials::take(partials, layer.value_dim, shared_);
  auto* tasks = shared_.take<Task>(count);
  count = partials = 0;
  cut(call, slices, partials, [&](const Task& t) { tasks[count++] = t; });
  // Later rows see more: the longest tasks go first, so that threads end together.
  for_tasks(count, work / std::max<std::int64_t>(count, 1),
            [&](std::int64_t i, Scratch& scratch) { run_task(call, tasks[count - 1 - i], shared, scratch); });
  for (std::int64_t i = 0; i < count; ++i) {
    if (tasks[i].partial < 0) continue;
    const std::int64_t segments = tasks[i].segment_end - tasks[i].segment_begin;
    scratch_[0].reset();
    finish_split(call, tasks[i], segments, shared, scratch_[0]);
    i += segments - 1;
  }
}

void CpuBackend::store_kv(ConstMatrix keys, ConstMatrix values, std::span<const SequenceSlice> slices, const KvLayer& layer) {
  const std::int64_t element = row_bytes(layer.type, 1);
  WEIR_CHECK(keys.cols == std::int64_t{layer.kv_heads} * layer.key_dim, "keys of {} columns", keys.cols);
  WEIR_CHECK(!layer.values || (values.cols == std::int64_t{layer.kv_heads} * layer.value_dim && values.rows == keys.rows),
             "values of {} columns", values.cols);
  for (const SequenceSlice& slice : slices) {
    WEIR_CHECK(slice.first_row >= 0 && slice.first_row + slice.row_count <= keys.rows);
    WEIR_CHECK(static_cast<std::int64_t>(slice.blocks.size()) * layer.block_tokens >= std::int64_t{slice.first_position} + slice.row_count);
    for_rows(slice.row_count, keys.cols + (layer.values ? values.cols : 0), [&](std::int64_t i) {
      const std::int64_t position = slice.first_position + i, token = position % layer.block_tokens;
      const std::int64_t block = slice.blocks[static_cast<std::size_t>(position / layer.block_tokens)].value;
      for (std::int64_t h = 0; h < layer.kv_heads; ++h) {
        const std::int64_t row = (block * layer.kv_heads + h) * layer.block_tokens + token;
        table_.narrow(layer.type, keys.row(slice.first_row + i) + h * layer.key_dim, layer.key_dim,
                      layer.keys + row * layer.key_dim * element);
        if (!layer.values) continue;
        table_.narrow(layer.type, values.row(slice.first_row + i) + h * layer.value_dim, layer.value_dim,
                      layer.values + row * layer.value_dim * element);
      }
    });
  }
}

}  // namespace weir::kernels
