// What the export makes of ragged values, loops and branches. tests/onnx/run_exported.py runs such
// files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/control_flow.h"
#include "framework/builder/data.h"
#include "framework/builder/dynamic_rnn.h"
#include "framework/builder/nn.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/sequence.h"
#include "framework/builder/static_rnn.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/executor/executor.h"
#include "framework/ir/program.h"
#include "framework/onnx/export.h"
#include "framework/onnx/model_file.h"

namespace skiff {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Returns the file of a network, whose parameters are those of its startup program.
std::string FileOf(const std::vector<std::string>& feeds,
                   const std::function<Variables()>& network) {
  Program main;
  Program startup;
  std::vector<std::string> fetches;
  {
    const ProgramGuard guard(&main, &startup);
    for (const Variable& output : network()) fetches.push_back(output.name());
  }
  Executor executor(Place::Cpu());
  executor.Run(startup);
  return OnnxBytes(feeds, fetches, main, executor.scope());
}

onnx::GraphProto Exported(const std::vector<std::string>& feeds,
                          const std::function<Variables()>& network) {
  return ParseOnnxModel(FileOf(feeds, network), "test").graph();
}

std::string RefusalOf(const std::vector<std::string>& feeds,
                      const std::function<Variables()>& network) {
  try {
    FileOf(feeds, network);
    return "no Error";
  } catch (const Error& error) {
    return error.what();
  }
}

std::vector<std::string> TypesOf(const onnx::GraphProto& graph) {
  std::vector<std::string> types;
  for (const onnx::NodeProto& node : graph.node()) types.push_back(node.op_type());
  return types;
}

template <typename Values>
std::vector<std::string> NamesOf(const Values& values) {
  std::vector<std::string> names;
  for (const auto& value : values) names.push_back(value.name());
  return names;
}

const onnx::NodeProto& NodeOf(const onnx::GraphProto& graph, const std::string& type) {
  for (const onnx::NodeProto& node : graph.node()) {
    if (node.op_type() == type) return node;
  }
  Throw(ErrorCode::kNotFound, "there is no ", type);
}

const onnx::AttributeProto& AttrOf(const onnx::NodeProto& node, const std::string& name) {
  for (const onnx::AttributeProto& attr : node.attribute()) {
    if (attr.name() == name) return attr;
  }
  Throw(ErrorCode::kNotFound, "there is no ", name);
}

Variable Rows(int64_t width) {
  return layers::Data("x", {-1, width}, DType::kFloat32, {.lod_level = 1});
}

TEST(OnnxExportLoops, OffsetsAreInputsAndOutputs) {
  const onnx::GraphProto graph = Exported({"x"}, [] { return Variables{layers::Tanh(Rows(3))}; });
  EXPECT_THAT(TypesOf(graph), ElementsAre("Tanh", "Identity"));
  EXPECT_THAT(NamesOf(graph.input()), ElementsAre("x", "x.lod0"));
  const auto& type = graph.input(1).type().tensor_type();
  EXPECT_EQ(type.elem_type(), onnx::TensorProto::INT64);
  ASSERT_EQ(type.shape().dim_size(), 1);
  EXPECT_EQ(type.shape().dim(0).dim_param(), "x.lod0.0");
  const std::string output = graph.output(0).name();
  EXPECT_THAT(NamesOf(graph.output()), ElementsAre(output, output + ".lod0"));
  EXPECT_EQ(NodeOf(graph, "Identity").input(0), "x.lod0");
}

TEST(OnnxExportLoops, ThePoolOfSequencesIsNotRagged) {
  const onnx::GraphProto graph =
      Exported({"x"}, [] { return Variables{layers::SequencePool(Rows(3), "LAST")}; });
  EXPECT_EQ(graph.output_size(), 1);
}

TEST(OnnxExportLoops, WhatFollowsFromOffsetsIsComputedOnce) {
  const onnx::GraphProto graph = Exported({"x"}, [] {
    const Variable x = Rows(1);
    return Variables{layers::SequenceSoftmax(x), layers::SequenceReverse(layers::Tanh(x))};
  });
  EXPECT_EQ(std::ranges::count(TypesOf(graph), "NonZero"), 1);
}

TEST(OnnxExportLoops, ARecurrentLayerReadsTheFactorsOfItsInput) {
  const onnx::GraphProto graph = Exported({"x"}, [] {
    const Variable gates = layers::Fc(Rows(5), 12, {.bias_attr = false});
    return Variables{layers::DynamicLstm(gates, {.size = 3, .is_reverse = true}).hidden};
  });
  EXPECT_THAT(TypesOf(graph), Not(Contains("MatMul")));
  const onnx::NodeProto& lstm = NodeOf(graph, "LSTM");
  EXPECT_EQ(AttrOf(lstm, "direction").s(), "reverse");
  EXPECT_EQ(AttrOf(lstm, "hidden_size").i(), 3);
  EXPECT_EQ(lstm.input_size(), 8);  // peepholes
}

TEST(OnnxExportLoops, ARecurrentLayerOnAnythingElseHasWeightsOfOne) {
  const onnx::GraphProto graph =
      Exported({"x"}, [] { return Variables{layers::DynamicGru(Rows(6), {.size = 2})}; });
  EXPECT_THAT(TypesOf(graph), Contains("EyeLike"));
  EXPECT_THAT(TypesOf(graph), Contains("Neg"));  // the share of the old state is 1 - u
  EXPECT_THAT(NamesOf(NodeOf(graph, "GRU").attribute()), Not(Contains("linear_before_reset")));
}

TEST(OnnxExportLoops, RefusesAFormThatRecurrentLayersLack) {
  EXPECT_THAT(
      RefusalOf(
          {"x"},
          [] { return Variables{layers::DynamicGru(Rows(6), {.size = 2, .act = "identity"})}; }),
      HasSubstr("activation = \"identity\""));
  EXPECT_THAT(
      RefusalOf({"x"}, [] { return Variables{layers::DynamicLstm(Rows(8), {.size = 2}).cell}; }),
      HasSubstr("this output of lstm has no form in ONNX"));
}

Variable Twice(const Variable& x, const Variable& steps) {
  return layers::WhileLoop([&](const Variables& v) { return layers::LessThan(v[0], steps); },
                           [&](const Variables& v) {
                             return Variables{layers::Increment(layers::Assign(v[0])), v[1] + x};
                           },
                           {layers::FillConstant({1}, DType::kInt64, 0), x})[1];
}

TEST(OnnxExportLoops, AWhileIsALoop) {
  std::string name;
  const onnx::GraphProto graph = Exported({"x", "steps"}, [&] {
    const Variable last =
        Twice(layers::Data("x", {-1, 2}), layers::Data("steps", {1}, DType::kInt64));
    name = last.name();
    return Variables{last};
  });
  const onnx::NodeProto& loop = NodeOf(graph, "Loop");
  ASSERT_EQ(loop.input_size(), 5);  // no count, the condition, and what goes from step to step
  EXPECT_EQ(loop.input(0), "");
  const onnx::GraphProto& body = AttrOf(loop, "body").g();
  EXPECT_EQ(body.input_size(), 5);
  EXPECT_EQ(body.output_size(), 4);
  EXPECT_THAT(TypesOf(body), Contains("Less"));
  // Constants are in the outermost graph, and x is seen from inside.
  EXPECT_EQ(body.initializer_size(), 0);
  EXPECT_TRUE(std::ranges::any_of(body.node(), [](const onnx::NodeProto& node) {
    return node.op_type() == "Add" && node.input(1) == "x";
  }));
  // The variable is written several times, but as an output it has its name.
  EXPECT_EQ(graph.output(0).name(), name);
}

TEST(OnnxExportLoops, AStaticRnnIsAScan) {
  const onnx::GraphProto graph = Exported({"x"}, [] {
    const Variable x = layers::Data("x", {-1, 2, 3});
    const Variable first = layers::FillConstant({2, 3}, DType::kFloat32, 0);
    layers::StaticRnn rnn({.reverse = true});
    rnn.Body([&] {
      const Variable before = rnn.Memory(first);
      const Variable after = layers::Tanh(rnn.StepInput(x) + before);
      rnn.UpdateMemory(before, after);
      rnn.StepOutput(after);
    });
    return rnn.Outputs();
  });
  const onnx::NodeProto& scan = NodeOf(graph, "Scan");
  EXPECT_EQ(AttrOf(scan, "num_scan_inputs").i(), 1);
  EXPECT_THAT(AttrOf(scan, "scan_input_directions").ints(), ElementsAre(1));
  EXPECT_THAT(AttrOf(scan, "scan_output_directions").ints(), ElementsAre(1));
  const onnx::GraphProto& body = AttrOf(scan, "body").g();
  EXPECT_EQ(body.input_size(), 2);
  // The state and the output are one value, and two outputs.
  ASSERT_EQ(body.output_size(), 2);
  EXPECT_NE(body.output(0).name(), body.output(1).name());
}

TEST(OnnxExportLoops, ADynamicRnnIsALoopOverSequencesOfTensors) {
  const onnx::GraphProto graph = Exported({"x"}, [] {
    layers::DynamicRnn rnn;
    const Variable x = Rows(3);
    rnn.Body([&] {
      const Variable step = rnn.StepInput(x);
      const Variable before = rnn.Memory({3});
      const Variable after = layers::Tanh(step + before);
      rnn.UpdateMemory(before, after);
      rnn.StepOutput(after);
    });
    return rnn.Outputs();
  });
  const std::vector<std::string> types = TypesOf(graph);
  for (const char* type : {"TopK", "SplitToSequence", "Loop", "ConcatFromSequence"}) {
    EXPECT_THAT(types, Contains(type));
  }
  EXPECT_THAT(NamesOf(graph.output()), Contains(HasSubstr(".lod0")));
}

TEST(OnnxExportLoops, ACondIsAnIfForEachBranchAndOneForTheResult) {
  const onnx::GraphProto graph = Exported({"x", "flag"}, [] {
    const Variable x = layers::Data("x", {-1, 2});
    return layers::Cond(
        layers::Data("flag", {1}, DType::kBool), [&] { return Variables{layers::Tanh(x)}; },
        [&] { return Variables{layers::Exp(x)}; });
  });
  std::vector<std::string> taken;
  for (const onnx::NodeProto& node : graph.node()) {
    if (node.op_type() != "If") continue;
    for (const std::string& type : TypesOf(AttrOf(node, "then_branch").g())) taken.push_back(type);
  }
  EXPECT_EQ(std::ranges::count(TypesOf(graph), "If"), 3);
  EXPECT_THAT(taken, Contains("Tanh"));
  EXPECT_THAT(taken, Contains("Exp"));
}

TEST(OnnxExportLoops, WhatNothingReadsIsLeftOut) {
  const onnx::GraphProto graph = Exported({"x"}, [] {
    const Variable x = layers::Data("x", {4, 2});
    // Values and indices.
    return Variables{layers::Cast(layers::Tanh(layers::TopK(x, 1).values), DType::kFloat64)};
  });
  EXPECT_THAT(TypesOf(graph), ElementsAre("TopK", "Tanh", "Cast"));
}

TEST(OnnxExportLoops, ListsWhatHasNoFormInsideOfBlocks) {
  const std::string text = RefusalOf({"x", "steps"}, [] {
    const Variable x = layers::Data("x", {2, 2});
    const Variable steps = layers::Data("steps", {1}, DType::kInt64);
    return layers::WhileLoop([&](const Variables& v) { return layers::LessThan(v[0], steps); },
                             [&](const Variables& v) {
                               return Variables{layers::Increment(layers::Assign(v[0])),
                                                layers::Abs(layers::UniformRandom({2, 2}) + v[1])};
                             },
                             {layers::FillConstant({1}, DType::kInt64, 0), x});
  });
  EXPECT_THAT(text, HasSubstr("uniform_random (block 1"));
  EXPECT_THAT(text, Not(HasSubstr("while (block 0")));
}

TEST(OnnxExportLoops, RefusesAResultWhoseRowsOnlyTheBlockKnows) {
  EXPECT_THAT(RefusalOf({"x", "flag"},
                        [] {
                          const Variable x = layers::Data("x", {-1, 2});
                          const Variable flag = layers::Data("flag", {1}, DType::kBool);
                          layers::Cond(
                              flag, [&] { return Variables{layers::Tanh(x)}; },
                              [&] { return Variables{layers::Exp(x)}; });
                          // Reads the result of one branch, not that of the one that has run.
                          const Op& select = *x.block()->ops().back();
                          const Variable one(x.block(), select.Input("X")[0]);
                          return Variables{layers::Relu(one)};
                        }),
              HasSubstr("dims that a run decides"));
}

}  // namespace
}  // namespace skiff
