// SPDX-License-Identifier: Apache-2.0
#include "engine/draft_model.h"

#include <algorithm>

namespace weir::engine {
namespace {

using speculation::Offer;
using speculation::SequenceView;
using speculation::Wish;

std::string role_text(const std::optional<TokenId>& id) { return id ? std::to_string(*id) : "none"; }

bool ends_generation(const tokenizer::Tokenizer& tokenizer, TokenId id) {
  return std::ranges::binary_search(tokenizer.end_of_generation, id);
}

}  // namespace

Status check_same_vocabulary(const tokenizer::Tokenizer& target, const tokenizer::Tokenizer& draft) {
  if (target.vocab_size() != draft.vocab_size())
    return fail(ErrorCode::kInvalidArgument, "the draft model has another vocabulary: {} tokens instead of {}", draft.vocab_size(),
                target.vocab_size());
  for (TokenId id = 0; id < target.vocab_size(); ++id) {
    if (target.token_text(id) == draft.token_text(id) && target.kind(id) == draft.kind(id)) continue;
    return fail(ErrorCode::kInvalidArgument, "the draft model has another vocabulary: token {} is '{}' instead of '{}'{}", id,
                draft.token_text(id), target.token_text(id), target.token_text(id) == draft.token_text(id) ? ", of another kind" : "");
  }
  using Roles = tokenizer::SpecialRoles;
  for (const auto& [name, role] : {std::pair{"bos", &Roles::bos}, {"eos", &Roles::eos}, {"eot", &Roles::eot}}) {
    if (target.*role != draft.*role)
      return fail(ErrorCode::kInvalidArgument, "the draft model has another vocabulary: its {} token is {} instead of {}", name,
                  role_text(draft.*role), role_text(target.*role));
  }
  return {};
}

Result<std::unique_ptr<DraftModel>> DraftModel::make(LoadedModel model, const tokenizer::Tokenizer& target,
                                                     const DraftModelOptions& options, const Clock& clock) {
  WEIR_ASSIGN(const tokenizer::Tokenizer* own, model.require_tokenizer());
  WEIR_TRY(check_same_vocabulary(target, *own));
  const model::Traits& traits = model.model->traits();
  if (traits.encoder) return fail(ErrorCode::kInvalidArgument, "{} is an encoder: it cannot draft", model.path.string());
  if (traits.has_state())
    return fail(ErrorCode::kUnsupported, "{} has recurrent layers, which cannot take guesses back: it cannot draft", model.path.string());
  if (options.max_tokens < 1 || options.max_sequences < 1 || options.catch_up < 1)
    return fail(ErrorCode::kInvalidArgument, "a draft model for {} tokens of {} sequences, {} a step: at least one each",
                options.max_tokens, options.max_sequences, options.catch_up);
  return std::unique_ptr<DraftModel>(new DraftModel(std::move(model), options, clock));
}

DraftModel::DraftModel(LoadedModel model, const DraftModelOptions& options, const Clock& clock)
    : loaded_(std::move(model)),
      options_(options),
      clock_(clock),
      runner_(*loaded_.model, {.max_tokens = options.max_tokens, .max_sequences = options.max_sequences}) {}

void DraftModel::set_sampling(SeqId sequence, const sampling::SamplingParams& params, std::uint64_t stream) {
  sampling::SamplingParams own = params;
  own.repetition_penalty = 1;
  own.frequency_penalty = own.presence_penalty = 0;
  samplers_.insert_or_assign(sequence, sampling::Sampler(own, stream));
}

void DraftModel::forget(SeqId sequence) {
  samplers_.erase(sequence);
  const auto found = sequences_.find(sequence);
  if (found == sequences_.end()) return;
  runner_.close(found->second.own);
  sequences_.erase(found);
}

// Room for the whole sequence with its guesses, as if no other grew in this step.
bool DraftModel::fits(const SequenceView& view) const {
  const auto found = sequences_.find(view.sequence);
  const auto held = found == sequences_.end() ? 0 : static_cast<std::int64_t>(found->second.fed.size());
  if (found == sequences_.end() && static_cast<std::int32_t>(sequences_.size()) >= options_.max_sequences) return false;
  const auto wanted = static_cast<std::int64_t>(view.tokens.size()) + std::min(view.most, 16);
  return !view.tokens.empty() && wanted - held <= runner_.free_tokens();
}

void DraftModel::offer(std::span<const SequenceView> views, std::span<Offer> offers) {
  for (std::size_t i = 0; i < views.size(); ++i) {
    const bool able = views[i].most > 0 && fits(views[i]);
    offers[i] = able ? Offer{.strength = 1, .most = views[i].most} : Offer{};
  }
}

// The sequence's memory brought back to where it agrees with the tokens.
Result<DraftModel::Sequence*> DraftModel::catch_up(const SequenceView& view) {
  auto found = sequences_.find(view.sequence);
  if (found == sequences_.end()) {
    WEIR_ASSIGN(const SeqId own, runner_.open(static_cast<std::int32_t>(view.tokens.size())));
    found = sequences_.emplace(view.sequence, Sequence{.own = own, .fed = {}}).first;
  }
  Sequence& s = found->second;
  const auto agree = std::ranges::mismatch(s.fed, view.tokens).in1 - s.fed.begin();
  const auto keep = std::min<std::int64_t>(agree, static_cast<std::int64_t>(view.tokens.size()) - 1);  // the last one gives the logits
  WEIR_TRY(runner_.truncate(s.own, keep));
  s.fed.resize(static_cast<std::size_t>(keep));
  return &s;
}

Status DraftModel::start(std::span<const SequenceView> views, std::span<const Wish> wishes) {
  active_.clear();
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    const SequenceView& view = views[wishes[i].view];
    const auto bad = [this](TokenId id) { return id < 0 || id >= loaded_.model->traits().vocab_size; };
    WEIR_ASSIGN(Sequence* const s, catch_up(view));
    auto next = view.tokens.subspan(s->fed.size());
    if (std::ranges::any_of(next, bad)) continue;  // the target's padding, which this model has not
    // Where the phases differ the prompt is read as the target reads it, and by itself: a sequence has one phase in a step.
    const bool prompt = loaded_.backend->phases_differ() && s->fed.size() < static_cast<std::size_t>(view.prompt);
    if (prompt) next = next.first(std::min(next.size(), static_cast<std::size_t>(view.prompt) - s->fed.size()));
    next = next.first(std::min(next.size(), static_cast<std::size_t>(options_.catch_up)));
    const auto sampler = samplers_.find(view.sequence);
    active_.push_back({.wish = i,
                       .sequence = s,
                       .sampler = sampler == samplers_.end() ? &greedy_ : &sampler->second,
                       .next = next,
                       .prompt = prompt,
                       .position = s->fed.size() + next.size()});
    // A long prompt is read in several calls; its guesses come with the last.
    if (active_.back().position < view.tokens.size()) active_.back().sampler = nullptr;
  }
  return {};
}

