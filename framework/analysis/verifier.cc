// Walks all blocks as a run would enter them and collects messages instead of stopping at the first
// problem. Programs may come from files, so nothing is taken for granted: indices may be out of
// range, blocks may nest in circles, dims may be absurd. Every walk is therefore bounded (visited_,
// path_), and shape rules only see variables whose dims have passed CheckVar.
#include "framework/analysis/verifier.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "framework/analysis/nested_blocks.h"
#include "framework/analysis/op_uses.h"
#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/op/block_rule.h"
#include "framework/op/declared_types.h"
#include "framework/op/evaluation.h"
#include "framework/op/grad_name.h"
#include "framework/op/half_arguments.h"
#include "framework/op/infer_outputs.h"
#include "framework/op/op_context.h"
#include "framework/op/shape_warning.h"
#include "framework/op/var_meta.h"
#include "framework/tensor/dims_agree.h"

namespace skiff {
namespace {

class Verifier {
 public:
  Verifier(const OpRegistry& registry, const Program& program, const VerifyOptions& options)
      : registry_(registry),
        program_(program),
        structure_only_(options.structure_only),
        infer_feeds_(options.infer_feeds),
        warnings_(options.warnings) {
    for (const std::string& name : options.feeds) feeds_.insert(program.root()->FindLocalVar(name));
    feeds_.erase(nullptr);
  }

  std::vector<std::string> Run() {
    for (size_t b = 0; b < program_.block_count(); ++b) {
      const Block& block = *program_.block(static_cast<int32_t>(b));
      for (const auto& var : block.vars()) CheckVar(block.index(), *var);
      CheckForwardBlock(block);
    }
    VisitBlock(*program_.root());
    return Messages();
  }

 private:
  using VarSet = std::unordered_set<const Var*>;
  struct Message {
    std::string text;
    const Var* read_early = nullptr;  // the variable that is a feed, perhaps
  };

  // Only now is it known which variables no op computes. With infer_feeds these count as feeds, so
  // reads of them before any write aren't problems.
  std::vector<std::string> Messages() {
    std::vector<std::string> messages;
    for (Message& message : messages_) {
      const bool is_fed =
          infer_feeds_ && message.read_early != nullptr && !computed_.contains(message.read_early);
      if (!is_fed) messages.push_back(std::move(message.text));
    }
    return messages;
  }

  // Returns why no tensor can have these dims, or an empty string if one can.
  static std::string WhyNoShape(const Var& var) {
    if (var.dims.size() > Shape::kMaxRank) {
      return StrCat("has rank ", var.dims.size(), ", expected at most ", Shape::kMaxRank);
    }
    for (int64_t dim : var.dims) {
      if (dim < -1) return StrCat("has a dim of ", dim, ", expected -1 (unknown) or more");
    }
    try {
      CheckElementLimit(var.dims);
    } catch (const Error& error) {
      return StrCat("is too large: ", error.what());
    }
    return {};
  }

  void CheckVar(int32_t block, const Var& var) {
    where_ = StrCat("variable \"", var.name, "\" (block ", block, ") of shape [",
                    Join(var.dims, ", "), "]");
    const std::string reason = WhyNoShape(var);
    if (!reason.empty()) {
      Report(reason);
      without_shape_.insert(&var);
    }
    // More than any text or table nests; analyses and plans take memory for each level.
    constexpr int32_t kMostLoDLevels = 64;
    if (var.lod_level < 0 || var.lod_level > kMostLoDLevels) {
      Report("has LoD level ", var.lod_level, ", expected 0 to ", kMostLoDLevels);
    }
  }

  void CheckForwardBlock(const Block& block) {
    const int32_t forward = block.forward_block_index;
    if (forward == -1 || (ForwardBlock(block) != nullptr && forward != block.index())) return;
    where_ = StrCat("block ", block.index());
    Report("its forward block ", forward, " is itself or outside [0, ", program_.block_count() - 1,
           "]");
  }

  void VisitBlock(const Block& block) {
    visited_.insert(block.index());
    // The path of blocks being visited, to refuse blocks that contain themselves.
    path_.push_back(block.index());
    VisibleVars visible(block);
    for (size_t i = 0; i < block.ops().size(); ++i) {
      Op op = *block.ops()[i];
      where_ = DescribeOp(op, block.index(), i);
      TakeTypes(&op);
      const bool may_evaluate = VisitOp(visible, op);
      MarkSetInside(op);
      if (!op.SubBlocks().empty()) ForgetWrittenInside(block, i);
      VisitSubBlocks(op);
      if (!op.SubBlocks().empty()) ForgetWrittenInside(block, i);
      const bool makes_known = !structure_only_ && may_evaluate && KnowsInputs(visible, op);
      for (const std::string& name : op.OutputNames()) {
        const Var* var = visible.Find(name).var;
        written_.insert(var);
        if (op.type != "feed") computed_.insert(var);
        known_.erase(var);
        if (makes_known) known_.insert(var);
      }
    }
    path_.pop_back();
  }

