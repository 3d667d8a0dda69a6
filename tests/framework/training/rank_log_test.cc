#include "framework/training/rank_log.h"

#include <gtest/gtest.h>

#include <sstream>

namespace skiff::training {
namespace {

TEST(RankLog, PassesOnTheWarningsOfOtherRanks) {
  std::ostringstream out;
  RankLog log({.rank = 3, .size = 4, .host = "b"}, &out);
  *log.stream() << "epoch 1\nwarning: too few " << 2 << " threads\n"
                << "a warning: of a kind\nwarning: not yet ended";
  EXPECT_EQ(out.str(), "rank 3 (host b): warning: too few 2 threads\n");
  *log.stream() << " is ended" << std::endl;
  EXPECT_EQ(out.str(),
            "rank 3 (host b): warning: too few 2 threads\n"
            "rank 3 (host b): warning: not yet ended is ended\n");
}

TEST(RankLog, IsTheStreamItselfOnRank0) {
  std::ostringstream out;
  RankLog log({.rank = 0, .size = 4}, &out);
  EXPECT_EQ(log.stream(), &out);
}

}  // namespace
}  // namespace skiff::training
