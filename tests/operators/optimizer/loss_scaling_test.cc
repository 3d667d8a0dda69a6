// The scale of a loss over many steps, with both ops as a program has them: gradients are unscaled,
// then the scale is updated. On the CPU and, if there is one, on a device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "memory/cuda_device.h"
#include "memory/device.h"
#include "memory/places.h"
#include "operators/optimizer/optimizer_ops.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/case_op.h"
#include "tests/harness/cuda_place.h"
#include "tests/harness/error_text.h"
#include "tests/harness/prepared_op.h"

namespace skiff::harness {
namespace {

using ::testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::nanf("");

std::vector<Place> Places() {
  std::vector<Place> places = {Place::Cpu()};
  if (HasCudaDevice()) places.push_back(CudaPlace());
  return places;
}

const OpRegistry& Registry() {
  static const OpRegistry& registry = *[] {
    auto* made = new OpRegistry;
    RegisterOptimizerOps(*made);
    return made;
  }();
  return registry;
}

NamedTensors RunOnce(const OpCase& op_case, const NamedTensors& inputs, Place place) {
  const Op op = MakeOp(op_case);
  CheckOp(Registry().Get(op.type), op);
  PreparedOp prepared(Registry(), op, inputs, {.place = place});
  prepared.Load(inputs, 0xFF);
  prepared.Run();
  prepared.Wait();
  EXPECT_TRUE(prepared.Faults().empty());
  return prepared.Outputs();
}

Tensor OneFloat(float value) { return Tensor::FromValues<float>({1}, {value}); }
Tensor OneBool(bool value) { return Tensor::FromValues<bool>({1}, {value}); }
Tensor OneInt(int32_t value) { return Tensor::FromValues<int32_t>({1}, {value}); }

struct Unscaled {
  std::vector<Tensor> gradients;
  bool found_infinite = false;
};

Unscaled CheckAndUnscale(const std::vector<Tensor>& gradients, float scale, Place place) {
  const auto count = gradients.size();
  OpCase op_case{.type = "check_finite_and_unscale",
                 .outputs = {{"Out", static_cast<int>(count)}, {"FoundInfinite", 1}}};
  op_case.inputs = {{"X", std::vector<Array>(count)}, {"Scale", std::vector<Array>(1)}};
  NamedTensors inputs = {{VariableName("Scale", 0), OneFloat(scale)}};
  for (size_t i = 0; i < count; ++i) inputs[VariableName("X", i)] = gradients[i];
  const NamedTensors outputs = RunOnce(op_case, inputs, place);
  Unscaled unscaled;
  for (size_t i = 0; i < count; ++i) {
    unscaled.gradients.push_back(outputs.at(VariableName("Out", i)));
  }
  unscaled.found_infinite = outputs.at(VariableName("FoundInfinite", 0)).Item<bool>();
  return unscaled;
}

struct ScalingState {
  float scale = 1024;
  int32_t good_steps = 0;
  int32_t bad_steps = 0;
};

struct ScalingSettings {
  int32_t incr_every_n_steps = 100;
  int32_t decr_every_n_nan_or_inf = 1;
  float incr_ratio = 2;
  float decr_ratio = 0.5;
  bool stop_update = false;
};

AttributeMap AttributesOf(const ScalingSettings& settings) {
  return {{"incr_every_n_steps", settings.incr_every_n_steps},
          {"decr_every_n_nan_or_inf", settings.decr_every_n_nan_or_inf},
          {"incr_ratio", settings.incr_ratio},
          {"decr_ratio", settings.decr_ratio},
          {"stop_update", settings.stop_update}};
}

// Returns the gradients after the step, and changes the state.
std::vector<Tensor> UpdateScale(const Unscaled& unscaled, const ScalingSettings& settings,
                                Place place, ScalingState* state) {
  const auto count = unscaled.gradients.size();
  OpCase op_case{.type = "update_loss_scaling", .attrs = AttributesOf(settings)};
  NamedTensors inputs = {
      {VariableName("FoundInfinite", 0), OneBool(unscaled.found_infinite)},
      {VariableName("PrevLossScaling", 0), OneFloat(state->scale)},
      {VariableName("InGoodSteps", 0), OneInt(state->good_steps)},
      {VariableName("InBadSteps", 0), OneInt(state->bad_steps)},
  };
  for (const char* slot : {"FoundInfinite", "PrevLossScaling", "InGoodSteps", "InBadSteps"}) {
    op_case.inputs[slot] = std::vector<Array>(1);
  }
  op_case.inputs["X"] = std::vector<Array>(count);
  for (size_t i = 0; i < count; ++i) inputs[VariableName("X", i)] = unscaled.gradients[i];
  op_case.outputs = {{"Out", static_cast<int>(count)},
                     {"LossScaling", 1},
                     {"OutGoodSteps", 1},
                     {"OutBadSteps", 1}};
  const NamedTensors outputs = RunOnce(op_case, inputs, place);
  *state = {.scale = outputs.at(VariableName("LossScaling", 0)).Item<float>(),
            .good_steps = outputs.at(VariableName("OutGoodSteps", 0)).Item<int32_t>(),
            .bad_steps = outputs.at(VariableName("OutBadSteps", 0)).Item<int32_t>()};
  std::vector<Tensor> gradients;
  for (size_t i = 0; i < count; ++i) gradients.push_back(outputs.at(VariableName("Out", i)));
  return gradients;
}

// Steps with finite gradients (g) and bad ones (b), and the scale and counters after each.
struct ScalingRun {
  std::string name;
  ScalingSettings settings;
  ScalingState start;
  std::string steps;
  std::vector<float> scales;
  std::vector<int32_t> good_steps;
  std::vector<int32_t> bad_steps;
};

const std::vector<ScalingRun>& ScalingRuns() {
  static const auto& runs = *new std::vector<ScalingRun>{
      {.name = "overflow in the fourth step",
       .steps = "gggbgg",
       .scales = {1024, 1024, 1024, 512, 512, 512},
       .good_steps = {1, 2, 3, 0, 1, 2},
       .bad_steps = {0, 0, 0, 0, 0, 0}},
      {.name = "overflow in the first step",
       .steps = "bg",
       .scales = {512, 512},
       .good_steps = {0, 1},
       .bad_steps = {0, 0}},
      {.name = "growth after three steps",
       .settings = {.incr_every_n_steps = 3},
       .steps = "ggggggg",
       .scales = {1024, 1024, 2048, 2048, 2048, 4096, 4096},
       .good_steps = {1, 2, 0, 1, 2, 0, 1},
       .bad_steps = {0, 0, 0, 0, 0, 0, 0}},
      {.name = "an overflow puts growth off",
       .settings = {.incr_every_n_steps = 3},
       .steps = "ggbggg",
       .scales = {1024, 1024, 512, 512, 512, 1024},
       .good_steps = {1, 2, 0, 1, 2, 0},
       .bad_steps = {0, 0, 0, 0, 0, 0}},
      {.name = "growth in each step",
       .settings = {.incr_every_n_steps = 1, .incr_ratio = 4},
       .steps = "ggg",
       .scales = {4096, 16384, 65536},
       .good_steps = {0, 0, 0},
       .bad_steps = {0, 0, 0}},
      {.name = "only two overflows in a row count",
       .settings = {.decr_every_n_nan_or_inf = 2},
       .steps = "bgbbbb",
       .scales = {1024, 1024, 1024, 512, 512, 256},
       .good_steps = {0, 1, 0, 0, 0, 0},
       .bad_steps = {1, 0, 1, 0, 1, 0}},
      {.name = "growth that would overflow float32",
       .settings = {.incr_every_n_steps = 1},
       .start = {.scale = 0x1p125f},
       .steps = "gggg",
       .scales = {0x1p126f, 0x1p127f, 0x1p127f, 0x1p127f},
       .good_steps = {0, 0, 0, 0},
       .bad_steps = {0, 0, 0, 0}},
      {.name = "a scale that falls to 1",
       .settings = {.incr_every_n_steps = 2},
       .start = {.scale = 4},
       .steps = "bbbbgg",
       .scales = {2, 1, 1, 1, 1, 2},
       .good_steps = {0, 0, 0, 0, 1, 0},
       .bad_steps = {0, 0, 0, 0, 0, 0}},
      {.name = "a scale below 1 rises to 1",
       .start = {.scale = 0.25f},
       .steps = "gb",
       .scales = {0.25f, 1},
       .good_steps = {1, 0},
       .bad_steps = {0, 0}},
      {.name = "the ratio that Fluid has by default",
       .settings = {.decr_ratio = 0.8f},
       .start = {.scale = 32768},
       .steps = "bb",
       .scales = {32768 * 0.8f, 32768 * 0.8f * 0.8f},
       .good_steps = {0, 0},
       .bad_steps = {0, 0}},
      {.name = "ratios of 1",
       .settings = {.incr_every_n_steps = 1, .incr_ratio = 1, .decr_ratio = 1},
       .steps = "gbg",
       .scales = {1024, 1024, 1024},
       .good_steps = {0, 0, 0},
       .bad_steps = {0, 0, 0}},
      {.name = "counters that are saved go on",
       .settings = {.incr_every_n_steps = 2000, .decr_every_n_nan_or_inf = 3},
       .start = {.good_steps = 1998, .bad_steps = 0},
       .steps = "ggbbb",
       .scales = {1024, 2048, 2048, 2048, 1024},
       .good_steps = {1999, 0, 0, 0, 0},
       .bad_steps = {0, 0, 1, 2, 0}},
      {.name = "counters beyond limits that are smaller now",
       .settings = {.incr_every_n_steps = 5},
       .start = {.good_steps = std::numeric_limits<int32_t>::max()},
       .steps = "gg",
       .scales = {2048, 2048},
       .good_steps = {0, 1},
       .bad_steps = {0, 0}},
      {.name = "stop_update",
       .settings = {.incr_every_n_steps = 1, .stop_update = true},
       .start = {.good_steps = 7, .bad_steps = 2},
       .steps = "gbg",
       .scales = {1024, 1024, 1024},
       .good_steps = {7, 7, 7},
       .bad_steps = {2, 2, 2}}};
  return runs;
}

TEST(LossScaling, GoesThroughTheStatesOfTheTable) {
  for (const Place place : Places()) {
    for (const ScalingRun& run : ScalingRuns()) {
      SCOPED_TRACE(StrCat(run.name, " on ", place));
      ScalingState state = run.start;
      for (size_t i = 0; i < run.steps.size(); ++i) {
        const bool is_bad = run.steps[i] == 'b';
        const std::vector<float> gradient = {1, -2.5f};
        std::vector<float> scaled = {state.scale, -2.5f * state.scale};
        // The largest scale doesn't overflow where the gradient is small.
        if (std::isinf(scaled[1])) scaled[1] = 0;
        if (is_bad) scaled[i % 2] = i % 3 == 0 ? kNan : kInf;
        const Unscaled unscaled =
            CheckAndUnscale({Tensor::FromValues<float>({2}, scaled)}, state.scale, place);
        EXPECT_EQ(unscaled.found_infinite, is_bad);
        const std::vector<Tensor> gradients = UpdateScale(unscaled, run.settings, place, &state);
        const std::vector<float> found = gradients[0].ToVector<float>();
        EXPECT_EQ(found[0], is_bad ? 0 : gradient[0]);
        if (is_bad) {
          EXPECT_EQ(found[1], 0);
        }
        EXPECT_EQ(state.scale, run.scales[i]) << "after step " << i;
        EXPECT_EQ(state.good_steps, run.good_steps[i]) << "after step " << i;
        EXPECT_EQ(state.bad_steps, run.bad_steps[i]) << "after step " << i;
      }
    }
  }
}

TEST(LossScaling, EmptyGradientsAreFinite) {
  for (const Place place : Places()) {
    ScalingState state;
    const Unscaled unscaled = CheckAndUnscale(
        {Tensor({0}, DType::kFloat32), Tensor({3, 0}, DType::kFloat16)}, 1024, place);
    EXPECT_FALSE(unscaled.found_infinite);
    const ScalingSettings settings{.incr_every_n_steps = 1};
    EXPECT_EQ(UpdateScale(unscaled, settings, place, &state).size(), 2U);
    EXPECT_EQ(state.scale, 2048);
  }
}

// More gradients than a table's batch of entries, in tensors of every size up to several packs.
TEST(LossScaling, OneElementOfManyGradientsIsFound) {
  constexpr size_t kCount = 200;
  constexpr DType kDTypes[] = {DType::kFloat16, DType::kFloat32, DType::kBFloat16, DType::kFloat64};
  std::vector<Tensor> finite;
  for (size_t i = 0; i < kCount; ++i) {
    finite.push_back(ToTensor(Uniform({static_cast<int64_t>(i % 23)}, i, -9, 9), kDTypes[i % 4]));
  }
  for (const Place place : Places()) {
    EXPECT_FALSE(CheckAndUnscale(finite, 1024, place).found_infinite);
    for (const size_t chosen : {size_t{1}, size_t{45}, size_t{68}, size_t{107}, size_t{199}}) {
      const Tensor& tensor = finite[chosen];
      for (const float value : {kInf, -kInf, kNan}) {
        Array array = ToArray(tensor);
        array.values.back() = value;
        std::vector<Tensor> gradients = finite;
        gradients[chosen] = ToTensor(array, tensor.dtype());
        const Unscaled unscaled = CheckAndUnscale(gradients, 1024, place);
        EXPECT_TRUE(unscaled.found_infinite) << chosen << " " << value << " on " << place;
        ScalingState state;
        for (const Tensor& cleared : UpdateScale(unscaled, {}, place, &state)) {
          EXPECT_TRUE(SameBits(cleared, ZerosLike(cleared)));
        }
      }
    }
  }
}

// Returns numbers of all sizes: all positive and negative ones of a two-byte dtype, and others of
// random exponents.
std::vector<double> NumbersOfAllSizes(DType dtype) {
  std::vector<double> numbers;
  if (IsHalf(dtype)) {
    Tensor all({0x10000}, dtype);
    for (int bits = 0; bits < 0x10000; ++bits) {
      static_cast<uint16_t*>(all.raw_data())[bits] = static_cast<uint16_t>(bits);
    }
    for (const double value : ToArray(all).values) {
      if (std::isfinite(value)) numbers.push_back(value);
    }
    return numbers;
  }
  const int most = dtype == DType::kFloat32 ? 126 : 1022;
  const Array fractions = Uniform({20000}, 1);
  const Array exponents = Uniform({20000}, 2, -most, most);
  for (size_t i = 0; i < fractions.values.size(); ++i) {
    numbers.push_back(std::ldexp(fractions.values[i], static_cast<int>(exponents.values[i])));
  }
  return ToArray(ToTensor(Values({20000}, numbers), dtype)).values;
}

// What is scaled by a power of two and unscaled again has its bits, wherever nothing underflows or
// overflows.
TEST(LossScaling, PowersOfTwoAreExact) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    const std::vector<double> numbers = NumbersOfAllSizes(dtype);
    for (const int power : {-3, 0, 1, 10, 16, 24, 100, 126}) {
      const auto scale = static_cast<float>(std::ldexp(1.0, power));
      std::vector<double> scaled;
      std::vector<double> unscaled;
      for (const double number : numbers) {
        const double product = std::ldexp(number, power);
        const double stored = ToArray(ToTensor(Values({1}, {product}), dtype)).values[0];
        // float64 may itself lose what it can't hold.
        const bool is_held = std::isfinite(product) && std::ldexp(product, -power) == number;
        if (stored != product || !is_held) continue;
        scaled.push_back(product);
        unscaled.push_back(number);
      }
      // Of float16, only zeros can be scaled by more.
      ASSERT_GT(scaled.size(), dtype == DType::kFloat16 && power > 24 ? 1U : 9000U);
      const Shape shape{static_cast<int64_t>(scaled.size())};
      const Tensor expected = ToTensor(Values(shape, unscaled), dtype);
      for (const Place place : Places()) {
        const Unscaled found =
            CheckAndUnscale({ToTensor(Values(shape, scaled), dtype)}, scale, place);
        EXPECT_FALSE(found.found_infinite);
        EXPECT_TRUE(SameBits(found.gradients[0], expected))
            << dtype << " by 2^" << power << " on " << place;
      }
    }
  }
}

