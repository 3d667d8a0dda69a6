// The message of the Error that a wrong call throws.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "framework/base/error.h"

namespace skiff {

// "no error" if it throws none; its code must be kInvalidArgument.
inline std::string InvalidArgument(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(ErrorCodeName(error.code()), ErrorCodeName(ErrorCode::kInvalidArgument));
    return error.what();
  }
  return "no error";
}

}  // namespace skiff
