// SPDX-License-Identifier: Apache-2.0
// A smaller model with the same vocabulary as a source of guesses. It keeps its own memory of the sequences, catches up with what the
// target has said in one piece, and drafts for all of them together, one step a guess. A guess is drawn with the random number that
// the target will use at that position, so that both tend to the same token also at temperatures above 0.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "engine/loaded_model.h"
#include "engine/runner.h"
#include "sampling/sampler.h"
#include "speculation/draft_source.h"
#include "speculation/row_cost.h"

namespace weir::engine {

struct DraftModelOptions {
  std::int64_t max_tokens = 16384;  // of all sequences, as RunnerOptions
  std::int32_t max_sequences = 16;  // further ones get no guesses
  std::int32_t catch_up = 512;      // tokens of one sequence in a step; a longer prompt takes as many calls
};

// Same ids for same texts, kinds and roles. kInvalidArgument with the first difference.
Status check_same_vocabulary(const tokenizer::Tokenizer& target, const tokenizer::Tokenizer& draft);

class DraftModel final : public speculation::DraftSource {
 public:
  // kInvalidArgument when the vocabularies differ or the model gives no logits, kUnsupported for one with recurrent layers, whose
  // state cannot take guesses back; kExhausted when there is no memory for the sequences.
  static Result<std::unique_ptr<DraftModel>> make(LoadedModel model, const tokenizer::Tokenizer& target, const DraftModelOptions& options,
                                                  const Clock& clock = steady_clock());

  // How the target draws in this sequence, its seed filled in; `stream` as for its Sampler. Penalties are left out: they would have to
  // be taken back. A sequence that this was not told of is drafted greedily.
  void set_sampling(SeqId sequence, const sampling::SamplingParams& params, std::uint64_t stream = 0);

  void offer(std::span<const speculation::SequenceView> views, std::span<speculation::Offer> offers) override;
  Status draft(std::span<const speculation::SequenceView> views, std::span<const speculation::Wish> wishes,
               std::span<std::vector<TokenId>> guesses) override;
  double seconds(std::int64_t sequences, std::int32_t length) const override;
  bool free() const override { return false; }
  void forget(SeqId sequence) override;

  std::int64_t free_tokens() const { return runner_.free_tokens(); }

 private:
  struct Sequence {
    SeqId own;                 // in the runner
    std::vector<TokenId> fed;  // tokens in its memory
  };
  struct Active {
    std::size_t wish = 0;
    Sequence* sequence = nullptr;
    sampling::Sampler* sampler = nullptr;
    std::span<const TokenId> next;  // to run in this step
    bool prompt = false;            // these are the prompt's
    std::size_t position = 0;       // of the guess that comes of it
  };
  DraftModel(LoadedModel model, const DraftModelOptions& options, const Clock& clock);
  bool fits(const speculation::SequenceView& view) const;
  Result<Sequence*> catch_up(const speculation::SequenceView& view);
  Status start(std::span<const speculation::SequenceView> views, std::span<const speculation::Wish> wishes);
  Status step(std::span<const speculation::Wish> wishes, std::span<std::vector<TokenId>> guesses);

  LoadedModel loaded_;
  DraftModelOptions options_;
  const Clock& clock_;
  Runner runner_;
  std::unordered_map<SeqId, Sequence> sequences_;
  std::unordered_map<SeqId, sampling::Sampler> samplers_;
  sampling::Sampler greedy_{sampling::SamplingParams{}};
  speculation::RowCost cost_;
  bool measured_ = false;
  std::vector<Active> active_;  // of one call
  std::vector<Piece> pieces_;
};

}  // namespace weir::engine
