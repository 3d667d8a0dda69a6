#include "framework/io/weights_hash.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "tests/harness/temp_directory.h"

namespace skiff {
namespace {

TEST(WeightsHash, IsTheDocumentedOne) {
  Scope scope;
  EXPECT_EQ(WeightsHash(scope, {}), "cbf29ce484222325");
  scope.Set("w", Tensor::FromValues<float>({1}, {1.0f}));
  // Computed apart, over the 33 bytes that the header lists.
  uint64_t state = 0xcbf29ce484222325;
  for (int byte : {1, 0, 0, 0, 0, 0, 0, 0, 0x77, 5, 0, 0, 0, 1, 0,    0,   0,
                   0, 0, 0, 0, 1, 0, 0, 0, 0,    0, 0, 0, 0, 0, 0x80, 0x3f}) {
    state = (state ^ static_cast<uint64_t>(byte)) * 0x100000001b3;
  }
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(state));
  EXPECT_EQ(WeightsHash(scope, {"w"}), text);
}

TEST(WeightsHash, DependsOnNameDTypeDimsAndBytes) {
  Scope scope;
  scope.Set("a", Tensor::FromValues<float>({2}, {0, 0}));
  scope.Set("b", Tensor::FromValues<float>({2}, {0, 0}));
  scope.Set("dims", Tensor::FromValues<float>({1, 2}, {0, 0}));
  const std::string hash = WeightsHash(scope, {"a"});
  EXPECT_NE(hash, WeightsHash(scope, {"b"}));
  scope.Set("a", Tensor::FromValues<int32_t>({2}, {0, 0}));
  EXPECT_NE(hash, WeightsHash(scope, {"a"}));
  scope.Set("a", Tensor::FromValues<float>({1, 2}, {0, 0}));
  EXPECT_NE(hash, WeightsHash(scope, {"a"}));
  scope.Set("a", Tensor::FromValues<float>({2}, {0, -0.0f}));
  EXPECT_NE(hash, WeightsHash(scope, {"a"}));
  scope.Set("a", Tensor::FromValues<float>({2}, {0, 0}));
  EXPECT_EQ(hash, WeightsHash(scope, {"a"}));
}

TEST(WeightsHash, DoesNotDependOnTheOrderOfTheNames) {
  Scope scope;
  scope.Set("a", Tensor::FromValues<float>({2}, {1, 2}));
  scope.Set("b", Tensor::FromValues<float>({0}, {}));
  EXPECT_EQ(WeightsHash(scope, {"a", "b"}), WeightsHash(scope, {"b", "a"}));
}

TEST(WeightsHash, RefusesNamesThatAreNotThereOrTwice) {
  Scope scope;
  EXPECT_EQ(ErrorOf([&] { WeightsHash(scope, {"a"}); }).code(), ErrorCode::kNotFound);
  scope.Set("a", Tensor::FromValues<float>({1}, {1}));
  EXPECT_EQ(ErrorOf([&] { WeightsHash(scope, {"a", "a"}); }).code(), ErrorCode::kAlreadyExists);
}

}  // namespace
}  // namespace skiff
