#include "framework/text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "framework/base/error.h"
#include "framework/io/file.h"
#include "framework/text/vocabulary.h"
#include "tests/harness/temp_directory.h"

namespace skiff::text {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kFolder[] = "tests/framework/text/";

std::string FromHex(const std::string& digits) {
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

Vocabulary FixtureVocabulary() {
  return ReadVocabulary(std::string(kFolder) + "tokenizer_vocabulary.txt");
}

// What the package `tokenizers` makes of hard strings: see make_tokenizer_fixture.py.
nlohmann::json FixtureCases() {
  return nlohmann::json::parse(ReadFile(std::string(kFolder) + "tokenizer_fixture.json"));
}

BasicTokenizerOptions OptionsOf(const nlohmann::json& fixture_case) {
  BasicTokenizerOptions options{.lower_case = fixture_case.at("lower_case")};
  const nlohmann::json& strip = fixture_case.at("strip_accents");
  if (!strip.is_null()) options.strip_accents = strip.get<bool>();
  return options;
}

Vocabulary Small(std::vector<std::string> tokens) {
  tokens.insert(tokens.begin(), std::begin(kSpecialTokens), std::end(kSpecialTokens));
  return Vocabulary(std::move(tokens));
}

TEST(Tokenizer, CutsHardStringsAsAnIndependentImplementation) {
  const Vocabulary vocabulary = FixtureVocabulary();
  const nlohmann::json cases = FixtureCases();
  ASSERT_GT(cases.size(), 700u);
  for (const nlohmann::json& fixture_case : cases) {
    SCOPED_TRACE(fixture_case.dump());
    const std::string text = FromHex(fixture_case.at("bytes"));
    const BasicTokenizerOptions options = OptionsOf(fixture_case);
    EXPECT_EQ(BasicTokens(text, options), fixture_case.at("words").get<std::vector<std::string>>());
    EXPECT_EQ(Tokenizer(&vocabulary, {.basic = options}).Tokens(text),
              fixture_case.at("tokens").get<std::vector<std::string>>());
  }
}

TEST(Tokenizer, TakesAnyBytesAtAll) {
  const Vocabulary vocabulary = FixtureVocabulary();
  const Tokenizer tokenizer(&vocabulary);
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string bytes = {'a', static_cast<char>(first), static_cast<char>(second)};
      for (const TokenId id : tokenizer.Encode(bytes).ids) EXPECT_LT(id, vocabulary.size());
      // A text that is cut in the middle of a character keeps what is before.
      EXPECT_FALSE(tokenizer.Tokens(bytes).empty()) << first << " " << second;
    }
  }
}

TEST(Tokenizer, PrefersTheLongestPieceAtEachPlace) {
  const Vocabulary vocabulary = Small({"un", "una", "##a", "##ff", "##able", "##ffab", "##le"});
  EXPECT_THAT(Tokenizer(&vocabulary).Tokens("unaffable"), ElementsAre("una", "##ffab", "##le"));
  // Greedy: a cut that leads nowhere isn't taken back.
  const Vocabulary trap = Small({"ab", "a", "##bc"});
  EXPECT_THAT(Tokenizer(&trap).Tokens("abc"), ElementsAre("[UNK]"));
}

TEST(Tokenizer, TellsWhichPiecesMakeAWord) {
  const Vocabulary vocabulary = Small({"play", "##ing", "now", "!"});
  const TokenSequence tokens = Tokenizer(&vocabulary).Encode("playing [MASK] now! gone");
  EXPECT_THAT(tokens.roles,
              ElementsAre(TokenRole::kWordStart, TokenRole::kInsideWord, TokenRole::kSpecial,
                          TokenRole::kWordStart, TokenRole::kWordStart, TokenRole::kSpecial));
  EXPECT_THAT(tokens.ids, ElementsAre(5, 6, 4, 7, 8, 1));
}

// An unknown word after pieces that fitted leaves none of them behind.
TEST(Tokenizer, MakesOneTokenOfAWordThatCannotBeCut) {
  const Vocabulary vocabulary = Small({"a", "##b", "c"});
  const TokenSequence tokens = Tokenizer(&vocabulary).Encode("c abx c");
  EXPECT_THAT(tokens.ids, ElementsAre(7, 1, 7));
  EXPECT_EQ(tokens.roles.size(), 3u);
}

TEST(Tokenizer, ReadsSpecialTokensInATextAsWordsOnRequest) {
  const Vocabulary vocabulary = Small({"[", "]", "mask"});
  EXPECT_THAT(Tokenizer(&vocabulary).Tokens("[MASK]"), ElementsAre("[MASK]"));
  EXPECT_THAT(Tokenizer(&vocabulary, {.special_tokens = false}).Tokens("[MASK]"),
              ElementsAre("[", "mask", "]"));
}

TEST(Tokenizer, TakesALongerWordIfAsked) {
  const Vocabulary vocabulary = Small({"a", "##a"});
  EXPECT_EQ(Tokenizer(&vocabulary).Encode(std::string(101, 'a')).size(), 1);
  EXPECT_EQ(Tokenizer(&vocabulary, {.longest_word = 101}).Encode(std::string(101, 'a')).size(),
            101);
  ExpectError([&] { Tokenizer(&vocabulary, {.longest_word = 0}); }, ErrorCode::kInvalidArgument,
              "longest_word = 0: expected at least 1");
}

TEST(Tokenizer, GivesNothingForNothing) {
  const Vocabulary vocabulary = Small({"a"});
  EXPECT_THAT(Tokenizer(&vocabulary).Tokens(""), IsEmpty());
  EXPECT_THAT(Tokenizer(&vocabulary).Tokens(" \t\xff\n"), IsEmpty());
}

}  // namespace
}  // namespace skiff::text