  // All that follows reads the attributes as a run does.
  void TakeTypes(Op* op) {
    const OpDef* def = registry_.Find(op->type);
    if (def == nullptr) return;
    for (const std::string& message : TakeDeclaredTypes(*def, op)) Warn(message);
  }

  // Marks what an op sets in its block before each iteration.
  void MarkSetInside(const Op& op) {
    const OpDef* def = registry_.Find(op.type);
    const std::vector<int32_t> blocks = op.SubBlocks();
    if (def == nullptr || def->block == nullptr || blocks.size() != 1) return;
    if (!WhyNotNested(program_, path_, blocks[0]).empty()) return;
    VisibleVars visible(*program_.block(blocks[0]));
    try {
      for (const std::string& name : SetBeforeIteration(op, *def->block)) {
        written_.insert(visible.Find(name).var);
      }
    } catch (const Error&) {
      // An attribute of another type, which VisitOp has reported.
    }
  }

  // What iterations hand on depends on how many there are.
  void ForgetWrittenInside(const Block& block, size_t position) {
    if (known_.empty()) return;
    for (const int32_t inner : block.ops()[position]->SubBlocks()) {
      // Many ops may run one block.
      const auto [found, is_new] = written_inside_.try_emplace(inner);
      if (is_new) found->second = WrittenBy(block, position);
      std::erase_if(known_, [&](const Var* var) { return found->second.contains(var); });
    }
  }

  // Returns the variables that an op with blocks writes.
  VarSet WrittenBy(const Block& block, size_t position) const {
    VarSet written;
    try {
      for (const VarUse& use : UsesOf(registry_, block, position).vars) {
        if (use.writes) written.insert(use.var);
      }
    } catch (const Error&) {
      // A wrong block or argument, which is reported where it is.
    }
    return written;
  }

  // Returns whether a plan knows the elements of all inputs of which not only the shape counts
  // (KnownContents).
  bool KnowsInputs(VisibleVars& visible, const Op& op) const {
    for (const SlotDef& slot : registry_.Get(op.type).inputs) {
      if (slot.shape_only) continue;
      for (const std::string& name : op.Input(slot.name)) {
        if (name != kEmptyVarName && !known_.contains(visible.Find(name).var)) return false;
      }
    }
    return true;
  }

  void CheckGivenAttributes(VisibleVars& visible, const Op& op, const OpDef& def) {
    for (const SlotDef& slot : def.inputs) {
      if (!GivesAttribute(op, slot)) continue;
      for (const std::string& name : op.Input(slot.name)) {
        const Var* var = visible.Find(name).var;
        if (name != kEmptyVarName && (var == nullptr || known_.contains(var))) continue;
        Report(op.type, ": input \"", slot.name, "\", variable \"", name,
               "\", gives the attribute \"", slot.attribute,
               "\" and depends on data: expected numbers that follow from shapes and constants");
      }
    }
  }

  // Returns false if no plan computes what the op makes (MayEvaluate). Returns true if that isn't
  // known, as for an op with a mistake: no other message should follow from that.
  bool VisitOp(VisibleVars& visible, const Op& op) {
    const OpDef* def = registry_.Find(op.type);
    if (def == nullptr && (op.type == "feed" || op.type == "fetch")) return false;
    CheckMark(op, kOpRoleAttr, AttrType::kInt);
    CheckMark(op, kOpNamescopeAttr, AttrType::kString);
    CheckMark(op, kOpRoleVarAttr, AttrType::kStrings);
    try {
      CheckOp(registry_.Get(op.type), op);
    } catch (const Error& error) {
      Report(error.what());
      return def != nullptr;
    }
    // Ranks could run the block another number of times.
    if (def->collective && path_.size() > 1) {
      Report(
          "is collective and in a block of another op, expected in block 0: each rank must run "
          "it as often as the others");
    }
    // A shape rule may rely on all arguments being there, so it runs only then.
    bool complete = true;
    for (const std::string& name : op.InputNames()) {
      const Var* var = visible.Find(name).var;
      complete = complete && var != nullptr && !without_shape_.contains(var);
      if (var == nullptr) {
        Report("input \"", name, "\" has no variable");
      } else if (!structure_only_ && !var->persistable && !written_.contains(var) &&
                 !feeds_.contains(var) && var->kind != VarKind::kLoDTensorArray) {
        Report("input \"", name, "\" is read before anything writes it");
        messages_.back().read_early = var;
      }
    }
    std::set<std::string> outputs;
    for (const std::string& name : op.OutputNames()) {
      const Var* var = visible.Find(name).var;
      if (var == nullptr) Report("output \"", name, "\" has no variable");
      complete = complete && var != nullptr && !without_shape_.contains(var);
      // Which of the two outputs would remain depends on the kernel.
      if (!outputs.insert(name).second) Report("output \"", name, "\" is written twice by the op");
      if (!structure_only_ && feeds_.contains(var) && op.type != "feed") {
        Report("output \"", name, "\" is a feed");
      }
    }
    if (structure_only_) return true;
    CheckGivenAttributes(visible, op, *def);
    if (!complete) return true;
    const bool may_evaluate = CheckShapes(visible, op, *def);
    if (def->block != nullptr && def->block->is_gradient) CheckResultGradients(visible, op, *def);
    return may_evaluate;
  }

