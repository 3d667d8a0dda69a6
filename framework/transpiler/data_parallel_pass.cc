// First finds all gradients and statistics, then inserts the ops from the last place to the first,
// so that places stay valid.
#include "framework/transpiler/data_parallel_pass.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "framework/analysis/op_uses.h"
#include "framework/analysis/parameter_updates.h"
#include "framework/analysis/rank_differences.h"
#include "framework/analysis/running_state.h"
#include "framework/base/error.h"
#include "framework/comm/gather.h"
#include "framework/ir/op_role.h"

namespace skiff {
namespace {

bool IsOptimize(const Op& op) { return (op.role() & kRoleOptimize) != 0; }

// An op and the op of the root block before which it belongs.
struct Insertion {
  size_t before = 0;
  Op op;
};

class Ranks {
 public:
  Ranks(const ProgramPassContext& context, Program* program)
      : registry_(context.registry),
        order_(SumOrderName(context.data_parallel.order)),
        has_ranks_(RankCount(context.data_parallel.communicator.get()) > 1),
        program_(*program),
        root_(*program->root()) {}

  PassReport Run() {
    if (!has_ranks_ || !HasUpdates(registry_, program_)) return Report();
    CheckUpdates();
    NoteOps();
    FindGradients();
    for (const auto& [name, last_writer] : gradients_) SumGradient(name, last_writer);
    ShareStatistics();
    Insert();
    CheckSameOnAllRanks(registry_, program_);
    return Report();
  }

 private:
  PassReport Report() const {
    return {.pass = {},
            .changes = static_cast<int64_t>(gradients_.size()),
            .summary = StrCat(gradients_.size(), " gradients summed over the ranks, ", statistics_,
                              " running statistics shared")};
  }

  // Only ops of the root block and of the role Optimize read the sums over ranks.
  void CheckUpdates() const {
    for (size_t index = 0; index < program_.block_count(); ++index) {
      const Block& block = *program_.block(static_cast<int32_t>(index));
      for (size_t i = 0; i < block.ops().size(); ++i) {
        const Op& op = *block.ops()[i];
        if (!IsParameterUpdate(registry_, op)) continue;
        const std::string place = DescribeOp(op, block.index(), i);
        SKIFF_ENFORCE(index == 0, kUnimplemented, place,
                      ": updates parameters in a block of another op, expected updates in block 0 "
                      "of a program that several ranks train");
        SKIFF_ENFORCE(IsOptimize(op), kUnimplemented, place, ": updates parameters with op_role ",
                      op.role(), ", expected op_role ", kRoleOptimize,
                      " in a program that several ranks train");
      }
    }
  }

  // Notes the ops that write a variable and aren't an optimizer's, and the ops that accumulate.
  void NoteOps() {
    for (size_t i = 0; i < root_.ops().size(); ++i) {
      const OpDef* def = registry_.Find(root_.ops()[i]->type);
      if (def != nullptr && def->accumulation.has_value()) accumulations_.push_back(i);
      if (IsOptimize(*root_.ops()[i])) continue;
      for (const VarUse& use : UsesOf(registry_, root_, i).vars) {
        if (use.writes) writers_[use.var].push_back(i);
      }
    }
  }

  // Finds the gradient of each parameter that an op updates, and the op that completes it.
  void FindGradients() {
    const std::map<std::string, std::string> by_parameter = MarkedGradients();
    for (const auto& op : root_.ops()) {
      if (!IsParameterUpdate(registry_, *op)) continue;
      for (const std::string& parameter : op->Output("ParamOut")) {
        const auto found = by_parameter.find(parameter);
        SKIFF_ENFORCE(found != by_parameter.end(), kUnimplemented, "the update ", op->type,
                      " of parameter \"", parameter,
                      "\": no op_role_var names the gradient, which is to be summed over ranks");
        NoteGradient(found->second);
      }
    }
  }

  // Returns the gradients that the marks name, by parameter.
  std::map<std::string, std::string> MarkedGradients() const {
    std::map<std::string, std::string> by_parameter;
    // A mark on an update counts only where no op that isn't an optimizer's has one: in Fluid's
    // programs the update's mark names the gradient after clipping.
    for (const bool of_updates : {true, false}) {
      for (const auto& op : root_.ops()) {
        if (IsOptimize(*op) != of_updates) continue;
        const auto names = op->Attr<std::vector<std::string>>(kOpRoleVarAttr, {});
        for (size_t i = 0; i + 1 < names.size(); i += 2) by_parameter[names[i]] = names[i + 1];
      }
    }
    return by_parameter;
  }

