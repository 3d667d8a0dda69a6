#include "framework/builder/control_flow.h"

#include <algorithm>
#include <string>

#include "framework/builder/block_call.h"
#include "framework/builder/control.h"
#include "framework/builder/current_block.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor_layers.h"

namespace skiff::layers {
namespace {

struct Branch {
  Block* block = nullptr;
  Variables results;  // copies outside of the block
};

// Builds the block of a branch.
Branch BuildBranch(const LayerCall& call, const std::function<Variables()>& build,
                   const Site& site) {
  Branch branch;
  Block* outer = &CurrentBlock();
  branch.block = BuildBlock([&] {
    for (const Variable& result : build()) {
      call.CheckedName(result);
      Variable copy;
      {
        const BlockGuard guard(outer);
        copy = call.NewOutput();
      }
      Var& var = copy.var();
      var.dtype = result.dtype();
      var.dims = result.dims();
      var.lod_level = result.var().lod_level;
      AssignTo(result, copy, site);
      branch.results.push_back(copy);
    }
  });
  return branch;
}

// Appends the op that runs the branch if `condition` is true.
void AppendBranch(const LayerCall& call, const Variable& condition, const Branch& branch) {
  const BlockUses uses = UsesOutside(*branch.block);
  Op op("conditional_block");
  op.SetInput("Cond", {call.CheckedName(condition)}).SetInput("Input", uses.reads);
  op.SetOutput("Out", uses.writes).SetOutput("Scope", {NewScopes(call)});
  op.SetAttr("sub_block", BlockIndex{branch.block->index()}).SetAttr("is_scalar_condition", true);
  call.Append(std::move(op));
}

}  // namespace

void Switch::Case(const Variable& condition, const std::function<void()>& body) {
  const LayerCall call("switch", "", site_);
  call.Enforce(!has_default_, "a case after the default");
  const Variable first =
      none_before_.defined() ? LogicalAnd(none_before_, condition, site_) : condition;
  // Before the block, which may assign to the condition.
  const Variable fails = LogicalNot(condition, site_);
  const Variable none = none_before_.defined() ? LogicalAnd(none_before_, fails, site_) : fails;
  Add(first, body);
  none_before_ = none;
}

void Switch::Default(const std::function<void()>& body) {
  const LayerCall call("switch", "", site_);
  call.Enforce(!has_default_, "a second default");
  call.Enforce(none_before_.defined(), "a default without a case before it");
  has_default_ = true;
  Add(none_before_, body);
}

void Switch::Add(const Variable& condition, const std::function<void()>& body) {
  const LayerCall call("switch", "", site_);
  AppendBranch(call, condition, {.block = BuildBlock(body), .results = {}});
}

IfElse::IfElse(const Variable& mask, Site site)
    : mask_(mask), site_(site), outer_(&CurrentBlock()) {
  const LayerCall call("if_else", "", site);
  call.CheckedName(mask);
  call.Enforce(mask.dtype() == DType::kBool, "the mask \"", mask.name(), "\" is ", mask.dtype(),
               ", expected bool");
}

void IfElse::IfTrue(const std::function<Variables()>& body) { Build(true, body); }
void IfElse::IfFalse(const std::function<Variables()>& body) { Build(false, body); }

Variable IfElse::Input(const Variable& x) {
  const LayerCall call("if_else", "", site_);
  call.Enforce(building_ >= 0, "Input is called outside of IfTrue and IfFalse");
  call.CheckedName(x);
  for (const Rows& rows : inputs_) {
    if (rows.of.name() == x.name()) return rows.parts[building_];
  }
  const BlockGuard guard(outer_);
  Rows rows{.of = x, .parts = {call.NewOutput(), call.NewOutput()}};
  Op op("split_lod_tensor");
  op.SetInput("X", {call.CheckedName(x)}).SetInput("Mask", {mask_.name()});
  op.SetOutput("OutTrue", {rows.parts[1].name()}).SetOutput("OutFalse", {rows.parts[0].name()});
  call.Append(std::move(op));
  inputs_.push_back(rows);
  return rows.parts[building_];
}

void IfElse::Build(bool value, const std::function<Variables()>& body) {
  const LayerCall call("if_else", "", site_);
  call.Enforce(!is_built_[value], value ? "IfTrue" : "IfFalse", " is called twice");
  building_ = value ? 1 : 0;
  Branch branch;
  try {
    branch = BuildBranch(call, body, site_);
  } catch (...) {
    building_ = -1;
    throw;
  }
  building_ = -1;
  const BlockUses uses = UsesOutside(*branch.block);
  // It runs if it has rows.
  std::vector<std::string> rows;
  for (const Rows& input : inputs_) {
    const std::string& name = input.parts[value].name();
    if (std::ranges::count(uses.reads, name) > 0) rows.push_back(name);
  }
  call.Enforce(!rows.empty(), value ? "IfTrue" : "IfFalse", " has no Input");
  Op op("conditional_block");
  op.SetInput("Cond", rows).SetInput("Input", uses.reads);
  op.SetOutput("Out", uses.writes).SetOutput("Scope", {NewScopes(call)});
  op.SetAttr("sub_block", BlockIndex{branch.block->index()}).SetAttr("is_scalar_condition", false);
  call.Append(std::move(op));
  results_[value] = branch.results;
  is_built_[value] = true;
}

Variables IfElse::Outputs() {
  const LayerCall call("if_else", "", site_);
  call.Enforce(is_built_[0] && is_built_[1], "Outputs is called before IfTrue and IfFalse");
  call.Enforce(results_[0].size() == results_[1].size(), "IfTrue returns ", results_[1].size(),
               " variables, IfFalse ", results_[0].size(), ": expected as many");
  Variables merged;
  for (size_t i = 0; i < results_[0].size(); ++i) {
    Op op("merge_lod_tensor");
    op.SetInput("X", {mask_.name()}).SetInput("Mask", {mask_.name()});
    op.SetInput("InTrue", {results_[1][i].name()}).SetInput("InFalse", {results_[0][i].name()});
    merged.push_back(call.AppendFor(std::move(op)));
  }
  return merged;
}

void AssignTo(const Variable& x, const Variable& to, Site site) {
  const LayerCall call("assign", "", site);
  EnforceSame(call, "", x, "", to);
  Op op("assign");
  op.SetInput("X", {call.CheckedName(x)}).SetOutput("Out", {call.CheckedName(to)});
  call.Append(std::move(op));
}

While::While(const Variable& condition, Site site) : condition_(condition), site_(site) {
  const LayerCall call("while", "", site);
  call.CheckedName(condition);
  call.Enforce(condition.dtype() == DType::kBool, "the condition \"", condition.name(), "\" is ",
               condition.dtype(), ", expected bool");
}

void While::Body(const std::function<void()>& body) {
  const LayerCall call("while", "", site_);
  AppendWhile(call, condition_, *BuildBlock(body));
}

Variables WhileLoop(const std::function<Variable(const Variables&)>& condition,
                    const std::function<Variables(const Variables&)>& body,
                    const Variables& initial, Site site) {
  const LayerCall call("while", "", site);
  call.Enforce(!initial.empty(), "no variables, expected one at least");
  Variables state;
  for (const Variable& variable : initial) state.push_back(Assign(variable, site));
  const Variable goes_on = Assign(condition(state), site);
  While loop(goes_on, site);
  loop.Body([&] {
    const Variables next = body(state);
    call.Enforce(next.size() == state.size(), "the body returns ", next.size(),
                 " variables, expected ", state.size());
    // Copies first: one of them may be a variable that another one becomes.
    Variables copies;
    for (const Variable& variable : next) copies.push_back(Assign(variable, site));
    for (size_t i = 0; i < state.size(); ++i) AssignTo(copies[i], state[i], site);
    AssignTo(condition(state), goes_on, site);
  });
  return state;
}

Variables Cond(const Variable& condition, const std::function<Variables()>& if_true,
               const std::function<Variables()>& if_false, Site site) {
  const LayerCall call("cond", "", site);
  const Branch from_true = BuildBranch(call, if_true, site);
  const Branch from_false = BuildBranch(call, if_false, site);
  const size_t count = from_true.results.size();
  call.Enforce(count == from_false.results.size(), "the branches return ", count, " and ",
               from_false.results.size(), " variables, expected as many");
  AppendBranch(call, condition, from_true);
  AppendBranch(call, LogicalNot(condition, site), from_false);
  const Variable mask = Cast(condition, DType::kInt32, site);
  Variables results;
  for (size_t i = 0; i < count; ++i) {
    Op op("select_input");
    op.SetInput("X", {from_false.results[i].name(), from_true.results[i].name()});
    op.SetInput("Mask", {mask.name()});
    results.push_back(call.AppendFor(std::move(op)));
  }
  return results;
}

Variables Case(const std::vector<std::pair<Variable, std::function<Variables()>>>& branches,
               const std::function<Variables()>& otherwise, Site site) {
  const LayerCall call("case", "", site);
  call.Enforce(!branches.empty(), "no branches, expected one at least");
  std::function<Variables()> rest = otherwise;
  // From the last one, so that the first becomes the outermost.
  for (size_t i = branches.size(); i-- > 1;) {
    rest = [branch = branches[i], rest, site] {
      return Cond(branch.first, branch.second, rest, site);
    };
  }
  return Cond(branches[0].first, branches[0].second, rest, site);
}

Variables SwitchCase(const Variable& index,
                     const std::vector<std::pair<int64_t, std::function<Variables()>>>& branches,
                     const std::function<Variables()>& otherwise, Site site) {
  std::vector<std::pair<Variable, std::function<Variables()>>> cases;
  for (const auto& [number, branch] : branches) {
    const Variable value = FillConstant({1}, index.dtype(), static_cast<double>(number), site);
    cases.emplace_back(Equal(index, value, site), branch);
  }
  return Case(cases, otherwise, site);
}

}  // namespace skiff::layers
