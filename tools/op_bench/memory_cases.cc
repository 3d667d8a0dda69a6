#include "tools/op_bench/memory_cases.h"

#include <string>
#include <utility>
#include <vector>

namespace skiff {
namespace {

using harness::Array;
using harness::Arrays;
using harness::CaseList;
using harness::Integers;
using harness::OpCase;
using harness::Uniform;

using Outputs = std::vector<std::pair<std::string, int>>;

class Cases {
 public:
  void Add(const std::string& type, const std::string& name, Arrays inputs, const Outputs& outputs,
           AttributeMap attrs = {}) {
    OpCase one;
    one.type = type;
    one.name = name;
    one.inputs = std::move(inputs);
    one.outputs = outputs;
    one.attrs = std::move(attrs);
    one.benchmark_only = true;
    list_.push_back(std::move(one));
  }

  // Adds an op X -> Out and its gradient op, which reads Out@GRAD and `saved`: "X", "Out" or
  // nothing.
  void AddUnary(const std::string& type, const std::string& saved, AttributeMap attrs = {}) {
    const Shape shape{1 << 24};
    Add(type, "16m", {{"X", {Positive(shape, 1)}}}, {{"Out", 1}}, attrs);
    Arrays inputs = {{"Out@GRAD", {Uniform(shape, 2)}}};
    if (!saved.empty()) inputs[saved] = {Positive(shape, 1)};
    Add(type + "_grad", "16m", std::move(inputs), {{"X@GRAD", 1}}, std::move(attrs));
  }

  // Positive values, valid for square roots, as divisors and as variances.
  static Array Positive(const Shape& shape, uint64_t seed) {
    return Uniform(shape, seed, 0.1, 1.0);
  }

  CaseList Take() { return std::move(list_); }