  // Notes the gradient, unless the program sums it over the ranks: Fleet's programs do.
  void NoteGradient(const std::string& name) {
    const std::optional<size_t> writer = WriterBefore(root_.ops().size(), name);
    SKIFF_ENFORCE(writer.has_value(), kUnimplemented, "the gradient \"", name,
                  "\", which is to be summed over ranks, is written by no op that isn't an "
                  "optimizer's");
    if (!IsSummed(root_.ops().size(), name)) gradients_[name] = *writer;
  }

  // Returns the last op before `end` that writes the variable and isn't an optimizer's.
  std::optional<size_t> WriterBefore(size_t end, const std::string& name) const {
    const auto found = writers_.find(root_.GetVar(name));
    if (found == writers_.end()) return {};
    const auto next = std::ranges::lower_bound(found->second, end);
    if (next == found->second.begin()) return {};
    return *std::prev(next);
  }

  // Returns whether the value that a gradient has at the op `end` comes from a collective op that
  // gives it to all ranks. Throws an Error if it is a part of such a value.
  bool IsSummed(size_t end, const std::string& gradient) const {
    const std::optional<size_t> writer = WriterBefore(end, gradient);
    if (!writer) return false;
    const Op& op = *root_.ops()[*writer];
    const OpDef* def = registry_.Find(op.type);
    if (def == nullptr || !def->collective) return false;
    if (IsCollectiveIdentity(*def)) return IsSummed(*writer, SourceOf(*def, op, gradient));
    const bool is_of_all = GivesAllRanksTheSame(*def, op, gradient);
    SKIFF_ENFORCE(is_of_all || WorksOnBatch(*def), kUnimplemented,
                  DescribeOp(op, root_.index(), *writer), ": the gradient \"", gradient,
                  "\" is one rank's part of a sum, expected whole gradients");
    return is_of_all;
  }

  // Returns the input that the op gives as the output.
  static const std::string& SourceOf(const OpDef& identity, const Op& op,
                                     const std::string& output) {
    for (const auto& [from, to] : identity.views) {
      const std::vector<std::string>& outputs = op.Output(to);
      const auto found = std::ranges::find(outputs, output);
      if (found != outputs.end()) return op.Input(from).at(found - outputs.begin());
    }
    return output;
  }

  void SumGradient(const std::string& name, size_t last_writer) {
    const std::optional<size_t> accumulation = AccumulationOf(name);
    if (accumulation) return SumRound(*accumulation, name);
    const Var& gradient = *root_.GetVar(name);
    const std::string sum = NewSum(gradient);
    Op op = SumOp(gradient, sum);
    op.SetAttr("mean", true).SetAttr(kOpRoleAttr, kRoleBackward);
    Add(last_writer + 1, std::move(op));
    UseInstead(name, sum, last_writer + 1);
  }

  // Returns the op that adds the gradient to the gradients of other runs.
  std::optional<size_t> AccumulationOf(const std::string& gradient) const {
    for (const size_t i : accumulations_) {
      const Op& op = *root_.ops()[i];
      const StaticText& slot = registry_.Get(op.type).accumulation->gradient;
      const std::vector<std::string>& read = op.Input(slot);
      if (std::ranges::count(read, gradient) > 0 || std::ranges::count(read, Cast(gradient)) > 0) {
        return i;
      }
    }
    return {};
  }

  // Returns the variable to which an optimizer op casts the gradient, or "".
  std::string Cast(const std::string& gradient) const {
    for (const auto& op : root_.ops()) {
      if (IsCastOf(*op, gradient)) return op->Output("Out")[0];
    }
    return {};
  }

  static bool IsCastOf(const Op& op, const std::string& gradient) {
    return op.type == "cast" && IsOptimize(op) && op.Input("X")[0] == gradient;
  }

  // Sums over the ranks what the op has accumulated of a gradient, in the last run of a round.
  void SumRound(size_t accumulation, const std::string& gradient) {
    const Op& op = *root_.ops()[accumulation];
    const AccumulationRule& rule = *registry_.Get(op.type).accumulation;
    const std::vector<std::string>& read = op.Input(rule.gradient);
    size_t i = 0;
    while (read[i] != gradient && read[i] != Cast(gradient)) ++i;
    const Var& round = *root_.GetVar(op.Output(rule.sum).at(i));
    // The next run begins from the persistable only if the round isn't over, and then it is as it
    // was.
    const std::string sum = round.persistable ? round.name : NewSum(round);
    Op over_ranks = SumOp(round, sum);
    over_ranks.SetInput("Skip", {NotLast(accumulation, rule)});
    over_ranks.SetAttr("mean", true).SetAttr(kOpRoleAttr, kRoleOptimize);
    Add(accumulation + 1, std::move(over_ranks));
    if (sum != round.name) UseInstead(round.name, sum, accumulation + 1);
  }

