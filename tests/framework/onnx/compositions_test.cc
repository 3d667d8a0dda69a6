// What exporters write as several nodes becomes one op, in any order of its parts; what only looks
// like it stays as it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "framework/executor/executor.h"
#include "framework/onnx/import.h"
#include "framework/onnx/model_file.h"
#include "framework/plan/plan.h"
#include "tests/framework/onnx/model_builder.h"
#include "tests/harness/temp_directory.h"

namespace skiff {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Not;
using ::testing::Pointwise;

// A graph with the input x, and what is imported from it.
class Composition : public ModelBuilder {
 public:
  explicit Composition(const std::vector<int64_t>& dims) : dims_(dims) { Input("x", dims); }

  // A number that isn't trained.
  std::string Number(float value, const std::vector<int64_t>& dims = {}) {
    const std::string name = "c" + std::to_string(++count_);
    onnx::NodeProto* node = Node("Constant", {}, {name});
    onnx::AttributeProto* attribute = node->add_attribute();
    attribute->set_name("value");
    attribute->set_type(onnx::AttributeProto::TENSOR);
    attribute->mutable_t()->set_data_type(onnx::TensorProto::FLOAT);
    for (const int64_t dim : dims) attribute->mutable_t()->add_dims(dim);
    attribute->mutable_t()->add_float_data(value);
    return name;
  }
  std::string Of(const std::string& op, const std::vector<std::string>& inputs) {
    const std::string name = "v" + std::to_string(++count_);
    Node(op, inputs, {name});
    return name;
  }
  std::string Transposed(const std::string& x, const std::vector<int64_t>& axes) {
    const std::string name = Of("Transpose", {x});
    onnx::AttributeProto* attribute =
        graph().mutable_node(graph().node_size() - 1)->add_attribute();
    attribute->set_name("perm");
    attribute->set_type(onnx::AttributeProto::INTS);
    for (const int64_t axis : axes) attribute->add_ints(axis);
    return name;
  }
  std::string Reshaped(const std::string& x, const std::vector<int64_t>& dims) {
    const std::string name = "s" + std::to_string(++count_);
    Ints(name, dims);
    return Of("Reshape", {x, name});
  }
  std::string Mean(const std::string& x, const std::vector<int64_t>& axes, bool keeps = true) {
    const std::string name = Of("ReduceMean", {x});
    onnx::NodeProto* node = graph().mutable_node(graph().node_size() - 1);
    onnx::AttributeProto* attribute = node->add_attribute();
    attribute->set_name("axes");
    attribute->set_type(onnx::AttributeProto::INTS);
    for (const int64_t axis : axes) attribute->add_ints(axis);
    SetInt("keepdims", keeps ? 1 : 0, node);
    return name;
  }

  // Makes y the output, and others behind it, and imports the graph.
  void Finish(const std::string& y, const std::vector<std::string>& others = {}) {
    graph().add_output()->set_name(y);
    for (const std::string& name : others) graph().add_output()->set_name(name);
    const TempDirectory directory;
    const std::string path = directory.path() + "/model.onnx";
    WriteOnnxModel(path, model);
    imported_ = ImportOnnx(path, &executor_.scope());
  }

  std::vector<std::string> Types() {
    std::vector<std::string> types;
    BoundProgram bound = executor_.Compile(*imported_.program).Bind({{"x", x()}}, Fetches());
    for (const auto& instruction : bound.plan().instructions) types.push_back(instruction.op->type);
    return types;
  }
  std::vector<float> Result() {
    return executor_.Run(*imported_.program, {{"x", x()}}, Fetches())[0].ToVector<float>();
  }
  // Numbers on both sides of 0.
  skiff::Tensor x() const {
    skiff::Tensor x(Shape{std::span<const int64_t>(dims_)}, DType::kFloat32);
    for (int64_t i = 0; i < x.element_count(); ++i) {
      x.data<float>()[i] = std::sin(static_cast<float>(i) * 2.1f) * 3;
    }
    return x;
  }

