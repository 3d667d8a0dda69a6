#include "framework/tuning/kernel_choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/base/error.h"
#include "framework/tuning/machine_difference.h"

namespace skiff {
namespace {

KernelChoices Example() {
  return {.machine = {{"cpu", "A: b"}, {"lib", "1.2"}},
          .by_key = {{"conv {x = 1} X=float32 [2]",
                      {.kernel = "fast", .seconds = {{"fast", 1.0 / 3}, {"slow", 2e-9}}}},
                     {"pool", {.kernel = "only", .seconds = {{"only", 0}}}}}};
}

constexpr const char* kText =
    "skiff kernel choices, version 1\n"
    "cpu: A: b\n"
    "lib: 1.2\n"
    "\n"
    "fast\tfast=0.3333333333333333, slow=2e-09\tconv {x = 1} X=float32 [2]\n"
    "only\tonly=0\tpool\n";

TEST(KernelChoices, ArePrintedForPeopleAndReadBack) {
  EXPECT_EQ(PrintKernelChoices(Example()), kText);
  EXPECT_EQ(ParseKernelChoices(kText, "f"), Example());
  EXPECT_EQ(ParseKernelChoices(PrintKernelChoices({}), "f"), KernelChoices());
}

// The text with its line `number`, counted from 1, put in place of.
std::string WithLine(int number, const std::string& line) {
  std::string text = kText;
  size_t begin = 0;
  for (int i = 1; i < number; ++i) begin = text.find('\n', begin) + 1;
  return text.replace(begin, text.find('\n', begin) - begin, line);
}

TEST(KernelChoices, OfADamagedFileNameTheLine) {
  const auto expect = [](const std::string& text, const std::string& message,
                         ErrorCode code = ErrorCode::kDataLoss) {
    try {
      ParseKernelChoices(text, "dir/file");
      ADD_FAILURE() << "no error: " << message;
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), "dir/file, line " + message);
      EXPECT_EQ(error.code(), code);
    }
  };
  expect("", "1: expected another line");
  expect(WithLine(1, "{}"), "1: expected \"skiff kernel choices, version 1\"");
  expect(WithLine(1, "skiff kernel choices, version 2"), "1: version 2, expected 1",
         ErrorCode::kUnimplemented);
  expect(WithLine(3, "lib=1.2"), "3: expected \"name: value\"");
  expect(WithLine(5, "fast fast=1 conv"), "5: expected kernel, times and key with tabs between");
  expect(WithLine(5, "\tfast=1\tconv"), "5: expected kernel, times and key with tabs between");
  expect(WithLine(5, "fast\tfast\tconv"), "5: expected \"kernel=seconds\"");
  expect(WithLine(5, "fast\tfast=\tconv"), "5: \"\" is no number of seconds, expected 0 to 3600");
  expect(WithLine(5, "fast\tfast=1s\tconv"),
         "5: \"1s\" is no number of seconds, expected 0 to 3600");
  expect(WithLine(5, "fast\tfast=-1\tconv"),
         "5: \"-1\" is no number of seconds, expected 0 to 3600");
  expect(WithLine(5, "fast\tfast=3601\tconv"),
         "5: \"3601\" is no number of seconds, expected 0 to 3600");
  expect(WithLine(5, "fast\tfast=nan\tconv"),
         "5: \"nan\" is no number of seconds, expected 0 to 3600");
  expect(WithLine(5, "fast\tslow=1\tconv"), "5: no time of fast");
  expect(WithLine(5, "fast\tfast=1\tpool"), "6: the key is there twice");
  const std::string whole = kText;
  expect(whole.substr(0, whole.size() - 1), "6: expected another line");
}

TEST(KernelChoices, TellWhereTheirMachineDiffers) {
  EXPECT_EQ(MachineDifference(Example().machine, Example()), "");
  EXPECT_EQ(MachineDifference({{"cpu", "C"}, {"other", "3"}}, Example()),
            "cpu is C here, A: b there, lib is absent here, 1.2 there, other is 3 here, absent "
            "there");
}

}  // namespace
}  // namespace skiff
