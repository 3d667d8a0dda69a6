#include "framework/io/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "tests/harness/damage_bytes.h"
#include "tests/harness/temp_directory.h"

namespace skiff {
namespace {

using Json = nlohmann::json;

void ExpectRefused(const std::string& text, const std::string& message) {
  ExpectError([&] { ParseJson(text, "a.json"); }, ErrorCode::kDataLoss, "a.json: " + message);
}

TEST(ParseJson, ReturnsTheValue) {
  EXPECT_EQ(ParseJson(R"({"a": [1, {"a": null}], "b": -2.5})", "a.json"),
            Json({{"a", {1, {{"a", nullptr}}}}, {"b", -2.5}}));
  EXPECT_EQ(ParseJson("\xEF\xBB\xBF[1]", "a.json"), Json({1})) << "behind a byte order mark";
}

TEST(ParseJson, SaysWhereTheTextIsNoJson) {
  ExpectRefused("", "byte 0: expected JSON");
  ExpectRefused("{\"a\": x}", "byte 6: expected JSON");
  ExpectRefused("[1] 2", "byte 4: expected JSON");
  ExpectRefused(std::string("[1]\0 2", 6), "byte 3: expected JSON");
  ExpectRefused("[1e999]", "a number that no type holds");
  EXPECT_EQ(ErrorOf([] { ParseJson("[", "a.json", ErrorCode::kInvalidArgument); }).code(),
            ErrorCode::kInvalidArgument);
}

TEST(ParseJson, RefusesAKeyTwice) {
  ExpectRefused(R"({"b": {"a": 1, "c": {"a": 1}, "a": 2}})", "\"a\" is there twice");
}

TEST(ParseJson, DropsMembersThatAreNotKept) {
  const auto keeps = [](int depth, const std::string& key) { return depth == 1 || key == "a"; };
  const auto parsed = [&](const std::string& text) {
    return ParseJson(text, "a.json", ErrorCode::kDataLoss, 8, keeps);
  };
  EXPECT_EQ(parsed(R"({"x": {"a": 1, "b": [{"c": 1, "c": 2}], "b": 3}, "y": 4})"),
            Json({{"x", {{"a", 1}}}, {"y", 4}}));
  ExpectError([&] { parsed(R"({"x": {"a": 1, "a": 2}})"); }, ErrorCode::kDataLoss,
              "a.json: \"a\" is there twice");
}

// Printing such a value takes a call for each level: the stack would end first.
TEST(ParseJson, RefusesDeepNesting) {
  const auto nested = [](const char* begin, const char* end, size_t levels) {
    std::string text;
    for (size_t i = 0; i < levels; ++i) text += begin;
    text += "1";
    for (size_t i = 0; i < levels; ++i) text += end;
    return text;
  };
  for (const size_t levels : {33, 1'000'000}) {
    ExpectRefused(nested("[", "]", levels), "JSON nested deeper than 32 levels");
    ExpectRefused(nested("{\"a\":", "}", levels), "JSON nested deeper than 32 levels");
  }
  EXPECT_EQ(QuotedJson(ParseJson(nested("[", "]", 3), "a.json")), "[[[1]]]");
}

TEST(ParseJson, SurvivesMutations) {
  const std::string intact = R"({"a": [1, -2.5e3, "é\n", {"b": null}], "c": {"d": [true]}})";
  std::mt19937 random(1);
  for (int i = 0; i < 3000; ++i) {
    const std::string text = DamageBytes(intact, &random);
    try {
      EXPECT_LE(QuotedJson(ParseJson(text, "a.json")).size(), 64u);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDataLoss) << text;
    }
  }
}

TEST(QuotedJson, CutsALongValue) {
  EXPECT_EQ(QuotedJson("é"), "\"\\u00e9\"");
  EXPECT_EQ(QuotedJson(std::string(100, 'x')), "\"" + std::string(59, 'x') + " ...");
}

TEST(JsonInteger, IsWhatInt64Holds) {
  EXPECT_EQ(JsonInteger(Json::parse("9223372036854775807")), INT64_MAX);
  EXPECT_EQ(JsonInteger(Json::parse("-9223372036854775808")), INT64_MIN);
  EXPECT_EQ(JsonInteger(Json::parse("9223372036854775808")), std::nullopt);
  EXPECT_EQ(JsonInteger(Json::parse("7.0")), std::nullopt);
  EXPECT_EQ(JsonInteger(Json::parse("true")), std::nullopt);
}

}  // namespace
}  // namespace skiff
