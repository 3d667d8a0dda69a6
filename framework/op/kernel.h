// Kernels: the code that runs an op on a kind of place, for a dtype and some layouts.
//
// A plan owns its kernels. The plan prepares each kernel once, when every shape is known: the
// factory parses attributes, makes descriptors and primitives, and requests workspace. Bind may
// look up the addresses of the arguments. Run then only follows pointers; it must not allocate. One
// thread at a time uses a kernel.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "framework/base/cpu_features.h"
#include "framework/base/error.h"
#include "framework/base/static_text.h"
#include "framework/op/data_fault.h"
#include "framework/op/math_mode.h"
#include "framework/op/op_context.h"
#include "framework/tensor/device_context.h"
#include "framework/tensor/philox.h"
#include "framework/tensor/tensor.h"

namespace skiff {

class Communicator;

// The arguments of a prepared kernel. Indices are those of OpContext::InputIndex and OutputIndex.
class KernelContext {
 public:
  const Tensor& input(int index) const { return *inputs[static_cast<size_t>(index)]; }
  Tensor& output(int index) const { return *outputs[static_cast<size_t>(index)]; }
  // Returns the workspace that the factory requested under this index. Its contents are undefined.
  void* workspace(int index) const { return workspaces[static_cast<size_t>(index)]; }
  // Returns the derived form that the factory requested under this index, up to date.
  const void* derived(int index) const { return derived_forms[static_cast<size_t>(index)]; }
  const DeviceContext& device() const { return *device_context; }
  RandomKey random_key() const { return {*seed, op_id, *step, device_step}; }

  // The executor fills these in. An absent argument is nullptr.
  std::vector<Tensor*> inputs;
  std::vector<Tensor*> outputs;
  std::vector<void*> workspaces;
  std::vector<void*> derived_forms;
  const DeviceContext* device_context = nullptr;
  const uint64_t* seed = nullptr;
  const uint64_t* step = nullptr;
  const uint64_t* device_step = nullptr;  // RandomKey::device_step
  uint64_t op_id = 0;
  // Of the place of the kernel, for the kernels of collective ops. nullptr: there is one rank.
  Communicator* communicator = nullptr;
  // On a device, in its memory: where the kernel notes the first element that it refuses
  // (DataFaultWord). Holds kNoDataFault before each run.
  uint64_t* fault = nullptr;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  // Called before the first Run, and again before a Run if the address of an argument or workspace
  // has changed. It must not read the data at these addresses.
  virtual void Bind(const KernelContext&) {}
  // On a device, it only puts work into the stream, which a graph may repeat for other data at the
  // same addresses.
  // A kernel that refuses data throws an Error. On a device it can't: it notes the first element
  // that it refuses, computes anything for it, and the executor calls ThrowFault later.
  virtual void Run(const KernelContext& context) = 0;
  // Throws the Error for an element that Run, on a device, has refused.
  [[noreturn]] virtual void ThrowFault(const DataFault& fault) const {
    Throw(ErrorCode::kOutOfRange, "the value ", fault.value, " at position ", fault.position,
          " was refused");
  }
  // Returns whether Run takes the rows (dim 0) of the arguments from the tensors, so that a kernel
  // prepared for many rows also runs on fewer rows, in the same workspaces. Otherwise the executor
  // prepares another kernel for other rows.
  virtual bool AcceptsFewerRows() const { return false; }
};

// Return a Kernel whose Run calls `function`: MakeKernel for exactly the rows that the kernel was
// prepared for, the other for fewer rows, too.
template <typename Function>
std::unique_ptr<Kernel> MakeKernel(Function function) {
  class FunctionKernel final : public Kernel {
   public:
    explicit FunctionKernel(Function function) : function_(std::move(function)) {}
    void Run(const KernelContext& context) override { function_(context); }

   private:
    Function function_;
  };
  return std::make_unique<FunctionKernel>(std::move(function));
}
template <typename Function>
std::unique_ptr<Kernel> MakeRowsKernel(Function function) {
  class RowsKernel final : public Kernel {
   public:
    explicit RowsKernel(Function function) : function_(std::move(function)) {}
    void Run(const KernelContext& context) override { function_(context); }
    bool AcceptsFewerRows() const override { return true; }

   private:
    Function function_;
  };
  return std::make_unique<RowsKernel>(std::move(function));
}

// A derived form: the data of some inputs in another form, such as blocked, prepacked, transformed
// or folded weights.
struct DerivedForm {
  std::vector<int> inputs;  // indices of the inputs that it is computed from
  int64_t bytes = 0;
  // Writes `derived`. May read these inputs of the run, but no others and no workspace.
  std::function<void(const KernelContext& run, void* derived)> refresh;
};

// The context of a factory: the op with every shape known, and functions to request memory.
class PrepareContext : public OpContext {
 public:
  using OpContext::OpContext;

