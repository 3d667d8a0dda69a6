#include "framework/ir/attribute.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "framework/base/error.h"

namespace skiff {
namespace {

template <typename T>
void ExpectHeld(const T& value, AttrType type) {
  const Attribute attribute = value;
  EXPECT_EQ(TypeOf(attribute), type);
  EXPECT_EQ(AttrTypeOf<T>(), type);
  ASSERT_NE(std::get_if<T>(&attribute), nullptr);
  EXPECT_EQ(std::get<T>(attribute), value);
}

TEST(Attribute, HoldsAValueOfEachType) {
  ExpectHeld(int32_t{-1}, AttrType::kInt);
  ExpectHeld(0.5f, AttrType::kFloat);
  ExpectHeld(std::string("text"), AttrType::kString);
  ExpectHeld(std::vector<int32_t>{1, 2}, AttrType::kInts);
  ExpectHeld(std::vector<float>{0.5f}, AttrType::kFloats);
  ExpectHeld(std::vector<std::string>{"a", "b"}, AttrType::kStrings);
  ExpectHeld(true, AttrType::kBool);
  ExpectHeld(std::vector<bool>{true, false}, AttrType::kBools);
  ExpectHeld(BlockIndex{3}, AttrType::kBlock);
  ExpectHeld(int64_t{1} << 40, AttrType::kLong);
  ExpectHeld(std::vector<BlockIndex>{{1}, {2}}, AttrType::kBlocks);
  ExpectHeld(std::vector<int64_t>{int64_t{1} << 40}, AttrType::kLongs);
  ExpectHeld(std::vector<double>{0.1}, AttrType::kDoubles);
  ExpectHeld(VarName{"x"}, AttrType::kVar);
  ExpectHeld(std::vector<VarName>{{"x"}}, AttrType::kVars);
  ExpectHeld(0.1, AttrType::kDouble);
}

TEST(Attribute, TakesALiteralForAString) {
  EXPECT_EQ(std::get<std::string>(Attribute("text")), "text");
}

TEST(Attribute, RefusesANullPointer) {
  const char* null = nullptr;
  try {
    const Attribute attribute = null;
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "the value of an attribute is a null pointer, expected a string");
  }
}

// Pointers, functions and lambdas would otherwise be a bool; an unsigned integer has no type here.
TEST(Attribute, IsMadeOfNothingElse) {
  const auto lambda = [](int) { return true; };
  EXPECT_FALSE((std::is_constructible_v<Attribute, const int*>));
  EXPECT_FALSE((std::is_constructible_v<Attribute, std::nullptr_t>));
  EXPECT_FALSE((std::is_constructible_v<Attribute, void (*)()>));
  EXPECT_FALSE((std::is_constructible_v<Attribute, decltype(lambda)>));
  EXPECT_FALSE((std::is_constructible_v<Attribute, int BlockIndex::*>));
  EXPECT_FALSE((std::is_constructible_v<Attribute, uint32_t>));
  EXPECT_FALSE((std::is_constructible_v<Attribute, uint64_t>));
}

}  // namespace
}  // namespace skiff