  // Checks an attribute that any op may have and no definition lists.
  void CheckMark(const Op& op, const char* name, AttrType expected) {
    const auto found = op.attrs.find(name);
    if (found == op.attrs.end() || TypeOf(found->second) == expected) return;
    Report("attribute \"", name, "\" is of type ", AttrTypeName(TypeOf(found->second)),
           ", expected ", AttrTypeName(expected));
  }

  // Returns the same as VisitOp.
  bool CheckShapes(VisibleVars& visible, const Op& op, const OpDef& def) {
    const auto metas = [&](const std::vector<std::string>& names) {
      std::vector<TensorMeta> result;
      for (const std::string& name : names) {
        result.push_back(name == kEmptyVarName ? TensorMeta{} : Form(*visible.Find(name).var));
      }
      return result;
    };
    const std::vector<std::string> names = OutputOrder(def, op);
    OpContext context(op, def, metas(InputOrder(def, op)), metas(names));
    const ShapeWarnings warnings;
    try {
      InferOutputs(&context);
      CheckKernels(context);
    } catch (const Error& error) {
      Report(error.what());
      return true;
    }
    for (const std::string& text : warnings.texts()) Warn(text);
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == kEmptyVarName) continue;
      const Var* var = visible.Find(names[i]).var;
      const TensorMeta declared = MetaOf(*var);
      const TensorMeta& made = context.outputs()[i];
      if (declared.is_array != made.is_array && def.block == nullptr) {
        Report("output \"", names[i], "\" would be ",
               made.is_array ? "an array of tensors: the program declares a tensor"
                             : "a tensor: the program declares an array of tensors");
      }
      NoteForm(var, declared, made);
      if (declared.dtype != made.dtype || declared.is_selected_rows() != made.is_selected_rows() ||
          !DimsAgree(declared.dense_shape().dims(), made.dense_shape().dims())) {
        ReportDeclaration(StrCat("output \"", names[i], "\" is declared as ", FormText(declared),
                                 ", but the op makes ", FormText(made)));
      }
    }
    return MayEvaluate(context);
  }

  // Checks gradients that an op hands to its block against what the block, or its op, has made.
  void CheckResultGradients(VisibleVars& visible, const Op& op, const OpDef& def) {
    const std::vector<int32_t> blocks = op.SubBlocks();
    if (blocks.size() != 1 || !WhyNotNested(program_, path_, blocks[0]).empty()) return;
    VisibleVars inside(*program_.block(blocks[0]));
    const std::string slot = SlotsOf(def.block->kind).results;
    const std::vector<std::string>& gradients = op.Input(slot + kGradSuffix);
    const bool is_stacked = def.block->kind == BlockRule::Kind::kRecurrent;
    const std::vector<std::string> results =
        is_stacked ? op.Input(slot)
                   : op.Attr<std::vector<std::string>>(kInnerGradientsAttr, gradients);
    for (size_t i = 0; i < std::min(gradients.size(), results.size()); ++i) {
      const std::string name(is_stacked ? results[i] : ForwardName(results[i]));
      const Var* of = is_stacked ? visible.Find(name).var : inside.Find(name).var;
      const Var* gradient = visible.Find(gradients[i]).var;
      const auto has_shape = [&](const Var* var) {
        return var != nullptr && var->kind != VarKind::kLoDTensorArray &&
               !without_shape_.contains(var);
      };
      if (!has_shape(of) || !has_shape(gradient)) continue;
      const TensorMeta expected = Form(*of);
      const TensorMeta found = Form(*gradient);
      const bool agree = DimsAgree(expected.dense_shape().dims(), found.dense_shape().dims());
      if (expected.dtype == found.dtype && agree) continue;
      Report("the gradient \"", gradients[i], "\" is ", FormText(found), ", expected that of \"",
             name, "\", ", FormText(expected));
    }
  }

