#include "models/ernie/ernie_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  EXPECT_THAT(error("{"), HasSubstr("found text that is no JSON"));
  EXPECT_THAT(error("[1]"), HasSubstr("found array"));
  EXPECT_THAT(error(R"({"hidden_size": "64"})"),
              HasSubstr("key \"hidden_size\": expected an integer, found \"64\""));
  EXPECT_THAT(error(R"({"hidden_size": 64.5})"), HasSubstr("expected an integer, found 64.5"));
  EXPECT_THAT(error(R"({"hidden_dropout_prob": "no"})"), HasSubstr("expected a number"));
  EXPECT_THAT(error(R"({"hidden_act": 1})"), HasSubstr("expected a string"));
}

TEST(ErnieOptions, OutOfRangeIsAnErrorThatNamesTheOption) {
  const auto error = [](const auto& change) {
    ErnieOptions options = Valid();
    change(&options);
    return InvalidArgumentText([&] { CheckErnieOptions(options); });
  };
  EXPECT_THAT(error([](auto* o) { o->vocabulary = 0; }), HasSubstr("vocab_size = 0"));
  EXPECT_THAT(error([](auto* o) { o->layers = 0; }), HasSubstr("num_hidden_layers = 0"));
  EXPECT_THAT(error([](auto* o) { o->heads = 3; }),
              HasSubstr("hidden_size = 128: expected a multiple of the 3 heads"));
  EXPECT_THAT(error([](auto* o) { o->act = "selu"; }), HasSubstr("expected gelu or relu"));
  EXPECT_THAT(error([](auto* o) { o->dropout = 1; }), HasSubstr("hidden_dropout_prob = 1"));
  EXPECT_THAT(error([](auto* o) { o->initializer_range = 0; }), HasSubstr("initializer_range"));
  EXPECT_THAT(error([](auto* o) { o->dtype = DType::kInt64; }),
              HasSubstr("dtype int64: expected float32 or float64"));
  CheckErnieOptions(Valid());
}

}  // namespace
}  // namespace skiff::models
