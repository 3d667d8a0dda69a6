// Models of ONNX as programs: what runs, what trains, what is refused, and what a bad file gives.
#include "framework/onnx/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "framework/base/error.h"
#include "framework/builder/math.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/program_guard.h"
#include "framework/executor/executor.h"
#include "framework/io/file.h"
#include "framework/ir/program.h"
#include "framework/onnx/model_file.h"
#include "tests/framework/onnx/imported_model.h"
#include "tests/framework/onnx/model_builder.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Pointwise;

TEST(ImportOnnx, GivesAProgramWithTheNamesOfTheFile) {
  Executor exe;
  const InferenceModel model = Imported(SmallModel(), &exe);
  EXPECT_THAT(model.feed_names, ElementsAre("x"));
  EXPECT_THAT(model.fetch_names, ElementsAre("y"));
  EXPECT_THAT(exe.scope().Names(), IsSupersetOf({"b", "w"}));
  const Tensor x = Tensor::FromValues<float>({1, 2}, {1, 10});
  const auto results = exe.Compile(*model.program).Run({{"x", x}}, {"y", "product"});
  EXPECT_THAT(results[0].ToVector<float>(), ElementsAre(41.5f, 52, 0));
  EXPECT_THAT(results[1].ToVector<float>(), ElementsAre(41, 52, 63));
}

TEST(ImportOnnx, GivesAProgramThatCanBeTrained) {
  Executor exe;
  const InferenceModel model = Imported(SmallModel(), &exe);
  Program startup;
  {
    const ProgramGuard guard(model.program.get(), &startup);
    const Variable loss = layers::Mean(Variable(model.program->root(), "y"));
    optimizer::Sgd({.learning_rate = 3.0}).Minimize(loss);
  }
  exe.Run(startup);
  const Tensor x = Tensor::FromValues<float>({1, 2}, {1, 10});
  exe.Compile(*model.program).Run({{"x", x}}, {"y"});
  // The third class is cut off by relu, so nothing moves its weights.
  EXPECT_THAT(exe.scope().Get("b").ToVector<float>(), ElementsAre(-0.5f, -1, -100));
  EXPECT_THAT(exe.scope().Get("w").ToVector<float>(),
              Pointwise(FloatNear(1e-6f), {0.0f, 1.0f, 3.0f, -6.0f, -5.0f, 6.0f}));
}

TEST(ImportOnnx, SortsNodes) {
  ModelBuilder builder;
  builder.Input("x", {1});
  builder.Node("Neg", {"a"}, {"y"});
  builder.Node("Abs", {"x"}, {"a"});
  builder.Output("y", {1});
  Executor exe;
  const InferenceModel model = Imported(builder, &exe);
  const Tensor x = Tensor::FromValues<float>({1}, {-2});
  EXPECT_EQ(exe.Compile(*model.program).Run({{"x", x}}, {"y"})[0].Item<float>(), -2);
}

template <typename T>
void ExpectBits(int32_t type, const std::vector<T>& x, const std::vector<T>& y) {
  ModelBuilder builder;
  builder.model.mutable_opset_import(0)->set_version(18);
  builder.Input("x", {2}, type);
  builder.Input("y", {2}, type);
  builder.Node("BitwiseAnd", {"x", "y"}, {"and"});
  builder.Node("BitwiseOr", {"x", "y"}, {"or"});
  builder.Node("BitwiseXor", {"x", "y"}, {"xor"});
  builder.Node("BitwiseNot", {"x"}, {"not"});
  const std::vector<std::string> names = {"and", "or", "xor", "not"};
  for (const std::string& name : names) builder.Output(name, {2}, type);
  Executor exe;
  const InferenceModel model = Imported(builder, &exe);
  const auto results =
      exe.Compile(*model.program)
          .Run({{"x", Tensor::FromValues<T>({2}, x)}, {"y", Tensor::FromValues<T>({2}, y)}}, names);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(results[0].template ToVector<T>()[i], static_cast<T>(x[i] & y[i]));
    EXPECT_EQ(results[1].template ToVector<T>()[i], static_cast<T>(x[i] | y[i]));
    EXPECT_EQ(results[2].template ToVector<T>()[i], static_cast<T>(x[i] ^ y[i]));
    EXPECT_EQ(results[3].template ToVector<T>()[i], static_cast<T>(~x[i]));
  }
}

