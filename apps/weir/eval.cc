// SPDX-License-Identifier: Apache-2.0
// weir eval golden | perplexity | choices | template: is the model computed right, and how good is it?
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "eval/choices.h"
#include "eval/golden.h"
#include "eval/perplexity.h"
#include "eval/template_cases.h"
#include "model_options.h"
#include "store/resolve.h"
#include "verbs.h"

namespace weir::cli {
namespace {

// Prints the reports; true when all hold.
bool print_reports(const std::vector<eval::FileReport>& reports, bool as_json, json::Object header) {
  bool ok = true;
  json::Array files;
  for (const auto& report : reports) {
    ok = ok && report.ok;
    if (as_json) {
      files.push_back(to_json(report));
    } else {
      fmt::print("{}", to_text(report));
    }
  }
  if (as_json) {
    header["ok"] = ok;
    header["files"] = std::move(files);
    fmt::print("{}\n", boost::json::serialize(header));
  }
  return ok;
}

struct GoldenVerb {
  ModelOptions model;
  std::vector<std::string> files;
  eval::GoldenOptions options;
  bool json = false;
};

Status run_golden_verb(GoldenVerb& verb, int& exit_status) {
  WEIR_ASSIGN(engine::LoadedModel loaded, load(verb.model));
  verb.options.activations = cpu_options(verb.model).activations;
  std::vector<eval::FileReport> reports;
  for (const auto& file : verb.files) {
    WEIR_ASSIGN(eval::FileReport report, eval::run_golden(loaded, file, verb.options));
    reports.push_back(std::move(report));
  }
  const json::Object header{{"model", loaded.path.string()}, {"kernels", loaded.backend->description()}};
  exit_status = print_reports(reports, verb.json, header) ? 0 : kExitFailed;
  return {};
}

void add_golden(CLI::App& eval, int& exit_status) {
  auto verb = std::make_shared<GoldenVerb>();
  CLI::App* app = eval.add_subcommand("golden", "Compare logits, greedy tokens or embeddings with stored references");
  add_model_options(*app, verb->model, "f32");
  app->add_option("FILE", verb->files, "Golden files (formats: docs/evaluation.md)")->required();
  app->add_option("--tolerance", verb->options.tolerance, "Largest error of a logit; default: the file's, else 1e-3 (f32) or 0.75 (int8)");
  app->add_option("--epsilon", verb->options.epsilon,
                  "Ignore greedy steps whose reference margin is below this; default 1e-3 (f32) or 0.35 (int8)");
  app->add_option("--alt", verb->options.alternative, "Compare with this entry of the file's \"alt\"");
  app->add_option("--chunk", verb->options.chunk, "Rows of a forward pass")->check(CLI::Range(1, 65536))->capture_default_str();
  app->add_flag("--as-answer", verb->options.as_answer,
                "Rows in the arithmetic of answers, where prompts have another (docs/performance.md)");
  app->add_flag("--json", verb->json, "Print JSON");
  app->footer(
      "Exit status 0 only if all cases hold.\n"
      "Example:\n"
      "  weir eval golden smollm2 tests/data/smollm2/golden_logits.json tests/data/smollm2/golden_greedy.json\n");
  app->callback([verb, &exit_status] {
    if (auto status = run_golden_verb(*verb, exit_status); !status) exit_status = report_error(status.error());
  });
}

struct PerplexityVerb {
  ModelOptions model;
  std::string text;
  eval::PerplexityOptions options;
  bool json = false;
};

Status run_perplexity_verb(PerplexityVerb& verb) {
  catch_interrupts();
  WEIR_ASSIGN(engine::LoadedModel loaded, load(verb.model));
  WEIR_ASSIGN(const auto ids, eval::read_text_ids(loaded, verb.text));
  const bool show = !verb.json && ::isatty(STDERR_FILENO);
  WEIR_ASSIGN(const eval::PerplexityResult result,
              eval::measure_perplexity(loaded, ids, verb.options, [&](std::int64_t done, std::int64_t total, double running) {
                if (show) fmt::print(stderr, "\rwindow {} of {}: {:.4f} ", done, total, running);
                return !interrupted();
              }));
  if (show) fmt::print(stderr, "\r\033[K");
  if (verb.json) {
    json::Object out = to_json(result, verb.options);
    out["model"] = loaded.path.string();
    out["kernels"] = loaded.backend->description();
    fmt::print("{}\n", boost::json::serialize(out));
  } else {
    fmt::print("perplexity {:.4f} ± {:.4f} (mean NLL {:.5f}, {} tokens scored in {} windows of {}, {:.1f} s, {})\n", result.perplexity,
               result.standard_error, result.mean_nll, result.scored_tokens, result.windows, verb.options.context, result.seconds,
               loaded.backend->description());
  }
  return {};
}

void add_perplexity(CLI::App& eval, int& exit_status) {
  auto verb = std::make_shared<PerplexityVerb>();
  CLI::App* app = eval.add_subcommand("perplexity", "Perplexity of a text, by the windowed convention of llama.cpp's tool");
  add_model_options(*app, verb->model);
  app->add_option("--text", verb->text, "The text file")->required();
  app->add_option("--context", verb->options.context, "Tokens of a window; the second half is scored")->capture_default_str();
  app->add_option("--windows", verb->options.windows, "Windows to score; 0 takes all")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 32))
      ->capture_default_str();
  app->add_flag("--score-all", verb->options.score_all, "Score every position of a window");
  app->add_option("--chunk", verb->options.chunk, "Rows of a forward pass")->check(CLI::Range(1, 65536))->capture_default_str();
  app->add_flag("--as-answer", verb->options.as_answer,
                "Rows in the arithmetic of answers, where prompts have another (docs/performance.md)");
  app->add_flag("--json", verb->json, "Print JSON");
  app->footer(
      "Example:\n"
      "  weir eval perplexity smollm2 --text tests/data/wikitext2_test.txt --windows 4\n");
  app->callback([verb, &exit_status] {
    if (auto status = run_perplexity_verb(*verb); !status) exit_status = report_error(status.error());
  });
}

