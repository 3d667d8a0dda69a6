#include "framework/executor/loop_lowering.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "framework/analysis/body_places.h"
#include "framework/analysis/nested_blocks.h"
#include "framework/analysis/op_aliasing.h"
#include "framework/analysis/op_uses.h"
#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/executor/forward_values.h"
#include "framework/executor/row_counts.h"
#include "framework/ir/op_role.h"
#include "framework/op/block_rule.h"
#include "framework/op/grad_name.h"
#include "framework/op/host_slots.h"
#include "framework/plan/loop.h"

namespace skiff {
namespace {

using Kind = BlockRule::Kind;

std::string Gradient(const char* slot) { return std::string(slot) + kGradSuffix; }

const std::string* First(const std::vector<std::string>& names) {
  return names.empty() ? nullptr : &names.front();
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

Shape WithoutFirstDim(const Shape& shape) {
  return Shape(std::vector<int64_t>(shape.dims().begin() + 1, shape.dims().end()));
}

Shape WithFirstDim(int64_t dim, const Shape& shape) {
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims.insert(dims.begin(), dim);
  return Shape(dims);
}

// Returns whether each op of the block may run in a loop on a device, as far as its type tells.
bool MayRunOnDevice(const OpRegistry& registry, const Block& block) {
  return std::ranges::all_of(block.ops(), [&](const auto& op) {
    const OpDef& def = registry.Get(op->type);
    const bool may_note_fault = std::ranges::any_of(def.inputs, [&](const SlotDef& slot) {
      return MayNoteFault(slot) && !op->Input(slot.name).empty();
    });
    const bool has_kernel =
        std::ranges::count(registry.Kernels(op->type), PlaceKind::kCuda, &KernelDef::place) > 0;
    // A gradient op refuses nothing that its forward op has accepted.
    const bool may_refuse = may_note_fault && def.data_checked_by.empty();
    return op->SubBlocks().empty() && !may_refuse && (has_kernel || def.is_on_host);
  });
}

LoweringInputs OnPlace(Place place, LoweringInputs inputs) {
  inputs.place = place;
  inputs.gradients.clear();
  return inputs;
}

// A gradient op in a block.
struct FoundOp {
  const Block* block = nullptr;
  const Op* op = nullptr;
  size_t position = 0;
};

class LoopLowering {
 public:
  LoopLowering(BlockLowering* outer, const Op& op, const OpDef& def, size_t position)
      : outer_(*outer),
        op_(op),
        def_(def),
        position_(position),
        kind_(def.block->kind),
        slots_(SlotsOf(kind_)),
        forward_(BlockOf(op)),
        gradient_(FindGradient()),
        body_inputs_(OnPlace(PlaceOfBody(), outer->inputs())),
        line_(body_inputs_, forward_, [this](const std::string& name) { return Capture(name); }) {
    if (gradient_.op != nullptr) line_.SetGradientBlock(&BlockOf(*gradient_.op));
    line_.SetContentsOfFeeds(
        [this](ValueId feed, std::string* why) { return ContentsOfFeed(feed, why); });
  }

  // Returns false if the body writes other elements to an array than it has planned to read, larger
  // ones for example: then it must be lowered anew, and nothing has happened.
  bool Run() {
    kind_ == Kind::kRecurrent ? AddRecurrentFeeds() : AddWrittenFeeds();
    LowerOps(forward_);
    if (!line_.ArraysAreAsRead()) return false;
    kind_ == Kind::kRecurrent ? AddRecurrentFetches() : AddWrittenFetches();
    if (gradient_.op != nullptr) {
      AddBoundary();
      LowerGradient();
    }
    Plan& plan = line_.plan();
    for (const Feed& feed : feeds_) plan.feeds.push_back(feed.link.value);
    for (const Fetch& fetch : fetches_) plan.fetches.push_back(fetch.link.value);
    // Passes ask for the kernels of the place.
    if (Plan tried = plan; !plan.place.is_cpu() && !PlaceValues(&tried)) MoveBodyToCpu(&plan);
    if (outer_.inputs().body_passes) outer_.inputs().body_passes(&plan);
    // Passes may have replaced fetches by equal values.
    for (size_t i = 0; i < fetches_.size(); ++i) fetches_[i].link.value = plan.fetches[i];
    if (!plan.place.is_cpu() && !PlaceValues(&plan)) MoveBodyToCpu(&plan);
    Cut();
    return true;
  }

 private:
  struct Feed {
    LoopFeed link = {};
    bool of_gradient = false;
    ValueId outer = {};           // the input
    std::string read_later = {};  // the input is what this variable is at the gradient op
  };
  struct Fetch {
    LoopFetch link = {};
    bool of_gradient = false;
    std::string defines = {};  // the outer variable; empty: none
    TensorMeta outer_meta = {};
    ValueId like = {};  // the outer value whose gradient it is
  };
  // What one half needs and leaves.
  struct Half {
    Loop loop = {};
    Instruction instruction = {};
    std::map<ValueId, int> inputs = {};  // outer value -> index of the input
  };

  // ---- blocks

  const Block& BlockOf(const Op& op) const {
    const std::vector<int32_t> blocks = op.SubBlocks();
    SKIFF_ENFORCE(blocks.size() == 1, kInvalidArgument, op.type, ": runs ", blocks.size(),
                  " blocks, expected one");
    return *outer_.block().program()->block(blocks[0]);
  }

  // Returns the gradient op of this one, if the blocks that `outer_` lowers have it.
  FoundOp FindGradient() const {
    const std::string* scopes = First(op_.Output(slots_.scopes));
    if (scopes == nullptr) return {};
    for (const Block* block : outer_.blocks()) {
      for (size_t i = 0; i < block->ops().size(); ++i) {
        const Op& op = *block->ops()[i];
        const OpDef* def = outer_.inputs().registry.Find(op.type);
        const bool is_gradient = def != nullptr && def->block != nullptr &&
                                 def->block->is_gradient && def->block->kind == kind_;
        if (is_gradient && Contains(op.Input(slots_.scopes), *scopes)) return {block, &op, i};
      }
    }
    return {};
  }

  void LowerOps(const Block& block) {
    for (size_t i = 0; i < block.ops().size(); ++i) {
      const Op& op = *block.ops()[i];
      try {
        in_gradient_ ? AddGradientOp(block, i) : line_.AddOp(op, i);
      } catch (const Error& error) {
        throw error.WithContext(DescribeOp(op, block.index(), i));
      }
    }
  }

  bool IsArray(const std::string& name) const {
    const Var* var = line_.FindVar(name);
    return var != nullptr && var->kind == VarKind::kLoDTensorArray;
  }

  // ---- links

  const PlanValue& Outer(ValueId value) { return outer_.plan()[value]; }
  const TensorMeta& MetaOf(ValueId value) { return line_.plan()[value].meta; }

  // Adds a feed that `name` means in the body from now on. Returns its index.
  size_t AddFeed(LoopFeed::Kind kind, const std::string& name, TensorMeta meta, ValueId outer) {
    meta.persistable = false;
    SKIFF_ENFORCE(!meta.is_array, kInvalidArgument, op_.type, ": \"", name,
                  "\" is an array of tensors, expected a tensor");
    // An iteration may leave anything in place of a rank table.
    if (kind != LoopFeed::Kind::kInvariant) meta.shape_lod = nullptr;
    SKIFF_ENFORCE(
        meta.lod == nullptr || kind == LoopFeed::Kind::kInvariant, kUnimplemented, op_.type, ": \"",
        name, "\" has a LoD and is handed from iteration to iteration: expected a dense tensor");
    Feed feed{.link = {.kind = kind, .value = line_.AddValue(name, meta, Storage::kFeed)},
              .of_gradient = in_gradient_,
              .outer = outer};
    line_.SetCurrent(name, feed.link.value);
    if (outer && outer_.RowsVary(outer)) line_.MarkVarying(feed.link.value);
    feeds_.push_back(std::move(feed));
    return feeds_.size() - 1;
  }

  // Finds a variable that the body reads and doesn't define.
  ValueId Capture(const std::string& name) {
    const ValueId outer = outer_.TryRead(name);
    if (!outer) return {};
    // The body may write it, too, where it is.
    if (Outer(outer).storage == Storage::kScope && !Outer(outer).meta.is_array) {
      return line_.AddValue(name, Outer(outer).meta, Storage::kScope);
    }
    return feeds_[AddFeed(LoopFeed::Kind::kInvariant, name, Outer(outer).meta, outer)].link.value;
  }

  // Returns the contents of a feed that is the same in all iterations.
  KnownContents::Contents ContentsOfFeed(ValueId value, std::string* why) {
    const auto feed = std::ranges::find_if(
        feeds_, [&](const Feed& candidate) { return candidate.link.value == value; });
    if (feed->link.kind == LoopFeed::Kind::kInvariant) {
      return outer_.ConstantContents(feed->outer, why);
    }
    *why = StrCat("\"", line_.plan()[value].name, "\", which iterations hand on");
    return nullptr;
  }

  Fetch& AddFetch(LoopFetch::Kind kind, const std::string& name, ValueId value) {
    fetches_.push_back({.link = {.kind = kind, .value = Owned(value)},
                        .of_gradient = in_gradient_,
                        .defines = name,
                        .outer_meta = MetaOf(value)});
    Fetch& fetch = fetches_.back();
    fetch.outer_meta.persistable = false;
    const bool is_part = kind == LoopFetch::Kind::kPart;
    SKIFF_ENFORCE(
        !is_part || (fetch.outer_meta.lod == nullptr && !fetch.outer_meta.is_selected_rows()),
        kUnimplemented, op_.type, ": the parts of \"", name,
        "\" have a LoD or are selected rows: expected dense tensors");
    return fetch;
  }

  // Returns the value, or a copy of it unless this half of the body makes it: when an iteration
  // ends, feeds take their next values one after the other.
  ValueId Owned(ValueId value) {
    const bool is_made_here =
        line_.plan()[value].storage == Storage::kArena && value.index() >= first_value_of_half_;
    return is_made_here ? value : line_.AppendCopy(op_, def_, position_, value);
  }

  void CheckCarried(const std::string& name, const TensorMeta& from, const TensorMeta& to) const {
    SKIFF_ENFORCE(from.shape == to.shape && from.dtype == to.dtype && from.layout == to.layout,
                  kInvalidArgument, op_.type, ": \"", name, "\" is ", from.dtype, " ", from.shape,
                  " when an iteration begins and ", to.dtype, " ", to.shape,
                  " when it ends: expected the same shape and dtype in each iteration");
  }

  // ---- while and conditional_block

  // Returns the device if the body may run there; PlaceValues and the placement pass decide.
  Place PlaceOfBody() const {
    const LoweringInputs& inputs = outer_.inputs();
    const bool may_leave =
        kind_ != Kind::kConditional && MayRunOnDevice(inputs.registry, forward_) &&
        (gradient_.op == nullptr || MayRunOnDevice(inputs.registry, BlockOf(*gradient_.op)));
    return may_leave ? inputs.place : Place::Cpu();
  }

  // Returns whether the body can run on the device.
  bool PlaceValues(Plan* plan) {
    std::vector<std::pair<ValueId, ValueId>> carried;
    for (const Fetch& fetch : fetches_) {
      if (fetch.link.kind != LoopFetch::Kind::kCarried) continue;
      carried.emplace_back(fetch.link.value,
                           feeds_[static_cast<size_t>(fetch.link.feed)].link.value);
    }
    return PlaceBody(outer_.inputs().registry, ConditionValue(), carried, plan);
  }

  // Returns the place of the op where it is now: passes may have moved it.
  size_t PositionInBlock() const {
    const auto& ops = outer_.block().ops();
    const auto at = std::ranges::find(ops, &op_, &std::unique_ptr<Op>::get);
    return static_cast<size_t>(at - ops.begin());
  }

  // Returns the variables of outer blocks that a block op writes, but for those of the scope.
  static std::vector<const Var*> Written(const OpRegistry& registry, const Block& block,
                                         size_t position, const Block& body) {
    std::vector<const Var*> written;
    for (const VarUse& use : UsesOf(registry, block, position).vars) {
      const bool is_tensor =
          use.var->kind == VarKind::kLoDTensor || use.var->kind == VarKind::kSelectedRows;
      if (!use.writes || use.var->persistable || !is_tensor || use.block == &body) continue;
      written.push_back(use.var);
    }
    return written;
  }

  void AddWrittenFeeds() {
    for (const Var* var :
         Written(outer_.inputs().registry, outer_.block(), PositionInBlock(), forward_)) {
      written_.push_back(var->name);
      const ValueId initial = outer_.TryRead(var->name);
      if (initial) AddFeed(LoopFeed::Kind::kCarried, var->name, Outer(initial).meta, initial);
    }
    if (kind_ == Kind::kConditional) return;
    // The condition may be one that the body never writes.
    line_.Read(op_.Input("Condition").front());
  }

  std::optional<size_t> FindFeed(LoopFeed::Kind kind, const std::string& name, bool of_gradient) {
    for (size_t i = 0; i < feeds_.size(); ++i) {
      if (feeds_[i].link.kind == kind && feeds_[i].of_gradient == of_gradient &&
          line_.plan()[feeds_[i].link.value].name == name) {
        return i;
      }
    }
    return std::nullopt;
  }

  void AddWrittenFetches() {
    for (const std::string& name : written_) {
      const ValueId end = line_.Current(name);
      const auto feed = FindFeed(LoopFeed::Kind::kCarried, name, false);
      if (!end) continue;  // written by a branch inside that never has it
      if (!feed) {
        AddFetch(LoopFetch::Kind::kLast, name, end);
        continue;
      }
      CheckCarried(name, MetaOf(feeds_[*feed].link.value), MetaOf(end));
      AddFetch(LoopFetch::Kind::kCarried, name, end).link.feed = static_cast<int>(*feed);
    }
  }

  // ---- recurrent

  void AddRecurrentFeeds() {
    CheckWritesNothingOutside();
    for (const std::string& name : op_.Input("inputs")) {
      CheckNamed("inputs", name);
      const ValueId stack = outer_.Read(name);
      TensorMeta meta = Outer(stack).meta;
      SKIFF_ENFORCE(meta.shape.rank() >= 1 && meta.lod == nullptr && meta.layout.is_plain(),
                    kInvalidArgument, op_.type, ": input \"", name, "\" is ", meta.dtype, " ",
                    meta.shape, meta.lod == nullptr ? "" : " with a LoD",
                    ": expected a dense tensor whose dim 0 counts the iterations");
      SKIFF_ENFORCE(iterations_ < 0 || iterations_ == meta.shape[0], kInvalidArgument, op_.type,
                    ": input \"", name, "\" has ", meta.shape[0], " parts, those before have ",
                    iterations_);
      iterations_ = meta.shape[0];
      meta.shape = WithoutFirstDim(meta.shape);
      AddFeed(LoopFeed::Kind::kPart, name, meta, stack);
    }
    SKIFF_ENFORCE(iterations_ >= 0, kInvalidArgument, op_.type,
                  ": has no inputs, expected one whose dim 0 counts the iterations");
    const std::vector<std::string>& initial = op_.Input("initial_states");
    CheckStateNames(initial);
    for (size_t i = 0; i < initial.size(); ++i) {
      CheckNamed("initial_states", initial[i]);
      const ValueId value = outer_.Read(initial[i]);
      AddFeed(LoopFeed::Kind::kCarried, States("ex_states")[i], Outer(value).meta, value);
    }
  }

  void CheckNamed(const char* slot, const std::string& name) const {
    SKIFF_ENFORCE(name != kEmptyVarName, kInvalidArgument, op_.type, ": ", slot, " has ",
                  kEmptyVarName, ", expected a variable");
  }

  // A value that an iteration leaves outside would have to be a state.
  void CheckWritesNothingOutside() const {
    for (const Var* var :
         Written(outer_.inputs().registry, outer_.block(), PositionInBlock(), forward_)) {
      SKIFF_ENFORCE(Contains(op_.Output("outputs"), var->name), kUnimplemented, op_.type,
                    ": the block writes \"", var->name,
                    "\", which is outside: expected a state, or a variable of the block");
    }
  }

  std::vector<std::string> States(const char* attr) const {
    return op_.Attr<std::vector<std::string>>(attr, {});
  }

  void CheckStateNames(const std::vector<std::string>& initial) const {
    const size_t before = States("ex_states").size();
    const size_t after = States("states").size();
    SKIFF_ENFORCE(before == initial.size() && after == initial.size(), kInvalidArgument, op_.type,
                  ": has ", initial.size(), " initial_states, ", before, " ex_states and ", after,
                  " states: expected as many of each");
    for (const std::vector<std::string>& names :
         {States("ex_states"), States("states"), op_.Output("outputs")}) {
      const std::set<std::string> unique(names.begin(), names.end());
      SKIFF_ENFORCE(unique.size() == names.size(), kInvalidArgument, op_.type, ": one of ",
                    Join(names, ", "), " is named twice");
    }
  }

  void AddRecurrentFetches() {
    for (size_t i = 0; i < States("states").size(); ++i) {
      const std::string name = States("states")[i];
      const size_t feed = *FindFeed(LoopFeed::Kind::kCarried, States("ex_states")[i], false);
      const ValueId end = line_.Read(name);
      CheckCarried(name, MetaOf(feeds_[feed].link.value), MetaOf(end));
      Fetch& fetch = AddFetch(LoopFetch::Kind::kCarried, "", end);
      fetch.link.feed = static_cast<int>(feed);
    }
    for (const std::string& name : op_.Output("outputs")) {
      if (name == kEmptyVarName) continue;
      Fetch& fetch = AddFetch(LoopFetch::Kind::kPart, name, line_.Read(name));
      fetch.outer_meta.shape = WithFirstDim(iterations_, fetch.outer_meta.shape);
    }
  }

  // ---- the gradient half

  void AddBoundary() {
    const OpDef& def = outer_.inputs().registry.Get("loop_boundary");
    Instruction origin;
    origin.op = &op_;
    origin.def = &def_;
    origin.block = forward_.index();
    SlotValues inputs;
    for (const Fetch& fetch : fetches_) inputs.emplace_back("X", fetch.link.value);
    for (const Instruction& instruction : line_.plan().instructions) {
      for (const ValueId output : instruction.outputs) {
        if (!output || line_.plan()[output].storage != Storage::kScope) continue;
        if (!MetaOf(output).is_array) scope_values_at_end_[line_.plan()[output].name] = output;
      }
    }
    line_.Append(MakeInstruction(&line_.plan(), def, origin, {}, inputs, {}));
    first_value_of_half_ = line_.plan().values.size();
    forward_values_.emplace(line_.plan());
    in_gradient_ = true;
  }

  // A gradient op reads what its forward op has read and written, even if the forward block has
  // written other values to the same names before or after. (PaddlePaddle's gradient blocks find
  // one of them, and not always the right one.)
  void AddGradientOp(const Block& block, size_t position) {
    std::map<std::string, ValueId> seen;
    const std::map<std::string, ValueId> of_forward = forward_values_->Of(block, position);
    for (const auto& [name, value] : of_forward) {
      const ValueId current = line_.Current(name);
      if (!current || current == value) continue;
      seen.emplace(name, current);
      line_.SetCurrent(name, value);
    }
    const size_t first = line_.plan().instructions.size();
    line_.AddOp(*block.ops()[position], position);
    for (size_t i = first; i < line_.plan().instructions.size(); ++i) {
      CheckScopeReads(line_.plan().instructions[i]);
    }
    for (const auto& [name, value] : seen) {
      // Else the op has written it.
      if (line_.Current(name) == of_forward.at(name)) line_.SetCurrent(name, value);
    }
  }

  // A variable of the scope has one storage: when the gradient half runs, it holds what the last
  // iteration has left.
  void CheckScopeReads(const Instruction& gradient) {
    for (size_t i = 0; i < gradient.inputs.size(); ++i) {
      const ValueId input = gradient.inputs[i];
      if (!input || !gradient.reads_data[i]) continue;
      const std::string& name = line_.plan()[input].name;
      const auto end = scope_values_at_end_.find(name);
      if (line_.plan()[input].storage != Storage::kScope || end == scope_values_at_end_.end()) {
        continue;
      }
      SKIFF_ENFORCE(kind_ == Kind::kConditional && input == end->second, kUnimplemented,
                    gradient.op->type, ": reads \"", name,
                    "\", a variable of the scope that the block overwrites: expected that the "
                    "block writes another variable");
    }
  }

  void LowerGradient() {
    const Block& block = BlockOf(*gradient_.op);
    ForgetOverwritten();
    line_.EnterGradientBlock(block);
    TieArrays();
    kind_ == Kind::kRecurrent ? AddRecurrentSeeds() : AddSeeds();
    LowerOps(block);
    kind_ == Kind::kRecurrent ? AddRecurrentGradients() : AddGradients();
  }

  // The gradient block declares the gradients of arrays outside, and the op says which they are.
  void TieArrays() {
    const auto tie = [&](const std::vector<std::string>& inner,
                         const std::vector<std::string>& outer) {
      for (size_t i = 0; i < std::min(inner.size(), outer.size()); ++i) {
        const bool is_given = inner[i] != kEmptyVarName && outer[i] != kEmptyVarName;
        if (is_given && IsArray(inner[i])) line_.TieArray(inner[i], outer[i]);
      }
    };
    tie(InnerResultGradients(), gradient_.op->Input(Gradient(slots_.results)));
    std::vector<std::string> inner;
    for (const std::string& x : gradient_.op->Input(slots_.captured)) inner.push_back(GradName(x));
    tie(inner, gradient_.op->Output(Gradient(slots_.captured)));
  }

  // A gradient block of Fluid's finds a variable that the forward block overwrites as it was when
  // the iteration began, unless an op of the block works on it in place, such as a counter.
  void ForgetOverwritten() {
    if (kind_ != Kind::kWhile) return;
    for (const Feed& feed : feeds_) {
      const std::string name = line_.plan()[feed.link.value].name;
      if (feed.link.kind == LoopFeed::Kind::kCarried && !IsCounter(forward_, name)) {
        line_.SetCurrent(name, feed.link.value);
      }
    }
  }

  // Adds a feed of the gradient half that is carried and begins as an outer variable is then.
  size_t AddSeed(LoopFeed::Kind kind, const std::string& name, const TensorMeta& meta,
                 const std::string& outer_name) {
    const size_t index = AddFeed(kind, name, meta, {});
    if (outer_name != kEmptyVarName) feeds_[index].read_later = outer_name;
    return index;
  }

  // Returns the meta that the forward variable of a gradient has in the body.
  TensorMeta ForwardMeta(const std::string& gradient) {
    const ValueId value = line_.TryRead(std::string(ForwardName(gradient)));
    SKIFF_ENFORCE(value, kInvalidArgument, gradient_.op->type, ": \"", gradient,
                  "\" is the gradient of no variable of the block");
    TensorMeta meta = MetaOf(value);
    meta.layout = {};
    return meta;
  }

  std::vector<std::string> InnerResultGradients() const {
    if (gradient_.op->HasAttr(kInnerGradientsAttr)) {
      return gradient_.op->Attr<std::vector<std::string>>(kInnerGradientsAttr);
    }
    return gradient_.op->Input(Gradient(slots_.results));
  }

  void AddSeeds() {
    const std::vector<std::string>& outer = gradient_.op->Input(Gradient(slots_.results));
    const std::vector<std::string> inner = InnerResultGradients();
    SKIFF_ENFORCE(outer.size() == inner.size(), kInvalidArgument, gradient_.op->type, ": has ",
                  outer.size(), " gradients of results and ", inner.size(), " names for them");
    for (size_t i = 0; i < inner.size(); ++i) {
      // Gradient ops find the elements of arrays where they are.
      if (inner[i] == kEmptyVarName || IsArray(inner[i])) continue;
      AddSeed(LoopFeed::Kind::kCarried, inner[i], ForwardMeta(inner[i]), outer[i]);
    }
    // What else the gradient block changes outside of itself: counters that run backwards.
    const OpRegistry& registry = outer_.inputs().registry;
    for (const Var* var :
         Written(registry, *gradient_.block, gradient_.position, BlockOf(*gradient_.op))) {
      const bool is_result = Contains(gradient_.op->OutputNames(), var->name);
      const ValueId value = is_result ? ValueId() : line_.TryRead(var->name);
      if (value && forward_.FindLocalVar(var->name) == nullptr) {
        rewound_.push_back(AddSeed(LoopFeed::Kind::kCarried, var->name, MetaOf(value), var->name));
      }
    }
  }

  void AddGradients() {
    const std::vector<std::string>& captured = gradient_.op->Input(slots_.captured);
    const std::vector<std::string>& outer = gradient_.op->Output(Gradient(slots_.captured));
    for (size_t i = 0; i < std::min(captured.size(), outer.size()); ++i) {
      if (outer[i] == kEmptyVarName || IsArray(captured[i])) continue;
      const std::string name = GradName(captured[i]);
      const auto feed = FindFeed(LoopFeed::Kind::kCarried, name, true);
      const ValueId end = line_.Current(name);
      SKIFF_ENFORCE(end, kInvalidArgument, gradient_.op->type, ": no op of block ",
                    line_.block().index(), " makes \"", name, "\", the gradient of \"", captured[i],
                    "\"");
      if (feed) {
        AddCarriedGradient(*feed, outer[i], end);
      } else {
        AddSum(outer[i], captured[i], end);
      }
    }
    // Gradients of results that nothing hands on, but that change inside.
    for (size_t i = 0; i < feeds_.size(); ++i) {
      if (!feeds_[i].of_gradient || feeds_[i].link.kind != LoopFeed::Kind::kCarried) continue;
      const std::string name = line_.plan()[feeds_[i].link.value].name;
      const bool is_fetched = std::ranges::any_of(fetches_, [&](const Fetch& fetch) {
        return fetch.of_gradient && fetch.link.feed == static_cast<int>(i);
      });
      if (is_fetched || line_.Current(name) == feeds_[i].link.value) continue;
      const bool is_rewound = std::ranges::count(rewound_, i) > 0;
      AddCarriedGradient(i, is_rewound ? name : "", line_.Current(name));
    }
  }

  void AddCarriedGradient(size_t feed, const std::string& outer, ValueId end) {
    CheckCarried(line_.plan()[end].name, MetaOf(feeds_[feed].link.value), MetaOf(end));
    AddFetch(LoopFetch::Kind::kCarried, outer, end).link.feed = static_cast<int>(feed);
  }

  void AddSum(const std::string& outer, const std::string& of, ValueId end) {
    Fetch& fetch = AddFetch(LoopFetch::Kind::kSum, outer, end);
    const auto feed = FindFeed(LoopFeed::Kind::kInvariant, of, false);
    if (feed) fetch.like = feeds_[*feed].outer;
    TensorMeta& meta = fetch.outer_meta;
    if (!meta.is_selected_rows()) return;
    // The rows of all iterations one after the other; if nobody knows how many, a place for each
    // row of the dense tensor.
    meta.shape[0] = SlotCount() < 0 ? meta.height() : MultiplyCounts(meta.shape[0], SlotCount());
  }

  void AddRecurrentSeeds() {
    const std::vector<std::string>& outputs = op_.Output("outputs");
    const std::vector<std::string>& outer = gradient_.op->Input(Gradient("outputs"));
    for (size_t i = 0; i < std::min(outputs.size(), outer.size()); ++i) {
      const std::string name = GradName(outputs[i]);
      const bool is_given = outer[i] != kEmptyVarName;
      AddSeed(is_given ? LoopFeed::Kind::kPart : LoopFeed::Kind::kCarried, name, ForwardMeta(name),
              outer[i]);
    }
    for (const std::string& state : States("states")) {
      const std::string name = GradName(state);
      SKIFF_ENFORCE(!Contains(outputs, state), kUnimplemented, gradient_.op->type, ": \"", state,
                    "\" is a state and an output: expected a copy of the state as the output");
      AddSeed(LoopFeed::Kind::kCarried, name, ForwardMeta(name), kEmptyVarName);
    }
  }

  void AddRecurrentGradients() {
    const auto gradient_outputs = [&](const char* slot) -> const std::vector<std::string>& {
      return gradient_.op->Output(Gradient(slot));
    };
    const std::vector<std::string>& states = gradient_outputs("initial_states");
    for (size_t i = 0; i < States("states").size(); ++i) {
      const ValueId end = line_.Current(GradName(States("ex_states")[i]));
      if (!end) continue;  // no gradient reaches this state
      const std::string outer = i < states.size() && states[i] != kEmptyVarName ? states[i] : "";
      const auto feed = FindFeed(LoopFeed::Kind::kCarried, GradName(States("states")[i]), true);
      AddCarriedGradient(*feed, outer, end);
    }
    const auto each = [&](const char* slot, const auto& add) {
      const std::vector<std::string>& outer = gradient_outputs(slot);
      const std::vector<std::string>& names = op_.Input(slot);
      for (size_t i = 0; i < std::min(names.size(), outer.size()); ++i) {
        if (outer[i] == kEmptyVarName || IsArray(names[i])) continue;
        const ValueId end = line_.Current(GradName(names[i]));
        SKIFF_ENFORCE(end, kInvalidArgument, gradient_.op->type, ": no op of block ",
                      line_.block().index(), " makes \"", GradName(names[i]), "\"");
        add(outer[i], names[i], end);
      }
    };
    each("inputs", [&](const std::string& outer, const std::string&, ValueId end) {
      Fetch& fetch = AddFetch(LoopFetch::Kind::kPart, outer, end);
      fetch.outer_meta.shape = WithFirstDim(iterations_, fetch.outer_meta.shape);
    });
    each("parameters", [&](const std::string& outer, const std::string& of, ValueId end) {
      AddSum(outer, of, end);
    });
  }

  // ---- cutting the line

  // Returns how many slots a stack has, -1 if nobody knows before a run.
  int64_t SlotCount() const { return kind_ == Kind::kConditional ? 1 : iterations_; }

  void Cut() {
    Plan& plan = line_.plan();
    if (RowsMayVary()) joint_body_ = std::make_shared<const Plan>(plan);
    const auto boundary = std::ranges::find_if(plan.instructions, IsLoopBoundary);
    SKIFF_ENFORCE(!in_gradient_ || boundary != plan.instructions.end(), kFailedPrecondition,
                  op_.type, ": a pass has dropped the loop_boundary of the body");
    const auto cut = in_gradient_ ? boundary : plan.instructions.end();
    forward_instructions_.assign(std::make_move_iterator(plan.instructions.begin()),
                                 std::make_move_iterator(cut));
    if (in_gradient_) {
      gradient_instructions_.assign(std::make_move_iterator(cut + 1),
                                    std::make_move_iterator(plan.instructions.end()));
    }
    plan.instructions.clear();
    ShareViewsOfInvariants(forward_instructions_);
    ShareViewsOfInvariants(gradient_instructions_);
    FindStashes();
    Half forward = MakeHalf(forward_instructions_, false);
    const std::vector<ValueId> stacks = AddStacks(&forward);
    AddIterations(&forward, false);
    DefineForward(&forward);
    Emit(forward);
    if (in_gradient_) PrepareGradient(stacks);
  }

  bool SetsRowsInside() const {
    return joint_body_ != nullptr &&
           std::ranges::any_of(joint_body_->instructions, &Instruction::sets_rows);
  }

  // Returns whether rows may differ from run to run or from iteration to iteration.
  bool RowsMayVary() {
    const Plan& outer = outer_.plan();
    bool may_vary = outer_.inputs().rows_vary ||
                    std::ranges::any_of(line_.plan().instructions, &Instruction::sets_rows) ||
                    std::ranges::any_of(outer.instructions, &Instruction::sets_rows);
    for (const ValueId id : outer.ids()) may_vary = may_vary || outer[id].meta.lod != nullptr;
    return may_vary;
  }

  // Calls use(value, reads_data) for each value that an instruction has.
  template <typename Use>
  static void ForEachInput(const std::vector<Instruction>& instructions, const Use& use) {
    for (const Instruction& instruction : instructions) {
      for (size_t i = 0; i < instruction.inputs.size(); ++i) {
        if (instruction.inputs[i]) use(instruction.inputs[i], instruction.reads_data[i]);
      }
      // Members of a fused instruction read values for their shapes that its inputs lack.
      for (const Instruction& member : instruction.members) {
        for (const ValueId input : member.inputs) {
          if (input) use(input, false);
        }
      }
    }
  }

  bool IsInvariant(ValueId value) const {
    return std::ranges::any_of(feeds_, [&](const Feed& feed) {
      return feed.link.kind == LoopFeed::Kind::kInvariant && feed.link.value == value;
    });
  }

  // Returns whether a value is an invariant feed that no iteration writes: one that holds a
  // variable of the scope may be written as such.
  bool StaysTheSame(ValueId value) {
    return std::ranges::any_of(feeds_, [&](const Feed& feed) {
      return feed.link.kind == LoopFeed::Kind::kInvariant && feed.link.value == value &&
             feed.outer && Outer(feed.outer).storage != Storage::kScope;
    });
  }

  // Puts views of what is the same in all iterations into its storage, unless something else writes
  // there, too. No iteration then copies it, and no stack holds it for the gradient half.
  void ShareViewsOfInvariants(const std::vector<Instruction>& instructions) {
    Plan& plan = line_.plan();
    for (const Instruction& instruction : instructions) {
      for (const auto& [from, to] : ViewPairs(plan, instruction)) {
        const ValueId shown = plan.StorageOf(instruction.inputs[static_cast<size_t>(from)]);
        const ValueId view = instruction.outputs[static_cast<size_t>(to)];
        const PlanValue& value = plan[view];
        if (!StaysTheSame(shown) || value.alias_of || value.storage != Storage::kArena ||
            value.is_exclusive || Writers(view) > 1) {
          continue;
        }
        for (const ValueId id : plan.ids()) {
          if (plan[id].alias_of == view) plan[id].alias_of = shown;
        }
        plan[view].alias_of = shown;
      }
    }
  }

  // Returns how many outputs of the body lie in a storage without being views of it.
  int64_t Writers(ValueId root) const {
    const Plan& plan = line_.plan();
    int64_t writers = 0;
    for (const auto* instructions : {&forward_instructions_, &gradient_instructions_}) {
      for (const Instruction& instruction : *instructions) {
        const InputOutputPairs views = ViewPairs(plan, instruction);
        for (size_t i = 0; i < instruction.outputs.size(); ++i) {
          const ValueId output = instruction.outputs[i];
          if (!output || plan.StorageOf(output) != root) continue;
          const bool is_view = std::ranges::any_of(views, [&](const auto& pair) {
            return pair.second == static_cast<int>(i) &&
                   plan.StorageOf(instruction.inputs[static_cast<size_t>(pair.first)]) == root;
          });
          if (!is_view) ++writers;
        }
      }
    }
    return writers;
  }

  // Finds the storages that the forward half fills and the gradient half reads.
  void FindStashes() {
    Plan& plan = line_.plan();
    std::set<ValueId> filled;
    for (const Instruction& instruction : forward_instructions_) {
      for (const ValueId output : instruction.outputs) {
        if (output && !IsInvariant(plan.StorageOf(output))) filled.insert(plan.StorageOf(output));
      }
    }
    for (const Feed& feed : feeds_) {
      if (feed.link.kind == LoopFeed::Kind::kCarried && !feed.of_gradient) {
        filled.insert(feed.link.value);
      }
    }
    std::set<ValueId> seen;
    const auto look = [&](ValueId value, bool reads_data) {
      const ValueId root = plan.StorageOf(value);
      if (!reads_data || !filled.contains(root) || !seen.insert(root).second) return;
      if (plan[root].storage == Storage::kScope) return;
      stashes_.push_back(root);
    };
    ForEachInput(gradient_instructions_, look);
    // A pass may have found that the forward half makes what the gradient half would hand out.
    for (const Fetch& fetch : fetches_) {
      if (fetch.of_gradient) look(fetch.link.value, true);
    }
    for (const ValueId root : stashes_) {
      if (plan[root].storage == Storage::kArena) plan[root].storage = Storage::kStack;
    }
  }

  int AddInput(Half* half, ValueId outer, bool reads_data) {
    const auto [found, is_new] =
        half->inputs.emplace(outer, static_cast<int>(half->instruction.inputs.size()));
    if (!is_new) {
      const auto index = static_cast<size_t>(found->second);
      if (reads_data) half->instruction.reads_data[index] = true;
      return found->second;
    }
    half->instruction.inputs.push_back(outer);
    half->instruction.reads_data.push_back(reads_data);
    return found->second;
  }

  // Adds an input whose value is known only at the gradient op.
  int AddLateInput(Half* half, const std::string& name) {
    const int index = static_cast<int>(half->instruction.inputs.size());
    half->instruction.inputs.emplace_back();
    half->instruction.reads_data.push_back(true);
    reads_later_.emplace_back(static_cast<size_t>(index), name);
    return index;
  }

  Half MakeHalf(const std::vector<Instruction>& instructions, bool of_gradient) {
    const FoundOp at = of_gradient ? gradient_ : FoundOp{&outer_.block(), &op_, position_};
    Half half;
    half.instruction.kind = InstructionKind::kLoop;
    half.instruction.place = line_.plan().place;
    half.instruction.op = at.op;
    half.instruction.def = &outer_.inputs().registry.Get(at.op->type);
    half.instruction.block = at.block->index();
    half.instruction.position = at.position;
    half.loop.body = line_.plan();
    half.loop.body.feeds.clear();
    half.loop.body.fetches.clear();
    half.loop.body.instructions = instructions;
    half.loop.is_gradient = of_gradient;
    AddFeeds(&half, instructions);
    AddFetches(&half);
    AddScopeValues(&half, instructions);
    AddLine(&half);
    return half;
  }

  void AddLine(Half* half) {
    half->loop.joint_body = joint_body_;
    if (joint_body_ == nullptr) return;
    for (size_t i = 0; i < feeds_.size(); ++i) {
      const Feed& feed = feeds_[i];
      int input = -1;
      if (feed.outer) {
        input = AddInput(half, feed.outer, false);
      } else if (feed_indices_[i] >= 0) {
        input = half->loop.feeds[static_cast<size_t>(feed_indices_[i])].input;
      } else if (feed.of_gradient) {
        input = Loop::kOnlyTheOtherHalfKnows;
      }
      half->loop.joint_body_inputs.push_back(input);
    }
    if (gradient_.op == nullptr || !SetsRowsInside()) return;
    if (half->loop.is_gradient) {
      half->loop.history = AddInput(half, history_, true);
      return;
    }
    history_ = outer_.AddValue(op_.type + ".rows", {.dtype = DType::kUint8, .is_array = true},
                               Storage::kKernelOwned);
    half->loop.history = static_cast<int>(half->instruction.outputs.size());
    half->instruction.outputs.push_back(history_);
  }

  void AddFeeds(Half* half, const std::vector<Instruction>& instructions) {
    const bool of_gradient = half->loop.is_gradient;
    std::map<ValueId, bool> uses;  // whether the half reads the data
    ForEachInput(instructions, [&](ValueId value, bool reads_data) {
      uses[value] = uses[value] || reads_data;
      // A view of a feed.
      const ValueId root = line_.plan().StorageOf(value);
      if (root != value && IsInvariant(root)) uses[root] = uses[root] || reads_data;
    });
    for (const Fetch& fetch : fetches_) {
      const ValueId root = line_.plan().StorageOf(fetch.link.value);
      if (fetch.of_gradient == of_gradient && IsInvariant(root)) uses[root] = true;
    }
    feed_indices_.assign(feeds_.size(), -1);
    for (size_t i = 0; i < feeds_.size(); ++i) {
      const Feed& feed = feeds_[i];
      const bool is_carried = feed.link.kind == LoopFeed::Kind::kCarried;
      const bool is_condition = !of_gradient && feed.link.value == ConditionValue();
      // Carried values of the other half are stashes here.
      if (feed.of_gradient != of_gradient && (feed.of_gradient || is_carried)) continue;
      // The LoDs of all other values follow from those of the feeds.
      const bool has_lod = CountedLoD(MetaOf(feed.link.value)) != nullptr;
      const bool is_stacked = !of_gradient && std::ranges::count(stashes_, feed.link.value) > 0;
      const bool is_used = uses.contains(feed.link.value) || is_condition || is_stacked || has_lod;
      if (!is_used) continue;
      LoopFeed link = feed.link;
      const auto use = uses.find(feed.link.value);
      const bool reads_data = is_condition || is_carried || (use != uses.end() && use->second);
      if (feed.outer) link.input = AddInput(half, feed.outer, reads_data);
      if (!feed.read_later.empty()) link.input = AddLateInput(half, feed.read_later);
      feed_indices_[i] = static_cast<int>(half->loop.feeds.size());
      if (is_condition) half->loop.condition_feed = feed_indices_[i];
      half->loop.feeds.push_back(link);
      half->loop.body.feeds.push_back(link.value);
    }
  }

  ValueId ConditionValue() {
    if (kind_ != Kind::kWhile) return {};
    const std::string& name = op_.Input("Condition").front();
    const auto carried = FindFeed(LoopFeed::Kind::kCarried, name, false);
    const auto feed = carried ? carried : FindFeed(LoopFeed::Kind::kInvariant, name, false);
    return feed ? feeds_[*feed].link.value : ValueId();
  }

  void AddFetches(Half* half) {
    fetch_indices_.assign(fetches_.size(), -1);
    for (size_t i = 0; i < fetches_.size(); ++i) {
      const Fetch& fetch = fetches_[i];
      if (fetch.of_gradient != half->loop.is_gradient) continue;
      LoopFetch link = fetch.link;
      if (link.kind == LoopFetch::Kind::kCarried) {
        const Feed& feed = feeds_[static_cast<size_t>(link.feed)];
        link.feed = feed_indices_[static_cast<size_t>(fetch.link.feed)];
        // No iteration reads what the one before has left.
        if (link.feed < 0) {
          if (fetch.defines.empty()) continue;
          link.kind = LoopFetch::Kind::kLast;
          if (feed.outer) link.input = AddInput(half, feed.outer, true);
          if (!feed.read_later.empty()) link.input = AddLateInput(half, feed.read_later);
        }
        link.like =
            link.feed < 0 ? link.input : half->loop.feeds[static_cast<size_t>(link.feed)].input;
      }
      if (fetch.like && joint_body_ != nullptr) link.like = AddInput(half, fetch.like, false);
      if (!fetch.defines.empty()) {
        link.output = static_cast<int>(half->instruction.outputs.size());
        half->instruction.outputs.emplace_back();
      }
      fetch_indices_[i] = link.output;
      half->loop.fetches.push_back(link);
      half->loop.body.fetches.push_back(link.value);
    }
  }

  void AddScopeValues(Half* half, const std::vector<Instruction>& instructions) {
    Plan& plan = line_.plan();
    std::set<std::string> written;
    std::set<ValueId> seen;
    std::map<std::string, int> late_arrays;
    ForEachInput(instructions, [&](ValueId value, bool) {
      if (plan[value].storage != Storage::kScope || !seen.insert(value).second) return;
      if (OwnsArray(value)) return half->loop.scope_values.push_back({.value = value});
      if (half->loop.is_gradient && plan[value].meta.is_array) {
        // An array of gradients isn't there yet, or ops in between add to it.
        const auto [known, is_new] = late_arrays.emplace(plan[value].name, -1);
        if (is_new) known->second = AddLateInput(half, plan[value].name);
        return half->loop.scope_values.push_back({.value = value, .index = known->second});
      }
      const ValueId outer = outer_.TryRead(plan[value].name);
      if (!outer) return;  // the body makes it before it reads it
      half->loop.scope_values.push_back({.value = value, .index = AddInput(half, outer, true)});
    });
    for (const Instruction& instruction : instructions) {
      for (const ValueId output : instruction.outputs) {
        if (!output || plan[output].storage != Storage::kScope) continue;
        if (OwnsArray(output)) {
          half->loop.scope_values.push_back({.value = output, .is_output = true});
          continue;
        }
        scope_writes_.emplace(plan[output].name, plan[output].meta);
        half->loop.scope_values.push_back(
            {.value = output, .is_output = true, .index = ScopeOutput(half, plan[output].name)});
      }
    }
  }

  bool OwnsArray(ValueId value) {
    const PlanValue& found = line_.plan()[value];
    return found.meta.is_array && line_.OwnsArray(found.name);
  }

  int ScopeOutput(Half* half, const std::string& name) {
    const auto known = scope_outputs_.find({half->loop.is_gradient, name});
    if (known != scope_outputs_.end()) return known->second;
    const int index = static_cast<int>(half->instruction.outputs.size());
    half->instruction.outputs.emplace_back();
    scope_outputs_[{half->loop.is_gradient, name}] = index;
    return index;
  }

  // Returns the stacked carried value that becomes this stash when an iteration ends, or none.
  ValueId CarriedThatBecomes(ValueId root, const Half& forward) {
    const Plan& plan = line_.plan();
    // A stack that grows may move while the carried value still lies in it.
    if (SlotCount() < 0 || plan[root].storage == Storage::kFeed) return {};
    for (const LoopFetch& fetch : forward.loop.fetches) {
      if (fetch.kind != LoopFetch::Kind::kCarried || plan.StorageOf(fetch.value) != root) continue;
      const ValueId carried = forward.loop.feeds[static_cast<size_t>(fetch.feed)].value;
      const bool is_stacked = std::ranges::count(stashes_, carried) > 0;
      if (is_stacked && StackSlotBytes(plan[carried]) == StackSlotBytes(plan[root])) return carried;
    }
    return {};
  }

  // Makes a stack for each stash. Returns the stacks. A value that a stacked carried value becomes
  // is made in the next slot of that one's stack.
  std::vector<ValueId> AddStacks(Half* forward) {
    // Those of carried values first.
    std::ranges::stable_partition(
        stashes_, [&](ValueId root) { return line_.plan()[root].storage == Storage::kFeed; });
    std::vector<ValueId> stacks;
    std::map<ValueId, size_t> of_carried;
    std::set<ValueId> taken;
    for (const ValueId root : stashes_) {
      const PlanValue& value = line_.plan()[root];
      if (value.storage == Storage::kFeed) of_carried[root] = stacks.size();
      const ValueId carried = CarriedThatBecomes(root, *forward);
      if (carried && taken.insert(carried).second) {
        stacks.push_back(stacks[of_carried.at(carried)]);
        shifted_.insert(root);
        const auto at = std::ranges::find(forward->instruction.outputs, stacks.back());
        forward->loop.stashes.push_back(
            {.value = root,
             .index = static_cast<int>(at - forward->instruction.outputs.begin()),
             .shift = 1});
        continue;
      }
      const auto feed = std::ranges::find_if(
          forward->loop.feeds, [&](const LoopFeed& link) { return link.value == root; });
      const bool is_feed = value.storage == Storage::kFeed;
      // The stack of a loop inside, which is an array itself.
      const bool is_array = SlotCount() < 0 || value.storage == Storage::kKernelOwned;
      // One slot more: what a carried value is when the loop ends.
      const int64_t slots = SlotCount() + (is_feed ? 1 : 0);
      const int64_t bytes = is_array ? 0 : MultiplyCounts(slots, StackSlotBytes(value));
      TensorMeta meta{.shape = Shape({bytes}), .dtype = DType::kUint8, .is_array = is_array};
      stacks.push_back(outer_.AddValue(value.name + "@STACK", meta,
                                       is_array ? Storage::kKernelOwned : Storage::kArena));
      const int output = static_cast<int>(forward->instruction.outputs.size());
      forward->instruction.outputs.push_back(stacks.back());
      if (!is_feed) {
        forward->loop.stashes.push_back({.value = root, .index = output});
      } else {
        feed->stack = output;
      }
    }
    return stacks;
  }

  void AddIterations(Half* half, bool of_gradient) {
    Loop& loop = half->loop;
    loop.max_iterations = outer_.inputs().max_loop_iterations;
    if (kind_ == Kind::kRecurrent) {
      loop.iterations = iterations_;
      loop.descending = op_.Attr<bool>("reverse", false) != of_gradient;
    } else if (kind_ == Kind::kConditional) {
      AddBranchCondition(half);
    } else if (of_gradient) {
      loop.count_input = AddInput(half, count_, true);
    } else if (gradient_.op != nullptr) {
      count_ = outer_.AddValue(op_.type + ".count", {.shape = Shape({1}), .dtype = DType::kInt64},
                               Storage::kArena);
      loop.count_output = static_cast<int>(half->instruction.outputs.size());
      half->instruction.outputs.push_back(count_);
    }
    loop.descending = loop.descending || (of_gradient && kind_ == Kind::kWhile);
  }

  void AddBranchCondition(Half* half) {
    if (!condition_) condition_ = outer_.Read(op_.Input("Cond").front());
    const TensorMeta& meta = Outer(condition_).meta;
    if (!op_.Attr<bool>("is_scalar_condition", false)) {
      // The branch runs unless one of the inputs is empty.
      bool has_elements = true;
      for (const std::string& name : op_.Input("Cond")) {
        has_elements = has_elements && Outer(outer_.Read(name)).meta.shape.element_count() > 0;
      }
      half->loop.iterations = has_elements ? 1 : 0;
      return;
    }
    SKIFF_ENFORCE(meta.dtype == DType::kBool && meta.shape.element_count() == 1, kInvalidArgument,
                  op_.type, ": the condition \"", op_.Input("Cond").front(), "\" is ", meta.dtype,
                  " ", meta.shape, ", expected one bool");
    half->loop.condition_input = AddInput(half, condition_, true);
  }

  void DefineForward(Half* forward) {
    if (kind_ == Kind::kWhile) {
      SKIFF_ENFORCE(forward->loop.condition_feed >= 0, kUnimplemented, op_.type,
                    ": the condition \"", op_.Input("Condition").front(),
                    "\" is persistable, expected a variable of the program");
      const LoopFeed& condition =
          forward->loop.feeds[static_cast<size_t>(forward->loop.condition_feed)];
      const TensorMeta& meta = MetaOf(condition.value);
      SKIFF_ENFORCE(meta.dtype == DType::kBool && meta.shape.element_count() == 1, kInvalidArgument,
                    op_.type, ": the condition is ", meta.dtype, " ", meta.shape,
                    ", expected one bool");
    }
    for (size_t i = 0; i < fetches_.size(); ++i) {
      if (fetches_[i].of_gradient || fetch_indices_[i] < 0) continue;
      const ValueId result = outer_.Write(def_, fetches_[i].defines, fetches_[i].outer_meta);
      if (line_.RowsVary(fetches_[i].link.value)) outer_.MarkVarying(result);
      forward->instruction.outputs[static_cast<size_t>(fetch_indices_[i])] = result;
    }
    DefineScopeValues(forward);
  }

  void DefineScopeValues(Half* half) {
    for (const auto& [key, index] : scope_outputs_) {
      if (key.first != half->loop.is_gradient) continue;
      half->instruction.outputs[static_cast<size_t>(index)] =
          outer_.Write(def_, key.second, scope_writes_.at(key.second));
    }
  }

  void Emit(const Half& half) {
    Instruction instruction = half.instruction;
    instruction.loop = std::make_shared<const Loop>(half.loop);
    outer_.Append(std::move(instruction));
  }

  void PrepareGradient(const std::vector<ValueId>& stacks) {
    reads_later_.clear();
    Half half = MakeHalf(gradient_instructions_, true);
    for (size_t i = 0; i < stashes_.size(); ++i) {
      half.loop.stashes.push_back({.value = stashes_[i],
                                   .index = AddInput(&half, stacks[i], true),
                                   .shift = shifted_.contains(stashes_[i]) ? 1 : 0});
    }
    AddIterations(&half, true);
    PreparedGradient prepared{.instruction = half.instruction};
    prepared.instruction.loop = std::make_shared<const Loop>(half.loop);
    prepared.reads = reads_later_;
    for (size_t i = 0; i < fetches_.size(); ++i) {
      if (!fetches_[i].of_gradient || fetch_indices_[i] < 0) continue;
      prepared.defines.push_back({.output = static_cast<size_t>(fetch_indices_[i]),
                                  .name = fetches_[i].defines,
                                  .meta = fetches_[i].outer_meta});
    }
    for (const auto& [key, index] : scope_outputs_) {
      if (!key.first) continue;
      prepared.defines.push_back({.output = static_cast<size_t>(index),
                                  .name = key.second,
                                  .meta = scope_writes_.at(key.second)});
    }
    outer_.gradients()[*First(op_.Output(slots_.scopes))] = std::move(prepared);
  }

  BlockLowering& outer_;
  const Op& op_;
  const OpDef& def_;
  const size_t position_;
  const Kind kind_;
  const BlockSlots slots_;
  const Block& forward_;
  const FoundOp gradient_;
  const LoweringInputs body_inputs_;
  BlockLowering line_;
  bool in_gradient_ = false;
  size_t first_value_of_half_ = 0;
  std::optional<ForwardValues> forward_values_;
  int64_t iterations_ = -1;  // of a recurrent op
  ValueId condition_;        // of a branch
  ValueId count_;
  std::shared_ptr<const Plan> joint_body_;  // if rows may vary
  ValueId history_;
  std::vector<std::string> written_;
  std::vector<size_t> rewound_;  // feeds
  std::vector<Feed> feeds_;
  std::vector<Fetch> fetches_;
  std::vector<Instruction> forward_instructions_;
  std::vector<Instruction> gradient_instructions_;
  std::vector<ValueId> stashes_;
  std::set<ValueId> shifted_;  // those that lie in the stack of what they become
  // Of the half that is being made: by feed and fetch of the line.
  std::vector<int> feed_indices_;
  std::vector<int> fetch_indices_;  // of outputs
  std::vector<std::pair<size_t, std::string>> reads_later_;
  std::map<std::string, TensorMeta> scope_writes_;
  // What the forward block writes to variables of the scope last.
  std::map<std::string, ValueId> scope_values_at_end_;
  std::map<std::pair<bool, std::string>, int> scope_outputs_;  // by half and name
};

// Returns zeros like the variable whose gradient `name` is, if these have other rows from run to
// run; else none.
ValueId ZerosWithRowsOfRun(BlockLowering* outer, const Instruction& instruction,
                           const std::string& name) {
  const ValueId forward = outer->Current(std::string(ForwardName(name)));
  if (!forward || !outer->RowsVary(forward)) return {};
  TensorMeta meta = outer->plan()[forward].meta;
  if (meta.is_array || meta.is_selected_rows()) return {};
  meta.persistable = false;
  const ValueId zeros = outer->AddValue(name, meta, Storage::kArena);
  outer->MarkVarying(zeros);
  const OpDef& def = outer->inputs().registry.Get("fill_zeros_like");
  outer->Append(
      MakeInstruction(&outer->plan(), def, instruction, {}, {{"X", forward}}, {{"Out", zeros}}));
  return zeros;
}

// Emits the gradient half that was prepared with its forward op.
void EmitGradient(BlockLowering* outer, const Op& op, const OpDef& def, size_t position) {
  const std::string* scopes = First(op.Input(SlotsOf(def.block->kind).scopes));
  const auto found =
      scopes == nullptr ? outer->gradients().end() : outer->gradients().find(*scopes);
  SKIFF_ENFORCE(found != outer->gradients().end(), kUnimplemented, op.type,
                ": expected its forward op before it in the same block");
  PreparedGradient prepared = std::move(found->second);
  outer->gradients().erase(found);
  Instruction& instruction = prepared.instruction;
  instruction.position = position;
  CheckScopeIsAsBefore(*outer, instruction);
  auto loop = std::make_shared<Loop>(*instruction.loop);
  const auto definition_of = [&](const LoopFetch& fetch) {
    return std::ranges::find(prepared.defines, static_cast<size_t>(fetch.output),
                             &PreparedGradient::Definition::output);
  };
  const auto check = [&](const std::string& name, ValueId value, const TensorMeta& expected) {
    const TensorMeta& given = outer->plan()[value].meta;
    SKIFF_ENFORCE(given.shape == expected.shape && given.dtype == expected.dtype &&
                      given.layout == expected.layout && !given.is_array,
                  kInvalidArgument, op.type, ": \"", name, "\" is ",
                  given.is_array ? "an array of " : "", given.dtype, " ", given.shape,
                  ", expected ", expected.dtype, " ", expected.shape);
  };
  for (const auto& [read, name] : prepared.reads) {
    ValueId value = outer->TryRead(name);
    if (!value) value = ZerosWithRowsOfRun(outer, instruction, name);
    instruction.inputs[read] = value;
    const int input = static_cast<int>(read);
    for (LoopFeed& feed : loop->feeds) {
      if (feed.input != input) continue;
      TensorMeta expected = loop->body[feed.value].meta;
      if (feed.kind == LoopFeed::Kind::kPart) {
        expected.shape = WithFirstDim(loop->iterations, expected.shape);
      }
      if (value) check(name, value, expected);
      // A gradient that nobody has written is 0, in each iteration.
      if (!value) feed = {.kind = LoopFeed::Kind::kCarried, .value = feed.value};
    }
    for (LoopFetch& fetch : loop->fetches) {
      // It passes through if there is no iteration.
      if (fetch.input == input && value) check(name, value, definition_of(fetch)->meta);
      if (fetch.input == input && !value) fetch.input = -1;
      if (fetch.like == input && !value) fetch.like = -1;
    }
    for (const LoopScopeValue& array : loop->scope_values) {
      if (array.is_output || array.index != input) continue;
      SKIFF_ENFORCE(value, kFailedPrecondition, op.type, ": no op has written the array \"", name,
                    "\", from which it takes gradients");
      SKIFF_ENFORCE(outer->plan()[value].meta.is_array, kInvalidArgument, op.type, ": \"", name,
                    "\" is a tensor, expected an array of tensors, as inside");
    }
  }
  instruction.loop = std::move(loop);
  // The LoDs of an earlier segment aren't those of this one.
  for (const LoopFetch& fetch : instruction.loop->fetches) {
    const auto definition = definition_of(fetch);
    if (definition == prepared.defines.end() || definition->meta.lod == nullptr) continue;
    const ValueId like =
        fetch.like < 0 ? ValueId() : instruction.inputs[static_cast<size_t>(fetch.like)];
    if (like) definition->meta.lod = outer->plan()[like].meta.lod;
  }
  for (const PreparedGradient::Definition& definition : prepared.defines) {
    instruction.outputs[definition.output] = outer->Write(def, definition.name, definition.meta);
  }
  outer->Append(std::move(instruction));
}

}  // namespace

void LowerLoop(BlockLowering* outer, const Op& op, const OpDef& def, size_t position) {
  if (def.block->is_gradient) return EmitGradient(outer, op, def, position);
  constexpr int kAttempts = 8;
  // Several ops may run one block, and each attempt lowers the loops inside again, so there may be
  // as many bodies as ways through the nest.
  const auto blocks = static_cast<int64_t>(outer->block().program()->block_count());
  const int64_t most_bodies = 1000 + 4 * blocks;
  for (int i = 0; i < kAttempts; ++i) {
    SKIFF_ENFORCE(++*outer->inputs().bodies <= most_bodies, kUnimplemented, op.type, ": the ",
                  blocks, " blocks of the program would be planned more than ", most_bodies,
                  " times: expected fewer ops that run one block, or fewer loops in loops");
    if (LoopLowering(outer, op, def, position).Run()) return;
  }
  Throw(ErrorCode::kUnimplemented, op.type, ": each iteration would write larger elements to an ",
        "array than the one before: expected a bound on their rows");
}

void CheckScopeIsAsBefore(const BlockLowering& outer, const Instruction& gradient) {
  const Plan& plan = outer.plan();
  for (const ValueId input : gradient.inputs) {
    if (!input || plan[input].storage != Storage::kScope || plan[input].meta.is_array) continue;
    const std::string& name = plan[input].name;
    SKIFF_ENFORCE(outer.Current(name) == input, kFailedPrecondition, gradient.op->type,
                  ": reads \"", name,
                  "\", which is overwritten after the loop; let that op write another variable");
  }
}

}  // namespace skiff
