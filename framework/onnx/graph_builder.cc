#include "framework/onnx/graph_builder.h"

#include <algorithm>
#include <utility>

#include "framework/base/error.h"
#include "framework/builder/current_block.h"
#include "framework/builder/tensor_layers.h"
#include "framework/onnx/tensor_proto.h"
#include "framework/op/evaluation.h"
#include "framework/op/infer_outputs.h"
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

void RenameVars(const std::map<std::string, std::string>& names, Block* block) {
  std::vector<Var> renamed;
  std::vector<std::string> old;
  for (const auto& var : block->vars()) {
    const auto found = names.find(var->name);
    if (found == names.end() || found->second == var->name) continue;
    old.push_back(var->name);
    renamed.push_back(*var);
    renamed.back().name = found->second;
  }
  block->RemoveVars(old);
  for (Var& var : renamed) block->CreateVar(std::move(var));
}

// Returns whether no variable of any block has the name.
bool IsFree(const Program& program, const std::string& name) {
  for (size_t i = 0; i < program.block_count(); ++i) {
    if (program.block(static_cast<int32_t>(i))->FindLocalVar(name) != nullptr) return false;
  }
  return true;
}

}  // namespace

OnnxValuePtr ValueOf(const Variable& variable) {
  OnnxValue value;
  value.name = variable.name();
  value.variable = variable;
  return std::make_shared<OnnxValue>(std::move(value));
}

GraphBuilder::GraphBuilder() : root_(&CurrentBlock()) {}

Variable GraphBuilder::MakePersistable(const std::string& name, const Tensor& value,
                                       bool is_parameter) {
  Var var{.name = root_->program()->UniqueName("weight")};
  var.dtype = value.dtype();
  var.dims = value.shape().ToVector();
  var.persistable = true;
  var.is_parameter = is_parameter;
  var.stop_gradient = !is_parameter;
  const Variable variable(root_, var.name);
  root_->CreateVar(std::move(var));
  // Two names of one initializer are two weights: a writer that has found equal ones may have
  // joined them, and an update of one isn't one of the other.
  const bool is_own = buffers_.insert(value.raw_data()).second;
  weights_.emplace(variable.name(), is_own ? value : CopyToCpu(value));
  Rename(variable, name);
  return variable;
}

Variable GraphBuilder::Materialise(OnnxValue* value) {
  if (value->variable.defined()) return value->variable;
  SKIFF_ENFORCE(!value->items, kUnimplemented, "\"", value->name, "\" is a sequence");
  SKIFF_ENFORCE(value->known != nullptr, kInvalidArgument, "\"", value->name, "\" has no value");
  value->variable = Make(*value);
  if (known_.contains(value->variable.name())) made_in_node_.push_back(value);
  return value->variable;
}

Variable GraphBuilder::Make(const OnnxValue& value) {
  const Tensor& tensor = *value.known;
  const bool is_parameter = value.is_weight && IsFloat(tensor.dtype()) &&
                            tensor.element_count() > 0 && tensor.shape().rank() > 0;
  if (!is_parameter && tensor.element_count() <= kMostInProgram && tensor.element_count() > 0) {
    const BlockGuard guard(root_);
    const Variable constant = MakeConstant(tensor);
    if (constant.defined()) {
      known_[constant.name()] = value.known;
      return constant;
    }
  }
  return MakePersistable(value.name, tensor, is_parameter);
}

const Tensor* GraphBuilder::Known(const std::string& variable) const {
  const auto found = known_.find(variable);
  return found == known_.end() ? nullptr : found->second.get();
}

GraphBuilder::NodeStart GraphBuilder::BeginNode() {
  made_in_node_.clear();
  Block* block = &CurrentBlock();
  return {.block = block,
          .op = block->ops().size(),
          .var = block->vars().size(),
          .root_op = root_->ops().size(),
          .root_var = root_->vars().size(),
          .block_count = root_->program()->block_count()};
}

