// Functions of ONNX files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/framework/onnx/imported_model.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

onnx::FunctionProto* AddFunction(const std::string& name, const std::vector<std::string>& inputs,
                                 const std::vector<std::string>& outputs, ModelBuilder* builder) {
  onnx::FunctionProto* function = builder->model.add_functions();
  function->set_name(name);
  function->set_domain("local");
  for (const std::string& input : inputs) function->add_input(input);
  for (const std::string& output : outputs) function->add_output(output);
  function->add_opset_import()->set_version(17);
  return function;
}

onnx::NodeProto* AddNode(const std::string& op, const std::vector<std::string>& inputs,
                         const std::vector<std::string>& outputs, onnx::FunctionProto* function) {
  onnx::NodeProto* node = function->add_node();
  node->set_op_type(op);
  for (const std::string& input : inputs) node->add_input(input);
  for (const std::string& output : outputs) node->add_output(output);
  return node;
}

void SetFloat(const std::string& name, float value, onnx::AttributeProto* attribute) {
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::FLOAT);
  attribute->set_f(value);
}

void Refer(const std::string& name, const std::string& to, onnx::NodeProto* node) {
  onnx::AttributeProto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::FLOAT);
  attribute->set_ref_attr_name(to);
}

// y = Layer(x, w): leaky(x · w), where Layer passes `slope` on to Leaky as `alpha`.
ModelBuilder FunctionModel() {
  ModelBuilder builder;
  builder.Input("x", {1, 2});
  builder.Floats("w", {2, 2}, {1, 0, 0, -1});
  onnx::FunctionProto* leaky = AddFunction("Leaky", {"a"}, {"b"}, &builder);
  Refer("alpha", "alpha", AddNode("LeakyRelu", {"a"}, {"b"}, leaky));
  onnx::FunctionProto* layer = AddFunction("Layer", {"a", "weight"}, {"b", "product"}, &builder);
  AddNode("MatMul", {"a", "weight"}, {"product"}, layer);
  onnx::NodeProto* inner = AddNode("Leaky", {"product"}, {"b"}, layer);
  inner->set_domain("local");
  Refer("alpha", "slope", inner);
  onnx::NodeProto* call = builder.Node("Layer", {"x", "w"}, {"y", "product"});
  call->set_domain("local");
  SetFloat("slope", 0.5f, call->add_attribute());
  builder.Output("y", {1, 2});
  builder.Output("product", {1, 2});
  return builder;
}

std::vector<Tensor> RunModel(const ModelBuilder& builder, Executor* exe) {
  const InferenceModel model = Imported(builder, exe);
  const Tensor x = Tensor::FromValues<float>({1, 2}, {3, 4});
  return exe->Compile(*model.program).Run({{"x", x}}, model.fetch_names);
}

TEST(ImportOnnxFunctions, AreWrittenOutWithTheirAttributes) {
  Executor exe;
  const auto results = RunModel(FunctionModel(), &exe);
  EXPECT_THAT(results[0].ToVector<float>(), ElementsAre(3, -2));
  EXPECT_THAT(results[1].ToVector<float>(), ElementsAre(3, -4));
  EXPECT_THAT(exe.scope().Names(), ElementsAre("@SKIFF_STEP@", "w"))
      << "a weight keeps the name that it has outside";
}

TEST(ImportOnnxFunctions, ShareWhatTheyAreGiven) {
  ModelBuilder builder = FunctionModel();
  onnx::NodeProto* again = builder.Node("Layer", {"y", "w"}, {"z", "other"});
  again->set_domain("local");
  builder.Output("z", {1, 2});
  Executor exe;
  const auto results = RunModel(builder, &exe);
  // Without the attribute, LeakyRelu has its own default.
  EXPECT_THAT(results[2].ToVector<float>(), Pointwise(FloatNear(1e-6f), {3.0f, 2.0f}));
  EXPECT_THAT(exe.scope().Names(), ElementsAre("@SKIFF_STEP@", "w"));
}

