#include "framework/op/registry.h"

#include <algorithm>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/within_memory.h"
#include "framework/ir/op_role.h"
#include "framework/op/half_arguments.h"
#include "framework/op/infer_outputs.h"
#include "framework/op/no_work.h"
#include "framework/op/var_meta.h"

namespace skiff {
namespace {

// Returns the Levenshtein distance, for suggestions in messages. One row of the table suffices;
// `diagonal` keeps the element that the row has just overwritten.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replace, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

TensorMeta MetaOf(const Block& block, const std::string& name, const Op& op) {
  if (name == kEmptyVarName) return {};
  const Var* var = block.FindVar(name);
  SKIFF_ENFORCE(var != nullptr, kNotFound, op.type, ": variable \"", name, "\" does not exist");
  return skiff::MetaOf(*var);
}

// Throws Error if an input gives an attribute that isn't known: the op's own doesn't count then.
void CheckAttributesAreKnown(const OpContext& context) {
  for (const SlotDef& slot : context.def().inputs) {
    SKIFF_ENFORCE(slot.attribute.empty() || context.Knows(slot.attribute), kFailedPrecondition,
                  context.op().type, ": input \"", slot.name, "\" gives the attribute \"",
                  slot.attribute,
                  "\": expected numbers that are known when the kernel is prepared");
  }
}

// Returns a factory that does the same, except that for an op without work it makes a kernel that
// does nothing, and that it throws an Error for attributes that aren't known and for tables that
// memory doesn't hold. Wrapping each factory at registration saves every kernel a check for these.
KernelFactory PreparedIfThereIsWork(KernelFactory prepare) {
  return [prepare = std::move(prepare)](PrepareContext& context) -> std::unique_ptr<Kernel> {
    CheckAttributesAreKnown(context);
    if (HasNoWork(context)) return MakeKernel([](const KernelContext&) {});
    return WithinMemory([&] { return prepare(context); });
  };
}

}  // namespace

void OpRegistry::Add(const OpDef& def) { Add(OpDef(def)); }

void OpRegistry::Add(OpDef&& def) {
  SKIFF_ENFORCE(!def.type.empty() && !def.doc.empty() && def.infer != nullptr, kInvalidArgument,
                "op \"", def.type, "\": a definition needs a type, documentation and a shape rule");
  SKIFF_ENFORCE((def.grad != nullptr) != !def.no_gradient_reason.empty(), kInvalidArgument, "op \"",
                def.type, "\": expected a gradient rule or a reason why there is none");
  for (const SlotDef& slot : def.inputs) {
    SKIFF_ENFORCE(slot.attribute.empty() || def.FindAttr(slot.attribute) != nullptr,
                  kInvalidArgument, "op \"", def.type, "\": input \"", slot.name,
                  "\" gives the attribute \"", slot.attribute, "\", which the op doesn't have");
  }
  for (const auto& view : def.views) {
    // Where a pass doesn't share the storage, the kernel copies; where memory_reuse does, it must
    // cope with both in one place.
    SKIFF_ENFORCE(std::ranges::count(def.in_place, view) == 1, kInvalidArgument, "op \"", def.type,
                  "\": the view ", view.first, " -> ", view.second, " isn't among its in_place");
  }
  const std::string type = def.type;
  const bool added = entries_.emplace(type, Entry{std::move(def), {}}).second;
  SKIFF_ENFORCE(added, kAlreadyExists, "op \"", type, "\" is registered already");
}

const OpRegistry::Entry* OpRegistry::FindEntry(std::string_view type) const {
  const auto it = entries_.find(type);
  return it == entries_.end() ? nullptr : &it->second;
}

void OpRegistry::AddKernel(std::string_view type, const KernelDef& kernel) {
  AddKernel(type, KernelDef(kernel));
}

void OpRegistry::AddKernel(std::string_view type, KernelDef&& kernel) {
  const auto it = entries_.find(type);
  SKIFF_ENFORCE(it != entries_.end(), kNotFound, "kernel \"", kernel.name, "\" of op \"", type,
                "\": the op is not registered");
  for (const KernelDef& other : it->second.kernels) {
    SKIFF_ENFORCE(
        other.name != kernel.name || other.place != kernel.place || other.dtype != kernel.dtype,
        kAlreadyExists, "kernel \"", kernel.name, "\" of op \"", type, "\" for ", kernel.dtype,
        " is registered already");
  }
  kernel.prepare = PreparedIfThereIsWork(std::move(kernel.prepare));
  it->second.kernels.push_back(std::move(kernel));
}

void OpRegistry::AddReferenceKernel(std::string_view type, DType dtype, KernelFactory prepare,
                                    StaticText name) {
  AddKernel(type, {.name = name,
                   .dtype = dtype,
                   .prepare = std::move(prepare),
                   .accepts = {},
                   .is_worthwhile = {},
                   .is_reference = true});
}

void OpRegistry::AddNativeKernel(std::string_view type, DType dtype, KernelFactory prepare) {
  SKIFF_ENFORCE(dtype == DType::kBFloat16, kInvalidArgument, "op \"", type, "\": a kernel \"",
                kNativeHalfKernel, "\" for ", dtype, ", expected bfloat16");
  KernelDef kernel;
  kernel.name = kNativeHalfKernel;
  kernel.dtype = dtype;
  kernel.prepare = std::move(prepare);
  kernel.needs = InstructionSet::kAvx512Bf16;
  AddKernel(type, std::move(kernel));
}

void OpRegistry::AddSelectedRowsKernel(std::string_view type, PlaceKind place, DType dtype,
                                       KernelFactory prepare) {
  AddKernel(type, {.name = "selected_rows",
                   .place = place,
                   .dtype = dtype,
                   .prepare = std::move(prepare),
                   .accepts = {},
                   .is_worthwhile = {},
                   .selected_rows = true,
                   .is_reference = place == PlaceKind::kCpu});
}

const OpDef* OpRegistry::Find(std::string_view type) const {
  const Entry* entry = FindEntry(type);
  return entry == nullptr ? nullptr : &entry->def;
}

const OpDef& OpRegistry::Get(std::string_view type) const {
  const OpDef* def = Find(type);
  if (def != nullptr) return *def;
  std::vector<std::string> near;
  for (const std::string& name : Types()) {
    // Two typing errors.
    if (EditDistance(type, name) <= 2) near.push_back(StrCat("\"", name, "\""));
  }
  Throw(ErrorCode::kNotFound, "unknown op \"", type, "\"",
        near.empty() ? "" : StrCat("; did you mean ", Join(near, " or "), "?"));
}

const std::vector<KernelDef>& OpRegistry::Kernels(std::string_view type) const {
  Get(type);
  return FindEntry(type)->kernels;
}

std::vector<std::string> OpRegistry::Types() const {
  std::vector<std::string> types;
  types.reserve(entries_.size());
  for (const auto& [type, entry] : entries_) types.push_back(type);
  std::ranges::sort(types);
  return types;
}

namespace {

// Returns the dtype that the definition says selects the kernel.
DType DeclaredKernelDType(const OpContext& context) {
  const OpDef& def = context.def();
  const StaticText slot = def.kernel_dtype_slot;
  if (!slot.empty()) {
    return def.FindInput(slot) != nullptr ? context.Input(slot).dtype : context.Output(slot).dtype;
  }
  for (const SlotDef& input : def.inputs) {
    if (context.HasInput(input.name)) return context.Input(input.name).dtype;
  }
  for (const SlotDef& output : def.outputs) {
    if (context.HasOutput(output.name)) return context.Output(output.name).dtype;
  }
  return DType::kFloat32;
}

}  // namespace

DType OpRegistry::KernelDType(const OpContext& context) {
  if (const std::optional<DType> half = HalfOfArguments(context)) return *half;
  const DType dtype = DeclaredKernelDType(context);
  // Then the op reads only the shape of what is half.
  return IsHalf(dtype) && IsWidened(context) ? DType::kFloat32 : dtype;
}

bool AllPlain(const OpContext& context) {
  const auto plain = [](const TensorMeta& meta) { return meta.layout.is_plain(); };
  size_t index = 0;
  for (const SlotDef& slot : context.def().inputs) {
    for (size_t i = 0; i < context.InputCount(slot.name); ++i, ++index) {
      if (!slot.shape_only && !plain(context.inputs()[index])) return false;
    }
  }
  return std::all_of(context.outputs().begin(), context.outputs().end(), plain);
}

namespace {

bool HasSelectedRows(const OpContext& context) {
  return std::ranges::any_of(context.inputs(), &TensorMeta::is_selected_rows) ||
         std::ranges::any_of(context.outputs(), &TensorMeta::is_selected_rows);
}

bool Accepts(const KernelDef& kernel, const OpContext& context, DType dtype) {
  if (kernel.place != context.place().kind || kernel.dtype != dtype) return false;
  if (kernel.needs > UsedInstructionSet()) return false;
  if (IsHalf(dtype) && !HasDTypesOfHalfKernel(context)) return false;
  // Kernels for dense tensors would misread the rows, and those for selected rows expect some.
  if (kernel.selected_rows != HasSelectedRows(context)) return false;
  if (kernel.accepts) return kernel.accepts(context);
  return kernel.selected_rows || AllPlain(context);
}

}  // namespace

std::vector<const KernelDef*> OpRegistry::AcceptingKernels(const OpContext& context) const {
  const DType dtype = KernelDType(context);
  std::vector<const KernelDef*> accepting;
  for (const KernelDef& kernel : Kernels(context.op().type)) {
    if (Accepts(kernel, context, dtype)) accepting.push_back(&kernel);
  }
  return accepting;
}

void OpRegistry::SetLibrary(const std::string& name, std::string version) {
  libraries_[name] = std::move(version);
}

const KernelDef* OpRegistry::FindKernel(const OpContext& context, std::string_view forced) const {
  const DType dtype = KernelDType(context);
  const KernelDef* best = nullptr;
  for (const KernelDef& kernel : Kernels(context.op().type)) {
    if (!forced.empty() && kernel.name != forced) continue;
    if (!Accepts(kernel, context, dtype)) continue;
    // Who forces a kernel knows better than its estimate.
    if (forced.empty() && kernel.is_worthwhile && !kernel.is_worthwhile(context)) continue;
    // Strictly greater: of equals the one registered first.
    if (best == nullptr || kernel.priority > best->priority) best = &kernel;
  }
  return best;
}

bool OpRegistry::CanRun(const OpContext& context) const {
  return FindKernel(context) != nullptr || CanRunWidened(context);
}

bool OpRegistry::CanRunWidened(const OpContext& context) const {
  return HalfOfArguments(context) && FindKernel(Widened(context)) != nullptr;
}

const KernelDef& OpRegistry::SelectKernel(const OpContext& context, std::string_view forced) const {
  const KernelDef* kernel = FindKernel(context, forced);
  if (kernel != nullptr) return *kernel;
  std::vector<std::string> candidates;
  for (const KernelDef& other : Kernels(context.op().type)) {
    const bool needs_more = other.needs > UsedInstructionSet();
    candidates.push_back(StrCat(other.name, " (", other.place == PlaceKind::kCpu ? "cpu" : "cuda",
                                ", ", other.dtype, needs_more ? ", needs " : "",
                                needs_more ? InstructionSetName(other.needs) : "", ")"));
  }
  Throw(ErrorCode::kUnimplemented, context.op().type, ": no kernel ",
        forced.empty() ? "" : StrCat("\"", forced, "\" "), "for ", context.place(), ", ",
        KernelDType(context), " and these shapes and layouts; there are: ", Join(candidates, ", "));
}

namespace {

// Returns where the op is, for messages, or where it would be if it isn't in the block yet.
size_t PositionOf(const Block& block, const Op& op) {
  const auto& ops = block.ops();
  const auto found = std::ranges::find(ops, &op, [](const auto& owned) { return owned.get(); });
  return static_cast<size_t>(found - ops.begin());
}

// Creates the variables that the block lacks, and removes them again unless Keep is called.
class NewVars {
 public:
  NewVars(Block* block, const std::vector<std::string>& names) : block_(block) {
    for (const std::string& name : names) {
      if (name == kEmptyVarName || block->FindVar(name) != nullptr) continue;
      block->CreateVar({.name = name});
      created_.push_back(name);
    }
  }
  ~NewVars() {
    if (!created_.empty()) block_->RemoveVars(created_);
  }
  NewVars(const NewVars&) = delete;
  NewVars& operator=(const NewVars&) = delete;
  void Keep() { created_.clear(); }

 private:
  Block* block_;
  std::vector<std::string> created_;
};

}  // namespace

void InferOp(const OpRegistry& registry, Block* block, Op* op) {
  try {
    const OpDef& def = registry.Get(op->type);
    CheckOp(def, *op);
    std::vector<TensorMeta> inputs;
    for (const std::string& name : InputOrder(def, *op)) {
      inputs.push_back(MetaOf(*block, name, *op));
    }
    const std::vector<std::string> names = OutputOrder(def, *op);
    // The shape rule needs metas of all outputs. If it throws, the new variables disappear again.
    NewVars created(block, names);
    std::vector<TensorMeta> outputs;
    for (const std::string& name : names) outputs.push_back(MetaOf(*block, name, *op));
    OpContext context(*op, def, std::move(inputs), std::move(outputs));
    InferOutputs(&context);
    created.Keep();
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == kEmptyVarName) continue;
      SetMeta(context.outputs()[i], block->FindVar(names[i]));
    }
  } catch (const Error& error) {
    throw error.WithContext(DescribeOp(*op, block->index(), PositionOf(*block, *op)));
  }
}

}  // namespace skiff
