// SPDX-License-Identifier: Apache-2.0
#include "loadgen/prompts.h"

#include <algorithm>
#include <cmath>

#include "formats/gguf_reader.h"
#include "formats/hf_folder.h"

namespace weir::loadgen {
namespace {

constexpr std::int64_t kMaxTokens = 4'000'000, kMaxTurns = 1000;
constexpr std::size_t kMaxWords = 4096, kMaxTotalTokens = 2'000'000'000;

constexpr std::string_view kBuiltIn =
    "the and of to in is that for it with as was on be at by this have from or had not but what all were when we there can an your which "
    "their said if do will each about how up out them then she many some so these would other into has more her two like him see time "
    "could no make than first been its who now people my made over did down only way find use may water long little very after words "
    "called just where most know get through back much before go good new write our used me man too any day same right look think also "
    "around another came come work three word must because does part even place well such here take why things help put years different";

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

std::int64_t count_words(std::string_view text) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < text.size(); ++i) count += !is_space(text[i]) && (i == 0 || is_space(text[i - 1]));
  return count;
}

// Lower-case words that are one token both at a text's start and behind a space.
std::vector<std::string> usable_words(const tokenizer::Tokenizer& tokenizer) {
  std::vector<std::string> words;
  const tokenizer::EncodeOptions plain{.add_special = false, .parse_special = false};
  const auto one_token = [&](const std::string& text) { return tokenizer.encode(text, plain).size() == 1; };
  for (TokenId id = 0; id < tokenizer.vocab_size() && words.size() < kMaxWords; ++id) {
    std::string word = tokenizer.token_bytes(id);
    if (word.starts_with(' ')) word.erase(0, 1);
    if (word.size() < 3 || word.size() > 10 || !std::all_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; }))
      continue;
    const auto two = tokenizer.encode("the " + word, plain), alone = tokenizer.encode("the", plain);
    if (one_token(word) && two.size() == alone.size() + 1) words.push_back(std::move(word));
  }
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  return words;
}

std::int64_t draw_length(const Distribution& distribution, Random& random, std::int64_t least, std::int64_t most) {
  return std::llround(std::clamp(distribution.draw(random), static_cast<double>(least), static_cast<double>(most)));
}

Turn make_turn(std::string_view text, std::int64_t max_tokens, std::int64_t prompt_tokens, bool chat) {
  return {.content = chat ? message("user", text) : json_string(text), .max_tokens = max_tokens, .prompt_tokens = prompt_tokens};
}

Status check(const PromptOptions& options) {
  if (options.count < 1) return fail(ErrorCode::kInvalidArgument, "at least one prompt");
  if (options.shared_prefix < 0 || options.shared_prefix > 1)
    return fail(ErrorCode::kInvalidArgument, "the share of common prefix is 0 to 1");
  if (options.prefix_groups < 1) return fail(ErrorCode::kInvalidArgument, "at least one group of prefixes");
  if (!options.chat && options.turns.mean() > 1) return fail(ErrorCode::kInvalidArgument, "more than one turn needs chat completions");
  if (static_cast<double>(options.count) * std::max(1.0, options.input_tokens.mean()) > static_cast<double>(kMaxTotalTokens))
    return fail(ErrorCode::kExhausted, "the prompts would have more than {} tokens together: fewer (--prompts), or shorter ones",
                kMaxTotalTokens);
  return {};
}

}  // namespace

Result<TokenizerPtr> load_tokenizer(const std::filesystem::path& path) {
  if (formats::HfFolder::looks_like(path)) {
    WEIR_ASSIGN(const auto folder, formats::HfFolder::open_without_weights(path));
    if (!folder.tokenizer_json) return fail(ErrorCode::kNotFound, "{} has no tokenizer.json", path.string());
    return tokenizer::Tokenizer::from_json(*folder.tokenizer_json, folder.tokenizer_config ? &*folder.tokenizer_config : nullptr,
                                           &folder.config);
  }
  WEIR_ASSIGN(const auto file, formats::GgufFile::open(path));
  return tokenizer::Tokenizer::from_gguf(file);
}

Vocabulary::Vocabulary(TokenizerPtr tokenizer) : tokenizer_(std::move(tokenizer)) {
  if (tokenizer_) words_ = usable_words(*tokenizer_);
  if (words_.size() < 16) {
    words_.clear();
    for (const std::string_view word : split(kBuiltIn, ' ')) words_.emplace_back(word);
  }
}

std::int64_t Vocabulary::count(std::string_view text) const {
  if (!tokenizer_) return count_words(text);
  return static_cast<std::int64_t>(tokenizer_->encode(text, {.add_special = false, .parse_special = false}).size());
}

std::string Vocabulary::words(std::int64_t tokens, Random& random) const {
  std::string out;
  for (std::int64_t i = 0; i < tokens; ++i) (out += ' ') += words_[random.below(words_.size())];
  return out;
}

