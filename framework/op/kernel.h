// Kernels: the code that runs an op for one place, dtype and layout.
//
// A kernel is prepared once per plan, when every shape is known: the factory parses attributes,
// makes descriptors and primitives, and asks for workspace. Bind may gather where the arguments
// lie. Run then only reads pointers; it must not allocate.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_context.h"
#include "framework/tensor/device_context.h"
#include "framework/tensor/philox.h"
#include "framework/tensor/tensor.h"

namespace skiff {

// The arguments of a prepared kernel. Indices are those of OpContext::InputIndex/OutputIndex.
class KernelContext {
 public:
  const Tensor& input(int index) const { return *inputs[static_cast<size_t>(index)]; }
  Tensor& output(int index) const { return *outputs[static_cast<size_t>(index)]; }
  // Workspace i as asked for in the factory; its contents are undefined.
  void* workspace(int index) const { return workspaces[static_cast<size_t>(index)]; }
  // Derived form i of an input, up to date.
  const void* derived(int index) const { return derived_forms[static_cast<size_t>(index)]; }
  const DeviceContext& device() const { return *device_context; }
  RandomKey random_key() const { return {*seed, op_id, *step}; }

  // Filled in by the executor. An absent argument is nullptr.
  std::vector<Tensor*> inputs;
  std::vector<Tensor*> outputs;
  std::vector<void*> workspaces;
  std::vector<void*> derived_forms;
  const DeviceContext* device_context = nullptr;
  const uint64_t* seed = nullptr;
  const uint64_t* step = nullptr;
  uint64_t op_id = 0;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  // Called before the first Run, and again before a Run for which the data of an argument or a
  // workspace lies elsewhere than it did. It must not read what lies there.
  virtual void Bind(const KernelContext&) {}
  virtual void Run(const KernelContext& context) = 0;
};

// A Kernel that calls a function object.
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

// Another form of the data of some inputs (blocked, prepacked, transformed, folded weights).
struct DerivedForm {
  std::vector<int> inputs;  // indices of those that it is made of
  int64_t bytes = 0;
  // Fills `derived` from these inputs of the run; it may read no other ones and no workspace.
  std::function<void(const KernelContext& run, void* derived)> refresh;
};

// What a factory sees: the op with every shape known, and what it may ask for.
class PrepareContext : public OpContext {
 public:
  using OpContext::OpContext;

  // Scratch memory for each Run, 64-byte aligned. Returns its index for KernelContext::workspace.
  int RequestWorkspace(int64_t bytes) {
    workspace_bytes_.push_back(bytes);
    return static_cast<int>(workspace_bytes_.size()) - 1;
  }
  // A form that is kept across runs and refreshed when one of its inputs changed. If one is no
  // persistable, or the plan writes it, the form is refreshed in every run and lives only while
  // the kernel runs. Returns its index for KernelContext::derived.
  int RequestDerivedForm(DerivedForm form) {
    derived_forms_.push_back(std::move(form));
    return static_cast<int>(derived_forms_.size()) - 1;
  }
  const std::vector<int64_t>& workspace_bytes() const { return workspace_bytes_; }
  const std::vector<DerivedForm>& derived_forms() const { return derived_forms_; }

 private:
  std::vector<int64_t> workspace_bytes_;
  std::vector<DerivedForm> derived_forms_;
};

using KernelFactory = std::function<std::unique_ptr<Kernel>(PrepareContext&)>;

struct KernelDef {
  std::string name = "plain";  // of the candidate: "plain", "onednn", "winograd", …
  PlaceKind place = PlaceKind::kCpu;
  DType dtype = DType::kFloat32;
  KernelFactory prepare;
  // Whether the candidate can run on these shapes and layouts. Empty: if every layout is plain, or
  // the kernel one for selected rows.
  std::function<bool(const OpContext&)> accepts;
  // Whether the candidate is worth taking for shapes that it accepts; if not, it runs only where
  // it is asked for by name. Empty: always.
  std::function<bool(const OpContext&)> pays;
  // Of the candidates that accept and pay, the highest runs; ties go to the one registered first.
  int priority = 0;
  // Whether it runs where an argument is selected rows, and nowhere else. No other kernel sees any.
  bool selected_rows = false;
  // Whether it is there to be right for every dtype and attribute rather than fast. A tuner times
  // it only where it is what would run anyway.
  bool is_reference = false;
};

}  // namespace skiff
