// Recurrent layers of ONNX, compared with ONNX's formulas in float64.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "framework/builder/activation.h"
#include "framework/builder/math.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/program_guard.h"
#include "framework/ir/program.h"
#include "framework/onnx/export.h"
#include "tests/framework/onnx/imported_model.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::UnorderedElementsAre;

constexpr int64_t kTime = 4;
constexpr int64_t kBatch = 3;
constexpr int64_t kWidth = 2;
constexpr int64_t kHidden = 3;

struct LayerCase {
  std::string op;
  std::string direction = "forward";
  bool has_lengths = false;
  bool batch_first = false;
  bool resets_product = false;  // of a GRU
  bool has_peepholes = false;   // of an LSTM, as the next
  bool couples_forget = false;
  float clip = 0;  // 0: none
  bool feeds_weights = false;
};

int64_t GatesOf(const LayerCase& layer) {
  return layer.op == "LSTM" ? 4 : layer.op == "GRU" ? 3 : 1;
}
int64_t DirectionsOf(const LayerCase& layer) { return layer.direction == "bidirectional" ? 2 : 1; }

Tensor Random(const std::vector<int64_t>& dims, uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> numbers(-1, 1);
  Tensor tensor(Shape(dims), DType::kFloat32);
  for (float& value : tensor.values<float>()) value = numbers(generator);
  return tensor;
}

struct LayerData {
  explicit LayerData(const LayerCase& layer) {
    const int64_t directions = DirectionsOf(layer);
    const int64_t rows = GatesOf(layer) * kHidden;
    x = Random({kTime, kBatch, kWidth}, 1);
    w = Random({directions, rows, kWidth}, 2);
    r = Random({directions, rows, kHidden}, 3);
    b = Random({directions, 2 * rows}, 4);
    h = Random({directions, kBatch, kHidden}, 5);
    c = Random({directions, kBatch, kHidden}, 6);
    p = Random({directions, 3 * kHidden}, 7);
  }
  Tensor x, w, r, b, h, c, p;
  std::vector<int64_t> lengths = {4, 1, 3};
};

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// What ONNX says a layer makes: y [time, directions, batch, hidden], and the states at the end.
struct Reference {
  Reference(const LayerCase& the_layer, const LayerData& the_data)
      : layer(the_layer), data(the_data) {
    const int64_t directions = DirectionsOf(layer);
    y.resize(static_cast<size_t>(kTime * directions * kBatch * kHidden));
    for (int64_t d = 0; d < directions; ++d) {
      for (int64_t n = 0; n < kBatch; ++n) RunSequence(d, n);
    }
  }

  void RunSequence(int64_t d, int64_t n) {
    const int64_t directions = DirectionsOf(layer);
    const int64_t length = layer.has_lengths ? data.lengths[static_cast<size_t>(n)] : kTime;
    const bool runs_back = layer.direction == "reverse" || d == 1;
    std::vector<double> h, c;
    for (int64_t k = 0; k < kHidden; ++k) {
      h.push_back(data.h.values<float>()[static_cast<size_t>((d * kBatch + n) * kHidden + k)]);
      c.push_back(data.c.values<float>()[static_cast<size_t>((d * kBatch + n) * kHidden + k)]);
    }
    for (int64_t step = 0; step < length; ++step) {
      const int64_t t = runs_back ? length - 1 - step : step;
      Step(d, &data.x.values<float>()[static_cast<size_t>((t * kBatch + n) * kWidth)], &h, &c);
      for (int64_t k = 0; k < kHidden; ++k) {
        y[static_cast<size_t>(((t * directions + d) * kBatch + n) * kHidden + k)] =
            h[static_cast<size_t>(k)];
      }
    }
    last_h.insert(last_h.end(), h.begin(), h.end());
    last_c.insert(last_c.end(), c.begin(), c.end());
  }

  // x · W of a gate and unit, with its bias.
  double OfInput(int64_t d, int64_t gate, int64_t k, const float* x) const {
    const int64_t rows = GatesOf(layer) * kHidden;
    const int64_t row = gate * kHidden + k;
    double sum = data.b.values<float>()[static_cast<size_t>(d * 2 * rows + row)];
    for (int64_t i = 0; i < kWidth; ++i) {
      sum += static_cast<double>(x[i]) *
             data.w.values<float>()[static_cast<size_t>((d * rows + row) * kWidth + i)];
    }
    return sum;
  }
  double OfState(int64_t d, int64_t gate, int64_t k, const std::vector<double>& h) const {
    const int64_t rows = GatesOf(layer) * kHidden;
    const int64_t row = gate * kHidden + k;
    double sum = data.b.values<float>()[static_cast<size_t>(d * 2 * rows + rows + row)];
    for (int64_t i = 0; i < kHidden; ++i) {
      sum += h[static_cast<size_t>(i)] *
             data.r.values<float>()[static_cast<size_t>((d * rows + row) * kHidden + i)];
    }
    return sum;
  }
  double Clipped(double x) const {
    return layer.clip > 0 ? std::clamp<double>(x, -layer.clip, layer.clip) : x;
  }
  double Peephole(int64_t d, int64_t gate, int64_t k) const {
    if (!layer.has_peepholes) return 0;
    return data.p.values<float>()[static_cast<size_t>((d * 3 + gate) * kHidden + k)];
  }