  // Returns a bool [1]: whether the run isn't the last one of its round.
  std::string NotLast(size_t accumulation, const AccumulationRule& rule) {
    const Op& op = *root_.ops()[accumulation];
    const std::string& count = op.Input(rule.count)[0];
    const auto steps = op.Attr<int64_t>(rule.steps);
    std::string& name = not_last_[{count, steps}];
    if (!name.empty()) return name;
    const std::string number = NewVar(program_.UniqueName(count + "@STEPS"), DType::kInt64, {1});
    name = NewVar(program_.UniqueName(count + "@NOT_LAST"), DType::kBool, {1});
    Op fill("fill_constant");
    fill.SetOutput("Out", {number}).SetAttr("shape", std::vector<int64_t>{1});
    fill.SetAttr("dtype", static_cast<int32_t>(DType::kInt64));
    fill.SetAttr("value", static_cast<float>(steps)).SetAttr("str_value", StrCat(steps));
    fill.SetAttr(kOpRoleAttr, kRoleOptimize);
    Op less("less_than");
    less.SetInput("X", {count}).SetInput("Y", {number}).SetOutput("Out", {name});
    less.SetAttr(kOpRoleAttr, kRoleOptimize);
    Add(accumulation, std::move(fill));
    Add(accumulation, std::move(less));
    return name;
  }

  // Returns the op that sums the variable over the ranks. The caller sets the role and `mean`.
  Op SumOp(const Var& of, const std::string& sum) const {
    const bool is_sparse = of.kind == VarKind::kSelectedRows;
    Op op(is_sparse ? "c_allreduce_rows" : "c_allreduce_sum");
    op.SetInput("X", {of.name}).SetOutput("Out", {sum});
    if (is_sparse) return op;
    op.SetAttr("order", order_);
    if (IsHalf(of.dtype)) op.SetAttr("out_dtype", static_cast<int32_t>(DType::kFloat32));
    return op;
  }

  std::string NewSum(const Var& of) {
    Var sum = of;
    sum.name = StrCat(of.name, "@SUM");
    sum.persistable = false;
    if (IsHalf(of.dtype)) sum.dtype = DType::kFloat32;
    return root_.CreateVar(std::move(sum))->name;
  }

  std::string NewVar(const std::string& name, DType dtype, std::vector<int64_t> dims) {
    Var var;
    var.name = name;
    var.dtype = dtype;
    var.dims = std::move(dims);
    return root_.CreateVar(std::move(var))->name;
  }

  // Makes the optimizer ops from a place on read the sum, and change the sum if they change the
  // gradient in place. The optimizer ops that read a cast to the dtype of the sum read the sum
  // itself, if nothing changes either later: the cast is then of the rank's gradient, as before.
  void UseInstead(const std::string& name, const std::string& sum, size_t from) {
    for (size_t i = from; i < root_.ops().size(); ++i) {
      Op& op = *root_.ops()[i];
      if (!IsOptimize(op)) continue;
      if (IsCastOf(op, name)) {
        const std::string cast = op.Output("Out")[0];
        const bool changes = IsChanged(name, i + 1) || IsChanged(cast, i + 1);
        if (DTypeOf(cast) == DTypeOf(sum) && !changes) {
          UseInstead(cast, sum, i + 1);
          continue;
        }
        op.SetAttr("in_dtype", static_cast<int32_t>(DTypeOf(sum)));
      }
      for (SlotArguments& slot : op.inputs) std::ranges::replace(slot.arguments, name, sum);
      for (SlotArguments& slot : op.outputs) std::ranges::replace(slot.arguments, name, sum);
    }
  }

  // Returns whether an optimizer op from a place on writes the variable.
  bool IsChanged(const std::string& name, size_t from) const {
    return std::any_of(root_.ops().begin() + static_cast<int64_t>(from), root_.ops().end(),
                       [&](const auto& op) {
                         return IsOptimize(*op) && std::ranges::count(op->OutputNames(), name) > 0;
                       });
  }

  DType DTypeOf(const std::string& name) const { return root_.GetVar(name)->dtype; }

  // Has one op update all running statistics, before the first optimizer op that reads any.
  void ShareStatistics() {
    Op shared("c_batch_norm_statistics");
    std::map<std::string, std::vector<std::string>> arguments;
    std::vector<float> momentums;
    size_t last = 0;
    for (const size_t i : StatisticsOps()) {
      Op& op = *root_.ops()[i];
      const OpDef& def = registry_.Get(op.type);
      TakeStatistics(def, &op, &arguments);
      const AttrDef* momentum = def.FindAttr(def.running_momentum);
      momentums.push_back(std::get<float>(*EffectiveAttr(op, *momentum)));
      last = i + 1;
    }
    if (momentums.empty()) return;
    for (const char* slot : {"Mean", "Variance", "BatchMean", "BatchVariance"}) {
      shared.SetInput(slot, arguments[slot]);
    }
    shared.SetOutput("MeanOut", arguments["Mean"]).SetOutput("VarianceOut", arguments["Variance"]);
    shared.SetAttr("momentum", std::move(momentums)).SetAttr(kOpRoleAttr, kRoleOptimize);
    statistics_ = static_cast<int64_t>(2 * arguments["Mean"].size());
    Add(FirstReader(arguments, last), std::move(shared));
  }