void GraphBuilder::FoldOp(const Block& block, const Op& op) {
  const OpRegistry& registry = DefaultOpRegistry();
  const OpDef& def = registry.Get(op.type);
  std::vector<TensorMeta> inputs;
  for (const SlotDef& slot : def.inputs) {
    for (const std::string& name : op.Input(slot.name)) {
      const Var* var = block.FindVar(name);
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
    const Var* var = block.FindVar(name);
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

void GraphBuilder::RemoveOps(Block* block, size_t first_op, size_t first_var) {
  block->RemoveOps(first_op, block->ops().size());
  for (size_t i = first_var; i < block->vars().size(); ++i) {
    const std::string& name = block->vars()[i]->name;
    if (weights_.contains(name)) continue;
    known_.erase(name);
    dropped_[block].push_back(name);
  }
}

void GraphBuilder::RemoveNode(const NodeStart& start) {
  RemoveOps(start.block, start.op, start.var);
  if (start.block != root_) RemoveOps(root_, start.root_op, start.root_var);
  for (OnnxValue* value : made_in_node_) value->variable = {};
}

void GraphBuilder::Fold(const NodeStart& start, const std::vector<OnnxValue*>& outputs) {
  const Block& block = *start.block;
  for (size_t i = start.op; i < block.ops().size(); ++i) FoldOp(block, *block.ops()[i]);
  bool are_known = !outputs.empty();
  for (OnnxValue* output : outputs) {
    if (output->known != nullptr || !output->variable.defined()) continue;
    const auto found = known_.find(output->variable.name());
    if (found != known_.end()) output->known = found->second;
    are_known = are_known && output->known != nullptr;
  }
  if (!are_known) return;
  for (OnnxValue* output : outputs) {
    const bool is_own =
        output->variable.defined() &&
        std::ranges::any_of(block.vars().begin() + static_cast<long>(start.var), block.vars().end(),
                            [&](const auto& var) { return var->name == output->variable.name(); });
    if (is_own && !weights_.contains(output->variable.name())) output->variable = {};
  }
  RemoveNode(start);
}

void GraphBuilder::MarkSites(const NodeStart& start, const std::string& file, int node) {
  const auto mark = [&](const Block& block, size_t first) {
    for (size_t i = first; i < block.ops().size(); ++i) {
      CreationSite& site = block.ops()[i]->site;
      if (site.file != file) site = {.file = file, .line = node};
    }
  };
  mark(*start.block, start.op);
  mark(*root_, start.root_op);
  const Program& program = *root_->program();
  for (size_t i = start.block_count; i < program.block_count(); ++i) {
    mark(*program.block(static_cast<int32_t>(i)), 0);
  }
}

void GraphBuilder::Reserve(const std::string& name) {
  if (root_->FindLocalVar(name) == nullptr) root_->CreateVar({.name = name});
  reserved_.insert(name);
}

bool GraphBuilder::Rename(const Variable& variable, const std::string& name) {
  const auto entry = names_.find(variable.name());
  if (entry != names_.end()) return entry->second == name;
  const bool has_it = variable.name() == name;
  const bool is_free = has_it || reserved_.contains(name) || IsFree(*root_->program(), name);
  if (!is_free || !taken_.insert(name).second) return false;
  if (!has_it) Reserve(name);
  names_.emplace(variable.name(), name);
  return true;
}

void GraphBuilder::ApplyNames() {
  for (const std::string& name : reserved_) dropped_[root_].push_back(name);
  for (const auto& [block, names] : dropped_) block->RemoveVars(names);
  const Program& program = *root_->program();
  for (size_t i = 0; i < program.block_count(); ++i) {
    Block* block = program.block(static_cast<int32_t>(i));
    // In a body, what an iteration makes of an output has the name of the output.
    RenameVars(names_, block);
    for (const auto& op : block->ops()) {
      Replace(names_, &op->inputs);
      Replace(names_, &op->outputs);
    }
  }
}

void GraphBuilder::MoveWeightsTo(Scope* scope) {
  for (auto& [name, tensor] : weights_) {
    const auto found = names_.find(name);
    scope->Set(found == names_.end() ? name : found->second, tensor);
  }
}

}  // namespace skiff