// There are no kernels for the bits of whole numbers of 8 and 16 bits.
TEST(ImportOnnx, CombinesBitsOfNarrowNumbers) {
  ExpectBits<int8_t>(onnx::TensorProto::INT8, {-128, 0x55}, {127, -2});
  ExpectBits<uint8_t>(onnx::TensorProto::UINT8, {200, 0x55}, {255, 0xF0});
  ExpectBits<int16_t>(onnx::TensorProto::INT16, {-32768, 0x5555}, {32767, -2});
  ExpectBits<int32_t>(onnx::TensorProto::INT32, {-5, 12345}, {7, -2});
}

// Flattens images by what exporters write for x.view(x.size(0), -1).
TEST(ImportOnnx, ComputesShapes) {
  ModelBuilder builder;
  builder.Input("x", {-1, 2, 3});
  builder.Ints("zero", {0});
  builder.Ints("rest", {-1});
  builder.Node("Shape", {"x"}, {"shape"});
  builder.Node("Gather", {"shape", "zero"}, {"batch"});
  SetInt("axis", 0, builder.Node("Concat", {"batch", "rest"}, {"dims"}));
  builder.Node("Reshape", {"x", "dims"}, {"y"});
  builder.Output("y", {-1, 6});
  Executor exe;
  const InferenceModel model = Imported(builder, &exe);
  CompiledProgram program = exe.Compile(*model.program);
  for (const int64_t batch : {1, 4}) {
    const Tensor x(Shape({batch, 2, 3}), DType::kFloat32);
    EXPECT_EQ(program.Run({{"x", x}}, {"y"})[0].shape(), Shape({batch, 6}));
  }
}

// What a model makes of an image [1, 1, 2, 2] of 1, 2, 3, 4; the file knows no height and no width.
std::vector<float> OfSmallImage(ModelBuilder builder) {
  builder.Input("x", {1, 1, -1, -1});
  builder.Output("y", {1, 1, -1, -1});
  Executor exe;
  const InferenceModel model = Imported(builder, &exe);
  const Tensor x = Tensor::FromValues<float>({1, 1, 2, 2}, {1, 2, 3, 4});
  return exe.Run(*model.program, {{"x", x}}, {"y"})[0].ToVector<float>();
}

TEST(ImportOnnx, ResizesImagesOfUnknownExtents) {
  ModelBuilder builder;
  builder.Floats("scales", {4}, {1, 1, 1, 2});
  onnx::NodeProto* node = builder.Node("Resize", {"x", "", "scales"}, {"y"});
  SetString("coordinate_transformation_mode", "asymmetric", node);
  SetString("nearest_mode", "floor", node);
  EXPECT_THAT(OfSmallImage(builder), ElementsAre(1, 1, 2, 2, 3, 3, 4, 4));
}

TEST(ImportOnnx, ResizesImagesToTheExtentsOfOthers) {
  ModelBuilder builder;
  // The shape of x, which only a run knows, twice as high.
  builder.Ints("factors", {1, 1, 2, 1});
  builder.Node("Shape", {"x"}, {"shape"});
  builder.Node("Mul", {"shape", "factors"}, {"sizes"});
  onnx::NodeProto* node = builder.Node("Resize", {"x", "", "", "sizes"}, {"y"});
  SetString("mode", "linear", node);
  SetString("coordinate_transformation_mode", "pytorch_half_pixel", node);
  EXPECT_THAT(OfSmallImage(builder), ElementsAre(1, 2, 1.5, 2.5, 2.5, 3.5, 3, 4));
}

