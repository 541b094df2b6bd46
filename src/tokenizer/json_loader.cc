// SPDX-License-Identifier: Apache-2.0
// A tokenizer from Hugging Face's tokenizer.json. Whatever is not understood is an error that names it: other ids than the
// reference's would be worse than none.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tokenizer/core_tokenizer.h"
#include "tokenizer/json_decoder.h"
#include "tokenizer/json_engine.h"
#include "tokenizer/json_roles.h"
#include "tokenizer/sentencepiece_engine.h"
#include "tokenizer/special_roles.h"
#include "tokenizer/utf8.h"

namespace weir::tokenizer {
namespace {

constexpr std::int64_t kMaxTokens = 1 << 24;
constexpr std::int64_t kMaxGap = 1 << 16;  // numbers in a row that no token has

// Reading model, added tokens and steps; the order matters, since later parts refer to earlier ones.
class JsonLoader {
 public:
  JsonLoader(const json::Object& file, const json::Object* tokenizer_config, const json::Object* config)
      : file_(file), tokenizer_config_(tokenizer_config), config_(config) {}

  Result<std::shared_ptr<const Tokenizer>> load() {
    WEIR_ASSIGN(normalizer_, JsonNormalizer::parse(json::find(file_, "normalizer")));
    WEIR_ASSIGN(pre_tokenizer_, JsonPreTokenizer::parse(json::find(file_, "pre_tokenizer")));
    const json::Value* model = json::find(file_, "model");
    if (!model) return fail(ErrorCode::kCorrupt, "'model' is missing");
    WEIR_ASSIGN(const json::Object* object, json::as_object(*model, "model"));
    WEIR_ASSIGN(const std::string type, model_type(*object));
    WEIR_TRY(type == "Unigram" ? load_scored_vocabulary(*object) : load_vocabulary(*object));
    WEIR_TRY(type == "BPE" ? load_bpe(*object) : type == "Unigram" ? load_unigram(*object) : load_wordpiece(*object));
    WEIR_TRY(load_added_tokens());
    WEIR_TRY(load_post_processor(json::find(file_, "post_processor"), 0));
    WEIR_TRY(load_json_roles(tokenizer_config_, config_, parts_.vocabulary, roles_, parts_.prefix, parts_.suffix));
    return finish();
  }

 private:
  // Old files leave the type out; what the model holds tells.
  static Result<std::string> model_type(const json::Object& model) {
    const char* guess = json::find(model, "merges") ? "BPE" : json::find(model, "unk_id") ? "Unigram" : "WordPiece";
    WEIR_ASSIGN(std::string type, json::get_string_or(model, "type", guess));
    if (type != "BPE" && type != "Unigram" && type != "WordPiece")
      return fail(ErrorCode::kUnsupported, "the tokenizer model \"{}\" is not supported", type);
    return type;
  }

  // Adds tokens at their numbers; numbers without one become gaps.
  Status fill_vocabulary(std::vector<std::pair<std::int64_t, std::string_view>> tokens) {
    std::ranges::sort(tokens);
    auto& vocabulary = parts_.vocabulary;
    if (!tokens.empty() && (tokens.front().first < 0 || tokens.back().first >= kMaxTokens)) {
      return fail(ErrorCode::kCorrupt, "token ids from {} to {}", tokens.front().first, tokens.back().first);
    }
    vocabulary.reserve(tokens.size());
    for (const auto& [id, text] : tokens) {
      if (id < vocabulary.size()) return fail(ErrorCode::kCorrupt, "two tokens have the id {}", id);
      if (valid_utf8_prefix(text) != text.size()) return fail(ErrorCode::kCorrupt, "the token {} is not UTF-8", id);
      if (id - vocabulary.size() > kMaxGap)
        return fail(ErrorCode::kCorrupt, "no tokens have the ids from {} to {}", vocabulary.size(), id - 1);
      while (vocabulary.size() < id) vocabulary.add_gap();
      text.empty() ? vocabulary.add_gap() : vocabulary.add(text, 0, TokenKind::kNormal);
    }
    return {};
  }

