#include "framework/builder/sequence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "framework/builder/data.h"
#include "framework/builder/metric_layers.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor_layers.h"
#include "framework/executor/executor.h"
#include "framework/ir/program.h"
#include "framework/tensor/tensor.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Values = std::vector<float>;
using Lengths = std::vector<int64_t>;

// A program that is fed and run in one go.
class SequenceLayers : public ::testing::Test {
 protected:
  // A feed with these numbers, [rows, width]; ragged if there are lengths.
  template <typename T>
  Variable Feed(const std::vector<T>& values, const Lengths& lengths, int64_t width = 1) {
    const std::string name = StrCat("feed", feeds_.size());
    const auto rows = static_cast<int64_t>(values.size()) / width;
    Tensor tensor = Tensor::FromValues<T>({rows, width}, values);
    if (!lengths.empty()) tensor.set_lod({OffsetsOf(lengths)});
    feeds_.emplace_back(name, tensor);
    return layers::Data(name, {-1, width}, tensor.dtype(), {.lod_level = lengths.empty() ? 0 : 1});
  }

  Tensor Run(const Variable& out) {
    Executor executor;
    executor.Run(startup_);
    return executor.Compile(main_).Run(feeds_, {out})[0];
  }

  static int32_t LevelsOf(const Variable& x) { return x.var().lod_level; }

  Program main_, startup_;
  ProgramGuard guard_{&main_, &startup_};
  FeedList feeds_;
};

TEST_F(SequenceLayers, SoftmaxIsTakenOverEachSequence) {
  const Variable x = Feed<float>({0, std::log(3.0f), 5}, {2, 1});
  const Tensor found = Run(layers::SequenceSoftmax(x));
  EXPECT_THAT(found.ToVector<float>(),
              ElementsAre(testing::FloatEq(0.25f), testing::FloatEq(0.75f), 1));
  EXPECT_EQ(found.lod(), (LoD{{0, 2, 3}}));
}

TEST_F(SequenceLayers, ReverseTurnsEachSequenceRound) {
  EXPECT_THAT(Run(layers::SequenceReverse(Feed<float>({1, 2, 3}, {2, 1}))).ToVector<float>(),
              ElementsAre(2, 1, 3));
}

TEST_F(SequenceLayers, EnumeratePutsIdsSideBySide) {
  const Variable ids = Feed<int64_t>({1, 2, 3}, {2, 1});
  const Tensor found = Run(layers::SequenceEnumerate(ids, 2, 9));
  EXPECT_THAT(found.ToVector<int64_t>(), ElementsAre(1, 2, 2, 9, 3, 9));
  EXPECT_THAT(InvalidArgumentText([&] { layers::SequenceEnumerate(ids, 1); }),
              HasSubstr("win_size = 1, expected at least 2"));
}

TEST_F(SequenceLayers, ReshapeChangesTheWidth) {
  const Tensor found = Run(layers::SequenceReshape(Feed<float>({1, 2, 3, 4, 5, 6}, {2, 1}, 2), 1));
  EXPECT_EQ(found.shape(), Shape({6, 1}));
  EXPECT_EQ(found.lod(), (LoD{{0, 4, 6}}));
}

TEST_F(SequenceLayers, ExpandRepeatsSequencesOrRows) {
  const Variable y = Feed<float>({0, 0, 0}, {2, 1});
  const Variable of_sequences = layers::SequenceExpand(Feed<float>({1, 2, 3}, {1, 2}), y);
  EXPECT_EQ(LevelsOf(of_sequences), 1);
  const Tensor sequences = Run(of_sequences);
  EXPECT_THAT(sequences.ToVector<float>(), ElementsAre(1, 1, 2, 3));
  EXPECT_EQ(sequences.lod(), (LoD{{0, 1, 2, 4}}));
  const Variable of_rows = layers::SequenceExpand(Feed<float>({1, 2}, {}), y);
  EXPECT_EQ(LevelsOf(of_rows), 0);
  EXPECT_THAT(Run(of_rows).ToVector<float>(), ElementsAre(1, 1, 2));
  EXPECT_THAT(InvalidArgumentText([&] { layers::SequenceExpand(of_rows, y, 1); }),
              HasSubstr("ref_level = 1 and Y has 1 LoD levels"));
}

TEST_F(SequenceLayers, ExpandAsGivesTheLoDOfTheOther) {
  const Variable y = Feed<float>({0, 0, 0}, {2, 1});
  const Tensor found = Run(layers::SequenceExpandAs(Feed<float>({1, 2}, {}), y));
  EXPECT_THAT(found.ToVector<float>(), ElementsAre(1, 1, 2));
  EXPECT_EQ(found.lod(), (LoD{{0, 2, 3}}));
}