TEST(ImportOnnx, RefusesARunWithSizesOfAnotherBatch) {
  ModelBuilder builder;
  builder.Input("x", {-1, 1, -1, -1});
  builder.Input("of", {-1, 1, -1, -1});
  builder.Node("Shape", {"of"}, {"sizes"});
  onnx::NodeProto* node = builder.Node("Resize", {"x", "", "", "sizes"}, {"y"});
  SetString("coordinate_transformation_mode", "asymmetric", node);
  SetString("nearest_mode", "floor", node);
  builder.Output("y", {-1, 1, -1, -1});
  Executor exe;
  const InferenceModel model = Imported(builder, &exe);
  const auto run = [&](int64_t batch) {
    const FeedList feeds = {{"x", Tensor::FromValues<float>({1, 1, 1, 2}, {1, 2})},
                            {"of", Tensor(Shape({batch, 1, 2, 2}), DType::kFloat32)}};
    return exe.Run(*model.program, feeds, {"y"})[0].ToVector<float>();
  };
  EXPECT_THAT(run(1), ElementsAre(1, 2, 1, 2));
  EXPECT_THROW(run(2), Error);
}

// The column of 0 … 8 that is the only one left.
float OnlyColumn(const std::function<void(ModelBuilder*)>& add_resize) {
  ModelBuilder builder;
  builder.Input("x", {1, 9});
  add_resize(&builder);
  builder.Output("y", {1, -1});
  Executor exe;
  const InferenceModel model = Imported(builder, &exe);
  const Tensor x = Tensor::FromValues<float>({1, 9}, {0, 1, 2, 3, 4, 5, 6, 7, 8});
  return exe.Run(*model.program, {{"x", x}}, {"y"})[0].data<float>()[0];
}

TEST(ImportOnnx, ResizesByTheExactRatioOfSizes) {
  EXPECT_EQ(OnlyColumn([](ModelBuilder* builder) {
              builder->Ints("sizes", {1, 1});
              onnx::NodeProto* node = builder->Node("Resize", {"x", "", "", "sizes"}, {"y"});
              SetString("nearest_mode", "floor", node);
            }),
            4);
}

TEST(ImportOnnx, OldResizeRoundsUpWhereElementsBecomeFewer) {
  ModelBuilder builder;
  builder.model.mutable_opset_import(0)->set_version(10);
  builder.Input("x", {1, 4});
  builder.Floats("scales", {2}, {1, 0.6f});
  builder.Node("Resize", {"x", "scales"}, {"y"});
  builder.Output("y", {1, 2});
  Executor exe;
  const InferenceModel model = Imported(builder, &exe);
  const Tensor x = Tensor::FromValues<float>({1, 4}, {1, 2, 3, 4});
  EXPECT_THAT(exe.Run(*model.program, {{"x", x}}, {"y"})[0].ToVector<float>(), ElementsAre(1, 3));
}

TEST(ImportOnnx, PadsImagesOfUnknownExtents) {
  ModelBuilder builder;
  builder.Ints("pads", {0, 0, 0, 1, 0, 0, 0, 0});
  SetString("mode", "reflect", builder.Node("Pad", {"x", "pads"}, {"y"}));
  EXPECT_THAT(OfSmallImage(builder), ElementsAre(2, 1, 2, 4, 3, 4));
}

TEST(ImportOnnx, PoolsImagesOfUnknownExtents) {
  ModelBuilder builder;
  onnx::NodeProto* node = builder.Node("MaxPool", {"x"}, {"y"});
  SetInts("kernel_shape", {2, 2}, node);
  SetString("auto_pad", "SAME_UPPER", node);
  EXPECT_THAT(OfSmallImage(builder), ElementsAre(4, 4, 4, 4));
}

