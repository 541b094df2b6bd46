// SPDX-License-Identifier: Apache-2.0
// A tokenizer from the tokenizer.ggml.* keys of a GGUF file. What the keys leave out follows from the kind of model, as
// llama.cpp, which defines the format, reads them.
#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <limits>

#include "base/log.h"
#include "tokenizer/byte_bpe_engine.h"
#include "tokenizer/core_tokenizer.h"
#include "tokenizer/sentencepiece_engine.h"
#include "tokenizer/special_roles.h"
#include "tokenizer/wordpiece_engine.h"

namespace weir::tokenizer {
namespace {

using formats::GgufFile;

TokenKind kind_of(std::int64_t type) {
  switch (type) {
    case 2: return TokenKind::kUnknown;
    case 3: return TokenKind::kControl;
    case 4: return TokenKind::kUserDefined;
    case 5: return TokenKind::kUnused;
    case 6: return TokenKind::kByte;
    default: return TokenKind::kNormal;
  }
}

std::string unescape_spaces(std::string_view text) {
  constexpr std::string_view kSpace = "\u2581";
  std::string out;
  while (!text.empty()) {
    const std::size_t at = std::min(text.find(kSpace), text.size());
    out += text.substr(0, at);
    if (at < text.size()) out += ' ';
    text.remove_prefix(std::min(at + kSpace.size(), text.size()));
  }
  return out;
}

class GgufLoader {
 public:
  explicit GgufLoader(const GgufFile& file) : file_(file) {}

  Result<std::shared_ptr<const Tokenizer>> load() {
    WEIR_ASSIGN(model_, file_.get_string("tokenizer.ggml.model"));
    WEIR_TRY(load_vocabulary());
    WEIR_TRY(load_model());
    find_end_tokens(parts_.vocabulary, roles_);
    WEIR_TRY(place_around());
    WEIR_TRY(add_special_tokens());
    return finish();
  }

 private:
  static std::string key(std::string_view name) { return fmt::format("tokenizer.ggml.{}", name); }

  Status load_vocabulary() {
    const auto* tokens = file_.get_strings(key("tokens"));
    if (!tokens) return fail(ErrorCode::kCorrupt, "tokenizer.ggml.tokens is missing or not a list of strings");
    if (tokens->empty() || tokens->size() > static_cast<std::size_t>(std::numeric_limits<TokenId>::max() / 2)) {
      return fail(ErrorCode::kCorrupt, "tokenizer.ggml.tokens has {} entries", tokens->size());
    }
    const auto types = file_.get_ints(key("token_type"));
    const auto scores = file_.get_doubles(key("scores"));
    if (types && types->size() < tokens->size())
      return fail(ErrorCode::kCorrupt, "tokenizer.ggml.token_type has {} entries for {} tokens", types->size(), tokens->size());
    if (scores && scores->size() < tokens->size())
      return fail(ErrorCode::kCorrupt, "tokenizer.ggml.scores has {} entries for {} tokens", scores->size(), tokens->size());
    auto& vocabulary = parts_.vocabulary;
    vocabulary.reserve(tokens->size());
    for (std::size_t i = 0; i < tokens->size(); ++i) {
      const float score = scores ? static_cast<float>((*scores)[i]) : 0.0f;
      const TokenKind kind = types ? kind_of((*types)[i]) : TokenKind::kNormal;
      if ((*tokens)[i].empty()) {
        vocabulary.add_gap();
      } else {
        vocabulary.add((*tokens)[i], score, kind);
      }
    }
    return {};
  }

  Status load_model() {
    if (model_ == "gpt2" || model_ == "gemma4") return load_bpe();
    if (model_ == "llama") return load_spm();
    if (model_ == "t5") return load_unigram();
    if (model_ == "bert") return load_wordpiece();
    return fail(ErrorCode::kUnsupported, "the tokenizer model \"{}\" is not known", model_);
  }

  Status load_spm() {
    roles_.bos = 1, roles_.eos = 2, roles_.unk = 0;
    roles_.add_bos = true;
    WEIR_TRY(load_roles());
    WEIR_ASSIGN(const bool space_prefix, file_.get_bool_or(key("add_space_prefix"), true));
    roles_.strip_leading_space = space_prefix;
    const BpeOptions options{.byte_level = false, .byte_fallback = true, .fuse_unknown = true, .join_texts = true, .unknown = roles_.unk};
    parts_.engine = std::make_unique<SpmBpeEngine>(Bpe::from_scores(parts_.vocabulary, options), parts_.vocabulary, space_prefix);
    return {};
  }

