#include "framework/executor/lowering/lowering.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "framework/analysis/op_uses.h"
#include "framework/base/error.h"
#include "framework/executor/lowering/block_lowering.h"
#include "framework/executor/lowering/emit_gradient.h"
#include "framework/executor/lowering/loop_lowering.h"
#include "framework/executor/rows/known_contents.h"
#include "framework/tensor/dims_agree.h"

namespace skiff {
namespace {

// Adds feeds, segments and fetches to the lowering of the root block.
class SegmentLowering {
 public:
  SegmentLowering(const LoweringInputs& inputs, const Program& program)
      : inputs_(inputs), block_(inputs, *program.root()) {}

  Segment Run(const std::vector<std::pair<std::string, TensorMeta>>& feeds,
              const std::vector<std::string>& fetches, size_t first_op) {
    // Feeds first, in their order: BindFeeds assigns tensors by position.
    for (const auto& [name, meta] : feeds) {
      first_op == 0 ? AddFeed(name, meta) : AddCarried(name, meta);
    }
    Segment segment{.plan = {},
                    .first_op = first_op,
                    .next_op = first_op,
                    .fetches = fetches,
                    .arrays_before = *inputs_.arrays,
                    .gradients_before = inputs_.gradients,
                    .contents_before = inputs_.contents};
    TakeGradients();
    segment.next_op = AddOpsFrom(first_op);
    segment.is_last = segment.next_op == block_.block().ops().size();
    if (!segment.is_last) {
      CheckFetchesOfSegment(segment.next_op, fetches);
      segment.fetches = CarriedFrom(segment.next_op, fetches);
    }
    for (const std::string& name : segment.fetches) {
      block_.plan().fetches.push_back(Fetched(name));
    }
    if (!segment.is_last) {
      LeaveContents(&segment);
      LeaveGradients(&segment);
    }
    segment.plan = std::move(block_.plan());
    segment.arrays_after = *inputs_.arrays;
    return segment;
  }

 private:
  void AddFeed(const std::string& name, const TensorMeta& meta) {
    const Var* var = block_.FindVar(name);
    SKIFF_ENFORCE(var != nullptr, kNotFound, "feed \"", name,
                  "\": the program has no such variable");
    SKIFF_ENFORCE(!var->persistable, kInvalidArgument, "feed \"", name,
                  "\": a persistable variable isn't fed; assign it in the scope");
    SKIFF_ENFORCE(var->kind != VarKind::kLoDTensorArray, kInvalidArgument, "feed \"", name,
                  "\": an array of tensors isn't fed; write its elements");
    SKIFF_ENFORCE(var->kind != VarKind::kLoDRankTable, kInvalidArgument, "feed \"", name,
                  "\": a rank table isn't fed; let lod_rank_table make it of a ragged feed");
    SKIFF_ENFORCE(var->dtype == meta.dtype, kInvalidArgument, "feed \"", name, "\": dtype ",
                  meta.dtype, " given, ", var->dtype, " expected");
    SKIFF_ENFORCE(DimsAgree(var->dims, meta.shape.dims()), kInvalidArgument, "feed \"", name,
                  "\": shape ", meta.shape, " given, ", Shape(var->dims), " expected");
    SKIFF_ENFORCE(var->lod_level == meta.lod_level, kInvalidArgument, "feed \"", name,
                  "\": LoD of ", meta.lod_level, " levels given, ", var->lod_level, " expected");
    SKIFF_ENFORCE(!block_.Current(name), kInvalidArgument, "feed \"", name, "\" is given twice");
    const ValueId value = block_.AddValue(name, meta, Storage::kFeed);
    block_.AddFeed(name, value);
    block_.plan().feeds.push_back(value);
    if (inputs_.rows_vary && !var->dims.empty() && var->dims[0] < 0) block_.MarkVarying(value);
  }

  // What an earlier segment made, as the program says, or was fed.
  void AddCarried(const std::string& name, const TensorMeta& meta) {
    const ValueId value = block_.AddValue(name, meta, Storage::kFeed);
    block_.SetCurrent(name, value);
    block_.plan().feeds.push_back(value);
    const auto known = inputs_.contents.find(name);
    if (known != inputs_.contents.end() && known->second->shape() == meta.shape) {
      block_.plan()[value].meta.contents = known->second;
    } else if (inputs_.rows_vary) {
      block_.MarkVarying(value);
    }
  }

  // Lowers the ops up to the first one that reads a shape which only a run tells. Returns the place
  // of that op, or how many ops there are.
  size_t AddOpsFrom(size_t first_op) {
    const auto& ops = block_.block().ops();
    for (size_t i = first_op; i < ops.size(); ++i) {
      const Op& op = *ops[i];
      if (ReadsUnknownShape(op, i)) return i;
      const auto known = inputs_.positions.find(op.id);
      const size_t position = known == inputs_.positions.end() ? i : known->second;
      try {
        block_.AddOp(op, position);
      } catch (const Error& error) {
        throw error.WithContext(DescribeOp(op, block_.block().index(), position));
      }
    }
    return ops.size();
  }

  // Throws the Error for a fetch that can't be before the first segment runs, as it would be if
  // that segment were the only one.
  void CheckFetchesOfSegment(size_t next_op, const std::vector<std::string>& fetches) {
    for (const std::string& name : fetches) {
      if (!IsWrittenFrom(next_op, name)) Fetched(name);
    }
  }

