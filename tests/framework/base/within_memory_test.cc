#include "framework/base/within_memory.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>
#include <vector>

namespace skiff {
namespace {

template <typename Body>
ErrorCode CodeOf(const Body& body) {
  try {
    WithinMemory(body);
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "no Error";
  return ErrorCode::kIo;
}

TEST(WithinMemory, ReturnsWhatTheBodyReturns) {
  std::string text = "text";
  std::string& same = WithinMemory([&]() -> std::string& { return text; });
  EXPECT_EQ(&same, &text);
  EXPECT_EQ(WithinMemory([] { return 3; }), 3);
}

TEST(WithinMemory, ATableThatMemoryDoesNotHoldIsAnError) {
  EXPECT_EQ(CodeOf([] { throw std::bad_alloc(); }), ErrorCode::kResourceExhausted);
  EXPECT_EQ(CodeOf([] { std::vector<double>().reserve(static_cast<size_t>(-1)); }),
            ErrorCode::kResourceExhausted);
}

TEST(WithinMemory, AnErrorStaysWhatItIs) {
  EXPECT_EQ(CodeOf([] { Throw(ErrorCode::kNotFound, "elsewhere"); }), ErrorCode::kNotFound);
  EXPECT_THROW(WithinMemory([] { throw std::logic_error("a mistake"); }), std::logic_error);
}

}  // namespace
}  // namespace skiff
