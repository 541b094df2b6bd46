// SPDX-License-Identifier: Apache-2.0
#include "serving/config_table.h"

#include <algorithm>

#include "serving/config_rows.h"

namespace weir::serving {
namespace {

using ServeRows = Rows<ServeConfig>;
constexpr double kMuch = 1125899906842624.0 /* 1024 TiB */, kDay = 86400;

// A place in the configuration, for reading and writing.
#define WEIR_AT(path) [](auto& config) -> auto& { return config.path; }

using KvTypes = std::vector<std::pair<std::string_view, std::optional<DType>>>;
const KvTypes& kv_types() {
  static const KvTypes types = {
      {"auto", std::nullopt}, {"f32", DType::kF32}, {"f16", DType::kF16}, {"bf16", DType::kBF16}, {"q8_0", DType::kQ8_0}};
  return types;
}
std::vector<std::string_view> policies() { return {"auto", "first-come", "priority", "deadline", "fair-share"}; }

void add_server(ServeRows& t) {
  t.list("listen", "Addresses to listen at: HOST:PORT, unix:PATH, or fd:N for a socket that was inherited. Port 0: any free one.",
         WEIR_AT(serve.listen));
  t.yes_or_no("insecure", "Let other machines in without keys.", WEIR_AT(serve.insecure));
  t.count("io_threads", 1, 256, "Threads for connections.", WEIR_AT(serve.io_threads));
  t.count("prepare_threads", 1, 256, "Threads for parsing, templates and tokenizers.", WEIR_AT(serve.prepare_threads));
  t.duration("drain", 0, kDay, "At a stop, running requests have so long to finish.", WEIR_AT(serve.drain));
  t.duration("watchdog", 1, 3600, "A model whose steps stand still for so long is not ready any more.", WEIR_AT(serve.watchdog));
  t.duration("default_timeout", 0, kDay, "Of requests without x-request-timeout-ms; 0s: none.", WEIR_AT(serve.default_timeout));
  t.duration("max_timeout", 1, 30 * kDay, "No request may ask for more.", WEIR_AT(serve.max_timeout));
  t.duration("comment_after", 0, 3600, "A silent stream gets a comment after so long, so that proxies keep it; 0s: never.",
             WEIR_AT(serve.comment_after));
  t.bytes("max_queued_bytes", 4096, 1e9, "A stream whose client leaves more than this unread is cut.", WEIR_AT(serve.max_queued_bytes));
  t.count("max_prompts", 1, 1e6, "Prompts in one request.", WEIR_AT(serve.max_prompts));
  t.count("max_preparing", 1, 1e6, "Requests on their way to a model; beyond, 429.", WEIR_AT(serve.max_preparing));
  t.yes_or_no("share_prefixes", "Keys share cached prefixes: faster, but whoever measures times learns what others asked.",
              WEIR_AT(serve.share_prefixes));
}

void add_memory(ServeRows& t) {
  t.bytes("memory_budget", 0, kMuch, "Of all models together; 0: what the machine has.", WEIR_AT(serve.memory_budget));
  t.duration("idle_unload", 0, 30 * kDay, "A model without requests leaves memory after so long; 0s: never.", WEIR_AT(serve.idle_unload))
      .flag = "idle";
  t.duration("load_patience", 0, kDay, "A request waits so long for its model to be loaded, then 503.", WEIR_AT(serve.load_patience));
  t.count("max_load_waiters", 0, 1e6, "Requests that wait for models to be loaded; beyond, 503.", WEIR_AT(serve.max_load_waiters));
  t.text("adapter_folder", "Adapters that may be loaded by name at run time lie here; empty: none.", WEIR_AT(serve.adapter_folder));
  t.number("watts", 0, 1e5, "Of the machine at work, for estimates of energy; 0: 8 W for each processor used.", WEIR_AT(serve.watts));
}

void add_security(ServeRows& t) {
  t.text("tls.certificate", "PEM file with the certificate chain; with it, all addresses speak TLS.", WEIR_AT(serve.tls.certificate));
  t.text("tls.key", "PEM file with the certificate's key.", WEIR_AT(serve.tls.key));
  t.text("tls.client_ca", "PEM file: certificates of clients are verified against it.", WEIR_AT(serve.tls.client_ca));
  t.yes_or_no("tls.require_client_certificate", "Refuse clients without a certificate.", WEIR_AT(serve.tls.require_client_certificate));

  t.text("auth.keys_file", "File with API keys (docs/config.md); empty: everybody may do everything.", WEIR_AT(keys_file)).flag = "keys";
  t.yes_or_no("auth.metrics_need_key", "/metrics is for keys only.", WEIR_AT(metrics_need_key));
  t.count("auth.requests_per_minute", 0, kMuch, "Of keys that name no limit of their own; 0: none.",
          WEIR_AT(default_limits.requests_per_minute));
  t.count("auth.tokens_per_minute", 0, kMuch, "Likewise: tokens of prompts and answers.", WEIR_AT(default_limits.tokens_per_minute));
  t.count("auth.concurrent", 0, 1e9, "Likewise: requests at a time.", WEIR_AT(default_limits.concurrent));

  t.list("cors.origins", "Web pages that may call, such as https://app.example; \"*\": all; none: CORS is off.",
         WEIR_AT(serve.cors.origins));
  t.text("cors.allow_headers", "Headers that they may send.", WEIR_AT(serve.cors.allow_headers));
  t.yes_or_no("cors.allow_credentials", "They may send credentials that the browser keeps.", WEIR_AT(serve.cors.allow_credentials));
  t.count("cors.max_age_s", 0, 86400, "Seconds for which browsers remember the answer.", WEIR_AT(serve.cors.max_age_s));
}

void add_limits(ServeRows& t) {
  t.count("limits.max_connections", 1, 1e6, "Open at a time; beyond, 503.", WEIR_AT(serve.limits.max_connections));
  t.count("limits.max_requests_per_connection", 0, 1e9, "Then it is closed; 0: no limit.",
          WEIR_AT(serve.limits.max_requests_per_connection));
  t.bytes("limits.max_body_bytes", 1024, 1e12, "Of one request; beyond, 413.", WEIR_AT(serve.max_body_bytes));
  t.bytes("limits.max_total_body_bytes", 1024, 1e13, "Of all requests held at a time; beyond, 503.",
          WEIR_AT(serve.limits.max_total_body_bytes));
  t.bytes("limits.max_pipelined_bytes", 0, 1e9, "Read ahead while a request is answered.", WEIR_AT(serve.limits.max_pipelined_bytes));
  t.bytes("limits.max_head_bytes", 512, 1 << 24, "Of a request's line and headers; beyond, 431.",
          WEIR_AT(serve.limits.head.max_head_bytes));
  t.bytes("limits.max_target_bytes", 64, 1 << 20, "Of a request's target; beyond, 414.", WEIR_AT(serve.limits.head.max_target_bytes));
  t.count("limits.max_header_lines", 4, 10000, "Of a request; beyond, 431.", WEIR_AT(serve.limits.head.max_lines));
  t.duration("limits.header_timeout", 0.1, 3600, "From the first to the last byte of a head, and for TLS handshakes.",
             WEIR_AT(serve.limits.header_timeout));
  t.duration("limits.body_timeout", 0.1, kDay, "For a body, besides the time that it takes at min_bytes_per_second.",
             WEIR_AT(serve.limits.body_timeout));
  t.duration("limits.idle_timeout", 0.1, kDay, "Of a kept connection between requests.", WEIR_AT(serve.limits.idle_timeout));
  t.duration("limits.write_timeout", 0.1, kDay, "For one piece of an answer, besides the time at min_bytes_per_second.",
             WEIR_AT(serve.limits.write_timeout));
  t.bytes("limits.min_bytes_per_second", 1, 1e12, "Slower clients run into the timeouts.", WEIR_AT(serve.limits.min_bytes_per_second));
  t.duration("limits.deadline_grace", 0, 600, "Between the end of a request's time and the server's own 504.",
             WEIR_AT(serve.limits.deadline_grace));
}

Status set_speculation(ServeConfig& config, const ConfigValue& value) {
  auto& options = config.serve.engine.speculation;
  if (!std::get<bool>(value))
    options.reset();
  else if (!options)
    options.emplace();
  return {};
}
std::optional<ConfigValue> get_speculation(const ServeConfig& config) { return ConfigValue(config.serve.engine.speculation.has_value()); }

// The engine's own names need no prefix as flags.
void add_engine(ServeRows& t) {
  t.count("engine.context", 0, 1 << 30, "Tokens of prompt and answer together; 0: the model's own, as far as the cache holds it.",
          WEIR_AT(serve.engine.context))
      .flag = "context";
  t.count("engine.cache_tokens", 0, kMuch, "Tokens in the KV cache; 0: by cache_bytes.", WEIR_AT(serve.engine.cache_tokens)).flag =
      "cache-tokens";
  t.bytes("engine.cache_bytes", 0, kMuch, "Size of the KV cache; 0: four contexts, at most a quarter of the memory.",
          WEIR_AT(serve.engine.cache_bytes))
      .flag = "cache-bytes";
  t.choice("engine.kv_type", kv_types(), "Elements of the KV cache; auto: what suits the processor.", WEIR_AT(serve.engine.kv_type)).flag =
      "kv-type";
  t.count("engine.max_running", 1, 1e6, "Sequences computed at a time.", WEIR_AT(serve.engine.max_running)).flag = "max-running";
  t.count("engine.max_waiting", 0, 1e6, "Sequences in the queue; beyond, 429.", WEIR_AT(serve.engine.max_waiting)).flag = "max-waiting";
  t.duration(
       "engine.max_wait", 0, 24 * 3600,
       "While more requests come than end and they have begun later than this for a while, those that would begin later are refused "
       "with 429; a burst may wait, and so may clients that each wait for their answers, until a wait takes as long as eight requests "
       "and more than 30 s. 0s: a tenth of what requests take to run, 100 ms to 10 s.",
       WEIR_AT(serve.engine.max_wait))
      .flag = "max-wait";
  t.count("engine.token_budget", 1, 1 << 20, "Positions in one step.", WEIR_AT(serve.engine.token_budget)).flag = "token-budget";
  auto& policy = t.text("engine.policy", "Who goes first. auto: with keys each gets its share (fair-share), else who comes first.",
                        WEIR_AT(serve.engine.policy));
  policy.rule.choices = policies();
  policy.flag = "policy";
  t.yes_or_no("engine.prefix_cache", "Keep the beginnings of prompts for later ones.", WEIR_AT(serve.engine.prefix_cache)).flag =
      "prefix-cache";
  t.duration("engine.stall_limit", 0, 3600, "No gap between two tokens of a stream longer than this while prompts come; 0s: no limit.",
             WEIR_AT(serve.engine.stall_limit))
      .flag = "stall-limit";
  t.text("engine.tier_folder", "Folder for the prefix cache's second tier on disk; empty: none.", WEIR_AT(serve.engine.tier_folder)).flag =
      "tier-folder";
  t.bytes("engine.tier_bytes", 0, kMuch, "Size of that tier.", WEIR_AT(serve.engine.tier_bytes)).flag = "tier-bytes";
  t.custom("engine.speculation", ValueType::kSwitch, "Guess tokens and verify several at a time where that pays; the text stays the same.",
           set_speculation, get_speculation)
      .flag = "speculation";
  t.yes_or_no("engine.measure", "Measure what steps take, by kind of operation.", WEIR_AT(serve.engine.measure)).flag = "measure";

  t.count("compute.threads", 0, 4096, "Threads to compute with; 0: as many as help.", WEIR_AT(serve.cpu.threads)).flag = "threads";
  t.choice("compute.activations",
           std::vector<std::pair<std::string_view, kernels::Activations>>{{"int8", kernels::Activations::kInt8},
                                                                          {"f32", kernels::Activations::kF32}},
           "In products with quantised weights: int8 is fast, f32 exact.", WEIR_AT(serve.cpu.activations))
      .flag = "activations";
  t.text("compute.isa", "Kernel table, such as avx2; empty: WEIR_ISA, else the best that the machine runs.", WEIR_AT(serve.cpu.isa)).flag =
      "isa";
}

Status set_headers(ServeConfig& config, const ConfigValue& value) {
  config.spans.headers.clear();
  for (const std::string& line : std::get<std::vector<std::string>>(value)) {
    const std::size_t equals = line.find('=');
    if (equals == 0 || equals == std::string::npos) return fail(ErrorCode::kInvalidArgument, "should be a list of NAME=VALUE");
    config.spans.headers.emplace_back(line.substr(0, equals), line.substr(equals + 1));
  }
  return {};
}

std::optional<ConfigValue> get_headers(const ServeConfig& config) {
  std::vector<std::string> lines;
  for (const auto& [name, value] : config.spans.headers) lines.push_back(name + "=" + value);
  return ConfigValue(std::move(lines));
}

void add_telemetry(ServeRows& t) {
  t.choice("log.level",
           std::vector<std::pair<std::string_view, log::Level>>{{"debug", log::Level::kDebug},
                                                                {"info", log::Level::kInfo},
                                                                {"warn", log::Level::kWarn},
                                                                {"error", log::Level::kError},
                                                                {"off", log::Level::kOff}},
           "Of messages on standard error.", WEIR_AT(log_level));
  t.text("log.access_file", "Access log; \"-\": standard output; empty: none. SIGHUP opens it anew.", WEIR_AT(access_log.file)).flag =
      "access-log";
  t.choice("log.access_format",
           std::vector<std::pair<std::string_view, telemetry::LogFormat>>{{"json", telemetry::LogFormat::kJson},
                                                                          {"text", telemetry::LogFormat::kText}},
           "Its lines.", WEIR_AT(access_log.format));
  t.yes_or_no("log.access_prompts", "It holds the texts of prompts and answers.", WEIR_AT(access_log.prompts));
  t.bytes("log.access_max_text", 16, 1 << 24, "Of one such text.", WEIR_AT(access_log.max_text));
  t.bytes("log.access_max_queued", 65536, 1e10, "Lines that wait for the disk; beyond, they are dropped and counted.",
          WEIR_AT(access_log.max_queued));

  t.yes_or_no("metrics.enabled", "Serve /metrics for Prometheus.", WEIR_AT(metrics)).flag = "metrics";

  t.text("tracing.endpoint", "Collector for spans by OTLP/HTTP, such as http://127.0.0.1:4318/v1/traces; empty: none.",
         WEIR_AT(spans.endpoint))
      .flag = "otlp";
  t.custom("tracing.headers", ValueType::kList, "Headers for the collector, NAME=VALUE. Never printed.", set_headers, get_headers).secret =
      true;
  t.text("tracing.service_name", "This service's name in traces.", WEIR_AT(spans.service_name));
  t.text("tracing.service_instance", "This process' name in traces; empty: a random one.", WEIR_AT(spans.service_instance));
  t.number("tracing.sample_ratio", 0, 1, "Share of the requests without a trace of their own that get one.", WEIR_AT(spans.sample_ratio));
  t.count("tracing.max_queued", 16, 1e6, "Spans that wait for the collector; beyond, they are dropped and counted.",
          WEIR_AT(spans.max_queued));
  t.count("tracing.batch", 1, 1e5, "Spans sent together.", WEIR_AT(spans.batch));
  t.duration("tracing.interval", 0.01, 3600, "A smaller batch goes after so long.", WEIR_AT(spans.interval));
  t.duration("tracing.timeout", 0.1, 600, "For the collector's answer.", WEIR_AT(spans.timeout));
}

Status set_adapters(ModelSpec& model, const ConfigValue& value) {
  model.adapters.clear();
  for (const std::string& line : std::get<std::vector<std::string>>(value)) {
    const std::size_t equals = line.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == line.size())
      return fail(ErrorCode::kInvalidArgument, "should be a list of NAME=PATH");
    model.adapters.push_back({line.substr(0, equals), line.substr(equals + 1)});
  }
  return {};
}

std::optional<ConfigValue> get_adapters(const ModelSpec& model) {
  std::vector<std::string> lines;
  for (const AdapterSpec& adapter : model.adapters) lines.push_back(adapter.name + "=" + adapter.path.string());
  return ConfigValue(std::move(lines));
}

std::vector<ConfigRow<ModelSpec>> make_model_rows() {
  Rows<ModelSpec> t;
  t.text("name", "What clients call it.", WEIR_AT(name)).rule.most_bytes = 256;
  t.text("source", "Catalogue name, GGUF file or Hugging Face folder; empty: the name.", WEIR_AT(source));
  t.list("aliases", "Other names for it.", WEIR_AT(aliases)).rule.most_bytes = 256;
  t.custom("adapters", ValueType::kList, "LoRA adapters that clients may ask for by name, NAME=PATH.", set_adapters, get_adapters);
  t.text("draft", "A smaller model of the same vocabulary that guesses; empty: none.", WEIR_AT(draft));
  t.text("output_format", "How it writes reasoning and calls of tools, such as hermes; empty: by its template.", WEIR_AT(output_format));
  t.text("chat_template", "A file that replaces the model's own template.", WEIR_AT(chat_template));
  t.text("rerank_method", "How it scores documents; empty: by the model.", WEIR_AT(rerank_method)).rule.choices = {"", "head", "yes-no",
                                                                                                                   "embedding"};
  t.text("pooling", "Of its embeddings: mean, cls, last, …; empty: by the model.", WEIR_AT(pooling));
  t.yes_or_no("preload", "Load it at the start; else with the first request.", WEIR_AT(preload));
  t.yes_or_no("pinned", "Never unload it.", WEIR_AT(pinned));
  t.count("context", 0, 1 << 30, "As engine.context, for this model; so are those below.", WEIR_AT(context));
  t.count("cache_tokens", 0, kMuch, "As engine.cache_tokens.", WEIR_AT(cache_tokens));
  t.bytes("cache_bytes", 0, kMuch, "As engine.cache_bytes.", WEIR_AT(cache_bytes));
  t.choice("kv_type", KvTypes(kv_types().begin() + 1, kv_types().end()), "As engine.kv_type.", WEIR_AT(kv_type));
  t.count("max_running", 1, 1e6, "As engine.max_running.", WEIR_AT(max_running));
  t.text("policy", "As engine.policy.", WEIR_AT(policy)).rule.choices = policies();
  return std::move(t.rows);
}

#undef WEIR_AT

}  // namespace

const std::vector<ConfigRow<ServeConfig>>& serve_rows() {
  static const std::vector<ConfigRow<ServeConfig>> rows = [] {
    ServeRows table;
    add_server(table);
    add_memory(table);
    add_security(table);
    add_limits(table);
    add_engine(table);
    add_telemetry(table);
    return std::move(table.rows);
  }();
  return rows;
}

const std::vector<ConfigRow<ModelSpec>>& model_rows() {
  static const std::vector<ConfigRow<ModelSpec>> rows = make_model_rows();
  return rows;
}

std::string flag_of(const ConfigRow<ServeConfig>& row) {
  std::string flag(row.flag.empty() ? row.key : row.flag);
  std::replace_if(flag.begin(), flag.end(), [](char c) { return c == '.' || c == '_'; }, '-');
  return flag;
}

std::string variable_of(const ConfigRow<ServeConfig>& row) {
  std::string name(kVariablePrefix);
  for (const char c : row.key) name += c == '.' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return name;
}

}  // namespace weir::serving