TEST(ImportOnnxFunctions, HaveDefaultsForAttributes) {
  ModelBuilder builder = FunctionModel();
  builder.graph().mutable_node(0)->clear_attribute();
  SetFloat("slope", 0.25f, builder.model.mutable_functions(1)->add_attribute_proto());
  Executor exe;
  EXPECT_THAT(RunModel(builder, &exe)[0].ToVector<float>(), ElementsAre(3, -1));
}

TEST(ImportOnnxFunctions, AreChosenByTheirOverload) {
  ModelBuilder builder = FunctionModel();
  onnx::FunctionProto* other = AddFunction("Leaky", {"a"}, {"b"}, &builder);
  other->set_overload("other");
  AddNode("Neg", {"a"}, {"b"}, other);
  Executor exe;
  EXPECT_THAT(RunModel(builder, &exe)[0].ToVector<float>(), ElementsAre(3, -2));
  builder.model.mutable_functions(1)->mutable_node(1)->set_overload("other");
  EXPECT_THAT(RunModel(builder, &exe)[0].ToVector<float>(), ElementsAre(-3, 4));
}

TEST(ImportOnnxFunctions, BindAttributesInGraphs) {
  ModelBuilder builder = FunctionModel();
  onnx::FunctionProto* leaky = builder.model.mutable_functions(0);
  leaky->clear_node();
  onnx::NodeProto* truth = AddNode("Constant", {}, {"is_true"}, leaky);
  onnx::AttributeProto* value = truth->add_attribute();
  value->set_name("value");
  value->set_type(onnx::AttributeProto::TENSOR);
  value->mutable_t()->set_data_type(onnx::TensorProto::BOOL);
  value->mutable_t()->add_int32_data(1);
  onnx::NodeProto* branch = AddNode("If", {"is_true"}, {"b"}, leaky);
  GraphEditor first = AddGraph("then_branch", branch);
  Refer("alpha", "alpha", first.Node("LeakyRelu", {"a"}, {"inner"}));
  first.Outputs({"inner"});
  Executor exe;
  EXPECT_THAT(RunModel(builder, &exe)[0].ToVector<float>(), ElementsAre(3, -2));
}

TEST(ImportOnnxFunctions, ListWhatIsUnsupportedOnce) {
  ModelBuilder builder = FunctionModel();
  builder.model.mutable_functions(0)->mutable_node(0)->set_op_type("StringNormalizer");
  builder.Node("Leaky", {"x"}, {"z"})->set_domain("local");
  const std::string text = Refusal(ErrorCode::kUnimplemented, builder);
  EXPECT_THAT(text, HasSubstr("1 part of the model"));
  EXPECT_THAT(text, HasSubstr("StringNormalizer (ai.onnx 17) \"b\": there is no such op here"));
}

TEST(ImportOnnxFunctions, MayNotCallThemselves) {
  ModelBuilder builder = FunctionModel();
  onnx::NodeProto* node = builder.model.mutable_functions(0)->mutable_node(0);
  node->set_op_type("Leaky");
  node->set_domain("local");
  EXPECT_THAT(Refusal(ErrorCode::kUnimplemented, builder), HasSubstr("call each other"));
}

TEST(ImportOnnxFunctions, RefuseWhatIsNone) {
  ModelBuilder twice = FunctionModel();
  *twice.model.add_functions() = twice.model.functions(0);
  EXPECT_THAT(Refusal(ErrorCode::kInvalidArgument, twice), HasSubstr("\"Leaky\""));
  ModelBuilder inputs = FunctionModel();
  inputs.graph().mutable_node(0)->add_input("x");
  EXPECT_THAT(Refusal(ErrorCode::kInvalidArgument, inputs), HasSubstr("3 inputs"));
  ModelBuilder old = FunctionModel();
  old.model.mutable_functions(0)->mutable_opset_import(0)->set_version(5);
  EXPECT_THAT(Refusal(ErrorCode::kUnimplemented, old), HasSubstr("opset 5"));
  ModelBuilder missing = FunctionModel();
  missing.model.mutable_functions(0)->mutable_node(0)->set_input(0, "x");
  EXPECT_THAT(Refusal(ErrorCode::kInvalidArgument, missing), HasSubstr("made by nothing"));
}

}  // namespace
}  // namespace skiff
