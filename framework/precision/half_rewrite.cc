#include "framework/precision/half_rewrite.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/ir/master_name.h"
#include "framework/ir/op_role.h"
#include "framework/ir/restored_program.h"
#include "framework/op/block_rule.h"
#include "framework/op/half_arguments.h"
#include "framework/op/infer_outputs.h"
#include "framework/op/op_context.h"
#include "framework/op/var_meta.h"
#include "framework/precision/precision_choice.h"

namespace skiff {
namespace {

using Mode = FloatOp::Mode;

std::string_view CastSuffix(DType dtype) {
  if (dtype == DType::kBFloat16) return ".cast_bf16";
  return dtype == DType::kFloat16 ? ".cast_fp16" : ".cast_fp32";
}

// Makes the op cast, as part of what `needs` belongs to.
Op MakeCast(const std::string& x, DType from, const std::string& out, DType to, const Op& needs) {
  Op cast("cast");
  cast.SetInput("X", {x}).SetOutput("Out", {out});
  cast.SetAttr("in_dtype", static_cast<int32_t>(from));
  cast.SetAttr("out_dtype", static_cast<int32_t>(to));
  const int32_t role = needs.role() & ~kRoleLoss;
  if (role != kRoleForward) cast.SetAttr(kOpRoleAttr, role);
  if (needs.HasAttr(kOpNamescopeAttr)) {
    cast.SetAttr(kOpNamescopeAttr, needs.Attr<std::string>(kOpNamescopeAttr));
  }
  cast.site = needs.site;
  return cast;
}

void ReplaceArgument(Slots* slots, const FloatArgument& argument, const std::string& name) {
  const auto found = std::ranges::find(*slots, argument.slot_name, &SlotArguments::slot);
  found->arguments[argument.index] = name;
}

// Returns the only op of the block that writes the variable; nullptr if there are several or none.
const Op* OnlyWriter(const Block& block, const std::string& name) {
  const Op* writer = nullptr;
  for (const auto& op : block.ops()) {
    const std::vector<std::string> names = op->OutputNames();
    if (std::ranges::count(names, name) == 0) continue;
    if (writer != nullptr) return nullptr;
    writer = op.get();
  }
  return writer;
}

class HalfRewrite {
 public:
  HalfRewrite(const OpRegistry& registry, const PrecisionOptions& options,
              const PrecisionChoice::Names& names, Program* main, Program* startup)
      : registry_(registry),
        options_(options),
        main_(main),
        startup_(startup),
        choice_(registry, *main, options, names) {}

  HalfReport Run() {
    report_.dtype = options_.dtype;
    for (const FloatOp& op : choice_.ops()) {
      Count(op);
      CastInputs(op);
      CastOutputs(op);
    }
    InsertCasts();
    for (const FloatVariable& variable : choice_.variables()) {
      if (variable.is_half) variable.var->dtype = options_.dtype;
    }
    CheckDTypes();
    for (const FloatVariable& variable : choice_.variables()) {
      if (!variable.var->is_parameter) continue;
      if (!variable.is_half) {
        report_.float32_parameters.push_back({variable.var->name, Float32ReaderOf(variable)});
        continue;
      }
      ++report_.half_parameters;
      if (startup_ != nullptr) MakeMaster(*variable.var);
    }
    return std::move(report_);
  }

 private:
  struct Insertion {
    size_t position = 0;
    Op op;
  };

  DType DTypeOf(bool is_half) const { return is_half ? options_.dtype : DType::kFloat32; }

  void Count(const FloatOp& op) {
    if (op.mode == Mode::kHalf) ++report_.half_ops;
    if (op.mode == Mode::kFloat32) report_.float32_ops.push_back(choice_.WhyFloat32(op));
  }

