#include "framework/text/ctc_beam_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "tests/harness/error_text.h"

namespace skiff::text {
namespace {

using Labels = std::vector<int64_t>;

// Numbers in [-scale, scale), the same on every machine.
std::vector<float> Logits(int64_t count, uint64_t seed, float scale) {
  std::vector<float> logits;
  uint64_t state = seed * 2 + 1;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    logits.push_back(scale * (static_cast<float>(state >> 40) / 8388608.0f - 1));
  }
  return logits;
}

// The sum over all paths, for each labelling.
class AllPaths {
 public:
  AllPaths(const std::vector<float>& logits, int64_t classes, int64_t blank)
      : classes_(classes), blank_(blank) {
    for (size_t first = 0; first < logits.size(); first += static_cast<size_t>(classes)) {
      steps_.emplace_back();
      double sum = 0;
      for (int64_t c = 0; c < classes; ++c)
        sum += std::exp(static_cast<double>(logits[first + static_cast<size_t>(c)]));
      for (int64_t c = 0; c < classes; ++c) {
        const auto logit = static_cast<double>(logits[first + static_cast<size_t>(c)]);
        steps_.back().push_back(std::exp(logit) / sum);
      }
    }
    Add(0, blank_, {}, 1);
  }

  // The labellings, the most probable first.
  std::vector<CtcLabelling> Sorted() const {
    std::vector<CtcLabelling> all;
    for (const auto& [labels, sum] : sums_) all.push_back({labels, std::log(sum)});
    std::ranges::sort(
        all, [](const CtcLabelling& a, const CtcLabelling& b) { return a.score > b.score; });
    return all;
  }

 private:
  void Add(size_t step, int64_t last, const Labels& labels, double probability) {
    if (step == steps_.size()) {
      sums_[labels] += probability;
      return;
    }
    for (int64_t c = 0; c < classes_; ++c) {
      Labels longer = labels;
      if (c != blank_ && (c != last || step == 0)) longer.push_back(c);
      Add(step + 1, c, longer, probability * steps_[step][static_cast<size_t>(c)]);
    }
  }

  int64_t classes_;
  int64_t blank_;
  std::vector<std::vector<double>> steps_;
  std::map<Labels, double> sums_;
};

TEST(CtcBeamSearch, FindsAllLabellingsIfTheBeamHoldsThem) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const int64_t classes = 2 + static_cast<int64_t>(seed % 3);
    const int64_t blank = static_cast<int64_t>(seed) % classes;
    const std::vector<float> logits = Logits(5 * classes, seed, 3);
    const std::vector<CtcLabelling> expected = AllPaths(logits, classes, blank).Sorted();
    const std::vector<CtcLabelling> found =
        DecodeCtc(logits, classes, {.beam_width = 10000, .blank = blank, .best = 10000});
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].labels, expected[i].labels) << seed;
      EXPECT_NEAR(found[i].score, expected[i].score, 1e-9);
    }
  }
}

TEST(CtcBeamSearch, ANarrowBeamFindsLessButScoresNothingTooHigh) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<float> logits = Logits(6 * 3, seed, 2);
    std::map<Labels, double> exact;
    for (const CtcLabelling& one : AllPaths(logits, 3, 0).Sorted()) exact[one.labels] = one.score;
    const std::vector<CtcLabelling> found = DecodeCtc(logits, 3, {.beam_width = 3, .best = 5});
    ASSERT_EQ(found.size(), 3);
    for (const CtcLabelling& one : found) EXPECT_LE(one.score, exact.at(one.labels) + 1e-9);
  }
}

// At each step the blank is the most probable class, and most paths have a label all the same.
TEST(CtcBeamSearch, AddsUpThePathsOfALabelling) {
  const std::vector<float> logits = {std::log(0.6f), std::log(0.4f), std::log(0.6f),
                                     std::log(0.4f)};
  const CtcLabelling best = DecodeCtc(logits, 2)[0];
  EXPECT_EQ(best.labels, Labels{1});
  EXPECT_NEAR(best.score, std::log(0.64), 1e-6);
}

TEST(CtcBeamSearch, EqualLabelsNeedABlankBetween) {
  const float no = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(DecodeCtc(std::vector<float>{no, 0, no, 0, no, 0}, 2)[0].labels, Labels{1});
  EXPECT_EQ(DecodeCtc(std::vector<float>{no, 0, 0, no, no, 0}, 2)[0].labels, (Labels{1, 1}));
}

TEST(CtcBeamSearch, StaysFiniteOnLongSequencesOfLargeLogits) {
  const CtcLabelling best = DecodeCtc(Logits(2000 * 5, 7, 1000), 5)[0];
  EXPECT_TRUE(std::isfinite(best.score));
  EXPECT_GT(best.labels.size(), 1000);
}

TEST(CtcBeamSearch, OfNoStepsNoLabelsAreCertain) {
  const std::vector<CtcLabelling> found = DecodeCtc({}, 3, {.best = 4});
  ASSERT_EQ(found.size(), 1);
  EXPECT_TRUE(found[0].labels.empty());
  EXPECT_EQ(found[0].score, 0);
}

TEST(CtcBeamSearch, SaysWhatIsWrong) {
  const std::vector<float> logits = {0, 1, 2, 3};
  const auto error = [&](int64_t classes, const CtcBeamOptions& options) {
    return ErrorText([&] { DecodeCtc(logits, classes, options); });
  };
  EXPECT_EQ(error(2, {.beam_width = 0}), "DecodeCtc: beam_width = 0, expected at least 1");
  EXPECT_EQ(error(2, {.best = 0}), "DecodeCtc: best = 0, expected at least 1");
  EXPECT_EQ(error(2, {.blank = 2}), "DecodeCtc: blank = 2, expected a class in [0, 2)");
  EXPECT_EQ(error(0, {}), "DecodeCtc: blank = 0, expected a class in [0, 0)");
  EXPECT_EQ(error(3, {}), "DecodeCtc: 4 logits, expected 3 for each step");
  const std::vector<float> none(2, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(
      ErrorText([&] { DecodeCtc(none, 2); }),
      "DecodeCtc: all logits of step 0 are minus infinity, expected a class that is possible");
  const std::vector<float> nan = {0, 0, 0, std::nanf("")};
  EXPECT_EQ(ErrorText([&] { DecodeCtc(nan, 2); }),
            "DecodeCtc: the logit of step 1, class 1 is nan, expected a number");
}

}  // namespace
}  // namespace skiff::text
