// SPDX-License-Identifier: Apache-2.0
// Precedence, the ways to write values, errors that help, and that what is printed is read back.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/file_io.h"
#include "base/testing.h"
#include "serving/config_hint.h"
#include "serving/config_table.h"

namespace weir::serving {
namespace {

using namespace std::chrono_literals;

std::string error_of(const ConfigInput& input) {
  const auto config = load_config(input);
  return config ? "no error" : config.error().message;
}

std::string text_error(std::string_view toml) {
  ServeConfig config;
  const Status status = read_config_text(toml, "weir.toml", config);
  return status ? "no error" : status.error().message;
}

using Texts = std::initializer_list<std::pair<const char*, const char*>>;
std::vector<std::pair<std::string, std::string>> pairs(Texts texts) { return {texts.begin(), texts.end()}; }

ConfigInput with_flags(Texts flags) {
  ConfigInput input;
  input.flags = pairs(flags);
  input.environment.emplace();
  return input;
}

TEST(Config, FlagsGoBeforeEnvironmentBeforeFileBeforeDefaults) {
  const testing::TemporaryFolder folder;
  ConfigInput input;
  input.file = folder.path() / "weir.toml";
  ASSERT_TRUE(write_file_atomically(input.file, "drain = \"1s\"\nwatchdog = \"2s\"\nmax_prompts = 3\n"));
  input.environment = pairs({{"WEIR_SERVE_WATCHDOG", "20s"}, {"WEIR_SERVE_MAX_PROMPTS", "30"}, {"HOME", "/"}});
  input.flags = pairs({{"max-prompts", "300"}});
  const auto config = load_config(input);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->serve.drain, 1s);             // the file's
  EXPECT_EQ(config->serve.watchdog, 20s);         // the environment's
  EXPECT_EQ(config->serve.max_prompts, 300);      // the flag's
  EXPECT_EQ(config->serve.max_preparing, 1024u);  // nobody's
  EXPECT_EQ(config->serve.listen, ServeOptions().listen);
}

TEST(Config, TheEnvironmentNamesTheFileAndTheModels) {
  const testing::TemporaryFolder folder;
  const std::string file = (folder.path() / "weir.toml").string();
  ASSERT_TRUE(write_file_atomically(file, "[engine]\ncontext = 512\n"));
  ConfigInput input;
  input.environment =
      pairs({{"WEIR_SERVE_CONFIG", file.c_str()}, {"WEIR_SERVE_MODELS", "smollm2, big=/models/big.gguf"}, {"WEIR_SERVE_DRAIN", ""}});
  const auto config = load_config(input);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->serve.engine.context, 512);
  ASSERT_EQ(config->serve.models.size(), 2u);
  EXPECT_EQ(config->serve.models[1].name, "big");
  EXPECT_EQ(config->serve.models[1].source, "/models/big.gguf");
  EXPECT_EQ(config->serve.drain, 30s);  // an empty variable is none
}

TEST(Config, ValuesAreWrittenAsPeopleDo) {
  const auto config = load_config(with_flags({{"idle", "5m"},
                                              {"drain", "1.5s"},
                                              {"stall-limit", "250ms"},
                                              {"limits-header-timeout", "7"},
                                              {"memory-budget", "4GiB"},
                                              {"cache-bytes", "1.5GB"},
                                              {"limits-max-body-bytes", "4096"},
                                              {"insecure", "yes"},
                                              {"speculation", "off"},
                                              {"kv-type", "q8_0"},
                                              {"activations", "f32"},
                                              {"log-level", "debug"},
                                              {"tracing-sample-ratio", "0.25"},
                                              {"listen", "127.0.0.1:1, [::1]:2"},
                                              {"listen", "unix:/run/weir.sock"}}));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->serve.idle_unload, 5min);
  EXPECT_EQ(config->serve.drain, 1500ms);
  EXPECT_EQ(config->serve.engine.stall_limit, 250ms);
  EXPECT_EQ(config->serve.limits.header_timeout, 7s);
  EXPECT_EQ(config->serve.memory_budget, 4ull << 30);
  EXPECT_EQ(config->serve.engine.cache_bytes, 1'500'000'000u);
  EXPECT_EQ(config->serve.max_body_bytes, 4096u);
  EXPECT_TRUE(config->serve.insecure);
  EXPECT_FALSE(config->serve.engine.speculation.has_value());
  EXPECT_EQ(config->serve.engine.kv_type, DType::kQ8_0);
  EXPECT_EQ(config->serve.cpu.activations, kernels::Activations::kF32);
  EXPECT_EQ(config->log_level, log::Level::kDebug);
  EXPECT_EQ(config->spans.sample_ratio, 0.25);
  EXPECT_EQ(config->serve.listen, (std::vector<std::string>{"127.0.0.1:1", "[::1]:2", "unix:/run/weir.sock"}));
}

