#include "models/seq2seq/bleu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "framework/text/token_vocabulary.h"
#include "tests/harness/error_text.h"

namespace skiff::models {
namespace {

struct Corpus {
  std::string name;
  std::vector<std::string> translations;
  std::vector<std::string> expected;
  double smoothed;   // the score
  double published;  // the score without smoothing
  std::array<double, 4> precisions;
  double brevity_penalty;
};

// The numbers are those of sacrebleu 2.6.0: BLEU(tokenize="none", force=True) with
// smooth_method="exp" (whose precisions and brevity penalty these are) and "none".
const Corpus kCorpora[] = {
    {.name = "equal",
     .translations = {"the cat sat on the mat"},
     .expected = {"the cat sat on the mat"},
     .smoothed = 100,
     .published = 100,
     .precisions = {100, 100, 100, 100},
     .brevity_penalty = 1},
    {.name = "Papineni's clipped unigrams",
     .translations = {"the the the the the the the"},
     .expected = {"the cat is on the mat"},
     .smoothed = 7.8098498423,
     .published = 0,
     .precisions = {28.5714285714, 8.33333333333, 5, 3.125},
     .brevity_penalty = 1},
    {.name = "several sentences",
     .translations = {"it is a guide to action which ensures that the military always obeys the "
                      "commands of the party",
                      "he read the book because he was interested in world history"},
     .expected =
         {"it is a guide to action that ensures that the military will forever heed party commands",
          "he was interested in world history because he read the book"},
     .smoothed = 53.734671216,
     .published = 53.734671216,
     .precisions = {79.3103448276, 62.962962963, 48, 34.7826086957},
     .brevity_penalty = 1},
    {.name = "shorter",
     .translations = {"the black cat sat on", "two dogs run in the"},
     .expected = {"the black cat sat on the old mat today", "two dogs run in the green park"},
     .smoothed = 54.8811636094,
     .published = 54.8811636094,
     .precisions = {100, 100, 100, 100},
     .brevity_penalty = 0.548811636094},
    {.name = "longer",
     .translations = {"the black cat sat on the old mat today", "two dogs run in the green park"},
     .expected = {"the black cat sat on the mat", "two dogs run in the park"},
     .smoothed = 62.474984986,
     .published = 62.474984986,
     .precisions = {81.25, 64.2857142857, 58.3333333333, 50},
     .brevity_penalty = 1},
    {.name = "empty lines",
     .translations = {"", "two dogs run in the park", ""},
     .expected = {"a cat sleeps", "two dogs run in the park", "no one is here"},
     .smoothed = 31.1403223915,
     .published = 31.1403223915,
     .precisions = {100, 100, 100, 100},
     .brevity_penalty = 0.311403223915},
    {.name = "all empty",
     .translations = {"", ""},
     .expected = {"a cat", "a dog"},
     .smoothed = 0,
     .published = 0,
     .precisions = {0, 0, 0, 0},
     .brevity_penalty = 0},
    {.name = "no match",
     .translations = {"aa bb cc dd ee"},
     .expected = {"a b c d e"},
     .smoothed = 0,
     .published = 0,
     .precisions = {0, 0, 0, 0},
     .brevity_penalty = 1},
    {.name = "no four-grams match",
     .translations = {"the cat is on a mat"},
     .expected = {"the cat is under the mat"},
     .smoothed = 32.4667915475,
     .published = 0,
     .precisions = {66.6666666667, 40, 25, 16.6666666667},
     .brevity_penalty = 1},
    {.name = "only unigrams match",
     .translations = {"d c b a e"},
     .expected = {"a b c d f"},
     .smoothed = 15.1068769868,
     .published = 0,
     .precisions = {80, 12.5, 8.33333333333, 6.25},
     .brevity_penalty = 1},
    {.name = "too short for four-grams",
     .translations = {"a b c"},
     .expected = {"a b c"},
     .smoothed = 0,
     .published = 0,
     .precisions = {100, 100, 100, 0},
     .brevity_penalty = 1},
    {.name = "clip per sentence",
     .translations = {"a a b b c", "c c d d e"},
     .expected = {"a b c d e", "a a b c d"},
     .smoothed = 17.6776695297,
     .published = 0,
     .precisions = {50, 37.5, 8.33333333333, 6.25},
     .brevity_penalty = 1},
    {.name = "case and punctuation",
     .translations = {"The cat , it is said , sleeps .", "the  dog\tbarks ! ! ?"},
     .expected = {"the cat , it is said , sleeps .", "The dog barks ! ?"},
     .smoothed = 68.295937521,
     .published = 68.295937521,
     .precisions = {80, 76.9230769231, 63.6363636364, 55.5555555556},
     .brevity_penalty = 1},
    {.name = "unicode",
     .translations = {"der Hund läuft über die Straße", "猫 が 寝て いる 。"},
     .expected = {"der Hund läuft über eine Straße", "猫 が 寝て いた 。"},
     .smoothed = 44.4280889177,
     .published = 44.4280889177,
     .precisions = {81.8181818182, 55.5555555556, 42.8571428571, 20},
     .brevity_penalty = 1},
};

using Texts = std::vector<std::vector<std::string>>;

Texts Words(const std::vector<std::string>& texts) {
  Texts words;
  for (const std::string& text : texts)
    words.push_back(text::TokensOf(text, text::TokenKind::kWord));
  return words;
}

TEST(CorpusBleu, IsThatOfSacrebleu) {
  for (const Corpus& corpus : kCorpora) {
    SCOPED_TRACE(corpus.name);
    const Texts translations = Words(corpus.translations);
    const Texts expected = Words(corpus.expected);
    const Bleu bleu = CorpusBleu(translations, expected);
    EXPECT_NEAR(bleu.score, corpus.smoothed, 1e-9);
    EXPECT_NEAR(bleu.brevity_penalty, corpus.brevity_penalty, 1e-9);
    for (size_t i = 0; i < bleu.precisions.size(); ++i) {
      EXPECT_NEAR(bleu.precisions[i], corpus.precisions[i], 1e-9) << "n = " << i + 1;
    }
    EXPECT_NEAR(CorpusBleu(translations, expected, BleuSmoothing::kNone).score, corpus.published,
                1e-9);
  }
}

TEST(CorpusBleu, CountsTokens) {
  const Bleu bleu = CorpusBleu(Words({"a b", ""}), Words({"a b c", "d"}));
  EXPECT_EQ(bleu.tokens, 2);
  EXPECT_EQ(bleu.expected_tokens, 4);
}

TEST(CorpusBleu, OfNothingIsZero) { EXPECT_EQ(CorpusBleu({}, {}).score, 0); }

TEST(CorpusBleu, RefusesAnotherNumberOfTexts) {
  EXPECT_EQ(InvalidArgumentText([] {
              CorpusBleu(Words({"a", "b"}), Words({"a"}));
            }),
            "2 translations, expected 1");
}

}  // namespace
}  // namespace skiff::models
