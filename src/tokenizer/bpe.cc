// SPDX-License-Identifier: Apache-2.0
// Short pieces are merged by scanning their few ranks; long ones by a heap over a linked list, so that a megabyte without
// a space takes n log n. Both join the same pairs in the same order.
#include "tokenizer/bpe.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "tokenizer/utf8.h"

namespace weir::tokenizer {
namespace {

constexpr std::size_t kShort = 40;             // symbols; bpe_bench: the heap wins from about here
constexpr std::size_t kMaxScoredBytes = 1024;  // of a token, so that a hostile file cannot make its splits quadratic
constexpr std::uint32_t kEnd = 0xFFFFFFFF;

std::uint64_t pair_key(std::uint32_t left, std::uint32_t right) { return std::uint64_t{left} << 32 | right; }

std::size_t pair_slot(std::uint64_t key, std::size_t mask) {
  key *= 0x9E3779B97F4A7C15u;
  return static_cast<std::size_t>(key ^ key >> 32) & mask;
}

// Tokens that text can become without asking for special ones.
bool is_ordinary(TokenKind kind) { return kind == TokenKind::kNormal || kind == TokenKind::kUserDefined; }

}  // namespace

BpeScratch::BpeScratch() : cache_(kEntries) {}

Result<Bpe> Bpe::build(const Vocabulary& vocabulary, std::span<const MergeText> merges, const BpeOptions& options) {
  Bpe bpe;
  bpe.options_ = options;
  bpe.tokens_ = vocabulary.size();
  bpe.merges_.resize(std::bit_ceil(merges.size() * 2 + 2));
  bpe.add_vocabulary(vocabulary, false);
  WEIR_TRY(bpe.add_merges(merges));
  return bpe;
}

void Bpe::add_vocabulary(const Vocabulary& vocabulary, bool ordinary_only) {
  symbols_.reserve(static_cast<std::size_t>(vocabulary.size()) + 256);
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const std::string_view text = vocabulary.text(id);
    const bool reachable = !text.empty() && (!ordinary_only || is_ordinary(vocabulary.kind(id)));
    if (!options_.byte_level) {
      reachable ? symbols_.add(text) : symbols_.add_hidden(text);
    } else if (const auto bytes = bytes_of_alphabet(text); bytes && reachable) {
      symbols_.add(*bytes);
    } else {
      symbols_.add_hidden(text);
    }
  }
  for (int b = 0; b < 256; ++b) {
    const char byte = static_cast<char>(b);
    const auto i = static_cast<std::size_t>(b);
    byte_symbol_[i] = symbols_.find({&byte, 1});
    byte_token_[i] =
        options_.byte_level ? byte_symbol_[i] : vocabulary.find(byte_token(static_cast<std::uint8_t>(b))).value_or(StringTable::kNone);
    if (options_.byte_level && options_.join_texts && byte_symbol_[i] == StringTable::kNone) byte_symbol_[i] = symbols_.add({&byte, 1});
  }
}

Result<std::uint32_t> Bpe::side_of(std::string_view text, std::size_t merge) {
  std::optional<std::string> bytes;
  if (options_.byte_level) {
    bytes = bytes_of_alphabet(text);
    if (!bytes) return fail(ErrorCode::kCorrupt, "merge {}: \"{}\" is not in the byte alphabet", merge, text);
    text = *bytes;
  }
  const std::int32_t symbol = options_.join_texts ? symbols_.find_or_add(text) : symbols_.find(text);
  if (symbol == StringTable::kNone) return fail(ErrorCode::kCorrupt, "merge {}: \"{}\" is not a token", merge, text);
  return static_cast<std::uint32_t>(symbol);
}

Status Bpe::add_merges(std::span<const MergeText> merges) {
  std::string joined;
  for (std::size_t i = 0; i < merges.size(); ++i) {
    if (merges[i].first.empty() || merges[i].second.empty()) {
      if (options_.join_texts) continue;  // can never apply
      return fail(ErrorCode::kCorrupt, "merge {} has an empty side", i);
    }
    WEIR_ASSIGN(const std::uint32_t left, side_of(merges[i].first, i));
    WEIR_ASSIGN(const std::uint32_t right, side_of(merges[i].second, i));
    joined.assign(symbols_.text(static_cast<std::int32_t>(left)));
    joined += symbols_.text(static_cast<std::int32_t>(right));
    const std::int32_t result = options_.join_texts ? symbols_.find_or_add(joined) : symbols_.find(joined);
    if (result == StringTable::kNone) return fail(ErrorCode::kCorrupt, "merge {}: \"{}\" is not a token", i, joined);
    insert(left, right, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(result));
  }
  return {};
}

Bpe Bpe::from_scores(const Vocabulary& vocabulary, const BpeOptions& options) {
  Bpe bpe;
  bpe.options_ = options;
  bpe.tokens_ = vocabulary.size();
  bpe.merges_.resize(16);
  bpe.add_vocabulary(vocabulary, true);
  bpe.add_scored_merges(vocabulary);
  return bpe;
}

