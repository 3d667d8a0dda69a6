// Ops with indices: errors, and shapes with unknown dims.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/infer_outputs.h"
#include "framework/op/registry.h"
#include "tests/operators/tensor/tensor_ops_fixture.h"

namespace skiff {
namespace {

Op LookupOp(const std::string& type) {
  Op op(type);
  op.SetInput("Ids", {"ids"}).SetInput("W", {"w"});
  if (!type.ends_with("_grad")) return op.SetOutput("Out", {"out"});
  return op.SetInput("Out@GRAD", {"gradient"}).SetOutput("W@GRAD", {"dw"});
}

TEST_F(TensorOps, LookupTablesRefuseATableOnAServer) {
  const auto expect_refusal = [&](Op op, const char* attribute, const Attribute& value) {
    try {
      CheckOp(registry_.Get(op.type), op.SetAttr(attribute, value));
      ADD_FAILURE() << op.type << " takes " << attribute;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnimplemented);
      EXPECT_NE(std::string(error.what()).find(attribute), std::string::npos) << error.what();
    }
  };
  for (const char* type :
       {"lookup_table", "lookup_table_grad", "lookup_table_v2", "lookup_table_v2_grad"}) {
    EXPECT_NO_THROW(CheckOp(registry_.Get(type), LookupOp(type).SetAttr("is_distributed", false)));
    expect_refusal(LookupOp(type), "is_distributed", true);
  }
  for (const char* type : {"lookup_table", "lookup_table_grad"}) {
    const std::vector<std::string> servers = {"10.0.0.1:6174"};
    EXPECT_NO_THROW(
        CheckOp(registry_.Get(type), LookupOp(type).SetAttr("epmap", std::vector<std::string>{})));
    expect_refusal(LookupOp(type), "epmap", servers);
  }
}

// PaddlePaddle sets remote_prefetch in every program with a sparse table.
TEST_F(TensorOps, LookupTablesTakeTheHintOfSparseTables) {
  for (const char* type :
       {"lookup_table", "lookup_table_grad", "lookup_table_v2", "lookup_table_v2_grad"}) {
    Op op = LookupOp(type);
    op.SetAttr("is_sparse", true).SetAttr("remote_prefetch", true);
    EXPECT_NO_THROW(CheckOp(registry_.Get(type), op)) << type;
  }
}

// Runs lookup_table_v2 on three ids over a table of four rows.
void LookUp(const OpRegistry& registry, std::vector<int64_t> ids) {
  Op op("lookup_table_v2");
  op.SetInput("Ids", {"ids"}).SetInput("W", {"w"}).SetOutput("Out", {"out"});
  const TensorMeta ids_meta{.shape = {3}, .dtype = DType::kInt64};
  const TensorMeta table_meta{.shape = {4, 2}};
  PrepareContext context(op, registry.Get(op.type), {ids_meta, table_meta},
                         {TensorMeta{.shape = {3, 2}}});
  const auto kernel = registry.SelectKernel(context).prepare(context);
  Tensor id_tensor = Tensor::FromValues<int64_t>({3}, ids);
  Tensor table = Tensor::FromValues<float>({4, 2}, std::vector<float>(8, 1.0f));
  Tensor out({3, 2}, DType::kFloat32);
  KernelContext run;
  run.inputs = {&id_tensor, &table};
  run.outputs = {&out};
  kernel->Run(run);
}

TEST_F(TensorOps, LookupTableNamesAnIdOutsideTheTable) {
  EXPECT_NO_THROW(LookUp(registry_, {0, 3, 1}));
  for (const int64_t bad : {int64_t{4}, int64_t{-1}, int64_t{1} << 40}) {
    try {
      LookUp(registry_, {0, bad, 1});
      FAIL() << "expected an Error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kOutOfRange);
      EXPECT_NE(std::string(error.what()).find("Ids[1]"), std::string::npos) << error.what();
    }
  }
}

TEST_F(TensorOps, OpsWithIndicesNameOneOutsideTheTensor) {
  Tensor x = Tensor::FromValues<float>({3, 2}, {0, 1, 2, 3, 4, 5});
  Tensor out({4, 2}, DType::kFloat32);
  const Op gather = OpOf("gather", {"X", "Index"});
  const Op select = OpOf("index_select", {"X", "Index"});
  const Op nd = OpOf("gather_nd", {"X", "Index"});
  for (const int64_t bad : {int64_t{3}, int64_t{-1}, int64_t{1} << 40}) {
    Tensor index = Tensor::FromValues<int64_t>({4}, {0, 2, bad, 1});
    const std::string expected = StrCat("Index[2] = ", bad, " is outside [0, 3)");
    EXPECT_EQ(RunError(registry_, gather, {&x, &index}, {&out}), "gather: " + expected);
    EXPECT_EQ(RunError(registry_, select, {&x, &index}, {&out}), "index_select: " + expected);
    Tensor tuples = Tensor::FromValues<int64_t>({4, 1}, {0, 2, bad, 1});
    EXPECT_EQ(RunError(registry_, nd, {&x, &tuples}, {&out}),
              StrCat("gather_nd: index 0 of tuple 2 in Index is ", bad, ", outside [0, 3)"));
  }
  // The index of the last dim, not of the flat tensor.
  Tensor pairs = Tensor::FromValues<int64_t>({1, 2}, {0, 2});
  Tensor one({1}, DType::kFloat32);
  EXPECT_EQ(RunError(registry_, nd, {&x, &pairs}, {&one}),
            "gather_nd: index 1 of tuple 0 in Index is 2, outside [0, 2)");
}

TEST_F(TensorOps, AScatterThatFailsLeavesWhatItWorksOn) {
  const std::vector<float> before = {0, 1, 2, 3, 4, 5};
  Tensor x = Tensor::FromValues<float>({3, 2}, before);
  Tensor updates = Tensor::FromValues<float>({2, 2}, {9, 9, 9, 9});
  Tensor ids = Tensor::FromValues<int32_t>({2}, {1, 3});
  Tensor tuples = Tensor::FromValues<int32_t>({2, 1}, {1, 3});
  const Op scatter = OpOf("scatter", {"X", "Ids", "Updates"});
  EXPECT_EQ(RunError(registry_, scatter, {&x, &ids, &updates}, {&x}),
            "scatter: Ids[1] = 3 is outside [0, 3)");
  EXPECT_EQ(x.ToVector<float>(), before);
  const Op add = OpOf("scatter_nd_add", {"X", "Index", "Updates"});
  EXPECT_NE(RunError(registry_, add, {&x, &tuples, &updates}, {&x}), "");
  EXPECT_EQ(x.ToVector<float>(), before);
}

TEST_F(TensorOps, OpsWithIndicesNameShapesThatDoNotFit) {
  Declare("X", {4, 6});
  Declare("V", {4});
  Declare("Index", {3, 2}, DType::kInt64);
  Declare("Ids", {3}, DType::kInt64);
  Declare("Updates", {3, 5});
  ExpectInferenceError(OpOf("gather", {"X", "Index"}),
                       "Index has shape [3, 2], expected [], [m] or [m, 1]");
  Op gather = OpOf("gather", {"X"}, {{"axis", -1}});
  ExpectInferenceError(gather.SetInput("Index", {"Ids"}), "axis = -1 is outside [0, 2)");
  Op nd = OpOf("gather_nd", {"Index"});
  ExpectInferenceError(nd.SetInput("X", {"V"}), "Index has shape [3, 2], whose last dim");
  ExpectInferenceError(OpOf("scatter", {"X", "Ids", "Updates"}),
                       "Updates is float32 [3, 5], expected float32 [3, 6]");
  ExpectInferenceError(OpOf("scatter_nd_add", {"X", "Index", "Updates"}),
                       "Updates is float32 [3, 5]");
}

TEST_F(TensorOps, GatherKeepsWhatIsKnownOfRows) {
  Declare("X", {-1, 4}, DType::kFloat32, 2);
  Declare("Index", {-1}, DType::kInt64);
  EXPECT_EQ(Infer(OpOf("gather", {"X", "Index"}, {{"axis", 1}})), (Dims{-1, -1}));
  EXPECT_EQ(LodLevel(OpOf("gather", {"X", "Index"}, {{"axis", 1}})), 2);
  EXPECT_EQ(LodLevel(OpOf("gather", {"X", "Index"})), 0);
  EXPECT_EQ(LodLevel(OpOf("index_select", {"X", "Index"}, {{"dim", -1}})), 2);
}

TEST_F(TensorOps, OneHotNamesAnIndexOutsideTheDepth) {
  Tensor x = Tensor::FromValues<int64_t>({2}, {1, 3});
  Tensor out({2, 3}, DType::kFloat32);
  const Op op = OpOf("one_hot_v2", {"X"}, {{"depth", 3}});
  EXPECT_EQ(RunError(registry_, op, {&x}, {&out}), "one_hot_v2: X[1] = 3 is outside [0, 3)");
}

TEST_F(TensorOps, OneHotTakesIndices) {
  Declare("X", {4, 6});
  ExpectInferenceError(OpOf("one_hot_v2", {"X"}, {{"depth", 3}}),
                       "X is float32, expected int32 or int64");
  Declare("ids", {-1}, DType::kInt64, 2);
  Op op = OpOf("one_hot_v2", {}, {{"depth", 3}});
  EXPECT_EQ(LodLevel(op.SetInput("X", {"ids"})), 2);
}

TEST_F(TensorOps, SetValueRefusesValuesThatDoNotFit) {
  using Longs = std::vector<int64_t>;
  Declare("X", {4, 3}, DType::kInt32);
  Declare("V", {2, 2}, DType::kInt32);
  Declare("F", {3});
  const auto error = [&](const char* value, const Longs& dropped,
                         const std::vector<double>& values) {
    Op op = OpOf("set_value", {},
                 {{"axes", Longs{0}},
                  {"starts", Longs{1}},
                  {"ends", Longs{3}},
                  {"steps", Longs{1}},
                  {"decrease_axes", dropped},
                  {"values", values},
                  {"shape", Longs{1}}});
    op.SetInput("Input", {"X"});
    if (value != nullptr) op.SetInput("ValueTensor", {value});
    return InferenceError(op);
  };
  EXPECT_EQ(error(nullptr, {}, {7}), "");
  EXPECT_NE(error(nullptr, {}, {}).find("0 values, expected ValueTensor, or 1"), std::string::npos);
  EXPECT_NE(error(nullptr, {}, {1e12}), "");
  EXPECT_NE(error("V", {}, {})
                .find("a value of shape [2, 2] doesn't broadcast to the [2, 3] "
                      "elements that are set: dim 1 should be 3 or 1"),
            std::string::npos);
  EXPECT_NE(error("F", {}, {}).find("ValueTensor is float32, expected int32"), std::string::npos);
  EXPECT_NE(error(nullptr, {0}, {7}).find("decrease_axes names axis 0, along which 2 elements"),
            std::string::npos);
}

TEST_F(TensorOps, UniqueNamesWhatHasNoOrder) {
  Tensor x = Tensor::FromValues<float>({3}, {1, NAN, 2});
  Tensor out;
  Tensor index({3}, DType::kInt64);
  Op op = OpOf("unique", {"X"});
  op.SetOutput("Index", {"index"});
  EXPECT_EQ(RunError(registry_, op, {&x}, {&out, &index}),
            "unique: element 1 of X is NaN, expected numbers");
}

TEST_F(TensorOps, UniqueTakesVectorsUnlessItSorts) {
  Declare("X", {-1, 3});
  Op op = OpOf("unique", {"X"});
  op.SetOutput("Index", {"index"});
  EXPECT_NE(InferenceError(op).find("expected a vector"), std::string::npos);
  EXPECT_EQ(Infer(Op(op).SetAttr("is_sorted", true), "index"), (Dims{-1}));
  EXPECT_EQ(Infer(Op(op).SetAttr("is_sorted", true).SetAttr("axis", Ints{1}), "out"),
            (Dims{-1, -1}));
  EXPECT_EQ(Infer(Op(op).SetAttr("is_sorted", true).SetAttr("axis", Ints{1}), "index"), (Dims{3}));
  EXPECT_NE(InferenceError(Op(op).SetAttr("is_sorted", true).SetAttr("axis", Ints{0, 1})), "");
}

TEST_F(TensorOps, UnpoolNamesWhatDoesNotFit) {
  const AttributeMap halves = {{"ksize", std::vector<int32_t>{2, 2}},
                               {"strides", std::vector<int32_t>{2, 2}}};
  const Op op = OpOf("unpool", {"X", "Indices"}, halves);
  Tensor x = Tensor::FromValues<float>({1, 2, 1, 2}, {1, 2, 3, 4});
  Tensor out({1, 2, 2, 4}, DType::kFloat32);
  Tensor good = Tensor::FromValues<int64_t>({1, 2, 1, 2}, {0, 7, 2, 1});
  EXPECT_EQ(RunError(registry_, op, {&x, &good}, {&out}), "");
  EXPECT_EQ(out.ToVector<float>(),
            (std::vector<float>{1, 0, 0, 0, 0, 0, 0, 2, 0, 4, 3, 0, 0, 0, 0, 0}));
  Tensor bad = Tensor::FromValues<int64_t>({1, 2, 1, 2}, {0, 7, 8, 1});
  EXPECT_NE(
      RunError(registry_, op, {&x, &bad}, {&out}).find("unpool: Indices[2] = 8 is outside [0, 8)"),
      std::string::npos);
  const auto refused = [&](AttributeMap attrs, const TensorMeta& indices) {
    const Op wrong = OpOf("unpool", {"X", "Indices"}, std::move(attrs));
    OpContext context(wrong, registry_.Get("unpool"), {TensorMeta{.shape = {1, 2, 1, 2}}, indices},
                      {TensorMeta{}});
    try {
      InferOutputs(&context);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const TensorMeta indices{.shape = {1, 2, 1, 2}, .dtype = DType::kInt64};
  EXPECT_EQ(refused(halves, indices), "");
  using ::testing::HasSubstr;
  EXPECT_THAT(refused(halves, {.shape = {1, 2, 1, 3}, .dtype = DType::kInt64}),
              HasSubstr("Indices"));
  EXPECT_THAT(refused(halves, {.shape = {1, 2, 1, 2}}), HasSubstr("Indices"));
  const auto with = [&](const char* name, const std::vector<int32_t>& values) {
    AttributeMap attrs = halves;
    attrs[name] = values;
    return attrs;
  };
  EXPECT_THAT(refused(with("ksize", {2}), indices), HasSubstr("ksize = [2]"));
  EXPECT_THAT(refused(with("strides", {0, 2}), indices), HasSubstr("strides = [0, 2]"));
  EXPECT_THAT(refused(with("paddings", {1, 0}), indices), HasSubstr("an output height of 0"));
  EXPECT_THAT(refused(with("output_size", {4, 0}), indices), HasSubstr("output_size = [4, 0]"));
}

}  // namespace
}  // namespace skiff
