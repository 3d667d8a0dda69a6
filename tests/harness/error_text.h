// The message of the Error that a wrong call throws.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "framework/base/error.h"

namespace skiff {

// Returns the message of the Error that the call throws; fails the test if it throws none.
template <typename Call>
std::string ErrorText(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "expected an Error";
  return "";
}

// Does the same; also fails the test if the Error's code isn't `code`.
template <typename Call>
std::string ErrorText(ErrorCode code, const Call& call) {
  return ErrorText([&] {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(ErrorCodeName(error.code()), ErrorCodeName(code)) << error.what();
      throw;
    }
  });
}

// Does the same with the code kInvalidArgument.
template <typename Call>
std::string InvalidArgumentText(const Call& call) {
  return ErrorText(ErrorCode::kInvalidArgument, call);
}

}  // namespace skiff