  Status load_vocabulary(const json::Object& model) {
    const json::Value* vocab = json::find(model, "vocab");
    if (!vocab) return fail(ErrorCode::kCorrupt, "'model.vocab' is missing");
    WEIR_ASSIGN(const json::Object* entries, json::as_object(*vocab, "model.vocab"));
    std::vector<std::pair<std::int64_t, std::string_view>> tokens;
    tokens.reserve(entries->size());
    for (const auto& entry : *entries) {
      WEIR_ASSIGN(const std::int64_t id, json::to_int(entry.value(), "model.vocab"));
      tokens.emplace_back(id, entry.key());
    }
    return fill_vocabulary(std::move(tokens));
  }

  Status load_scored_vocabulary(const json::Object& model) {
    const json::Value* vocab = json::find(model, "vocab");
    if (!vocab || !vocab->is_array()) return fail(ErrorCode::kCorrupt, "'model.vocab' is not a list");
    std::vector<std::pair<std::int64_t, std::string_view>> tokens;
    for (const json::Value& entry : vocab->get_array()) {
      const bool pair = entry.is_array() && entry.get_array().size() == 2 && entry.get_array()[0].is_string();
      if (!pair) return fail(ErrorCode::kCorrupt, "'model.vocab' holds something else than pairs of text and score");
      WEIR_ASSIGN(const double score, json::to_double(entry.get_array()[1], "a score in model.vocab"));
      if (!std::isfinite(score)) return fail(ErrorCode::kCorrupt, "a score in model.vocab is not finite");
      scores_.push_back(score);
      tokens.emplace_back(static_cast<std::int64_t>(tokens.size()), entry.get_array()[0].get_string());
    }
    return fill_vocabulary(std::move(tokens));
  }

  Status load_bpe(const json::Object& model) {
    for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      WEIR_ASSIGN(const std::string mark, json::get_string_or(model, name, ""));
      if (!mark.empty()) return fail(ErrorCode::kUnsupported, "a BPE model with {} \"{}\" is not supported", name, mark);
    }
    WEIR_ASSIGN(const double dropout, json::get_double_or(model, "dropout", 0));
    if (dropout != 0) return fail(ErrorCode::kUnsupported, "a BPE model with dropout is not supported");
    BpeOptions options;
    options.byte_level = pre_tokenizer_.byte_level();
    WEIR_ASSIGN(options.byte_fallback, json::get_bool_or(model, "byte_fallback", false));
    WEIR_ASSIGN(options.fuse_unknown, json::get_bool_or(model, "fuse_unk", false));
    WEIR_ASSIGN(options.ignore_merges, json::get_bool_or(model, "ignore_merges", false));
    WEIR_ASSIGN(options.unknown, token_named(model, "unk_token"));
    roles_.unk = options.unknown;
    if (options.byte_level && options.byte_fallback && !has_all_bytes()) {
      return fail(ErrorCode::kUnsupported, "byte fallback in a byte-level vocabulary that lacks bytes is not supported");
    }
    WEIR_ASSIGN(const std::vector<Bpe::MergeText> merges, read_merges(model));
    WEIR_ASSIGN(model_, Bpe::build(parts_.vocabulary, merges, options));
    // An unknown that waits joins with one in the next word, unless words are pieces of their own.
    words_apart_ = !options.byte_level && !options.ignore_merges && words_are_apart(parts_.vocabulary) &&
                   (!options.unknown || options.byte_fallback) && parts_.vocabulary.find("\u2581").has_value() &&
                   (!options.byte_fallback || has_all_byte_tokens());
    return {};
  }

  bool has_all_bytes() const {
    for (int b = 0; b < 256; ++b) {
      std::string text;
      append_utf8(byte_to_alphabet(static_cast<std::uint8_t>(b)), text);
      if (!parts_.vocabulary.find(text)) return false;
    }
    return true;
  }
  bool has_all_byte_tokens() const {
    for (int b = 0; b < 256; ++b) {
      if (!parts_.vocabulary.find(byte_token(static_cast<std::uint8_t>(b)))) return false;
    }
    return true;
  }

