#include "framework/text/masking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "framework/base/error.h"
#include "framework/text/random_draws.h"
#include "tests/harness/temp_directory.h"

namespace skiff::text {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// [PAD] [UNK] [CLS] [SEP] [MASK] are 0 to 4.
Vocabulary Words() {
  std::vector<std::string> tokens(std::begin(kSpecialTokens), std::end(kSpecialTokens));
  for (const char* token : {"new", "york", "##ers", "is", "big", "play", "##ing", "city", "the"}) {
    tokens.emplace_back(token);
  }
  return Vocabulary(std::move(tokens));
}

class MaskingTest : public ::testing::Test {
 protected:
  struct Result {
    std::vector<std::string> tokens;
    MaskedTokens masked;
  };

  Result Mask(const std::string& text, const MaskingOptions& options, uint64_t step = 0) const {
    TokenSequence tokens = tokenizer_.Encode(text);
    RandomDraws random(Philox({.seed = 7, .op_id = 1, .step = step}));
    Result result{.tokens = {},
                  .masked = Masker(&vocabulary_, &lexicon_, options).Mask(&tokens, &random)};
    for (const TokenId id : tokens.ids) result.tokens.push_back(vocabulary_.token(id));
    return result;
  }

  const Vocabulary vocabulary_ = Words();
  const Tokenizer tokenizer_{&vocabulary_};
  const std::vector<std::string> entries_ = {"New York", "New York City", "play"};
  const Lexicon lexicon_{tokenizer_, entries_};
};

// Every unit is chosen and masked, so the units show.
constexpr MaskingOptions kAll = {.rate = 1, .mask_share = 1, .random_share = 0};

TEST_F(MaskingTest, HidesTheTokensAndRemembersThem) {
  const Result result = Mask("[CLS] is big [SEP]", kAll);
  EXPECT_THAT(result.tokens, ElementsAre("[CLS]", "[MASK]", "[MASK]", "[SEP]"));
  EXPECT_THAT(result.masked.positions, ElementsAre(1, 2));
  EXPECT_THAT(result.masked.labels, ElementsAre(8, 9));
}

TEST_F(MaskingTest, NeverTouchesSpecialTokens) {
  for (const MaskingUnit unit : {MaskingUnit::kPiece, MaskingUnit::kWord, MaskingUnit::kPhrase}) {
    MaskingOptions options = kAll;
    options.unit = unit;
    const Result result = Mask("[CLS] unheard [MASK] [SEP] [PAD]", options);
    EXPECT_THAT(result.tokens, ElementsAre("[CLS]", "[UNK]", "[MASK]", "[SEP]", "[PAD]"));
    EXPECT_THAT(result.masked.positions, IsEmpty());
  }
}

// With room for two tokens and all units wanted, what is masked tells which tokens hang together.
TEST_F(MaskingTest, HidesAUnitTogetherOrNotAtAll) {
  const std::string text = "yorkers playing";
  std::map<std::string, int> seen;
  for (uint64_t step = 0; step < 50; ++step) {
    ++seen[Join(
        Mask(text, {.rate = 1, .mask_share = 1, .random_share = 0, .most_masked = 3}, step).tokens,
        " ")];
  }
  EXPECT_EQ(seen.size(), 2u);
  EXPECT_GT(seen["[MASK] [MASK] play ##ing"], 10);
  EXPECT_GT(seen["york ##ers [MASK] [MASK]"], 10);
}

TEST_F(MaskingTest, HidesPiecesOneByOneIfTheyAreTheUnits) {
  std::map<std::string, int> seen;
  for (uint64_t step = 0; step < 50; ++step) {
    ++seen[Join(
        Mask("playing",
             {.unit = MaskingUnit::kPiece, .mask_share = 1, .random_share = 0, .most_masked = 1},
             step)
            .tokens,
        " ")];
  }
  EXPECT_EQ(seen.size(), 2u);
  EXPECT_GT(seen["[MASK] ##ing"], 10);
}

TEST_F(MaskingTest, HidesTheLongestPhrase) {
  const MaskingOptions phrases = {.unit = MaskingUnit::kPhrase,
                                  .rate = 0,
                                  .phrase_rate = 1,
                                  .mask_share = 1,
                                  .random_share = 0};
  EXPECT_THAT(Mask("the new york city is big", phrases).tokens,
              ElementsAre("the", "[MASK]", "[MASK]", "[MASK]", "is", "big"));
  EXPECT_THAT(Mask("new york is new", phrases).tokens,
              ElementsAre("[MASK]", "[MASK]", "is", "new"));
  // An entry ends where a word ends.
  EXPECT_THAT(Mask("new york play new yorkers playing", phrases).tokens,
              ElementsAre("[MASK]", "[MASK]", "[MASK]", "new", "york", "##ers", "play", "##ing"));
}

TEST_F(MaskingTest, ChoosesAShareOfTheUnits) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "playing ";
  EXPECT_EQ(Mask(text, {.most_masked = 1000}).masked.positions.size(), 2u * 15);
  EXPECT_EQ(Mask(text, {.most_masked = 21}).masked.positions.size(), 20u);
  // At least one, or there would be nothing to learn.
  EXPECT_EQ(Mask("is big", {}).masked.positions.size(), 1u);
  EXPECT_EQ(Mask("playing", {.most_masked = 1}).masked.positions.size(), 0u) << "no unit fits";
}

