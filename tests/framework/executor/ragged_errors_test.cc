// Mistakes with ragged data: each is an Error that says where, what was found and what was
// expected. Runs after it compute what they would have computed without it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/builder/data.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/sequence.h"
#include "framework/builder/tensor_layers.h"
#include "framework/executor/executor.h"
#include "framework/tensor/ragged.h"
#include "framework/training/sequence_reader.h"
#include "tests/harness/error_text.h"
#include "tests/harness/ragged_feeds.h"

namespace skiff {
namespace {

using harness::RaggedRows;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor Ones(const Shape& shape) {
  Tensor ones(shape, DType::kFloat32);
  std::ranges::fill(ones.values<float>(), 1.0f);
  return ones;
}

TEST(RaggedErrorsOfOffsets, NameTheLevelAndThePlace) {
  const auto message = [](LoD lod) {
    Tensor tensor({5, 2}, DType::kFloat32);
    return InvalidArgumentText([&] { tensor.set_lod(std::move(lod)); });
  };
  EXPECT_EQ(message({{0, 4, 3, 5}}), "LoD level 0: offset 2 is 3 after 4: expected no less");
  EXPECT_EQ(message({{0, 2}, {0, 4, 3, 5}}), "LoD level 0 ends at 2: expected 3 (sequences)");
  EXPECT_EQ(message({{0, 3}, {0, 4, 3, 5}}),
            "LoD level 1: offset 2 is 3 after 4: expected no less");
  EXPECT_EQ(message({{0, 2, 4}}), "LoD level 0 ends at 4: expected 5 (rows)");
  EXPECT_EQ(message({{0, 2, 6}}), "LoD level 0 ends at 6: expected 5 (rows)");
  EXPECT_EQ(message({{1, 5}}),
            "LoD level 0: expected at least 2 offsets, the first 0; found [1, 5]");
}

class RaggedErrors : public ::testing::Test {
 protected:
  // Returns the message of a run with these feeds.
  std::string Message(CompiledProgram* program, const FeedList& feeds, const Variable& fetch) {
    return InvalidArgumentText([&] { program->Run(feeds, {fetch.name()}); });
  }

