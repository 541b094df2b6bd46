// SPDX-License-Identifier: Apache-2.0
#include "store/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "base/testing.h"
#include "store/subprocess.h"

namespace weir::store {
namespace {

using ::testing::HasSubstr;

struct Printed {
  FakeClock clock;
  std::FILE* file = std::tmpfile();
  ~Printed() { std::fclose(file); }
  std::string text() {
    std::fflush(file);
    std::rewind(file);
    std::string all;
    std::array<char, 4096> piece;
    for (std::size_t got; (got = std::fread(piece.data(), 1, piece.size(), file)) > 0;) all.append(piece.data(), got);
    return all;
  }
};

TEST(ProgressPrinter, WritesPlainLinesNowAndThen) {
  Printed out;
  ProgressPrinter printer(out.file, out.clock, false, 80);
  for (std::uint64_t i = 0; i <= 100; ++i) {
    printer.show({.label = "m.gguf", .done = i * 1'000'000, .total = 100'000'000, .finished = i == 100});
    out.clock.advance(std::chrono::milliseconds(100));
  }
  EXPECT_EQ(out.text(), "m.gguf: 50 MB of 100 MB, 10 MB/s, 5 s left\nm.gguf: 100 MB of 100 MB, 10 MB/s, done\n");
}

TEST(ProgressPrinter, RedrawsOneLineOnATerminal) {
  Printed out;
  ProgressPrinter printer(out.file, out.clock, true, 90);
  printer.show({.label = "m.gguf", .done = 0, .total = 100'000'000});
  out.clock.advance(std::chrono::seconds(1));
  printer.show({.label = "m.gguf", .done = 25'000'000, .total = 100'000'000});
  printer.note("a note");
  out.clock.advance(std::chrono::seconds(1));
  printer.show({.label = "m.gguf", .done = 100'000'000, .total = 100'000'000, .finished = true});
  const std::string text = out.text();
  EXPECT_THAT(text, HasSubstr(" 25 %"));
  EXPECT_THAT(text, HasSubstr("\na note\n"));
  EXPECT_TRUE(text.ends_with("\x1b[K\n"));
}

TEST(ProgressPrinter, SpeedCountsOnlyWhatCameNow) {
  Printed out;
  ProgressPrinter printer(out.file, out.clock, false, 80);
  printer.show({.label = "m", .done = 90'000'000, .total = 100'000'000});
  out.clock.advance(std::chrono::seconds(10));
  printer.show({.label = "m", .done = 100'000'000, .total = 100'000'000, .finished = true});
  EXPECT_EQ(out.text(), "m: 100 MB of 100 MB, 1 MB/s, done\n");
}

TEST(RunProcess, GivesExitCodeAndOutputAndPassesArgumentsAsTheyAre) {
  const auto result = run_process({"sh", "-c", "printf '%s' \"$1\"; echo oops >&2; exit 3", "sh", "a b;$(x)"});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->exit_code, 3);
  EXPECT_EQ(result->output, "a b;$(x)oops\n");
}

TEST(RunProcess, KeepsTheEndOfALongOutput) {
  const auto result = run_process({"sh", "-c", "yes | head -c 1000000; echo end"});
  ASSERT_TRUE(result);
  EXPECT_LE(result->output.size(), 64u << 10);
  EXPECT_TRUE(result->output.ends_with("end\n"));
}

TEST(RunProcess, ReportsSignalsAndMissingPrograms) {
  EXPECT_EQ(run_process({"sh", "-c", "kill -9 $$"})->exit_code, 137);
  EXPECT_EQ(run_process({"weir-no-such-program"}).error().code, ErrorCode::kNotFound);
}

TEST(RunProcess, StopsEvenAProgramThatIgnoresTermination) {
  const auto result = run_process({"sh", "-c", "trap '' TERM; while :; do sleep 1; done"}, [] { return false; });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kCancelled);
}

}  // namespace
}  // namespace weir::store