TEST(Config, UnknownNamesAreErrorsThatNameTheNearest) {
  EXPECT_EQ(text_error("[limits]\nmax_conections = 5\n"),
            "weir.toml:2: there is no option 'limits.max_conections'; did you mean 'limits.max_connections'?");
  EXPECT_EQ(text_error("drian = \"1s\"\n"), "weir.toml:1: there is no option 'drian'; did you mean 'drain'?");
  EXPECT_EQ(text_error("[[models]]\nname = \"a\"\nalias = [\"b\"]\n"), "weir.toml:3: there is no option 'alias'; did you mean 'aliases'?");
  EXPECT_EQ(text_error("zzzzzzzzzz = 1\n"), "weir.toml:1: there is no option 'zzzzzzzzzz'");
  EXPECT_EQ(error_of(with_flags({{"max-runing", "3"}})), "there is no option --max-runing; did you mean 'max-running'?");
  ConfigInput input;
  input.environment = pairs({{"WEIR_SERVE_LISTN", "x"}});
  EXPECT_EQ(error_of(input), "the environment variable WEIR_SERVE_LISTN means nothing; did you mean 'WEIR_SERVE_LISTEN'?");
}

TEST(Config, ValuesOutOfRangeSayWhatWouldBeRight) {
  EXPECT_EQ(text_error("io_threads = 0\n"), "weir.toml:1: io_threads: should be a whole number from 1 to 256");
  EXPECT_EQ(text_error("io_threads = \"2\"\n"), "weir.toml:1: io_threads: should be a whole number from 1 to 256");
  EXPECT_EQ(text_error("drain = \"2d\"\n"), "weir.toml:1: drain: should be a duration such as 500ms, 30s or 5m, from 0s to 24h");
  EXPECT_EQ(text_error("insecure = 1\n"), "weir.toml:1: insecure: should be true or false");
  EXPECT_EQ(text_error("listen = [1]\n"), "weir.toml:1: listen: should be a list of texts");
  EXPECT_EQ(text_error("[engine]\npolicy = \"fair-shar\"\n"),
            "weir.toml:2: engine.policy: should be auto, first-come, priority, deadline or fair-share; did you mean 'fair-share'?");
  EXPECT_EQ(text_error("[tracing]\nheaders = [\"secret\"]\n"), "weir.toml:2: tracing.headers: should be a list of NAME=VALUE");
  EXPECT_EQ(error_of(with_flags({{"max-running", "many"}})),
            "--max-running: engine.max_running: should be a whole number from 1 to 1000000");
  EXPECT_EQ(error_of(with_flags({{"memory-budget", "99999999TB"}})),
            "--memory-budget: memory_budget: should be a size such as 512KiB or 4GB, from 0 B to 1024TiB");
  for (const char* text : {"", "-", "1e999", "nan", "inf", "5 parsecs", "0x10", "1,5", "9223372036854775808"})
    EXPECT_NE(error_of(with_flags({{"drain", text}})), "no error") << text;
}