TEST_F(SequenceLayers, AttentionWeighsTheRowsOfEachSequence) {
  const Variable query = Feed<float>({1, 2}, {});
  const Variable keys = Feed<float>({0, std::log(3.0f), 5}, {2, 1});
  const Variable encoded = Feed<float>({4, 8, 1, 2, 6, 7}, {2, 1}, 2);
  const layers::AttendedSequences attended =
      layers::SequenceAttention(query, keys, encoded, {.score = "dot"});
  EXPECT_THAT(Run(attended.context).ToVector<float>(),
              ElementsAre(testing::FloatEq(1.75f), testing::FloatEq(3.5f), 6, 7));
  EXPECT_EQ(LevelsOf(attended.context), 0);
  const Tensor weights = Run(attended.weights);
  EXPECT_THAT(weights.ToVector<float>(),
              ElementsAre(testing::FloatEq(0.25f), testing::FloatEq(0.75f), 1));
  EXPECT_EQ(weights.shape(), Shape({3, 1}));
  EXPECT_EQ(weights.lod(), (LoD{{0, 2, 3}}));
}

TEST_F(SequenceLayers, AttentionHasAParameterForAdditiveScores) {
  const Variable query = layers::Data("query", {-1, 3});
  const Variable keys = layers::Data("keys", {-1, 3}, DType::kFloat32, {.lod_level = 1});
  const Variable encoded = layers::Data("encoded", {-1, 4}, DType::kFloat32, {.lod_level = 1});
  const auto refused = [&](const layers::SequenceAttentionOptions& options) {
    return InvalidArgumentText([&] { layers::SequenceAttention(query, keys, encoded, options); });
  };
  EXPECT_THAT(refused({.score = "general"}),
              HasSubstr("score = \"general\", expected additive or dot"));
  layers::SequenceAttention(query, keys, encoded, {.score = "dot"});
  for (const auto& var : main_.root()->vars()) EXPECT_FALSE(var->is_parameter) << var->name;
  const layers::AttendedSequences attended =
      layers::SequenceAttention(query, keys, encoded, {.score_attr = {.name = "v"}});
  EXPECT_THAT(main_.root()->FindVar("v")->dims, ElementsAre(3, 1));
  EXPECT_THAT(attended.context.dims(), ElementsAre(-1, 4));
  EXPECT_THAT(
      InvalidArgumentText([&] {
        layers::SequenceAttention(layers::Data("wide", {-1, 5}), keys, encoded, {.score = "dot"});
      }),
      HasSubstr("Query is float32 [-1, 5], expected float32 [-1, 3]"));
}

TEST_F(SequenceLayers, ConcatJoinsSequences) {
  const Variable x = Feed<float>({1, 2, 3}, {2, 1});
  const Tensor found = Run(layers::SequenceConcat({x, Feed<float>({4, 5}, {1, 1})}));
  EXPECT_THAT(found.ToVector<float>(), ElementsAre(1, 2, 4, 3, 5));
  EXPECT_EQ(found.lod(), (LoD{{0, 3, 5}}));
  EXPECT_THAT(InvalidArgumentText([] { layers::SequenceConcat({}); }),
              HasSubstr("found no variable, expected at least one"));
}

TEST_F(SequenceLayers, PadMakesABatch) {
  const Variable x = Feed<float>({1, 2, 3}, {2, 1});
  const Variable pad = layers::FillConstant({1}, DType::kFloat32, -1);
  const layers::PaddedSequences shortest = layers::SequencePad(x, pad);
  EXPECT_TRUE(shortest.length.var().stop_gradient);
  EXPECT_EQ(Run(shortest.padded).shape(), Shape({2, 2, 1}));
  EXPECT_THAT(Run(shortest.padded).ToVector<float>(), ElementsAre(1, 2, 3, -1));
  EXPECT_THAT(Run(shortest.length).ToVector<int64_t>(), ElementsAre(2, 1));
  EXPECT_THAT(Run(layers::SequencePad(x, pad, 3).padded).ToVector<float>(),
              ElementsAre(1, 2, -1, 3, -1, -1));
}