OpCase UnscaleCase() {
  return {.type = "check_finite_and_unscale",
          .inputs = {{"X", {Uniform({3}, 1), Uniform({2}, 2)}}, {"Scale", {Values({1}, {8})}}},
          .outputs = {{"Out", 2}, {"FoundInfinite", 1}}};
}

OpCase UpdateCase() {
  return {.type = "update_loss_scaling",
          .inputs = {{"X", {Uniform({3}, 1), Uniform({2}, 2)}},
                     {"FoundInfinite", {Values({1}, {0}, DType::kBool)}},
                     {"PrevLossScaling", {Values({1}, {8})}},
                     {"InGoodSteps", {Values({1}, {0}, DType::kInt32)}},
                     {"InBadSteps", {Values({1}, {0}, DType::kInt32)}}},
          .attrs = AttributesOf({}),
          .outputs = {{"Out", 2}, {"LossScaling", 1}, {"OutGoodSteps", 1}, {"OutBadSteps", 1}}};
}

OpCase BadUpdateCase() {
  OpCase bad = UpdateCase();
  bad.inputs["FoundInfinite"] = {Values({1}, {1}, DType::kBool)};
  return bad;
}

// Runs the op with tensors that begin `offset` bytes, or an element if that is larger, after
// aligned addresses; `by_graph`: once more, in a captured graph, into outputs that were cleared.
// Returns the outputs.
std::vector<Tensor> RunAt(int64_t offset, const OpCase& op_case, Place place,
                          bool by_graph = false) {
  const DeviceUse use = UsePlace(place);
  const Op op = MakeOp(op_case);
  const OpDef& def = Registry().Get(op.type);
  const NamedTensors inputs = MakeInputs(op_case, DType::kFloat32);
  const OpContext context = ContextOf(def, op, inputs, {}, place);
  PrepareContext prepare(op, def, {context.inputs().begin(), context.inputs().end()},
                         {context.outputs().begin(), context.outputs().end()}, place);
  const std::unique_ptr<DeviceStream> stream =
      place.is_cpu() ? nullptr : DeviceOf(place).MakeStream();
  const DeviceContext device{.place = place, .stream = stream.get()};
  std::deque<Tensor> tensors;
  const auto add = [&](const Shape& shape, DType dtype) {
    const int64_t begin = offset == 0 ? 0 : std::max(offset, SizeOf(dtype));
    const int64_t bytes = shape.element_count() * SizeOf(dtype) + begin;
    return &tensors.emplace_back(shape, dtype, std::make_shared<Buffer>(AllocatorOf(place), bytes),
                                 begin);
  };
  KernelContext run;
  run.device_context = &device;
  for (const std::string& name : InputOrder(def, op)) {
    run.inputs.push_back(add(inputs.at(name).shape(), inputs.at(name).dtype()));
    CopyTensor(inputs.at(name), run.inputs.back());
  }
  for (const TensorMeta& meta : context.outputs()) {
    run.outputs.push_back(add(meta.shape, meta.dtype));
  }
  const std::unique_ptr<Kernel> kernel = Registry().SelectKernel(context).prepare(prepare);
  for (const int64_t bytes : prepare.workspace_bytes()) {
    run.workspaces.push_back(tensors.emplace_back(Shape{bytes}, DType::kUint8, place).raw_data());
  }
  kernel->Bind(run);
  kernel->Run(run);
  std::unique_ptr<DeviceGraph> graph;
  if (by_graph) {
    stream->BeginCapture();
    kernel->Run(run);
    graph = stream->EndCapture();
    for (Tensor* output : run.outputs) {
      stream->Fill(output->raw_data(), 0xFF, static_cast<size_t>(output->byte_count()));
    }
    stream->Launch(*graph);
  }
  if (stream != nullptr) stream->Wait();
  std::vector<Tensor> outputs;
  for (const Tensor* output : run.outputs) outputs.push_back(CopyToCpu(*output));
  return outputs;
}

