// SPDX-License-Identifier: Apache-2.0
// Documents in the order of how well they answer a query. Three kinds of models can say it: those with a head that scores a pair;
// language models that answer "yes" or "no" (Qwen3-Reranker); and embedding models, by the cosine of two vectors.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/classification.h"
#include "engine/embedding.h"

namespace weir::engine {

// kAuto: the head when there is one, else the model's vectors if its files say how to pool. A model that answers yes or no looks
// like any other language model, so it must be named.
enum class RerankMethod { kAuto, kHead, kYesNo, kEmbedding };

struct RerankRequest {
  std::string query;
  std::span<const std::string> documents;
  std::int64_t top_n = 0;  // 0 = all
  bool cut = false;        // documents that are too long are cut (pairs: the longer text first), else they are an error
  std::optional<std::int64_t> max_tokens = {};
  std::optional<std::string> instruction = {};  // for kYesNo
};

struct RankedDocument {
  std::size_t index = 0;  // among the request's documents
  double score = 0;       // kHead: through the model's score function; kYesNo: the probability of "yes"; kEmbedding: the cosine
  double logit = 0;       // kHead: raw; kYesNo: logit of "yes" minus that of "no"; kEmbedding: the cosine
  std::int64_t tokens = 0, cut = 0;
};

// The prompt of a model that answers yes or no: special tokens are parsed in `before` and `after` only, never in what a user writes.
struct YesNoPrompt {
  std::string before, body, after;  // body: {instruction}, {query} and {document} stand for the texts
  std::string instruction;          // when the request has none
  std::string yes = "yes", no = "no";
};
YesNoPrompt qwen3_reranker_prompt();

class Reranker {
 public:
  static Result<Reranker> create(LoadedModel& loaded, RerankMethod method = RerankMethod::kAuto);
  RerankMethod method() const { return method_; }

  // The best first, ties in the documents' order; at most top_n. kInvalidArgument names the document.
  Result<std::vector<RankedDocument>> rank(const RerankRequest& request);

 private:
  explicit Reranker(LoadedModel& loaded, RerankMethod method) : loaded_(&loaded), method_(method) {}
  Result<std::vector<EncodedInput>> prompts(const RerankRequest& request) const;
  Result<std::vector<RankedDocument>> rank_by_head(const RerankRequest& request);
  Result<std::vector<RankedDocument>> rank_by_answer(const RerankRequest& request);
  Result<std::vector<RankedDocument>> rank_by_vectors(const RerankRequest& request);

  LoadedModel* loaded_;
  RerankMethod method_;
  std::optional<Classifier> classifier_;
  std::optional<Embedder> embedder_;
  std::optional<YesNoPrompt> prompt_;  // kYesNo, and heads whose file brings a prompt of its own
  std::int32_t label_ = 0;             // the head's label that means relevant
  TokenId yes_ = 0, no_ = 0;
};

}  // namespace weir::engine