  // Returns the type of the first op that reads the parameter in float32, "" if all would take
  // half.
  std::string Float32ReaderOf(const FloatVariable& parameter) const {
    for (const size_t reader : parameter.readers) {
      const FloatOp& op = choice_.ops()[reader];
      const bool reads_float32 = std::ranges::any_of(op.inputs, [&](const FloatArgument& input) {
        return &choice_.variables()[input.variable] == &parameter && !choice_.IsHalfIn(op, input);
      });
      if (reads_float32) return op.op->type;
    }
    return {};
  }

  // ---- casts

  void CastInputs(const FloatOp& op) {
    for (const FloatArgument& input : op.inputs) {
      const FloatVariable& variable = choice_.variables()[input.variable];
      // The dtype of what is only measured doesn't matter, but to an op that makes floats of it.
      const bool decides_by_input = op.mode == Mode::kUntouched && !op.outputs.empty() &&
                                    (op.def == nullptr || NamedDType(*op.def, *op.op).empty());
      const bool measures = input.slot != nullptr && input.slot->shape_only && !decides_by_input;
      const bool wants_half = choice_.IsHalfIn(op, input);
      if (measures || wants_half == variable.is_half) continue;
      ReplaceArgument(&op.op->inputs, input, CastOf(op, input.variable, wants_half));
    }
  }

  // An op that makes a variable of the other dtype makes another one, and a cast the variable.
  void CastOutputs(const FloatOp& op) {
    for (const FloatArgument& output : op.outputs) {
      const FloatVariable& variable = choice_.variables()[output.variable];
      const bool makes_half = choice_.IsHalfIn(op, output);
      if (makes_half == variable.is_half || variable.var->kind == VarKind::kLoDTensorArray) {
        continue;
      }
      const DType made = DTypeOf(makes_half);
      const std::string name = NewVariable(*variable.var, variable.block, made);
      ReplaceArgument(&op.op->outputs, output, name);
      InsertCast(op.block, op.position + 1, name, made, variable.var->name,
                 DTypeOf(variable.is_half), *op.op);
    }
  }

  std::string NewVariable(const Var& like, Block* block, DType dtype) {
    Var made = like;
    made.name = StrCat(like.name, CastSuffix(dtype));
    if (block->FindVar(made.name) != nullptr) made.name = main_->UniqueName(made.name);
    made.dtype = dtype;
    made.persistable = made.is_parameter = made.need_check_feed = false;
    made.attrs.clear();
    return block->CreateVar(std::move(made))->name;
  }

  // Inserts a cast of the variable, which `needs` reads or makes.
  void InsertCast(Block* block, size_t position, const std::string& x, DType from,
                  const std::string& out, DType to, const Op& needs) {
    insertions_[block].push_back({position, MakeCast(x, from, out, to, needs)});
    report_.casts.push_back({.variable = x, .to = to, .for_op = needs.type});
  }

  // Returns the name of the variable in the other dtype, where the op can read it.
  std::string CastOf(const FloatOp& reader, size_t index, bool to_half) {
    const FloatVariable& variable = choice_.variables()[index];
    const DType from = DTypeOf(variable.is_half);
    const DType to = DTypeOf(to_half);
    if (!HasOneDefinition(variable)) {
      const std::string name = NewVariable(*variable.var, reader.block, to);
      InsertCast(reader.block, reader.position, variable.var->name, from, name, to, *reader.op);
      return name;
    }
    const auto [found, is_new] = casts_.try_emplace(index);
    if (is_new) {
      found->second = NewVariable(*variable.var, variable.block, to);
      InsertCast(variable.block, PositionOfCast(variable), variable.var->name, from, found->second,
                 to, *reader.op);
    }
    Capture(reader.block, variable, found->second);
    return found->second;
  }

  // Whether one cast serves all readers: what it makes is what each of them would read.
  bool HasOneDefinition(const FloatVariable& variable) const {
    if (variable.writers.empty()) return true;
    // What is read before is a feed.
    if (!variable.readers.empty() && variable.readers.front() <= variable.writers.front()) {
      return false;
    }
    return variable.writers.size() == 1 && !variable.is_set_by_loop && !variable.var->persistable &&
           choice_.ops()[variable.writers[0]].block == variable.block;
  }

