// SPDX-License-Identifier: Apache-2.0
#include "eval/choices.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/file_io.h"

namespace weir::eval {
namespace {

constexpr std::size_t kMaxChoices = 1024;
constexpr std::size_t kMaxFileBytes = 256u << 20;

Result<ChoiceTask> read_task(std::string_view line, const std::string& where) {
  WEIR_ASSIGN(const json::Value value, json::parse(line, where));
  WEIR_ASSIGN(const json::Object* object, json::as_object(value, where));
  ChoiceTask task;
  WEIR_ASSIGN(task.context, json::get_string(*object, "context"));
  WEIR_ASSIGN(task.answer, json::get_int_or(*object, "answer", -1));
  const json::Value* choices = json::find(*object, "choices");
  if (choices == nullptr || !choices->is_array() || choices->get_array().empty() || choices->get_array().size() > kMaxChoices)
    return fail(ErrorCode::kCorrupt, "\"choices\" must be a list of 1 to {} texts", kMaxChoices);
  for (const json::Value& choice : choices->get_array()) {
    if (!choice.is_string() || choice.get_string().empty()) return fail(ErrorCode::kCorrupt, "a choice is not a text, or empty");
    task.choices.emplace_back(choice.get_string());
  }
  if (task.answer < -1 || task.answer >= static_cast<std::int64_t>(task.choices.size()))
    return fail(ErrorCode::kCorrupt, "\"answer\" is {}, and there are {} choices", task.answer, task.choices.size());
  return task;
}

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

Result<engine::ContinuationScore> score_choice(engine::LoadedModel& loaded, const tokenizer::Tokenizer& tokenizer, std::string context,
                                               std::string continuation) {
  const std::size_t end = context.find_last_not_of(' ') + 1;
  continuation.insert(0, context, end);
  context.resize(end);
  std::vector<TokenId> before = tokenizer.encode(context);
  std::vector<TokenId> whole = tokenizer.encode(context + continuation);
  if (before.empty()) {  // something must stand before the first token that is scored
    const auto prefix = tokenizer.bos ? tokenizer.bos : tokenizer.eos;
    if (!prefix) return fail(ErrorCode::kInvalidArgument, "the context is empty, and the model has no token to begin with");
    before.push_back(*prefix);
    whole.insert(whole.begin(), *prefix);
  }
  if (whole.size() <= before.size()) return fail(ErrorCode::kInvalidArgument, "the choice adds no token to the context");
  return engine::score_continuation(loaded, std::span(whole).first(before.size()), std::span(whole).subspan(before.size()));
}

double standard_error(double share, std::int64_t count) {
  return count > 1 ? std::sqrt(share * (1 - share) / static_cast<double>(count - 1)) : 0;
}

}  // namespace

Result<std::vector<ChoiceTask>> read_choice_tasks(const std::filesystem::path& file) {
  WEIR_ASSIGN(const std::string text, read_file(file, kMaxFileBytes));
  std::vector<ChoiceTask> tasks;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string where = fmt::format("{}:{}", file.string(), number);
    auto task = read_task(line, where);
    if (!task) return std::unexpected(std::move(task).error().with_context(where));
    tasks.push_back(std::move(*task));
  }
  if (tasks.empty()) return fail(ErrorCode::kCorrupt, "{} holds no task", file.string());
  return tasks;
}

Result<ChoicesResult> score_choices(engine::LoadedModel& loaded, std::span<const ChoiceTask> tasks,
                                    const std::function<bool(std::size_t, std::size_t)>& progress) {
  WEIR_ASSIGN(const tokenizer::Tokenizer* tokenizer, loaded.require_tokenizer());
  const TimePoint start = steady_clock().now();
  ChoicesResult result;
  std::int64_t right = 0, right_by_length = 0;
  for (const ChoiceTask& task : tasks) {
    ChoiceScores scores;
    std::vector<double> sums, by_length;
    for (const std::string& choice : task.choices) {
      auto score = score_choice(loaded, *tokenizer, task.context, choice);
      if (!score) return std::unexpected(std::move(score).error().with_context(fmt::format("task {}", result.tasks.size() + 1)));
      sums.push_back(score->logprob);
      by_length.push_back(score->logprob / static_cast<double>(std::max<std::size_t>(characters(choice), 1)));
      scores.choices.push_back(*score);
    }
    scores.likeliest = std::ranges::max_element(sums) - sums.begin();
    scores.likeliest_by_length = std::ranges::max_element(by_length) - by_length.begin();
    if (task.answer >= 0) {
      ++result.answered;
      right += scores.likeliest == task.answer;
      right_by_length += scores.likeliest_by_length == task.answer;
    }
    result.tasks.push_back(std::move(scores));
    if (progress && !progress(result.tasks.size(), tasks.size())) return fail(ErrorCode::kCancelled, "stopped");
  }
  const double count = static_cast<double>(std::max<std::int64_t>(result.answered, 1));
  result.accuracy = static_cast<double>(right) / count;
  result.accuracy_by_length = static_cast<double>(right_by_length) / count;
  result.accuracy_error = standard_error(result.accuracy, result.answered);
  result.accuracy_by_length_error = standard_error(result.accuracy_by_length, result.answered);
  result.seconds = to_seconds(steady_clock().now() - start);
  return result;
}

json::Object to_json(const ChoicesResult& result) {
  json::Array tasks;
  for (const ChoiceScores& task : result.tasks) {
    json::Array choices;
    for (const auto& choice : task.choices)
      choices.push_back(json::Object{{"logprob", choice.logprob}, {"is_greedy", choice.is_greedy}, {"tokens", choice.tokens}});
    tasks.push_back(
        json::Object{{"likeliest", task.likeliest}, {"likeliest_by_length", task.likeliest_by_length}, {"choices", std::move(choices)}});
  }
  return {{"acc", result.accuracy},
          {"acc_stderr", result.accuracy_error},
          {"acc_norm", result.accuracy_by_length},
          {"acc_norm_stderr", result.accuracy_by_length_error},
          {"answered", result.answered},
          {"seconds", result.seconds},
          {"tasks", std::move(tasks)}};
}

}  // namespace weir::eval
