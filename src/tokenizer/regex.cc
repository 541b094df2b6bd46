// SPDX-License-Identifier: Apache-2.0
// The PCRE2 side: compiled once with JIT, matched with limits, match data per thread.
#include "tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "base/log.h"

namespace weir::tokenizer {
namespace {

constexpr std::size_t kMaxPattern = 1 << 16;
constexpr std::uint32_t kMatchLimit = 1'000'000, kDepthLimit = 20'000, kHeapLimitKib = 32 << 10;
constexpr std::size_t kWindow = 4096;   // starts of matches that are tried between looks at the clock
constexpr unsigned kFindsPerLook = 64;  // quick searches between them
constexpr Duration kTimeAtLeast = std::chrono::seconds(5), kTimePerMegabyte = std::chrono::seconds(5);
constexpr std::size_t kJitStackStart = 64 << 10, kJitStackMax = 8 << 20;

// What a thread needs to match; freed with it.
struct ThreadMatcher {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(kJitStackStart, kJitStackMax, nullptr);
  std::optional<TimePoint> deadline;
  unsigned finds = 0;

  ThreadMatcher() {
    if (!context) return;
    pcre2_set_match_limit(context, kMatchLimit);
    pcre2_set_depth_limit(context, kDepthLimit);
    pcre2_set_heap_limit(context, kHeapLimitKib);
    if (stack) pcre2_jit_stack_assign(context, nullptr, stack);
  }
  ~ThreadMatcher() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
  }
  bool too_late() const { return deadline && steady_clock().now() > *deadline; }
  ThreadMatcher(const ThreadMatcher&) = delete;
  ThreadMatcher& operator=(const ThreadMatcher&) = delete;
};

ThreadMatcher& thread_matcher() {
  thread_local ThreadMatcher matcher;
  return matcher;
}

std::string message_of(int code) {
  std::array<PCRE2_UCHAR, 160> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

}  // namespace

struct Regex::Compiled {
  pcre2_code* code = nullptr;
  ~Compiled() { pcre2_code_free(code); }
};

Regex::Regex(std::string source, std::unique_ptr<Compiled> compiled) : source_(std::move(source)), compiled_(std::move(compiled)) {}
Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

Result<Regex> Regex::compile(std::string_view oniguruma) {
  if (oniguruma.size() > kMaxPattern) return fail(ErrorCode::kUnsupported, "a regular expression of {} bytes", oniguruma.size());
  WEIR_ASSIGN(const std::string pattern, translate_regex(oniguruma));
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_compile_context* context = pcre2_compile_context_create(nullptr);
  if (context) pcre2_set_parens_nest_limit(context, 50);
  auto compiled = std::make_unique<Compiled>();
  compiled->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                 PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | PCRE2_USE_OFFSET_LIMIT, &error, &offset, context);
  pcre2_compile_context_free(context);
  if (!compiled->code) return fail(ErrorCode::kCorrupt, "the regular expression \"{}\": {}", oniguruma, message_of(error));
  pcre2_jit_compile(compiled->code, PCRE2_JIT_COMPLETE);  // where JIT is not available, the interpreter matches
  return Regex(std::string(oniguruma), std::move(compiled));
}

RegexTimeLimit::RegexTimeLimit(std::size_t text_bytes) {
  thread_matcher().deadline = steady_clock().now() + kTimeAtLeast + kTimePerMegabyte * static_cast<std::int64_t>(text_bytes >> 20);
}
RegexTimeLimit::~RegexTimeLimit() { thread_matcher().deadline.reset(); }

std::optional<Regex::Match> Regex::find(std::string_view text, std::size_t from) const {
  ThreadMatcher& matcher = thread_matcher();
  if (!matcher.data || !matcher.context) return std::nullopt;
  if (++matcher.finds % kFindsPerLook == 0 && matcher.too_late()) return std::nullopt;
  while (true) {
    const std::size_t window = std::min(from + kWindow, text.size());
    pcre2_set_offset_limit(matcher.context, window);
    const int found = pcre2_match(compiled_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from, PCRE2_NO_UTF_CHECK,
                                  matcher.data, matcher.context);
    if (found >= 0) {
      const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(matcher.data);
      if (ends[0] > ends[1]) return std::nullopt;  // \K in a lookaround
      return Match{ends[0], ends[1]};
    }
    if (found != PCRE2_ERROR_NOMATCH) {
      log::warn("the regular expression \"{}\" gave up on a text: {}", source_, message_of(found));
      return std::nullopt;
    }
    if (window == text.size()) return std::nullopt;
    if (matcher.too_late()) {
      log::warn("the regular expression \"{}\" gave up on a text: it took too long", source_);
      return std::nullopt;
    }
    from = window + 1;  // tried already up to the window's end
    while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0) == 0x80) ++from;
  }
}

}  // namespace weir::tokenizer