  size_t PositionOfCast(const FloatVariable& variable) const {
    if (!variable.writers.empty()) return choice_.ops()[variable.writers[0]].position + 1;
    if (variable.is_set_by_loop) return variable.set_at;
    size_t first = variable.block->ops().size();
    for (const size_t reader : variable.readers) {
      const FloatOp& op = choice_.ops()[reader];
      first = std::min(first, PositionIn(variable.block, op.block, op.position));
    }
    return first;
  }

  // Returns the position in `block` of the op, or of the op that runs its block.
  size_t PositionIn(const Block* block, Block* inner, size_t position) const {
    while (inner != block) {
      const auto [outer, at] = choice_.RunnerOf(inner);
      SKIFF_ENFORCE(outer != nullptr, kInvalidArgument, "block ", inner->index(),
                    " reads a variable of block ", block->index(), ", which doesn't run it");
      inner = outer;
      position = at;
    }
    return position;
  }

  // Lists the cast beside its variable where ops that run blocks list what they capture.
  void Capture(Block* inner, const FloatVariable& variable, const std::string& name) {
    while (inner != variable.block) {
      const auto [outer, at] = choice_.RunnerOf(inner);
      if (outer == nullptr) return;
      Op* runner = outer->ops()[at].get();
      const OpDef& def = registry_.Get(runner->type);
      if (def.block != nullptr) {
        const char* slot = SlotsOf(def.block->kind).captured;
        std::vector<std::string> captured = runner->Input(slot);
        const bool lists = std::ranges::count(captured, variable.var->name) > 0;
        if (lists && std::ranges::count(captured, name) == 0) {
          captured.push_back(name);
          runner->SetInput(slot, std::move(captured));
        }
      }
      inner = outer;
    }
  }

  void InsertCasts() {
    for (auto& [block, insertions] : insertions_) {
      std::ranges::stable_sort(insertions, {}, &Insertion::position);
      for (size_t i = insertions.size(); i-- > 0;) {
        block->InsertOp(insertions[i].position, std::move(insertions[i].op));
      }
    }
  }

  // ---- the result

  // Checks that the shape rules give each variable the dtype that was chosen for it.
  void CheckDTypes() const {
    for (size_t b = 0; b < main_->block_count(); ++b) {
      const Block& block = *main_->block(static_cast<int32_t>(b));
      for (size_t i = 0; i < block.ops().size(); ++i) {
        const Op& op = *block.ops()[i];
        const OpDef* def = registry_.Find(op.type);
        if (def == nullptr || def->block != nullptr) continue;
        try {
          CheckDTypes(block, op, *def);
        } catch (const Error& error) {
          throw error.WithContext(DescribeOp(op, block.index(), i));
        }
      }
    }
  }

  static std::vector<TensorMeta> MetasOf(const Block& block,
                                         const std::vector<std::string>& names) {
    std::vector<TensorMeta> metas;
    for (const std::string& name : names) {
      const Var* var = name == kEmptyVarName ? nullptr : block.FindVar(name);
      metas.push_back(var == nullptr ? TensorMeta{} : MetaOf(*var));
    }
    return metas;
  }

  static void CheckDTypes(const Block& block, const Op& op, const OpDef& def) {
    const std::vector<std::string> names = OutputOrder(def, op);
    OpContext context(op, def, MetasOf(block, InputOrder(def, op)), MetasOf(block, names));
    InferOutputs(&context);
    for (size_t i = 0; i < names.size(); ++i) {
      const Var* var = names[i] == kEmptyVarName ? nullptr : block.FindVar(names[i]);
      if (var == nullptr || context.outputs()[i].is_array) continue;
      // Files of other versions declare some dtypes otherwise than rules do. A run tolerates that.
      const DType made = context.outputs()[i].dtype;
      const bool is_ours = IsHalf(made) || IsHalf(var->dtype);
      SKIFF_ENFORCE(made == var->dtype || !is_ours, kFailedPrecondition, "makes \"", names[i],
                    "\" as ", made, ", expected ", var->dtype);
    }
  }

