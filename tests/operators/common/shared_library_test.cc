#include "operators/common/libraries/shared_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace skiff {
namespace {

using ::testing::HasSubstr;

TEST(SharedLibrary, FindsFunctions) {
  SharedLibrary math("libm.so.6");
  double (*cosine)(double) = nullptr;
  ASSERT_TRUE(math.Find("cos", &cosine));
  EXPECT_EQ(cosine(0), 1);
  EXPECT_EQ(math.failure(), "");
}

TEST(SharedLibrary, SaysWhichFunctionIsMissing) {
  SharedLibrary math("libm.so.6");
  void (*function)() = [] {};
  EXPECT_FALSE(math.Find("hope", &function));
  EXPECT_EQ(function, nullptr);
  EXPECT_FALSE(math.Find("wish", &function));
  EXPECT_EQ(math.failure(), "libm.so.6 lacks hope");
}

TEST(SharedLibrary, SaysWhyItIsMissingItself) {
  SharedLibrary none("libhope.so.1");
  void (*function)() = nullptr;
  EXPECT_FALSE(none.Find("hope", &function));
  EXPECT_THAT(none.failure(), HasSubstr("libhope.so.1: cannot open shared object file"));
}

}  // namespace
}  // namespace skiff