  Status load_unigram() {
    roles_.eos = 1, roles_.unk = 2, roles_.pad = 0;
    roles_.add_eos = true;
    WEIR_TRY(load_roles());
    UnigramOptions options;
    WEIR_ASSIGN(options.space_prefix, file_.get_bool_or(key("add_space_prefix"), false));
    WEIR_ASSIGN(options.merge_spaces, file_.get_bool_or(key("remove_extra_whitespaces"), false));
    roles_.strip_leading_space = options.space_prefix || options.merge_spaces;
    Charsmap charsmap;
    if (const auto bytes = file_.get_ints(key("precompiled_charsmap")); bytes && !bytes->empty()) {
      WEIR_ASSIGN(charsmap, Charsmap::parse(std::string(bytes->begin(), bytes->end())));
    }
    std::vector<UnigramToken> tokens;
    Trie user_defined;
    double worst = std::numeric_limits<float>::max();
    for (TokenId id = 0; id < parts_.vocabulary.size(); ++id) {
      const TokenKind kind = parts_.vocabulary.kind(id);
      const double score = static_cast<double>(parts_.vocabulary.score(id));
      if (kind == TokenKind::kNormal) worst = std::min(worst, score);
      if (kind == TokenKind::kUserDefined) user_defined.add(parts_.vocabulary.text(id), id);
      if (kind == TokenKind::kUserDefined) tokens.push_back({id, 0.0});
      if (kind == TokenKind::kNormal || kind == TokenKind::kUnused) tokens.push_back({id, score});
    }
    Unigram model(parts_.vocabulary, tokens, worst, roles_.unk, false);
    parts_.engine = std::make_unique<UnigramEngine>(std::move(model), std::move(charsmap), std::move(user_defined), options);
    return {};
  }

  Status load_wordpiece() {
    roles_.bos = 101, roles_.unk = 100, roles_.sep = 102, roles_.pad = 0, roles_.mask = 103;
    roles_.add_bos = true;
    WEIR_TRY(load_roles());
    if (!roles_.unk) return fail(ErrorCode::kCorrupt, "a \"bert\" vocabulary without an unknown token");
    BertOptions options{.as_gguf = true};
    WEIR_ASSIGN(options.lowercase, file_.get_bool_or(key("normalizer.lowercase"), true));
    WEIR_ASSIGN(options.strip_accents, file_.get_bool_or(key("normalizer.strip_accents"), options.lowercase));
    WordPieceOptions pieces{.start_mark = "\u2581", .continuation_mark = "", .unknown = *roles_.unk, .max_characters = std::string::npos};
    parts_.engine = std::make_unique<WordPieceEngine>(WordPiece(parts_.vocabulary, std::move(pieces)), options);
    roles_.strip_leading_space = true;
    return {};
  }

  Status load_bpe() {
    WEIR_ASSIGN(std::string name, file_.get_string_or(key("pre"), "default"));
    if (model_ == "gemma4") name = "gemma4";
    WEIR_ASSIGN(PreTokenizer pre, PreTokenizer::named(name));
    const PreTokenizerTraits traits = pre.traits();
    roles_.bos = roles_.eos = 11;  // the format's default
    roles_.add_bos = traits.add_bos;
    if (name == "jina-v2-de" || name == "jina-v2-es" || name == "jina-v2-code") mask_strips_left_ = "<mask>";
    if (name == "modern-bert") mask_strips_left_ = "[MASK]";
    WEIR_TRY(load_roles());
    const auto* lines = file_.get_strings(key("merges"));
    if (!lines) return fail(ErrorCode::kCorrupt, "tokenizer.ggml.merges is missing or not a list of strings");
    std::vector<Bpe::MergeText> merges;
    merges.reserve(lines->size());
    for (std::string_view line : *lines) {
      const std::size_t space = line.find(' ', 1);
      if (space == std::string_view::npos) {
        merges.emplace_back();
      } else {
        merges.emplace_back(line.substr(0, space), line.substr(space + 1));
      }
    }
    const BpeOptions options{
        .byte_level = traits.byte_level, .ignore_merges = traits.ignore_merges, .byte_fallback = !traits.byte_level, .join_texts = true};
    WEIR_ASSIGN(Bpe bpe, Bpe::build(parts_.vocabulary, merges, options));
    byte_level_ = traits.byte_level;
    parts_.engine = std::make_unique<ByteBpeEngine>(std::move(bpe), std::move(pre), std::move(name));
    return {};
  }

  Status load_roles() {
    for (const auto& [name, place] : {std::pair("bos_token_id", &roles_.bos),
                                      {"eos_token_id", &roles_.eos},
                                      {"eot_token_id", &roles_.eot},
                                      {"padding_token_id", &roles_.pad},
                                      {"unknown_token_id", &roles_.unk},
                                      {"seperator_token_id", &roles_.sep},  // spelt so in the format
                                      {"cls_token_id", &roles_.cls},
                                      {"mask_token_id", &roles_.mask}}) {
      WEIR_ASSIGN(const std::int64_t id, file_.get_int_or(key(name), place->value_or(-1)));
      const bool known = id >= 0 && id < parts_.vocabulary.size();
      if (!known && file_.has(key(name)))
        log::warn("{} is {}, but the vocabulary has {} tokens: the model is used without it", key(name), id, parts_.vocabulary.size());
      *place = known ? std::optional(static_cast<TokenId>(id)) : std::nullopt;
    }
    WEIR_ASSIGN(roles_.add_bos, file_.get_bool_or(key("add_bos_token"), roles_.add_bos));
    WEIR_ASSIGN(roles_.add_eos, file_.get_bool_or(key("add_eos_token"), roles_.add_eos));
    WEIR_ASSIGN(std::string chat_template, file_.get_string_or("tokenizer.chat_template", ""));
    if (!chat_template.empty()) roles_.chat_template = std::move(chat_template);
    WEIR_ASSIGN(const std::int64_t eom, file_.get_int_or(key("eom_token_id"), -1));
    if (eom >= 0 && eom < parts_.vocabulary.size()) roles_.end_of_generation.push_back(static_cast<TokenId>(eom));
    return {};
  }

