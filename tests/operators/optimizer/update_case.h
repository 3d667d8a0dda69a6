// Cases of ops that update parameters: the formula is written once, for one parameter; the case
// calls it for each parameter of a list, on the gradient that the op's common attributes and inputs
// make (operators/optimizer/kernels/update_op.h).
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "framework/base/error.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/op_case.h"
#include "tests/harness/selected_rows_cases.h"

namespace skiff::harness {

// One parameter before a step, and after it.
struct UpdatedParameter {
  std::vector<double> param;
  std::vector<double> grad;  // rescaled, scaled and decayed
  std::vector<std::vector<double>> states;
  std::vector<double> scalars;
  double rate = 0;
  size_t index = 0;    // in the list
  int64_t height = 0;  // its rows
};

inline double NormOf(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

struct UpdateCase {
  std::string name;
  std::string type;
  std::vector<Shape> shapes = {{5, 7}};
  // An input of each parameter, its output ("": none), and the values that it starts from.
  struct State {
    std::string input;
    std::string output;
    double low = -1;
    double high = 1;
  };
  std::vector<State> states;
  struct Scalar {
    std::string input;
    std::string output;
    double value = 0;
  };
  std::vector<Scalar> scalars;
  AttributeMap attrs;
  std::vector<double> rates = {0.125};  // one for all parameters, or one per parameter; exact in
                                        // float32
  double grad_scale = 1;                // connected unless 1
  // float16 or bfloat16: parameters of that dtype with master weights, to which all above applies.
  DType half = DType::kFloat32;
  bool half_grads = false;  // of that dtype, too
  std::function<void(UpdatedParameter&)> update;
};

// The common attributes of the case, as the definition reads them.
template <typename T>
T AttrOr(const AttributeMap& attrs, const std::string& name, T fallback) {
  const auto found = attrs.find(name);
  return found == attrs.end() ? fallback : std::get<T>(found->second);
}

// Entry i of an attribute that is a value or a list of one or many.
template <typename T>
T EntryOr(const AttributeMap& attrs, const std::string& name, size_t i, T fallback) {
  const auto found = attrs.find(name);
  if (found == attrs.end()) return fallback;
  if (const auto* list = std::get_if<std::vector<T>>(&found->second)) {
    return list->size() == 1 ? list->front() : list->at(i);
  }
  return std::get<T>(found->second);
}

inline double FormedGradient(const UpdateCase& made, size_t i, double grad, double param) {
  grad *= AttrOr(made.attrs, "rescale_grad", 1.0f) * made.grad_scale;
  const auto method = EntryOr<std::string>(made.attrs, "regularization_method", i, "");
  const double coefficient = EntryOr(made.attrs, "regularization_coeff", i, 0.0f);
  if (method == "l2_decay") grad += coefficient * param;
  if (method == "l1_decay" && param != 0) grad += coefficient * std::copysign(1.0, param);
  return grad;
}

inline Arrays UpdateAllParameters(const UpdateCase& made, const Arrays& inputs) {
  Arrays outputs;
  const bool has_masters = made.half != DType::kFloat32;
  for (size_t i = 0; i < made.shapes.size(); ++i) {
    const Array& param = inputs.at(has_masters ? "MasterParam" : "Param")[i];
    const std::vector<Array>& rates = inputs.at("LearningRate");
    UpdatedParameter parameter{.param = param.values,
                               .rate = rates[rates.size() == 1 ? 0 : i].values[0],
                               .index = i,
                               .height = param.shape.rank() == 0 ? 0 : param.shape[0]};
    const Array& given = inputs.at("Grad")[i];
    const Array grad = given.is_selected_rows() ? Dense(given) : given;
    for (size_t j = 0; j < param.values.size(); ++j) {
      parameter.grad.push_back(FormedGradient(made, i, grad.values[j], param.values[j]));
    }
    for (const auto& state : made.states) {
      parameter.states.push_back(inputs.at(state.input)[i].values);
    }
    for (const auto& scalar : made.scalars) {
      parameter.scalars.push_back(inputs.at(scalar.input)[i].values[0]);
    }
    made.update(parameter);
    outputs[has_masters ? "MasterParamOut" : "ParamOut"].push_back(
        {.shape = param.shape, .values = parameter.param});
    for (size_t k = 0; k < made.states.size(); ++k) {
      if (made.states[k].output.empty()) continue;
      outputs[made.states[k].output].push_back(
          {.shape = param.shape, .values = parameter.states[k]});
    }
    for (size_t k = 0; k < made.scalars.size(); ++k) {
      if (made.scalars[k].output.empty()) continue;
      Array scalar = inputs.at(made.scalars[k].input)[i];
      scalar.values[0] = parameter.scalars[k];
      outputs[made.scalars[k].output].push_back(std::move(scalar));
    }
  }
  return outputs;
}

// `array` in another dtype, with the values rounded to the dtype.
inline Array In(DType dtype, const Array& array) {
  Array rounded = ToArray(ToTensor(array, dtype));
  rounded.rows = array.rows;
  rounded.height = array.height;
  return rounded;
}

// ParamOut is MasterParamOut, rounded.
inline void CheckRounding(DType half, const Arrays& outputs) {
  const std::vector<Array>& masters = outputs.at("MasterParamOut");
  for (size_t i = 0; i < masters.size(); ++i) {
    const Array& found = outputs.at("ParamOut")[i];
    SKIFF_ENFORCE(found.dtype == half && found.values == In(half, masters[i]).values,
                  kFailedPrecondition, "ParamOut[", i, "] isn't MasterParamOut[", i,
                  "], rounded to ", half);
  }
}

// The parameters of the case become master weights, of parameters that these are rounded to.
inline void AddMasters(const UpdateCase& made, OpCase* result) {
  result->dtypes = {DType::kFloat32};
  result->attrs["multi_precision"] = true;
  std::vector<Array>& params = result->inputs["Param"];
  std::vector<Array>& masters = result->inputs["MasterParam"];
  masters = params;
  for (size_t i = 0; i < params.size(); ++i) {
    params[i] = In(made.half, In(DType::kFloat32, masters[i]));
    Array& grad = result->inputs["Grad"][i];
    if (made.half_grads) grad = In(made.half, grad);
  }
  result->outputs.emplace_back("MasterParamOut", static_cast<int>(params.size()));
  result->check = [half = made.half](const Arrays&, const Arrays& outputs) {
    CheckRounding(half, outputs);
  };
}

inline OpCase MakeUpdateCase(UpdateCase made) {
  OpCase result{.name = made.name, .type = made.type};
  const int count = static_cast<int>(made.shapes.size());
  uint64_t seed = 1;
  for (size_t i = 0; i < made.shapes.size(); ++i) {
    result.inputs["Param"].push_back(Uniform(made.shapes[i], seed++));
    result.inputs["Grad"].push_back(Uniform(made.shapes[i], seed++));
    for (const auto& state : made.states) {
      result.inputs[state.input].push_back(Uniform(made.shapes[i], seed++, state.low, state.high));
    }
    // Another value for each parameter, so that no parameter is mistaken for another.
    for (const auto& scalar : made.scalars) {
      const double value = scalar.value * std::pow(0.875, static_cast<double>(i));
      result.inputs[scalar.input].push_back(Values({1}, {value}));
    }
  }
  for (const double rate : made.rates) {
    result.inputs["LearningRate"].push_back(Values({1}, {rate}, DType::kFloat32));
  }
  if (made.grad_scale != 1) {
    result.inputs["GradScale"] = {Values({1}, {made.grad_scale}, DType::kFloat32)};
  }
  result.outputs.emplace_back("ParamOut", count);
  for (const auto& state : made.states) {
    if (!state.output.empty()) result.outputs.emplace_back(state.output, count);
  }
  for (const auto& scalar : made.scalars) {
    if (!scalar.output.empty()) result.outputs.emplace_back(scalar.output, count);
  }
  result.attrs = made.attrs;
  if (made.half != DType::kFloat32) AddMasters(made, &result);
  result.reference = [made = std::move(made)](const Arrays& inputs) {
    return UpdateAllParameters(made, inputs);
  };
  return result;
}

// The same with a gradient that is rescaled, scaled and decayed.
inline UpdateCase WithFormedGradient(UpdateCase made) {
  made.name += "_formed_gradient";
  made.grad_scale = 0.75;
  made.attrs["rescale_grad"] = 0.5f;
  if (!made.attrs.contains("regularization_method")) {
    made.attrs["regularization_method"] = std::string("l2_decay");
    made.attrs["regularization_coeff"] = 0.0625f;
  }
  return made;
}

// What `make` makes of the case, with SkipUpdate: nothing changes if `skips`.
template <typename Make>
OpCase WithSkipUpdate(UpdateCase made, bool skips, const Make& make) {
  made.name += skips ? "_skipped" : "_not_skipped";
  if (skips) made.update = [](UpdatedParameter&) {};
  OpCase result = make(made);
  result.inputs["SkipUpdate"] = {Values({1}, {skips ? 1.0 : 0.0}, DType::kBool)};
  return result;
}

// Returns the same with a sparse gradient, given with the name of its kind. An update of touched
// rows only (`touched`) leaves the rest of the outputs unchanged.
inline OpCase SparseCase(const UpdateCase& made, bool touched,
                         const std::pair<std::string, Array>& sparse) {
  const auto& [kind, gradient] = sparse;
  UpdateCase changed = made;
  changed.name += "_sparse_" + kind;
  changed.shapes = {gradient.shape};
  changed.shapes[0][0] = gradient.height;
  const std::set<int64_t> rows(gradient.rows.begin(), gradient.rows.end());
  changed.update = [rows, touched, update = made.update](UpdatedParameter& p) {
    const UpdatedParameter before = p;
    update(p);
    if (!touched) return;
    const size_t height = static_cast<size_t>(p.height);
    const size_t width = height == 0 ? 0 : p.param.size() / height;
    for (size_t i = 0; i < p.param.size(); ++i) {
      if (rows.contains(static_cast<int64_t>(i / width))) continue;
      p.param[i] = before.param[i];
      for (size_t k = 0; k < p.states.size(); ++k) p.states[k][i] = before.states[k][i];
    }
  };
  OpCase op_case = MakeUpdateCase(changed);
  op_case.inputs["Grad"] = {changed.half_grads ? In(changed.half, gradient) : gradient};
  return op_case;
}

// The same with two-byte parameters and gradients.
inline UpdateCase InBFloat16(UpdateCase made) {
  made.name += "_bfloat16";
  made.half = DType::kBFloat16;
  made.half_grads = true;
  return made;
}

// Adds the same with each kind of sparse gradient, with one that is rescaled, scaled and decayed,
// and with SkipUpdate; all of them also with two-byte parameters and gradients.
inline void AddSparseCases(CaseList& cases, const UpdateCase& made, bool touched) {
  const auto kinds = SelectedRowsOfAllKinds();
  const auto make = [&](const UpdateCase& changed) {
    return SparseCase(changed, touched, kinds.front());
  };
  for (const UpdateCase& base : {made, InBFloat16(made)}) {
    for (const auto& sparse : kinds) cases.push_back(SparseCase(base, touched, sparse));
    cases.push_back(make(WithFormedGradient(base)));
    for (const bool skips : {true, false}) cases.push_back(WithSkipUpdate(base, skips, make));
  }
}

// The same on all rows of BERT's table of words, with a gradient of the rows of 4,096 words; for
// benchmarks. (An update of touched rows moves other bytes than its arguments have, and benchmarks
// count the latter.)
inline OpCase SparseWordsCase(const UpdateCase& made) {
  constexpr int64_t kWords = 30522;
  std::vector<int64_t> rows(4096);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int64_t>(i * i) % kWords;
  OpCase result =
      SparseCase(made, /*touched=*/false,
                 {"words", SelectedRows(Uniform({4096, 768}, 1), std::move(rows), kWords)});
  result.benchmark_only = true;
  return result;
}

// The cases of every update op: `made` as a single parameter of a matrix, as an empty parameter, as
// lists whose tensors fill no vector and are large enough for one and for several threads, with a
// learning rate per parameter, with a gradient that is rescaled, scaled and decayed, and skipped;
// as parameters of both two-byte dtypes, with gradients of both kinds.
inline void AddUpdateCases(CaseList& cases, const UpdateCase& made) {
  const auto add = [&](const std::string& suffix, const auto& change) {
    UpdateCase changed = made;
    changed.name += suffix;
    change(changed);
    cases.push_back(MakeUpdateCase(std::move(changed)));
  };
  add("", [](UpdateCase&) {});
  add("_empty", [](UpdateCase& c) { c.shapes = {{0, 4}}; });
  add("_one_number", [](UpdateCase& c) { c.shapes = {Shape()}; });
  add("_several_threads", [](UpdateCase& c) { c.shapes = {{131, 257}}; });
  add("_list", [](UpdateCase& c) { c.shapes = {{5, 7}, {0}, {16}, {131, 257}, {1}, {3, 3}}; });
  add("_list_of_rates", [](UpdateCase& c) {
    c.shapes = {{17}, {2, 5}, {4}};
    c.rates = {0.125, 0.0625, 0.25};
  });
  UpdateCase formed = WithFormedGradient(made);
  formed.shapes = {{17}, {2, 5}};
  cases.push_back(MakeUpdateCase(formed));
  add("_float16", [](UpdateCase& c) {
    c.shapes = {{5, 7}, {0}, {131, 67}, {1}, {3, 3}};
    c.half = DType::kFloat16;
    c.half_grads = true;
    c.grad_scale = 0.75;
  });
  add("_float16_by_floats", [](UpdateCase& c) {
    c.shapes = {{17}, {2, 5}};
    c.half = DType::kFloat16;
  });
  cases.push_back(MakeUpdateCase(InBFloat16(made)));
  for (const DType half : {DType::kFloat32, DType::kBFloat16}) {
    for (const bool skips : {true, false}) {
      UpdateCase changed = made;
      changed.shapes = {{6, 2}, {3}};
      changed.half = half;
      if (half != DType::kFloat32) changed.name += "_bfloat16";
      cases.push_back(WithSkipUpdate(std::move(changed), skips, MakeUpdateCase));
    }
  }
}

}  // namespace skiff::harness