// Returns the case with gradients of all dtypes.
OpCase WithAllDTypes(OpCase op_case) {
  constexpr DType kDTypes[] = {DType::kFloat16, DType::kFloat32, DType::kBFloat16, DType::kFloat64};
  op_case.inputs["X"].clear();
  for (uint64_t i = 0; i < 8; ++i) {
    const Array x = Uniform({i < 4 ? 4211 : 5}, i);
    op_case.inputs["X"].push_back(Values(x.shape, x.values, kDTypes[i % 4]));
  }
  op_case.outputs[0].second = 8;
  return op_case;
}

// Tensors in flat memory begin anywhere.
TEST(LossScaling, AddressesChangeNoBit) {
  for (const Place place : Places()) {
    for (const OpCase& one : {UnscaleCase(), UpdateCase(), BadUpdateCase()}) {
      const OpCase op_case = WithAllDTypes(one);
      const std::vector<Tensor> aligned = RunAt(0, op_case, place);
      for (const int64_t offset : {2, 8}) {
        const std::vector<Tensor> odd = RunAt(offset, op_case, place);
        for (size_t i = 0; i < aligned.size(); ++i) {
          EXPECT_TRUE(SameBits(aligned[i], odd[i]))
              << op_case.type << " output " << i << " at " << offset << " on " << place;
        }
      }
    }
  }
}