  static Result<std::vector<Bpe::MergeText>> read_merges(const json::Object& model) {
    const json::Value* list = json::find(model, "merges");
    if (!list || !list->is_array()) return fail(ErrorCode::kCorrupt, "'model.merges' is not a list");
    std::vector<Bpe::MergeText> merges;
    merges.reserve(list->get_array().size());
    for (const json::Value& entry : list->get_array()) {
      if (entry.is_string()) {  // "left right"
        const std::string_view line = entry.get_string();
        const std::size_t space = line.find(' ');
        if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos) {
          return fail(ErrorCode::kCorrupt, "merge {}: \"{}\" is not two tokens", merges.size(), line);
        }
        merges.emplace_back(line.substr(0, space), line.substr(space + 1));
      } else if (entry.is_array() && entry.get_array().size() == 2 && entry.get_array()[0].is_string() &&
                 entry.get_array()[1].is_string()) {
        merges.emplace_back(entry.get_array()[0].get_string(), entry.get_array()[1].get_string());
      } else {
        return fail(ErrorCode::kCorrupt, "merge {} is neither a string nor a pair", merges.size());
      }
    }
    return merges;
  }

  // The id of the token that a member names; absent when it is null.
  Result<std::optional<TokenId>> token_named(const json::Object& model, std::string_view name) const {
    WEIR_ASSIGN(const std::string text, json::get_string_or(model, name, ""));
    if (text.empty()) return std::nullopt;
    const auto id = parts_.vocabulary.find(text);
    if (!id) return fail(ErrorCode::kCorrupt, "the {} \"{}\" is not in the vocabulary", name, text);
    return id;
  }

  Status load_unigram(const json::Object& model) {
    WEIR_ASSIGN(const std::int64_t unknown, json::get_int_or(model, "unk_id", -1));
    if (unknown < 0 || unknown >= parts_.vocabulary.size())
      return fail(ErrorCode::kUnsupported, "a unigram model without a valid unk_id is not supported");
    WEIR_ASSIGN(const bool byte_fallback, json::get_bool_or(model, "byte_fallback", false));
    if (byte_fallback && !has_all_byte_tokens())
      return fail(ErrorCode::kUnsupported, "byte fallback in a vocabulary that lacks bytes is not supported");
    std::vector<UnigramToken> tokens;
    double worst = std::numeric_limits<double>::infinity();
    for (TokenId id = 0; id < parts_.vocabulary.size(); ++id) {
      tokens.push_back({id, scores_[static_cast<std::size_t>(id)]});
      worst = std::min(worst, tokens.back().score);
    }
    model_ = Unigram(parts_.vocabulary, tokens, worst, static_cast<TokenId>(unknown), byte_fallback);
    roles_.unk = static_cast<TokenId>(unknown);
    return {};
  }

  Status load_wordpiece(const json::Object& model) {
    WordPieceOptions options;
    WEIR_ASSIGN(const auto unknown, token_named(model, "unk_token"));
    if (!unknown) return fail(ErrorCode::kCorrupt, "a WordPiece model without unk_token");
    options.unknown = *unknown;
    WEIR_ASSIGN(options.continuation_mark, json::get_string_or(model, "continuing_subword_prefix", "##"));
    WEIR_ASSIGN(const std::int64_t most, json::get_int_or(model, "max_input_chars_per_word", 100));
    options.max_characters = static_cast<std::size_t>(std::max<std::int64_t>(most, 0));
    model_ = WordPiece(parts_.vocabulary, std::move(options));
    roles_.unk = *unknown;
    return {};
  }