// Their rows depend on data.
TEST_F(SequenceLayers, SomeResultsAreRaggedOnlyInARun) {
  const Variable x = Feed<float>({1, 2, 3}, {2, 1});
  const Variable column = Feed<int64_t>({1, 0}, {});
  const Variable slices = layers::SequenceSlice(x, column, column);
  EXPECT_EQ(LevelsOf(slices), 1);
  EXPECT_THAT(slices.dims(), ElementsAre(-1, 1));
  const Variable ids = layers::SequenceErase(Feed<int64_t>({1, 2, 3}, {2, 1}), {2});
  EXPECT_EQ(LevelsOf(ids), 1);
  EXPECT_THAT(ids.dims(), ElementsAre(-1, 1));
  const layers::PaddedSequences padded =
      layers::SequencePad(x, layers::FillConstant({1}, DType::kFloat32, 0));
  const Variable rows = layers::SequenceUnpad(padded.padded, padded.length);
  EXPECT_EQ(LevelsOf(rows), 1);
  EXPECT_THAT(rows.dims(), ElementsAre(-1, 1));
}

TEST_F(SequenceLayers, ScatterAddsNumbers) {
  const Variable x = Feed<float>({1, 1, 1, 1}, {}, 2);
  const Variable ids = Feed<int64_t>({1, 0, 0}, {1, 2});
  const Variable updates = Feed<float>({2, 3, 4}, {1, 2});
  EXPECT_THAT(Run(layers::SequenceScatter(x, ids, updates)).ToVector<float>(),
              ElementsAre(1, 3, 8, 1));
}

TEST_F(SequenceLayers, MaskHasOnesUpToALength) {
  const Variable lengths = layers::AssignValue({2}, std::vector<int64_t>{2, 1});
  const Variable mask = layers::SequenceMask(lengths, {.max_length = 3, .dtype = DType::kFloat32});
  EXPECT_THAT(Run(mask).ToVector<float>(), ElementsAre(1, 1, 0, 1, 0, 0));
  EXPECT_THAT(layers::SequenceMask(lengths).dims(), ElementsAre(2, -1));
}

TEST_F(SequenceLayers, LoDResetTakesOffsetsOrALoD) {
  const Variable x = Feed<float>({1, 2, 3}, {2, 1});
  EXPECT_EQ(Run(layers::LoDReset(x, std::vector<int32_t>{0, 1, 3})).lod(), (LoD{{0, 1, 3}}));
  const Variable y = Feed<float>({0, 0, 0}, {3});
  EXPECT_EQ(Run(layers::LoDReset(x, y)).lod(), (LoD{{0, 3}}));
  const Variable offsets = layers::AssignValue({2}, std::vector<int32_t>{0, 3});
  EXPECT_EQ(LevelsOf(layers::LoDReset(x, offsets)), 1);
  EXPECT_EQ(LevelsOf(layers::LoDAppend(x, offsets)), 2);
}

TEST_F(SequenceLayers, LoDAppendAddsALevelBelow) {
  const Variable x = Feed<float>({1, 2, 3}, {2, 1});
  EXPECT_EQ(Run(layers::LoDAppend(x, std::vector<int32_t>{0, 0, 2, 3})).lod(),
            (LoD{{0, 2, 3}, {0, 0, 2, 3}}));
}

TEST_F(SequenceLayers, Im2SequenceReadsWindows) {
  const Variable image = layers::Reshape(Feed<float>({1, 2, 3, 4}, {}, 4), {-1, 1, 2, 2});
  const Tensor found = Run(layers::Im2Sequence(image, {.kernels = {2, 1}}));
  EXPECT_THAT(found.ToVector<float>(), ElementsAre(1, 3, 2, 4));
  EXPECT_EQ(found.shape(), Shape({2, 2}));
  EXPECT_EQ(found.lod(), (LoD{{0, 2}}));
}

TEST_F(SequenceLayers, RowConvLooksAhead) {
  const Variable x = Feed<float>({1, 2, 3}, {2, 1});
  const layers::RowConvOptions options = {
      .future_rows = 1, .param_attr = {.initializer = initializer::Constant(10)}, .act = "relu"};
  EXPECT_THAT(Run(layers::RowConv(x, options)).ToVector<float>(), ElementsAre(30, 20, 30));
  EXPECT_THAT(InvalidArgumentText([&] { layers::RowConv(x, {}); }),
              HasSubstr("0 rows after each, expected at least 1"));
}

// With weights of 0, the gates are 1/2 and the candidate 0.
TEST_F(SequenceLayers, GruUnitMixesTheStateWithACandidate) {
  const Variable x = Feed<float>({0, 0, 0}, {}, 3);
  const Variable state = Feed<float>({4}, {});
  const layers::GruUnitOptions options = {.param_attr = {.initializer = initializer::Constant(0)}};
  EXPECT_THAT(Run(layers::GruUnit(x, state, options)).ToVector<float>(), ElementsAre(2));
  EXPECT_THAT(InvalidArgumentText([&] { layers::GruUnit(x, state, {.act = "cosh"}); }),
              HasSubstr("activation \"cosh\", expected identity, sigmoid, tanh or relu"));
  EXPECT_THAT(InvalidArgumentText([&] { layers::GruUnit(state, state); }),
              HasSubstr("expected [rows, 3 * 1]"));
}