void Bpe::add_scored_merges(const Vocabulary& vocabulary) {
  std::vector<TokenId> order;
  for (TokenId id = 0; id < tokens_; ++id) {
    const std::string_view text = vocabulary.text(id);
    // Of tokens with the same text only the one that lookups give can be a result.
    if (is_ordinary(vocabulary.kind(id)) && !std::isnan(vocabulary.score(id)) && text.size() <= kMaxScoredBytes &&
        symbols_.find(text) == id)
      order.push_back(id);
  }
  std::ranges::sort(order, [&](TokenId a, TokenId b) {
    return vocabulary.score(a) != vocabulary.score(b) ? vocabulary.score(a) > vocabulary.score(b) : a < b;
  });
  const auto symbol_of = [&](std::string_view text) {  // a token, or a character
    return text.size() == utf8_length(text[0]) ? symbols_.find_or_add(text) : symbols_.find(text);
  };
  std::uint32_t rank = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const bool tie = i > 0 && vocabulary.score(order[i]) == vocabulary.score(order[i - 1]);
    if (!tie) rank = static_cast<std::uint32_t>(i);     // equal scores join from the left, whatever the token
    const std::string text(vocabulary.text(order[i]));  // the arena of symbols_ may move
    for (std::size_t cut = utf8_length(text[0]); cut < text.size(); cut += utf8_length(text[cut])) {
      const std::int32_t left = symbol_of(std::string_view(text).substr(0, cut)), right = symbol_of(std::string_view(text).substr(cut));
      if (left == StringTable::kNone || right == StringTable::kNone) continue;
      insert(static_cast<std::uint32_t>(left), static_cast<std::uint32_t>(right), rank, static_cast<std::uint32_t>(order[i]));
    }
  }
}

void Bpe::insert(std::uint32_t left, std::uint32_t right, std::uint32_t rank, std::uint32_t result) {
  if (2 * (merge_count_ + 1) > merges_.size()) {
    std::vector<Merge> old(merges_.size() * 2);
    old.swap(merges_);
    for (const Merge& merge : old) {
      if (merge.rank != kNoRank) merges_[slot_of(merge.pair)] = merge;
    }
  }
  const std::uint64_t pair = pair_key(left, right);
  Merge& merge = merges_[slot_of(pair)];
  // Of a pair listed twice, GGUF readers keep the first rank, tokenizer.json readers the last.
  if (merge.rank != kNoRank && options_.join_texts) return;
  merge_count_ += merge.rank == kNoRank;
  merge = {pair, rank, result};
}

std::size_t Bpe::slot_of(std::uint64_t pair) const {
  const std::size_t mask = merges_.size() - 1;
  std::size_t slot = pair_slot(pair, mask);
  while (merges_[slot].pair != pair && merges_[slot].rank != kNoRank) slot = (slot + 1) & mask;
  return slot;
}

const Bpe::Merge& Bpe::find(std::uint32_t left, std::uint32_t right) const { return merges_[slot_of(pair_key(left, right))]; }

void Bpe::encode(std::string_view piece, BpeScratch& scratch, std::vector<TokenId>& out) const {
  if (piece.size() > BpeScratch::kKeyBytes) return encode_uncached(piece, scratch, out);
  std::array<std::uint64_t, BpeScratch::kKeyBytes / 8> key{};
  std::memcpy(key.data(), piece.data(), piece.size());
  std::uint64_t hash = piece.size();
  for (std::uint64_t word : key) hash = (hash ^ word ^ hash >> 31) * 0x9E3779B97F4A7C15u;
  BpeScratch::Entry& entry = scratch.cache_[hash >> (64 - std::countr_zero(BpeScratch::kEntries))];
  if (entry.key != key || entry.key_size != piece.size()) {
    const std::size_t before = out.size();
    encode_uncached(piece, scratch, out);
    const std::size_t count = out.size() - before;
    if (count > BpeScratch::kIds) return;
    entry.key = key;
    entry.key_size = static_cast<std::uint8_t>(piece.size());
    entry.ids = static_cast<std::uint8_t>(count);
    std::copy_n(out.begin() + static_cast<std::ptrdiff_t>(before), count, entry.id.begin());
    return;
  }
  if (entry.ids == 1) {
    out.push_back(entry.id[0]);
  } else {
    out.insert(out.end(), entry.id.begin(), entry.id.begin() + entry.ids);
  }
}

void Bpe::encode_uncached(std::string_view piece, BpeScratch& scratch, std::vector<TokenId>& out) const {
  if (options_.ignore_merges) {
    if (const auto whole = token_of(piece)) {
      out.push_back(*whole);
      return;
    }
  }
  auto& symbols = scratch.symbols_;
  symbols.clear();
  split(piece, symbols);
  if (symbols.size() <= kShort) {
    merge_short(symbols);
  } else {
    merge_long(scratch);
  }
  for (std::uint32_t symbol : symbols) append_token(symbol, out);
}

void Bpe::split(std::string_view piece, std::vector<std::uint32_t>& symbols) const {
  if (!options_.byte_level || (options_.unknown && !options_.join_texts)) return split_characters(piece, symbols);
  for (char byte : piece) {
    const std::int32_t symbol = byte_symbol_[static_cast<unsigned char>(byte)];
    if (symbol != StringTable::kNone) symbols.push_back(static_cast<std::uint32_t>(symbol));
  }
}