struct ChoicesVerb {
  ModelOptions model;
  std::string file;
  bool json = false;
};

Status run_choices_verb(ChoicesVerb& verb) {
  catch_interrupts();
  WEIR_ASSIGN(const auto tasks, eval::read_choice_tasks(verb.file));
  WEIR_ASSIGN(engine::LoadedModel loaded, load(verb.model));
  const bool show = !verb.json && ::isatty(STDERR_FILENO);
  WEIR_ASSIGN(const eval::ChoicesResult result, eval::score_choices(loaded, tasks, [&](std::size_t done, std::size_t total) {
                if (show) fmt::print(stderr, "\rtask {} of {} ", done, total);
                return !interrupted();
              }));
  if (show) fmt::print(stderr, "\r\033[K");
  if (verb.json) {
    json::Object out = to_json(result);
    out["model"] = loaded.path.string();
    out["kernels"] = loaded.backend->description();
    fmt::print("{}\n", boost::json::serialize(out));
  } else {
    fmt::print("acc {:.4f} ± {:.4f}, acc_norm {:.4f} ± {:.4f} ({} of {} tasks have an answer, {:.1f} s, {})\n", result.accuracy,
               result.accuracy_error, result.accuracy_by_length, result.accuracy_by_length_error, result.answered, result.tasks.size(),
               result.seconds, loaded.backend->description());
  }
  return {};
}

void add_choices(CLI::App& eval, int& exit_status) {
  auto verb = std::make_shared<ChoicesVerb>();
  CLI::App* app = eval.add_subcommand("choices", "Multiple choice by likelihood, by the convention of lm-evaluation-harness");
  add_model_options(*app, verb->model);
  app->add_option("FILE", verb->file, "JSON lines: {\"context\": \"…\", \"choices\": [\" …\", …], \"answer\": 0}")->required();
  app->add_flag("--json", verb->json, "Print JSON, with the log probability of every choice");
  app->footer(
      "A choice is scored as it stands behind the context, so it begins with a space as a rule.\n"
      "Example:\n"
      "  weir eval choices smollm2 tests/data/eval/choices.jsonl\n");
  app->callback([verb, &exit_status] {
    if (auto status = run_choices_verb(*verb); !status) exit_status = report_error(status.error());
  });
}

struct TemplateVerb {
  std::vector<std::string> files, folders;
  std::string model;
  bool json = false;
};

// The test data's folder, so that `./test` and people who fetched it need no option.
std::filesystem::path test_data_folder() {
  if (const char* folder = std::getenv("WEIR_TEST_CACHE")) return folder;
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home ? home : ".") / ".cache/weir/test-data";
}

Status run_template_verb(const TemplateVerb& verb, int& exit_status) {
  eval::TemplateOptions options;
  for (const auto& folder : verb.folders) options.folders.emplace_back(folder);
  options.folders.push_back(test_data_folder() / "templates");
  if (auto model = store::resolve(verb.model.empty() ? "smollm2" : verb.model); model) {
    options.model = *model;
  } else if (!verb.model.empty()) {
    return std::unexpected(model.error());
  }
  std::vector<eval::FileReport> reports;
  for (const auto& file : verb.files) {
    WEIR_ASSIGN(eval::FileReport report, eval::run_template_cases(file, options));
    reports.push_back(std::move(report));
  }
  exit_status = print_reports(reports, verb.json, {}) ? 0 : kExitFailed;
  return {};
}

void add_template(CLI::App& eval, int& exit_status) {
  auto verb = std::make_shared<TemplateVerb>();
  CLI::App* app = eval.add_subcommand("template", "Render chat template cases and compare with the expected text");
  app->add_option("FILE", verb->files, "Case files")->required();
  app->add_option("--templates", verb->folders, "Folders with NAME.jinja; the fetched test data is looked at too");
  app->add_option("--model", verb->model, "Model whose own template '@gguf:…' names; default: smollm2 if it is here");
  app->add_flag("--json", verb->json, "Print JSON");
  app->footer(
      "Exit status 0 only if all cases hold; a case whose template is not found does not hold.\n"
      "Example:\n"
      "  weir eval template tests/data/chat/cases_templates.json tests/data/chat/cases_jinja.json\n");
  app->callback([verb, &exit_status] {
    if (auto status = run_template_verb(*verb, exit_status); !status) exit_status = report_error(status.error());
  });
}

}  // namespace

void add_eval(CLI::App& app, int& exit_status) {
  CLI::App* verb = app.add_subcommand("eval", "Check a model against references and measure its quality");
  verb->require_subcommand(1);
  add_golden(*verb, exit_status);
  add_perplexity(*verb, exit_status);
  add_choices(*verb, exit_status);
  add_template(*verb, exit_status);
}

}  // namespace weir::cli