 private:
  FetchList Fetches() const { return {imported_.fetch_names.begin(), imported_.fetch_names.end()}; }

  std::vector<int64_t> dims_;
  int count_ = 0;
  Executor executor_{Place::Cpu()};
  InferenceModel imported_;
};

// ---- activations

using Formula = std::function<double(double)>;

void ExpectActivation(const std::function<std::string(Composition&)>& build,
                      const std::string& type, const Formula& formula) {
  Composition model({2, 3});
  model.Finish(build(model));
  EXPECT_THAT(model.Types(), ElementsAre(type));
  std::vector<float> expected;
  for (const float x : model.x().ToVector<float>()) {
    expected.push_back(static_cast<float>(formula(x)));
  }
  EXPECT_THAT(model.Result(), Pointwise(FloatNear(2e-6f), expected));
}

void ExpectNone(const std::function<std::string(Composition&)>& build) {
  Composition model({2, 3});
  model.Finish(build(model));
  for (const char* type : {"gelu", "swish", "hard_swish", "mish", "layer_norm", "rms_norm"}) {
    EXPECT_THAT(model.Types(), Not(Contains(type)));
  }
}

double Gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2))); }
double GeluByTanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

TEST(FindActivations, FindsGeluInAnyOrder) {
  // (x · 0.5) · (1 + erf(x / √2))
  ExpectActivation(
      [](Composition& m) {
        const std::string erf = m.Of("Erf", {m.Of("Div", {"x", m.Number(1.4142135f)})});
        const std::string half = m.Of("Mul", {"x", m.Number(0.5f)});
        return m.Of("Mul", {half, m.Of("Add", {m.Number(1), erf})});
      },
      "gelu", Gelu);
  // x · (0.5 · erf(√½ x) + 0.5), with numbers of rank 1
  ExpectActivation(
      [](Composition& m) {
        const std::string erf = m.Of("Erf", {m.Of("Mul", {m.Number(0.70710677f, {1}), "x"})});
        const std::string scaled = m.Of("Mul", {m.Number(0.5f, {1}), erf});
        return m.Of("Mul", {m.Of("Add", {scaled, m.Number(0.5f, {1})}), "x"});
      },
      "gelu", Gelu);
}

TEST(FindActivations, FindsGeluWithConstantsOfHalf) {
  Composition model({2, 3});
  const auto half = [&](const std::string& x) {
    const std::string cast = model.Of("Cast", {x});
    SetInt("to", onnx::TensorProto::FLOAT16,
           model.graph().mutable_node(model.graph().node_size() - 1));
    return cast;
  };
  const std::string x = half("x");
  const std::string root = half(model.Number(1.4142135f));
  const std::string sum =
      model.Of("Add", {model.Of("Erf", {model.Of("Div", {x, root})}), half(model.Number(1))});
  model.Finish(model.Of("Mul", {half(model.Number(0.5f)), model.Of("Mul", {x, sum})}));
  EXPECT_THAT(model.Types(), Contains("gelu"));
  EXPECT_THAT(model.Types(), Not(Contains("erf")));
}

TEST(FindActivations, FindsGeluByTanh) {
  ExpectActivation(
      [](Composition& m) {
        const std::string cube = m.Of("Pow", {"x", m.Number(3)});
        const std::string inner = m.Of("Add", {"x", m.Of("Mul", {cube, m.Number(0.044715f)})});
        const std::string tanh = m.Of("Tanh", {m.Of("Mul", {m.Number(0.7978846f), inner})});
        return m.Of("Mul", {m.Of("Mul", {"x", m.Number(0.5f)}), m.Of("Add", {tanh, m.Number(1)})});
      },
      "gelu", GeluByTanh);
  // tanh(0.79… · x · (1 + 0.044715 · x · x))
  ExpectActivation(
      [](Composition& m) {
        const std::string square = m.Of("Mul", {m.Of("Mul", {"x", m.Number(0.044715f)}), "x"});
        const std::string scaled = m.Of("Mul", {"x", m.Number(0.7978846f)});
        const std::string one = m.Of("Add", {square, m.Number(1)});
        const std::string tanh = m.Of("Tanh", {m.Of("Mul", {scaled, one})});
        return m.Of("Mul", {m.Of("Mul", {m.Of("Add", {m.Number(1), tanh}), "x"}), m.Number(0.5f)});
      },
      "gelu", GeluByTanh);
}