  Status load_added_tokens() {
    const json::Value* list = json::find(file_, "added_tokens");
    if (!list) return {};
    if (!list->is_array()) return fail(ErrorCode::kCorrupt, "'added_tokens' is not a list");
    std::vector<std::pair<std::int64_t, const json::Object*>> tokens;
    for (const json::Value& value : list->get_array()) {
      WEIR_ASSIGN(const json::Object* object, json::as_object(value, "added_tokens"));
      WEIR_ASSIGN(const std::int64_t id, json::get_int(*object, "id"));
      tokens.emplace_back(id, object);
    }
    std::ranges::sort(tokens, {}, &std::pair<std::int64_t, const json::Object*>::first);
    for (const auto& [id, object] : tokens) WEIR_TRY(add_token(id, *object));
    return {};
  }

  Status add_token(std::int64_t id, const json::Object& object) {
    WEIR_ASSIGN(const std::string content, json::get_string(object, "content"));
    auto& vocabulary = parts_.vocabulary;
    if (id < 0 || id >= kMaxTokens) return fail(ErrorCode::kCorrupt, "the added token \"{}\" has the id {}", content, id);
    if (content.empty()) return {};
    const auto known = vocabulary.find(content);
    if (known && *known != id) return fail(ErrorCode::kCorrupt, "the added token \"{}\" has the ids {} and {}", content, *known, id);
    if (!known && id < vocabulary.size())
      return fail(ErrorCode::kCorrupt, "the added token \"{}\" has the id {} of another token", content, id);
    SpecialToken token{.id = static_cast<TokenId>(id)};
    WEIR_ASSIGN(token.control, json::get_bool_or(object, "special", false));
    WEIR_ASSIGN(token.strip_left, json::get_bool_or(object, "lstrip", false));
    WEIR_ASSIGN(token.strip_right, json::get_bool_or(object, "rstrip", false));
    WEIR_ASSIGN(token.single_word, json::get_bool_or(object, "single_word", false));
    WEIR_ASSIGN(const bool normalized, json::get_bool_or(object, "normalized", !token.control));
    const TokenKind kind = token.control ? TokenKind::kControl : TokenKind::kUserDefined;
    if (id - vocabulary.size() > kMaxGap)
      return fail(ErrorCode::kCorrupt, "no tokens have the ids from {} to {}", vocabulary.size(), id - 1);
    if (known) {
      vocabulary.set_kind(*known, kind);
    } else {
      while (vocabulary.size() < id) vocabulary.add_gap();
      vocabulary.add(content, 0, kind);
    }
    added_.resize(static_cast<std::size_t>(vocabulary.size()));
    added_[static_cast<std::size_t>(id)] = true;
    if (!normalized) return parts_.special.add(content, token);
    std::string text = content;
    normalizer_.apply(text);
    return normalized_tokens_.add(text, token);
  }

  Result<TokenId> checked_id(const json::Value& value, std::string_view what) const {
    WEIR_ASSIGN(const std::int64_t id, json::to_int(value, what));
    if (id < 0 || id >= parts_.vocabulary.size()) return fail(ErrorCode::kCorrupt, "{} names the id {}, which is no token", what, id);
    return static_cast<TokenId>(id);
  }

  Status load_post_processor(const json::Value* value, int depth) {
    if (!value) return {};
    WEIR_ASSIGN(const json::Object* object, json::as_object(*value, "post_processor"));
    WEIR_ASSIGN(const std::string type, json::get_string(*object, "type"));
    if (type == "ByteLevel") return {};  // changes offsets only
    if (type == "TemplateProcessing") return load_template(*object);
    if (type == "BertProcessing" || type == "RobertaProcessing") return load_pair(*object, type == "RobertaProcessing");
    if (type != "Sequence") return fail(ErrorCode::kUnsupported, "the post_processor \"{}\" is not supported", type);
    const json::Value* list = json::find(*object, "processors");
    if (!list || !list->is_array()) return fail(ErrorCode::kCorrupt, "a post_processor Sequence without a list of processors");
    if (depth == 8) return fail(ErrorCode::kUnsupported, "post_processors nested {} deep", depth);
    for (const json::Value& inner : list->get_array()) WEIR_TRY(load_post_processor(&inner, depth + 1));
    return {};
  }

