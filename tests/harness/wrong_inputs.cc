#include "tests/harness/wrong_inputs.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/op/grad_name.h"
#include "tests/harness/case_op.h"
#include "tests/harness/gradient_check.h"
#include "tests/harness/prepared_op.h"

namespace skiff::harness {
namespace {

using Metas = std::map<std::string, TensorMeta>;
// Pairs {what is wrong, the wrong meta}.
using WrongMetas = std::vector<std::pair<std::string, TensorMeta>>;
// Pairs {slot of the gradient op, what is wrong}.
using WrongInputs = std::set<std::pair<std::string, std::string>>;

DType OtherDType(DType dtype) {
  if (dtype == DType::kFloat32) return DType::kFloat64;
  return dtype == DType::kInt64 ? DType::kInt32 : DType::kFloat32;
}

bool IsEmpty(const Shape& shape) { return shape.is_known() && shape.element_count() == 0; }

WrongMetas WrongFormsOf(const TensorMeta& right) {
  WrongMetas forms;
  for (int axis = 0; axis < right.shape.rank(); ++axis) {
    if (right.shape[axis] < 0) continue;
    TensorMeta other = right;
    other.shape[axis] += right.shape[axis] == 0 ? 1 : -1;
    // If both shapes are empty, a kernel can't notice the difference.
    if (IsEmpty(right.shape) && IsEmpty(other.shape)) continue;
    forms.emplace_back("other dims", std::move(other));
  }
  if (right.shape.rank() > 0) {
    TensorMeta lower = right;
    lower.shape = Shape(right.shape.dims().first(static_cast<size_t>(right.shape.rank()) - 1));
    forms.emplace_back("other rank", std::move(lower));
  }
  if (right.shape.rank() < Shape::kMaxRank) {
    TensorMeta higher = right;
    higher.shape.Append(1);
    forms.emplace_back("other rank", std::move(higher));
  }
  TensorMeta cast = right;
  cast.dtype = OtherDType(right.dtype);
  forms.emplace_back("other dtype", std::move(cast));
  return forms;
}

bool IsSame(const TensorMeta& a, const TensorMeta& b) {
  return a.shape == b.shape && a.dtype == b.dtype;
}

class WrongInputCheck {
 public:
  WrongInputCheck(const OpRegistry& registry, const OpCase& op_case, WrongInputs* accepted)
      : registry_(registry), case_(op_case), forward_(MakeOp(op_case)), accepted_(accepted) {}

  void Check(DType dtype) {
    Metas metas;
    for (const auto& [slot, arrays] : case_.inputs) {
      for (size_t i = 0; i < arrays.size(); ++i) {
        TensorMeta& meta = metas[VariableName(slot, i)];
        meta.shape = arrays[i].shape;
        meta.dtype = DTypeIn(arrays[i], dtype);
        if (arrays[i].is_selected_rows()) meta.layout = Layout::SelectedRows(arrays[i].height);
        if (arrays[i].lod.empty()) continue;
        meta.lod_level = static_cast<int32_t>(arrays[i].lod.size());
        meta.lod = std::make_shared<const LoDGroup>(LoDGroup{.offsets = arrays[i].lod});
      }
    }
    forward_inputs_ = metas;
    forward_outputs_ = OutputsOf(forward_, metas);
    for (const auto& [name, meta] : forward_outputs_) {
      metas[name] = meta;
      metas[GradName(name)] = meta;
    }
    const std::vector<std::string> wanted = GradientVariables(case_);
    const auto wants = [&](const std::string& name) {
      return std::count(wanted.begin(), wanted.end(), name) > 0;
    };
    for (const Op& op : GradientOps(registry_, case_, forward_, wants)) {
      const Metas outputs = OutputsOf(op, metas);
      if (op.type.ends_with("_grad")) CheckInputs(op, metas);
      metas.insert(outputs.begin(), outputs.end());
    }
  }

 private:
  std::vector<TensorMeta> InputsOf(const Op& op, const Metas& metas) const {
    std::vector<TensorMeta> inputs;
    for (const std::string& name : InputOrder(registry_.Get(op.type), op)) {
      inputs.push_back(name == kEmptyVarName ? TensorMeta{} : metas.at(name));
    }
    return inputs;
  }

