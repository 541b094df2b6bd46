// SPDX-License-Identifier: Apache-2.0
// Attention over paged keys and values (FlashAttention's online softmax, Dao et al. 2022, arXiv:2205.14135). Positions are
// taken in chunks at fixed absolute borders and merged in segments at fixed borders, in order, so that neither paging nor
// the cut of the work shows in a result. A task is a block of rows of one sequence and some query heads of one KV head, over
// all its segments or, when there are too few tasks for the threads, over one (as Flash-Decoding does).
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "kernels/cpu_attention_tiles.h"
#include "kernels/cpu_backend_impl.h"

namespace weir::kernels {
namespace {

constexpr std::int64_t kMostEntries = 128;    // (row, head) pairs that share one reading of a chunk of keys and values: see
constexpr std::int64_t kFewestEntries = 16;   // attention/BF16/dim:64/kv:8/prefill; fewer so that all threads have some
constexpr std::int64_t kHeadsPerTask = 16;    // of a large group (MLA, MQA), so that one row still gives every thread work
constexpr std::int64_t kTasksPerThread = 8;   // a task with a larger share of all work is split, if it can be
constexpr std::int64_t kSplitResults = 4096;  // partial results that splitting a block of several rows may need
constexpr float kLog2E = 1.44269504f;

struct Range {
  std::int64_t begin, end;
};

// A block of rows of a slice and of query heads of one KV head.
struct Block {
  const SequenceSlice* slice;
  std::int32_t kv_head, first_head, heads;
  std::int32_t row_begin, row_end;  // within the slice
  std::int32_t segment_begin, segment_end;
  std::int32_t run;         // segments of a task
  std::int64_t partials;    // first of its partial results, segment by segment; -1: not split
  std::int32_t* runs_left;  // of a split block: whose task comes last finishes it

  std::int64_t first_row() const { return std::int64_t{slice->first_row} + row_begin; }
  std::int64_t entries() const { return std::int64_t{row_end - row_begin} * heads; }
  std::int32_t segments() const { return segment_end - segment_begin; }
  std::int32_t runs() const { return (segments() + run - 1) / run; }
};

struct Task {
  const Block* block;
  std::int32_t segment_begin, segment_end;
};

AttentionSums take_sums(std::int64_t entries, std::int64_t dim, Scratch& scratch) {
  const std::int64_t stride = (dim + 15) / 16 * 16;
  return {scratch.take<float>(entries), scratch.take<float>(entries * kKvTile), scratch.take<float>(entries * stride), stride};
}

void clear(const AttentionSums& sums, std::int64_t entries) {
  std::fill_n(sums.max, entries, -std::numeric_limits<float>::infinity());
  std::fill_n(sums.weights, entries * kKvTile, 0.0f);
  std::fill_n(sums.acc, entries * sums.acc_stride, 0.0f);
}

class Attention {
 public:
  Attention(const KernelTable& table, ConstMatrix q, const KvLayer& layer, const AttentionParams& params, Matrix out, int threads)
      : table_(table), kernels_(table.attention), q_(q), layer_(layer), params_(params), out_(out), word_(KvReader::word(table, layer)) {
    while (entries_per_task_ > kFewestEntries && q.rows * params.heads < entries_per_task_ * threads * kTasksPerThread)
      entries_per_task_ /= 2;
  }

  void check(std::span<const SequenceSlice> slices) const;
  // Calls emit(block) for all blocks of the batch, not split yet.
  template <class Emit>
  void cut(std::span<const SequenceSlice> slices, Emit emit) const;
  std::int64_t cost(const Block& block) const;
  // `next`: the thread's next task, whose keys and values are asked for at the end of this one; null when there is none.
  void run(const Task& task, const Task* next, const AttentionSums& partials, Scratch& scratch) const;

 private:
  struct Work;   // buffers of a task
  struct Chunk;  // positions that are read together
  Range visible(const SequenceSlice& slice, std::int64_t row) const;
  Chunk first_chunk(const Task& task, std::int64_t segment) const;
  Chunk chunk_at(const Task& task, std::int64_t position) const;
  void attend_segment(Work& work, std::int64_t segment, const AttentionSums& sums) const;
  void see(const Work& work, std::int64_t begin, std::int64_t end) const;
  void finish(const Block& block, std::int64_t entry, const AttentionSums& sums) const;
  void finish_split(const Block& block, const AttentionSums& partials) const;