  // "sep" and "cls" as [text, id].
  Status load_pair(const json::Object& object, bool roberta) {
    for (const char* name : {"cls", "sep"}) {
      const json::Value* pair = json::find(object, name);
      if (!pair || !pair->is_array() || pair->get_array().size() != 2)
        return fail(ErrorCode::kCorrupt, "the post_processor's {} is not a pair", name);
      WEIR_ASSIGN(const TokenId id, checked_id(pair->get_array()[1], "the post_processor"));
      name[0] == 'c' ? static_cast<void>(parts_.prefix.insert(parts_.prefix.begin(), id)) : parts_.suffix.push_back(id);
    }
    using enum PairItem::Kind;
    const TokenId cls = parts_.prefix.front(), sep = parts_.suffix.back();
    roles_.pair = {{kToken, cls}, {kFirst}, {kToken, sep}, {kSecond, 0, 1}, {kToken, sep, 1}};
    if (roberta) roles_.pair = {{kToken, cls}, {kFirst}, {kToken, sep}, {kToken, sep}, {kSecond}, {kToken, sep}};
    return {};
  }

  Status load_template(const json::Object& object) {
    const json::Value* single = json::find(object, "single");
    if (!single || !single->is_array()) return fail(ErrorCode::kCorrupt, "TemplateProcessing without a list 'single'");
    std::vector<TokenId> before, after;
    int sequences = 0;
    for (const json::Value& value : single->get_array()) {
      WEIR_ASSIGN(const json::Object* item, json::as_object(value, "TemplateProcessing"));
      if (const json::Value* sequence = json::find(*item, "Sequence"); sequence && sequence->is_object()) {
        WEIR_ASSIGN(const std::string name, json::get_string(sequence->get_object(), "id"));
        if (name != "A") return fail(ErrorCode::kUnsupported, "TemplateProcessing of a single text names the sequence \"{}\"", name);
        ++sequences;
      } else if (const json::Value* special = json::find(*item, "SpecialToken"); special && special->is_object()) {
        WEIR_ASSIGN(const std::string name, json::get_string(special->get_object(), "id"));
        WEIR_TRY(add_template_ids(object, name, sequences == 0 ? before : after));
      } else {
        return fail(ErrorCode::kUnsupported, "TemplateProcessing holds something else than Sequence and SpecialToken");
      }
    }
    if (sequences != 1) return fail(ErrorCode::kUnsupported, "TemplateProcessing has the text {} times", sequences);
    parts_.prefix.insert(parts_.prefix.begin(), before.begin(), before.end());
    parts_.suffix.insert(parts_.suffix.end(), after.begin(), after.end());
    return load_pair_template(object);
  }

  Status load_pair_template(const json::Object& object) {
    const json::Value* pair = json::find(object, "pair");
    if (!pair) return {};
    if (!pair->is_array()) return fail(ErrorCode::kCorrupt, "TemplateProcessing: 'pair' is not a list");
    roles_.pair.clear();
    for (const json::Value& value : pair->get_array()) WEIR_TRY(add_pair_items(object, value));
    const auto count = [&](PairItem::Kind kind) { return std::ranges::count(roles_.pair, kind, &PairItem::kind); };
    if (count(PairItem::Kind::kFirst) == 1 && count(PairItem::Kind::kSecond) == 1) return {};
    return fail(ErrorCode::kCorrupt, "TemplateProcessing: 'pair' does not hold each of its texts once");
  }

