// The table of operators and their kernels.
//
// Filled by plain calls (no static initialisers): each op's file defines Register<Op>(OpRegistry&).
// Not thread-safe while it is being filled; reading is.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/op/kernel.h"
#include "framework/op/op_def.h"

namespace skiff {

class OpRegistry {
 public:
  OpRegistry() = default;
  OpRegistry(const OpRegistry&) = delete;
  OpRegistry& operator=(const OpRegistry&) = delete;

  // Error (kAlreadyExists) for a type that is there, kInvalidArgument for a definition without a
  // shape rule or documentation, or with neither a gradient nor a reason for none.
  void Add(OpDef def);
  // The op must have been added. Error for a candidate that is there.
  void AddKernel(std::string_view type, KernelDef kernel);
  // One kernel a type of Ts, the reference for others of the op: `prepare` is called as
  // prepare.template operator()<T>(context).
  template <typename... Ts, typename Prepare>
  void AddCpuKernels(std::string_view type, Prepare prepare, std::string name = "plain") {
    (AddKernel(type, KernelDef{.name = name,
                               .place = PlaceKind::kCpu,
                               .dtype = kDTypeOf<Ts>,
                               .prepare =
                                   [prepare](PrepareContext& context) {
                                     return prepare.template operator()<Ts>(context);
                                   },
                               .accepts = {},
                               .is_reference = true}),
     ...);
  }

  // The same, called "selected_rows", for where an argument is selected rows.
  template <typename... Ts, typename Prepare>
  void AddSelectedRowsKernels(std::string_view type, Prepare prepare) {
    (AddKernel(type, KernelDef{.name = "selected_rows",
                               .place = PlaceKind::kCpu,
                               .dtype = kDTypeOf<Ts>,
                               .prepare =
                                   [prepare](PrepareContext& context) {
                                     return prepare.template operator()<Ts>(context);
                                   },
                               .accepts = {},
                               .selected_rows = true,
                               .is_reference = true}),
     ...);
  }

  // nullptr if there is none.
  const OpDef* Find(std::string_view type) const;
  // Error (kNotFound) if there is none, with the nearest names.
  const OpDef& Get(std::string_view type) const;
  const std::vector<KernelDef>& Kernels(std::string_view type) const;
  // All types in ascending order.
  std::vector<std::string> Types() const;

  // The dtype that chooses the op's kernel.
  static DType KernelDType(const OpContext& context);
  // The kernel for the context's place, dtype, shapes and layouts. `forced` names a candidate;
  // empty: by priority, of those that pay. nullptr if none fits.
  const KernelDef* FindKernel(const OpContext& context, std::string_view forced = {}) const;
  // FindKernel, with an Error that lists the candidates if none fits.
  const KernelDef& SelectKernel(const OpContext& context, std::string_view forced = {}) const;
  // All that accept the context's place, dtype, shapes and layouts, whether they pay or not, in the
  // order in which they were registered.
  std::vector<const KernelDef*> AcceptingKernels(const OpContext& context) const;

  // A library that kernels call, with its version and the instruction set that it uses here: what
  // the times of kernels depend on besides the processor.
  void SetLibrary(const std::string& name, std::string version);
  const std::map<std::string, std::string>& libraries() const { return libraries_; }

 private:
  struct Entry {
    OpDef def;
    std::vector<KernelDef> kernels;
  };
  const Entry* FindEntry(std::string_view type) const;

  std::map<std::string, Entry, std::less<>> entries_;
  std::map<std::string, std::string> libraries_;
};

// The registry that holds every operator of Skiff. Defined in //operators:default_registry; made at
// the first call, never destroyed. Users add their own ops to it before they build programs.
OpRegistry& DefaultOpRegistry();

// Whether all tensors are plain whose data the op reads or writes.
bool AllPlain(const OpContext& context);

// Runs the shape rule of an op of a block and writes shapes, dtypes and LoD levels to the output
// variables; output variables that don't exist are created. Checks the op first. Error naming op
// and creation site.
void InferOp(const OpRegistry& registry, Block* block, Op* op);

}  // namespace skiff
