#include "framework/base/static_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/str_cat.h"

namespace skiff {
namespace {

TEST(StaticText, RefersToALiteral) {
  static constexpr char kLiteral[] = "softmax";
  constexpr StaticText text = kLiteral;
  EXPECT_EQ(text.data(), kLiteral);
  EXPECT_EQ(text, "softmax");
  EXPECT_TRUE(StaticText().empty());
}

TEST(StaticText, KeepsACopyOfOtherText) {
  std::string name = "a name that is too long for a string without memory of its own";
  const std::string expected = name;
  const StaticText from_string = name;
  const StaticText from_pointer = name.c_str();
  const StaticText from_view{std::string_view(name)};
  char buffer[] = "in a buffer";
  const StaticText from_buffer = buffer;
  buffer[0] = '?';
  name.assign(name.size(), '?');
  EXPECT_EQ(from_string, expected);
  EXPECT_EQ(from_pointer, expected);
  EXPECT_EQ(from_view, expected);
  EXPECT_EQ(from_buffer, "in a buffer");
  // By request only, since a view is rarely meant to be kept.
  EXPECT_FALSE((std::is_convertible_v<std::string_view, StaticText>));
}

TEST(StaticText, RefusesANullPointer) {
  const char* null = nullptr;
  try {
    static_cast<void>(StaticText(null));
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "a text of a definition is a null pointer, expected a string");
  }
}

TEST(StaticText, KeepsEqualTextsOnce) {
  const StaticText first = std::string("kept once");
  const StaticText second = std::string("kept once");
  EXPECT_EQ(first.data(), second.data());
}

TEST(StaticText, KeepsTextsOfSeveralThreads) {
  constexpr int kTexts = 200;
  const auto keep = [](std::vector<StaticText>* texts) {
    for (int i = 0; i < kTexts; ++i) texts->push_back(StrCat("text ", i));
  };
  std::vector<StaticText> texts, texts_of_other;
  std::thread other(keep, &texts_of_other);
  keep(&texts);
  other.join();
  for (size_t i = 0; i < kTexts; ++i) {
    EXPECT_EQ(texts[i], StrCat("text ", i));
    EXPECT_EQ(texts[i].data(), texts_of_other[i].data());
  }
}

TEST(StaticText, IsCopiedAndDestroyedWithoutACall) {
  EXPECT_TRUE(std::is_trivially_copyable_v<StaticText>);
  EXPECT_TRUE(std::is_trivially_destructible_v<StaticText>);
}

TEST(StaticText, StandsWhereAStringDoes) {
  const StaticText text = "Out";
  const std::string string = text;
  EXPECT_EQ(string, "Out");
  EXPECT_TRUE(text == string && string == text);
  EXPECT_EQ(StrCat(text, "@GRAD"), "Out@GRAD");
  EXPECT_EQ(std::ranges::count(std::vector<StaticText>{"X", "Out"}, string), 1);
  EXPECT_EQ(std::ranges::count(std::vector<std::string>{"X", "Out"}, text), 1);
}

}  // namespace
}  // namespace skiff