  // Returns the ops that keep statistics from run to run. Throws unless another op can update them.
  std::vector<size_t> StatisticsOps() const {
    std::vector<size_t> updating;
    std::map<std::string, int> updates;  // by statistic
    for (size_t i = 0; i < root_.ops().size(); ++i) {
      const Op& op = *root_.ops()[i];
      const OpDef* def = registry_.Find(op.type);
      if (def == nullptr || def->batch_moments.empty() || !UpdatesRunningState(*def, op)) continue;
      if (!IsInPlace(*def, op)) continue;
      updating.push_back(i);
      for (const auto& [input, output] : def->running_state) ++updates[op.Input(input).at(0)];
    }
    for (const size_t i : updating) CheckShared(i, updates);
    return updating;
  }

  // Returns whether the op keeps its statistics from run to run: in one variable, as input and
  // output.
  static bool IsInPlace(const OpDef& def, const Op& op) {
    return std::ranges::all_of(def.running_state, [&](const auto& pair) {
      return !op.Input(pair.first).empty() && op.Input(pair.first) == op.Output(pair.second);
    });
  }

  // `updates`: of each statistic, how many ops update it.
  void CheckShared(size_t position, const std::map<std::string, int>& updates) const {
    const Op& op = *root_.ops()[position];
    const OpDef& def = registry_.Get(op.type);
    const std::string place = DescribeOp(op, root_.index(), position);
    SKIFF_ENFORCE(
        op.Input("MomentumTensor").empty(), kUnimplemented, place,
        ": MomentumTensor of statistics that several ranks share: expected the attribute ",
        def.running_momentum);
    for (const auto& [input, output] : def.running_state) {
      const std::string& statistic = op.Input(input)[0];
      SKIFF_ENFORCE(updates.at(statistic) == 1, kUnimplemented, place, ": another op updates \"",
                    statistic, "\", too: expected one op for statistics that several ranks share");
    }
  }

  // Replaces the statistics that the op updates by the moments of its batch.
  void TakeStatistics(const OpDef& def, Op* op,
                      std::map<std::string, std::vector<std::string>>* arguments) {
    for (size_t i = 0; i < def.running_state.size(); ++i) {
      const auto& [input, output] = def.running_state[i];
      const std::string statistic = op->Input(input).at(0);
      const std::string moment =
          NewVar(StrCat(statistic, "@BATCH"), DType::kFloat64, root_.GetVar(statistic)->dims);
      (*arguments)[std::string(input)].push_back(statistic);
      (*arguments)[std::string(def.batch_moments[i])].push_back(moment);
      std::erase_if(op->outputs, [&](const SlotArguments& slot) { return slot.slot == output; });
      op->SetOutput(def.batch_moments[i], {moment});
    }
  }

  // Returns the first op from `from` on that reads a statistic and is an optimizer's, or the end.
  size_t FirstReader(const std::map<std::string, std::vector<std::string>>& arguments,
                     size_t from) const {
    const auto is_statistic = [&](const std::string& name) {
      return std::ranges::count(arguments.at("Mean"), name) > 0 ||
             std::ranges::count(arguments.at("Variance"), name) > 0;
    };
    for (size_t i = from; i < root_.ops().size(); ++i) {
      const Op& op = *root_.ops()[i];
      if (IsOptimize(op) && std::ranges::any_of(op.InputNames(), is_statistic)) return i;
    }
    return root_.ops().size();
  }

  void Add(size_t before, Op op) { insertions_.push_back({before, std::move(op)}); }

  void Insert() {
    std::ranges::stable_sort(insertions_, {}, &Insertion::before);
    for (size_t i = root_.ops().size() + 1; i-- > 0;) {
      for (; !insertions_.empty() && insertions_.back().before == i; insertions_.pop_back()) {
        root_.InsertOp(i, std::move(insertions_.back().op));
      }
    }
  }

  const OpRegistry& registry_;
  const std::string order_;
  const bool has_ranks_;
  Program& program_;
  Block& root_;
  std::unordered_map<const Var*, std::vector<size_t>> writers_;  // in order, no optimizer ops
  std::vector<size_t> accumulations_;
  std::map<std::string, size_t> gradients_;  // and the op that completes each
  std::map<std::pair<std::string, int64_t>, std::string> not_last_;
  std::vector<Insertion> insertions_;
  int64_t statistics_ = 0;
};

}  // namespace

PassReport DataParallelPass::Apply(const ProgramPassContext& context, Program* program) const {
  return Ranks(context, program).Run();
}

}  // namespace skiff