  Status place_around() {
    if (model_ == "bert") {
      if (!roles_.bos || !roles_.sep) return fail(ErrorCode::kCorrupt, "a \"bert\" vocabulary without CLS or SEP");
      parts_.prefix.push_back(*roles_.bos);
      parts_.suffix.push_back(*roles_.sep);
      using enum PairItem::Kind;
      roles_.pair = {{kToken, *roles_.bos}, {kFirst}, {kToken, *roles_.sep}, {kSecond, 0, 1}, {kToken, *roles_.sep, 1}};
      return {};
    }
    if (roles_.add_bos && roles_.bos) parts_.prefix.push_back(*roles_.bos);
    if (roles_.add_eos && roles_.eos) parts_.suffix.push_back(*roles_.eos);
    return place_around_pairs();
  }

  // BOS first EOS SEP second EOS, of which there is what the file asks for.
  Status place_around_pairs() {
    WEIR_ASSIGN(const bool add_sep, file_.get_bool_or(key("add_sep_token"), false));
    const auto put = [&](bool wanted, std::optional<TokenId> id) {
      if (wanted && id) roles_.pair.push_back({PairItem::Kind::kToken, *id, 0});
    };
    put(roles_.add_bos, roles_.bos);
    roles_.pair.push_back({PairItem::Kind::kFirst, 0, 0});
    put(roles_.add_eos, roles_.eos);
    put(add_sep, roles_.sep);
    roles_.pair.push_back({PairItem::Kind::kSecond, 0, 0});
    put(roles_.add_eos, roles_.eos);
    return {};
  }

  Status add_special_tokens() {
    WEIR_ASSIGN(std::string name, file_.get_string_or("general.name", ""));
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const bool phi3 = name.find("phi-3") != std::string::npos || name.find("phi3") != std::string::npos;
    for (TokenId id = 0; id < parts_.vocabulary.size(); ++id) {
      const TokenKind kind = parts_.vocabulary.kind(id);
      if (kind != TokenKind::kControl && kind != TokenKind::kUnknown && kind != TokenKind::kUserDefined) continue;
      const std::string_view text = parts_.vocabulary.text(id);
      SpecialToken token{.id = id, .control = kind != TokenKind::kUserDefined};
      // The format has no place for these flags; the models' tokenizer.json have them.
      token.strip_right = phi3 && text != "<unk>" && text != "<s>" && text != "<|endoftext|>";
      token.strip_left = !mask_strips_left_.empty() && text == mask_strips_left_;
      WEIR_TRY(parts_.special.add(text, token));
      if (!token.control) WEIR_TRY(parts_.plain.add(text, token));
    }
    return {};
  }

  std::string bytes_of(TokenId id) const {
    const std::string_view text = parts_.vocabulary.text(id);
    switch (parts_.vocabulary.kind(id)) {
      case TokenKind::kNormal: return byte_level_ ? bytes_of_alphabet(text).value_or(std::string(text)) : unescape_spaces(text);
      case TokenKind::kByte:
        if (const auto byte = parse_byte_token(text)) return std::string(1, static_cast<char>(*byte));
        return std::string(text);
      case TokenKind::kUnused: return {};
      default: return std::string(text);
    }
  }

  std::shared_ptr<const Tokenizer> finish() {
    parts_.bytes.reserve(static_cast<std::size_t>(parts_.vocabulary.size()));
    for (TokenId id = 0; id < parts_.vocabulary.size(); ++id) {
      parts_.bytes.add_hidden(bytes_of(id));
      const TokenKind kind = parts_.vocabulary.kind(id);
      parts_.hidden.push_back(kind == TokenKind::kControl || kind == TokenKind::kUnknown);
    }
    return std::make_shared<CoreTokenizer>(std::move(roles_), std::move(parts_));
  }

  const GgufFile& file_;
  std::string model_;
  TokenizerParts parts_;
  SpecialRoles roles_;
  bool byte_level_ = false;
  std::string_view mask_strips_left_;  // the mask token's text where it takes the space before it
};

}  // namespace

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_gguf(const formats::GgufFile& file) { return GgufLoader(file).load(); }

}  // namespace weir::tokenizer