  Program main_, startup_;
  ProgramGuard guard_{&main_, &startup_};
  Executor executor_;
};

TEST_F(RaggedErrors, OfLevelsNameTheFeed) {
  const Variable x = layers::Data("x", {-1, 2}, DType::kFloat32, {.lod_level = 1});
  const Variable dense = layers::Data("dense", {-1, 2}, DType::kFloat32);
  const Variable sum = layers::Mean(layers::SequencePool(x, "SUM"));
  const Variable other = layers::Mean(dense);
  CompiledProgram program = executor_.Compile(main_);
  const Tensor plain = Ones({3, 2});
  const auto message = [&](const Tensor& fed_x, const Tensor& fed_dense) {
    return InvalidArgumentText([&] {
      program.Run({{"x", fed_x}, {"dense", fed_dense}}, {sum.name(), other.name()});
    });
  };
  const Tensor ragged = RaggedRows({{1, 2}}, 2);
  EXPECT_THAT(message(plain, plain), HasSubstr("feed \"x\": LoD of 0 levels given, 1 expected"));
  EXPECT_THAT(message(RaggedRows({{2}, {1, 2}}, 2), plain),
              HasSubstr("feed \"x\": LoD of 2 levels given, 1 expected"));
  EXPECT_THAT(message(ragged, ragged),
              HasSubstr("feed \"dense\": LoD of 1 levels given, 0 expected"));
  EXPECT_EQ(program.Run({{"x", ragged}, {"dense", plain}}, {sum.name()})[0].Item<float>(), 1.5f);
}

TEST_F(RaggedErrors, OfLevelsNameTheOpThatNeedsThem) {
  const Variable dense = layers::Data("dense", {-1, 2}, DType::kFloat32);
  const Variable nested = layers::Data("nested", {-1, 2}, DType::kFloat32, {.lod_level = 2});
  EXPECT_THAT(InvalidArgumentText([&] { layers::SequencePool(dense, "SUM"); }),
              HasSubstr("sequence_pool: input \"X\" has 0 LoD levels, expected at least 1"));
  EXPECT_THAT(InvalidArgumentText([&] { layers::SequenceConv(dense, {.filters = 2}); }),
              HasSubstr("sequence_conv: input \"X\" has 0 LoD levels, expected at least 1"));
  EXPECT_THAT(InvalidArgumentText([&] { layers::SequenceReshape(nested, 1); }),
              HasSubstr("sequence_reshape: input \"X\" has 2 LoD levels, expected 1"));
}

// The initial states must be one for each sequence.
TEST_F(RaggedErrors, OfInputsThatDoNotFitTogetherNameTheOpAndBothCounts) {
  const Variable x = layers::Data("x", {-1, 6}, DType::kFloat32, {.lod_level = 1});
  const Variable initial = layers::Data("initial", {-1, 2}, DType::kFloat32);
  const Variable states = layers::DynamicGru(x, {.size = 2, .initial = initial});
  executor_.Run(startup_);
  CompiledProgram program = executor_.Compile(main_);
  const auto feeds = [](int64_t initial_rows) {
    return FeedList{{"x", RaggedRows({{1, 3}}, 6)}, {"initial", Ones({initial_rows, 2})}};
  };
  const Tensor before = program.Run(feeds(2), {states.name()})[0];
  for (int64_t wrong : {1, 3}) {
    EXPECT_THAT(
        Message(&program, feeds(wrong), states),
        AllOf(HasSubstr("gru: H0 is float32 "), HasSubstr(StrCat("[", wrong, ", 2], expected ")),
              HasSubstr("[2, 2]"), HasSubstr("gru (block 0, op #")));
  }
  EXPECT_EQ(program.Run(feeds(2), {states.name()})[0].ToVector<float>(), before.ToVector<float>());
}

TEST_F(RaggedErrors, OfLabelsForOtherSequencesNameTheOpAndBothCounts) {
  const Variable x = layers::Data("x", {-1, 2}, DType::kFloat32, {.lod_level = 1});
  const Variable label = layers::Data("label", {-1, 1}, DType::kInt64);
  const Variable loss =
      layers::Mean(layers::SoftmaxWithCrossEntropy(layers::SequencePool(x, "MAX"), label));
  CompiledProgram program = executor_.Compile(main_);
  const auto feeds = [](const std::vector<int64_t>& labels) {
    return FeedList{
        {"x", RaggedRows({{1, 3}}, 2)},
        {"label", Tensor::FromValues<int64_t>({static_cast<int64_t>(labels.size()), 1}, labels)}};
  };
  EXPECT_THAT(Message(&program, feeds({0, 1, 1}), loss),
              HasSubstr("Label is of shape [3, 1], expected [2, 1]"));
  program.Run(feeds({0, 1}), {loss.name()});
}

// A plan exists when the LoD comes that the op refuses.
TEST_F(RaggedErrors, OfASequenceThatAnOpCannotTakeNameItAndLeaveThePlan) {
  const Variable x = layers::Data("x", {-1, 2}, DType::kFloat32, {.lod_level = 1});
  const Variable wide = layers::SequenceReshape(x, 4);
  CompiledProgram program = executor_.Compile(main_);
  const FeedList good = {{"x", RaggedRows({{2, 4}}, 2)}};
  EXPECT_EQ(program.Run(good, {wide.name()})[0].lod(), (LoD{{0, 1, 3}}));
  EXPECT_THAT(Message(&program, {{"x", RaggedRows({{3, 3}}, 2)}}, wide),
              HasSubstr("sequence_reshape: sequence 0 ends after element 6, expected a multiple of "
                        "new_dim = 4"));
  EXPECT_EQ(program.Run(good, {wide.name()})[0].lod(), (LoD{{0, 1, 3}}));
  EXPECT_THAT(Message(&program, {{"x", RaggedRows({{2, 1}}, 2)}}, wide),
              HasSubstr("sequence_reshape: X has 6 elements, expected a multiple of new_dim = 4"));
  BoundProgram bound = program.Bind(good, {wide.name()});
  bound.Step();
  EXPECT_EQ(bound.fetch(0).lod(), (LoD{{0, 1, 3}}));
}

TEST_F(RaggedErrors, AreNoneForSequencesWithoutRows) {
  const Variable x = layers::Data("x", {-1, 6}, DType::kFloat32, {.lod_level = 1});
  const Variable pooled = layers::SequencePool(layers::DynamicGru(x, {.size = 2}), "MAX", -7.0f);
  executor_.Run(startup_);
  CompiledProgram program = executor_.Compile(main_);
  const Tensor found = program.Run({{"x", RaggedRows({{0, 2, 0}}, 6)}}, {pooled.name()})[0];
  const std::vector<float> values = found.ToVector<float>();
  EXPECT_THAT(std::vector<float>(values.begin(), values.begin() + 2), ElementsAre(-7, -7));
  EXPECT_GT(values[2], -7);
  EXPECT_THAT(std::vector<float>(values.begin() + 4, values.end()), ElementsAre(-7, -7));
}

TEST(RaggedErrorsOfReaders, NameTheSequenceAndTheLimit) {
  const training::LabelledSequences data{.sequences = {{1}, {1, 2, 3}}, .labels = {0, 1}};
  EXPECT_EQ(InvalidArgumentText([&] { training::SequenceReader(&data, {.most_tokens = 2}); }),
            "sequence 1 has 3 tokens: expected 1 to 2");
  const training::LabelledSequences empty{.sequences = {{1}, {}}, .labels = {0, 1}};
  EXPECT_EQ(InvalidArgumentText([&] { training::SequenceReader(&empty, {.most_tokens = 2}); }),
            "sequence 1 has 0 tokens: expected 1 to 2");
}

}  // namespace
}  // namespace skiff
