#include "memory/byte_range_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bitset>
#include <random>
#include <vector>

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ByteRangeSet, JoinsWhatTouches) {
  ByteRangeSet set;
  set.Insert({0, 10});
  set.Insert({20, 30});
  set.Insert({10, 20});
  EXPECT_THAT(set.Within({0, 100}), ElementsAre(ByteRange{0, 30}));
}

TEST(ByteRangeSet, SplitsWhereSomethingIsErased) {
  ByteRangeSet set;
  set.Insert({0, 100});
  set.Erase({40, 60});
  EXPECT_THAT(set.Within({10, 70}), ElementsAre(ByteRange{10, 40}, ByteRange{60, 70}));
  EXPECT_THAT(set.MissingWithin({10, 70}), ElementsAre(ByteRange{40, 60}));
  EXPECT_EQ(set.CountIn({10, 70}), 40);
}

TEST(ByteRangeSet, IsLeftAloneByEmptyRanges) {
  ByteRangeSet set;
  set.Insert({5, 5});
  EXPECT_THAT(set.Within({0, 10}), IsEmpty());
  set.Insert({0, 10});
  set.Erase({5, 5});
  EXPECT_THAT(set.Within({0, 10}), ElementsAre(ByteRange{0, 10}));
}

// Compares the set with a std::set of single bytes.
TEST(ByteRangeSet, HoldsWhatWasInsertedAndNotErased) {
  constexpr int kBytes = 64;
  std::mt19937 random(1);
  const auto draw_range = [&random] {
    const auto a = static_cast<int64_t>(random() % (kBytes + 1));
    const auto b = static_cast<int64_t>(random() % (kBytes + 1));
    return ByteRange{std::min(a, b), std::max(a, b)};
  };
  ByteRangeSet set;
  std::bitset<kBytes> model;
  for (int step = 0; step < 20000; ++step) {
    const ByteRange changed = draw_range();
    const bool inserts = random() % 2 == 0;
    inserts ? set.Insert(changed) : set.Erase(changed);
    for (int64_t i = changed.begin; i < changed.end; ++i) model[static_cast<size_t>(i)] = inserts;

    const ByteRange asked = draw_range();
    std::bitset<kBytes> found;
    for (const ByteRange& part : set.Within(asked)) {
      ASSERT_TRUE(asked.begin <= part.begin && part.begin < part.end && part.end <= asked.end);
      for (int64_t i = part.begin; i < part.end; ++i) found.set(static_cast<size_t>(i));
    }
    int64_t missing = 0;
    for (const ByteRange& part : set.MissingWithin(asked)) missing += part.end - part.begin;
    std::bitset<kBytes> expected;
    for (int64_t i = asked.begin; i < asked.end; ++i) {
      expected[static_cast<size_t>(i)] = model[static_cast<size_t>(i)];
    }
    ASSERT_EQ(found, expected) << "step " << step;
    ASSERT_EQ(set.CountIn(asked), static_cast<int64_t>(expected.count()));
    ASSERT_EQ(missing, asked.end - asked.begin - static_cast<int64_t>(expected.count()));
  }
}

}  // namespace
}  // namespace skiff
