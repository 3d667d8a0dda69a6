#include "framework/onnx/graph_builder.h"

#include <algorithm>
#include <utility>

#include "framework/base/error.h"
#include "framework/builder/current_block.h"
#include "framework/builder/tensor.h"
#include "framework/onnx/tensor_proto.h"
#include "framework/op/evaluation.h"
#include "framework/op/registry.h"
#include "framework/op/var_meta.h"

namespace skiff {
namespace {

// Constants of more elements are persistables: a program should be small.
constexpr int64_t kMostInProgram = 4096;

// Returns a constant of the dtypes that assign_value has.
template <typename T>
Variable ConstantOf(const Tensor& value) {
  return layers::AssignValue(value.shape().ToVector(), value.ToVector<T>());
}

// Returns a constant of whole numbers of 8 or 16 bits or bools.
template <typename T>
Variable CastConstantOf(const Tensor& value) {
  const std::span<const T> values = value.values<T>();
  const std::vector<int32_t> wide(values.begin(), values.end());
  return layers::Cast(layers::AssignValue(value.shape().ToVector(), wide), value.dtype());
}

// Returns nothing for a dtype whose constants must be persistables.
Variable MakeConstant(const Tensor& value) {
  switch (value.dtype()) {
    case DType::kFloat32:
      return ConstantOf<float>(value);
    case DType::kFloat64:
      return ConstantOf<double>(value);
    case DType::kInt32:
      return ConstantOf<int32_t>(value);
    case DType::kInt64:
      return ConstantOf<int64_t>(value);
    case DType::kBool:
      return CastConstantOf<bool>(value);
    case DType::kInt8:
      return CastConstantOf<int8_t>(value);
    case DType::kUint8:
      return CastConstantOf<uint8_t>(value);
    case DType::kInt16:
      return CastConstantOf<int16_t>(value);
    case DType::kFloat16:
    case DType::kBFloat16:
      return layers::Cast(ConstantOf<float>(WidenedHalf(value)), value.dtype());
    default:
      return {};
  }
}

void Replace(const std::map<std::string, std::string>& names, Slots* slots) {
  for (SlotArguments& slot : *slots) {
    for (std::string& argument : slot.arguments) {
      const auto found = names.find(argument);
      if (found != names.end()) argument = found->second;
    }
  }
}

}  // namespace

GraphBuilder::GraphBuilder() : block_(&CurrentBlock()) {}

Variable GraphBuilder::MakePersistable(const std::string& name, const Tensor& value,
                                       bool is_parameter) {
  Var var{.name = block_->program()->UniqueName("weight")};
  var.dtype = value.dtype();
  var.dims = value.shape().ToVector();
  var.persistable = true;
  var.is_parameter = is_parameter;
  var.stop_gradient = !is_parameter;
  const Variable variable(block_, var.name);
  block_->CreateVar(std::move(var));
  // Two names of one initializer are two weights: a writer that has found equal ones may have
  // joined them, and an update of one isn't one of the other.
  const bool is_own = buffers_.insert(value.raw_data()).second;
  weights_.emplace(variable.name(), is_own ? value : CopyToCpu(value));
  Rename(variable, name);
  return variable;
}

Variable GraphBuilder::Materialise(const std::string& name, OnnxValue* value) {
  if (value->variable.defined()) return value->variable;
  SKIFF_ENFORCE(value->known != nullptr, kInvalidArgument, "\"", name, "\" has no value");
  const Tensor& tensor = *value->known;
  const bool is_parameter = value->is_weight && IsFloat(tensor.dtype()) &&
                            tensor.element_count() > 0 && tensor.shape().rank() > 0;
  if (!is_parameter && tensor.element_count() <= kMostInProgram && tensor.element_count() > 0) {
    value->variable = MakeConstant(tensor);
  }
  if (!value->variable.defined()) {
    value->variable = MakePersistable(name, tensor, is_parameter);
    return value->variable;
  }
  known_[value->variable.name()] = value->known;
  made_in_node_.push_back(value);
  return value->variable;
}

void GraphBuilder::BeginNode() {
  first_op_ = block_->ops().size();
  first_var_ = block_->vars().size();
  made_in_node_.clear();
}

void GraphBuilder::FoldOp(const Op& op) {
  const OpRegistry& registry = DefaultOpRegistry();
  const OpDef& def = registry.Get(op.type);
  std::vector<TensorMeta> inputs;
  for (const SlotDef& slot : def.inputs) {
    for (const std::string& name : op.Input(slot.name)) {
      const Var* var = block_->FindVar(name);
      if (var == nullptr) return;
      TensorMeta meta = MetaOf(*var);
      const auto known = known_.find(name);
      if (known != known_.end()) meta.contents = known->second;
      if (slot.shape_only ? !meta.shape.is_known() : meta.contents == nullptr) return;
      inputs.push_back(std::move(meta));
    }
  }
  const std::vector<std::string> names = OutputOrder(def, op);
  std::vector<TensorMeta> outputs;
  for (const std::string& name : names) {
    const Var* var = block_->FindVar(name);
    outputs.push_back(var == nullptr ? TensorMeta() : MetaOf(*var));
  }
  OpContext context(op, def, std::move(inputs), std::move(outputs));
  if (!MayEvaluate(context)) return;
  std::vector<std::shared_ptr<const Tensor>> made;
  try {
    InferOutputs(&context);
    made = Evaluate(registry, context);
  } catch (const Error&) {
    return;  // the run says so
  }
  for (size_t i = 0; i < made.size(); ++i) {
    if (made[i] != nullptr) known_[names[i]] = made[i];
  }
}

void GraphBuilder::RemoveNodeOps() {
  block_->RemoveOps(first_op_, block_->ops().size());
  for (size_t i = first_var_; i < block_->vars().size(); ++i) {
    const std::string& name = block_->vars()[i]->name;
    if (weights_.contains(name)) continue;
    known_.erase(name);
    dropped_.push_back(name);
  }
  for (OnnxValue* value : made_in_node_) value->variable = {};
}

void GraphBuilder::Fold(const std::vector<OnnxValue*>& outputs) {
  for (size_t i = first_op_; i < block_->ops().size(); ++i) FoldOp(*block_->ops()[i]);
  bool are_known = !outputs.empty();
  for (OnnxValue* output : outputs) {
    if (output->known != nullptr || !output->variable.defined()) continue;
    const auto found = known_.find(output->variable.name());
    if (found != known_.end()) output->known = found->second;
    are_known = are_known && output->known != nullptr;
  }
  if (!are_known) return;
  for (OnnxValue* output : outputs) {
    const bool is_own = output->variable.defined() &&
                        std::ranges::any_of(block_->vars().begin() + static_cast<long>(first_var_),
                                            block_->vars().end(), [&](const auto& var) {
                                              return var->name == output->variable.name();
                                            });
    if (is_own && !weights_.contains(output->variable.name())) output->variable = {};
  }
  RemoveNodeOps();
}

void GraphBuilder::MarkSites(const std::string& file, int node) {
  for (size_t i = first_op_; i < block_->ops().size(); ++i) {
    block_->ops()[i]->site = {.file = file, .line = node};
  }
}

bool GraphBuilder::Rename(const Variable& variable, const std::string& name) {
  const auto [entry, is_new] = names_.try_emplace(variable.name(), name);
  if (is_new && !taken_.insert(name).second) {
    names_.erase(entry);
    return false;
  }
  return entry->second == name;
}

void GraphBuilder::ApplyNames() {
  block_->RemoveVars(dropped_);
  // What the file doesn't name makes room for what it names.
  for (const auto& var : block_->vars()) {
    if (names_.contains(var->name) || !taken_.contains(var->name)) continue;
    std::string name;
    do {
      name = block_->program()->UniqueName(var->name);
    } while (taken_.contains(name));
    taken_.insert(name);
    names_.emplace(var->name, name);
  }
  std::vector<Var> renamed;
  std::vector<std::string> old;
  for (const auto& var : block_->vars()) {
    const auto found = names_.find(var->name);
    if (found == names_.end() || found->second == var->name) continue;
    old.push_back(var->name);
    renamed.push_back(*var);
    renamed.back().name = found->second;
  }
  block_->RemoveVars(old);
  for (Var& var : renamed) block_->CreateVar(std::move(var));
  for (const auto& op : block_->ops()) {
    Replace(names_, &op->inputs);
    Replace(names_, &op->outputs);
  }
}

void GraphBuilder::MoveWeightsTo(Scope* scope) {
  for (auto& [name, tensor] : weights_) {
    const auto found = names_.find(name);
    scope->Set(found == names_.end() ? name : found->second, tensor);
  }
}

}  // namespace skiff
