#include "operators/common/staged_copies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace skiff {
namespace {

// Checks that the staging buffer has the bytes of each tensor.
std::vector<std::string> Staged(const StagedCopies& plan,
                                const std::vector<StagedTensor>& tensors) {
  std::string staging(static_cast<size_t>(plan.bytes), '?');
  for (const StagedCopies::Copy& copy : plan.copies) {
    EXPECT_LE(copy.to + copy.bytes, plan.bytes);
    EXPECT_EQ(copy.to % 64, 0);
    std::memcpy(staging.data() + copy.to, copy.from, static_cast<size_t>(copy.bytes));
  }
  std::vector<std::string> staged;
  for (size_t i = 0; i < tensors.size(); ++i) {
    staged.push_back(staging.substr(static_cast<size_t>(plan.offsets[i]),
                                    static_cast<size_t>(tensors[i].bytes)));
  }
  return staged;
}

TEST(StagedCopies, AdjacentArraysAreOneCopy) {
  const std::string flat = "aaaabbbb....ccdddddddddd";
  const int other = 0;
  const std::vector<StagedTensor> tensors = {{flat.data() + 14, 10, &flat},
                                             {flat.data(), 4, &flat},
                                             {flat.data() + 4, 4, &flat},
                                             {nullptr, 0, nullptr},
                                             {flat.data() + 12, 2, &flat}};
  const StagedCopies plan = PlanStagedCopies(tensors, 4);
  EXPECT_EQ(plan.copies.size(), 1U);
  EXPECT_EQ(plan.bytes, 24);
  EXPECT_EQ(Staged(plan, tensors),
            (std::vector<std::string>{"dddddddddd", "aaaa", "bbbb", "", "cc"}));
  EXPECT_EQ(PlanStagedCopies(tensors, 3).copies.size(), 2U) << "the gap is too large";
  std::vector<StagedTensor> of_two = tensors;
  of_two[4].buffer = &other;
  EXPECT_EQ(PlanStagedCopies(of_two, 4).copies.size(), 3U) << "other buffers may end in between";
}

TEST(StagedCopies, OneTensorMayStandThereTwice) {
  const std::string flat = "aaaabb";
  const std::vector<StagedTensor> tensors = {
      {flat.data(), 4, &flat}, {flat.data() + 4, 2, &flat}, {flat.data(), 4, &flat}};
  const StagedCopies plan = PlanStagedCopies(tensors, 0);
  EXPECT_EQ(plan.copies.size(), 1U);
  EXPECT_EQ(Staged(plan, tensors), (std::vector<std::string>{"aaaa", "bb", "aaaa"}));
}

TEST(StagedCopies, NothingIsNoCopy) {
  EXPECT_TRUE(PlanStagedCopies({}, 64).copies.empty());
  EXPECT_EQ(PlanStagedCopies({{}}, 64).bytes, 0);
}

}  // namespace
}  // namespace skiff
