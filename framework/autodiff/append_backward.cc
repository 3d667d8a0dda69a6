// AppendBackward checks its arguments, differentiates the root block (BlockBackward does the work
// and only collects ops), and appends the result at the very end, when nothing can fail for the
// user's program. The gradient of the loss itself is 1.
#include "framework/autodiff/append_backward.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "framework/autodiff/block_backward.h"
#include "framework/autodiff/loop_backward.h"
#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/op/declared_types.h"
#include "framework/op/grad_name.h"
#include "framework/tensor/shape.h"

namespace skiff {
namespace {

using NameSet = std::set<std::string>;

NameSet ParameterNames(const Block& root, const BackwardOptions& options) {
  for (const std::string& name : options.parameters) {
    const Var* var = root.FindLocalVar(name);
    SKIFF_ENFORCE(var != nullptr && var->is_parameter, kNotFound,
                  "append_backward: the parameter list names \"", name,
                  "\", which is no parameter of the program");
  }
  return NameSet(options.parameters.begin(), options.parameters.end());
}

NameSet InputNames(const Block& root, const BackwardOptions& options) {
  for (const std::string& name : options.inputs) {
    const Var* var = root.FindLocalVar(name);
    SKIFF_ENFORCE(var != nullptr, kNotFound, "append_backward: the inputs name \"", name,
                  "\", which is no variable of the root block");
    SKIFF_ENFORCE(IsFloat(var->dtype) && var->kind == VarKind::kLoDTensor, kInvalidArgument,
                  "append_backward: the input \"", name, "\" is a ", VarKindName(var->kind), " of ",
                  var->dtype, ", expected a tensor of floats");
    const auto writers = std::ranges::count_if(root.ops(), [&](const std::unique_ptr<Op>& op) {
      return (op->role() & kRoleOptimize) == 0 && std::ranges::count(op->OutputNames(), name) > 0;
    });
    SKIFF_ENFORCE(writers <= 1, kInvalidArgument, "append_backward: ", writers,
                  " ops write the input \"", name,
                  "\", expected one at most: which of its values "
                  "is meant?");
  }
  return NameSet(options.inputs.begin(), options.inputs.end());
}

NameSet NoGradNames(const Program& program, const BackwardOptions& options) {
  for (const std::string& name : options.no_grad) {
    bool found = false;
    for (size_t b = 0; b < program.block_count(); ++b) {
      found = found || program.block(static_cast<int32_t>(b))->FindLocalVar(name) != nullptr;
    }
    SKIFF_ENFORCE(found, kNotFound, "append_backward: no_grad names \"", name,
                  "\", which is no variable of the program");
  }
  return NameSet(options.no_grad.begin(), options.no_grad.end());
}

const Var& CheckedLoss(const Block& root, std::string_view loss) {
  const Var* var = root.FindLocalVar(loss);
  SKIFF_ENFORCE(var != nullptr, kNotFound, "append_backward: the loss \"", loss,
                "\" is no variable of the root block");
  SKIFF_ENFORCE(IsFloat(var->dtype), kInvalidArgument, "append_backward: the loss \"", loss,
                "\" is of dtype ", var->dtype, ", expected a float");
  const bool one_element =
      std::all_of(var->dims.begin(), var->dims.end(), [](int64_t dim) { return dim == 1; });
  SKIFF_ENFORCE(one_element, kInvalidArgument, "append_backward: the loss \"", loss,
                "\" has the shape ", Shape(var->dims),
                ", expected one element: reduce it with mean or reduce_sum");
  return *var;
}

Op GradientOfLossItself(const Var& loss, const Op& writer) {
  Op op("fill_constant");
  op.SetOutput("Out", {GradName(loss.name)});
  op.SetAttr("shape", std::vector<int64_t>(loss.dims));
  op.SetAttr("dtype", static_cast<int32_t>(loss.dtype));
  // dloss/dloss.
  op.SetAttr("value", 1.0f);
  op.SetAttr(kOpRoleAttr, kRoleBackward | kRoleLoss);
  op.site = writer.site;
  return op;
}

std::vector<ParameterGradient> CollectParameters(
    const Block& root, const std::map<std::string, std::string>& gradients,
    const std::function<bool(const Var&)>& wanted) {
  std::vector<ParameterGradient> collected;
  for (const auto& var : root.vars()) {
    if (!var->is_parameter || !wanted(*var)) continue;
    const auto found = gradients.find(var->name);
    if (found == gradients.end()) continue;
    Var* gradient = root.FindLocalVar(found->second);
    if (gradient != nullptr) collected.push_back({var.get(), gradient});
  }
  return collected;
}

// Marks, for each parameter, the op that completes its gradient (the sum, if there is one), by
// which passes recognise the gradient.
void MarkLastWriters(const Block& root, size_t begin,
                     const std::vector<ParameterGradient>& parameters) {
  std::map<std::string, Op*> last_writer;
  for (size_t i = begin; i < root.ops().size(); ++i) {
    Op* op = root.ops()[i].get();
    for (const std::string& name : op->OutputNames()) last_writer[name] = op;
  }
  for (const ParameterGradient& pair : parameters) {
    Op* op = last_writer.at(pair.gradient->name);
    auto names = op->Attr<std::vector<std::string>>(kOpRoleVarAttr, {});
    names.push_back(pair.parameter->name);
    names.push_back(pair.gradient->name);
    op->SetAttr(kOpRoleVarAttr, std::move(names));
  }
}

}  // namespace

BackwardResult AppendBackward(const OpRegistry& registry, Program* program, std::string_view loss,
                              const BackwardOptions& options) {
  // The rules of gradients read attributes.
  TakeDeclaredTypes(registry, program);
  Block* root = program->root();
  const Var& loss_var = CheckedLoss(*root, loss);
  const NameSet parameters = ParameterNames(*root, options);
  const NameSet inputs = InputNames(*root, options);
  const NameSet no_grad = NoGradNames(*program, options);
  const auto is_input = [&](const Var& var) {
    return inputs.contains(var.name) && root->FindLocalVar(var.name) == &var;
  };
  const auto excluded = [&](const Var& var) {
    return !is_input(var) && (var.stop_gradient || no_grad.contains(var.name));
  };
  const auto trained = [&](const Var& var) {
    if (!inputs.empty()) return is_input(var);
    return var.trainable && (parameters.empty() || parameters.contains(var.name));
  };
  // A feed wants a gradient if nothing excludes it. A parameter must, in addition, be one that is
  // trained.
  const auto leaf_wants = [&](const Var& var) {
    // An array is empty until an op writes it.
    if (var.kind == VarKind::kLoDTensorArray) return false;
    if (!inputs.empty()) return is_input(var);
    return !excluded(var) && (!var.is_parameter || trained(var));
  };

  BackwardNames names(program);
  BlockBackward backward(registry, DifferentiateBlock, &names, *root, leaf_wants, excluded,
                         is_input);
  const int64_t writer = backward.LastWriter(loss_var.name);
  SKIFF_ENFORCE(writer >= 0, kInvalidArgument, "append_backward: no op of the root block writes ",
                "the loss \"", loss, "\"");
  // What depends on parameters only through an op without a gradient isn't a mistake of the marks.
  const auto or_ops_without_gradient = [&](const char* otherwise) {
    const std::string ops = backward.OpsWithoutGradient(loss_var.name);
    return ops.empty() ? std::string(otherwise) : StrCat(": no gradient flows through ", ops);
  };
  SKIFF_ENFORCE(backward.WantsGradient(loss_var.name), kInvalidArgument,
                "append_backward: the loss \"", loss,
                "\" depends on no variable that wants a gradient",
                or_ops_without_gradient(": every parameter and feed on its way is marked "
                                        "stop_gradient, not trainable or excluded by the options"));
  Op* loss_op = root->ops()[static_cast<size_t>(writer)].get();
  backward.SeedWithOp(loss_var.name, GradientOfLossItself(loss_var, *loss_op));
  // Ops after the writer of the loss can't influence it.
  backward.Differentiate(static_cast<size_t>(writer) + 1);
  const bool has_parameter = std::ranges::any_of(root->vars(), [&](const auto& var) {
    return var->is_parameter && trained(*var) && names.gradients().contains(var->name);
  });
  SKIFF_ENFORCE(has_parameter || !options.needs_parameter, kInvalidArgument,
                "append_backward: the loss \"", loss, "\" depends on no trainable parameter",
                or_ops_without_gradient(""));
  for (const std::string& name : options.inputs) {
    SKIFF_ENFORCE(names.gradients().contains(name), kInvalidArgument,
                  "append_backward: the loss \"", loss, "\" does not depend on the input \"", name,
                  "\"");
  }

  // Up to here nothing has been appended yet, so an Error leaves the program as it was.
  loss_op->SetAttr(kOpRoleAttr, loss_op->role() | kRoleLoss);
  const size_t first_gradient_op = root->ops().size();
  backward.AppendTo(root);
  BackwardResult result;
  result.gradients = names.gradients();
  result.parameters = CollectParameters(*root, result.gradients, trained);
  MarkLastWriters(*root, first_gradient_op, result.parameters);
  return result;
}

}  // namespace skiff