 private:
  CaseList list_;
};

void AddElementwise(Cases* cases) {
  cases->AddUnary("relu", "Out");
  cases->AddUnary("sigmoid", "Out");
  cases->AddUnary("tanh", "Out");
  cases->AddUnary("gelu", "X");
  cases->AddUnary("exp", "Out");
  cases->AddUnary("sqrt", "Out");
  cases->AddUnary("square", "X");
  const Array x = Cases::Positive({4096, 4096}, 1);
  const Array y = Cases::Positive({4096, 4096}, 2);
  for (const char* type : {"elementwise_add", "elementwise_mul", "elementwise_div"}) {
    cases->Add(type, "4096x4096", {{"X", {x}}, {"Y", {y}}}, {{"Out", 1}});
  }
  cases->Add("elementwise_add", "row_4096x4096", {{"X", {x}}, {"Y", {Cases::Positive({4096}, 3)}}},
             {{"Out", 1}});
  cases->Add("elementwise_mul_grad", "4096x4096", {{"X", {x}}, {"Y", {y}}, {"Out@GRAD", {x}}},
             {{"X@GRAD", 1}, {"Y@GRAD", 1}});
  cases->Add("elementwise_add_grad", "row_4096x4096",
             {{"X", {x}}, {"Y", {Cases::Positive({4096}, 3)}}, {"Out@GRAD", {x}}},
             {{"X@GRAD", 1}, {"Y@GRAD", 1}});
  cases->Add("scale", "4096x4096", {{"X", {x}}}, {{"Out", 1}}, {{"scale", 0.5f}, {"bias", 1.0f}});
  cases->Add("clip", "4096x4096", {{"X", {x}}}, {{"Out", 1}}, {{"min", 0.2f}, {"max", 0.8f}});
  cases->Add("sum", "3_of_4096x4096", {{"X", {x, y, x}}}, {{"Out", 1}});
  cases->Add("dropout", "4096x4096", {{"X", {x}}}, {{"Out", 1}, {"Mask", 1}},
             {{"dropout_prob", 0.1f}, {"dropout_implementation", std::string("upscale_in_train")}});
}

// Along rows, along columns, and over everything: three different memory access patterns.
void AddReductions(Cases* cases) {
  const Array x = Uniform({4096, 4096}, 1);
  const std::vector<std::pair<std::string, int32_t>> axes = {{"rows", 1}, {"columns", 0}};
  for (const char* type : {"reduce_sum", "reduce_mean", "reduce_max"}) {
    for (const auto& [name, axis] : axes) {
      cases->Add(type, name + "_4096x4096", {{"X", {x}}}, {{"Out", 1}},
                 {{"dim", std::vector<int32_t>{axis}}});
    }
    cases->Add(type, "all_4096x4096", {{"X", {x}}}, {{"Out", 1}}, {{"reduce_all", true}});
  }
  cases->Add("squared_l2_norm", "4096x4096", {{"X", {x}}}, {{"Out", 1}});
  cases->Add("arg_max", "rows_4096x4096", {{"X", {x}}}, {{"Out", 1}}, {{"axis", int64_t{-1}}});
  cases->Add("cumsum", "rows_4096x4096", {{"X", {x}}}, {{"Out", 1}}, {{"axis", 1}});
}

void AddNormalizations(Cases* cases) {
  const Shape rows{16384, 1024};
  const Array x = Uniform(rows, 1);
  for (const char* type : {"softmax", "log_softmax"}) {
    cases->Add(type, "16384x1024", {{"X", {x}}}, {{"Out", 1}});
    cases->Add(std::string(type) + "_grad", "16384x1024",
               {{"Out", {Cases::Positive(rows, 2)}}, {"Out@GRAD", {x}}}, {{"X@GRAD", 1}});
  }
  cases->Add("softmax_with_cross_entropy", "16384x1024",
             {{"Logits", {x}}, {"Label", {Integers({16384, 1}, 3, 0, 1024)}}},
             {{"Softmax", 1}, {"Loss", 1}});
  const Array lines = Cases::Positive({1024}, 4);
  const Array row_lines = Cases::Positive({16384}, 5);
  cases->Add("layer_norm", "16384x1024", {{"X", {x}}, {"Scale", {lines}}, {"Bias", {lines}}},
             {{"Y", 1}, {"Mean", 1}, {"Variance", 1}});
  cases->Add("layer_norm_grad", "16384x1024",
             {{"X", {x}},
              {"Scale", {lines}},
              {"Bias", {lines}},
              {"Mean", {row_lines}},
              {"Variance", {row_lines}},
              {"Y@GRAD", {x}}},
             {{"X@GRAD", 1}, {"Scale@GRAD", 1}, {"Bias@GRAD", 1}});
  const Array images = Uniform({64, 64, 64, 64}, 6);
  const Array channels = Cases::Positive({64}, 7);
  cases->Add(
      "batch_norm", "64x64x64x64",
      {{"X", {images}},
       {"Scale", {channels}},
       {"Bias", {channels}},
       {"Mean", {channels}},
       {"Variance", {channels}}},
      {{"Y", 1}, {"MeanOut", 1}, {"VarianceOut", 1}, {"SavedMean", 1}, {"SavedVariance", 1}});
  cases->Add("batch_norm_grad", "64x64x64x64",
             {{"X", {images}},
              {"Scale", {channels}},
              {"SavedMean", {channels}},
              {"SavedVariance", {channels}},
              {"Y@GRAD", {images}}},
             {{"X@GRAD", 1}, {"Scale@GRAD", 1}, {"Bias@GRAD", 1}});
}

// Ops that only move elements. The transposes differ in the length of the rows that stay
// contiguous: none, 64 floats (heads of attention), and channels between images.
void AddMoves(Cases* cases) {
  const Array square = Uniform({4096, 4096}, 1);
  const Array images = Uniform({64, 64, 64, 64}, 2);
  cases->Add("assign", "4096x4096", {{"X", {square}}}, {{"Out", 1}});
  const auto transpose = [&](const std::string& name, const Array& x, std::vector<int32_t> axis) {
    cases->Add("transpose2", name, {{"X", {x}}}, {{"Out", 1}, {"XShape", 1}},
               {{"axis", std::move(axis)}});
  };
  transpose("4096x4096", square, {1, 0});
  transpose("channels_last_64x64x64x64", images, {0, 2, 3, 1});
  transpose("heads_16x512x32x64", Uniform({16, 512, 32, 64}, 3), {0, 2, 1, 3});
  const Array table = Uniform({65536, 256}, 4);
  const Array ids = Integers({65536}, 5, 0, 65536);
  cases->Add("gather", "rows_65536x256", {{"X", {table}}, {"Index", {ids}}}, {{"Out", 1}});
  cases->Add("lookup_table_v2", "65536x256", {{"W", {table}}, {"Ids", {ids}}}, {{"Out", 1}});
  cases->Add("concat", "2_of_4096x4096_on_axis_1", {{"X", {square, square}}}, {{"Out", 1}},
             {{"axis", 1}});
  cases->Add("slice", "half_of_4096x4096", {{"Input", {square}}}, {{"Out", 1}},
             {{"axes", std::vector<int32_t>{1}},
              {"starts", std::vector<int32_t>{0}},
              {"ends", std::vector<int32_t>{2048}}});
  // The input stays float32 whatever --dtype is, since in_dtype (5: float32, 22: bfloat16) says so.
  Array single = square;
  single.fixed_dtype = true;
  single.dtype = DType::kFloat32;
  cases->Add("cast", "float32_to_bfloat16_4096x4096", {{"X", {single}}}, {{"Out", 1}},
             {{"in_dtype", 5}, {"out_dtype", 22}});
}

void AddUpdates(Cases* cases) {
  const Shape shape{1 << 24};
  const Array one = Cases::Positive({1}, 9);
  const Array parameter = Uniform(shape, 1);
  const Array gradient = Uniform(shape, 2);
  const Array moment = Cases::Positive(shape, 3);
  cases->Add("momentum", "16m",
             {{"Param", {parameter}},
              {"Grad", {gradient}},
              {"Velocity", {moment}},
              {"LearningRate", {one}}},
             {{"ParamOut", 1}, {"VelocityOut", 1}}, {{"mu", 0.9f}});
  cases->Add("adam", "16m",
             {{"Param", {parameter}},
              {"Grad", {gradient}},
              {"Moment1", {moment}},
              {"Moment2", {moment}},
              {"LearningRate", {one}},
              {"Beta1Pow", {one}},
              {"Beta2Pow", {one}}},
             {{"ParamOut", 1},
              {"Moment1Out", 1},
              {"Moment2Out", 1},
              {"Beta1PowOut", 1},
              {"Beta2PowOut", 1}});
}

}  // namespace

CaseList MemoryCases() {
  Cases cases;
  AddElementwise(&cases);
  AddReductions(&cases);
  AddNormalizations(&cases);
  AddMoves(&cases);
  AddUpdates(&cases);
  return cases.Take();
}

}  // namespace skiff
