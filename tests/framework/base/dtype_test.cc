#include "framework/base/dtype.h"

#include <gtest/gtest.h>

#include <type_traits>
#include <vector>

namespace skiff {
namespace {

const std::vector<DType> kAll = {DType::kBool,    DType::kInt16,   DType::kInt32,   DType::kInt64,
                                 DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kUint8,
                                 DType::kInt8,    DType::kBFloat16};

TEST(DType, NamesReadBack) {
  for (DType dtype : kAll) EXPECT_EQ(DTypeFromName(DTypeName(dtype)), dtype);
  EXPECT_EQ(DTypeName(DType::kFloat32), "float32");
}

TEST(DType, AttributeValuesReadBack) {
  for (DType dtype : kAll) {
    const auto value = static_cast<int32_t>(dtype);
    EXPECT_TRUE(IsDType(value));
    EXPECT_EQ(DTypeFromAttribute(value), dtype);
  }
}

TEST(DType, RefusesWhatIsNone) {
  // The neighbours of the valid values: a kind of variable, a size, a complex number.
  for (int32_t value : {-1, 7, 17, 19, 23, 1000}) {
    EXPECT_FALSE(IsDType(value)) << value;
    EXPECT_THROW(DTypeFromAttribute(value), Error) << value;
  }
  EXPECT_THROW(DTypeFromName("float"), Error);
  EXPECT_THROW(DTypeFromName(""), Error);
  EXPECT_THROW(DTypeName(static_cast<DType>(7)), Error);
}

TEST(DType, SizesAreThoseOfTheElements) {
  EXPECT_EQ(SizeOf(DType::kBool), 1);
  EXPECT_EQ(SizeOf(DType::kInt8), 1);
  EXPECT_EQ(SizeOf(DType::kUint8), 1);
  EXPECT_EQ(SizeOf(DType::kInt16), 2);
  EXPECT_EQ(SizeOf(DType::kFloat16), 2);
  EXPECT_EQ(SizeOf(DType::kBFloat16), 2);
  EXPECT_EQ(SizeOf(DType::kInt32), 4);
  EXPECT_EQ(SizeOf(DType::kFloat32), 4);
  EXPECT_EQ(SizeOf(DType::kInt64), 8);
  EXPECT_EQ(SizeOf(DType::kFloat64), 8);
}

TEST(DType, FloatsAreTheFourFloatingPointTypes) {
  int floats = 0;
  for (DType dtype : kAll) floats += IsFloat(dtype) ? 1 : 0;
  EXPECT_EQ(floats, 4);
  EXPECT_TRUE(IsFloat(DType::kBFloat16));
  EXPECT_FALSE(IsFloat(DType::kInt64));
}

TEST(VisitDType, CallsWithTheTypeOfTheDType) {
  bool is_double = false;
  VisitDType<float, double>(DType::kFloat64, "scale", [&is_double](auto zero) {
    is_double = std::is_same_v<decltype(zero), double>;
  });
  EXPECT_TRUE(is_double);
}

TEST(VisitDType, NamesCallerAndDTypeItDoesNotSupport) {
  try {
    VisitDType<float, double>(DType::kInt32, "scale", [](auto) {});
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "scale: dtype int32 is not supported");
  }
}

}  // namespace
}  // namespace skiff
