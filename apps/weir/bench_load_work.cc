// SPDX-License-Identifier: Apache-2.0
#include "bench_load_work.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/file_io.h"
#include "base/thread_pool.h"
#include "kernels/cpu_backend.h"
#include "store/resolve.h"

namespace weir::cli {
namespace {

constexpr char kGroup[] = "Work";
constexpr std::uint64_t kLongestLimits = 4u << 20;  // bytes of a file

struct Span {
  Duration begin, end;
};

// For how long any request was between its first and its last token.
Duration time_of_any(std::vector<Span> spans) {
  std::ranges::sort(spans, {}, &Span::begin);
  Duration total{}, until{};
  for (const Span& span : spans) {
    const Duration from = std::max(span.begin, until);
    if (span.end <= from) continue;
    total += span.end - from;
    until = span.end;
  }
  return total;
}

struct Served {
  std::vector<bench::ServedRequest> requests;
  Duration decoding{};
  bool prompts_known = true;
};

Served served(const std::vector<loadgen::RequestRecord>& records) {
  Served out;
  std::vector<Span> spans;
  for (const loadgen::RequestRecord& r : records) {
    if (r.outcome != loadgen::Outcome::kOk) continue;
    bench::ServedRequest request{
        .prompt = static_cast<double>(std::max<std::int64_t>(r.prompt_tokens, 0)),
        .cached = static_cast<double>(std::clamp<std::int64_t>(r.cached_tokens, 0, std::max<std::int64_t>(r.prompt_tokens, 0))),
        .output = static_cast<double>(r.tokens())};
    out.prompts_known &= r.prompt_tokens >= 0;
    if (r.first_token != loadgen::kNever && r.last_token != loadgen::kNever && r.last_token > r.first_token) {
      request.decode_s = to_seconds(r.last_token - r.first_token);
      spans.push_back({r.first_token, r.last_token});
    }
    out.requests.push_back(request);
  }
  out.decoding = time_of_any(std::move(spans));
  return out;
}

}  // namespace

void WorkOptions::add_to(CLI::App& app) {
  app.add_option(
         "--model-file", model_,
         "The model that the server runs (catalogue name, GGUF file or folder): multiply-adds and bytes per request from its shape, and "
         "their share of the machine's limits")
      ->group(kGroup);
  app.add_option("--limits", limits_file_,
                 "Of the server's machine, as `weir bench machine --json` wrote them; measured on this one otherwise")
      ->group(kGroup);
  app.add_option("--model-kv-type", kv_type_, "What the server keeps keys and values in")->capture_default_str()->group(kGroup);
  app.add_option("--model-activations", activations_, "What quantised weights are multiplied with there")
      ->check(CLI::IsMember({"int8", "f32"}))
      ->capture_default_str()
      ->group(kGroup);
}

Status WorkOptions::prepare() {
  if (model_.empty()) {
    if (!limits_file_.empty()) return fail(ErrorCode::kInvalidArgument, "--limits needs --model-file: what is it that is limited?");
    return {};
  }
  const auto type = dtype_from_name(kv_type_);
  if (!type) return fail(ErrorCode::kInvalidArgument, "--model-kv-type: unknown type '{}'; use f32, bf16, f16 or q8_0", kv_type_);
  kv_ = *type;
  WEIR_ASSIGN(const std::filesystem::path path, store::resolve(model_));
  // Only its shape is looked at: the plainest backend, and no weights are brought in.
  WEIR_ASSIGN(std::shared_ptr<kernels::Backend> backend, kernels::make_cpu_backend({.threads = 1, .isa = "reference"}));
  WEIR_ASSIGN(shape_, model::Model::load(path, std::move(backend)));
  if (shape_->traits().encoder) return fail(ErrorCode::kUnsupported, "{}: the work of models without a decoder is not counted", model_);
  WEIR_TRY(model::SequenceMemory::check_type(shape_->traits(), kv_));
  if (limits_file_.empty()) {
    WEIR_ASSIGN(limits_, kernels::measure_limits(usable_processors(), shape_->active_weight_bytes()));
    return {};
  }
  WEIR_ASSIGN(const std::string text, read_file(limits_file_, kLongestLimits));
  WEIR_ASSIGN(limits_, bench::parse_limits(text));
  return {};
}

Status WorkOptions::add_to(loadgen::Measured& measured, std::string& text) const {
  if (!shape_) return {};
  const auto activations = activations_ == "int8" ? kernels::Activations::kInt8 : kernels::Activations::kF32;
  const bench::ModelCost cost(*shape_, kv_, activations, *limits_);
  const Served what = served(measured.result.records);
  const bench::ServedWork work = bench::served_work(cost, what.requests, measured.summary.length_s, to_seconds(what.decoding), *limits_);
  json::Object object = bench::to_json(work, *limits_);
  object["limits_from"] = limits_file_.empty() ? "this machine, before the run" : limits_file_;
  text += bench::to_text(work, *limits_);
  if (!what.prompts_known) {
    object["note"] = "the server does not say how long prompts are: their work is not counted";
    text += "  the server does not say how long prompts are: their work is not counted\n";
  }
  measured.seen["work"] = std::move(object);
  return {};
}

}  // namespace weir::cli
