#include "models/char_rnn/ngram_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/harness/error_text.h"

namespace skiff::models {
namespace {

using ::testing::HasSubstr;

using Ids = std::vector<int64_t>;

// abacab, with a strength of 2:
//   unigrams  n(a) = 3, n(b) = 2, n(c) = 1 of 6, below them 1/3 each:
//             P(a) = (3 + 2/3) / 8, P(b) = (2 + 2/3) / 8, P(c) = (1 + 2/3) / 8
//   bigrams   ab twice, ac once, of 3 after a; ba once, of 1 after b; ca once, of 1 after c
//   trigrams  aba, bac, aca, cab once each: after each pair 1
const Ids kText = {0, 1, 0, 2, 0, 1};
constexpr double kA = 11.0 / 24, kB = 8.0 / 24, kC = 5.0 / 24;

TEST(NgramModel, HasTheProbabilitiesCountedByHand) {
  const NgramModel bigrams(2, 3, kText, 2);
  EXPECT_NEAR(bigrams.Probability({}, 0), kA, 1e-12);
  EXPECT_NEAR(bigrams.Probability(Ids{0}, 1), (2 + 2 * kB) / 5, 1e-12);
  EXPECT_NEAR(bigrams.Probability(Ids{0}, 2), (1 + 2 * kC) / 5, 1e-12);
  EXPECT_NEAR(bigrams.Probability(Ids{0}, 0), 2 * kA / 5, 1e-12);
  EXPECT_NEAR(bigrams.Probability(Ids{1}, 0), (1 + 2 * kA) / 3, 1e-12);
  // Only the last character counts.
  EXPECT_EQ(bigrams.Probability(Ids{2, 1, 0}, 1), bigrams.Probability(Ids{0}, 1));

  const NgramModel trigrams(3, 3, kText, 2);
  EXPECT_NEAR(trigrams.Probability(Ids{0, 1}, 0), (1 + 2 * (1 + 2 * kA) / 3) / 3, 1e-12);
  // bb was never there: the bigrams decide.
  EXPECT_NEAR(trigrams.Probability(Ids{1, 1}, 0), bigrams.Probability(Ids{1}, 0), 1e-12);
  EXPECT_NEAR(trigrams.Probability(Ids{1}, 0), bigrams.Probability(Ids{1}, 0), 1e-12);
}

TEST(NgramModel, ProbabilitiesAddUpToOne) {
  for (const int64_t order : {1, 2, 3, 4}) {
    const NgramModel model(order, 3, kText);
    for (const Ids& context : {Ids{}, Ids{0}, Ids{0, 1}, Ids{2, 2, 2}}) {
      double sum = 0;
      for (const int64_t id : {0, 1, 2}) sum += model.Probability(context, id);
      EXPECT_NEAR(sum, 1, 1e-12);
    }
  }
}

TEST(NgramModel, LossIsTheMeanOverAllButTheFirstCharacter) {
  const NgramModel bigrams(2, 3, kText, 2);
  const double expected =
      -(std::log((2 + 2 * kB) / 5) + std::log((1 + 2 * kA) / 3) + std::log(2 * kA / 5)) / 3;
  EXPECT_NEAR(bigrams.Loss(Ids{0, 1, 0, 0}), expected, 1e-12);
}

TEST(NgramModel, RefusesOtherArguments) {
  EXPECT_THAT(InvalidArgumentText([] { NgramModel(0, 3, kText); }),
              HasSubstr("order = 0, expected 1 to 4"));
  EXPECT_THAT(InvalidArgumentText([] { NgramModel(2, 10'001, kText); }),
              HasSubstr("10001 characters, expected 1 to 10000"));
  EXPECT_THAT(InvalidArgumentText([] { NgramModel(2, 3, kText, 0); }), HasSubstr("strength = 0"));
  EXPECT_THAT(InvalidArgumentText([] { NgramModel(2, 2, kText); }),
              HasSubstr("id 2, expected 0 to 1"));
  EXPECT_THAT(InvalidArgumentText([] { NgramModel(2, 3, kText).Loss(Ids{0}); }),
              HasSubstr("a text of 1 characters, expected at least 2"));
}

}  // namespace
}  // namespace skiff::models
