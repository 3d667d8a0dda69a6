#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tests/harness/op_case.h"
#include "tests/harness/selected_rows_cases.h"
#include "tests/operators/optimizer/scaled_gradients_case.h"

namespace skiff::harness {
namespace {

// A step, and what it must lead to.
struct ScalingStep {
  std::string name;
  bool found_infinite = false;
  double scale = 1024;
  int good_steps = 0;
  int bad_steps = 0;
  double next_scale = 1024;
  int next_good_steps = 0;
  int next_bad_steps = 0;
};

// The scale rises after four steps and falls after three.
const ScalingStep kScalingSteps[] = {
    {.name = "good", .good_steps = 1, .next_good_steps = 2},
    {.name = "good_after_bad", .bad_steps = 2, .next_good_steps = 1},
    {.name = "rises", .good_steps = 3, .next_scale = 2048},
    {.name = "bad", .found_infinite = true, .bad_steps = 1, .next_bad_steps = 2},
    {.name = "bad_after_good", .found_infinite = true, .good_steps = 3, .next_bad_steps = 1},
    {.name = "falls", .found_infinite = true, .bad_steps = 2, .next_scale = 256},
    {.name = "falls_to_1", .found_infinite = true, .scale = 2, .bad_steps = 2, .next_scale = 1},
    // The limits were larger before.
    {.name = "rises_late", .good_steps = 7, .next_scale = 2048},
    {.name = "falls_late", .found_infinite = true, .bad_steps = 5, .next_scale = 256}};

OpCase ScalingCase(const std::string& name, const ScalingStep& step, std::vector<Array> tensors) {
  const auto int32 = [](int value) { return Values({1}, {double(value)}, DType::kInt32); };
  OpCase made{.name = name, .type = "update_loss_scaling"};
  const int count = static_cast<int>(tensors.size());
  if (count > 0) {
    made.inputs["X"] = std::move(tensors);
    made.outputs = {{"Out", count}};
  }
  made.inputs["FoundInfinite"] = {Values({1}, {step.found_infinite ? 1.0 : 0.0}, DType::kBool)};
  made.inputs["PrevLossScaling"] = {Values({1}, {step.scale})};
  made.inputs["InGoodSteps"] = {int32(step.good_steps)};
  made.inputs["InBadSteps"] = {int32(step.bad_steps)};
  made.attrs = {{"incr_every_n_steps", int32_t{4}},
                {"decr_every_n_nan_or_inf", int32_t{3}},
                {"incr_ratio", 2.0f},
                {"decr_ratio", 0.25f}};
  for (const char* slot : {"LossScaling", "OutGoodSteps", "OutBadSteps"}) {
    made.outputs.emplace_back(slot, 1);
  }
  made.reference = [step, int32](const Arrays& inputs) {
    Arrays outputs;
    if (inputs.contains("X")) outputs["Out"] = inputs.at("X");
    for (Array& out : outputs["Out"]) {
      if (step.found_infinite) std::fill(out.values.begin(), out.values.end(), 0.0);
    }
    if (outputs["Out"].empty()) outputs.erase("Out");
    Array scale = inputs.at("PrevLossScaling")[0];
    scale.values[0] = step.next_scale;
    outputs["LossScaling"] = {scale};
    outputs["OutGoodSteps"] = {int32(step.next_good_steps)};
    outputs["OutBadSteps"] = {int32(step.next_bad_steps)};
    return outputs;
  };
  return made;
}

// Of these steps, one has gradients that aren't finite, and both would change the scale.
const ScalingStep& Rises() { return kScalingSteps[2]; }
const ScalingStep& Falls() { return kScalingSteps[5]; }

// The step with a scale and counters that stay.
ScalingStep Stopped(ScalingStep step) {
  step.next_scale = step.scale;
  step.next_good_steps = step.good_steps;
  step.next_bad_steps = step.bad_steps;
  return step;
}

void AddStoppedScaling(CaseList& cases) {
  for (const ScalingStep& step : {Rises(), Falls()}) {
    const std::vector<Array> tensors = ScaledGradientsOf({{5, 7}, {17}});
    cases.push_back(ScalingCase("stop_" + step.name, Stopped(step), tensors));
    cases.back().attrs["stop_update"] = true;
    // The input takes the place of the attribute.
    for (const bool stops : {false, true}) {
      cases.push_back(
          ScalingCase(stops ? "stop_update_true_" + step.name : "stop_update_false_" + step.name,
                      stops ? Stopped(step) : step, tensors));
      cases.back().inputs["StopUpdate"] = {Values({1}, {stops ? 1.0 : 0.0}, DType::kBool)};
      cases.back().attrs["stop_update"] = !stops;
    }
  }
}

}  // namespace

void AddUpdateLossScalingCases(CaseList& cases) {
  const std::vector<Shape> shapes = {{5, 7}, {0}, Shape(), {131, 257}, {17}};
  const std::vector<Array> list = ScaledGradientsOf(shapes);
  for (const ScalingStep& step : kScalingSteps) {
    cases.push_back(ScalingCase(step.name, step, list));
    cases.push_back(ScalingCase("no_gradients_" + step.name, step, {}));
  }
  for (const ScalingStep& step : {Rises(), Falls()}) {
    cases.push_back(ScalingCase("one_" + step.name, step, ScaledGradientsOf({{5, 7}})));
    cases.push_back(ScalingCase("empty_" + step.name, step, ScaledGradientsOf({{0, 3}})));
    cases.push_back(ScalingCase("scalars_" + step.name, step, ScaledGradientsOf({Shape()})));
    for (auto& [slot, arrays] : cases.back().inputs) arrays[0].shape = Shape();
    OpCase& scalars = cases.back();
    scalars.reference = [reference = std::move(scalars.reference)](const Arrays& inputs) {
      Arrays expected = reference(inputs);
      for (auto& [slot, arrays] : expected) arrays[0].shape = Shape();
      return expected;
    };
    cases.push_back(ScalingCase(
        "all_dtypes_" + step.name, step,
        ScaledGradientsOf({{131, 67}, {5, 7}, {0}, {4099}, {17}},
                          {DType::kFloat16, DType::kFloat64, DType::kBFloat16, DType::kFloat32})));
    for (const auto& [name, rows] : SelectedRowsOfAllKinds()) {
      cases.push_back(ScalingCase(name + "_" + step.name, step, {rows, Uniform({5, 7}, 1), rows}));
    }
  }
  // 0 in place of what isn't finite.
  cases.push_back(ScalingCase("not_finite", Falls(), list));
  Array& x = cases.back().inputs["X"][3];
  x.values[1] = std::nan("");
  x.values[2] = std::numeric_limits<double>::infinity();
  AddStoppedScaling(cases);

  // Twice the scale would be too large, so it stays.
  ScalingStep largest{.name = "largest", .good_steps = 3};
  largest.scale = largest.next_scale = 0x1p127;
  cases.push_back(ScalingCase("largest", largest, list));
  cases.back().dtypes = {DType::kFloat32};

  cases.push_back(
      ScalingCase("resnet50_float16", Falls(),
                  ScaledGradientsOf({{2048, 1000}, {23508032}, {53120}}, {DType::kFloat16})));
  cases.back().dtypes = {DType::kFloat32};
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
