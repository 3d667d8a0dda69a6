#include "framework/builder/layer_call.h"

#include <utility>

#include "framework/builder/call_site.h"
#include "framework/builder/current_block.h"
#include "framework/builder/param_settings.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/warning.h"
#include "framework/ir/op_role.h"
#include "framework/op/registry.h"
#include "framework/op/shape_warning.h"
#include "framework/tensor/shape.h"

namespace skiff {
namespace {

int32_t Narrowed(const Op& op, const std::string& attribute, int64_t value,
                 const std::source_location& site) {
  SKIFF_ENFORCE(std::in_range<int32_t>(value), kInvalidArgument, SiteText(site), ": ", op.type,
                ": ", attribute, " = ", value,
                " doesn't fit into the 32 bits that a program has for it");
  return static_cast<int32_t>(value);
}

std::string TypeOfAct(const std::string& act) {
  if (act == "silu") return "swish";
  return act == "gelu_tanh" ? "gelu" : act;
}

// Layers and initializers give all integers as int64, but most attributes of Fluid's ops have 32
// bits.
void NarrowIntegers(Op* op, const std::source_location& site) {
  const OpDef* def = DefaultOpRegistry().Find(op->type);
  if (def == nullptr) return;
  for (auto& [name, value] : op->attrs) {
    const AttrDef* attr = def->FindAttr(name);
    if (attr == nullptr) continue;
    if (const auto* wide = std::get_if<int64_t>(&value); wide && attr->type == AttrType::kInt) {
      value = Narrowed(*op, name, *wide, site);
    } else if (const auto* list = std::get_if<std::vector<int64_t>>(&value);
               list && attr->type == AttrType::kInts) {
      std::vector<int32_t> narrowed;
      for (const int64_t element : *list) narrowed.push_back(Narrowed(*op, name, element, site));
      value = std::move(narrowed);
    }
  }
}

Op* AppendInferred(Block* block, Op op, const std::source_location& site) {
  NarrowIntegers(&op, site);
  op.site = SiteOf(site);
  Op* appended = block->AppendOp(std::move(op));
  const ShapeWarnings warnings;
  try {
    InferOp(DefaultOpRegistry(), block, appended);
    for (const std::string& text : warnings.texts()) {
      Warn(StrCat(DescribeOp(*appended, block->index(), block->ops().size() - 1), ": ", text));
    }
  } catch (...) {
    // A program never keeps an op whose shapes are unknown, or of which a warning was refused.
    block->RemoveOps(block->ops().size() - 1, block->ops().size());
    throw;
  }
  return appended;
}

// Appends the op that initializes a variable to the startup program, without the role and the name
// scope of the model. Initializers make float32 and float64, so two-byte variables are filled by
// way of a float32 variable and rounded.
void AppendInitialization(const Var& var, const Initializer& initializer,
                          const std::source_location& site) {
  Block* startup = DefaultStartupProgram().root();
  // Another main program with the same startup program has initialized it.
  if (startup->FindLocalVar(var.name) != nullptr) return;
  Var first = var;
  first.attrs.clear();
  const bool is_rounded = IsHalf(var.dtype);
  if (is_rounded) {
    first = {.name = DefaultStartupProgram().UniqueName(var.name + ".float32")};
    first.dtype = DType::kFloat32;
    first.dims = var.dims;
  }
  Op op = initializer.Make(first);
  startup->CreateVar(first);
  AppendInferred(startup, std::move(op), site);
  if (!is_rounded) return;
  Var copy = var;
  copy.attrs.clear();
  startup->CreateVar(std::move(copy));
  AppendInferred(startup, CastOp(first, var), site);
}

void CheckSame(const Var& existing, const std::vector<int64_t>& dims, DType dtype) {
  SKIFF_ENFORCE(existing.persistable && existing.dims == dims && existing.dtype == dtype,
                kInvalidArgument, "variable \"", existing.name, "\" exists as ",
                existing.persistable ? "" : "non-persistable ", existing.dtype, " ",
                Shape(existing.dims), ", expected ", dtype, " ", Shape(dims));
}

Var ParameterVar(const ParamAttr& attr, std::string name, std::vector<int64_t> dims, DType dtype) {
  Var var{.name = std::move(name)};
  var.dtype = dtype;
  var.dims = std::move(dims);
  var.persistable = true;
  var.is_parameter = true;
  var.trainable = attr.trainable;
  var.stop_gradient = !attr.trainable;
  var.learning_rate_factor = attr.learning_rate;
  if (attr.regularizer.defined()) {
    var.attrs[kRegularizerVarAttr] = RegularizerToText(attr.regularizer);
  }
  if (!attr.need_clip) var.attrs[kNeedClipVarAttr] = int32_t{0};
  if (!attr.do_model_average) var.attrs[kDoModelAverageVarAttr] = int32_t{0};
  return var;
}

}  // namespace

LayerCall::LayerCall(std::string_view type, std::string_view name, const std::source_location& site)
    : type_(type),
      site_(site),
      name_(name.empty() ? DefaultMainProgram().UniqueName(type) : std::string(name)) {}

void LayerCall::Fail(const std::string& message) const {
  Throw(ErrorCode::kInvalidArgument, SiteText(site_), ": ", type_, ": ", message);
}

std::string LayerCall::CheckedName(const Variable& x) const {
  Enforce(x.defined(), "an input is an undefined Variable");
  Enforce(x.block()->program() == &DefaultMainProgram(), "input \"", x.name(),
          "\" belongs to another program than the default main program");
  Enforce(CurrentBlock().FindVar(x.name()) != nullptr, "input \"", x.name(),
          "\" is not visible in block ", CurrentBlock().index());
  return x.name();
}

std::vector<std::string> LayerCall::CheckedNames(const std::vector<Variable>& xs) const {
  std::vector<std::string> names;
  for (const Variable& x : xs) names.push_back(CheckedName(x));
  return names;
}

Variable LayerCall::NewOutput() const {
  Var var{.name = DefaultMainProgram().UniqueName(name_ + ".tmp")};
  CurrentBlock().CreateVar(var);
  return {&CurrentBlock(), var.name};
}

std::string LayerCall::NewSavedOutput() const { return NewOutput().StopGradient().name(); }

Variable LayerCall::CreateParameter(const ParamAttr& attr, std::string_view suffix,
                                    std::vector<int64_t> dims, DType dtype,
                                    const Initializer& default_initializer) const {
  for (const int64_t dim : dims) {
    Enforce(dim > 0, "a parameter of shape ", Shape(dims),
            " can't be made: each dim must be known and positive");
  }
  // A Variable that is given counts more than a name.
  if (attr.shared.defined()) return SharedParameter(attr, dims, dtype);
  Block* root = DefaultMainProgram().root();
  try {
    const std::string name =
        attr.name.empty() ? root->program()->UniqueName(StrCat(name_, ".", suffix)) : attr.name;
    Var* var = root->FindLocalVar(name);
    if (var != nullptr) {
      CheckSame(*var, dims, dtype);
      return {root, name};
    }
    const Var parameter = ParameterVar(attr, name, std::move(dims), dtype);
    // Both programs are checked before either is changed.
    const Var* in_startup = DefaultStartupProgram().root()->FindLocalVar(name);
    if (in_startup != nullptr) CheckSame(*in_startup, parameter.dims, dtype);
    AppendInitialization(
        parameter, attr.initializer.defined() ? attr.initializer : default_initializer, site_);
    root->CreateVar(parameter);
    return {root, name};
  } catch (const Error& error) {
    throw error.WithContext(StrCat(SiteText(site_), ": ", type_));
  }
}

Variable LayerCall::SharedParameter(const ParamAttr& attr, const std::vector<int64_t>& dims,
                                    DType dtype) const {
  const std::string& name = attr.shared.name();
  Enforce(attr.shared.block() == DefaultMainProgram().root(), "the shared parameter \"", name,
          "\" is not in the root block of the default main program");
  const Var& var = attr.shared.var();
  Enforce(var.is_parameter, "\"", name, "\" is no parameter, so that it can't be shared as one");
  Enforce(var.dims == dims && var.dtype == dtype, "the shared parameter \"", name, "\" is ",
          var.dtype, " ", Shape(var.dims), ", expected ", dtype, " ", Shape(dims));
  const ParamAttr unset;
  Enforce(attr.name.empty() && !attr.initializer.defined() && !attr.regularizer.defined() &&
              attr.learning_rate == unset.learning_rate && attr.trainable == unset.trainable &&
              attr.need_clip == unset.need_clip && attr.do_model_average == unset.do_model_average,
          "the shared parameter \"", name,
          "\" comes with other settings, expected none: it keeps those that it was made with");
  return attr.shared;
}

Op* LayerCall::Append(Op op) const {
  const std::vector<std::string> outputs = op.OutputNames();
  if (!CurrentNameScope().empty()) op.SetAttr(kOpNamescopeAttr, CurrentNameScope());
  if (CurrentOpRole() != kRoleForward) op.SetAttr(kOpRoleAttr, CurrentOpRole());
  try {
    return AppendInferred(&CurrentBlock(), std::move(op), site_);
  } catch (...) {
    for (const std::string& name : outputs) {
      // Only variables of this call: an op may also write one that existed before.
      if (name.starts_with(name_ + ".tmp_")) CurrentBlock().RemoveVar(name);
    }
    throw;
  }
}

Variable LayerCall::AppendFor(Op op, std::string_view slot) const {
  const Variable output = NewOutput();
  op.SetOutput(slot, {output.name()});
  Append(std::move(op));
  return output;
}

Variable LayerCall::AddBias(const Variable& x, const BiasAttr& bias, size_t begin,
                            size_t end) const {
  if (!bias.has_value()) return x;
  const std::vector<int64_t>& dims = x.dims();
  const auto at = [&](size_t i) { return dims.begin() + static_cast<std::ptrdiff_t>(i); };
  const Variable parameter = CreateParameter(*bias, "b", std::vector<int64_t>(at(begin), at(end)),
                                             x.dtype(), initializer::Constant(0.0));
  Op op("elementwise_add");
  op.SetInput("X", {CheckedName(x)}).SetInput("Y", {parameter.name()});
  op.SetAttr("axis", static_cast<int32_t>(begin));
  return AppendFor(std::move(op));
}

Variable LayerCall::Activate(const Variable& x, const std::string& act) const {
  if (act.empty()) return x;
  Op op(TypeOfAct(act));
  op.SetInput("X", {CheckedName(x)});
  // The defaults of activation.h that aren't Fluid's.
  if (act == "leaky_relu") op.SetAttr("alpha", 0.01f);
  if (act == "gelu_tanh") op.SetAttr("approximate", true);
  if (act == "hard_sigmoid") op.SetAttr("slope", 0.16666667f);
  return AppendFor(std::move(op));
}

Variable CreatePersistable(const std::string& name, const std::vector<int64_t>& dims, DType dtype,
                           double value, const std::source_location& site) {
  return CreatePersistable(name, dims, dtype, initializer::Constant(value), site);
}

Variable CreatePersistable(const std::string& name, const std::vector<int64_t>& dims, DType dtype,
                           const Initializer& first, const std::source_location& site) {
  Block* root = DefaultMainProgram().root();
  const Var* existing = root->FindLocalVar(name);
  if (existing != nullptr) {
    CheckSame(*existing, dims, dtype);
    return {root, name};
  }
  Var var{.name = name};
  var.dtype = dtype;
  var.dims = dims;
  var.persistable = true;
  var.stop_gradient = true;
  AppendInitialization(var, first, site);
  root->CreateVar(std::move(var));
  return {root, name};
}

std::string UniquePersistableName(std::string_view prefix) {
  std::string name;
  do {
    name = DefaultMainProgram().UniqueName(prefix);
  } while (DefaultStartupProgram().root()->FindLocalVar(name) != nullptr);
  return name;
}

std::string OwnPersistableName(std::string_view name) {
  const bool is_free = DefaultMainProgram().root()->FindLocalVar(name) == nullptr &&
                       DefaultStartupProgram().root()->FindLocalVar(name) == nullptr;
  return is_free ? std::string(name) : UniquePersistableName(name);
}

Variable FilledVariable(std::string_view type, const std::vector<int64_t>& dims, DType dtype,
                        const Initializer& initializer, const std::source_location& site) {
  const LayerCall call(type, "", site);
  const Variable out =
      call.AppendFor(initializer.Make({.name = call.name(), .dtype = dtype, .dims = dims}));
  out.StopGradient();
  return out;
}

Op CastOp(const Var& x, const Var& out) {
  Op op("cast");
  op.SetInput("X", {x.name}).SetOutput("Out", {out.name});
  op.SetAttr("in_dtype", static_cast<int32_t>(x.dtype));
  op.SetAttr("out_dtype", static_cast<int32_t>(out.dtype));
  return op;
}

}  // namespace skiff
