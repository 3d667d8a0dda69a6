#include "framework/builder/warning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "framework/base/error.h"
#include "tests/framework/builder/warnings.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;

TEST(Warn, CallsTheSinkThatIsSet) {
  const Warnings outer;
  {
    const Warnings inner;
    Warn("a");
    EXPECT_THAT(inner.texts, ElementsAre("a"));
  }
  Warn("b");
  EXPECT_THAT(outer.texts, ElementsAre("b"));
  const WarningSink previous = SetWarningSink(nullptr);
  Warn("nobody hears this");
  SetWarningSink([](const std::string& text) { Throw(ErrorCode::kInvalidArgument, text); });
  EXPECT_THROW(Warn("c"), Error);
  SetWarningSink(previous);
}

// As Python's does, which waits for the interpreter while the thread that has it may warn.
TEST(Warn, ASinkMayWaitForAThreadThatWarns) {
  std::vector<std::string> texts;
  const WarningSink previous = SetWarningSink([&](const std::string& text) {
    if (text == "first") std::thread([] { Warn("second"); }).join();
    texts.push_back(text);
  });
  Warn("first");
  SetWarningSink(previous);
  EXPECT_THAT(texts, ElementsAre("second", "first"));
}

}  // namespace
}  // namespace skiff