  // Returns the outputs by variable. Throws the Errors of the shape rule and of kernel selection.
  Metas OutputsOf(const Op& op, const Metas& metas) const {
    const OpDef& def = registry_.Get(op.type);
    const std::vector<TensorMeta> inputs = InputsOf(op, metas);
    const std::vector<TensorMeta> outputs = InferOutputMetas(def, op, inputs);
    registry_.SelectKernel(OpContext(op, def, inputs, outputs));
    const std::vector<std::string> names = OutputOrder(def, op);
    Metas named;
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] != kEmptyVarName) named[names[i]] = outputs[i];
    }
    return named;
  }

  bool Accepts(const Op& op, const Metas& metas) const {
    try {
      OutputsOf(op, metas);
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  // Returns whether the forward op with this input has the same outputs as in the case. Then the
  // input isn't wrong: it contradicts nothing that the gradient op sees.
  bool LeadsToTheSameOutputs(const std::string& input, const TensorMeta& meta) const {
    Metas inputs = forward_inputs_;
    inputs[input] = meta;
    if (!Accepts(forward_, inputs)) return false;
    const Metas outputs = OutputsOf(forward_, inputs);
    return std::all_of(outputs.begin(), outputs.end(), [&](const auto& output) {
      return IsSame(output.second, forward_outputs_.at(output.first));
    });
  }

  void CheckInputs(const Op& op, const Metas& right) {
    const std::vector<std::string> names = InputOrder(registry_.Get(op.type), op);
    if (names.size() < 2) return;
    for (const SlotDef& slot : registry_.Get(op.type).inputs) {
      for (const std::string& name : op.Input(slot.name)) {
        if (name == kEmptyVarName) continue;
        for (const auto& [what, meta] : WrongFormsOf(right.at(name))) {
          if (forward_inputs_.contains(name) && LeadsToTheSameOutputs(name, meta)) continue;
          Metas wrong = right;
          wrong[name] = meta;
          if (Accepts(op, wrong)) accepted_->emplace(slot.name, what);
        }
      }
    }
  }

  const OpRegistry& registry_;
  const OpCase& case_;
  const Op forward_;
  Metas forward_inputs_;
  Metas forward_outputs_;
  WrongInputs* accepted_;
};

}  // namespace

std::vector<std::string> WrongInputProblems(const OpRegistry& registry, const CaseList& cases) {
  std::map<std::string, WrongInputs> accepted;  // by type of the forward op
  std::map<std::string, WrongInputs> listed;
  std::vector<std::string> problems;
  for (const OpCase& op_case : cases) {
    for (const auto& [slot, form, reason] : op_case.accepted_wrong_inputs) {
      listed[op_case.type].emplace(slot, form);
      if (!reason.empty()) continue;
      problems.push_back(StrCat(CaseName(op_case), ": lists ", slot, " of ", form,
                                " as accepted, but without a reason"));
    }
    if (op_case.benchmark_only || op_case.gradients.empty()) continue;
    WrongInputCheck check(registry, op_case, &accepted[op_case.type]);
    for (const DType dtype : op_case.dtypes) {
      if (IsFloat(dtype)) check.Check(dtype);
    }
  }
  for (const auto& [type, inputs] : accepted) {
    for (const auto& input : inputs) {
      if (listed[type].contains(input)) continue;
      problems.push_back(
          StrCat(type, ": its gradient op accepts ", input.first, " of ", input.second));
    }
  }
  for (const auto& [type, inputs] : listed) {
    for (const auto& input : inputs) {
      if (accepted[type].contains(input)) continue;
      problems.push_back(StrCat(type, ": its gradient op refuses ", input.first, " of ",
                                input.second, ", which a case lists as accepted"));
    }
  }
  return problems;
}

std::vector<std::string> UncheckedGradients(const OpRegistry& registry, const CaseList& cases) {
  std::set<std::pair<std::string, std::string>> checked;  // types and slots
  for (const OpCase& op_case : cases) {
    for (const auto& [slot, arrays] : op_case.inputs) checked.emplace(op_case.type, slot);
    if (op_case.benchmark_only || op_case.gradients.empty()) continue;
    const std::vector<std::string> wanted = GradientVariables(op_case);
    const auto wants = [&](const std::string& name) {
      return std::count(wanted.begin(), wanted.end(), name) > 0;
    };
    for (const Op& op : GradientOps(registry, op_case, MakeOp(op_case), wants)) {
      for (const SlotDef& slot : registry.Get(op.type).inputs) {
        if (!op.Input(slot.name).empty()) checked.emplace(op.type, slot.name);
      }
    }
  }
  std::vector<std::string> problems;
  for (const std::string& type : registry.Types()) {
    const OpDef& def = registry.Get(type);
    for (const SlotDef& slot : def.inputs) {
      const std::string_view name = slot.name;
      if (!name.ends_with(kGradSuffix) || checked.contains({type, slot.name})) continue;
      if (def.FindInput(name.substr(0, name.rfind(kGradSuffix))) != nullptr) continue;
      problems.push_back(StrCat(type, ": no case checks ", name));
    }
  }
  return problems;
}

}  // namespace skiff::harness
