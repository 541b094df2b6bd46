// SPDX-License-Identifier: Apache-2.0
#include "kernels/limits/read_speed.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "base/numa.h"
#include "base/units.h"
#include "kernels/cpu_features.h"
#include "kernels/limits/together.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weir::kernels {
namespace {

constexpr std::uint64_t kHugePage = 2u << 20;
constexpr std::uint64_t kStep = 256;  // bytes of one round of the loops

// Anonymous memory, from the start of a 2 MiB page on.
class Region {
 public:
  static Result<Region> map(std::uint64_t bytes, Pages pages) {
    Region region;
    region.mapped_ = bytes + kHugePage;
    void* p = ::mmap(nullptr, region.mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return fail(ErrorCode::kExhausted, "there is no room for {} to measure memory with", format_bytes(bytes));
    region.base_ = static_cast<std::byte*>(p);
    const auto address = reinterpret_cast<std::uintptr_t>(p);
    region.data_ = region.base_ + ((kHugePage - address % kHugePage) % kHugePage);
    ::madvise(p, region.mapped_, pages == Pages::kHuge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    return region;
  }
  Region(Region&& other) noexcept : base_(std::exchange(other.base_, nullptr)), data_(other.data_), mapped_(other.mapped_) {}
  Region& operator=(Region&&) = delete;
  ~Region() {
    if (base_) ::munmap(base_, mapped_);
  }
  std::byte* data() const { return data_; }

 private:
  Region() = default;
  std::byte *base_ = nullptr, *data_ = nullptr;
  std::uint64_t mapped_ = 0;
};

using Reader = std::uint64_t (*)(const std::byte* data, std::uint64_t bytes);

std::uint64_t read_plain(const std::byte* data, std::uint64_t bytes) {
  using Words = std::uint64_t __attribute__((vector_size(16)));
  const auto* p = reinterpret_cast<const Words*>(data);
  Words a = {}, b = {}, c = {}, d = {};
  for (std::uint64_t i = 0; i < bytes / sizeof(Words); i += 4) a ^= p[i], b ^= p[i + 1], c ^= p[i + 2], d ^= p[i + 3];
  a ^= b ^ c ^ d;
  return a[0] ^ a[1];
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) std::uint64_t read_avx2(const std::byte* data, std::uint64_t bytes) {
  const auto* p = reinterpret_cast<const __m256i*>(data);
  __m256i a = _mm256_setzero_si256(), b = a, c = a, d = a;
  for (std::uint64_t i = 0; i < bytes / sizeof(__m256i); i += 4) {
    a = _mm256_xor_si256(a, _mm256_load_si256(p + i));
    b = _mm256_xor_si256(b, _mm256_load_si256(p + i + 1));
    c = _mm256_xor_si256(c, _mm256_load_si256(p + i + 2));
    d = _mm256_xor_si256(d, _mm256_load_si256(p + i + 3));
  }
  a = _mm256_xor_si256(_mm256_xor_si256(a, b), _mm256_xor_si256(c, d));
  return static_cast<std::uint64_t>(_mm256_extract_epi64(a, 0));
}

Reader best_reader() { return cpu_features().avx2 ? read_avx2 : read_plain; }
#else
Reader best_reader() { return read_plain; }
#endif

Status check_placed(std::span<const std::byte> memory, int node) {
  constexpr std::size_t kSamples = 16;  // a preferred node that ran out of memory gives way to others from some page on
  for (std::size_t i = 0; i <= kSamples; ++i) {
    const auto found = node_of(&memory[(memory.size() - 1) / kSamples * i]);
    if (!found) return fail(ErrorCode::kUnsupported, "the system does not tell on which node memory lies");
    if (*found != node) return fail(ErrorCode::kUnsupported, "memory that was to come from node {} came from node {}", node, *found);
  }
  return {};
}

}  // namespace

const char* pages_name(Pages pages) { return pages == Pages::kHuge ? "2 MiB pages" : "ordinary pages"; }

Result<Spread> measure_read(const ReadRequest& request) {
  const int threads = std::max(request.threads, 1), runs = std::max(request.runs, 1);
  if (!request.processors.empty() && request.processors.size() < static_cast<std::size_t>(threads))
    return fail(ErrorCode::kInvalidArgument, "{} threads cannot be pinned to {} processors", threads, request.processors.size());
  if (request.bytes_per_thread < kStep || request.bytes_per_thread > (std::uint64_t{1} << 44) / static_cast<std::uint64_t>(threads))
    return fail(ErrorCode::kInvalidArgument, "cannot measure reading of {} bytes per thread", request.bytes_per_thread);
  const std::uint64_t bytes = request.bytes_per_thread / kStep * kStep;
  const std::uint64_t stride = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  WEIR_ASSIGN(const Region region, Region::map(stride * static_cast<std::uint64_t>(threads), request.pages));
  const std::uint64_t total = stride * static_cast<std::uint64_t>(threads);
  if (request.memory_node && !prefer_node({region.data(), total}, *request.memory_node))
    return fail(ErrorCode::kUnsupported, "the system refuses to place memory on node {}", *request.memory_node);
  const auto own = [&](int thread) { return region.data() + stride * static_cast<std::uint64_t>(thread); };
  const Reader read = best_reader();
  std::atomic<std::uint64_t> sink{0};
  std::int64_t passes = 1;
  const auto body = [&](int thread) {
    std::uint64_t word = 0;
    for (std::int64_t pass = 0; pass < passes; ++pass) word ^= read(own(thread), bytes);
    sink.fetch_xor(word, std::memory_order_relaxed);
  };
  run_together(threads, 1, [&](int thread) { std::memset(own(thread), thread + 1, bytes); }, request.processors);
  if (request.memory_node)
    for (int t = 0; t < threads; ++t) WEIR_TRY(check_placed({own(t), bytes}, *request.memory_node));
  const double once = std::max(run_together(threads, 2, body, request.processors).back(), 1e-7);
  passes = std::clamp(static_cast<std::int64_t>(request.seconds / runs / once), std::int64_t{1}, std::int64_t{1} << 30);
  std::vector<double> speeds;
  for (const double seconds : run_together(threads, runs, body, request.processors))
    speeds.push_back(static_cast<double>(bytes) * static_cast<double>(passes) * threads / std::max(seconds, 1e-9));
  return spread_of(std::move(speeds));
}

}  // namespace weir::kernels