// What happens to a unit is drawn once; 80 / 10 / 10 by default.
TEST_F(MaskingTest, MasksReplacesOrKeepsAWholeUnit) {
  int masked = 0;
  int kept = 0;
  constexpr int kSteps = 4000;
  for (uint64_t step = 0; step < kSteps; ++step) {
    const Result result = Mask("playing", {}, step);
    ASSERT_EQ(result.masked.positions.size(), 2u);
    const auto masks = std::count(result.tokens.begin(), result.tokens.end(), "[MASK]");
    ASSERT_NE(masks, 1) << "half a unit";
    masked += masks == 2 ? 1 : 0;
    kept += Join(result.tokens, " ") == "play ##ing" ? 1 : 0;
    if (masks == 2) continue;
    for (const std::string& token : result.tokens) {
      EXPECT_FALSE(vocabulary_.IsSpecial(*vocabulary_.Find(token)));
    }
  }
  // Four standard deviations: 0.025 and 0.019. Random tokens seldom give the same unit (1 in 81).
  EXPECT_NEAR(static_cast<double>(masked) / kSteps, 0.8, 0.026);
  EXPECT_NEAR(static_cast<double>(kept) / kSteps, 0.1, 0.021);
}

TEST_F(MaskingTest, IsAFunctionOfTheDraws) {
  const std::string text =
      "the new york city is big the new yorkers is playing the new city is big";
  const MaskingOptions options = {.unit = MaskingUnit::kPhrase, .rate = 0.4};
  const Result first = Mask(text, options, 3);
  EXPECT_EQ(Mask(text, options, 3).tokens, first.tokens);
  EXPECT_EQ(Mask(text, options, 3).masked.positions, first.masked.positions);
  EXPECT_NE(Mask(text, options, 4).masked.positions, first.masked.positions);
}

TEST_F(MaskingTest, RefusesOptionsThatMakeNoSense) {
  const auto refusal = [&](const MaskingOptions& options, const Lexicon* lexicon) {
    const Error error = ErrorOf([&] { Masker(&vocabulary_, lexicon, options); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return std::string(error.what());
  };
  EXPECT_EQ(refusal({.rate = 1.5}, nullptr),
            "masking: rate = 1.5, phrase_rate = 1.5: expected numbers from 0 to 1");
  EXPECT_EQ(refusal({.mask_share = 0.8, .random_share = 0.3}, nullptr),
            "masking: mask_share = 0.8, random_share = 0.3: expected numbers from 0 to 1 that are "
            "at most 1 together");
  EXPECT_EQ(refusal({.most_masked = 0}, nullptr), "masking: most_masked = 0: expected at least 1");
  EXPECT_EQ(refusal({.unit = MaskingUnit::kPhrase}, nullptr), "masking of phrases needs a lexicon");
}

TEST_F(MaskingTest, LexiconTellsWhichEntriesItCannotUse) {
  const std::vector<std::string> entries = {"New York", "", "Old York", "is [MASK]", "new york"};
  const Lexicon lexicon(tokenizer_, entries);
  EXPECT_EQ(lexicon.size(), 1);
  EXPECT_THAT(lexicon.skipped(), ElementsAre("", "Old York", "is [MASK]"));
  const std::vector<std::string> unknown = {"Boston", "Berlin"};
  ExpectError([&] { Lexicon(tokenizer_, unknown); }, ErrorCode::kInvalidArgument,
              "the vocabulary has the words of none of the 2 entries of the lexicon");
}

TEST_F(MaskingTest, ReadsALexiconFromAFile) {
  const TempDirectory directory;
  const std::string path = directory / "lexicon.txt";
  PutBytes(path, "New York\n\n  \nBoston\r\n");
  EXPECT_THAT(ReadLexiconEntries(path), ElementsAre("New York", "Boston"));
  PutBytes(path, "\n");
  ExpectError([&] { ReadLexiconEntries(path); }, ErrorCode::kDataLoss,
              path + " holds no entries of a lexicon");
}

}  // namespace
}  // namespace skiff::text