  const KernelTable& table_;
  const AttentionKernels& kernels_;
  ConstMatrix q_;
  const KvLayer& layer_;
  const AttentionParams& params_;
  Matrix out_;
  KvWord word_;
  std::int64_t entries_per_task_ = kMostEntries;
};

struct Attention::Work {
  const Task& task;
  const Task* next;
  KvReader reader;
  float* q;  // words
  int *begin, *end;

  Work(const Attention& a, const Task& of, const Task* then, Scratch& scratch)
      : task(of),
        next(then),
        reader(a.table_, a.layer_, scratch),
        q(scratch.take<float>(of.block->entries() * kernels::key_words(a.word_, a.layer_.key_dim))),
        begin(scratch.take<int>(of.block->entries())),
        end(scratch.take<int>(of.block->entries())) {
    const Block& b = *of.block;
    const std::int64_t words = kernels::key_words(a.word_, a.layer_.key_dim);
    const float scale = a.params_.softcap > 0 ? a.params_.scale / a.params_.softcap : a.params_.scale * kLog2E;
    const TileKernels& kernels = a.word_ == KvWord::kBF16Pairs ? a.kernels_.bf16 : a.kernels_.f32;
    for (std::int64_t e = 0; e < b.entries(); ++e) {
      const std::int64_t row = b.slice->first_row + b.row_begin + e / b.heads, head = b.first_head + e % b.heads;
      kernels.pack_query(a.q_.row(row) + head * a.layer_.key_dim, a.layer_.key_dim, scale, q + e * words);
    }
  }
};

Range Attention::visible(const SequenceSlice& slice, std::int64_t row) const {
  const std::int64_t position = slice.first_position + row;
  if (!params_.causal) {
    const std::int64_t first = slice.first_position, end = first + slice.row_count;
    if (params_.window == 0) return {first, end};
    return {std::max<std::int64_t>(first, position - params_.window + 1), std::min<std::int64_t>(end, position + params_.window)};
  }
  return {params_.window > 0 ? std::max<std::int64_t>(0, position - params_.window + 1) : 0, position + 1};
}

// Which of the tiles' positions [begin, end) each entry sees.
void Attention::see(const Work& work, std::int64_t begin, std::int64_t end) const {
  const Block& b = *work.task.block;
  for (std::int64_t row = b.row_begin, e = 0; row < b.row_end; ++row) {
    const Range range = visible(*b.slice, row);
    const auto from = static_cast<int>(std::clamp(range.begin, begin, end) - begin);
    const auto to = static_cast<int>(std::clamp(range.end, begin, end) - begin);
    for (std::int64_t h = 0; h < b.heads; ++h, ++e) {
      work.begin[e] = from;
      work.end[e] = to;
    }
  }
}

struct Attention::Chunk {
  KvPlace place;
  std::int64_t position;
  int tiles;
  std::int64_t end() const { return position + tiles * kKvTile; }
};

Attention::Chunk Attention::chunk_at(const Task& task, std::int64_t position) const {
  const Block& b = *task.block;
  const SequenceSlice& slice = *b.slice;
  const KvPlace place{slice.blocks, b.kv_head, visible(slice, b.row_begin).begin, std::int64_t{slice.first_position} + slice.row_count};
  const std::int64_t last = std::min(visible(slice, b.row_end - 1).end, task.segment_end * std::int64_t{kKvSegment});
  const std::int64_t end = std::min(last, position / kKvChunk * kKvChunk + kKvChunk);
  return {place, position, static_cast<int>((end - position + kKvTile - 1) / kKvTile)};  // none behind the task's last position
}

Attention::Chunk Attention::first_chunk(const Task& task, std::int64_t segment) const {
  const std::int64_t lowest = visible(*task.block->slice, task.block->row_begin).begin;
  return chunk_at(task, std::max(lowest / kKvTile * kKvTile, segment * kKvSegment));
}

// One segment of all (row, head) pairs of the block.
void Attention::attend_segment(Work& work, std::int64_t segment, const AttentionSums& sums) const {
  const Block& b = *work.task.block;
  clear(sums, b.entries());
  const auto step = word_ == KvWord::kBF16Pairs ? kernels_.bf16.step : word_ == KvWord::kF16 ? kernels_.step_f16 : kernels_.f32.step;
  KvTiles tiles;
  for (Chunk chunk = first_chunk(work.task, segment); chunk.tiles > 0 && chunk.position < (segment + 1) * kKvSegment;) {
    work.reader.read(chunk.place, chunk.position, chunk.tiles, tiles);
    Chunk next = chunk_at(work.task, chunk.end());
    KvTiles ahead{};
    if (next.tiles > 0) {
      work.reader.look_ahead(next.place, next.position, next.tiles, ahead);
    } else if (work.next) {
      const Chunk other = first_chunk(*work.next, work.next->segment_begin);
      if (other.tiles > 0) work.reader.look_ahead(other.place, other.position, other.tiles, ahead);
    }
    see(work, chunk.position, chunk.end());
    step({static_cast<int>(b.entries()), work.q, kernels::key_words(word_, layer_.key_dim), layer_.value_dim, chunk.tiles, tiles.keys,
          tiles.values, ahead.keys, ahead.values, work.begin, work.end, params_.softcap * kLog2E, sums,
          static_cast<int>(chunk.position % kKvChunk / kKvTile)});
    chunk = next;
  }
}

void Attention::finish(const Block& block, std::int64_t entry, const AttentionSums& sums) const {
  const std::int64_t row = block.slice->first_row + block.row_begin + entry / block.heads, head = block.first_head + entry % block.heads;
  const float sink = params_.sinks ? params_.sinks[head] * kLog2E : 0;
  kernels_.finish(sums.from(entry), params_.sinks ? &sink : nullptr, layer_.value_dim, out_.row(row) + head * layer_.value_dim);
}

void Attention::finish_split(const Block& block, const AttentionSums& partials) const {
  const std::int64_t entries = block.entries();
  const AttentionSums first = partials.from(block.partials);
  for (std::int64_t e = 0; e < entries; ++e) {
    for (std::int64_t s = 1; s < block.segments(); ++s) kernels_.merge(first.from(e), first.from(s * entries + e), layer_.value_dim);
    finish(block, e, first);
  }
}

void Attention::run(const Task& task, const Task* next, const AttentionSums& partials, Scratch& scratch) const {
  const Block& block = *task.block;
  const std::int64_t entries = block.entries();
  Work work(*this, task, next, scratch);
  if (block.partials >= 0) {
    for (std::int64_t s = task.segment_begin; s < task.segment_end; ++s)
      attend_segment(work, s, partials.from(block.partials + (s - block.segment_begin) * entries));
    const std::atomic_ref<std::int32_t> left(*block.runs_left);
    if (left.fetch_sub(1, std::memory_order_acq_rel) == 1) finish_split(block, partials);
    return;
  }
  const AttentionSums total = take_sums(entries, layer_.value_dim, scratch), part = take_sums(entries, layer_.value_dim, scratch);
  attend_segment(work, block.segment_begin, total);
  for (std::int64_t s = block.segment_begin + 1; s < block.segment_end; ++s) {
    attend_segment(work, s, part);
    for (std::int64_t e = 0; e < entries; ++e) kernels_.merge(total.from(e), part.from(e), layer_.value_dim);
  }
  for (std::int64_t e = 0; e < entries; ++e) finish(block, e, total);
}

template <class Emit>
void Attention::cut(std::span<const SequenceSlice> slices, Emit emit) const {
  const std::int32_t group = params_.heads / layer_.kv_heads;
  const auto heads_per_task = std::min<std::int32_t>(group, kHeadsPerTask);
  const auto rows_per_task = static_cast<std::int32_t>(entries_per_task_ / heads_per_task);
  for (const SequenceSlice& slice : slices) {
    for (std::int32_t row = 0; row < slice.row_count; row += rows_per_task) {
      const std::int32_t row_end = std::min(slice.row_count, row + rows_per_task);
      const auto first = static_cast<std::int32_t>(visible(slice, row).begin / kKvSegment);
      const auto last = static_cast<std::int32_t>((visible(slice, row_end - 1).end + kKvSegment - 1) / kKvSegment);
      for (std::int32_t kv_head = 0; kv_head < layer_.kv_heads; ++kv_head) {
        for (std::int32_t h = 0; h < group; h += heads_per_task)
          emit(Block{&slice, kv_head, kv_head * group + h, std::min(heads_per_task, group - h), row, row_end, first, last, last - first, -1,
                     nullptr});
      }
    }
  }
}

// Multiply-adds, about.
std::int64_t Attention::cost(const Block& block) const {
  const std::int64_t positions = visible(*block.slice, block.row_end - 1).end - visible(*block.slice, block.row_begin).begin;
  return block.entries() * positions * (layer_.key_dim + layer_.value_dim);
}

void Attention::check(std::span<const SequenceSlice> slices) const {
  WEIR_CHECK(layer_.kv_heads > 0 && params_.heads > 0 && params_.heads % layer_.kv_heads == 0 && layer_.block_tokens > 0);
  WEIR_CHECK(layer_.type == DType::kF32 || layer_.type == DType::kF16 || layer_.type == DType::kBF16 || layer_.type == DType::kQ8_0);
  WEIR_CHECK(layer_.values || (layer_.value_dim <= layer_.key_dim), "values of {} in keys of {}", layer_.value_dim, layer_.key_dim);
  WEIR_CHECK(q_.cols == std::int64_t{params_.heads} * layer_.key_dim && out_.cols == std::int64_t{params_.heads} * layer_.value_dim &&
             q_.rows == out_.rows);
  for (const SequenceSlice& s : slices) {
    WEIR_CHECK(s.first_row >= 0 && s.row_count >= 0 && s.first_row + s.row_count <= q_.rows && s.first_position >= 0);
    WEIR_CHECK(static_cast<std::int64_t>(s.blocks.size()) * layer_.block_tokens >= std::int64_t{s.first_position} + s.row_count,
               "{} blocks for position {}", s.blocks.size(), s.first_position + s.row_count - 1);
  }
}

// How many segments a task of the block takes when none should cost more than `most`. That decides how well threads are kept
// busy, and does not change a result.
std::int32_t segments_per_task(const Block& b, std::int64_t cost, std::int64_t most) {
  const bool may_split = b.row_end - b.row_begin == 1 || b.entries() * b.segments() <= kSplitResults;
  if (cost <= most || !may_split) return std::max(b.segments(), 1);
  const std::int64_t tasks = std::min<std::int64_t>(b.segments(), cost / std::max<std::int64_t>(most, 1) + 1);
  return static_cast<std::int32_t>((b.segments() + tasks - 1) / tasks);
}

}  // namespace

void CpuBackend::attention(ConstMatrix q, std::span<const SequenceSlice> slices, const KvLayer& layer, const AttentionParams& params,
                           Matrix out) {
  const Attention attention(table_, q, layer, params, out, pool_.size());
  attention.check(slices);
  shared_.reset();
  std::int64_t block_count = 0, work = 0;
  attention.cut(slices, [&](const Block& b) {
    ++block_count;
    work += attention.cost(b);
  });
  const std::int64_t most = pool_.size() == 1 ? work : work / (pool_.size() * kTasksPerThread);
  auto* blocks = shared_.take<Block>(block_count);
  auto* left = shared_.take<std::int32_t>(block_count);
  std::int64_t task_count = 0, partials = 0;
  block_count = 0;
  attention.cut(slices, [&](const Block& b) {
    Block& block = blocks[block_count] = b;
    block.run = segments_per_task(b, attention.cost(b), most);
    if (block.runs() > 1) {
      block.partials = partials;
      block.runs_left = &(left[block_count] = block.runs());
      partials += b.entries() * b.segments();
    }
    task_count += block.runs();
    ++block_count;
  });
  auto* tasks = shared_.take<Task>(task_count);
  task_count = 0;
  // A thread begins with its own rows. Later rows see more: of a thread's tasks the longest go first, so that threads end together.
  std::int64_t of_thread = block_count;
  for (std::int64_t t = pool_.size(); t-- > 0;) {
    Share& share = shares_[static_cast<std::size_t>(t)];
    share.next.store(task_count, std::memory_order_relaxed);
    for (; of_thread > 0 && blocks[of_thread - 1].first_row() >= q.rows * t / pool_.size(); --of_thread) {
      const Block& block = blocks[of_thread - 1];
      for (std::int32_t s = block.segment_begin; s < block.segment_end; s += block.run)
        tasks[task_count++] = {&block, s, std::min(s + block.run, block.segment_end)};
    }
    share.end = task_count;
  }
  const AttentionSums shared = take_sums(partials, layer.value_dim, shared_);
  const auto run = [&](std::int64_t begin, std::int64_t end, Scratch& scratch) {
    for (std::int64_t i = begin; i < end; ++i) {
      scratch.reset();
      attention.run(tasks[i], i + 1 < task_count ? &tasks[i + 1] : nullptr, shared, scratch);
    }
  };
  is_worth_sharing(task_count, work) ? run_shares(1, run) : run(0, task_count, scratch_[0]);
}

}  // namespace weir::kernels
