// SPDX-License-Identifier: Apache-2.0
// For tests: a target without a model. Its token at a position is a pure function of all tokens before it, as with a real one, and a
// step takes as long as a function of its rows says.
#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "speculation/lookup_source.h"
#include "speculation/speculator.h"
#include "speculation/verify.h"

namespace weir::speculation {

using Tokens = std::vector<TokenId>;
using Target = std::function<TokenId(std::span<const TokenId> before)>;
using StepTime = std::function<double(std::int64_t rows)>;

inline StepTime memory_bound() {
  return
      [](std::int64_t rows) { return 0.010 * std::max(1.0, 0.6 + 0.03 * static_cast<double>(rows)) + 0.0002 * static_cast<double>(rows); };
}
inline StepTime compute_bound() {
  return [](std::int64_t rows) { return 0.010 * static_cast<double>(rows); };
}
// Rows come in groups of four: the fifth costs as much as four.
inline StepTime in_groups() {
  return [](std::int64_t rows) { return 0.005 + 0.004 * static_cast<double>((rows + 3) / 4); };
}

inline Tokens random_tokens(std::uint32_t seed, std::size_t count, TokenId vocabulary) {
  std::mt19937 random(seed);
  Tokens tokens(count);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random() % static_cast<std::uint32_t>(vocabulary));
  return tokens;
}

// Says this text whatever the prompt, and something else after a wrong token.
inline Target script(Tokens prompt, Tokens answer) {
  prompt.insert(prompt.end(), answer.begin(), answer.end());
  return [text = std::move(prompt)](std::span<const TokenId> before) {
    return before.size() < text.size() && before.back() == text[before.size() - 1] ? text[before.size()] : TokenId{-7};
  };
}

// A chain of the second order: after two tokens one of a few others, drawn anew at each position.
inline Target markov(std::uint32_t seed, TokenId vocabulary, std::uint32_t choices) {
  return [=](std::span<const TokenId> before) {
    std::uint64_t h = seed;
    const auto mix = [&h](std::uint64_t v) {
      h = (h ^ v) * 0x9e3779b97f4a7c15u;
      h ^= h >> 29;
    };
    mix(before.size());
    const std::uint64_t draw = (h >> 20) % choices;
    h = seed;
    mix(static_cast<std::uint64_t>(before[before.size() - 1]));
    mix(static_cast<std::uint64_t>(before[before.size() - 2]));
    mix(draw * draw / choices);
    return static_cast<TokenId>((h >> 13) % static_cast<std::uint64_t>(vocabulary));
  };
}

inline Speculator with_look_up(const SpeculatorOptions& options = {}) {
  std::vector<std::unique_ptr<DraftSource>> sources;
  sources.push_back(std::make_unique<LookupSource>());
  return Speculator(options, std::move(sources));
}

inline Tokens plain(const Target& target, Tokens tokens, std::size_t answer) {
  for (std::size_t i = 0; i < answer; ++i) tokens.push_back(target(tokens));
  return tokens;
}

struct Stream {
  SeqId id;
  const Target* target;
  Tokens tokens;
  std::size_t end = 0;  // tokens in all
};

// One step of all streams that have not ended; returns its seconds.
inline double step(Speculator& speculator, std::vector<Stream>& streams, const StepTime& time, const Speculator::Filter& filter = {}) {
  std::vector<SequenceView> views;
  for (const Stream& s : streams) {
    if (s.tokens.size() < s.end) views.push_back({s.id, s.tokens, static_cast<std::int32_t>(s.end - s.tokens.size() - 1)});
  }
  std::map<SeqId, std::span<const TokenId>> guesses;
  for (const Draft& draft : speculator.propose(views, 0, filter)) guesses[draft.sequence] = draft.guesses;
  std::int64_t rows = 0;
  std::vector<Verified> verified;
  for (Stream& s : streams) {
    if (s.tokens.size() >= s.end) continue;
    const auto draft = guesses[s.id];
    rows += 1 + static_cast<std::int64_t>(draft.size());
    Tokens seen = s.tokens;  // what the rows saw: the guesses, right or wrong
    seen.insert(seen.end(), draft.begin(), draft.end());
    const std::size_t known = s.tokens.size();
    const auto draw = [&](std::size_t i) -> Result<Drawn> {
      return Drawn{.token = (*s.target)(std::span(seen).first(known + i)), .ends = known + i + 1 >= s.end};
    };
    const auto right = static_cast<std::int32_t>(verify(draft, draw, s.tokens).value());
    if (!draft.empty()) verified.push_back({s.id, static_cast<std::int32_t>(draft.size()), right});
  }
  const double seconds = time(rows);
  speculator.completed({.decode_rows = rows, .elapsed = Duration(static_cast<std::int64_t>(seconds * 1e9)), .verified = verified});
  for (const Stream& s : streams) {
    if (s.tokens.size() >= s.end) speculator.forget(s.id);
  }
  return seconds;
}

struct Outcome {
  Tokens tokens;
  double speedup = 0;  // over plain decoding, in simulated time
};

inline Outcome run_alone(Speculator& speculator, const Target& target, const Tokens& prompt, std::size_t answer, const StepTime& time,
                         std::int64_t id = 0) {
  std::vector<Stream> streams = {{SeqId(id), &target, prompt, prompt.size() + answer}};
  double seconds = 0;
  while (streams[0].tokens.size() < streams[0].end) seconds += step(speculator, streams, time);
  return {streams[0].tokens, static_cast<double>(answer) * time(1) / seconds};
}

}  // namespace weir::speculation