TEST(ImportOnnx, RoundsThePlacesOfWindowsUp) {
  ModelBuilder builder;
  onnx::NodeProto* node = builder.Node("AveragePool", {"x"}, {"y"});
  SetInts("kernel_shape", {2, 1}, node);
  SetInts("strides", {2, 2}, node);
  SetInt("ceil_mode", 1, node);
  // A stride above the kernel may begin a window behind the image.
  EXPECT_THAT(Refusal(ErrorCode::kUnimplemented,
                      [&] {
                        ModelBuilder model = builder;
                        model.Input("x", {1, 1, -1, -1});
                        model.Output("y", {1, 1, -1, -1});
                        return model;
                      }()),
              HasSubstr("whose extent only a run knows"));
  SetInts("kernel_shape", {2, 2}, node);
  node->mutable_attribute()->DeleteSubrange(0, 1);
  EXPECT_THAT(OfSmallImage(builder), ElementsAre(2.5));
}

TEST(ImportOnnx, TakesPlacesThatDependOnData) {
  ModelBuilder builder;
  builder.Floats("limit", {}, {2});
  builder.Node("Greater", {"x", "limit"}, {"is_large"});
  builder.Ints("all", {-1});
  builder.Node("Reshape", {"is_large", "all"}, {"places"});
  builder.Node("Compress", {"x", "places"}, {"taken"});
  builder.Ints("image", {1, 1, 1, -1});
  builder.Node("Reshape", {"taken", "image"}, {"y"});
  EXPECT_THAT(OfSmallImage(builder), ElementsAre(3, 4));
}

TEST(ImportOnnx, JoinsShapesWithNothing) {
  ModelBuilder builder;
  builder.Ints("nothing", {});
  builder.Node("Shape", {"x"}, {"shape"});
  SetInt("axis", 0, builder.Node("Concat", {"nothing", "shape"}, {"joined"}));
  builder.Node("Expand", {"x", "joined"}, {"y"});
  EXPECT_THAT(OfSmallImage(builder), ElementsAre(1, 2, 3, 4));
}

TEST(ImportOnnx, TakesDimsThatTheFileLeavesOpen) {
  const ModelBuilder builder = SmallModel();
  Executor exe;
  const InferenceModel model = Imported(builder, &exe, {.feed_dims = {{"x", {5, 2}}}});
  EXPECT_EQ(model.program->root()->GetVar("y")->dims, (std::vector<int64_t>{5, 3}));
  Scope scope;
  const auto refusal = [&](ErrorCode code, const OnnxImportOptions& options) {
    return ErrorText(code, [&] { ImportOnnx(Written(builder), &scope, options); });
  };
  EXPECT_THAT(refusal(ErrorCode::kInvalidArgument, {.feed_dims = {{"x", {5, 3}}}}),
              HasSubstr("input \"x\" is of shape [-1, 2], but its dims are to be [5, 3]"));
  EXPECT_THAT(refusal(ErrorCode::kInvalidArgument, {.feed_dims = {{"x", {5}}}}),
              HasSubstr("to be [5]"));
  EXPECT_THAT(refusal(ErrorCode::kNotFound, {.feed_dims = {{"z", {5}}}}),
              HasSubstr("no input \"z\" has dims; there are: x"));
}

TEST(ImportOnnx, TakesTheBranchOfAConstantCondition) {
  for (const bool condition : {true, false}) {
    ModelBuilder builder;
    builder.Input("x", {1});
    builder.edit().Bool("flag", condition);
    onnx::NodeProto* node = builder.Node("If", {"flag"}, {"y"});
    for (const std::string branch : {"then_branch", "else_branch"}) {
      GraphEditor inner = AddGraph(branch, node);
      inner.Node(branch == "then_branch" ? "Abs" : "Neg", {"x"}, {"inner"});
      inner.Outputs({"inner"});
    }
    builder.Output("y", {1});
    Executor exe;
    const InferenceModel model = Imported(builder, &exe);
    const Tensor x = Tensor::FromValues<float>({1}, {3});
    EXPECT_EQ(exe.Compile(*model.program).Run({{"x", x}}, {"y"})[0].Item<float>(),
              condition ? 3 : -3);
  }
}