  // ---- master weights

  void MakeMaster(const Var& parameter) {
    const std::string name = MasterName(parameter.name);
    Block* root = startup_->root();
    Var master = parameter;
    master.name = name;
    master.dtype = DType::kFloat32;
    master.is_parameter = false;
    master.stop_gradient = true;
    master.attrs.clear();
    root->CreateVar(master);
    main_->root()->CreateVar(master);
    root->GetVar(parameter.name)->dtype = options_.dtype;
    for (size_t i = 0; i < root->ops().size(); ++i) {
      Op* op = root->ops()[i].get();
      const std::vector<std::string> names = op->OutputNames();
      if (std::ranges::count(names, parameter.name) == 0) continue;
      for (SlotArguments& slot : op->outputs) {
        std::ranges::replace(slot.arguments, parameter.name, name);
      }
      // What is computed from the first value is computed from all of its digits.
      for (size_t later = i + 1; later < root->ops().size(); ++later) {
        for (SlotArguments& slot : root->ops()[later]->inputs) {
          std::ranges::replace(slot.arguments, parameter.name, name);
        }
      }
      root->InsertOp(i + 1, MakeCast(name, DType::kFloat32, parameter.name, options_.dtype, *op));
      return;
    }
  }

  const OpRegistry& registry_;
  const PrecisionOptions& options_;
  Program* main_;
  Program* startup_;
  PrecisionChoice choice_;
  std::map<Block*, std::vector<Insertion>> insertions_;
  std::map<size_t, std::string> casts_;  // by variable
  HalfReport report_;
};

// Returns the parameters whose first value exactly one op of `startup` makes.
std::set<std::string> InitializedBy(const Program& startup) {
  std::set<std::string> names;
  for (const auto& var : startup.root()->vars()) {
    if (OnlyWriter(*startup.root(), var->name) != nullptr) names.insert(var->name);
  }
  return names;
}

std::set<std::string> ParametersOf(const Program& program) {
  std::set<std::string> names;
  for (const auto& var : program.root()->vars()) {
    if (var->is_parameter) names.insert(var->name);
  }
  return names;
}

HalfReport Rewrite(const OpRegistry& registry, const PrecisionOptions& options,
                   const PrecisionChoice::Names& names, Program* main, Program* startup) {
  RestoredProgram restored(main);
  std::optional<RestoredProgram> restored_startup;
  if (startup != nullptr) restored_startup.emplace(startup);
  HalfReport report = HalfRewrite(registry, options, names, main, startup).Run();
  restored.Stay();
  if (restored_startup) restored_startup->Stay();
  return report;
}

}  // namespace

HalfReport RewriteToHalf(const OpRegistry& registry, const PrecisionOptions& options,
                         const std::set<std::string>& results, Program* main, Program* startup) {
  PrecisionChoice::Names names{.parameters = {}, .results = results};
  if (options.level == PrecisionLevel::kParameters && startup != nullptr) {
    names.parameters = InitializedBy(*startup);
  }
  return Rewrite(registry, options, names, main, startup);
}

HalfReport RewriteForInference(const OpRegistry& registry, const PrecisionOptions& options,
                               const std::set<std::string>& results, Program* program) {
  PrecisionChoice::Names names{.parameters = {}, .results = results, .may_keep_nothing = true};
  if (options.level == PrecisionLevel::kParameters) {
    names.parameters = ParametersOf(*program);
    names.may_round_states = true;
  }
  return Rewrite(registry, options, names, program, /*startup=*/nullptr);
}

}  // namespace skiff
