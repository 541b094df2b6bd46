// SPDX-License-Identifier: Apache-2.0
#include "engine/rerank.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "formats/gguf_reader.h"

namespace weir::engine {
namespace {

// The text with {instruction}, {query} and {document} replaced, in one pass: what a user writes is not searched again.
std::string fill_in(std::string_view text, std::string_view instruction, std::string_view query, std::string_view document) {
  const std::array<std::pair<std::string_view, std::string_view>, 3> places = {
      {{"{instruction}", instruction}, {"{query}", query}, {"{document}", document}}};
  std::string out;
  while (!text.empty()) {
    bool replaced = false;
    for (const auto& [name, value] : places) {
      if (!text.starts_with(name)) continue;
      out += value;
      text.remove_prefix(name.size());
      replaced = true;
    }
    if (replaced) continue;
    out += text.front();
    text.remove_prefix(1);
  }
  return out;
}

// A template of a GGUF file, cut where its special tokens end and begin around the texts.
Result<std::optional<YesNoPrompt>> read_prompt(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return std::nullopt;
  WEIR_ASSIGN(const formats::GgufFile file, formats::GgufFile::open(path));
  WEIR_ASSIGN(const std::string text, file.get_string_or("tokenizer.chat_template.rerank", ""));
  if (text.empty()) return std::nullopt;
  const std::size_t query = text.find("{query}"), document = text.find("{document}");
  if (query == std::string::npos || document == std::string::npos)
    return fail(ErrorCode::kUnsupported, "tokenizer.chat_template.rerank has no place for {{query}} or {{document}}");
  const std::size_t before = text.rfind("|>", std::min(query, document)), after = text.find("<|", std::max(query, document));
  const std::size_t begin = before == std::string::npos ? 0 : before + 2, end = std::min(after, text.size());
  return YesNoPrompt{
      .before = text.substr(0, begin), .body = text.substr(begin, end - begin), .after = text.substr(end), .instruction = ""};
}

// Which label says that a document is relevant.
Result<std::int32_t> relevant_label(const Classifier& classifier) {
  if (classifier.labels() == 1) return 0;
  if (classifier.labels() == 2)
    for (std::int32_t i = 0; i < 2; ++i)
      if (classifier.label(i) == "yes") return i;
  return fail(ErrorCode::kUnsupported, "this model sorts texts into {} classes and does not rank documents", classifier.labels());
}

Result<TokenId> answer_token(const tokenizer::Tokenizer& tokenizer, const std::string& word) {
  if (const auto id = tokenizer.find(word)) return *id;
  return fail(ErrorCode::kUnsupported, "the vocabulary has no token \"{}\": this model cannot rank by its answer", word);
}

// Best first.
void sort_and_cut(std::vector<RankedDocument>& documents, std::int64_t top_n) {
  std::ranges::stable_sort(documents, [](const RankedDocument& a, const RankedDocument& b) {
    return a.score != b.score ? a.score > b.score : a.logit > b.logit;  // scores of sure pairs round to 1, their logits differ
  });
  if (top_n > 0 && documents.size() > static_cast<std::size_t>(top_n)) documents.resize(static_cast<std::size_t>(top_n));
}

Error of_document(Error error, std::size_t index) { return std::move(error).with_context(fmt::format("document {}", index)); }

}  // namespace

YesNoPrompt qwen3_reranker_prompt() {
  return {
      .before =
          "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. Note that "
          "the "
          "answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n",
      .body = "<Instruct>: {instruction}\n<Query>: {query}\n<Document>: {document}",
      .after = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",
      .instruction = "Given a web search query, retrieve relevant passages that answer the query",
  };
}

Result<Reranker> Reranker::create(LoadedModel& loaded, RerankMethod method) {
  const model::Traits& traits = loaded.model->traits();
  if (method == RerankMethod::kAuto) {
    method = traits.classifier.labels > 0 ? RerankMethod::kHead : RerankMethod::kEmbedding;
    if (method == RerankMethod::kEmbedding && traits.pooling == model::Pooling::kNone && !traits.encoder)
      return fail(ErrorCode::kUnsupported,
                  "{} has neither a classification head nor pooling: if it is a reranker that answers yes or no, ask for that method",
                  loaded.path.string());
  }
  Reranker reranker(loaded, method);
  if (method == RerankMethod::kHead) {
    WEIR_ASSIGN(reranker.classifier_, Classifier::create(loaded));
    WEIR_ASSIGN(reranker.label_, relevant_label(*reranker.classifier_));
    WEIR_ASSIGN(reranker.prompt_, read_prompt(loaded.path));
  } else if (method == RerankMethod::kYesNo) {
    if (traits.encoder) return fail(ErrorCode::kUnsupported, "{} is an encoder and answers nothing", loaded.path.string());
    WEIR_ASSIGN(const tokenizer::Tokenizer* tokenizer, loaded.require_tokenizer());
    reranker.prompt_ = qwen3_reranker_prompt();
    WEIR_ASSIGN(reranker.yes_, answer_token(*tokenizer, reranker.prompt_->yes));
    WEIR_ASSIGN(reranker.no_, answer_token(*tokenizer, reranker.prompt_->no));
  } else {
    WEIR_ASSIGN(reranker.embedder_, Embedder::create(loaded));
  }
  return reranker;
}

Result<std::vector<RankedDocument>> Reranker::rank(const RerankRequest& request) {
  if (request.top_n < 0) return fail(ErrorCode::kInvalidArgument, "top_n is {}", request.top_n);
  auto ranked = method_ == RerankMethod::kHead    ? rank_by_head(request)
                : method_ == RerankMethod::kYesNo ? rank_by_answer(request)
                                                  : rank_by_vectors(request);
  if (ranked) sort_and_cut(*ranked, request.top_n);
  return ranked;
}

// The prompt around each document; only the texts are cut.
Result<std::vector<EncodedInput>> Reranker::prompts(const RerankRequest& request) const {
  WEIR_ASSIGN(const tokenizer::Tokenizer* tokenizer, loaded_->require_tokenizer());
  const tokenizer::EncodeOptions frame{.add_special = false, .parse_special = true}, plain{.add_special = false, .parse_special = false};
  const std::vector<TokenId> before = tokenizer->encode(prompt_->before, frame), after = tokenizer->encode(prompt_->after, frame);
  WEIR_ASSIGN(const InputLimits limits, request_limits(input_limit(*loaded_, 0), request.max_tokens, request.cut));
  const auto around = static_cast<std::int64_t>(before.size() + after.size());
  std::vector<EncodedInput> out;
  for (std::size_t i = 0; i < request.documents.size(); ++i) {
    EncodedInput& input = out.emplace_back();
    std::vector<TokenId> body = tokenizer->encode(
        fill_in(prompt_->body, request.instruction.value_or(prompt_->instruction), request.query, request.documents[i]), plain);
    const auto length = static_cast<std::int64_t>(body.size()) + around;
    if (limits.most > 0 && length > limits.most) {
      if (!limits.cut || limits.most <= around)
        return std::unexpected(of_document(
            {ErrorCode::kInvalidArgument, fmt::format("{} tokens with the prompt around it, at most {} are read", length, limits.most)},
            i));
      input.cut = length - limits.most;
      body.resize(static_cast<std::size_t>(limits.most - around));
    }
    input.ids = before;
    input.ids.insert(input.ids.end(), body.begin(), body.end());
    input.ids.insert(input.ids.end(), after.begin(), after.end());
  }
  return out;
}

Result<std::vector<RankedDocument>> Reranker::rank_by_head(const RerankRequest& request) {
  std::vector<EncodedInput> encoded;
  if (prompt_) {
    WEIR_ASSIGN(encoded, prompts(request));
  } else {
    WEIR_ASSIGN(const InputLimits limits, request_limits(classifier_->max_tokens(), request.max_tokens, request.cut));
    for (std::size_t i = 0; i < request.documents.size(); ++i) {
      auto input = encode_input(*loaded_, TextPair{request.query, request.documents[i]}, limits);
      if (!input) return std::unexpected(of_document(std::move(input).error(), i));
      encoded.push_back(std::move(*input));
    }
  }
  WEIR_ASSIGN(const auto classes, classifier_->classify_encoded(encoded, classifier_->function()));
  std::vector<RankedDocument> out;
  const auto label = static_cast<std::size_t>(label_);
  for (std::size_t i = 0; i < classes.size(); ++i)
    out.push_back({i, classes[i].scores[label], static_cast<double>(classes[i].logits[label]), classes[i].tokens, classes[i].cut});
  return out;
}

Result<std::vector<RankedDocument>> Reranker::rank_by_answer(const RerankRequest& request) {
  WEIR_ASSIGN(const std::vector<EncodedInput> encoded, prompts(request));
  std::vector<SequenceInput> inputs;
  for (const EncodedInput& e : encoded) inputs.push_back({e.ids});
  std::vector<RankedDocument> out(inputs.size());
  SequencePass pass(*loaded_->model);
  WEIR_TRY(pass.run(
      inputs, SequencePass::Rows::kLast, model::Output::kLogits, [&](std::size_t i, std::int64_t, kernels::ConstMatrix logits) -> Status {
        const std::array<float, 2> answers = {logits.row(0)[yes_], logits.row(0)[no_]};
        if (!std::isfinite(answers[0]) || !std::isfinite(answers[1]))
          return fail(ErrorCode::kCorrupt, "document {}: the model's output is not a finite number; its weights may be damaged", i);
        out[i] = {i, apply_score_function(ScoreFunction::kSoftmax, answers)[0],
                  static_cast<double>(answers[0]) - static_cast<double>(answers[1]), static_cast<std::int64_t>(encoded[i].ids.size()),
                  encoded[i].cut};
        return {};
      }));
  return out;
}

Result<std::vector<RankedDocument>> Reranker::rank_by_vectors(const RerankRequest& request) {
  const auto embed = [&](std::span<const TextInput> texts, const char* prompt, bool cut) {
    EmbedRequest wanted{.inputs = texts};
    wanted.normalize = true;
    wanted.cut = cut;
    wanted.max_tokens = request.max_tokens;
    if (embedder_->spec().prompts.contains(prompt)) wanted.prompt_name = prompt;
    return embedder_->embed(wanted);
  };
  const TextInput query = request.query;
  const std::vector<TextInput> documents(request.documents.begin(), request.documents.end());
  const auto wanted = embed({&query, 1}, "query", request.cut);
  if (!wanted) return std::unexpected(Error(wanted.error()).with_context("query"));
  auto vectors = embed(documents, "document", request.cut);
  if (!vectors) return std::unexpected(std::move(vectors).error().with_context("documents"));
  std::vector<RankedDocument> out;
  for (std::size_t i = 0; i < vectors->size(); ++i) {
    const Embedding& document = (*vectors)[i];
    double cosine = 0;
    for (std::size_t c = 0; c < document.values.size(); ++c)
      cosine += static_cast<double>(document.values[c]) * static_cast<double>(wanted->front().values[c]);
    out.push_back({i, cosine, cosine, document.tokens + wanted->front().tokens, document.cut});
  }
  return out;
}

}  // namespace weir::engine
