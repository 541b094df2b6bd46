// SPDX-License-Identifier: Apache-2.0
// A matcher over the Rust library's, with the buffers of its masks.
#include "grammar/matcher.h"

#include <utility>

#include "grammar/native.h"

namespace weir::grammar {
namespace {

// A failure within the library concerns all matchers of the grammar.
std::unexpected<Error> failure(const Grammar& grammar, const NativeError& error, weir_text_code code) {
  if (code == WEIR_TEXT_PANIC || code == WEIR_TEXT_LIMIT) grammar.set_failed();
  return error.as_error(code);
}

// Forced texts are short; what is longer comes in the next chunk.
constexpr std::size_t kMostForced = 256;

}  // namespace

Matcher::Matcher(std::shared_ptr<const Grammar> grammar, weir_matcher* native) : grammar_(std::move(grammar)), native_(native) {}

Matcher::~Matcher() { weir_matcher_free(native_); }

Matcher::Matcher(Matcher&& other) noexcept
    : grammar_(std::move(other.grammar_)),
      native_(std::exchange(other.native_, nullptr)),
      size_(other.size_),
      masks_(std::move(other.masks_)),
      mask_count_(other.mask_count_) {}

Matcher& Matcher::operator=(Matcher&& other) noexcept {
  std::swap(grammar_, other.grammar_);
  std::swap(native_, other.native_);
  std::swap(size_, other.size_);
  std::swap(masks_, other.masks_);
  std::swap(mask_count_, other.mask_count_);
  return *this;
}

Result<Matcher> Matcher::create(std::shared_ptr<const Grammar> grammar) {
  weir_matcher* native = nullptr;
  NativeError error;
  if (const auto code = weir_matcher_new(grammar->native(), &native, &error.text); code != WEIR_TEXT_OK) {
    return failure(*grammar, error, code);
  }
  return Matcher(std::move(grammar), native);
}

Result<Matcher> Matcher::clone() const {
  weir_matcher* native = nullptr;
  NativeError error;
  if (const auto code = weir_matcher_clone(native_, &native, &error.text); code != WEIR_TEXT_OK) return failure(*grammar_, error, code);
  Matcher copy(grammar_, native);
  copy.size_ = size_;
  return copy;
}

std::span<const std::uint32_t> Matcher::mask_at(std::size_t guesses) const {
  if (guesses >= mask_count_) return {};
  const std::size_t words = grammar_->vocabulary()->mask_words();
  return std::span(masks_).subspan(guesses * words, words);
}

Status Matcher::append_mask() {
  const std::size_t words = grammar_->vocabulary()->mask_words();
  if (masks_.size() < (mask_count_ + 1) * words) masks_.resize((mask_count_ + 1) * words);
  NativeError error;
  if (const auto code = weir_matcher_mask(native_, masks_.data() + mask_count_ * words, words, &error.text); code != WEIR_TEXT_OK) {
    return failure(*grammar_, error, code);
  }
  ++mask_count_;
  return {};
}

Result<std::span<const std::uint32_t>> Matcher::mask() {
  if (mask_count_ == 0) WEIR_TRY(append_mask());
  return mask_at(0);
}

Status Matcher::compute_masks(std::span<const TokenId> guesses) {
  if (mask_count_ == 0) WEIR_TRY(append_mask());
  mask_count_ = 1;
  const std::size_t start = size_;
  Status result;
  for (const TokenId guess : guesses) {
    const std::size_t computed = mask_count_;
    const bool ends = grammar_->vocabulary()->ends_answer(guess);
    if (ends || !accept(guess)) break;
    mask_count_ = computed;
    result = append_mask();
    if (!result) break;
  }
  const std::size_t computed = mask_count_;
  if (Status back = rollback(size_ - start); !back) return back;
  mask_count_ = computed;
  return result;
}

Status Matcher::accept(TokenId token) {
  bool allowed = false;
  NativeError error;
  if (const auto code = weir_matcher_accept(native_, static_cast<std::uint32_t>(token), &allowed, &error.text); code != WEIR_TEXT_OK) {
    return failure(*grammar_, error, code);
  }
  if (!allowed) return fail(ErrorCode::kInvalidArgument, "the grammar does not allow token {} here", token);
  ++size_;
  mask_count_ = 0;
  return {};
}

Status Matcher::rollback(std::size_t count) {
  if (count == 0) return {};
  NativeError error;
  if (const auto code = weir_matcher_rollback(native_, count, &error.text); code != WEIR_TEXT_OK) return failure(*grammar_, error, code);
  size_ -= count;
  mask_count_ = 0;
  return {};
}

Result<std::size_t> Matcher::validate(std::span<const TokenId> tokens) {
  static_assert(sizeof(TokenId) == sizeof(std::uint32_t));
  std::size_t valid = 0;
  NativeError error;
  const auto code =
      weir_matcher_validate(native_, reinterpret_cast<const std::uint32_t*>(tokens.data()), tokens.size(), &valid, &error.text);
  if (code != WEIR_TEXT_OK) return failure(*grammar_, error, code);
  return valid;
}

Result<std::vector<TokenId>> Matcher::forced() {
  std::uint32_t tokens[kMostForced];
  std::size_t count = 0;
  NativeError error;
  if (const auto code = weir_matcher_forced(native_, tokens, kMostForced, &count, &error.text); code != WEIR_TEXT_OK) {
    return failure(*grammar_, error, code);
  }
  return std::vector<TokenId>(tokens, tokens + count);
}

bool Matcher::finished() const { return weir_matcher_ended(native_); }

Result<bool> Matcher::may_end() {
  bool yes = false;
  NativeError error;
  if (const auto code = weir_matcher_may_end(native_, &yes, &error.text); code != WEIR_TEXT_OK) return failure(*grammar_, error, code);
  return yes;
}

bool Matcher::must_end() const { return weir_matcher_must_end(native_); }

std::size_t Matcher::size() const { return size_; }

}  // namespace weir::grammar