TEST(FindActivations, FindsSwishHardSwishAndMish) {
  ExpectActivation(
      [](Composition& m) {
        return m.Of("Mul", {m.Of("Sigmoid", {"x"}), "x"});
      },
      "swish", [](double x) { return x / (1 + std::exp(-x)); });
  ExpectActivation(
      [](Composition& m) {
        const std::string shifted = m.Of("Add", {"x", m.Number(3)});
        const std::string clipped = m.Of("Clip", {shifted, m.Number(0), m.Number(6)});
        return m.Of("Div", {m.Of("Mul", {"x", clipped}), m.Number(6)});
      },
      "hard_swish", [](double x) { return x * std::min(std::max(x + 3, 0.0), 6.0) / 6; });
  ExpectActivation(
      [](Composition& m) {
        return m.Of("Mul", {"x", m.Of("Tanh", {m.Of("Softplus", {"x"})})});
      },
      "mish", [](double x) { return x * std::tanh(std::log1p(std::exp(x))); });
}

// The exact gelu with other numbers.
std::string GeluWith(Composition& m, float divisor, float one, float half,
                     const std::vector<int64_t>& dims = {}) {
  const std::string erf = m.Of("Erf", {m.Of("Div", {"x", m.Number(divisor, dims)})});
  const std::string whole = m.Of("Mul", {"x", m.Of("Add", {erf, m.Number(one)})});
  return m.Of("Mul", {whole, m.Number(half)});
}

TEST(FindActivations, LeavesOtherNumbers) {
  ExpectNone([](Composition& m) { return GeluWith(m, 1.414f, 1, 0.5f); });
  ExpectNone([](Composition& m) { return GeluWith(m, 1.4142135f, 1.001f, 0.5f); });
  ExpectNone([](Composition& m) { return GeluWith(m, 1.4142135f, 1, 0.6f); });
  // The result has another rank than x.
  ExpectNone([](Composition& m) { return GeluWith(m, 1.4142135f, 1, 0.5f, {1, 1, 1}); });
  ExpectNone([](Composition& m) {
    return m.Of("Mul", {"x", m.Of("Sigmoid", {m.Of("Mul", {"x", m.Number(1.702f)})})});
  });
  ExpectNone([](Composition& m) {
    const std::string clipped =
        m.Of("Clip", {m.Of("Add", {"x", m.Number(3)}), m.Number(-1), m.Number(6)});
    return m.Of("Div", {m.Of("Mul", {"x", clipped}), m.Number(6)});
  });
}

TEST(FindActivations, LeavesNumbersThatAreTrainedAndOtherOperands) {
  ExpectNone([](Composition& m) {
    m.Floats("half", {1}, {0.5f});
    const std::string erf = m.Of("Erf", {m.Of("Div", {"x", m.Number(1.4142135f)})});
    return m.Of("Mul", {"half", m.Of("Mul", {"x", m.Of("Add", {erf, m.Number(1)})})});
  });
  ExpectNone([](Composition& m) {
    const std::string other = m.Of("Neg", {"x"});
    return m.Of("Mul", {other, m.Of("Sigmoid", {"x"})});
  });
}

TEST(FindActivations, LeavesAFunctionThatOthersRead) {
  Composition model({2, 3});
  const std::string sigmoid = model.Of("Sigmoid", {"x"});
  model.Finish(model.Of("Mul", {"x", sigmoid}), {sigmoid});
  EXPECT_THAT(model.Types(), Not(Contains("swish")));
}

