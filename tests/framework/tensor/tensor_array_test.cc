#include "framework/tensor/tensor_array.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/harness/error_text.h"

namespace skiff {
namespace {

Tensor Row(const std::vector<float>& values) {
  return Tensor::FromValues<float>({1, static_cast<int64_t>(values.size())}, values);
}

TEST(TensorArray, GrowsToTheLargestIndex) {
  TensorArray array;
  EXPECT_EQ(array.size(), 0);
  array.Write(2, Row({1, 2}));
  EXPECT_EQ(array.size(), 3);
  EXPECT_EQ(array.Find(0), nullptr);
  EXPECT_EQ(array.At(2).ToVector<float>(), (std::vector<float>{1, 2}));
}

TEST(TensorArray, HoldsCopies) {
  TensorArray array;
  Tensor value = Row({1});
  array.Write(0, value);
  *value.data<float>() = 5;
  EXPECT_EQ(array.At(0).Item<float>(), 1);
}

TEST(TensorArray, KeepsTheLoDOfAnElement) {
  TensorArray array;
  Tensor value({3, 2}, DType::kFloat32);
  value.set_lod({{0, 1, 3}});
  array.Write(0, value);
  EXPECT_EQ(array.At(0).lod(), value.lod());
  array.Write(0, Row({1}));
  EXPECT_TRUE(array.At(0).lod().empty());
}

TEST(TensorArray, KeepsTheMemoryOfRemovedElements) {
  TensorArray array;
  const void* first = array.Make(0, {4}, DType::kFloat32).raw_data();
  const int64_t bytes = array.bytes();
  array.Clear();
  EXPECT_EQ(array.size(), 0);
  EXPECT_EQ(array.bytes(), bytes);
  EXPECT_EQ(array.Make(0, {3}, DType::kFloat32).raw_data(), first);
}

TEST(TensorArray, LeavesACopyThatSomebodyHasMadeAlone) {
  TensorArray array;
  array.Write(0, Row({1}));
  const Tensor copy = array.At(0);
  array.Write(0, Row({2}));
  EXPECT_EQ(copy.Item<float>(), 1);
  EXPECT_EQ(array.At(0).Item<float>(), 2);
}

TEST(TensorArray, NamesAnElementThatItLacks) {
  TensorArray array;
  array.Write(1, Row({1}));
  EXPECT_EQ(ErrorText([&] { array.At(3); }), "the array has no element 3, it has 2");
  EXPECT_EQ(ErrorText([&] { array.Make(-1, {1}, DType::kFloat32); }),
            "element -1 of an array, expected an index of at least 0 and less than 16777216");
  EXPECT_EQ(InvalidArgumentText([&] { array.Make(int64_t{1} << 40, {1}, DType::kFloat32); }),
            "element 1099511627776 of an array, expected an index of at least 0 and less than "
            "16777216");
}

TEST(TensorArray, FreesMemoryOfTheCpuThatAnElementHasOutgrown) {
  TensorArray array;
  const std::weak_ptr<Buffer> outgrown = array.Make(0, {2}, DType::kFloat32).buffer();
  array.Make(0, {8}, DType::kFloat32);
  EXPECT_FALSE(array.HasOutgrown());
  EXPECT_TRUE(outgrown.expired());
}

}  // namespace
}  // namespace skiff