TEST(LossScaling, AGraphDoesWhatARunDoes) {
  for (const Place place : Places()) {
    if (place.is_cpu()) continue;
    for (const OpCase& one : {UnscaleCase(), UpdateCase(), BadUpdateCase()}) {
      const OpCase op_case = WithAllDTypes(one);
      const std::vector<Tensor> plain = RunAt(0, op_case, place);
      const std::vector<Tensor> launched = RunAt(0, op_case, place, /*by_graph=*/true);
      for (size_t i = 0; i < plain.size(); ++i) {
        EXPECT_TRUE(SameBits(plain[i], launched[i])) << op_case.type << " output " << i;
      }
    }
  }
}

// Returns the message of the Error that the case throws, or nothing if it throws none.
void Prepare(const OpCase& op_case) {
  const Op op = MakeOp(op_case);
  CheckOp(Registry().Get(op.type), op);
  PreparedOp prepared(Registry(), op, MakeInputs(op_case, DType::kFloat32));
}

std::string ErrorOf(const OpCase& op_case) {
  return ErrorText([&] { Prepare(op_case); });
}

TEST(LossScaling, RefusesWrongArguments) {
  EXPECT_NO_THROW(Prepare(UnscaleCase()));
  EXPECT_NO_THROW(Prepare(UpdateCase()));
  const auto refuses = [](OpCase op_case, const std::string& slot, size_t i, const Array& array,
                          const std::string& message) {
    if (op_case.inputs[slot].size() <= i) op_case.inputs[slot].resize(i + 1);
    op_case.inputs[slot][i] = array;
    EXPECT_THAT(ErrorOf(op_case), HasSubstr(StrCat(op_case.type, ": ", message)));
  };
  const Array two = Values({2}, {8, 8});
  const Array wide = Values({1}, {1}, DType::kInt64);
  const std::string floats = "expected float16, bfloat16, float32 or float64";
  for (const OpCase& op_case : {UnscaleCase(), UpdateCase()}) {
    refuses(op_case, "X", 1, wide, StrCat("X[1] is int64, ", floats));
    refuses(op_case, "X", 2, two, "output \"Out\" has 2 arguments, expected 3 as X");
  }
  refuses(UnscaleCase(), "Scale", 0, two, "Scale has shape [2], expected one element");
  refuses(UnscaleCase(), "Scale", 0, Values({1}, {8}, DType::kFloat16),
          "Scale is float16, expected float32 or float64");
  refuses(UpdateCase(), "PrevLossScaling", 0, wide,
          "PrevLossScaling is int64, expected float32 or float64");
  refuses(UpdateCase(), "FoundInfinite", 0, wide, "FoundInfinite is int64, expected bool");
  refuses(UpdateCase(), "StopUpdate", 0, Values({2}, {0, 0}, DType::kBool),
          "StopUpdate has shape [2], expected one element");
  refuses(UpdateCase(), "InGoodSteps", 0, wide, "InGoodSteps is int64, expected int32");
  refuses(UpdateCase(), "InBadSteps", 0, wide, "InBadSteps is int64, expected int32");
}

TEST(LossScaling, RefusesWrongAttributes) {
  const auto refuses = [](const std::string& name, const Attribute& value,
                          const std::string& message) {
    OpCase op_case = UpdateCase();
    op_case.attrs[name] = value;
    EXPECT_THAT(ErrorOf(op_case), HasSubstr(message));
  };
  refuses("incr_every_n_steps", int32_t{0}, "incr_every_n_steps = 0, expected at least 1");
  refuses("decr_every_n_nan_or_inf", int32_t{-1},
          "decr_every_n_nan_or_inf = -1, expected at least 1");
  for (const float ratio : {0.5f, -2.0f, kNan}) {
    refuses("incr_ratio", ratio, "expected at least 1");
  }
  for (const float ratio : {2.0f, 0.0f, -0.5f, kNan}) {
    refuses("decr_ratio", ratio, "expected above 0 and at most 1");
  }
  for (const auto& [name, value] : AttributesOf({})) {
    OpCase op_case = UpdateCase();
    op_case.attrs.erase(name);
    if (name == "stop_update") {
      EXPECT_NO_THROW(Prepare(op_case));
    } else {
      EXPECT_THAT(ErrorOf(op_case), HasSubstr(name));
    }
  }
}

}  // namespace
}  // namespace skiff::harness
