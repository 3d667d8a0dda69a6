#include "models/seq2seq/network_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/harness/damage_bytes.h"
#include "tests/harness/error_text.h"

namespace skiff::models {
namespace {

using ::testing::HasSubstr;

TEST(NetworkFile, HoldsEveryOption) {
  const Seq2SeqOptions options = {.source_tokens = 11,
                                  .target_tokens = 12,
                                  .embedding = 13,
                                  .hidden = 14,
                                  .cell = "lstm",
                                  .layers = 2,
                                  .bidirectional = false,
                                  .attention = "luong",
                                  .input_feeding = true,
                                  .tied_embeddings = true,
                                  .dropout = 0.5f,
                                  .label_smoothing = 0.25f,
                                  .decoder = "dynamic_rnn"};
  const std::string text = NetworkText({options, "5e1f"});
  EXPECT_EQ(text, R"({
  "source_tokens": 11,
  "target_tokens": 12,
  "embedding": 13,
  "hidden": 14,
  "cell": "lstm",
  "layers": 2,
  "bidirectional": false,
  "attention": "luong",
  "input_feeding": true,
  "tied_embeddings": true,
  "dropout": 0.5,
  "label_smoothing": 0.25,
  "decoder": "dynamic_rnn",
  "vocabularies": "5e1f"
}
)");
  EXPECT_EQ(NetworkText(ParseNetwork(text, "network.json")), text);
}

TEST(NetworkFile, GivesBackTheNumbersToTheLastBit) {
  const SavedNetwork network = {.options = {.hidden = int64_t{1} << 40, .dropout = 0.1f}};
  const Seq2SeqOptions found = ParseNetwork(NetworkText(network), "network.json").options;
  EXPECT_EQ(found.hidden, int64_t{1} << 40);
  EXPECT_EQ(found.dropout, 0.1f);
}

// So a file from before an option was there can be read.
TEST(NetworkFile, MissingOptionsHaveTheirDefaults) {
  const SavedNetwork found = ParseNetwork(R"({"hidden": 7, "dropout": 0})", "network.json");
  EXPECT_EQ(found.options.hidden, 7);
  EXPECT_EQ(NetworkText(found), NetworkText({.options = {.hidden = 7}}));
}

TEST(NetworkFile, RefusesWhatIsNoNetwork) {
  const auto refused = [](const std::string& text) {
    const std::string error = InvalidArgumentText([&] { ParseNetwork(text, "some.json"); });
    EXPECT_THAT(error, HasSubstr("some.json: "));
    return error;
  };
  for (const std::string text : {"", "{", R"({"hidden": 7} x)"}) {
    EXPECT_THAT(refused(text), HasSubstr("expected JSON"));
  }
  EXPECT_THAT(refused("[1]"), HasSubstr("expected a JSON object, found [1]"));
  EXPECT_THAT(refused("7"), HasSubstr("expected a JSON object, found 7"));
  EXPECT_THAT(refused(R"({"hidden": )" + std::string(1'000'000, '[')),
              HasSubstr("JSON nested deeper than 32 levels"));
  EXPECT_THAT(refused(R"({"hidden": 18446744073709551615})"),
              HasSubstr("\"hidden\" is 18446744073709551615, expected one like 128"));
  EXPECT_THAT(refused(R"({"hidden": "7"})"),
              HasSubstr(R"("hidden" is "7", expected one like 128)"));
  EXPECT_THAT(refused(R"({"hidden": 7.5})"), HasSubstr("\"hidden\" is 7.5, expected one like 128"));
  EXPECT_THAT(refused(R"({"hidden": null})"), HasSubstr("\"hidden\" is null"));
  EXPECT_THAT(refused(R"({"cell": true})"),
              HasSubstr(R"("cell" is true, expected one like "gru")"));
  EXPECT_THAT(refused(R"({"bidirectional": 1})"),
              HasSubstr("\"bidirectional\" is 1, expected one like true"));
  EXPECT_THAT(refused(R"({"hidden": 7, "width": 3})"),
              HasSubstr("\"width\" is no option of the network"));
}

TEST(NetworkFile, SurvivesMutations) {
  const std::string intact = NetworkText({});
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    const std::string text = DamageBytes(intact, &random);
    try {
      NetworkText(ParseNetwork(text, "network.json"));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << text;
    }
  }
}

}  // namespace
}  // namespace skiff::models