  // Whether runs may have fewer rows (dim 0) than these arguments, whose rows are a capacity:
  // anything prepared for exactly these rows would hardly ever be used.
  bool rows_vary() const { return rows_vary_; }
  void set_rows_vary(bool rows_vary) { rows_vary_ = rows_vary; }

  // How products and convolutions of float32 compute on a device.
  MathMode math() const { return math_; }
  void set_math(MathMode math) { math_ = math; }

  // Returns whether the op runs in a loop and the input has the same data in all iterations, so
  // that a derived form of the input is made only once for all iterations.
  bool IsConstant(int input) const {
    const auto index = static_cast<size_t>(input);
    return index < constant_inputs_.size() && constant_inputs_[index];
  }
  void set_constant_inputs(std::vector<bool> constant) { constant_inputs_ = std::move(constant); }

  // Requests scratch memory for each Run, 64-byte aligned. Returns its index for
  // KernelContext::workspace.
  int RequestWorkspace(int64_t bytes) {
    workspace_bytes_.push_back(bytes);
    return static_cast<int>(workspace_bytes_.size()) - 1;
  }
  // Requests a derived form. Returns its index for KernelContext::derived. The plan keeps the form
  // across runs, and refreshes the form after an input has changed; a loop keeps the form across
  // iterations. If an input isn't persistable, or the plan writes it, every run refreshes the form,
  // which then lives only while the kernel runs.
  int RequestDerivedForm(DerivedForm form) {
    derived_forms_.push_back(std::move(form));
    return static_cast<int>(derived_forms_.size()) - 1;
  }
  const std::vector<int64_t>& workspace_bytes() const { return workspace_bytes_; }
  const std::vector<DerivedForm>& derived_forms() const { return derived_forms_; }

 private:
  bool rows_vary_ = false;
  MathMode math_ = MathMode::kFull;
  std::vector<bool> constant_inputs_;
  std::vector<int64_t> workspace_bytes_;
  std::vector<DerivedForm> derived_forms_;
};

using KernelFactory = std::function<std::unique_ptr<Kernel>(PrepareContext&)>;

namespace internal {

struct KernelDef {
  StaticText name = "plain";  // names the candidate: "plain", "onednn", "winograd", …
  PlaceKind place = PlaceKind::kCpu;
  DType dtype = DType::kFloat32;
  KernelFactory prepare;
  // Returns whether the candidate can run on these shapes and layouts. If empty, it runs if every
  // layout is plain; a kernel for selected rows always runs.
  std::function<bool(const OpContext&)> accepts;
  // Returns whether the candidate is a good choice for shapes that it accepts; if not, it runs only
  // when requested by name. Empty: always.
  std::function<bool(const OpContext&)> is_worthwhile;
  // Of the candidates that accept and pay, the one with the highest priority runs; of equals, the
  // one registered first.
  int priority = 0;
  // Whether this kernel runs exactly where an argument is selected rows. No other kernel receives
  // any.
  bool selected_rows = false;
  // The least instruction set with which the kernel runs (UsedInstructionSet).
  InstructionSet needs = InstructionSet::kBaseline;
  // Whether this kernel's purpose is correctness for every dtype and attribute, not speed. A tuner
  // times a reference only if the reference would run anyway.
  bool is_reference = false;
};

}  // namespace internal
using internal::KernelDef;

}  // namespace skiff
