#include "framework/base/error.h"

#include <gtest/gtest.h>

#include <string>

namespace skiff {
namespace {

TEST(Error, CarriesCodeAndMessage) {
  const Error error(ErrorCode::kNotFound, "no such variable");
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_STREQ(error.what(), "no such variable");
}

TEST(Error, ContextGoesInFrontAndKeepsTheCode) {
  const Error inner(ErrorCode::kOutOfRange, "axis = 3");
  const Error outer = inner.WithContext("softmax").WithContext("block 0");
  EXPECT_EQ(outer.code(), ErrorCode::kOutOfRange);
  EXPECT_STREQ(outer.what(), "block 0: softmax: axis = 3");
}

TEST(Error, ThrowConcatenatesItsArguments) {
  try {
    Throw(ErrorCode::kIo, "file ", 7, ": ", std::string("gone"));
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_STREQ(error.what(), "file 7: gone");
  }
}

TEST(Enforce, PassesAndThrowsByItsCondition) {
  EXPECT_NO_THROW(SKIFF_ENFORCE(true, kInvalidArgument, "unused"));
  EXPECT_THROW(SKIFF_ENFORCE(false, kInvalidArgument, "used"), Error);
}

TEST(Enforce, BuildsTheMessageOnFailureOnly) {
  int built = 0;
  const auto message = [&built] { return ++built; };
  SKIFF_ENFORCE(true, kInvalidArgument, message());
  EXPECT_EQ(built, 0);
  EXPECT_THROW(SKIFF_ENFORCE(false, kInvalidArgument, message()), Error);
  EXPECT_EQ(built, 1);
}

TEST(ErrorCodeName, NamesEveryCode) {
  EXPECT_EQ(ErrorCodeName(ErrorCode::kInvalidArgument), "INVALID_ARGUMENT");
  EXPECT_EQ(ErrorCodeName(ErrorCode::kNotFound), "NOT_FOUND");
  EXPECT_EQ(ErrorCodeName(ErrorCode::kAlreadyExists), "ALREADY_EXISTS");
  EXPECT_EQ(ErrorCodeName(ErrorCode::kOutOfRange), "OUT_OF_RANGE");
  EXPECT_EQ(ErrorCodeName(ErrorCode::kFailedPrecondition), "FAILED_PRECONDITION");
  EXPECT_EQ(ErrorCodeName(ErrorCode::kUnimplemented), "UNIMPLEMENTED");
  EXPECT_EQ(ErrorCodeName(ErrorCode::kResourceExhausted), "RESOURCE_EXHAUSTED");
  EXPECT_EQ(ErrorCodeName(ErrorCode::kDataLoss), "DATA_LOSS");
  EXPECT_EQ(ErrorCodeName(ErrorCode::kIo), "IO");
}

}  // namespace
}  // namespace skiff
