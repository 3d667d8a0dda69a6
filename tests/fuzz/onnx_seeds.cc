#include "tests/fuzz/onnx_seeds.h"

#include <algorithm>
#include <filesystem>

#include "framework/onnx/model_file.h"
#include "tests/framework/onnx/model_builder.h"

namespace skiff::fuzz {
namespace {

// s · w + x in each of three iterations, and a branch on the sign of its sum.
onnx::ModelProto LoopWithBranch() {
  ModelBuilder builder;
  builder.Input("x", {2});
  builder.Floats("w", {2}, {2, 3});
  builder.Floats("s0", {2}, {1, 1});
  builder.Floats("zero", {}, {0});
  builder.Ints("count", {3});
  onnx::NodeProto* loop = builder.Node("Loop", {"count", "", "s0"}, {"last", "all"});
  GraphEditor body = AddGraph("body", loop);
  body.Inputs({"i", "c", "s"});
  body.Node("Identity", {"c"}, {"go_on"});
  body.Node("Mul", {"s", "w"}, {"p"});
  body.Node("Add", {"p", "x"}, {"next"});
  SetInt("keepdims", 0, body.Node("ReduceSum", {"next"}, {"sum"}));
  body.Node("Greater", {"sum", "zero"}, {"is_positive"});
  onnx::NodeProto* branch = body.Node("If", {"is_positive"}, {"made"});
  GraphEditor then_graph = AddGraph("then_branch", branch);
  then_graph.Node("Neg", {"next"}, {"negative"});
  then_graph.Outputs({"negative"});
  GraphEditor else_graph = AddGraph("else_branch", branch);
  else_graph.Node("Exp", {"x"}, {"other"});
  else_graph.Outputs({"other"});
  body.Outputs({"go_on", "next", "made"});
  builder.Output("last", {2});
  builder.Output("all", {-1, 2});
  return builder.model;
}

// The sums of the first rows of x.
onnx::ModelProto Scan() {
  ModelBuilder builder;
  builder.Input("x", {4, 2});
  builder.Floats("s0", {2}, {0, 0});
  onnx::NodeProto* scan = builder.Node("Scan", {"s0", "x"}, {"last", "sums"});
  SetInt("num_scan_inputs", 1, scan);
  GraphEditor body = AddGraph("body", scan);
  body.Inputs({"s", "row"});
  body.Node("Add", {"s", "row"}, {"next"});
  body.Node("Identity", {"next"}, {"made"});
  body.Outputs({"next", "made"});
  builder.Output("last", {2});
  builder.Output("sums", {4, 2});
  return builder.model;
}

// y = F(F(x)), where F is a function of the file.
onnx::ModelProto Calls() {
  ModelBuilder builder;
  builder.Input("x", {2});
  onnx::FunctionProto* function = builder.model.add_functions();
  function->set_name("F");
  function->set_domain("local");
  function->add_input("a");
  function->add_output("b");
  function->add_opset_import()->set_version(17);
  onnx::NodeProto* node = function->add_node();
  node->set_op_type("Tanh");
  node->add_input("a");
  node->add_output("b");
  builder.Node("F", {"x"}, {"h"})->set_domain("local");
  builder.Node("F", {"h"}, {"y"})->set_domain("local");
  onnx::OperatorSetIdProto* local = builder.model.add_opset_import();
  local->set_domain("local");
  local->set_version(1);
  builder.Output("y", {2});
  return builder.model;
}

}  // namespace

std::vector<onnx::ModelProto> NestedOnnxModels() { return {LoopWithBranch(), Scan(), Calls()}; }

std::vector<onnx::ModelProto> OnnxModelsIn(const std::string& directory) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() == ".onnx") paths.push_back(entry.path().string());
  }
  std::ranges::sort(paths);
  std::vector<onnx::ModelProto> models;
  for (const std::string& path : paths) models.push_back(ReadOnnxModel(path));
  return models;
}

}  // namespace skiff::fuzz
