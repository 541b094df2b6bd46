// SPDX-License-Identifier: Apache-2.0
#include "serving/model_host.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/file_io.h"
#include "base/sha256.h"
#include "engine/pooling.h"
#include "serving/tool_messages.h"

namespace weir::serving {
namespace {

constexpr std::size_t kVectorQueue = 256;
constexpr std::int64_t kVectorRows = 512;  // of one pass between the steps of an engine: about as much as a step of it

// What must be equal for the same seed to give the same text.
std::string fingerprint_of(const engine::LoadedModel& loaded) {
  std::string identity = loaded.backend->description() + "\n" + loaded.path.filename().string() + "\n";
  identity += std::to_string(loaded.model->weight_bytes());
  return "fp_" + sha256_of(identity).substr(0, 12);
}

Result<std::unique_ptr<engine::LoadedModel>> load_files(const ModelSpec& spec, const std::filesystem::path& path,
                                                        const ServeOptions& options) {
  WEIR_ASSIGN(auto loaded, engine::load_model(path, options.cpu));
  if (!spec.chat_template.empty()) {
    WEIR_ASSIGN(const std::string source, read_file(spec.chat_template, 4u << 20));
    WEIR_ASSIGN(loaded.chat_template, text::ChatTemplate::compile(source, spec.chat_template));
    loaded.template_note.clear();
  }
  return std::make_unique<engine::LoadedModel>(std::move(loaded));
}

std::string template_source(const engine::LoadedModel& loaded) {
  return loaded.tokenizer && loaded.tokenizer->chat_template ? *loaded.tokenizer->chat_template : std::string();
}

}  // namespace

ModelHost::ModelHost(ModelSpec spec, std::unique_ptr<engine::LoadedModel> loaded)
    : spec_(std::move(spec)), loaded_(std::move(loaded)), prompts_(std::make_unique<PromptMaker>(*loaded_)) {}

ModelHost::~ModelHost() {
  if (worker_) worker_->stop();
}

Result<std::shared_ptr<ModelHost>> ModelHost::load(const ModelSpec& spec, const std::filesystem::path& path, const ServeOptions& options,
                                                   OnStep on_step, const std::filesystem::path& draft) {
  WEIR_ASSIGN(auto loaded, load_files(spec, path, options));
  std::shared_ptr<ModelHost> host(new ModelHost(spec, std::move(loaded)));
  if (!host->loaded_->model->traits().encoder) {
    engine::EngineOptions engine_options = serving::engine_options(options, spec);
    engine_options.on_step = std::move(on_step);
    engine_options.tenants_share_prefixes = options.share_prefixes;
    if (!draft.empty()) {
      WEIR_ASSIGN(engine_options.draft, engine::load_model(draft, options.cpu));
    }
    WEIR_ASSIGN(auto engine, engine::Engine::start(*host->loaded_, std::move(engine_options)));
    host->engine_ = engine.get();
    host->context_ = engine->context();
    for (const AdapterSpec& adapter : spec.adapters) WEIR_TRY(engine->adapters().load(adapter.name, adapter.path));
    host->service_ = std::move(engine);
  } else if (!spec.adapters.empty()) {
    return fail(ErrorCode::kUnsupported, "{}: adapters are for models that generate text", spec.name);
  }
  WEIR_TRY(host->set_up());
  return host;
}

Result<std::shared_ptr<ModelHost>> ModelHost::make(const ModelSpec& spec, std::unique_ptr<engine::LoadedModel> loaded,
                                                   std::unique_ptr<engine::CompletionService> service, std::int64_t context) {
  std::shared_ptr<ModelHost> host(new ModelHost(spec, std::move(loaded)));
  host->service_ = std::move(service);
  host->context_ = context;
  WEIR_TRY(host->set_up());
  return host;
}

Status ModelHost::set_up() {
  const auto has_token = [this](std::string_view text) { return loaded_->tokenizer && loaded_->tokenizer->find(text).has_value(); };
  format_ = spec_.output_format.empty() ? api::guess_output_format(template_source(*loaded_), has_token)
                                        : api::find_output_format(spec_.output_format);
  if (format_ == nullptr)
    return fail(ErrorCode::kInvalidArgument, "{}: no output format is called \"{}\"", spec_.name, spec_.output_format);
  fingerprint_ = fingerprint_of(*loaded_);
  bytes_ = loaded_->model->weight_bytes() + (engine_ != nullptr ? engine_->cache_bytes() : 0);
  worker_ = std::make_unique<WorkPool>(1, kVectorQueue);
  return {};
}

std::vector<std::string> ModelHost::capabilities() const {
  std::vector<std::string> all;
  if (service_) {
    all.emplace_back("completion");
    if (loaded_->chat_template) all.emplace_back("chat");
    if (api::has_tools(*format_)) all.emplace_back("tools");
  }
  if (loaded_->model->traits().classifier.labels > 0)
    all.emplace_back("rerank");
  else if (!service_ || engine_ != nullptr)
    all.emplace_back("embedding");
  return all;
}

// The model's own parameters where the request gave none.
void ModelHost::use_defaults(api::GenerationRequest& request) const {
  const sampling::SamplingParams& own = loaded_->defaults;
  if (own.greedy()) return;  // the model's files say nothing of sampling
  sampling::SamplingParams& params = request.options.sampling;
  if (!request.given.temperature) params.temperature = own.temperature;
  if (!request.given.top_k) params.top_k = own.top_k;
  if (!request.given.top_p) params.top_p = own.top_p;
  if (!request.given.min_p) params.min_p = own.min_p;
  if (!request.given.typical_p) params.typical_p = own.typical_p;
  if (!request.given.repetition_penalty) params.repetition_penalty = own.repetition_penalty;
}

api::ApiResult<std::vector<api::AnswerContext::Prompt>> ModelHost::prepare(api::GenerationRequest& request, bool render_only) const {
  if (request.chat && !api::has_tools(*format_)) write_tools_as_text(request);
  auto prompts = prompts_->make(request);
  if (!prompts || render_only) return prompts;
  if (auto status = fit(request, *prompts); !status) return std::unexpected(std::move(status).error());
  use_defaults(request);
  if (request.chat) {
    auto grammar = api::answer_grammar(*format_, request, prompts->front().text, *loaded_->tokenizer);
    if (!grammar) return std::unexpected(std::move(grammar).error());
    if (*grammar) request.options.grammar = std::move(**grammar);
    if (api::needs_special(*format_)) request.options.show_special = true;
  }
  return prompts;
}

// A prompt that is too long is an error, unless the request wants it cut.
api::ApiResult<void> ModelHost::fit(api::GenerationRequest& request, std::vector<api::AnswerContext::Prompt>& prompts) const {
  engine::CompletionRequest& options = request.options;
  for (api::AnswerContext::Prompt& prompt : prompts) {
    if (request.truncate_prompt) {
      const std::int64_t room = std::max<std::int64_t>(1, context_ - std::max<std::int64_t>(1, options.max_tokens));
      const std::int64_t keep = *request.truncate_prompt > 0 ? std::min(*request.truncate_prompt, room) : room;
      const auto size = static_cast<std::int64_t>(prompt.tokens.size());
      prompt.dropped_tokens = std::max<std::int64_t>(0, size - keep);
      prompt.tokens.erase(prompt.tokens.begin(), prompt.tokens.begin() + prompt.dropped_tokens);
    }
    const auto size = static_cast<std::int64_t>(prompt.tokens.size());
    const std::int64_t room = context_ - size;
    const std::int64_t needed = options.prompt_only ? 0 : std::max<std::int64_t>(1, request.max_tokens_given ? options.max_tokens : 1);
    if (needed > room) {
      return std::unexpected(api::bad_request(request.chat ? "messages" : "prompt",
                                              fmt::format("This model's maximum context length is {} tokens. However, you requested {} "
                                                          "tokens ({} in the {}, {} in the answer): shorten "
                                                          "the prompt or ask for fewer tokens.",
                                                          context_, size + needed, size, request.chat ? "messages" : "prompt", needed),
                                              "context_length_exceeded"));
    }
    // A default is no wish: it gives way where there is less room.
    if (!request.max_tokens_given && options.max_tokens > room) options.max_tokens = room;
  }
  return {};
}

Status ModelHost::with_model(const std::function<void()>& work) const {
  if (engine_ != nullptr) return engine_->run_between_steps(work);
  if (service_) return fail(ErrorCode::kUnsupported, "{} runs elsewhere and gives no vectors", spec_.name);
  work();
  return {};
}

Result<engine::Embedder*> ModelHost::embedder() {
  if (!embedder_) {
    engine::EmbedderOptions options;
    if (!spec_.pooling.empty()) {
      options.pooling = model::pooling_by_name(spec_.pooling);
      if (!options.pooling) return fail(ErrorCode::kInvalidArgument, "{}: no pooling is called \"{}\"", spec_.name, spec_.pooling);
    }
    WEIR_ASSIGN(embedder_, engine::Embedder::create(*loaded_, options));
  }
  return &*embedder_;
}

Result<engine::Reranker*> ModelHost::reranker() {
  if (!reranker_) {
    const engine::RerankMethod method = spec_.rerank_method == "head"        ? engine::RerankMethod::kHead
                                        : spec_.rerank_method == "yes-no"    ? engine::RerankMethod::kYesNo
                                        : spec_.rerank_method == "embedding" ? engine::RerankMethod::kEmbedding
                                                                             : engine::RerankMethod::kAuto;
    WEIR_ASSIGN(reranker_, engine::Reranker::create(*loaded_, method));
  }
  return &*reranker_;
}

Result<std::int64_t> ModelHost::vector_size() const {
  WEIR_ASSIGN(const engine::PoolingSpec spec, engine::read_pooling_spec(*loaded_));
  return spec.size;
}

bool ModelHost::embed(VectorWork work) {
  auto shared = std::make_shared<VectorWork>(std::move(work));
  return worker_->post([this, shared] {
    if (!shared->wanted || shared->wanted()) shared->done(run(*shared));
  });
}

bool ModelHost::rank(RankWork work) {
  auto shared = std::make_shared<RankWork>(std::move(work));
  return worker_->post([this, shared] {
    if (!shared->wanted || shared->wanted()) shared->done(run(*shared));
  });
}

// Beside an engine in pieces, so that its streams go on in between; a text's vector is the same in any company.
Result<std::vector<engine::Embedding>> ModelHost::run(const VectorWork& work) {
  std::vector<engine::Embedding> all;
  for (std::size_t done = 0; done < work.inputs.size();) {
    std::size_t end = done + 1;
    if (engine_ == nullptr) {
      end = work.inputs.size();
    } else {
      std::int64_t rows = 0;
      const auto rows_of = [](const engine::TextInput& input) {
        const auto* ids = std::get_if<std::vector<TokenId>>(&input);
        const auto* text = std::get_if<std::string>(&input);
        return ids ? static_cast<std::int64_t>(ids->size()) : text ? static_cast<std::int64_t>(text->size() / 3 + 2) : kVectorRows;
      };
      for (rows = rows_of(work.inputs[done]); end < work.inputs.size() && rows + rows_of(work.inputs[end]) <= kVectorRows; ++end)
        rows += rows_of(work.inputs[end]);
    }
    Result<std::vector<engine::Embedding>> part = fail(ErrorCode::kInternal, "no vectors were made");
    WEIR_TRY(with_model([&] {
      auto made = embedder();
      if (!made) {
        part = std::unexpected(std::move(made).error());
        return;
      }
      engine::EmbedRequest request{.inputs = std::span(work.inputs).subspan(done, end - done)};
      request.dimensions = work.dimensions;
      request.normalize = work.normalize;
      request.prompt_name = work.prompt_name;
      request.max_tokens = work.max_tokens;
      request.cut = work.cut;
      part = (*made)->embed(request);
    }));
    WEIR_ASSIGN(auto vectors, std::move(part));
    std::ranges::move(vectors, std::back_inserter(all));
    done = end;
  }
  return all;
}

Result<std::vector<engine::RankedDocument>> ModelHost::run(const RankWork& work) {
  Result<std::vector<engine::RankedDocument>> ranked = fail(ErrorCode::kInternal, "nothing was ranked");
  WEIR_TRY(with_model([&] {
    auto made = reranker();
    if (!made) {
      ranked = std::unexpected(std::move(made).error());
      return;
    }
    engine::RerankRequest request{.query = work.query, .documents = work.documents};
    request.top_n = work.top_n;
    request.cut = work.cut;
    request.max_tokens = work.max_tokens;
    request.instruction = work.instruction;
    ranked = (*made)->rank(request);
  }));
  return ranked;
}

}  // namespace weir::serving
