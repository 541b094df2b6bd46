// SPDX-License-Identifier: Apache-2.0
// What the step loop talks to: guesses before a step, what came of them after it. It learns how often guesses are right and what rows
// cost, and guesses only what pays. Same calls, same guesses; and whatever it guesses, the tokens stay those of plain decoding.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "speculation/acceptance.h"
#include "speculation/draft_length.h"
#include "speculation/draft_source.h"
#include "speculation/row_cost.h"

namespace weir::speculation {

struct SpeculatorOptions {
  LengthLimits limits;
  double loss = 0.005;     // share of a sequence's time that may be lost to guesses
  double allowance = 0.5;  // and so many tokens' time at its start
  double row_slope = 0.1;  // RowCost's until measured
  // So many guesses whenever a source has them, paid or not, within `limits`: to test and to measure with. 0: as many as pay.
  std::int32_t fixed_length = 0;
};

struct Draft {
  SeqId sequence;
  std::span<const TokenId> guesses;  // valid until the next call of propose()
};

struct Verified {
  SeqId sequence;
  std::int32_t drafted = 0, right = 0;  // guesses that ran as rows, and those of them that were accepted
};

struct StepOutcome {
  std::int64_t decode_rows = 0, prefill_rows = 0;
  Duration elapsed{};                  // of the whole turn of the loop, drafting left out
  std::span<const Verified> verified;  // rows with guesses
};

struct SpeculatorStats {
  std::int64_t steps = 0, drafts = 0, drafted = 0, right = 0;  // since the start; of guesses that ran
};

class Speculator {
 public:
  // How many of the guesses may stand where they would (a grammar's word); the rest is cut off.
  using Filter = std::function<std::size_t(SeqId, std::span<const TokenId>)>;

  // The order of sources matters when two promise the same.
  Speculator(const SpeculatorOptions& options, std::vector<std::unique_ptr<DraftSource>> sources);
  ~Speculator();
  Speculator(Speculator&&) noexcept;
  Speculator& operator=(Speculator&&) noexcept;

  // Drafts for those views that should have one: sequences that wait for their next token, all of them, each with one row in the
  // next step. `beside`: rows that the step will run in any case beside those, as chunks of prompts.
  std::span<const Draft> propose(std::span<const SequenceView> views, std::int64_t beside = 0, const Filter& filter = {});
  void completed(const StepOutcome& outcome);
  // A decode step measured at any other time, best a few of 1 to 16 rows at the start: else lengths grow step by step at first.
  void calibrate(std::int64_t rows, Duration elapsed) { cost_.record(rows, elapsed); }
  void forget(SeqId sequence);

  const SpeculatorStats& stats() const { return stats_; }
  const RowCost& row_cost() const { return cost_; }

 private:
  struct Sequence;
  Sequence& settle(const SequenceView& view, std::size_t streams);
  void choose_sources(std::span<const SequenceView> views, std::int64_t rows);
  void probe(std::span<const SequenceView> views);
  void take_fixed_lengths();
  void make_drafts(std::span<const SequenceView> views, const Filter& filter);
  void charge(Sequence& sequence, const Verified& verified, const StepOutcome& outcome, std::int64_t guesses);

  SpeculatorOptions options_;
  std::vector<std::unique_ptr<DraftSource>> sources_;
  std::vector<Acceptance> general_;  // per source, over all sequences
  RowCost cost_;
  LengthChooser chooser_;
  SpeculatorStats stats_;
  std::unordered_map<SeqId, std::unique_ptr<Sequence>> sequences_;
  std::int64_t streams_ = 0;  // of the last propose()
  double drafting_ = 0;       // seconds expected for its drafts
  std::int64_t drafts_made_ = 0;

  // One call's; kept so that a steady state allocates nothing.
  std::vector<Sequence*> of_view_;
  std::vector<Offer> offers_;  // source by source
  std::vector<Prospect> prospects_;
  std::vector<std::size_t> source_of_;
  std::vector<std::int32_t> lengths_;
  std::vector<Wish> wishes_;
  std::vector<std::vector<TokenId>> guesses_, kept_;
  std::vector<Draft> drafts_;
};

}  // namespace weir::speculation