  void Step(int64_t d, const float* x, std::vector<double>* h, std::vector<double>* c) const {
    const std::vector<double> before = *h;
    const auto gate = [&](int64_t g, int64_t k) {
      return OfInput(d, g, k, x) + OfState(d, g, k, before);
    };
    std::vector<double> reset_state;
    for (int64_t k = 0; k < kHidden && layer.op == "GRU"; ++k) {
      reset_state.push_back(Sigmoid(Clipped(gate(1, k))) * before[static_cast<size_t>(k)]);
    }
    for (int64_t k = 0; k < kHidden; ++k) {
      double& hidden = (*h)[static_cast<size_t>(k)];
      double& cell = (*c)[static_cast<size_t>(k)];
      if (layer.op == "RNN") {
        hidden = std::tanh(Clipped(gate(0, k)));
      } else if (layer.op == "GRU") {
        const double z = Sigmoid(Clipped(gate(0, k)));
        const double r = Sigmoid(Clipped(gate(1, k)));
        const double of_state =
            layer.resets_product ? r * OfState(d, 2, k, before) : OfState(d, 2, k, reset_state);
        const double candidate = std::tanh(Clipped(OfInput(d, 2, k, x) + of_state));
        hidden = (1 - z) * candidate + z * before[static_cast<size_t>(k)];
      } else {
        const double i = Sigmoid(gate(0, k) + Peephole(d, 0, k) * cell);
        const double f =
            layer.couples_forget ? 1 - i : Sigmoid(gate(2, k) + Peephole(d, 2, k) * cell);
        cell = f * cell + i * std::tanh(gate(3, k));
        hidden = Sigmoid(gate(1, k) + Peephole(d, 1, k) * cell) * std::tanh(cell);
      }
    }
  }

  const LayerCase& layer;
  const LayerData& data;
  std::vector<double> y, last_h, last_c;
};

// Swaps the axes `axis` and `axis` + 1 … of a tensor: from [time, directions, batch, hidden] to
// [batch, time, directions, hidden], and from [directions, batch, hidden] to [batch, directions,
// hidden].
Tensor BatchFirst(const Tensor& x) {
  const auto dims = x.shape().ToVector();
  const size_t at = dims.size() - 2;
  const int64_t batch = dims[at];
  const int64_t before = x.element_count() / batch / dims.back();
  std::vector<int64_t> moved = dims;
  moved.erase(moved.begin() + static_cast<long>(at));
  moved.insert(moved.begin(), batch);
  Tensor result(Shape(moved), x.dtype());
  for (int64_t i = 0; i < before; ++i) {
    for (int64_t n = 0; n < batch; ++n) {
      for (int64_t k = 0; k < dims.back(); ++k) {
        result.values<float>()[static_cast<size_t>((n * before + i) * dims.back() + k)] =
            x.values<float>()[static_cast<size_t>((i * batch + n) * dims.back() + k)];
      }
    }
  }
  return result;
}

void AddWeight(const std::string& name, const Tensor& value, const LayerCase& layer,
               ModelBuilder* builder, FeedList* feeds) {
  if (layer.feeds_weights) {
    builder->Input(name, value.shape().ToVector());
    feeds->emplace_back(name, value);
  } else {
    builder->Floats(name, value.shape().ToVector(), value.ToVector<float>());
  }
}

