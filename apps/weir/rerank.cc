// SPDX-License-Identifier: Apache-2.0
// weir rerank: documents in the order of how well they answer a query, as JSON lines.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "base/json.h"
#include "engine/rerank.h"
#include "model_options.h"
#include "verbs.h"

namespace weir::cli {
namespace {

struct RerankVerb {
  ModelOptions model;
  std::string query, method = "auto";
  std::vector<std::string> documents;
  std::int64_t top_n = 0;
  bool cut = false;
};

engine::RerankMethod method_of(const std::string& name) {
  if (name == "head") return engine::RerankMethod::kHead;
  if (name == "yes-no") return engine::RerankMethod::kYesNo;
  return name == "embedding" ? engine::RerankMethod::kEmbedding : engine::RerankMethod::kAuto;
}

Status run(RerankVerb& verb) {
  WEIR_ASSIGN(engine::LoadedModel loaded, load(verb.model));
  WEIR_ASSIGN(engine::Reranker reranker, engine::Reranker::create(loaded, method_of(verb.method)));
  if (verb.documents.empty())
    for (std::string line; std::getline(std::cin, line);) verb.documents.push_back(line);
  engine::RerankRequest request{.query = verb.query, .documents = verb.documents};
  request.top_n = verb.top_n;
  request.cut = verb.cut;
  WEIR_ASSIGN(const auto ranked, reranker.rank(request));
  for (const engine::RankedDocument& document : ranked) {
    const json::Object line{{"index", document.index},   {"score", document.score}, {"logit", document.logit},
                            {"tokens", document.tokens}, {"cut", document.cut},     {"document", verb.documents[document.index]}};
    fmt::print("{}\n", boost::json::serialize(line));
  }
  return {};
}

}  // namespace

void add_rerank(CLI::App& app, int& exit_status) {
  auto verb = std::make_shared<RerankVerb>();
  CLI::App* rerank = app.add_subcommand("rerank", "Order documents by how well they answer a query, one JSON line each");
  add_model_options(*rerank, verb->model, "f32");
  rerank->add_option("QUERY", verb->query, "The query")->required();
  rerank->add_option("DOCUMENT", verb->documents, "Documents; default: the lines of standard input");
  rerank->add_option("--method", verb->method, "head (a classifier), yes-no (Qwen3-Reranker), embedding (cosine), or auto")
      ->check(CLI::IsMember({"auto", "head", "yes-no", "embedding"}))
      ->capture_default_str();
  rerank->add_option("--top-n", verb->top_n, "Only the best of them; 0: all")->check(CLI::NonNegativeNumber);
  rerank->add_flag("--truncate", verb->cut, "Cut texts that are too long; else they are an error");
  rerank->footer(
      "Example:\n"
      "  weir rerank minilm \"What is a weir?\" \"Cats sleep.\" \"A weir is a low dam.\"\n");
  rerank->callback([verb, &exit_status] {
    if (auto status = run(*verb); !status) exit_status = report_error(status.error());
  });
}

}  // namespace weir::cli
