#include "framework/tensor/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <source_location>
#include <vector>

#include "framework/base/str_cat.h"
#include "memory/places.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Tensor, DefaultHasNoData) {
  const Tensor tensor;
  EXPECT_FALSE(tensor.has_data());
  EXPECT_EQ(tensor.raw_data(), nullptr);
}

TEST(Tensor, HoldsValues) {
  const Tensor tensor = Tensor::FromValues<float>({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(tensor.dtype(), DType::kFloat32);
  EXPECT_EQ(tensor.byte_count(), 16);
  EXPECT_THAT(tensor.ToVector<float>(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Tensor::FromValues<bool>({2}, {true, false}).ToVector<bool>(),
              ElementsAre(true, false));
  EXPECT_THROW(Tensor::FromValues<float>({3}, {1, 2}), Error);
}

TEST(Tensor, IsAligned) {
  const Tensor tensor({3}, DType::kInt8);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.raw_data()) % kBufferAlignment, 0U);
}

TEST(Tensor, MayHaveNoElements) {
  const Tensor tensor({0, 5}, DType::kFloat64);
  EXPECT_TRUE(tensor.has_data());
  EXPECT_EQ(tensor.byte_count(), 0);
  EXPECT_THAT(tensor.ToVector<double>(), IsEmpty());
}

TEST(Tensor, RefusesToBeReadAsAnotherDType) {
  const Tensor tensor = Tensor::FromValues<int64_t>({1}, {7});
  EXPECT_EQ(tensor.Item<int64_t>(), 7);
  EXPECT_THROW(tensor.data<int32_t>(), Error);
  EXPECT_THROW(tensor.Item<float>(), Error);
}

TEST(Tensor, ItemNeedsExactlyOneElement) {
  EXPECT_THROW(Tensor().Item<float>(), Error);
  EXPECT_THROW(Tensor::FromValues<float>({2}, {1, 2}).Item<float>(), Error);
}

TEST(Tensor, ErrorsSayWhereTheTensorIsRead) {
  const Tensor ids = Tensor::FromValues<int64_t>({2}, {3, 4});
  Tensor written = ids;
  const auto at = [](int line) { return StrCat("tensor_test.cc:", line, ": "); };
  const int line = std::source_location::current().line() + 1;
  EXPECT_THAT(ErrorText([&] { ids.data<int32_t>(); }),
              HasSubstr(at(line) + "tensor of int64 [2] read as int32"));
  const int next = std::source_location::current().line() + 1;
  EXPECT_THAT(ErrorText([&] { written.values<float>(); }), HasSubstr(at(next) + "tensor of int64"));
  EXPECT_THAT(ErrorText([&] { ids.ToVector<float>(); }), HasSubstr(at(next + 1)));
  EXPECT_THAT(ErrorText([&] { ids.Item<int64_t>(); }),
              HasSubstr(at(next + 2) + "Item() of a tensor of shape [2]: expected one element"));
  const int last = std::source_location::current().line() + 1;
  EXPECT_THAT(ErrorText([&] {
                Tensor::FromValues<float>({3}, {1, 2});
              }),
              HasSubstr(at(last) + "2 values given for shape [3]"));
}

TEST(Tensor, CopiesShareTheBuffer) {
  Tensor a = Tensor::FromValues<float>({2}, {1, 2});
  const Tensor b = a;
  a.data<float>()[0] = 5;
  EXPECT_THAT(b.ToVector<float>(), ElementsAre(5, 2));
  const Tensor own = CopyToCpu(a);
  a.data<float>()[0] = 6;
  EXPECT_THAT(own.ToVector<float>(), ElementsAre(5, 2));
}

TEST(Tensor, ViewsABufferWhereItFits) {
  const Tensor whole = Tensor::FromValues<float>({4}, {1, 2, 3, 4});
  const Tensor view({2}, DType::kFloat32, whole.buffer(), 8);
  EXPECT_THAT(view.ToVector<float>(), ElementsAre(3, 4));
  EXPECT_THROW(Tensor({2}, DType::kFloat32, whole.buffer(), 12), Error);
  EXPECT_THROW(Tensor({2}, DType::kFloat32, whole.buffer(), -4), Error);
}

TEST(Tensor, BorrowsMemory) {
  std::vector<double> values = {1, 2, 3};
  Tensor tensor = Tensor::Borrow(values.data(), {3}, DType::kFloat64);
  tensor.data<double>()[1] = 9;
  EXPECT_THAT(values, ElementsAre(1, 9, 3));
  tensor = Tensor::Borrow(values.data(), {2}, DType::kFloat64);
  tensor.Rebind(values.data() + 1);
  EXPECT_THAT(tensor.ToVector<double>(), ElementsAre(9, 3));
}

TEST(Tensor, ReshapesAndTakesRows) {
  const Tensor tensor = Tensor::FromValues<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(tensor.Reshaped({2, 3}).shape(), (Shape{2, 3}));
  EXPECT_THROW(tensor.Reshaped({4}), Error);
  const Tensor rows = tensor.Rows(1, 3);
  EXPECT_THAT(rows.ToVector<float>(), ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(rows.Rows(1, 2).ToVector<float>(), ElementsAre(5, 6));
  EXPECT_EQ(tensor.Rows(1, 1).element_count(), 0);
  EXPECT_THROW(tensor.Rows(2, 4), Error);
  EXPECT_THROW(tensor.Rows(2, 1), Error);
  EXPECT_THROW(Tensor({}, DType::kFloat32).Rows(0, 1), Error);
}

TEST(Tensor, BlockedLayoutHasPaddingAndNoViews) {
  const Tensor tensor({2, 3, 4, 4}, DType::kFloat32, Place::Cpu(), Layout::Blocked(8));
  EXPECT_EQ(tensor.byte_count(), 2 * 8 * 16 * 4);
  EXPECT_THROW(tensor.Reshaped({96}), Error);
  EXPECT_THROW(tensor.Rows(0, 1), Error);
}

TEST(Tensor, RefusesImpossibleShapes) {
  EXPECT_THROW(Tensor({-1}, DType::kFloat32), Error);
  EXPECT_THROW(Tensor({std::numeric_limits<int64_t>::max() / 2}, DType::kFloat32), Error);
  EXPECT_THROW(Tensor({int64_t{1} << 61, 0}, DType::kFloat32), Error);
  float number = 0;
  EXPECT_THROW(Tensor::Borrow(&number, {0, int64_t{1} << 61}, DType::kFloat32), Error);
}

TEST(Tensor, CopyTensorRefusesDifferences) {
  Tensor to({2}, DType::kFloat32);
  CopyTensor(Tensor::FromValues<float>({2}, {3, 4}), &to);
  EXPECT_THAT(to.ToVector<float>(), ElementsAre(3, 4));
  EXPECT_THROW(CopyTensor(Tensor({3}, DType::kFloat32), &to), Error);
  EXPECT_THROW(CopyTensor(Tensor({2}, DType::kInt32), &to), Error);
}

TEST(LoD, IsCheckedAgainstRows) {
  Tensor tensor({5, 2}, DType::kFloat32);
  tensor.set_lod({{0, 2, 2, 5}});
  EXPECT_EQ(CopyToCpu(tensor).lod(), tensor.lod());
  tensor.set_lod({{0, 1, 3}, {0, 2, 2, 5}});
  EXPECT_THROW(tensor.set_lod({{0, 2, 4}}), Error);                // ends before the rows
  EXPECT_THROW(tensor.set_lod({{1, 5}}), Error);                   // doesn't start at 0
  EXPECT_THROW(tensor.set_lod({{0, 4, 3, 5}}), Error);             // descends
  EXPECT_THROW(tensor.set_lod({{0}}), Error);                      // no sequence
  EXPECT_THROW(tensor.set_lod({{0, 1, 2}, {0, 2, 2, 5}}), Error);  // 2 of 3 sequences
  tensor.set_lod({});
  EXPECT_THAT(tensor.lod(), IsEmpty());
}

TEST(Tensor, WithoutDataHasNoValuesAndIsNoSourceOfACopy) {
  EXPECT_TRUE(Tensor().values<float>().empty());
  EXPECT_THROW(CopyToCpu(Tensor()), Error);
}

Tensor ThreeRows() {
  Tensor rows({3, 1}, DType::kFloat32, Place::Cpu(), Layout::SelectedRows(9));
  std::ranges::copy(std::vector<float>{1, 2, 3}, rows.values<float>().begin());
  std::ranges::copy(std::vector<int64_t>{8, -1, 8}, rows.rows().begin());
  return rows;
}

TEST(Tensor, SelectedRowsHaveRowNumbers) {
  const Tensor rows = ThreeRows();
  EXPECT_TRUE(rows.is_selected_rows());
  EXPECT_EQ(rows.height(), 9);
  EXPECT_EQ(rows.byte_count(), 16 + 24);
  EXPECT_EQ(rows.element_count(), 3);
  EXPECT_THAT(rows.rows(), ElementsAre(8, -1, 8));
  EXPECT_THAT(rows.ToVector<float>(), ElementsAre(1, 2, 3));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(rows.rows().data()) % alignof(int64_t), 0U);
}

TEST(Tensor, CopiesOfSelectedRowsHaveTheirRowNumbers) {
  const Tensor rows = ThreeRows();
  const Tensor copy = CopyToCpu(rows);
  EXPECT_NE(copy.raw_data(), rows.raw_data());
  EXPECT_EQ(copy.height(), 9);
  EXPECT_THAT(copy.rows(), ElementsAre(8, -1, 8));
  Tensor other({3, 1}, DType::kFloat32, Place::Cpu(), Layout::SelectedRows(8));
  Tensor dense({3, 1}, DType::kFloat32);
  EXPECT_THROW(CopyTensor(rows, &other), Error);
  EXPECT_THROW(CopyTensor(rows, &dense), Error);
  EXPECT_THROW(CopyTensor(dense, &other), Error);
}

TEST(Tensor, SelectedRowsAreNoDenseTensor) {
  const Tensor rows = ThreeRows();
  EXPECT_THROW(rows.Reshaped({1, 3}), Error);
  EXPECT_THROW(rows.Rows(0, 1), Error);
  const Tensor dense = Tensor::FromValues<float>({2}, {1, 2});
  EXPECT_FALSE(dense.is_selected_rows());
  EXPECT_THROW(dense.rows(), Error);
  EXPECT_THROW(dense.height(), Error);
}

TEST(Tensor, AViewOfSelectedRowsNeedsRoomForTheirNumbers) {
  const auto buffer = std::make_shared<Buffer>(AllocatorOf(Place::Cpu()), 39);
  const Layout layout = Layout::SelectedRows(9);
  EXPECT_THROW(Tensor({3, 1}, DType::kFloat32, buffer, 0, layout), Error);
  EXPECT_NO_THROW(Tensor({2, 1}, DType::kFloat32, buffer, 0, layout));
}

}  // namespace
}  // namespace skiff