  bool ReadsUnknownShape(const Op& op, size_t position) const {
    if (!op.SubBlocks().empty()) {
      const std::vector<VarUse> uses = UsesOf(inputs_.registry, block_.block(), position).vars;
      return std::ranges::any_of(
          uses, [&](const VarUse& use) { return block_.IsUnknown(use.var->name); });
    }
    return std::ranges::any_of(op.InputNames(),
                               [&](const std::string& name) { return block_.IsUnknown(name); });
  }

  // Returns the variables whose present values ops from `next_op` on read, or the user fetches.
  std::vector<std::string> CarriedFrom(size_t next_op, const std::vector<std::string>& fetches) {
    std::vector<std::string> carried;
    std::unordered_set<std::string> seen;
    const auto add = [&](const std::string& name) {
      const ValueId found = block_.Current(name);
      if (!found || block_.plan()[found].storage == Storage::kScope) return;
      if (seen.insert(name).second) carried.push_back(name);
    };
    for (size_t i = next_op; i < block_.block().ops().size(); ++i) {
      const std::vector<VarUse> uses = UsesOf(inputs_.registry, block_.block(), i).vars;
      for (const VarUse& use : uses) {
        const bool may_keep = use.writes && !use.replaces;
        if (use.reads_data || use.reads_shape || may_keep) add(use.var->name);
      }
      // What an op writes is another value from here on.
      for (const VarUse& use : uses) {
        if (use.writes) seen.insert(use.var->name);
      }
    }
    std::ranges::for_each(fetches, add);
    return carried;
  }

  // What was known before stays so in later segments.
  void LeaveContents(Segment* segment) {
    segment->contents_after = inputs_.contents;
    std::string why;
    for (const std::string& name : segment->fetches) {
      if (const auto contents = block_.ConstantContents(block_.Current(name), &why)) {
        segment->contents_after[name] = contents;
      } else {
        segment->contents_after.erase(name);
      }
    }
  }

  void TakeGradients() {
    for (auto [scopes, gradient] : inputs_.gradients) {
      for (size_t i = 0; i < gradient.input_names.size(); ++i) {
        const std::string& name = gradient.input_names[i];
        if (!name.empty()) gradient.instruction.inputs[i] = block_.Read(name);
      }
      block_.gradients().emplace(scopes, std::move(gradient));
    }
  }

  // Fetches what the gradient halves read whose ops are in later segments.
  void LeaveGradients(Segment* segment) {
    Plan& plan = block_.plan();
    std::map<ValueId, std::string> names;
    for (size_t i = 0; i < plan.fetches.size(); ++i) {
      names.emplace(plan.fetches[i], segment->fetches[i]);
    }
    for (auto& [scopes, gradient] : block_.gradients()) {
      CheckScopeIsAsBefore(block_, gradient.instruction);
      const std::vector<ValueId>& inputs = gradient.instruction.inputs;
      gradient.input_names.assign(inputs.size(), "");
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (!inputs[i]) continue;
        if (plan[inputs[i]].storage == Storage::kScope) {
          gradient.input_names[i] = plan[inputs[i]].name;
          continue;
        }
        const auto [known, is_new] = names.emplace(inputs[i], CarriedName(inputs[i], scopes, i));
        gradient.input_names[i] = known->second;
        if (!is_new) continue;
        segment->fetches.push_back(known->second);
        plan.fetches.push_back(inputs[i]);
      }
    }
    segment->gradients_after = block_.gradients();
  }

  // Returns a name that no variable has, for an input of the gradient half that `scopes` ties to
  // its forward op.
  std::string CarriedName(ValueId value, const std::string& scopes, size_t input) const {
    std::string name = StrCat(block_.plan()[value].name, "/", scopes, "/", input);
    while (block_.FindVar(name) != nullptr) name += "/";
    return name;
  }

  bool IsWrittenFrom(size_t first_op, const std::string& name) const {
    const auto& ops = block_.block().ops();
    return std::any_of(ops.begin() + static_cast<ptrdiff_t>(first_op), ops.end(),
                       [&](const auto& op) {
                         const std::vector<std::string> names = op->OutputNames();
                         return std::ranges::find(names, name) != names.end();
                       });
  }

  // Returns the value of a fetch.
  ValueId Fetched(const std::string& name) {
    const ValueId value = block_.TryRead(name);
    SKIFF_ENFORCE(value, kNotFound, "fetch \"", name, "\": ",
                  block_.FindVar(name) == nullptr ? "the program has no such variable"
                                                  : "nothing writes this variable");
    SKIFF_ENFORCE(!block_.plan()[value].meta.is_array, kInvalidArgument, "fetch \"", name,
                  "\": an array of tensors, expected a tensor; read its elements");
    return value;
  }

  const LoweringInputs& inputs_;
  BlockLowering block_;
};

}  // namespace

Segment LowerSegment(LoweringInputs inputs, const Program& program,
                     const std::vector<std::pair<std::string, TensorMeta>>& feeds,
                     const std::vector<std::string>& fetches, size_t first_op) {
  inputs.lower_loop = LowerLoop;
  return SegmentLowering(inputs, program).Run(feeds, fetches, first_op);
}

Plan LowerProgram(LoweringInputs inputs, const Program& program,
                  const std::vector<std::pair<std::string, TensorMeta>>& feeds,
                  const std::vector<std::string>& fetches) {
  return LowerSegment(std::move(inputs), program, feeds, fetches).plan;
}

}  // namespace skiff
