// SPDX-License-Identifier: Apache-2.0
// The text formats of metrics: what is read, and that everything else is refused.
#include "loadgen/exposition.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/file_io.h"
#include "loadgen/exposition_line.h"

namespace weir::loadgen {
namespace {

bool all(std::string_view) { return true; }

Exposition read(std::string_view text, const ExpositionLimits& limits = {}) {
  auto out = parse_exposition(text, all, limits);
  EXPECT_TRUE(out) << (out ? "" : out.error().message) << "\n" << text;
  return out ? std::move(*out) : Exposition{};
}

std::string error_of(std::string_view text, const ExpositionLimits& limits = {}) {
  const auto out = parse_exposition(text, all, limits);
  return out ? "" : out.error().message;
}

TEST(Exposition, SamplesHaveNamesLabelsKindsAndValues) {
  const Exposition e = read(
      "# HELP requests The \\n number\n# TYPE requests counter\n\nrequests{b=\"2\", a=\"x\",} 1027 1395066363000\n"
      "# any comment\n# TYPE depth gauge\ndepth -1.5e-3\n\t free_form { } 7 \n");
  ASSERT_EQ(e.readings.size(), 3u);
  EXPECT_EQ(e.samples, 3u);
  EXPECT_EQ(e.readings[0].name, "requests");
  EXPECT_EQ(e.readings[0].kind, MetricKind::kCounter);
  EXPECT_EQ(e.readings[0].labels, (MetricLabels{{"a", "x"}, {"b", "2"}}));
  EXPECT_EQ(labels_text(e.readings[0].labels), "a=x,b=2");
  EXPECT_DOUBLE_EQ(e.readings[0].value, 1027);
  EXPECT_EQ(e.readings[1].kind, MetricKind::kGauge);
  EXPECT_DOUBLE_EQ(e.readings[1].value, -0.0015);
  EXPECT_EQ(e.readings[2].kind, MetricKind::kUntyped);
  EXPECT_TRUE(read("").readings.empty());
}

TEST(Exposition, EscapesInLabels) {
  EXPECT_NE(error_of("m{\xc3\xa9=\"\"} 1\n"), "");  // a label's name is ASCII
  const Exposition good = read("m{path=\"C:\\\\DIR\",text=\"a \\\"b\\\"\\nc }, # = é\"} 1\n");
  ASSERT_EQ(good.readings.size(), 1u);
  EXPECT_EQ(good.readings[0].labels, (MetricLabels{{"path", "C:\\DIR"}, {"text", "a \"b\"\nc }, # = é"}}));
}

TEST(Exposition, Numbers) {
  EXPECT_DOUBLE_EQ(*parse_metric_value("1e3"), 1000);
  EXPECT_DOUBLE_EQ(*parse_metric_value("+.5"), 0.5);
  EXPECT_TRUE(std::isnan(*parse_metric_value("NaN")));
  EXPECT_EQ(*parse_metric_value("+Inf"), HUGE_VAL);
  EXPECT_EQ(*parse_metric_value("-inf"), -HUGE_VAL);
  for (const char* bad : {"", "+", "-", "--1", "+-1", "1x", "0x10", "1_000", "1,5", "nano", "in", "1e", " 1", "1e999", "-NaN(1)"})
    EXPECT_FALSE(parse_metric_value(bad)) << bad;
}

TEST(Exposition, AHistogramsPartsComeTogether) {
  const Exposition e = read(
      "# TYPE t histogram\nt_bucket{le=\"0.5\",m=\"a\"} 3\nt_bucket{le=\"+Inf\",m=\"a\"} 5\nt_bucket{le=\"0.1\",m=\"a\"} 1\n"
      "t_sum{m=\"a\"} 2.5\nt_count{m=\"a\"} 5\nt_bucket{m=\"b\",le=\"+Inf\"} 0\nt_sum{m=\"b\"} 0\nt_count{m=\"b\"} 0\n"
      "# TYPE s summary\ns{quantile=\"0.5\"} 4\ns_sum 8\ns_count 2\n");
  ASSERT_EQ(e.readings.size(), 3u);
  const MetricReading& t = e.readings[0];
  EXPECT_EQ(t.name, "t");
  EXPECT_EQ(t.kind, MetricKind::kHistogram);
  EXPECT_EQ(t.labels, (MetricLabels{{"m", "a"}}));
  EXPECT_DOUBLE_EQ(t.value, 5);
  EXPECT_DOUBLE_EQ(t.sum, 2.5);
  ASSERT_EQ(t.buckets.size(), 3u);
  EXPECT_DOUBLE_EQ(t.buckets[0].at_most, 0.1);
  EXPECT_DOUBLE_EQ(t.buckets[1].count, 3);
  EXPECT_TRUE(std::isinf(t.buckets[2].at_most));
  EXPECT_EQ(e.readings[2].kind, MetricKind::kSummary);
  EXPECT_DOUBLE_EQ(e.readings[2].value, 2);
  EXPECT_DOUBLE_EQ(e.readings[2].sum, 8);
}

TEST(Exposition, OpenMetricsAddsItsOwn) {
  const Exposition e = read(*read_file(std::string(WEIR_TEST_DATA) + "/../fuzz/exposition/open_metrics"));
  ASSERT_EQ(e.readings.size(), 5u);
  EXPECT_EQ(e.readings[0].name, "foo_total");
  EXPECT_EQ(e.readings[0].kind, MetricKind::kCounter);
  EXPECT_DOUBLE_EQ(e.readings[0].value, 17);  // its exemplar and the time of its creation are no values
  EXPECT_EQ(e.readings[0].labels[0].second, "\\\"\n");
  EXPECT_EQ(e.readings[1].kind, MetricKind::kHistogram);
  EXPECT_DOUBLE_EQ(e.readings[1].sum, 324789.3);
  EXPECT_EQ(e.readings[2].kind, MetricKind::kGauge);  // info
  EXPECT_NE(error_of("# EOF\nx 1\n").find("line 2: something follows # EOF"), std::string::npos);
}

TEST(Exposition, WhatBreaksTheFormatIsRefusedWithItsLine) {
  EXPECT_EQ(error_of("ok 1\nbad\n"), "line 2: a metric has no proper value");
  EXPECT_NE(error_of("cut 1").find("line feed"), std::string::npos);
  for (const char* bad : {"1x 1\n",
                          "x\n",
                          "x y\n",
                          "x{} \n",
                          "x{a=1} 1\n",
                          "x{a=\"1\" 1\n",
                          "x{a=\"1} 1\n",
                          "x{a=\"\\t\"} 1\n",
                          "x{a=\"1\",a=\"2\"} 1\n",
                          "x{a=\"1\"\"} 1\n",
                          "x{,} 1\n",
                          "x{1=\"\"} 1\n",
                          "x 1 2 3\n",
                          "x 1 later\n",
                          "x 1 NaN\n",
                          "x 1\r\n",
                          "x 1 # 5\n",
                          "x 1 # {a=\"\"}\n",
                          "x 1 # {a=\"\"} 1 2 3\n",
                          "x{a=\"\xff\"} 1\n",
                          "x 1\nx 2\n",
                          "x{a=\"1\"} 1\nx{a=\"1\"} 1\n",
                          "# TYPE x\n",
                          "# TYPE x thing\n",
                          "# TYPE x gauge more\n",
                          "# TYPE 1 gauge\n",
                          "# TYPE x gauge\n# TYPE x gauge\n",
                          "x 1\n# TYPE x gauge\n",
                          "# TYPE t histogram\nt_bucket 1\n",
                          "# TYPE t histogram\nt_bucket{le=\"x\"} 1\n",
                          "# TYPE t histogram\nt_bucket{le=\"1\"} -1\n",
                          "# TYPE t histogram\nt_bucket{le=\"1\"} 2\nt_bucket{le=\"2\"} 1\n",
                          "# TYPE t histogram\nt_bucket{le=\"1\"} 1\nt_bucket{le=\"1.0\"} 1\n",
                          "# TYPE s summary\ns 4\n",
                          "<html>\n",
                          "{\"a\": 1}\n"})
    EXPECT_NE(error_of(bad), "") << bad;
}

TEST(Exposition, EverySizeIsBounded) {
  const auto lines = [](int count) {
    std::string out;
    for (int i = 0; i < count; ++i) out += fmt::format("x{{i=\"{}\"}} 1\n", i);
    return out;
  };
  ExpositionLimits limits;
  limits.max_series = 10, limits.max_kept = 4, limits.max_line = 100, limits.max_labels = 2, limits.max_label_value = 20,
  limits.max_name = 10;
  limits.max_buckets = 2;
  const Exposition e = read(lines(10), limits);
  EXPECT_EQ(e.readings.size(), 4u);
  EXPECT_EQ(e.left_out, 6u);
  EXPECT_NE(error_of(lines(11), limits).find("more than 10 samples"), std::string::npos);
  EXPECT_NE(error_of("x{a=\"" + std::string(21, 'v') + "\"} 1\n", limits), "");
  EXPECT_NE(error_of(std::string(11, 'n') + " 1\n", limits), "");
  EXPECT_NE(error_of("x{a=\"\",b=\"\",c=\"\"} 1\n", limits), "");
  EXPECT_NE(error_of("# " + std::string(200, '-') + "\n", limits).find("line 1 is too long"), std::string::npos);
  EXPECT_NE(error_of("# TYPE t histogram\nt_bucket{le=\"1\"} 1\nt_bucket{le=\"2\"} 1\nt_bucket{le=\"3\"} 1\n", limits), "");
  limits.max_bytes = 5;
  EXPECT_NE(error_of("x 1\ny 2\n", limits).find("more than 5 bytes"), std::string::npos);
}

TEST(Exposition, OnlyWantedSeriesAreKeptAndAllLinesAreChecked) {
  const auto wanted = [](std::string_view name) { return name == "t"; };
  const auto e = parse_exposition("# TYPE t histogram\nt_bucket{le=\"+Inf\"} 1\nt_count 1\nt_sum 1\nother 1\n", wanted);
  ASSERT_TRUE(e);
  ASSERT_EQ(e->readings.size(), 1u);
  EXPECT_EQ(e->samples, 4u);
  EXPECT_FALSE(parse_exposition("other one\n", wanted));
}

}  // namespace
}  // namespace weir::loadgen