// ---- normalizations

std::string Deviation(Composition& m, const std::string& centered,
                      const std::vector<int64_t>& axes = {-1}) {
  const std::string square = m.Of("Pow", {centered, m.Number(2)});
  return m.Of("Sqrt", {m.Of("Add", {m.Mean(square, axes), m.Number(1e-5f)})});
}

std::vector<float> Normalized(const std::vector<float>& x, size_t size, bool subtracts) {
  std::vector<float> y;
  for (size_t row = 0; row < x.size(); row += size) {
    double mean = 0;
    double square = 0;
    for (size_t i = 0; i < size; ++i) mean += subtracts ? x[row + i] / double(size) : 0;
    for (size_t i = 0; i < size; ++i) square += std::pow(x[row + i] - mean, 2) / double(size);
    for (size_t i = 0; i < size; ++i) {
      y.push_back(static_cast<float>((x[row + i] - mean) / std::sqrt(square + 1e-5)));
    }
  }
  return y;
}

TEST(FindNormalizations, FindsLayerNorm) {
  Composition model({2, 3});
  model.Floats("scale", {3}, {2, 2, 2});
  model.Floats("shift", {3}, {1, 1, 1});
  const std::string centered = model.Of("Sub", {"x", model.Mean("x", {-1})});
  const std::string y = model.Of("Div", {centered, Deviation(model, centered)});
  model.Finish(model.Of("Add", {"shift", model.Of("Mul", {y, "scale"})}));
  EXPECT_THAT(model.Types(), ElementsAre("layer_norm"));
  std::vector<float> expected = Normalized(model.x().ToVector<float>(), 3, true);
  for (float& value : expected) value = 2 * value + 1;
  EXPECT_THAT(model.Result(), Pointwise(FloatNear(2e-6f), expected));
}

TEST(FindNormalizations, FindsLayerNormOfTwoDimsWithoutScale) {
  Composition model({2, 2, 3});
  const std::string centered = model.Of("Sub", {"x", model.Mean("x", {1, 2})});
  const std::string again = model.Of("Sub", {"x", model.Mean("x", {1, 2})});
  const std::string inverse = model.Of("Reciprocal", {Deviation(model, centered, {1, 2})});
  model.Finish(model.Of("Mul", {again, inverse}));
  EXPECT_THAT(model.Types(), ElementsAre("layer_norm"));
  EXPECT_THAT(model.Result(),
              Pointwise(FloatNear(2e-6f), Normalized(model.x().ToVector<float>(), 6, true)));
}

TEST(FindNormalizations, FindsRmsNorm) {
  Composition model({2, 3});
  model.Floats("scale", {3}, {1, 1, 1});
  const std::string inverse = model.Of("Div", {model.Number(1), Deviation(model, "x")});
  model.Finish(model.Of("Mul", {"scale", model.Of("Mul", {"x", inverse})}));
  EXPECT_THAT(model.Types(), ElementsAre("rms_norm"));
  EXPECT_THAT(model.Result(),
              Pointwise(FloatNear(2e-6f), Normalized(model.x().ToVector<float>(), 3, false)));
}

TEST(FindNormalizations, LeavesWhatIsNoNormOfRows) {
  // The mean of columns.
  ExpectNone([](Composition& m) {
    const std::string centered = m.Of("Sub", {"x", m.Mean("x", {0})});
    return m.Of("Div", {centered, Deviation(m, centered, {0})});
  });
  // The deviation of x, not of what is divided.
  ExpectNone([](Composition& m) {
    const std::string other = m.Of("Neg", {"x"});
    return m.Of("Div", {other, Deviation(m, "x")});
  });
  // Epsilon is added to the root.
  ExpectNone([](Composition& m) {
    const std::string centered = m.Of("Sub", {"x", m.Mean("x", {-1})});
    const std::string square = m.Of("Mul", {centered, centered});
    const std::string root = m.Of("Sqrt", {m.Mean(square, {-1})});
    return m.Of("Div", {centered, m.Of("Add", {root, m.Number(1e-5f)})});
  });
  // A third power.
  ExpectNone([](Composition& m) {
    const std::string cube = m.Of("Pow", {"x", m.Number(3)});
    const std::string root = m.Of("Sqrt", {m.Of("Add", {m.Mean(cube, {-1}), m.Number(100)})});
    return m.Of("Div", {"x", root});
  });
}

