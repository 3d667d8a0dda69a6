// Forms of inputs that kernels request: prepacked weights, for example.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "framework/executor/run/plan_kernels.h"
#include "framework/op/kernel.h"
#include "framework/plan/plan.h"
#include "framework/tensor/scope.h"
#include "memory/allocator.h"

namespace skiff {

// The derived forms of one instruction. A form whose inputs may change in every run is a workspace
// of the instruction and made in every run. Any other form has storage of its own and is made when
// a source variable has changed, also through another variable in the same memory (SharedWrites). A
// form of a loop lies in the loop's workspace and is made in each run of the loop.
class DerivedForms {
 public:
  // Takes storage for the forms that are kept, and adds all forms to `context`, which must have its
  // workspaces. Throws an Error (kResourceExhausted) if there is no memory. The scope must outlive
  // the forms.
  DerivedForms(const Plan& plan, const Instruction& instruction,
               std::vector<DerivedRequest> requests, Scope* scope, KernelContext* context);

  // Takes the workspaces from `context` again, since they have moved, and updates it.
  void FollowWorkspaces(KernelContext* context);
  // Returns the bytes of the forms of a loop.
  static int64_t BytesOfLoop(const std::vector<DerivedRequest>& requests);
  // Puts the forms of a loop at `memory`, which has BytesOfLoop bytes, and updates `context`.
  // Refresh makes the forms.
  void PlaceInLoop(char* memory, KernelContext* context);

  // Makes the forms that aren't up to date. `context`: the constructor's.
  void Refresh(const KernelContext& context);

  // Returns the bytes of the storage that forms keep from run to run.
  int64_t kept_bytes() const;

 private:
  struct Form {
    std::vector<const uint64_t*> source_versions;  // of a form that is kept
    uint64_t version = 0;        // sum of source_versions when made: versions only grow
    uint64_t shared_writes = 0;  // SharedWrites then
    bool is_made = false;
    std::function<void(const KernelContext&, void*)> refresh;
    int workspace = -1;               // -1: in `storage`, or of a loop
    std::shared_ptr<Buffer> storage;  // nullptr: in a workspace, or of a loop
    int64_t loop_bytes = 0;           // of a form of a loop
    void* data = nullptr;
  };

  std::vector<Form> forms_;
};

}  // namespace skiff