// Exporters write so what happens to be equal, such as the scales of two normalisations.
TEST(ImportOnnx, MakesTwoParametersOfAnIdentity) {
  ModelBuilder builder;
  builder.Input("x", {1});
  builder.Floats("w", {1}, {2});
  builder.Node("Identity", {"w"}, {"v"});
  builder.Node("Mul", {"x", "w"}, {"a"});
  builder.Node("Mul", {"a", "v"}, {"y"});
  builder.Output("y", {1});
  Executor exe;
  Imported(builder, &exe);
  EXPECT_EQ(exe.scope().Get("v").Item<float>(), 2);
  EXPECT_NE(exe.scope().Get("v").raw_data(), exe.scope().Get("w").raw_data());
}

TEST(ImportOnnx, ReadsManyNodes) {
  ModelBuilder builder;
  builder.Input("x", {1});
  std::string last = "x";
  for (int i = 0; i < 30000; ++i) {
    const std::string next = StrCat("a", i);
    builder.Node("Abs", {last}, {next});
    last = next;
  }
  builder.Output(last, {1});
  Scope scope;
  EXPECT_EQ(ImportOnnx(Written(builder), &scope).program->root()->ops().size(), 30002U);
}

TEST(ImportOnnx, WidensHalfIfAsked) {
  ModelBuilder builder;
  builder.Input("x", {1}, onnx::TensorProto::FLOAT16);
  onnx::TensorProto* w = builder.Ints("w", {});
  w->set_data_type(onnx::TensorProto::FLOAT16);
  w->set_dims(0, 1);
  w->set_raw_data(std::string("\x00\x3e", 2));  // 1.5
  builder.Node("Mul", {"x", "w"}, {"y"});
  builder.Output("y", {1}, onnx::TensorProto::FLOAT16);
  Executor exe;
  const InferenceModel model = Imported(builder, &exe, {.widen_half = true});
  const Tensor x = Tensor::FromValues<float>({1}, {2});
  EXPECT_EQ(exe.Compile(*model.program).Run({{"x", x}}, {"y"})[0].Item<float>(), 3);
}

// As in SegNet: the places of maxima are those in the whole tensor, of any batch.
TEST(ImportOnnx, PutsMaximaBackToTheirPlaces) {
  ModelBuilder builder;
  builder.Input("x", {-1, 2, 2, 4});
  const auto set_windows = [](onnx::NodeProto* node) {
    for (const char* name : {"kernel_shape", "strides"}) {
      onnx::AttributeProto* attribute = node->add_attribute();
      attribute->set_name(name);
      attribute->set_type(onnx::AttributeProto::INTS);
      for (int i = 0; i < 2; ++i) attribute->add_ints(2);
    }
  };
  set_windows(builder.Node("MaxPool", {"x"}, {"pooled", "places"}));
  set_windows(builder.Node("MaxUnpool", {"pooled", "places"}, {"y"}));
  builder.Output("y", {-1, 2, 2, 4});
  builder.Output("places", {-1, 2, 1, 2}, onnx::TensorProto::INT64);
  Executor exe;
  const InferenceModel model = Imported(builder, &exe);
  CompiledProgram program = exe.Compile(*model.program);
  const Tensor two =
      Tensor::FromValues<float>({2, 2, 2, 4}, {1, 2, 3, 4, 8, 7, 6, 5, 0, 9, 0, 0, 0, 0, 0, 9,
                                               1, 2, 3, 4, 8, 7, 6, 5, 0, 9, 0, 0, 0, 0, 0, 9});
  const auto results = program.Run({{"x", two}}, {"y", "places"});
  EXPECT_THAT(results[0].ToVector<float>(),
              ElementsAre(0, 0, 0, 0, 8, 0, 6, 0, 0, 9, 0, 0, 0, 0, 0, 9,  //
                          0, 0, 0, 0, 8, 0, 6, 0, 0, 9, 0, 0, 0, 0, 0, 9));
  EXPECT_THAT(results[1].ToVector<int64_t>(), ElementsAre(4, 6, 9, 15, 20, 22, 25, 31));
  const Tensor one = Tensor::FromValues<float>({1, 2, 2, 4}, std::vector<float>(16, 1.0f));
  EXPECT_THAT(program.Run({{"x", one}}, {"places"})[0].ToVector<int64_t>(),
              ElementsAre(0, 2, 8, 10));
}