TEST(Config, BrokenFilesAreErrorsWithTheirLine) {
  EXPECT_TRUE(text_error("a = \n").starts_with("weir.toml:1: ")) << text_error("a = \n");
  EXPECT_NE(text_error("drain = \"1s\"\ndrain = \"2s\"\n"), "no error");  // twice
  EXPECT_EQ(text_error("models = 3\n"), "weir.toml: 'models' should be tables: [[models]]");
  EXPECT_NE(text_error(std::string(100'000, '[')), "no error");
  ConfigInput input;
  input.file = "/does/not/exist.toml";
  input.environment.emplace();
  EXPECT_NE(error_of(input), "no error");
}

TEST(Config, ContradictionsAreErrors) {
  EXPECT_EQ(error_of(with_flags({{"tls-certificate", "a.pem"}})), "tls.certificate and tls.key belong together: give both or none");
  EXPECT_NE(error_of(with_flags({{"max-running", "64"}, {"token-budget", "32"}})), "no error");
  EXPECT_NE(error_of(with_flags({{"default-timeout", "2h"}})), "no error");  // longer than max_timeout
  EXPECT_NE(error_of(with_flags({{"cors-origins", "*"}, {"cors-allow-credentials", "yes"}})), "no error");
  EXPECT_NE(error_of(with_flags({{"auth-metrics-need-key", "yes"}})), "no error");
  EXPECT_NE(error_of(with_flags({{"listen", ""}})), "no error");
  ConfigInput twice = with_flags({});
  twice.models = {"a=x.gguf", "a=y.gguf"};
  EXPECT_EQ(error_of(twice), "the model 'a' is named twice");
}

TEST(Config, ModelsHaveNamesAliasesAdaptersAndOptionsOfTheirOwn) {
  ServeConfig config;
  const Status read = read_config_text(R"(
[engine]
context = 4096
cache_tokens = 100000
[[models]]
name = "small"
source = "smollm2"
aliases = ["gpt-3.5-turbo"]
adapters = ["sql=/adapters/sql"]
context = 1024
cache_bytes = "256MiB"
kv_type = "f16"
max_running = 8
policy = "fair-share"
preload = false
[[models]]
name = "other"
)",
                                       "weir.toml", config);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(config.serve.models.size(), 2u);
  const ModelSpec& small = config.serve.models[0];
  EXPECT_EQ(small.source, "smollm2");
  EXPECT_EQ(small.aliases, std::vector<std::string>{"gpt-3.5-turbo"});
  ASSERT_EQ(small.adapters.size(), 1u);
  EXPECT_EQ(small.adapters[0].name, "sql");
  EXPECT_EQ(small.adapters[0].path, "/adapters/sql");
  EXPECT_FALSE(small.preload);
  EXPECT_EQ(config.serve.models[1].source, "other");

  const engine::EngineOptions own = engine_options(config.serve, small);
  EXPECT_EQ(own.context, 1024);
  EXPECT_EQ(own.cache_tokens, 0);  // replaced by the bytes
  EXPECT_EQ(own.cache_bytes, 256u << 20);
  EXPECT_EQ(own.kv_type, DType::kF16);
  EXPECT_EQ(own.max_running, 8);
  EXPECT_EQ(own.policy, "fair-share");
  const engine::EngineOptions common = engine_options(config.serve, config.serve.models[1]);
  EXPECT_EQ(common.context, 4096);
  EXPECT_EQ(common.cache_tokens, 100000);
  EXPECT_EQ(common.policy, "first-come");
}

TEST(Config, APolicyThatIsNamedIsObeyedWithKeysToo) {
  const auto policy = [](Texts flags) {
    ConfigInput input = with_flags(flags);
    input.models = {"m"};
    const auto config = load_config(input);
    return config ? engine_options(config->serve, config->serve.models.front()).policy : config.error().message;
  };
  EXPECT_EQ(policy({}), "first-come");
  EXPECT_EQ(policy({{"keys", "/keys.toml"}}), "fair-share");
  EXPECT_EQ(policy({{"policy", "auto"}}), "first-come");
  EXPECT_EQ(policy({{"policy", "first-come"}, {"keys", "/keys.toml"}}), "first-come");
  EXPECT_EQ(policy({{"keys", "/keys.toml"}, {"policy", "deadline"}}), "deadline");
}

TEST(Config, ModelArgumentsAreNamesSourcesOrPaths) {
  const std::pair<const char*, std::pair<const char*, const char*>> cases[] = {
      {"smollm2", {"smollm2", "smollm2"}},
      {"small=/m/a.gguf", {"small", "/m/a.gguf"}},
      {"/m/SmolLM2-135M.Q4_1.gguf", {"SmolLM2-135M.Q4_1", "/m/SmolLM2-135M.Q4_1.gguf"}},
      {"./Qwen2.5-0.5B/", {"Qwen2.5-0.5B", "./Qwen2.5-0.5B/"}},
      {"m/Qwen2.5-0.5B", {"Qwen2.5-0.5B", "m/Qwen2.5-0.5B"}},
  };
  for (const auto& [text, wanted] : cases) {
    const auto model = parse_model_argument(text);
    ASSERT_TRUE(model) << text;
    EXPECT_EQ(model->name, wanted.first);
    EXPECT_EQ(model->source, wanted.second);
  }
  for (const char* text : {"", "=x", "x=", "a\nb"}) EXPECT_FALSE(parse_model_argument(text)) << text;
}

TEST(Config, WhatIsPrintedIsReadBack) {
  ConfigInput input = with_flags({{"drain", "90s"},
                                  {"stall-limit", "1ms"},
                                  {"limits-max-body-bytes", "3MiB"},
                                  {"cache-bytes", "1234567"},
                                  {"cors-origins", "https://a.example,https://b.example"},
                                  {"access-log", "/var/log/a \"quoted\\path\".log"},
                                  {"tracing-sample-ratio", "1"},
                                  {"speculation", "no"}});
  input.models = {"small=a.gguf"};
  auto config = load_config(input);
  ASSERT_TRUE(config);
  config->serve.models[0].adapters = {{"sql", "/adapters/sql"}};
  config->serve.models[0].context = 77;
  const std::string printed = print_config(*config);
  ServeConfig again;
  const Status read = read_config_text(printed, "printed", again);
  ASSERT_TRUE(read) << read.error().message << "\n" << printed;
  EXPECT_EQ(print_config(again), printed);
  for (const auto& row : serve_rows()) EXPECT_EQ(row.get(again), row.get(*config)) << row.key;
  ASSERT_EQ(again.serve.models.size(), 1u);
  for (const auto& row : model_rows()) EXPECT_EQ(row.get(again.serve.models[0]), row.get(config->serve.models[0])) << row.key;
}

TEST(Config, SecretsAreNeverPrinted) {
  const auto config = load_config(with_flags({{"tracing-headers", "Authorization=Bearer very-secret"}, {"keys", "/etc/weir/keys.toml"}}));
  ASSERT_TRUE(config);
  ASSERT_EQ(config->spans.headers.size(), 1u);
  EXPECT_EQ(config->spans.headers[0].second, "Bearer very-secret");
  const std::string printed = print_config(*config);
  EXPECT_EQ(printed.find("very-secret"), std::string::npos);
  EXPECT_NE(printed.find("# headers: set, and not shown here"), std::string::npos);
  EXPECT_NE(printed.find("/etc/weir/keys.toml"), std::string::npos);
}

TEST(Config, EveryOptionHasItsOwnKeyFlagAndVariable) {
  std::set<std::string> keys, flags, variables;
  for (const OptionInfo& option : serve_option_table()) {
    EXPECT_TRUE(keys.insert(std::string(option.key)).second) << option.key;
    EXPECT_TRUE(flags.insert(option.flag).second) << option.flag;
    EXPECT_TRUE(variables.insert(option.variable).second) << option.variable;
    EXPECT_TRUE(option.help.ends_with('.')) << option.key;
    EXPECT_FALSE(option.values.empty()) << option.key;
  }
  EXPECT_EQ(keys.count("limits.max_connections"), 1u);
  EXPECT_EQ(flags.count("--limits-max-connections"), 1u);
  EXPECT_EQ(variables.count("WEIR_SERVE_LIMITS_MAX_CONNECTIONS"), 1u);
}

TEST(Config, EveryDefaultIsInItsOwnRange) {
  const ServeConfig defaults;
  for (const auto& row : serve_rows()) {
    const auto value = row.get(defaults);
    ASSERT_TRUE(value) << row.key;
    ServeConfig changed;
    const Status set = apply(row, changed, *value);
    EXPECT_TRUE(set) << set.error().message;
    EXPECT_EQ(row.get(changed), value) << row.key;
  }
  EXPECT_TRUE(check_config(defaults));
}

// Each value other than its default must arrive where it belongs, and nowhere else.
TEST(Config, EveryOptionChangesExactlyItself) {
  for (const auto& row : serve_rows()) {
    ServeConfig changed;
    const ConfigValue before = *row.get(changed);
    ConfigValue value = before;
    if (auto* yes = std::get_if<bool>(&value)) *yes = !*yes;
    if (auto* count = std::get_if<std::int64_t>(&value)) *count += *count < static_cast<std::int64_t>(row.rule.high) ? 1 : -1;
    if (auto* number = std::get_if<double>(&value)) *number = (row.rule.low + row.rule.high) / 2;
    if (auto* duration = std::get_if<Duration>(&value)) *duration += 1s;
    if (auto* list = std::get_if<std::vector<std::string>>(&value)) *list = {"a=b"};
    if (auto* text = std::get_if<std::string>(&value)) {
      const auto other = std::ranges::find_if(row.rule.choices, [&](std::string_view choice) { return choice != *text; });
      *text = row.rule.choices.empty() ? "other" : std::string(*other);
    }
    ASSERT_NE(value, before) << row.key;
    const Status set = apply(row, changed, value);
    ASSERT_TRUE(set) << set.error().message;
    for (const auto& each : serve_rows())
      EXPECT_EQ(each.get(changed), each.key == row.key ? value : each.get(ServeConfig())) << row.key << " changed " << each.key;
  }
}

std::string doc(const char* name) { return read_file(testing::data_path("../../docs") / name).value(); }

TEST(Config, TheDocumentationListsEveryOptionWithItsDefault) {
  const std::string text = doc("config.md");
  const auto expect_line = [&](const std::string& line) { EXPECT_NE(text.find(line + "\n"), std::string::npos) << "missing: " << line; };
  for (const OptionInfo& o : serve_option_table())
    expect_line(fmt::format("| `{}` | `{}` | `{}` | {} |", o.key, o.flag, o.default_value, o.help));
  for (const OptionInfo& o : model_option_table())
    expect_line(o.default_value.empty() ? fmt::format("| `{}` | | {} |", o.key, o.help)
                                        : fmt::format("| `{}` | `{}` | {} |", o.key, o.default_value, o.help));
}

TEST(Config, TheExampleFileIsValidAndNamesEverySection) {
  ServeConfig config;
  const std::string text = doc("weir.toml");
  const Status read = read_config_text(text, "docs/weir.toml", config);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(check_config(config));
  EXPECT_GE(config.serve.models.size(), 2u);
  for (const OptionInfo& option : serve_option_table())
    EXPECT_TRUE(option.section.empty() || text.find("[" + std::string(option.section) + "]") != std::string::npos) << option.section;
}

TEST(ConfigHint, NearNamesAreFoundAndFarOnesAreNot) {
  const std::vector<std::string_view> names = {"drain", "watchdog", "max_prompts"};
  EXPECT_EQ(nearest_name("dran", names), "drain");
  EXPECT_EQ(nearest_name("max-prompts", names), "max_prompts");
  EXPECT_EQ(nearest_name("temperature", names), std::nullopt);
  EXPECT_EQ(nearest_name(std::string(1000, 'd'), names), std::nullopt);
}

}  // namespace
}  // namespace weir::serving