// One token more for each draft. Those that are done leave active_.
Status DraftModel::step(std::span<const Wish> wishes, std::span<std::vector<TokenId>> guesses) {
  pieces_.clear();
  std::int64_t rows = 0;
  for (const Active& a : active_) {
    pieces_.push_back({a.sequence->own, a.next, a.sampler != nullptr ? Outputs::kLast : Outputs::kNone, a.prompt});
    rows += static_cast<std::int64_t>(a.next.size());
  }
  const TimePoint start = clock_.now();
  WEIR_ASSIGN(const kernels::Matrix logits, runner_.step(pieces_));
  std::int64_t row = 0;
  for (Active& a : active_) {
    a.sequence->fed.insert(a.sequence->fed.end(), a.next.begin(), a.next.end());
    if (a.sampler == nullptr) continue;
    std::vector<TokenId>& draft = guesses[a.wish];
    const auto token = a.sampler->sample(logits.row_span(row++), a.position++);
    const bool more = token && !ends_generation(*loaded_.tokenizer, *token);
    if (token) draft.push_back(*token);
    if (!more || static_cast<std::int32_t>(draft.size()) >= wishes[a.wish].length) a.sampler = nullptr;
  }
  if (rows <= 256) {
    cost_.record(rows, clock_.now() - start);
    measured_ = true;
  }
  std::erase_if(active_, [](const Active& a) { return a.sampler == nullptr; });
  for (Active& a : active_) a.next = std::span(guesses[a.wish]).last(1), a.prompt = false;
  return {};
}

Status DraftModel::draft(std::span<const SequenceView> views, std::span<const Wish> wishes, std::span<std::vector<TokenId>> guesses) {
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    guesses[i].clear();
    guesses[i].reserve(static_cast<std::size_t>(wishes[i].length));  // active_ points into it
  }
  WEIR_TRY(start(views, wishes));
  while (!active_.empty()) WEIR_TRY(step(wishes, guesses));
  return {};
}

// Nothing until measured, so that it is tried.
double DraftModel::seconds(std::int64_t sequences, std::int32_t length) const { return measured_ ? cost_.seconds(sequences) * length : 0; }

}  // namespace weir::engine
