#include "framework/op/math_mode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/harness/error_text.h"

namespace skiff {
namespace {

TEST(MathMode, HasNames) {
  for (const MathMode mode : {MathMode::kFull, MathMode::kTf32}) {
    EXPECT_EQ(MathModeFromName(MathModeName(mode)), mode);
  }
  EXPECT_EQ(MathModeName(MathMode::kFull), "full");
  EXPECT_EQ(MathModeName(MathMode::kTf32), "tf32");
}

TEST(MathMode, RefusesOtherNames) {
  EXPECT_THAT(InvalidArgumentText([] { MathModeFromName("TF32"); }),
              testing::HasSubstr("math \"TF32\": expected full or tf32"));
}

}  // namespace
}  // namespace skiff