TEST(ImportOnnx, ReversesSequencesOfAnyBatch) {
  ModelBuilder builder;
  builder.Input("x", {3, -1, 2});
  builder.Input("lengths", {-1}, onnx::TensorProto::INT64);
  builder.Node("ReverseSequence", {"x", "lengths"}, {"y"});
  builder.Output("y", {3, -1, 2});
  Executor exe;
  const InferenceModel model = Imported(builder, &exe);
  CompiledProgram program = exe.Compile(*model.program);
  const Tensor x = Tensor::FromValues<float>({3, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const auto run = [&](int64_t first, int64_t second) {
    const Tensor lengths = Tensor::FromValues<int64_t>({2}, {first, second});
    return program.Run({{"x", x}, {"lengths", lengths}}, {"y"})[0].ToVector<float>();
  };
  EXPECT_THAT(run(2, 3), ElementsAre(5, 6, 11, 12, 1, 2, 7, 8, 9, 10, 3, 4));
  EXPECT_THAT(run(1, 0), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
  EXPECT_THAT(ErrorText(ErrorCode::kOutOfRange, [&] { run(4, 1); }), HasSubstr("outside [0, 3)"));
}

TEST(ImportOnnx, ListsAllThatIsUnsupported) {
  ModelBuilder builder;
  builder.Input("x", {1});
  builder.Node("StringNormalizer", {"x"}, {"a"});
  builder.Node("Abs", {"a"}, {"b"});  // only depends on the node before
  builder.Node("Fancy", {"b"}, {"y"})->set_domain("com.example");
  builder.Output("y", {1});
  const std::string text = Refusal(ErrorCode::kUnimplemented, builder);
  EXPECT_THAT(text, HasSubstr("2 parts of the model"));
  EXPECT_THAT(text, HasSubstr("StringNormalizer (ai.onnx 17) \"StringNormalizer_of_a\""));
  EXPECT_THAT(text, HasSubstr("Fancy (com.example"));
}

TEST(ImportOnnx, RefusesOtherVersions) {
  ModelBuilder builder = SmallModel();
  builder.model.mutable_opset_import(0)->set_version(6);
  EXPECT_THAT(Refusal(ErrorCode::kUnimplemented, builder), HasSubstr("opset 6"));
  builder.model.mutable_opset_import(0)->set_version(17);
  builder.model.set_ir_version(99);
  EXPECT_THAT(Refusal(ErrorCode::kUnimplemented, builder), HasSubstr("IR version 99"));
}

TEST(ImportOnnx, RefusesGraphsThatAreNone) {
  ModelBuilder cycle;
  cycle.Input("x", {1});
  cycle.Node("Add", {"x", "b"}, {"a"});
  cycle.Node("Abs", {"a"}, {"b"});
  cycle.Output("b", {1});
  EXPECT_THAT(Refusal(ErrorCode::kInvalidArgument, cycle), HasSubstr("cycle"));
  ModelBuilder missing;
  missing.Node("Abs", {"nothing"}, {"y"});
  missing.Output("y", {1});
  EXPECT_THAT(Refusal(ErrorCode::kInvalidArgument, missing), HasSubstr("\"nothing\""));
  ModelBuilder twice = SmallModel();
  twice.Node("Abs", {"x"}, {"sum"});
  EXPECT_THAT(Refusal(ErrorCode::kInvalidArgument, twice), HasSubstr("\"sum\""));
}

TEST(ImportOnnx, RefusesShapesThatLie) {
  ModelBuilder output = SmallModel();
  output.graph().clear_output();
  output.Output("y", {-1, 4});
  EXPECT_THAT(Refusal(ErrorCode::kInvalidArgument, output), HasSubstr("[-1, 3]"));
  ModelBuilder weight = SmallModel();
  weight.graph().mutable_initializer(0)->set_dims(0, int64_t{1} << 40);
  EXPECT_THAT(Refusal(ErrorCode::kDataLoss, weight), HasSubstr("\"w\""));
  ModelBuilder negative = SmallModel();
  negative.graph().mutable_initializer(0)->set_dims(0, -2);
  EXPECT_THAT(Refusal(ErrorCode::kDataLoss, negative), HasSubstr("-2"));
}

// Makes the weights of a model external, 24 bytes of the file `location`.
ModelBuilder ExternalModel(const std::string& location) {
  ModelBuilder builder = SmallModel();
  onnx::TensorProto* w = builder.graph().mutable_initializer(0);
  w->clear_float_data();
  w->set_data_location(onnx::TensorProto::EXTERNAL);
  for (const auto& [key, value] : {std::pair<std::string, std::string>{"location", location},
                                   {"offset", "4"},
                                   {"length", "24"}}) {
    auto* entry = w->add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  }
  return builder;
}

TEST(ImportOnnx, ReadsExternalDataInItsFolderOnly) {
  const std::vector<float> numbers = {0, 1, 2, 3, 4, 5, 6};
  const std::string bytes(reinterpret_cast<const char*>(numbers.data()), 28);
  AtomicWriteFile(PathFor("weights.bin"), bytes);
  Executor exe;
  Imported(ExternalModel("weights.bin"), &exe);
  EXPECT_THAT(exe.scope().Get("w").ToVector<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
  std::filesystem::create_symlink("/etc/hostname", PathFor("link.bin"));
  for (const std::string location :
       {"../weights.bin", "/etc/hostname", "a/../../weights.bin", "link.bin", ""}) {
    EXPECT_THAT(Refusal(ErrorCode::kInvalidArgument, ExternalModel(location)), HasSubstr("folder"))
        << location;
  }
  EXPECT_THAT(Refusal(ErrorCode::kNotFound, ExternalModel("none.bin")), HasSubstr("none.bin"));
  AtomicWriteFile(PathFor("weights.bin"), bytes.substr(0, 20));
  EXPECT_THAT(Refusal(ErrorCode::kDataLoss, ExternalModel("weights.bin")), HasSubstr("24 bytes"));
}

// Imports a file of these bytes; whether it is a model.
bool Imports(const std::string& bytes) {
  AtomicWriteFile(PathFor("damaged.onnx"), bytes);
  Scope scope;
  try {
    ImportOnnx(PathFor("damaged.onnx"), &scope);
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST(ImportOnnx, TruncatedFilesAreErrors) {
  const std::string bytes = ReadFile(Written(SmallModel()));
  ASSERT_TRUE(Imports(bytes));
  for (size_t length = 0; length < bytes.size(); ++length) {
    // Without the last message, the version of the ops, it is no model either.
    EXPECT_FALSE(Imports(bytes.substr(0, length))) << length << " bytes";
  }
}

TEST(ImportOnnx, CorruptBytesGiveAModelOrAnError) {
  const std::string bytes = ReadFile(Written(SmallModel()));
  size_t models = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const int flip : {0x01, 0x10, 0x80, 0xFF}) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      models += Imports(damaged);
    }
  }
  EXPECT_LT(models, bytes.size() * 4);
}

TEST(ImportOnnx, DeepNestingIsAnError) {
  ModelBuilder builder = SmallModel();
  onnx::GraphProto* graph = &builder.graph();
  for (int depth = 0; depth < 200; ++depth) {
    onnx::NodeProto* node = graph->add_node();
    node->set_op_type("If");
    onnx::AttributeProto* attribute = node->add_attribute();
    attribute->set_name("then_branch");
    attribute->set_type(onnx::AttributeProto::GRAPH);
    graph = attribute->mutable_g();
  }
  EXPECT_THAT(Refusal(ErrorCode::kDataLoss, builder), HasSubstr("ModelProto"));
}

}  // namespace
}  // namespace skiff