ModelBuilder LayerModel(const LayerCase& layer, const LayerData& data, FeedList* feeds) {
  ModelBuilder builder;
  const auto feed = [&](const std::string& name, const Tensor& value) {
    const Tensor fed = layer.batch_first ? BatchFirst(value) : value;
    builder.Input(name, fed.shape().ToVector());
    feeds->emplace_back(name, fed);
  };
  feed("x", data.x);
  AddWeight("w", data.w, layer, &builder, feeds);
  AddWeight("r", data.r, layer, &builder, feeds);
  AddWeight("b", data.b, layer, &builder, feeds);
  std::vector<std::string> inputs = {"x", "w", "r", "b", "", "h"};
  if (layer.has_lengths) {
    inputs[4] = "lengths";
    builder.Input("lengths", {kBatch}, onnx::TensorProto::INT32);
    feeds->emplace_back("lengths", Tensor::FromValues<int32_t>(
                                       {kBatch}, {data.lengths.begin(), data.lengths.end()}));
  }
  feed("h", data.h);
  std::vector<std::string> outputs = {"y", "last_h"};
  if (layer.op == "LSTM") {
    feed("c", data.c);
    inputs.emplace_back("c");
    outputs.emplace_back("last_c");
    if (layer.has_peepholes) {
      AddWeight("p", data.p, layer, &builder, feeds);
      inputs.emplace_back("p");
    }
  }
  onnx::NodeProto* node = builder.Node(layer.op, inputs, outputs);
  SetInt("hidden_size", kHidden, node);
  if (layer.batch_first) SetInt("layout", 1, node);
  if (layer.resets_product) SetInt("linear_before_reset", 1, node);
  if (layer.couples_forget) SetInt("input_forget", 1, node);
  onnx::AttributeProto* direction = node->add_attribute();
  direction->set_name("direction");
  direction->set_type(onnx::AttributeProto::STRING);
  direction->set_s(layer.direction);
  if (layer.clip > 0) {
    onnx::AttributeProto* clip = node->add_attribute();
    clip->set_name("clip");
    clip->set_type(onnx::AttributeProto::FLOAT);
    clip->set_f(layer.clip);
  }
  for (const std::string& output : outputs) {
    builder.Output(output, std::vector<int64_t>(output == "y" ? 4 : 3, -1));
  }
  return builder;
}

void ExpectNear(const Tensor& found, const std::vector<double>& expected,
                const std::vector<int64_t>& dims, bool batch_first) {
  Tensor reference(Shape(dims), DType::kFloat32);
  std::ranges::transform(expected, reference.values<float>().begin(),
                         [](double value) { return static_cast<float>(value); });
  if (batch_first) reference = BatchFirst(reference);
  ASSERT_EQ(found.shape(), reference.shape());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(found.values<float>()[i], reference.values<float>()[i], 2e-6) << "element " << i;
  }
}

std::vector<LayerCase> LayerCases() {
  std::vector<LayerCase> cases;
  for (const std::string op : {"GRU", "LSTM", "RNN"}) {
    for (const std::string direction : {"forward", "reverse", "bidirectional"}) {
      for (const bool has_lengths : {false, true}) {
        for (const bool feeds_weights : {false, true}) {
          cases.push_back({.op = op,
                           .direction = direction,
                           .has_lengths = has_lengths,
                           .batch_first = has_lengths && !feeds_weights,
                           .feeds_weights = feeds_weights});
        }
      }
    }
  }
  cases.push_back({.op = "GRU", .direction = "bidirectional", .resets_product = true});
  cases.push_back({.op = "GRU", .clip = 0.3f});
  cases.push_back({.op = "GRU", .resets_product = true, .clip = 0.3f});
  cases.push_back({.op = "RNN", .direction = "reverse", .clip = 0.2f});
  cases.push_back({.op = "LSTM", .direction = "bidirectional", .has_peepholes = true});
  cases.push_back({.op = "LSTM", .couples_forget = true});
  cases.push_back(
      {.op = "LSTM", .has_lengths = true, .has_peepholes = true, .couples_forget = true});
  return cases;
}

TEST(ImportOnnxRecurrent, ComputesOnnxsFormulas) {
  for (const LayerCase& layer : LayerCases()) {
    SCOPED_TRACE(StrCat(layer.op, " ", layer.direction, layer.has_lengths ? ", lengths" : "",
                        layer.batch_first ? ", batch first" : "",
                        layer.feeds_weights ? ", fed weights" : "",
                        layer.has_peepholes ? ", peepholes" : ""));
    const LayerData data(layer);
    FeedList feeds;
    Executor exe;
    const InferenceModel model = Imported(LayerModel(layer, data, &feeds), &exe);
    const auto results = exe.Compile(*model.program).Run(feeds, model.fetch_names);
    const Reference reference(layer, data);
    const int64_t directions = DirectionsOf(layer);
    ExpectNear(results[0], reference.y, {kTime, directions, kBatch, kHidden}, layer.batch_first);
    ExpectNear(results[1], reference.last_h, {directions, kBatch, kHidden}, layer.batch_first);
    if (layer.op == "LSTM") {
      ExpectNear(results[2], reference.last_c, {directions, kBatch, kHidden}, layer.batch_first);
    }
  }
}

std::vector<std::string> OpTypes(const Program& program) {
  std::vector<std::string> types;
  for (const auto& op : program.root()->ops()) types.push_back(op->type);
  return types;
}