TEST_F(SequenceLayers, LstmUnitKeepsACell) {
  const Variable x = Feed<float>({1, 1}, {}, 2);
  const Variable hidden = Feed<float>({1}, {});
  const Variable cell = Feed<float>({4}, {});
  const layers::LstmUnitOptions options = {.forget_bias = 100,
                                           .param_attr = {.initializer = initializer::Constant(0)}};
  const layers::LstmStates next = layers::LstmUnit(x, hidden, cell, options);
  EXPECT_THAT(Run(next.cell).ToVector<float>(), ElementsAre(4));
  EXPECT_THAT(Run(next.hidden).ToVector<float>(),
              ElementsAre(testing::FloatEq(std::tanh(4.0f) / 2)));
}

// Paths of the classes 0, 1, 1, 2, 1 and 2, 2; the blank is 2.
TEST_F(SequenceLayers, CtcGreedyDecoderMergesClassesAndDropsBlanks) {
  const Variable x =
      Feed<float>({9, 1, 0, 0, 9, 1, 2, 3, 1, 0, 1, 2, 1, 5, 4, 0, 0, 1, 1, 0, 8}, {5, 2}, 3);
  const layers::CtcLabels found = layers::CtcGreedyDecoder(x, 2);
  EXPECT_FALSE(found.length.defined());
  const Tensor labels = Run(found.labels);
  EXPECT_THAT(labels.ToVector<int64_t>(), ElementsAre(0, 1, 1));
  EXPECT_EQ(labels.lod(), (LoD{{0, 3, 3}}));
  EXPECT_THAT(ErrorText([&] {
                layers::CtcGreedyDecoder(layers::Reshape(x, {1, -1, 3}), 2);
              }),
              HasSubstr("expected [rows, classes]"));
}

TEST_F(SequenceLayers, CtcGreedyDecoderTakesPaddedSequences) {
  const Variable x = Feed<float>({9, 1, 0, 0, 9, 1, 2, 3, 1, 0, 1, 2, 1, 5, 4, 0, 0, 1}, {}, 3);
  const Variable length = Feed<int64_t>({3, 2}, {});
  const layers::CtcLabels found = layers::CtcGreedyDecoder(
      layers::Reshape(x, {2, 3, 3}), 2, {.input_length = length, .padding_value = -1});
  Executor executor;
  const std::vector<Tensor> both =
      executor.Compile(main_).Run(feeds_, {found.labels, found.length});
  EXPECT_THAT(both[0].ToVector<int64_t>(), ElementsAre(0, 1, -1, 1, -1, -1));
  EXPECT_THAT(both[1].ToVector<int64_t>(), ElementsAre(2, 1));
  EXPECT_THAT(ErrorText([&] { layers::CtcGreedyDecoder(x, 2, {.input_length = length}); }),
              HasSubstr("expected [sequences, steps, classes] with input_length"));
}

TEST_F(SequenceLayers, EditDistanceTakesItsOptions) {
  const Variable input = Feed<int64_t>({1, 2, 3, 7, 5}, {4, 1});
  const Variable label = Feed<int64_t>({1, 3, 5}, {2, 1});
  const layers::EditDistances found = layers::EditDistance(input, label);
  const layers::EditDistances whole = layers::EditDistance(input, label, {.normalized = false});
  const layers::EditDistances some =
      layers::EditDistance(input, label, {.normalized = false, .ignored_tokens = {2, 5}});
  Executor executor;
  const std::vector<Tensor> values = executor.Compile(main_).Run(
      feeds_, {found.distance, found.sequences, whole.distance, some.distance});
  EXPECT_THAT(values[0].ToVector<float>(), ElementsAre(1, 0));
  EXPECT_THAT(values[1].ToVector<int64_t>(), ElementsAre(2));
  EXPECT_THAT(values[2].ToVector<float>(), ElementsAre(2, 0));
  EXPECT_THAT(values[3].ToVector<float>(), ElementsAre(1, 0));
}

TEST_F(SequenceLayers, SelectionsHaveAnUnknownLength) {
  const Variable x = Feed<float>({1, 0}, {});
  EXPECT_THAT(layers::WhereIndex(x).dims(), ElementsAre(-1, 2));
  const Variable mask = layers::Cast(x, DType::kBool);
  EXPECT_THAT(layers::MaskedSelect(x, mask).dims(), ElementsAre(-1));
}

}  // namespace
}  // namespace skiff
