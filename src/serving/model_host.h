// SPDX-License-Identifier: Apache-2.0
// One model in memory and all that answers with it: an engine when it generates text, and a thread of its own for vectors and scores. It
// is made whole or not at all, and gives all its memory back at its end.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "api/generation_request.h"
#include "api/output_format.h"
#include "engine/embedding.h"
#include "engine/engine.h"
#include "engine/rerank.h"
#include "serving/prompts.h"
#include "serving/serve_options.h"
#include "serving/work_pool.h"

namespace weir::serving {

class ModelHost {
 public:
  using OnStep = std::function<void(const engine::StepRecord&)>;

  // Loads and starts it. `path` is what `spec.source` stands for.
  static Result<std::shared_ptr<ModelHost>> load(const ModelSpec& spec, const std::filesystem::path& path, const ServeOptions& options,
                                                 OnStep on_step = {}, const std::filesystem::path& draft = {});
  // With a service of the caller's in the engine's place (a worker elsewhere, a test's).
  static Result<std::shared_ptr<ModelHost>> make(const ModelSpec& spec, std::unique_ptr<engine::LoadedModel> loaded,
                                                 std::unique_ptr<engine::CompletionService> service, std::int64_t context);
  ~ModelHost();

  const ModelSpec& spec() const { return spec_; }
  const engine::LoadedModel& loaded() const { return *loaded_; }
  engine::CompletionService* service() const { return service_.get(); }  // null: it generates no text
  engine::Engine* engine() const { return engine_; }                     // null: none, or not one of this process
  std::int64_t context() const { return context_; }
  std::uint64_t bytes() const { return bytes_; }
  std::int64_t block_tokens() const { return kvcache::CacheOptions{}.block_tokens; }
  // "completion", "chat", "tools", "embedding", "rerank"
  std::vector<std::string> capabilities() const;
  const api::OutputFormat& output_format() const { return *format_; }
  const std::string& fingerprint() const { return fingerprint_; }
  const PromptMaker& prompts() const { return *prompts_; }

  // What is missing for the request to be submitted: prompts, the model's own sampling parameters, the grammar of its tools. Changes the
  // request. Takes long for long texts: not for io threads.
  api::ApiResult<std::vector<api::AnswerContext::Prompt>> prepare(api::GenerationRequest& request, bool render_only = false) const;

  // Vectors and scores, on a thread of their own, or between the steps of the engine. 429 when too many wait. `done` comes on that thread.
  struct VectorWork {
    std::vector<engine::TextInput> inputs = {};
    std::optional<std::int64_t> dimensions = {};
    std::optional<bool> normalize = {};
    std::optional<std::string> prompt_name = {};
    std::optional<std::int64_t> max_tokens = {};
    bool cut = false;
    std::function<bool()> wanted = {};  // asked before it begins; false: nobody waits any longer, and nothing is done
    TimePoint deadline = TimePoint::max();
    std::function<void(Result<std::vector<engine::Embedding>>)> done = {};
  };
  // Requests that wait together share their passes; each gets the bits that it would get alone.
  bool embed(VectorWork work);
  std::int64_t vector_batches() const { return vector_batches_; }  // requests that shared passes count once
  struct RankWork {
    std::string query;
    std::vector<std::string> documents;
    std::int64_t top_n = 0;
    bool cut = false;
    std::optional<std::int64_t> max_tokens = {};
    std::optional<std::string> instruction = {};
    std::function<bool()> wanted = {};
    TimePoint deadline = TimePoint::max();
    std::function<void(Result<std::vector<engine::RankedDocument>>)> done = {};
  };
  bool rank(RankWork work);
  Result<std::int64_t> vector_size() const;

 private:
  ModelHost(ModelSpec spec, std::unique_ptr<engine::LoadedModel> loaded);
  Status set_up();
  api::ApiResult<void> fit(api::GenerationRequest& request, std::vector<api::AnswerContext::Prompt>& prompts) const;
  void use_defaults(api::GenerationRequest& request) const;
  Status with_model(std::function<void()> work, TimePoint deadline) const;
  std::vector<VectorWork> take_vectors();
  void serve_vectors();
  void serve_together(std::vector<VectorWork> works);
  Result<std::vector<engine::Embedding>> run(const VectorWork& work);
  Result<std::vector<engine::Embedding>> run_part(const VectorWork& work, std::size_t first, std::size_t end);
  Result<std::vector<engine::RankedDocument>> run(const RankWork& work);
  Result<engine::Embedder*> embedder();
  Result<engine::Reranker*> reranker();

  ModelSpec spec_;
  std::unique_ptr<engine::LoadedModel> loaded_;
  std::unique_ptr<engine::CompletionService> service_;
  engine::Engine* engine_ = nullptr;
  std::int64_t context_ = 0;
  std::uint64_t bytes_ = 0;
  const api::OutputFormat* format_ = nullptr;
  std::string fingerprint_;
  std::unique_ptr<PromptMaker> prompts_;
  // Made when first asked for, used on the worker's thread.
  std::optional<engine::Embedder> embedder_;
  std::optional<engine::Reranker> reranker_;
  std::mutex vectors_mutex_;
  std::deque<VectorWork> vectors_;  // that wait for the worker
  std::atomic<std::int64_t> vector_batches_{0};
  std::unique_ptr<WorkPool> worker_;  // the first to end
};

}  // namespace weir::serving