  Status add_pair_items(const json::Object& object, const json::Value& value) {
    WEIR_ASSIGN(const json::Object* item, json::as_object(value, "TemplateProcessing"));
    const json::Value* sequence = json::find(*item, "Sequence");
    const json::Value* part = sequence ? sequence : json::find(*item, "SpecialToken");
    if (!part || !part->is_object())
      return fail(ErrorCode::kUnsupported, "TemplateProcessing holds something else than Sequence and SpecialToken");
    WEIR_ASSIGN(const std::string name, json::get_string(part->get_object(), "id"));
    WEIR_ASSIGN(const std::int64_t type, json::get_int_or(part->get_object(), "type_id", 0));
    if (type < 0 || type > 255) return fail(ErrorCode::kCorrupt, "TemplateProcessing has the type_id {}", type);
    const auto kind = static_cast<std::int32_t>(type);
    if (sequence) {
      roles_.pair.push_back({name == "A" ? PairItem::Kind::kFirst : PairItem::Kind::kSecond, 0, kind});
      return {};
    }
    std::vector<TokenId> ids;
    WEIR_TRY(add_template_ids(object, name, ids));
    for (const TokenId id : ids) roles_.pair.push_back({PairItem::Kind::kToken, id, kind});
    return {};
  }

  Status add_template_ids(const json::Object& object, std::string_view name, std::vector<TokenId>& ids) const {
    const json::Value* tokens = json::find(object, "special_tokens");
    const json::Value* token = tokens && tokens->is_object() ? json::find(tokens->get_object(), name) : nullptr;
    const json::Value* list = token && token->is_object() ? json::find(token->get_object(), "ids") : nullptr;
    if (!list || !list->is_array()) return fail(ErrorCode::kCorrupt, "TemplateProcessing names \"{}\" but does not say its ids", name);
    for (const json::Value& value : list->get_array()) {
      WEIR_ASSIGN(const TokenId id, checked_id(value, "TemplateProcessing"));
      ids.push_back(id);
    }
    return {};
  }

  Result<std::shared_ptr<const Tokenizer>> finish() {
    auto& vocabulary = parts_.vocabulary;
    if (vocabulary.size() == 0) return fail(ErrorCode::kCorrupt, "the vocabulary is empty");
    WEIR_ASSIGN(JsonDecoder decoder, JsonDecoder::parse(json::find(file_, "decoder")));
    roles_.strip_leading_space = decoder.strips_leading_space();
    added_.resize(static_cast<std::size_t>(vocabulary.size()));
    parts_.bytes.reserve(static_cast<std::size_t>(vocabulary.size()));
    for (TokenId id = 0; id < vocabulary.size(); ++id) {
      const auto i = static_cast<std::size_t>(id);
      parts_.bytes.add_hidden(added_[i] ? std::string(vocabulary.text(id)) : decoder.bytes_of(vocabulary.text(id)));
      parts_.hidden.push_back(vocabulary.kind(id) == TokenKind::kControl);
    }
    find_end_tokens(vocabulary, roles_);
    parts_.plain = parts_.special;
    parts_.decoder = std::make_unique<JsonDecoder>(std::move(decoder));
    parts_.engine = std::make_unique<JsonEngine>(std::move(normalizer_), std::move(normalized_tokens_), std::move(pre_tokenizer_),
                                                 std::move(*model_), words_apart_);
    return std::make_shared<CoreTokenizer>(std::move(roles_), std::move(parts_));
  }

  const json::Object& file_;
  const json::Object* tokenizer_config_;
  const json::Object* config_;
  JsonNormalizer normalizer_;
  JsonPreTokenizer pre_tokenizer_;
  std::optional<JsonModel> model_;
  bool words_apart_ = false;
  std::vector<double> scores_;
  std::vector<bool> added_;
  SpecialTokens normalized_tokens_;
  SpecialRoles roles_;
  TokenizerParts parts_;
};

}  // namespace

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_json(std::string_view tokenizer_json, const json::Object* tokenizer_config,
                                                              const json::Object* config) {
  WEIR_ASSIGN(const json::Value value, json::parse(tokenizer_json, "tokenizer.json"));
  WEIR_ASSIGN(const json::Object* object, json::as_object(value, "tokenizer.json"));
  auto tokenizer = JsonLoader(*object, tokenizer_config, config).load();
  if (!tokenizer) return std::unexpected(std::move(tokenizer.error()).with_context("tokenizer.json"));
  return tokenizer;
}

}  // namespace weir::tokenizer
