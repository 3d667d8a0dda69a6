#include "framework/op/evaluation.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/op/half_arguments.h"
#include "framework/op/infer_outputs.h"
#include "memory/allocator.h"

namespace skiff {
namespace {

// A list of dims or indices has a few. More would be data, which a plan shouldn't hold twice.
constexpr int64_t kMostElements = 4096;
// That much of any dtype, and what a kernel takes besides. How much an op makes may depend on data.
constexpr int64_t kMostBufferBytes = int64_t{1} << 20;

bool IsSmallAndDense(const TensorMeta& meta) {
  return meta.lod_level == 0 && meta.layout.is_plain() && !meta.is_array &&
         (!meta.shape.is_known() || meta.shape.element_count() <= kMostElements);
}

// Calls use(slot, index) for each argument that is present, in the order of the definition.
template <typename Use>
void ForEachArgument(const Op& op, const std::vector<SlotDef>& slots,
                     const std::vector<std::string>& (Op::*arguments)(std::string_view) const,
                     const Use& use) {
  size_t index = 0;
  for (const SlotDef& slot : slots) {
    for (const std::string& name : (op.*arguments)(slot.name)) {
      if (name != kEmptyVarName) use(slot, index);
      ++index;
    }
  }
}

TensorMeta WithoutLoD(TensorMeta meta) {
  meta.lod_level = 0;
  meta.lod = nullptr;
  return meta;
}

// Returns whether the op reads a LoD: it refuses inputs that have none.
bool ReadsLoD(const OpContext& context) {
  const auto has_lod = [](const TensorMeta& meta) { return meta.lod_level > 0; };
  if (std::ranges::none_of(context.inputs(), has_lod)) return false;
  std::vector<TensorMeta> metas;
  for (const TensorMeta& meta : context.inputs()) metas.push_back(WithoutLoD(meta));
  OpContext without(context.op(), context.def(), std::move(metas),
                    std::vector<TensorMeta>(context.outputs().size()), context.place());
  try {
    InferOutputs(&without);
    return false;
  } catch (const Error&) {
    return true;
  }
}

// Memory for a run.
class Scratch {
 public:
  void* New(int64_t bytes) {
    return tensors_.emplace_back(Shape({std::max<int64_t>(bytes, 1)}), DType::kUint8).raw_data();
  }

 private:
  std::deque<Tensor> tensors_;
};

}  // namespace

bool MayEvaluate(const OpContext& context) {
  const OpDef& def = context.def();
  // Half has kernels only where a plan widens it, and gives no attributes.
  bool may = !HalfOfArguments(context) && !def.random && !def.has_side_effect && !def.collective &&
             def.block == nullptr && !def.sets_rows;
  ForEachArgument(context.op(), def.inputs, &Op::Input, [&](const SlotDef& slot, size_t i) {
    const TensorMeta& meta = context.inputs()[i];
    may = may && (slot.shape_only ? !meta.is_array : IsSmallAndDense(meta));
  });
  ForEachArgument(context.op(), def.outputs, &Op::Output, [&](const SlotDef&, size_t i) {
    may = may && IsSmallAndDense(context.outputs()[i]);
  });
  return may && !ReadsLoD(context);
}

std::vector<std::shared_ptr<const Tensor>> Evaluate(const OpRegistry& registry,
                                                    const OpContext& context) {
  const BufferLimit limit(kMostBufferBytes);
  const OpDef& def = context.def();
  std::vector<TensorMeta> metas(context.inputs().begin(), context.inputs().end());
  std::deque<Tensor> inputs(metas.size());
  std::deque<Tensor> outputs(context.outputs().size());
  Scratch scratch;
  KernelContext run;
  run.inputs.resize(inputs.size());
  run.outputs.resize(outputs.size());
  ForEachArgument(context.op(), def.inputs, &Op::Input, [&](const SlotDef& slot, size_t i) {
    // Equal counts may be those of other LoDs in another run.
    metas[i] = WithoutLoD(metas[i]);
    metas[i].layout = {};
    // No kernel may write into an input, so it may share the contents.
    if (metas[i].contents != nullptr && !slot.shape_only) inputs[i] = *metas[i].contents;
    run.inputs[i] = &inputs[i];
  });
  ForEachArgument(context.op(), def.outputs, &Op::Output, [&](const SlotDef&, size_t i) {
    const TensorMeta& meta = context.outputs()[i];
    // A kernel whose output has a shape that depends on data makes the tensor itself.
    if (meta.shape.is_known()) outputs[i] = Tensor(meta.shape, meta.dtype);
    run.outputs[i] = &outputs[i];
  });
  PrepareContext prepare(context.op(), def, std::move(metas),
                         {context.outputs().begin(), context.outputs().end()});
  const std::unique_ptr<Kernel> kernel = registry.SelectKernel(prepare).prepare(prepare);
  for (const int64_t bytes : prepare.workspace_bytes()) {
    run.workspaces.push_back(scratch.New(bytes));
  }
  const DeviceContext device;
  const uint64_t zero = 0;
  run.device_context = &device;
  run.seed = &zero;
  run.step = &zero;
  for (const DerivedForm& form : prepare.derived_forms()) {
    run.derived_forms.push_back(scratch.New(form.bytes));
    form.refresh(run, run.derived_forms.back());
  }
  kernel->Bind(run);
  kernel->Run(run);
  std::vector<std::shared_ptr<const Tensor>> made(outputs.size());
  ForEachArgument(context.op(), def.outputs, &Op::Output, [&](const SlotDef& slot, size_t i) {
    SKIFF_ENFORCE(outputs[i].element_count() <= kMostElements, kUnimplemented, def.type,
                  ": output \"", slot.name, "\" has the shape ", outputs[i].shape(),
                  ": expected at most ", kMostElements, " elements where a plan must know them");
    made[i] = std::make_shared<const Tensor>(std::move(outputs[i]));
  });
  return made;
}

}  // namespace skiff
