// SPDX-License-Identifier: Apache-2.0
// Text to token ids and back. One type for all vocabularies: byte-level BPE, SentencePiece BPE and unigram, WordPiece.
// Immutable after loading, so threads may share it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/json.h"
#include "base/result.h"
#include "formats/gguf_reader.h"

namespace weir::tokenizer {

struct EncodeOptions {
  bool add_special = true;     // BOS, EOS, CLS, SEP as the model wants them
  bool parse_special = false;  // special tokens written out in the text become their ids
};

enum class TokenKind { kNormal, kUnknown, kControl, kUserDefined, kUnused, kByte };

// A piece of what stands around two texts that are read together; `type` is BERT's token type.
struct PairItem {
  enum class Kind { kToken, kFirst, kSecond } kind = Kind::kToken;
  TokenId id = 0;
  std::int32_t type = 0;
};

// What special tokens are for, and what the files say around the vocabulary. Set by the loader.
struct SpecialRoles {
  // Ids of special roles, absent when the model has none.
  std::optional<TokenId> bos, eos, eot, pad, unk, sep, cls, mask;
  std::vector<TokenId> end_of_generation;  // any of these ends an answer: eos, eot, <|im_end|>, …; sorted
  bool add_bos = false, add_eos = false;
  std::vector<TokenId> text_prefix, text_suffix;  // put around a text with add_special
  std::vector<PairItem> pair;                     // empty: prefix, first, second, suffix
  bool strip_leading_space = false;               // decoding drops the first space (SentencePiece)
  std::optional<std::string> chat_template;       // from the file, when it has one
};

class Tokenizer : public SpecialRoles {
 public:
  // From a GGUF file's tokenizer.ggml.* keys. kUnsupported names a model or pre-tokeniser that is not known.
  static Result<std::shared_ptr<const Tokenizer>> from_gguf(const formats::GgufFile& file);
  // From tokenizer.json, with tokenizer_config.json and config.json (which may be null) for special tokens.
  static Result<std::shared_ptr<const Tokenizer>> from_json(std::string_view tokenizer_json, const json::Object* tokenizer_config,
                                                            const json::Object* config);
  virtual ~Tokenizer() = default;

  // Invalid UTF-8 in the text becomes U+FFFD, one for each maximal bad part. Never fails.
  virtual std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options = {}) const = 0;
  // The text of the ids. Control tokens are left out unless `special`. Ids out of range are skipped.
  virtual std::string decode(std::span<const TokenId> ids, bool special = false) const = 0;
  // The bytes that a token adds to the text (for byte-level tokens perhaps a part of a character); empty for control tokens
  // unless `special`. SentencePiece's leading-space mark is a space here; a stream decoder drops the text's first one.
  virtual std::string token_bytes(TokenId id, bool special = false) const = 0;
  // The token as the vocabulary writes it.
  virtual std::string_view token_text(TokenId id) const = 0;
  virtual TokenKind kind(TokenId id) const = 0;
  virtual std::optional<TokenId> find(std::string_view token_text) const = 0;

  virtual std::int32_t vocab_size() const = 0;
  virtual std::string description() const = 0;  // "byte-level BPE, pre-tokeniser smollm, 49152 tokens"
};

// Turns a stream of ids into text that is always whole UTF-8 characters: bytes of an unfinished character are held back
// until the next tokens finish it or prove it invalid (then U+FFFD).
class StreamDecoder {
 public:
  explicit StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool special = false);
  std::string push(TokenId id);
  std::string finish();  // what is held back, as U+FFFD

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  bool special_;
  bool at_start_ = true;
  std::string pending_;
};

}  // namespace weir::tokenizer