TEST(FindNormalizations, SubtractsOnlyTheMeanOfRows) {
  Composition model({3, 3});
  const std::string centered = model.Of("Sub", {"x", model.Mean("x", {0})});
  model.Finish(model.Of("Div", {centered, Deviation(model, centered)}));
  EXPECT_THAT(model.Types(), ElementsAre("reduce_mean", "elementwise_sub", "rms_norm"));
}

TEST(FindNormalizations, LeavesAScaleOfRowsBehindTheNorm) {
  Composition model({3, 3});
  model.Floats("scale", {3, 1}, {1, 2, 3});
  const std::string centered = model.Of("Sub", {"x", model.Mean("x", {-1})});
  const std::string y = model.Of("Div", {centered, Deviation(model, centered)});
  model.Finish(model.Of("Mul", {y, "scale"}));
  EXPECT_THAT(model.Types(), ElementsAre("layer_norm", "elementwise_mul"));
}

// ---- joined rows and transposes

TEST(FindJoinedRows, LeavesTheBiasBesideItsReader) {
  Composition model({2, 3, 4});
  model.Floats("w", {4, 5}, std::vector<float>(20, 0.5f));
  model.Floats("b", {5}, {1, 2, 3, 4, 5});
  const std::string product = model.Of("MatMul", {model.Reshaped("x", {-1, 4}), "w"});
  const std::string split = model.Reshaped(model.Of("Add", {product, "b"}), {2, 3, 5});
  const std::string erf = model.Of("Erf", {model.Of("Div", {split, model.Number(1.4142135f)})});
  const std::string sum = model.Of("Add", {erf, model.Number(1)});
  model.Finish(model.Of("Mul", {model.Of("Mul", {split, sum}), model.Number(0.5f)}));
  EXPECT_THAT(model.Types(), Contains("bias_gelu"));
}

TEST(FindJoinedRows, LeavesColumnsThatAreSplit) {
  Composition model({2, 3, 4});
  model.Floats("w", {4, 6}, std::vector<float>(24, 0.5f));
  const std::string product = model.Of("MatMul", {model.Reshaped("x", {-1, 4}), "w"});
  model.Finish(model.Reshaped(product, {6, 2, 3}));
  // A sum of four numbers, half of it, is in each column.
  const std::vector<float> x = model.x().ToVector<float>();
  std::vector<float> expected;
  for (size_t row = 0; row < 6; ++row) {
    const float sum = x[4 * row] + x[4 * row + 1] + x[4 * row + 2] + x[4 * row + 3];
    expected.insert(expected.end(), 6, sum / 2);
  }
  EXPECT_THAT(model.Result(), Pointwise(FloatNear(1e-6f), expected));
}

TEST(FindTransposes, FindsThoseOfRank3) {
  Composition model({2, 2, 3, 4});
  const std::string rows = model.Transposed(model.Reshaped("x", {-1, 3, 4}), {0, 2, 1});
  model.Finish(model.Reshaped(rows, {2, 2, 4, 3}));
  EXPECT_THAT(model.Types(), ElementsAre("transpose2"));
}

TEST(FindTransposes, LeavesOtherShapes) {
  Composition model({2, 2, 3, 4});
  const std::string rows = model.Transposed(model.Reshaped("x", {-1, 4, 3}), {0, 2, 1});
  model.Finish(model.Reshaped(rows, {2, 2, 3, 4}));
  EXPECT_THAT(model.Types(), Contains("reshape2"));
  EXPECT_FLOAT_EQ(model.Result()[1], model.x().data<float>()[3]);
}

