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

}  // namespace skiff