  // Whatever the shapes are, there must be a kernel for the dtype.
  void CheckKernels(const OpContext& context) {
    const std::vector<KernelDef>& kernels = registry_.Kernels(context.op().type);
    // Ops that run blocks have none.
    if (kernels.empty()) return;
    const DType dtype = OpRegistry::KernelDType(context);
    const auto has_kernel_for = [&](DType wanted) {
      return std::ranges::count(kernels, wanted, &KernelDef::dtype) > 0;
    };
    if (has_kernel_for(dtype)) return;
    if (HalfOfArguments(context) && has_kernel_for(DType::kFloat32)) return;
    std::vector<std::string_view> known;
    for (const KernelDef& kernel : kernels) known.push_back(DTypeName(kernel.dtype));
    Report("no kernel for ", dtype, ", expected one of ", Join(known, ", "));
  }

  // Returns what a run has in the variable by now, as far as that is known.
  TensorMeta Form(const Var& var) const {
    const auto made = made_.find(&var);
    return made == made_.end() ? MetaOf(var) : made->second;
  }

  // Later ops see what the op makes, as in a run, not what is declared; the latter where the former
  // isn't known.
  void NoteForm(const Var* var, const TensorMeta& declared, const TensorMeta& made) {
    // A persistable is what the scope holds. The elements of arrays may differ.
    if (var->persistable || var->kind != VarKind::kLoDTensor) return;
    if (made.is_array || made.is_selected_rows()) return;
    TensorMeta form = made;
    const bool agree = DimsAgree(declared.shape.dims(), made.shape.dims());
    for (int i = 0; agree && i < form.shape.rank(); ++i) {
      if (form.shape[i] < 0) form.shape[i] = declared.shape[i];
    }
    made_.insert_or_assign(var, std::move(form));
  }

  static std::string FormText(const TensorMeta& meta) {
    const char* kind = meta.is_selected_rows() ? "selected rows of " : "";
    return StrCat(kind, meta.dtype, " ", meta.dense_shape());
  }

  void VisitSubBlocks(const Op& op) {
    const std::string where = where_;
    for (int32_t index : op.SubBlocks()) {
      const std::string reason = WhyNotNested(program_, path_, index);
      if (!reason.empty()) {
        Report(reason);
      } else if (!visited_.contains(index)) {
        VisitBlock(*program_.block(index));
      }
      where_ = where;
    }
  }

  template <typename... Args>
  void Report(const Args&... args) {
    messages_.push_back({.text = StrCat(where_, ": ", args...)});
  }

  void ReportDeclaration(const std::string& text) {
    warnings_ == nullptr ? Report(text) : Warn(text);
  }

  void Warn(const std::string& text) {
    if (warnings_ != nullptr) warnings_->push_back(StrCat(where_, ": ", text));
  }

  const OpRegistry& registry_;
  const Program& program_;
  const bool structure_only_;
  const bool infer_feeds_;
  std::vector<std::string>* const warnings_;
  VarSet feeds_;
  // For all blocks together: a variable of another block is another variable, and a gradient block
  // reads what its forward block has written.
  VarSet written_;
  VarSet computed_;  // written by an op other than feed
  std::unordered_map<const Var*, TensorMeta> made_;
  std::vector<int32_t> path_;  // indices of the blocks being visited
  // Each block is visited once, even if several ops name it: otherwise a program that does so
  // repeatedly would take exponential time.
  std::unordered_set<int32_t> visited_;
  VarSet known_;  // whose elements follow from shapes and constants
  std::unordered_map<int32_t, VarSet> written_inside_;  // by block
  VarSet without_shape_;
  std::string where_;
  std::vector<Message> messages_;
};

}  // namespace

std::vector<std::string> VerifyProgram(const OpRegistry& registry, const Program& program,
                                       const VerifyOptions& options) {
  return Verifier(registry, program, options).Run();
}

void CheckProgram(const OpRegistry& registry, const Program& program,
                  const VerifyOptions& options) {
  const std::vector<std::string> messages = VerifyProgram(registry, program, options);
  SKIFF_ENFORCE(messages.empty(), kInvalidArgument, Join(messages, "\n"));
}

}  // namespace skiff