// ---- attention

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Of x [2, 3, 8] in two heads. `scores` makes what the softmax reads of queries, keys and a mask.
class AttentionModel : public Composition {
 public:
  using Scores = std::function<std::string(AttentionModel&, const std::string& q,
                                           const std::string& keys_transposed)>;

  explicit AttentionModel(const Scores& scores, bool has_guard = false,
                          bool fetches_weights = false)
      : Composition({2, 3, 8}) {
    Floats("wk", {8, 8}, Weights(1));
    Floats("wv", {8, 8}, Weights(2));
    const std::string q = Transposed(Reshaped("x", {0, 0, 2, 4}), {0, 2, 1, 3});
    const std::string k = Reshaped(Of("MatMul", {"x", "wk"}), {0, 0, 2, 4});
    const std::string v = Reshaped(Of("MatMul", {"x", "wv"}), {0, 0, 2, 4});
    std::string weights = Of("Softmax", {scores(*this, q, Transposed(k, {0, 2, 3, 1}))});
    const std::string softmax = weights;
    if (has_guard) weights = Of("Where", {Of("IsNaN", {weights}), Number(0), weights});
    const std::string mixed = Of("MatMul", {weights, Transposed(v, {0, 2, 1, 3})});
    const std::string y = Reshaped(Transposed(mixed, {0, 2, 1, 3}), {0, 0, 8});
    Finish(y, fetches_weights ? std::vector{softmax} : std::vector<std::string>());
  }

  // A mask of bools, [3, 3].
  std::string Bools(const std::vector<bool>& values) {
    onnx::TensorProto* tensor = graph().add_initializer();
    tensor->set_name("mask");
    tensor->set_data_type(onnx::TensorProto::BOOL);
    tensor->add_dims(3);
    tensor->add_dims(3);
    for (const bool value : values) tensor->add_int32_data(value ? 1 : 0);
    return "mask";
  }

 private:
  static std::vector<float> Weights(int seed) {
    std::vector<float> values;
    for (int i = 0; i < 64; ++i) {
      values.push_back(std::cos(static_cast<float>((i + 3) * (seed + 1))) / 4);
    }
    return values;
  }
};

// Whoever fetches the weights gets the ops of the file.
void ExpectAttention(const AttentionModel::Scores& scores, bool has_guard = false) {
  AttentionModel model(scores, has_guard);
  AttentionModel single(scores, has_guard, true);
  EXPECT_THAT(model.Types(), Contains("multihead_attention"));
  EXPECT_THAT(model.Types(), Not(Contains("softmax")));
  EXPECT_THAT(single.Types(), Not(Contains("multihead_attention")));
  EXPECT_THAT(model.Result(), Pointwise(FloatNear(2e-6f), single.Result()));
}

TEST(FindAttention, FindsScalesAnywhere) {
  ExpectAttention([](AttentionModel& m, const std::string& q, const std::string& k) {
    return m.Of("Div", {m.Of("MatMul", {q, k}), m.Number(2)});
  });
  ExpectAttention([](AttentionModel& m, const std::string& q, const std::string& k) {
    const std::string scaled = m.Of("Mul", {q, m.Number(0.7071f)});
    return m.Of("MatMul", {scaled, m.Of("Mul", {m.Number(0.7071f, {1}), k})});
  });
}

TEST(FindAttention, FindsMasks) {
  ExpectAttention([](AttentionModel& m, const std::string& q, const std::string& k) {
    m.Floats("bias", {3}, {0, -1, -kInfinity});
    const std::string bias = m.Of("Add", {"bias", m.Number(0)});
    return m.Of("Add", {bias, m.Of("Mul", {m.Of("MatMul", {q, k}), m.Number(0.5f)})});
  });
  const std::vector<bool> causal = {true, false, false, true, true, false, true, true, true};
  ExpectAttention([&](AttentionModel& m, const std::string& q, const std::string& k) {
    return m.Of("Where", {m.Bools(causal), m.Of("MatMul", {q, k}), m.Number(-kInfinity)});
  });
  ExpectAttention([&](AttentionModel& m, const std::string& q, const std::string& k) {
    const std::string hidden = m.Of("Not", {m.Bools(causal)});
    return m.Of("Where", {hidden, m.Number(-kInfinity), m.Of("MatMul", {q, k})});
  });
}

