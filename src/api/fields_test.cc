// SPDX-License-Identifier: Apache-2.0
// The table-driven reader: what is read, what is refused and how, and that the schema says the same.
#include "api/fields.h"

#include <gtest/gtest.h>

namespace weir::api {
namespace {

struct Point {
  double x = -1;
  std::int64_t n = -1;
  bool flag = false;
  std::string name;
};

struct Shape {
  Point point;
  std::string kind;
  std::vector<std::string> tags;
};

const Fields<Point>& point_fields() {
  static const Fields<Point> fields = [] {
    Fields<Point> f;
    f.number("x", {0, 2}, [](Point& p, double v) { p.x = v; }).required();
    f.integer("n", {1, 10}, [](Point& p, std::int64_t v) { p.n = v; });
    f.boolean("flag", [](Point& p, bool v) { p.flag = v; });
    f.text("name", [](Point& p, std::string v) { p.name = std::move(v); });
    f.ignore({"user"});
    f.only("mode", "plain", "only 'plain' is known");
    return f;
  }();
  return fields;
}

const Fields<Shape>& shape_fields() {
  static const Fields<Shape> fields = [] {
    Fields<Shape> f;
    f.object<Point>("point", point_fields(), [](Shape& s) -> Point& { return s.point; });
    f.value("kind", schema(R"({"type": "string", "enum": ["a", "b"]})"), [](const json::Value& v, const Path& p, Shape& s) -> ApiStatus {
      WEIR_ASSIGN(s.kind, read_name(v, p, {"a", "b"}));
      return {};
    });
    f.value("tags", schema(R"({"type": "array", "items": {"type": "string"}, "maxItems": 2})"),
            [](const json::Value& v, const Path& p, Shape& s) -> ApiStatus {
              WEIR_ASSIGN(s.tags, read_texts(v, p, 2));
              return {};
            });
    return f;
  }();
  return fields;
}

ApiError error_of(std::string_view body) {
  Shape shape;
  const ApiStatus status = read_body(body, shape_fields(), shape);
  EXPECT_FALSE(status.has_value()) << body;
  return status ? ApiError{} : status.error();
}

TEST(Fields, ReadsNestedObjects) {
  Shape shape;
  const ApiStatus status = read_body(
      R"({"point": {"x": 1, "n": 3.0, "flag": true, "name": "é", "user": {"any": 1}, "mode": "plain"}, "kind": "b", "tags": ["u", "v"]})",
      shape_fields(), shape);
  ASSERT_TRUE(status.has_value()) << status.error().message;
  EXPECT_EQ(shape.point.x, 1);
  EXPECT_EQ(shape.point.n, 3);
  EXPECT_TRUE(shape.point.flag);
  EXPECT_EQ(shape.point.name, "é");
  EXPECT_EQ(shape.kind, "b");
  EXPECT_EQ(shape.tags, (std::vector<std::string>{"u", "v"}));
}

TEST(Fields, NullOfAnOptionalFieldMeansAbsent) {
  Shape shape;
  ASSERT_TRUE(read_body(R"({"point": {"x": 0.5, "n": null, "mode": null}, "kind": null})", shape_fields(), shape).has_value());
  EXPECT_EQ(shape.point.n, -1);
}

struct Refused {
  const char* body;
  const char* param;
  const char* code;
  const char* message;  // a part
};

TEST(Fields, ErrorsNameThePlaceAndWhatIsAllowed) {
  const Refused cases[] = {
      {R"({"point": {"x": 3}})", "point.x", "out_of_range", "at least 0 and at most 2, but is 3"},
      {R"({"point": {"x": "1"}})", "point.x", "invalid_type", "should be a number, but is a string"},
      {R"({"point": {"x": null}})", "point.x", "missing_required_parameter", "is missing"},
      {R"({"point": {}})", "point.x", "missing_required_parameter", "is missing"},
      {R"({"point": []})", "point", "invalid_type", "should be an object, but is an array"},
      {R"({"point": {"x": 1, "n": 1.5}})", "point.n", "invalid_type", "an integer, but is 1.5"},
      {R"({"point": {"x": 1, "n": 0}})", "point.n", "out_of_range", "at least 1 and at most 10"},
      {R"({"point": {"x": 1, "n": 18446744073709551615}})", "point.n", "out_of_range", "18446744073709551615"},
      {R"({"point": {"x": 1, "n": 1e300}})", "point.n", "out_of_range", "1e+300"},
      {R"({"point": {"x": 1, "n": true}})", "point.n", "invalid_type", "a boolean"},
      {R"({"point": {"x": 1, "mode": "other"}})", "point.mode", "unsupported_parameter", "only 'plain'"},
      {R"({"point": {"x": 1, "nmae": ""}})", "point.nmae", "unknown_parameter", "did you mean 'name'?"},
      {R"({"colour": 1})", "colour", "unknown_parameter", "not a field"},
      {R"({"kind": "c"})", "kind", "invalid_value", "one of 'a', 'b', but is 'c'"},
      {R"({"tags": ["a", 1]})", "tags[1]", "invalid_type", "should be a string, but is a number"},
      {R"({"tags": ["a", "b", "c"]})", "tags", "too_many", "3 entries; 2 are allowed"},
      {R"({"kind": "a", "kind": "b"})", "kind", "duplicate_key", "twice"},
      {R"([1])", "", "invalid_type", "a JSON object, but is an array"},
      {"", "", "invalid_json", "no body"},
      {" \n", "", "invalid_json", "no body"},
      {R"({"kind": )", "", "invalid_json", "not valid JSON"},
      {R"({"kind": "a"} x)", "", "invalid_json", ""},
      {"{\"kind\": \"\xff\"}", "", "invalid_json", "not valid JSON"},
      {R"({"kind": "\ud800"})", "", "invalid_json", "not valid JSON"},
      {R"({"point": {"x": NaN}})", "", "invalid_json", "not valid JSON"},
      {R"({"point": {"x": 1e999999999999}})", "", "invalid_json", ""},
  };
  for (const Refused& c : cases) {
    const ApiError error = error_of(c.body);
    EXPECT_EQ(error.status, 400) << c.body;
    EXPECT_EQ(error.type, "invalid_request_error") << c.body;
    EXPECT_EQ(error.param, c.param) << c.body;
    EXPECT_EQ(error.code, c.code) << c.body << ": " << error.message;
    EXPECT_NE(error.message.find(c.message), std::string::npos) << c.body << ": " << error.message;
  }
}

TEST(Fields, DeepNestingAndInfinityAreErrors) {
  EXPECT_EQ(error_of(R"({"tags": )" + std::string(100000, '[') + std::string(100000, ']') + "}").code, "invalid_json");
  const ApiError huge = error_of(R"({"point": {"x": 1e400}})");
  EXPECT_EQ(huge.status, 400);
}

TEST(Fields, LongKeysAreCutInErrors) {
  const ApiError error = error_of("{\"" + std::string(100000, 'k') + "\": 1}");
  EXPECT_LT(error.message.size(), 400u);
  EXPECT_LT(error.param.size(), 100u);
}

TEST(Fields, TheSchemaSaysWhatIsRead) {
  const json::Value expected = schema(R"({
    "type": "object", "additionalProperties": false,
    "properties": {
      "x": {"type": "number", "minimum": 0E0, "maximum": 2E0},
      "n": {"type": ["integer", "null"], "minimum": 1, "maximum": 10},
      "flag": {"type": ["boolean", "null"]},
      "name": {"type": ["string", "null"]},
      "user": {"description": "Accepted and ignored: it does not change the answer."},
      "mode": {"enum": ["plain", null], "description": "only 'plain' is known"}
    },
    "required": ["x"]})");
  EXPECT_EQ(json::Value(point_fields().schema()), expected) << boost::json::serialize(point_fields().schema());
}

TEST(ApiErrors, CodesOfTheLayersBelowBecomeStatuses) {
  const auto status = [](ErrorCode code) { return from_error(Error{code, "why /secret/path"}).status; };
  EXPECT_EQ(status(ErrorCode::kInvalidArgument), 400);
  EXPECT_EQ(status(ErrorCode::kUnsupported), 400);
  EXPECT_EQ(status(ErrorCode::kNotFound), 404);
  EXPECT_EQ(status(ErrorCode::kExhausted), 429);
  EXPECT_EQ(status(ErrorCode::kDeadline), 504);
  EXPECT_EQ(status(ErrorCode::kCancelled), 503);
  for (const ErrorCode code : {ErrorCode::kIo, ErrorCode::kCorrupt, ErrorCode::kNetwork, ErrorCode::kInternal}) {
    const ApiError error = from_error(Error{code, "why /secret/path"});
    EXPECT_EQ(error.status, 500);
    EXPECT_EQ(error.message.find("secret"), std::string::npos);
  }
}

TEST(ApiErrors, AreWrittenInOpenAisShape) {
  EXPECT_EQ(json::Value(openai_error(bad_request("top_p", "no", "out_of_range"))),
            schema(R"({"error": {"message": "no", "type": "invalid_request_error", "param": "top_p", "code": "out_of_range"}})"));
  EXPECT_EQ(json::Value(openai_error({.status = 500, .message = "m"})),
            schema(R"({"error": {"message": "m", "type": "server_error", "param": null, "code": null}})"));
}

}  // namespace
}  // namespace weir::api