// No step cuts or joins weights: they are parameters in Skiff's order.
TEST(ImportOnnxRecurrent, BringsWeightsIntoOrderOnce) {
  const LayerCase layer = {.op = "LSTM", .direction = "bidirectional"};
  const LayerData data(layer);
  FeedList feeds;
  Executor exe;
  const InferenceModel model = Imported(LayerModel(layer, data, &feeds), &exe);
  EXPECT_THAT(exe.scope().Names(),
              IsSupersetOf({"w", "w.reverse", "r", "r.reverse", "b.input", "b.hidden",
                            "b.input.reverse", "b.hidden.reverse"}));
  EXPECT_THAT(OpTypes(*model.program),
              UnorderedElementsAre("feed", "feed", "feed", "rnn", "reshape2", "transpose2", "fetch",
                                   "fetch", "fetch"));
  const Tensor w = exe.scope().Get("w.reverse");
  EXPECT_EQ(w.shape(), Shape({4 * kHidden, kWidth}));
  // Skiff's last gate is ONNX's second one.
  const size_t from = static_cast<size_t>((4 + 1) * kHidden * kWidth);
  EXPECT_EQ(w.values<float>()[3 * kHidden * kWidth], data.w.values<float>()[from]);
}

TEST(ImportOnnxRecurrent, TrainsWeightsInTheirOrder) {
  for (const std::string op : {"GRU", "LSTM"}) {
    const LayerCase layer = {.op = op};
    const LayerData data(layer);
    FeedList feeds;
    Executor exe;
    const InferenceModel model = Imported(LayerModel(layer, data, &feeds), &exe);
    Program startup;
    Variable loss;
    {
      const ProgramGuard guard(model.program.get(), &startup);
      loss = layers::Mean(layers::Square(Variable(model.program->root(), "y")));
      optimizer::Sgd({.learning_rate = 1.0}).Minimize(loss);
    }
    exe.Run(startup);
    const float before = exe.scope().Get("w").values<float>()[0];
    CompiledProgram step = exe.Compile(*model.program);
    const float first = step.Run(feeds, {loss})[0].Item<float>();
    EXPECT_NE(exe.scope().Get("w").values<float>()[0], before);
    EXPECT_LT(step.Run(feeds, {loss})[0].Item<float>(), first);
  }
}

// What two nodes read stays one parameter as in the file.
TEST(ImportOnnxRecurrent, SharesWeights) {
  const LayerCase layer = {.op = "RNN"};
  const LayerData data(layer);
  FeedList feeds;
  ModelBuilder builder = LayerModel(layer, data, &feeds);
  builder.Node("Neg", {"w"}, {"negative"});
  builder.Output("negative", {1, kHidden, kWidth});
  Executor exe;
  const InferenceModel model = Imported(builder, &exe);
  EXPECT_EQ(exe.scope().Get("w").shape(), data.w.shape());
  const auto results = exe.Compile(*model.program).Run(feeds, model.fetch_names);
  ExpectNear(results[0], Reference(layer, data).y, {kTime, 1, kBatch, kHidden}, false);
}

TEST(ImportOnnxRecurrent, CanBeExportedAgain) {
  for (const std::string op : {"GRU", "LSTM"}) {
    const LayerCase layer = {.op = op, .direction = "bidirectional", .resets_product = true};
    const LayerData data(layer);
    FeedList feeds;
    Executor exe;
    const InferenceModel model = Imported(LayerModel(layer, data, &feeds), &exe);
    ExportOnnx(PathFor("again.onnx"), model, exe.scope());
    Executor other;
    const InferenceModel again = ImportOnnx(PathFor("again.onnx"), &other.scope());
    const auto results = other.Compile(*again.program).Run(feeds, again.fetch_names);
    ExpectNear(results[0], Reference(layer, data).y, {kTime, 2, kBatch, kHidden}, false);
  }
}

TEST(ImportOnnxRecurrent, RefusesOtherActivationsAndShapes) {
  const LayerCase layer = {.op = "LSTM"};
  const LayerData data(layer);
  FeedList feeds;
  ModelBuilder activations = LayerModel(layer, data, &feeds);
  onnx::AttributeProto* attribute = activations.graph().mutable_node(0)->add_attribute();
  attribute->set_name("activations");
  attribute->set_type(onnx::AttributeProto::STRINGS);
  for (const char* name : {"HardSigmoid", "Tanh", "Tanh"}) attribute->add_strings(name);
  EXPECT_THAT(Refusal(ErrorCode::kUnimplemented, activations), HasSubstr("HardSigmoid"));
  attribute->add_strings("Tanh");
  EXPECT_THAT(Refusal(ErrorCode::kInvalidArgument, activations), HasSubstr("4 activations"));
  ModelBuilder shape = LayerModel(layer, data, &feeds);
  shape.graph().mutable_initializer(0)->set_dims(1, 2 * kHidden);
  shape.graph().mutable_initializer(0)->set_dims(2, 2 * kWidth);
  EXPECT_THAT(Refusal(ErrorCode::kInvalidArgument, shape), HasSubstr("[1, 6, 4]"));
}

}  // namespace
}  // namespace skiff