std::string Vocabulary::text(std::int64_t tokens, Random& random) const {
  std::string out = words(tokens, random);
  if (!out.empty()) out.erase(0, 1);
  return out;
}

Result<std::vector<Conversation>> synthetic_prompts(const PromptOptions& options, const Vocabulary& vocabulary) {
  WEIR_TRY(check(options));
  Random lengths(options.seed, kPromptLengthStream), outputs(options.seed, kOutputLengthStream);
  std::vector<Conversation> conversations;
  for (std::int64_t i = 0; i < options.count; ++i) {
    Conversation conversation;
    const auto number = static_cast<std::uint64_t>(i);
    Random text(options.seed, kTextStream + ((number + 1) << 20));
    const std::int64_t turns = draw_length(options.turns, lengths, 1, kMaxTurns);
    for (std::int64_t turn = 0; turn < turns; ++turn) {
      const std::int64_t tokens = draw_length(options.input_tokens, lengths, 1, kMaxTokens);
      const auto common = turn > 0 ? 0 : std::llround(options.shared_prefix * static_cast<double>(tokens));
      Random prefix(options.seed, kTextStream + (number % static_cast<std::uint64_t>(options.prefix_groups)));
      std::string prompt = vocabulary.words(common, prefix) + vocabulary.words(tokens - common, text);
      conversation.turns.push_back(
          make_turn(std::string_view(prompt).substr(1), draw_length(options.output_tokens, outputs, 0, kMaxTokens), tokens, options.chat));
    }
    conversations.push_back(std::move(conversation));
  }
  return conversations;
}

std::vector<Conversation> trace_prompts(const Trace& trace, const PromptOptions& options, const Vocabulary& vocabulary) {
  std::vector<Conversation> conversations;
  std::uint64_t unique = 0;
  for (const TraceEntry& entry : trace.entries) {
    const std::int64_t tokens = std::clamp<std::int64_t>(entry.input_tokens, 1, kMaxTokens);
    std::string prompt;
    std::int64_t written = 0;
    for (const std::int64_t block : entry.prefix_blocks) {
      Random random(options.seed, kTextStream + (static_cast<std::uint64_t>(block) << 8));
      const std::int64_t size = std::min(trace.block_tokens, tokens - written);
      if (size <= 0) break;
      prompt += vocabulary.words(size, random);
      written += size;
    }
    Random random(options.seed, kTextStream + 1 + (++unique << 20));
    prompt += vocabulary.words(tokens - written, random);
    Conversation conversation;
    conversation.turns.push_back(
        make_turn(std::string_view(prompt).substr(1), std::max<std::int64_t>(entry.output_tokens, 1), tokens, options.chat));
    conversations.push_back(std::move(conversation));
  }
  return conversations;
}

Result<std::vector<Conversation>> text_prompts(std::string_view text, const PromptOptions& options, const Vocabulary& vocabulary) {
  WEIR_TRY(check(options));
  // Where words begin; a piece is a run of words whose tokens are counted.
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (!is_space(text[i]) && (i == 0 || is_space(text[i - 1]))) starts.push_back(i);
  if (starts.empty()) return fail(ErrorCode::kInvalidArgument, "the text has no words");
  starts.push_back(text.size());
  Random lengths(options.seed, kPromptLengthStream), outputs(options.seed, kOutputLengthStream), places(options.seed, kTextStream);
  const double per_word = std::max(1e-3, static_cast<double>(vocabulary.count(text.substr(0, 1u << 16))) /
                                             static_cast<double>(std::max<std::int64_t>(1, count_words(text.substr(0, 1u << 16)))));
  std::vector<Conversation> conversations;
  for (std::int64_t i = 0; i < options.count; ++i) {
    const std::int64_t wanted = draw_length(options.input_tokens, lengths, 1, kMaxTokens);
    auto words = std::clamp<std::size_t>(static_cast<std::size_t>(static_cast<double>(wanted) / per_word), 1, starts.size() - 1);
    const std::size_t first = places.below(starts.size() - words);
    const auto piece = [&] { return text.substr(starts[first], starts[first + words] - starts[first]); };
    std::int64_t tokens = vocabulary.count(piece());
    // A few steps of false position come as near as whole words allow, without going over.
    for (int step = 0; step < 8 && tokens != wanted; ++step) {
      const auto scaled_words = static_cast<std::size_t>(static_cast<double>(words) * static_cast<double>(wanted) /
                                                         static_cast<double>(std::max<std::int64_t>(tokens, 1)));
      const std::size_t next = std::clamp<std::size_t>(scaled_words, 1, starts.size() - 1 - first);
      if (next == words) break;
      words = next;
      tokens = vocabulary.count(piece());
    }
    while (tokens > wanted && words > 1) --words, tokens = vocabulary.count(piece());
    Conversation conversation;
    conversation.turns.push_back(make_turn(piece(), draw_length(options.output_tokens, outputs, 0, kMaxTokens), tokens, options.chat));
    conversations.push_back(std::move(conversation));
  }
  return conversations;
}

}  // namespace weir::loadgen