// With unknowns and byte fallback, in the order in which the `tokenizers` library emits them: an unknown waits until the
// next known character.
void Bpe::split_characters(std::string_view piece, std::vector<std::uint32_t>& symbols) const {
  bool waiting = false;
  const auto flush = [&] {
    if (waiting) symbols.push_back(static_cast<std::uint32_t>(*options_.unknown));
    waiting = false;
  };
  for (std::size_t at = 0, size = 0; at < piece.size(); at += size) {
    size = options_.byte_level ? 1 : utf8_length(piece[at]);
    const std::string_view character = piece.substr(at, size);
    if (const std::int32_t symbol = symbols_.find(character); symbol != StringTable::kNone) {
      flush();
      symbols.push_back(static_cast<std::uint32_t>(symbol));
      continue;
    }
    if (options_.byte_fallback) {
      const auto token = [&](char byte) { return byte_token_[static_cast<unsigned char>(byte)]; };
      if (std::all_of(character.begin(), character.end(), [&](char byte) { return token(byte) != StringTable::kNone; })) {
        for (char byte : character) symbols.push_back(static_cast<std::uint32_t>(token(byte)));
        continue;
      }
    }
    if (!options_.unknown) continue;
    if (!options_.fuse_unknown) flush();
    waiting = true;
  }
  flush();
}

void Bpe::merge_short(std::vector<std::uint32_t>& symbols) const {
  std::uint32_t* symbol = symbols.data();
  std::size_t count = symbols.size();
  if (count < 2) return;
  std::array<std::uint32_t, kShort> rank, result;  // of the pair that starts at each symbol
  const auto look_up = [&](std::size_t at) {
    const Merge& merge = find(symbol[at], symbol[at + 1]);
    rank[at] = merge.rank;
    result[at] = merge.result;
  };
  for (std::size_t i = 0; i + 1 < count; ++i) look_up(i);
  while (count > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < count; ++i) best = rank[i] < rank[best] ? i : best;
    if (rank[best] == kNoRank) break;
    symbol[best] = result[best];
    for (std::size_t i = best + 1; i + 1 < count; ++i) {
      symbol[i] = symbol[i + 1];
      rank[i] = rank[i + 1];
      result[i] = result[i + 1];
    }
    --count;
    if (best > 0) look_up(best - 1);
    if (best + 1 < count) look_up(best);
  }
  symbols.resize(count);
}

void Bpe::merge_long(BpeScratch& scratch) const {
  auto& nodes = scratch.nodes_;
  auto& heap = scratch.heap_;
  const std::size_t count = scratch.symbols_.size();
  WEIR_CHECK(count < kEnd, "{} symbols in a piece", count);
  nodes.resize(count);
  heap.clear();
  const auto later = [](const BpeScratch::Candidate& a, const BpeScratch::Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
  };
  // Looks up the pair that starts at a node; true when it may join.
  const auto look_up = [&](std::uint32_t at) {
    BpeScratch::Node& node = nodes[at];
    node.rank = kNoRank;
    if (node.next == kEnd) return false;
    const Merge& merge = find(node.symbol, nodes[node.next].symbol);
    node.rank = merge.rank;
    node.result = merge.result;
    if (merge.rank == kNoRank) return false;
    heap.push_back({merge.rank, at});
    return true;
  };
  for (std::uint32_t i = 0; i < count; ++i) {
    nodes[i] = {scratch.symbols_[i], kNoRank, 0, i == 0 ? kEnd : i - 1, i + 1 == count ? kEnd : i + 1};
  }
  for (std::uint32_t i = 0; i < count; ++i) look_up(i);
  std::make_heap(heap.begin(), heap.end(), later);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    const auto [best, at] = heap.back();
    heap.pop_back();
    BpeScratch::Node& node = nodes[at];
    if (node.rank != best) continue;  // the pair has changed since
    BpeScratch::Node& right = nodes[node.next];
    node.symbol = node.result;
    node.next = right.next;
    if (right.next != kEnd) nodes[right.next].previous = at;
    right.rank = kNoRank;
    right.symbol = kEnd;
    if (look_up(at)) std::push_heap(heap.begin(), heap.end(), later);
    if (node.previous != kEnd && look_up(node.previous)) std::push_heap(heap.begin(), heap.end(), later);
  }
  scratch.symbols_.clear();
  for (const BpeScratch::Node& node : nodes) {
    if (node.symbol != kEnd) scratch.symbols_.push_back(node.symbol);
  }
}

void Bpe::append_token(std::uint32_t symbol, std::vector<TokenId>& out) const {
  const auto id = static_cast<std::int32_t>(symbol);
  if (id < tokens_) {
    out.push_back(id);
    return;
  }
  for (char byte : symbols_.text(id)) {  // a text that is no token falls apart; bytes without a token are dropped
    const TokenId token = byte_token_[static_cast<unsigned char>(byte)];
    if (token != StringTable::kNone) out.push_back(token);
  }
}

}  // namespace weir::tokenizer
