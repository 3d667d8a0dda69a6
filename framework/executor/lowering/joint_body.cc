#include "framework/executor/lowering/joint_body.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "framework/analysis/body_places.h"
#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/op/grad_name.h"
#include "framework/op/host_slots.h"
#include "framework/plan/loop.h"

namespace skiff {
namespace {

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

// Returns the inputs for the body. It is on the device if it may run there; PlaceValues and the
// placement pass decide.
LoweringInputs InputsOfBody(LoweringInputs inputs, const LoopOps& ops, const LoopForm& form) {
  const bool may_leave =
      !form.RunsAtMostOnce() && MayRunOnDevice(inputs.registry, *ops.forward.body) &&
      (!ops.HasGradient() || MayRunOnDevice(inputs.registry, *ops.gradient.body));
  if (!may_leave) inputs.place = Place::Cpu();
  inputs.gradients.clear();
  return inputs;
}

// Calls add(i) for each op of the block. An Error names the op.
template <typename Add>
void ForEachOp(const Block& block, const Add& add) {
  for (size_t i = 0; i < block.ops().size(); ++i) {
    try {
      add(i);
    } catch (const Error& error) {
      throw error.WithContext(DescribeOp(*block.ops()[i], block.index(), i));
    }
  }
}

}  // namespace

JointBody::JointBody(BlockLowering* outer, const LoopOps& ops, LoopForm* form)
    : outer_(*outer),
      ops_(ops),
      form_(*form),
      inputs_(InputsOfBody(outer->inputs(), ops, *form)),
      lowering_(inputs_, *ops.forward.body,
                [this](const std::string& name) { return Capture(name); }) {
  if (ops_.HasGradient()) lowering_.SetGradientBlock(ops_.gradient.body);
  lowering_.SetContentsOfFeeds(
      [this](ValueId feed, std::string* why) { return ContentsOfFeed(feed, why); });
}

bool JointBody::Lower() {
  LowerForward();
  if (!lowering_.ArraysAreAsRead()) return false;
  form_.AddFetches(this);
  if (ops_.HasGradient()) {
    AddBoundary();
    LowerGradient();
  }
  links_.condition = form_.Condition(*this);
  links_.slots = form_.SlotCount();
  RunPasses();
  SKIFF_ENFORCE(!ops_.HasGradient() || std::ranges::any_of(plan().instructions, IsLoopBoundary),
                kFailedPrecondition, ops_.forward.op->type,
                ": a pass has dropped the loop_boundary of the body");
  return true;
}

// ---- links

size_t JointBody::AddFeed(LoopFeed::Kind kind, const std::string& name, TensorMeta meta,
                          OuterInput input) {
  const std::string& type = ops_.forward.op->type;
  meta.persistable = false;
  SKIFF_ENFORCE(!meta.is_array, kInvalidArgument, type, ": \"", name,
                "\" is an array of tensors, expected a tensor");
  // An iteration may leave anything in place of a rank table.
  if (kind != LoopFeed::Kind::kInvariant) meta.shape_lod = nullptr;
  SKIFF_ENFORCE(meta.lod == nullptr || kind == LoopFeed::Kind::kInvariant, kUnimplemented, type,
                ": \"", name,
                "\" has a LoD and is handed from iteration to iteration: expected a dense tensor");
  const ValueId value = lowering_.AddValue(name, meta, Storage::kFeed);
  lowering_.SetCurrent(name, value);
  if (input.value && outer_.RowsVary(input.value)) lowering_.MarkVarying(value);
  half_->feeds.push_back({.kind = kind, .value = value, .input = std::move(input)});
  return half_->feeds.size() - 1;
}

size_t JointBody::AddSeed(LoopFeed::Kind kind, const std::string& name, const TensorMeta& meta,
                          const std::string& outer) {
  return AddFeed(kind, name, meta, {.read_later = outer == kEmptyVarName ? "" : outer});
}

std::optional<size_t> JointBody::FindFeed(const HalfLinks& half, LoopFeed::Kind kind,
                                          const std::string& name) const {
  for (size_t i = 0; i < half.feeds.size(); ++i) {
    if (half.feeds[i].kind == kind && NameOf(half.feeds[i]) == name) return i;
  }
  return std::nullopt;
}

// Finds a variable that the body reads and doesn't define.
ValueId JointBody::Capture(const std::string& name) {
  const ValueId outer = outer_.TryRead(name);
  if (!outer) return {};
  const PlanValue& found = outer_.plan()[outer];
  // The body may write it, too, where it is.
  if (found.storage == Storage::kScope && !found.meta.is_array) {
    return lowering_.AddValue(name, found.meta, Storage::kScope);
  }
  return half_->feeds[AddFeed(LoopFeed::Kind::kInvariant, name, found.meta, {.value = outer})]
      .value;
}

const JointFeed& JointBody::FeedOf(ValueId value) const {
  const auto& forward = links_.forward.feeds;
  const auto found = std::ranges::find(forward, value, &JointFeed::value);
  if (found != forward.end()) return *found;
  return *std::ranges::find(links_.gradient.feeds, value, &JointFeed::value);
}

// Returns the contents of a feed that is the same in all iterations.
KnownContents::Contents JointBody::ContentsOfFeed(ValueId value, std::string* why) const {
  const JointFeed& feed = FeedOf(value);
  if (feed.kind == LoopFeed::Kind::kInvariant) {
    return outer_.ConstantContents(feed.input.value, why);
  }
  *why = StrCat("\"", NameOf(feed), "\", which iterations hand on");
  return nullptr;
}

JointFetch& JointBody::AddFetch(LoopFetch::Kind kind, const std::string& defines, ValueId value) {
  half_->fetches.push_back(
      {.kind = kind, .value = Owned(value), .defines = defines, .outer_meta = MetaOf(value)});
  JointFetch& fetch = half_->fetches.back();
  fetch.outer_meta.persistable = false;
  const bool is_part = kind == LoopFetch::Kind::kPart;
  SKIFF_ENFORCE(
      !is_part || (fetch.outer_meta.lod == nullptr && !fetch.outer_meta.is_selected_rows()),
      kUnimplemented, ops_.forward.op->type, ": the parts of \"", defines,
      "\" have a LoD or are selected rows: expected dense tensors");
  return fetch;
}

// Returns the value, or a copy of it unless the half makes it: when an iteration ends, feeds take
// their next values one after the other.
ValueId JointBody::Owned(ValueId value) {
  const bool is_made_here =
      plan()[value].storage == Storage::kArena && value.index() >= first_value_of_half_;
  const BlockOp& op = ops_.forward;
  return is_made_here ? value : lowering_.AppendCopy(*op.op, *op.def, op.position, value);
}

void JointBody::AddCarried(size_t feed, const std::string& defines, ValueId end) {
  const TensorMeta& from = MetaOf(half_->feeds[feed].value);
  const TensorMeta& to = MetaOf(end);
  SKIFF_ENFORCE(from.shape == to.shape && from.dtype == to.dtype && from.layout == to.layout,
                kInvalidArgument, ops_.forward.op->type, ": \"", plan()[end].name, "\" is ",
                from.dtype, " ", from.shape, " when an iteration begins and ", to.dtype, " ",
                to.shape, " when it ends: expected the same shape and dtype in each iteration");
  AddFetch(LoopFetch::Kind::kCarried, defines, end).feed = static_cast<int>(feed);
}

void JointBody::AddSum(const std::string& defines, const std::string& of, ValueId end) {
  JointFetch& fetch = AddFetch(LoopFetch::Kind::kSum, defines, end);
  const auto feed = FindFeed(links_.forward, LoopFeed::Kind::kInvariant, of);
  if (feed) fetch.like = links_.forward.feeds[*feed].input.value;
  TensorMeta& meta = fetch.outer_meta;
  if (!meta.is_selected_rows()) return;
  // The rows of all iterations one after the other; if nobody knows how many, a place for each row
  // of the dense tensor.
  const int64_t slots = form_.SlotCount();
  meta.shape[0] = slots < 0 ? meta.height() : MultiplyCounts(meta.shape[0], slots);
}

TensorMeta JointBody::ForwardMeta(const std::string& gradient) {
  const ValueId value = lowering_.TryRead(std::string(ForwardName(gradient)));
  SKIFF_ENFORCE(value, kInvalidArgument, ops_.gradient.op->type, ": \"", gradient,
                "\" is the gradient of no variable of the block");
  TensorMeta meta = MetaOf(value);
  meta.layout = {};
  return meta;
}

bool JointBody::IsArray(const std::string& name) const {
  const Var* var = lowering_.FindVar(name);
  return var != nullptr && var->kind == VarKind::kLoDTensorArray;
}

// ---- the halves

void JointBody::LowerForward() {
  form_.AddFeeds(this);
  const Block& block = *ops_.forward.body;
  ForEachOp(block, [&](size_t i) { lowering_.AddOp(*block.ops()[i], i); });
}

void JointBody::AddBoundary() {
  Instruction origin;
  origin.op = ops_.forward.op;
  origin.def = ops_.forward.def;
  origin.block = ops_.forward.body->index();
  SlotValues inputs;
  for (const JointFetch& fetch : links_.forward.fetches) inputs.emplace_back("X", fetch.value);
  for (const Instruction& instruction : plan().instructions) {
    for (const ValueId output : instruction.outputs) {
      if (!output || plan()[output].storage != Storage::kScope) continue;
      if (!MetaOf(output).is_array) scope_values_at_end_[plan()[output].name] = output;
    }
  }
  const OpDef& def = inputs_.registry.Get("loop_boundary");
  lowering_.Append(MakeInstruction(&lowering_.plan(), def, origin, {}, inputs, {}));
  first_value_of_half_ = plan().values.size();
  forward_values_.emplace(plan());
  half_ = &links_.gradient;
}

void JointBody::LowerGradient() {
  const Block& block = *ops_.gradient.body;
  lowering_.EnterGradientBlock(block);
  TieArrays();
  form_.AddSeeds(this);
  ForEachOp(block, [&](size_t i) { AddGradientOp(block, i); });
  form_.AddGradients(this);
}

// The gradient block declares the gradients of arrays outside, and the op says which they are.
void JointBody::TieArrays() {
  const auto tie = [&](const std::vector<std::string>& inner,
                       const std::vector<std::string>& outer) {
    for (size_t i = 0; i < std::min(inner.size(), outer.size()); ++i) {
      const bool is_given = inner[i] != kEmptyVarName && outer[i] != kEmptyVarName;
      if (is_given && IsArray(inner[i])) lowering_.TieArray(inner[i], outer[i]);
    }
  };
  const Op& op = *ops_.gradient.op;
  tie(InnerResultGradients(ops_), op.Input(GradientSlot(ops_.slots.results)));
  std::vector<std::string> inner;
  for (const std::string& x : op.Input(ops_.slots.captured)) inner.push_back(GradName(x));
  tie(inner, op.Output(GradientSlot(ops_.slots.captured)));
}

// A gradient op reads what its forward op has read and written, even if the forward block has
// written other values to the same names before or after. (PaddlePaddle's gradient blocks find one
// of them, and not always the right one.)
void JointBody::AddGradientOp(const Block& block, size_t position) {
  std::map<std::string, ValueId> seen;
  const std::map<std::string, ValueId> of_forward = forward_values_->Of(block, position);
  for (const auto& [name, value] : of_forward) {
    const ValueId current = lowering_.Current(name);
    if (!current || current == value) continue;
    seen.emplace(name, current);
    lowering_.SetCurrent(name, value);
  }
  const size_t first = plan().instructions.size();
  lowering_.AddOp(*block.ops()[position], position);
  for (size_t i = first; i < plan().instructions.size(); ++i) {
    CheckScopeReads(plan().instructions[i]);
  }
  for (const auto& [name, value] : seen) {
    // Else the op has written it.
    if (lowering_.Current(name) == of_forward.at(name)) lowering_.SetCurrent(name, value);
  }
}

// A variable of the scope has one storage: when the gradient half runs, it holds what the last
// iteration has left.
void JointBody::CheckScopeReads(const Instruction& gradient) const {
  for (size_t i = 0; i < gradient.inputs.size(); ++i) {
    const ValueId input = gradient.inputs[i];
    if (!input || !gradient.reads_data[i]) continue;
    const std::string& name = plan()[input].name;
    const auto end = scope_values_at_end_.find(name);
    if (plan()[input].storage != Storage::kScope || end == scope_values_at_end_.end()) continue;
    SKIFF_ENFORCE(form_.RunsAtMostOnce() && input == end->second, kUnimplemented, gradient.op->type,
                  ": reads \"", name,
                  "\", a variable of the scope that the block overwrites: expected that the block "
                  "writes another variable");
  }
}

// ---- passes

void JointBody::RunPasses() {
  Plan& plan = lowering_.plan();
  const auto halves = {&links_.forward, &links_.gradient};
  for (const HalfLinks* half : halves) {
    for (const JointFeed& feed : half->feeds) plan.feeds.push_back(feed.value);
    for (const JointFetch& fetch : half->fetches) plan.fetches.push_back(fetch.value);
  }
  // Passes ask for the kernels of the place.
  if (!plan.place.is_cpu()) {
    Plan tried = plan;
    if (!PlaceValues(&tried)) MoveBodyToCpu(&plan);
  }
  if (inputs_.body_passes) inputs_.body_passes(&plan);
  // Passes may have replaced fetches by equal values.
  auto fetched = plan.fetches.begin();
  for (HalfLinks* half : halves) {
    for (JointFetch& fetch : half->fetches) fetch.value = *fetched++;
  }
  if (!plan.place.is_cpu() && !PlaceValues(&plan)) MoveBodyToCpu(&plan);
}

// Returns whether the body can run on the device.
bool JointBody::PlaceValues(Plan* plan) const {
  std::vector<std::pair<ValueId, ValueId>> carried;
  for (const HalfLinks* half : {&links_.forward, &links_.gradient}) {
    for (const JointFetch& fetch : half->fetches) {
      if (fetch.kind != LoopFetch::Kind::kCarried) continue;
      carried.emplace_back(fetch.value, half->feeds[static_cast<size_t>(fetch.feed)].value);
    }
  }
  return PlaceBody(inputs_.registry, links_.condition, carried, plan);
}

}  // namespace skiff