const std::vector<bool> kFirstRowHidden = {false, false, false, true, true,
                                           false, true,  true,  true};

TEST(FindAttention, KeepsTheGuardAgainstNan) {
  const AttentionModel::Scores scores = [](AttentionModel& m, const std::string& q,
                                           const std::string& k) {
    const std::string bias =
        m.Of("Where", {m.Bools(kFirstRowHidden), m.Number(0), m.Number(-kInfinity)});
    return m.Of("Add", {m.Of("MatMul", {q, k}), bias});
  };
  ExpectAttention(scores, /*has_guard=*/true);
  const std::vector<float> y = AttentionModel(scores, true).Result();
  EXPECT_THAT(std::vector(y.begin(), y.begin() + 8), Each(0.0f));
}

TEST(FindAttention, DropsTheGuardBehindFiniteMasks) {
  const AttentionModel::Scores scores = [](AttentionModel& m, const std::string& q,
                                           const std::string& k) {
    const std::string bias = m.Of("Where", {m.Bools(kFirstRowHidden), m.Number(0),
                                            m.Number(std::numeric_limits<float>::lowest())});
    return m.Of("Add", {m.Of("MatMul", {q, k}), bias});
  };
  ExpectAttention(scores, /*has_guard=*/true);
  EXPECT_THAT(AttentionModel(scores, true).Types(), Not(Contains("not_equal")));
}

TEST(FindAttention, LeavesOtherScores) {
  const std::vector<AttentionModel::Scores> others = {
      // A row that is hidden as a whole has equal weights, without a gradient.
      [](AttentionModel& m, const std::string& q, const std::string& k) {
        const std::string scores = m.Of("MatMul", {q, k});
        return m.Of("Where", {m.Bools(kFirstRowHidden), scores, m.Number(-1e4f)});
      },
      [](AttentionModel& m, const std::string& q, const std::string& k) {
        return m.Of("Tanh", {m.Of("MatMul", {q, k})});
      },
      // Each query has a scale of its own.
      [](AttentionModel& m, const std::string& q, const std::string& k) {
        m.Floats("scales", {3, 1}, {1, 2, 3});
        return m.Of("Mul", {m.Of("MatMul", {q, k}), "scales"});
      },
  };
  for (const AttentionModel::Scores& scores : others) {
    EXPECT_THAT(AttentionModel(scores).Types(), Not(Contains("multihead_attention")));
  }
}

TEST(FindAttention, LeavesWeightsThatAreMasked) {
  Composition model({2, 2, 3, 4});
  const std::string scores = model.Of("MatMul", {"x", model.Transposed("x", {0, 1, 3, 2})});
  const std::string weights = model.Of("Softmax", {scores});
  const std::string is_high = model.Of("Greater", {weights, model.Number(0.5f)});
  const std::string masked = model.Of("Where", {is_high, model.Number(0), weights});
  model.Finish(model.Of("MatMul", {masked, "x"}));
  EXPECT_THAT(model.Types(), Not(Contains("multihead_attention")));
}

TEST(FindAttention, FindsHeadsThatNobodySplit) {
  Composition model({2, 2, 3, 4});
  const std::string scores = model.Of("MatMul", {"x", model.Transposed("x", {0, 1, 3, 2})});
  model.Finish(model.Of("MatMul", {model.Of("Softmax", {scores}), "x"}));
  EXPECT_THAT(model.Types(), Contains("multihead_attention"));
}

}  // namespace
}  // namespace skiff
