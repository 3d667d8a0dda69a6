#include "framework/text/vocabulary_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/text/tokenizer.h"
#include "tests/harness/temp_directory.h"

namespace skiff::text {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> TokensAfterSpecial(const Vocabulary& vocabulary) {
  std::vector<std::string> tokens;
  for (TokenId id = 5; id < vocabulary.size(); ++id) tokens.push_back(vocabulary.token(id));
  return tokens;
}

// low 5, lower 2, newest 6, widest 3: the example of Sennrich et al. (2016), section 3.2, whose
// first merges are e s, es t, l o, lo w.
const WordCounts kSennrich = {{"low", 5}, {"lower", 2}, {"newest", 6}, {"widest", 3}};

TEST(BuildVocabulary, MergesTheMostFrequentPairFirst) {
  const Vocabulary vocabulary =
      BuildVocabulary(kSennrich, {.size = 5 + 18 + 4, .required_alphabet = ""});
  EXPECT_THAT(TokensAfterSpecial(vocabulary),
              ElementsAre("d", "##d", "e", "##e", "i", "##i", "l", "n", "o", "##o", "r", "##r", "s",
                          "##s", "t", "##t", "w", "##w", "##es", "##est", "lo", "low"));
}

TEST(BuildVocabulary, CutsFrequentWordsIntoFewPieces) {
  const Vocabulary vocabulary = BuildVocabulary(kSennrich, {.size = 60, .required_alphabet = ""});
  const Tokenizer tokenizer(&vocabulary);
  EXPECT_THAT(tokenizer.Tokens("newest low"), ElementsAre("newest", "low"));
  // Never seen, but made of seen pieces.
  EXPECT_THAT(tokenizer.Tokens("lowest"), ElementsAre("low", "##est"));
}

TEST(BuildVocabulary, LeavesRarePairsApart) {
  const Vocabulary vocabulary =
      BuildVocabulary(kSennrich, {.size = 60, .least_pair_count = 6, .required_alphabet = ""});
  EXPECT_THAT(Tokenizer(&vocabulary).Tokens("widest low"),
              ElementsAre("w", "##i", "##d", "##est", "low"));
}

TEST(BuildVocabulary, KeepsToItsSize) {
  for (const int64_t size : {100, 101, 110}) {
    EXPECT_LE(BuildVocabulary(kSennrich, {.size = size}).size(), size);
  }
  ExpectError([] { BuildVocabulary(kSennrich, {.size = 76}); }, ErrorCode::kInvalidArgument,
              "size = 76 of the vocabulary: the special tokens and the alphabet take 77");
  EXPECT_EQ(BuildVocabulary(kSennrich, {.size = 77}).size(), 77);
}

TEST(BuildVocabulary, KnowsEveryWordOfTheRequiredAlphabet) {
  const Vocabulary vocabulary = BuildVocabulary(kSennrich, {.size = 100});
  for (const TokenId id : Tokenizer(&vocabulary).Encode("xylophone quiz 2048 zzz").ids) {
    EXPECT_NE(id, vocabulary.unknown());
  }
}

TEST(BuildVocabulary, LeavesOutTheRarestCharacters) {
  const WordCounts words = {{"aab", 9}, {"好", 3}, {"ω", 1}};
  const Vocabulary vocabulary =
      BuildVocabulary(words, {.size = 100, .alphabet_size = 3, .required_alphabet = ""});
  EXPECT_TRUE(vocabulary.Find("好").has_value());
  EXPECT_FALSE(vocabulary.Find("ω").has_value());
  EXPECT_EQ(Tokenizer(&vocabulary).Tokens("aab"), std::vector<std::string>{"aab"});
}

TEST(BuildVocabulary, IsAFunctionOfTheText) {
  WordCounts forward;
  WordCounts backward;
  const std::vector<std::string> lines = {"the cat sat on the mat", "A cat! a mat?", "matted cats"};
  for (size_t i = 0; i < lines.size(); ++i) {
    CountWords(lines[i], {}, &forward);
    CountWords(lines[lines.size() - 1 - i], {}, &backward);
  }
  EXPECT_EQ(forward.at("a"), 2);
  EXPECT_EQ(forward.at("!"), 1);
  EXPECT_EQ(BuildVocabulary(forward, {.size = 90}).Text(),
            BuildVocabulary(backward, {.size = 90}).Text());
}

// Counts are kept up to date rather than taken anew, where mistakes hide: the same merges by brute
// force.
TEST(BuildVocabulary, AgreesWithMergesThatCountEverythingAnew) {
  WordCounts words;
  CountWords("banana bandana an and ananas nab abba cabana banal bananas aaaa aaa aa aaaaa", {},
             &words);
  std::map<std::vector<std::string>, int64_t> cut;
  for (const auto& [word, count] : words) {
    std::vector<std::string> pieces;
    for (const char c : word) pieces.push_back((pieces.empty() ? "" : "##") + std::string(1, c));
    cut[pieces] += count;
  }
  const Vocabulary vocabulary =
      BuildVocabulary(words, {.size = 1000, .least_pair_count = 2, .required_alphabet = ""});
  std::vector<std::string> tokens = TokensAfterSpecial(vocabulary);
  const auto number = [&](const std::string& token) { return *vocabulary.Find(token); };
  while (true) {
    std::map<std::pair<std::string, std::string>, int64_t> pairs;
    for (const auto& [pieces, count] : cut) {
      for (size_t i = 0; i + 1 < pieces.size(); ++i) pairs[{pieces[i], pieces[i + 1]}] += count;
    }
    std::pair<std::string, std::string> best;
    int64_t most = 1;
    for (const auto& [pair, count] : pairs) {
      const bool earlier = count == most && !best.first.empty() &&
                           std::pair(number(pair.first), number(pair.second)) <
                               std::pair(number(best.first), number(best.second));
      if (count > most || earlier) {
        best = pair;
        most = count;
      }
    }
    if (most < 2) break;
    const std::string merged = best.first + best.second.substr(2);
    ASSERT_TRUE(vocabulary.Find(merged).has_value()) << merged;
    std::map<std::vector<std::string>, int64_t> next;
    for (const auto& [pieces, count] : cut) {
      std::vector<std::string> kept;
      for (size_t i = 0; i < pieces.size(); ++i) {
        if (i + 1 < pieces.size() && pieces[i] == best.first && pieces[i + 1] == best.second) {
          kept.push_back(merged);
          ++i;
        } else {
          kept.push_back(pieces[i]);
        }
      }
      next[kept] += count;
    }
    cut = next;
    std::erase(tokens, merged);
  }
  // Nothing is left but the characters.
  for (const std::string& token : tokens) EXPECT_LE(token.size(), 3u) << token;
}

TEST(BuildVocabulary, RefusesWhatItCannotUse) {
  ExpectError([] { BuildVocabulary({}, {}); }, ErrorCode::kInvalidArgument,
              "no words to make a vocabulary from");
  ExpectError([] { BuildVocabulary(kSennrich, {.least_pair_count = 0}); },
              ErrorCode::kInvalidArgument,
              "least_pair_count = 0, alphabet_size = 1000: expected at least 1");
}

}  // namespace
}  // namespace skiff::text
