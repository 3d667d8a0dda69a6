// Sequences of ONNX whose length is known when the file is read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/framework/onnx/imported_model.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor X() { return Tensor::FromValues<float>({2, 3}, {1, 2, 3, 4, 5, 6}); }

std::vector<Tensor> RunModel(const ModelBuilder& builder) {
  Executor exe;
  const InferenceModel model = Imported(builder, &exe);
  return exe.Compile(*model.program).Run({{"x", X()}}, model.fetch_names);
}

TEST(ImportOnnxSequence, SplitsAndJoins) {
  ModelBuilder builder;
  builder.Input("x", {-1, 3});
  builder.edit().Int("two", 2);
  builder.Ints("last", {-1});
  builder.Ints("sizes", {1, 2});
  SetInt("axis", 1, builder.Node("SplitToSequence", {"x", "two"}, {"pairs"}));
  builder.Node("SequenceAt", {"pairs", "last"}, {"rest"});
  onnx::NodeProto* columns = builder.Node("SplitToSequence", {"x"}, {"columns"});
  SetInt("axis", -1, columns);
  SetInt("keepdims", 0, columns);
  onnx::NodeProto* stack = builder.Node("ConcatFromSequence", {"columns"}, {"transposed"});
  SetInt("axis", 0, stack);
  SetInt("new_axis", 1, stack);
  SetInt("axis", 1, builder.Node("SplitToSequence", {"x", "sizes"}, {"sized"}));
  builder.Node("SequenceAt", {"sized", "last"}, {"wide"});
  SetInt("axis", 1, builder.Node("ConcatFromSequence", {"pairs"}, {"again"}));
  builder.Output("rest", {-1, 1});
  builder.Output("transposed", {3, -1});
  builder.Output("wide", {-1, 2});
  builder.Output("again", {-1, 3});
  const auto results = RunModel(builder);
  EXPECT_THAT(results[0].ToVector<float>(), ElementsAre(3, 6));
  EXPECT_THAT(results[1].ToVector<float>(), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(results[2].ToVector<float>(), ElementsAre(2, 3, 5, 6));
  EXPECT_THAT(results[3].ToVector<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
}

// Of x, -x and |x|, whose list is x, |x|, -x and then x, |x|.
TEST(ImportOnnxSequence, InsertsErasesAndCounts) {
  ModelBuilder builder;
  builder.Input("x", {2, 3});
  builder.Node("Neg", {"x"}, {"negative"});
  builder.Node("Abs", {"negative"}, {"positive"});
  builder.Ints("before_last", {-1});
  builder.graph().add_node()->set_op_type("SequenceEmpty");
  builder.graph().mutable_node(2)->add_output("none");
  builder.Node("SequenceConstruct", {"x", "negative"}, {"two"});
  builder.Node("SequenceInsert", {"two", "positive", "before_last"}, {"three"});
  builder.Node("SequenceErase", {"three"}, {"fewer"});
  builder.Node("SequenceLength", {"three"}, {"count"});
  builder.Node("SequenceLength", {"none"}, {"no_count"});
  SetInt("axis", 0, builder.Node("ConcatFromSequence", {"fewer"}, {"all"}));
  builder.Output("all", {4, 3});
  builder.Output("count", {}, onnx::TensorProto::INT64);
  builder.Output("no_count", {}, onnx::TensorProto::INT64);
  const auto results = RunModel(builder);
  EXPECT_THAT(results[0].ToVector<float>(), ElementsAre(1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6));
  EXPECT_EQ(results[1].Item<int64_t>(), 3);
  EXPECT_EQ(results[2].Item<int64_t>(), 0);
}

TEST(ImportOnnxSequence, RefusesWhatIsUnknownOrNone) {
  ModelBuilder extent;
  extent.Input("x", {-1, 3});
  extent.Node("SplitToSequence", {"x"}, {"rows"});
  extent.Node("Abs", {"rows"}, {"y"});
  extent.Output("y", {-1, 3});
  EXPECT_THAT(Refusal(ErrorCode::kUnimplemented, extent), HasSubstr("known only in a run"));
  ModelBuilder tensor;
  tensor.Input("x", {2, 3});
  tensor.Node("SplitToSequence", {"x"}, {"rows"});
  tensor.Node("Abs", {"rows"}, {"y"});
  tensor.Output("y", {2, 3});
  tensor.Output("rows", {2, 3});
  const std::string text = Refusal(ErrorCode::kUnimplemented, tensor);
  EXPECT_THAT(text, HasSubstr("Abs_of_y\": \"rows\" is a sequence"));
  EXPECT_THAT(text, HasSubstr("output \"rows\" is a sequence"));
  ModelBuilder place;
  place.Input("x", {2, 3});
  place.edit().Int("three", 3);
  place.Node("SplitToSequence", {"x"}, {"rows"});
  place.Node("SequenceAt", {"rows", "three"}, {"y"});
  place.Output("y", {1, 3});
  EXPECT_THAT(Refusal(ErrorCode::kInvalidArgument, place), HasSubstr("place 3"));
}

}  // namespace
}  // namespace skiff
