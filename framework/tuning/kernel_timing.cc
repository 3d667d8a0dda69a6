#include "framework/tuning/kernel_timing.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "framework/ir/op_role.h"
#include "framework/tensor/layout_copy.h"
#include "framework/tensor/philox.h"
#include "memory/allocator.h"
#include "memory/places.h"

namespace skiff {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kBudgetSeconds = 0.3;
constexpr int kMaxRounds = 20;
constexpr uint64_t kZero = 0;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

template <typename T>
void FillRandom(uint64_t stream, Tensor* tensor) {
  const Philox philox({0, stream, 0});
  const auto values = tensor->values<T>();
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<T>(0.5f + UnitFloat(philox.At(i)[0]));
  }
}

Tensor RandomTensor(const TensorMeta& meta, uint64_t stream) {
  Tensor plain(meta.shape, meta.dtype);
  // Integers are ids or counts, of which 0 is always legal.
  std::memset(plain.raw_data(), 0, static_cast<size_t>(plain.byte_count()));
  if (meta.dtype == DType::kFloat32) FillRandom<float>(stream, &plain);
  if (meta.dtype == DType::kFloat64) FillRandom<double>(stream, &plain);
  if (meta.layout.is_plain()) return plain;
  // Not filled directly: the padding of a blocked tensor is zero.
  Tensor blocked(meta.shape, meta.dtype, Place::Cpu(), meta.layout);
  CopyBetweenLayouts(plain, &blocked);
  return blocked;
}

// The tensors of an op, which its candidates share.
class Arguments {
 public:
  explicit Arguments(const OpContext& context) {
    MakeTensors(InputOrder(context.def(), context.op()), context.inputs(), &inputs_);
    MakeTensors(OutputOrder(context.def(), context.op()), context.outputs(), &outputs_);
  }

  std::vector<Tensor*> inputs() { return Pointers(&inputs_); }
  std::vector<Tensor*> outputs() { return Pointers(&outputs_); }

 private:
  static void MakeTensors(const std::vector<std::string>& names, std::span<const TensorMeta> metas,
                          std::vector<Tensor>* tensors) {
    for (size_t i = 0; i < names.size(); ++i) {
      tensors->push_back(names[i] == kEmptyVarName ? Tensor() : RandomTensor(metas[i], i));
    }
  }
  static std::vector<Tensor*> Pointers(std::vector<Tensor>* tensors) {
    std::vector<Tensor*> pointers;
    for (Tensor& tensor : *tensors) pointers.push_back(tensor.has_data() ? &tensor : nullptr);
    return pointers;
  }

  std::vector<Tensor> inputs_;
  std::vector<Tensor> outputs_;
};

// A candidate with all that it needs to run.
class PreparedCandidate {
 public:
  PreparedCandidate(const TuningRequest& request, const KernelDef& def, Arguments* arguments)
      : device_{request.context.place(), nullptr} {
    const OpContext& op = request.context;
    PrepareContext prepare(op.op(), op.def(), {op.inputs().begin(), op.inputs().end()},
                           {op.outputs().begin(), op.outputs().end()}, op.place());
    kernel_ = def.prepare(prepare);
    context_.inputs = arguments->inputs();
    context_.outputs = arguments->outputs();
    for (int64_t bytes : prepare.workspace_bytes()) context_.workspaces.push_back(Allocate(bytes));
    for (const DerivedForm& form : prepare.derived_forms()) {
      context_.derived_forms.push_back(Allocate(form.bytes));
      Derived derived{form.refresh, context_.derived_forms.back()};
      derived.refresh(context_, derived.data);
      const bool is_kept = std::ranges::all_of(
          form.inputs, [&](int input) { return request.is_constant[static_cast<size_t>(input)]; });
      if (!is_kept) refreshed_.push_back(std::move(derived));
    }
    context_.device_context = &device_;
    context_.seed = &kZero;
    context_.step = &kZero;
    kernel_->Bind(context_);
  }
  // The context points to the device.
  PreparedCandidate(const PreparedCandidate&) = delete;
  PreparedCandidate& operator=(const PreparedCandidate&) = delete;

  // Derived forms that change in every step cost time in every step, so they count.
  double SecondsOfRun() {
    const Clock::time_point start = Clock::now();
    for (const Derived& derived : refreshed_) derived.refresh(context_, derived.data);
    kernel_->Run(context_);
    return SecondsSince(start);
  }

 private:
  struct Derived {
    std::function<void(const KernelContext&, void*)> refresh;
    void* data;
  };

  void* Allocate(int64_t bytes) {
    buffers_.push_back(std::make_unique<Buffer>(AllocatorOf(device_.place), bytes));
    return buffers_.back()->data();
  }

  DeviceContext device_;
  std::unique_ptr<Kernel> kernel_;
  KernelContext context_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<Derived> refreshed_;  // before each run
};

}  // namespace

std::vector<double> TimeKernels(const TuningRequest& request,
                                const std::vector<const KernelDef*>& candidates) {
  Arguments arguments(request.context);
  std::vector<std::unique_ptr<PreparedCandidate>> prepared;
  for (const KernelDef* def : candidates) {
    prepared.push_back(std::make_unique<PreparedCandidate>(request, *def, &arguments));
  }
  const Clock::time_point start = Clock::now();
  // The first runs pay for pages that are touched first.
  for (const auto& candidate : prepared) candidate->SecondsOfRun();
  std::vector<double> seconds(prepared.size(), std::numeric_limits<double>::infinity());
  for (int round = 0; round < kMaxRounds; ++round) {
    if (round > 0 && SecondsSince(start) > kBudgetSeconds) break;
    // In turn, and not one candidate after the other: whatever slows the machine for a while then
    // slows all candidates.
    for (size_t i = 0; i < prepared.size(); ++i) {
      // The minimum, since disturbances only add time.
      seconds[i] = std::min(seconds[i], prepared[i]->SecondsOfRun());
    }
  }
  return seconds;
}

}  // namespace skiff
