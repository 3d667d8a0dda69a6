#include "models/ernie/ernie_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "tests/harness/damage_bytes.h"
#include "tests/harness/error_text.h"

namespace skiff::models {
namespace {

using ::testing::HasSubstr;

ErnieOptions Valid() {
  ErnieOptions options = ErniePreset("tiny");
  options.vocabulary = 100;
  return options;
}

TEST(ErnieOptions, PresetsHaveThePublishedSizes) {
  const ErnieOptions base = ErniePreset("base");
  EXPECT_EQ(base.layers, 12);
  EXPECT_EQ(base.hidden, 768);
  EXPECT_EQ(base.heads, 12);
  EXPECT_EQ(base.feed_forward, 3072);
  EXPECT_EQ(ErniePreset("xbase").layers, 20);
  EXPECT_EQ(ErniePreset("xbase").hidden, 1024);
}

TEST(ErnieOptions, AnUnknownPresetIsAnErrorThatListsThem) {
  EXPECT_THAT(InvalidArgumentText([] { ErniePreset("huge"); }),
              HasSubstr("preset \"huge\": expected one of tiny, mini, small, medium, base, xbase"));
}

TEST(ErnieOptions, JsonGivesThemBack) {
  ErnieOptions options = Valid();
  options.act = "relu";
  options.dropout = 0.25f;
  options.tasks = 3;
  options.layer_norm_eps = 1e-12f;
  EXPECT_EQ(ErnieOptionsFromJson(ErnieOptionsToJson(options)), options);
}

TEST(ErnieOptions, JsonOverridesWhatItHas) {
  const ErnieOptions read =
      ErnieOptionsFromJson(R"({"hidden_size": 64, "model_type": "ernie"})", Valid());
  EXPECT_EQ(read.hidden, 64);
  EXPECT_EQ(read.layers, Valid().layers);
}

TEST(ErnieOptions, JsonOfAnotherKindIsAnError) {
  const auto error = [](const char* json) {
    return InvalidArgumentText([&] { ErnieOptionsFromJson(json); });
  };
  EXPECT_EQ(error("{"), "configuration: byte 1: expected JSON");
  EXPECT_THAT(error("[1]"), HasSubstr("found [1]"));
  EXPECT_EQ(error((R"({"hidden_size": )" + std::string(1'000'000, '[')).c_str()),
            "configuration: JSON nested deeper than 32 levels");
  // As a signed number of 64 bits it would be kDecidedByData.
  EXPECT_THAT(error(R"({"vocab_size": 9223372036854775808})"),
              HasSubstr("expected an integer, found 9223372036854775808"));
  EXPECT_THAT(error(R"({"hidden_size": "64"})"),
              HasSubstr("key \"hidden_size\": expected an integer, found \"64\""));
  EXPECT_THAT(error(R"({"hidden_size": 64.5})"), HasSubstr("expected an integer, found 64.5"));
  EXPECT_THAT(error(R"({"hidden_dropout_prob": "no"})"), HasSubstr("expected a number"));
  EXPECT_THAT(error(R"({"hidden_act": 1})"), HasSubstr("expected a string"));
}

TEST(ErnieOptions, JsonSurvivesMutations) {
  const std::string intact = ErnieOptionsToJson(Valid());
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    const std::string text = DamageBytes(intact, &random);
    try {
      CheckErnieOptions(ErnieOptionsFromJson(text));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << text;
    }
  }
}

TEST(ErnieOptions, EachKeyHasItsValue) {
  const std::map<std::string, std::string> values = ErnieOptionsByKey(Valid());
  EXPECT_EQ(values.size(), 13u);
  EXPECT_EQ(values.at("hidden_size"), "128");
  EXPECT_EQ(values.at("hidden_act"), "\"gelu\"");
}

TEST(ErnieOptions, EarlierVersionsComputedWithTheDefaults) {
  const std::map<std::string, std::string> values = ErnieOptionsByKey(ErnieOptions());
  for (const auto& [key, value] : EarlierErnieOptions()) EXPECT_EQ(values.at(key), value);
}

TEST(ErnieOptions, TheDataDecideWhatNothingElseDoes) {
  ErnieOptions options = Valid();
  options.vocabulary = options.sentences = options.tasks = kDecidedByData;
  const ErnieOptions sized =
      WithSizesOfData(options, {.vocabulary = 100, .sentences = 3, .tasks = 2});
  EXPECT_EQ(sized.vocabulary, 100);
  EXPECT_EQ(sized.sentences, 3);
  EXPECT_EQ(sized.tasks, 2);
  EXPECT_EQ(WithSizesOfData(options, {.vocabulary = 100}).sentences, 2) << "for pairs later";
  ErnieOptions larger = Valid();
  larger.tasks = 5;
  EXPECT_EQ(WithSizesOfData(larger, {.vocabulary = 100, .tasks = 2}), larger);
}

TEST(ErnieOptions, SizesThatTheDataContradictAreErrors) {
  const auto error = [](const ErnieDataSizes& data) {
    return InvalidArgumentText([&] { WithSizesOfData(Valid(), data); });
  };
  EXPECT_EQ(error({.vocabulary = 90}),
            "ERNIE: vocab_size = 100: expected the 90 tokens of the vocabulary");
  EXPECT_EQ(error({.vocabulary = 100, .sentences = 3}),
            "ERNIE: type_vocab_size = 2, expected at least 3");
  EXPECT_EQ(error({.vocabulary = 100, .tasks = 2}),
            "ERNIE: task_type_vocab_size = 0, expected at least 2");
}

TEST(ErnieOptions, OutOfRangeIsAnErrorThatNamesTheOption) {
  const auto error = [](const auto& change) {
    ErnieOptions options = Valid();
    change(&options);
    return InvalidArgumentText([&] { CheckErnieOptions(options); });
  };
  EXPECT_THAT(error([](auto* o) { o->vocabulary = 0; }), HasSubstr("vocab_size = 0"));
  EXPECT_THAT(error([](auto* o) { o->layers = 0; }), HasSubstr("num_hidden_layers = 0"));
  EXPECT_THAT(error([](auto* o) { o->layers = 1'000'000'000'000; }),
              HasSubstr("num_hidden_layers = 1000000000000, expected at most 1000"));
  EXPECT_THAT(error([](auto* o) { o->positions = int64_t{1} << 40; }),
              HasSubstr("max_position_embeddings = 1099511627776, expected at most 2147483647"));
  EXPECT_THAT(error([](auto* o) { o->heads = 3; }),
              HasSubstr("hidden_size = 128: expected a multiple of the 3 heads"));
  EXPECT_THAT(error([](auto* o) { o->act = "selu"; }),
              HasSubstr("expected gelu, gelu_new or relu"));
  EXPECT_THAT(error([](auto* o) { o->dropout = 1; }), HasSubstr("hidden_dropout_prob = 1"));
  EXPECT_THAT(error([](auto* o) { o->initializer_range = 0; }), HasSubstr("initializer_range"));
  EXPECT_THAT(error([](auto* o) { o->initializer_range = INFINITY; }),
              HasSubstr("initializer_range = inf"));
  EXPECT_THAT(error([](auto* o) { o->layer_norm_eps = 0; }), HasSubstr("layer_norm_eps = 0"));
  EXPECT_THAT(error([](auto* o) { o->layer_norm_eps = 0.01f; }),
              HasSubstr("layer_norm_eps = 0.01: expected a number in (0, 0.001]"));
  EXPECT_THAT(error([](auto* o) { o->dtype = DType::kInt64; }),
              HasSubstr("dtype int64: expected float32 or float64"));
  CheckErnieOptions(Valid());
}

}  // namespace
}  // namespace skiff::models
