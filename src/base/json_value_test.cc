#include "base/json_value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/field_reader.h"

namespace tidekv {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr JsonLimits kLimits = {.max_depth = 4, .max_values = 10};

std::string error_of(std::string_view text) {
  const Result<JsonObject> result = parse_json_object(text, "a.json", kLimits);
  return result.ok() ? "parsed" : result.error().message;
}

TEST(JsonValue, KeepsMembersInTheTextsOrder) {
  const auto object = parse_json_object(R"({"b": 1, "a": [true, null, "x", 2.5]})", "f", kLimits);
  ASSERT_TRUE(object.ok());
  ASSERT_EQ(object.value().size(), 2U);
  EXPECT_EQ(object.value()[0].key, "b");
  EXPECT_EQ(std::get<std::int64_t>(object.value()[0].value.data), 1);
  const auto& array = std::get<JsonArray>(object.value()[1].value.data);
  ASSERT_EQ(array.size(), 4U);
  EXPECT_TRUE(std::get<bool>(array[0].data));
  EXPECT_TRUE(array[1].is_null());
  EXPECT_EQ(std::get<std::string>(array[2].data), "x");
  EXPECT_EQ(std::get<double>(array[3].data), 2.5);
}

TEST(JsonValue, AcceptsWhitespaceAroundTheObject) {
  EXPECT_EQ(error_of(" \t\r\n{} \t\r\n"), "parsed");
}

struct BadText {
  std::string text;
  std::string complaint;
};

class BadJson : public testing::TestWithParam<BadText> {};

TEST_P(BadJson, IsAnErrorThatNamesTheFile) {
  EXPECT_THAT(error_of(GetParam().text),
              AllOf(HasSubstr("a.json: "), HasSubstr(GetParam().complaint)));
}

const BadText kBadTexts[] = {
    {"", "the text ends early"},
    {"{", "the text ends early"},
    {R"({"a": )", "after key 'a'"},
    {"[1]", "holds an array; expected a JSON object"},
    {"3", "holds the number 3; expected a JSON object"},
    {R"("text")", "holds the string 'text'; expected a JSON object"},
    {"null", "holds null; expected a JSON object"},
    {"{} {}", "reading"},
    {std::string("{}\0", 3), "byte 2 is zero"},
    {std::string("{}\0{}", 5), "byte 2 is zero"},
    {R"({"a": 1,})", "reading"},
    {R"({"a": 1 // no comments
})",
     "reading"},
    {R"({"a": NaN})", "reading"},
    {R"({"a": Infinity})", "reading"},
    {R"({"a": 1e400})", "reading '1e400'"},
    {R"({"a": 01})", "reading"},
    {R"({'a': 1})", "reading"},
    {"{\"a\": \"\xB0\xA1\"}", "reading"},
    {R"({"a": "\ud800"})", "reading"},
    {"{\"a\": \"line\nbreak\"}", "reading"},
    {R"({"a": 1, "a": 2})", "key 'a' appears twice"},
    {R"({"a": {"b": 1, "b": 1}})", "key 'b' appears twice"},
    {R"({"a": 1, "\u0061": 2})", "key 'a' appears twice"},
    {R"({"a": [[[[1]]]]})", "nested deeper than 4 levels, after key 'a'"},
    {R"({"a": [0,1,2,3,4,5,6,7,8,9]})", "key 'a' holds more than 10 values"},
};

INSTANTIATE_TEST_SUITE_P(Table, BadJson, testing::ValuesIn(kBadTexts));

TEST(JsonValue, AllowsDepthAndSizeUpToTheLimit) {
  EXPECT_EQ(error_of(R"({"a": [[[1]]]})"), "parsed");
  EXPECT_EQ(error_of(R"({"a": [1,2,3,4,5,6,7,8,9], "b": [1,2,3,4,5,6,7,8,9]})"), "parsed");
}

