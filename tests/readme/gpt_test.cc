// The C++ of docs/gpt.md, unchanged, trains a GPT and writes.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/readme/gpt_example.inc"

namespace {

TEST(Gpt, WritesTheTextThatItWasTrainedOn) {
  std::string text;
  for (int i = 0; i < 8; ++i) text += "the quick brown fox jumps over the lazy dog. ";
  Writer writer;
  const float first_loss = writer.Train(text, 1);
  EXPECT_GT(first_loss, 3.5f);
  EXPECT_LT(writer.Train(text, 150), 0.2f);
  // All that the cache holds, and one letter more.
  EXPECT_EQ(writer.Write("the quick "), text.substr(0, kContext + 1));
  // Another text in the same cache.
  EXPECT_EQ(writer.Write("jumps over "), text.substr(20, kContext + 1));
}

}  // namespace
