// How bucket_bytes cuts; rewrites/bucket_gradients.txt has the rewrites.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/str_cat.h"
#include "framework/ir/text.h"
#include "framework/op/registry.h"
#include "framework/transpiler/bucket_gradients_pass.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;

// Returns the numbers of gradients in the ops that sum `count` gradients of 400 bytes.
std::vector<size_t> Buckets(int count, int64_t bucket_bytes) {
  std::string vars, ops;
  for (int i = 0; i < count; ++i) {
    vars += StrCat("var g", i, " float32 [100] var s", i, " float32 [100] ");
    ops += StrCat("{Out: [s", i, "]} = c_allreduce_sum(X: [g", i, "]) ");
  }
  const auto program = ParseProgramText(StrCat("program { block 0 { ", vars, ops, " } }"));
  BucketGradientsPass().Apply({DefaultOpRegistry(), {.bucket_bytes = bucket_bytes}}, program.get());
  std::vector<size_t> sizes;
  for (const auto& op : program->root()->ops()) sizes.push_back(op->Input("X").size());
  return sizes;
}

TEST(BucketGradientsPass, ABucketHasAtLeastSoManyBytes) {
  EXPECT_THAT(Buckets(7, 1000), ElementsAre(3, 2, 2));
  EXPECT_THAT(Buckets(7, 1200), ElementsAre(3, 1, 3));
}

TEST(BucketGradientsPass, TheLastBucketHasAtMostSoManyBytes) {
  EXPECT_THAT(Buckets(2, 799), ElementsAre(1, 1));
  EXPECT_THAT(Buckets(2, 800), ElementsAre(2));
}

TEST(BucketGradientsPass, AFewBytesKeepGradientsAlone) {
  EXPECT_THAT(Buckets(3, 1), ElementsAre(1, 1, 1));
}

TEST(BucketGradientsPass, ManyBytesTakeAllGradients) {
  EXPECT_THAT(Buckets(5, int64_t{25} << 20), ElementsAre(5));
}

}  // namespace
}  // namespace skiff