// Of the outermost object: a hostile file of many short keys would take many times its size.
TEST(JsonValue, RefusesMoreKeysThanAnyFileNeeds) {
  const auto object_of = [](int num_keys) {
    std::string text = "{";
    for (int i = 0; i < num_keys; ++i) {
      text += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":0";
    }
    return text + "}";
  };
  EXPECT_EQ(error_of(object_of(131'072)), "parsed");
  EXPECT_THAT(error_of(object_of(131'073)), HasSubstr("more than 131072 keys in one object"));
}

// The parser would hold it several times over.
TEST(JsonValue, RefusesASingleTokenOfMegabytes) {
  const std::size_t limit = std::size_t{4} << 20U;
  const std::string longest = "{\"a\": \"" + std::string(limit - 2, '\\') + "x\", \"b\": 1}";
  EXPECT_EQ(error_of(longest), "parsed");
  for (const std::string& text :
       {"{\"a\": \"" + std::string(limit + 8, 'x') + "\"}", "{\"" + std::string(limit + 8, 'x'),
        "{\"a\": " + std::string(limit + 8, '1'), "{ " + std::string(limit + 8, ' ') + "}"}) {
    EXPECT_THAT(error_of(text), HasSubstr("white space of more than 4194304 bytes; expected"));
  }
}

// A recursive reader or destructor would need gigabytes of stack for these.
TEST(JsonValue, RefusesAMillionNestedContainers) {
  EXPECT_THAT(error_of("{\"a\":" + std::string(1'000'000, '[')), HasSubstr("nested deeper"));
  std::string objects;
  for (int i = 0; i < 1'000'000; ++i) {
    objects += "{\"a\":";
  }
  EXPECT_THAT(error_of(objects), HasSubstr("nested deeper"));
}

TEST(JsonValue, AnErrorOfTheReceiverEndsTheParse) {
  int calls = 0;
  const Status status = for_each_json_member(
      R"({"a": 1, "b": 2, "c": )", "f", kLimits, [&](JsonMember member) -> Status {
        ++calls;
        return member.key == "b" ? Status(Error{ErrorCode::kUnsupported, "no b"}) : Status(Ok{});
      });
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "no b");
  EXPECT_EQ(status.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(calls, 2);
}

TEST(JsonValue, QuotesOnlyPrintableBytesAndNotTooMany) {
  EXPECT_EQ(in_quotes("a\n\x7F\xC3\xA9"), "'a\\x0A\\x7F\\xC3\\xA9'");
  EXPECT_EQ(in_quotes(std::string(1000, 'x')), "'" + std::string(80, 'x') + "...'");
}

TEST(JsonValue, DescribesARealNumberShortlyAndUnlikeAWholeOne) {
  EXPECT_EQ(describe(JsonValue{0.1}), "the number 0.1");
  EXPECT_EQ(describe(JsonValue{-257.0}), "the number -257.0");
  EXPECT_EQ(describe(JsonValue{std::int64_t{257}}), "the number 257");
}

JsonObject fields_text() {
  return parse_json_object(R"({"int": 7, "real": 0.5, "text": "t", "flag": true, "none": null,
                               "list": [1, 2], "mixed": [1, "x"], "big": 18446744073709551584})",
                           "f", {.max_depth = 8, .max_values = 100})
      .value();
}

TEST(FieldReader, ReadsEachType) {
  const JsonObject object = fields_text();
  const FieldReader fields(object, "f");
  EXPECT_EQ(fields.integer("int", {7, 7}).value(), 7);
  EXPECT_EQ(fields.number("int", {0, 10}).value(), 7.0);
  EXPECT_EQ(fields.number("real", {0, 1}).value(), 0.5);
  EXPECT_EQ(fields.string("text", "a text").value(), "t");
  EXPECT_TRUE(fields.boolean_or("flag", false).value());
  EXPECT_THAT(fields.integers("list", {0, 9}).value(), ElementsAre(1, 2));
}

TEST(FieldReader, TakesNullForAbsent) {
  const JsonObject object = fields_text();
  const FieldReader fields(object, "f");
  EXPECT_EQ(fields.integer_or("none", {0, 9}, 5).value(), 5);
  EXPECT_EQ(fields.number_or("none", {0, 9}, 0.25).value(), 0.25);
  EXPECT_TRUE(fields.boolean_or("none", true).value());
  EXPECT_FALSE(fields.object("none").value().has_value());
}

TEST(FieldReader, ErrorsSayWhatIsThereAndWhatIsExpected) {
  const JsonObject object = fields_text();
  const FieldReader fields(object, "f", "outer.");
  EXPECT_EQ(fields.integer("gone", {1, 9}).error().message,
            "f: field 'outer.gone' is missing; expected an integer from 1 to 9");
  EXPECT_EQ(fields.integer("int", {8, 9}).error().message,
            "f: field 'outer.int' is the number 7; expected an integer from 8 to 9");
  EXPECT_EQ(fields.integer("real", {0, 9}).error().message,
            "f: field 'outer.real' is the number 0.5; expected an integer from 0 to 9");
  EXPECT_EQ(fields.integer("flag", {0, 9}).error().message,
            "f: field 'outer.flag' is true; expected an integer from 0 to 9");
  EXPECT_EQ(fields.integer_or("text", {0, 9}, 1).error().message,
            "f: field 'outer.text' is the string 't'; expected an integer from 0 to 9");
  EXPECT_EQ(fields.number("list", {0, 0.5}).error().message,
            "f: field 'outer.list' is an array; expected a number from 0 to 0.5");
  EXPECT_EQ(fields.boolean_or("int", false).error().message,
            "f: field 'outer.int' is the number 7; expected true or false");
  EXPECT_EQ(fields.integers("mixed", {0, 9}).error().message,
            "f: field 'outer.mixed' holds the string 'x'; expected an array, each element an "
            "integer from 0 to 9");
  EXPECT_EQ(fields.object("int").error().message,
            "f: field 'outer.int' is the number 7; expected an object");
}

TEST(FieldReader, ReadsObjectsInsideAndNamesTheirFieldsFromTheOutermostOn) {
  const JsonObject object = parse_json_object(R"({"one": {"flag": true, "x": 1},
                                                  "many": [{"flag": false}, {"flag": 3}],
                                                  "mixed": [{}, 5]})",
                                              "f", {.max_depth = 8, .max_values = 100})
                                .value();
  const FieldReader fields(object, "f");
  const FieldReader one = fields.required_object("one").value();
  EXPECT_TRUE(one.boolean("flag").value());
  EXPECT_EQ(one.path(), "one");
  EXPECT_EQ(one.path("flag"), "one.flag");
  EXPECT_TRUE(one.only({"flag", "x"}).ok());
  EXPECT_EQ(one.only({"flag", "y"}).error().message,
            "f: field 'one.x' is not supported; expected only flag, y");
  EXPECT_EQ(one.only({"flag"}).error().code, ErrorCode::kUnsupported);
  const std::vector<FieldReader> many = fields.objects("many").value();
  ASSERT_EQ(many.size(), 2U);
  EXPECT_FALSE(many[0].boolean("flag").value());
  EXPECT_EQ(many[1].boolean("flag").error().message,
            "f: field 'many[1].flag' is the number 3; expected true or false");
  EXPECT_EQ(fields.objects("mixed").error().message,
            "f: field 'mixed[1]' is the number 5; expected an object");
  EXPECT_EQ(fields.objects("one").error().message,
            "f: field 'one' is an object; expected an array of objects");
  EXPECT_EQ(fields.required_object("gone").error().message,
            "f: field 'gone' is missing; expected an object");
}

// Such a number must not wrap to -32.
TEST(FieldReader, RefusesAWholeNumberBeyondInt64) {
  const JsonObject object = fields_text();
  const FieldReader fields(object, "f");
  EXPECT_THAT(fields.integer("big", {INT64_MIN, INT64_MAX}).error().message,
              HasSubstr("is the number 1.8446744073709552e+19"));
}

}  // namespace
}  // namespace tidekv
