// The registry of operators and their kernels.
//
// Plain calls fill it, not static initialisers: the file of each op defines
// Register<Op>(OpRegistry&). The registry owns all definitions, whose addresses are stable. Filling
// it is not thread-safe; reading it is.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "framework/op/api/default_registry.h"
#include "framework/op/arguments.h"
#include "framework/op/kernel.h"
#include "framework/op/op_def.h"

namespace skiff {

// The name of kernels for half that don't have the bits of the float32 kernel, rounded once: they
// may add in another order, and take denormal numbers as zeros.
inline constexpr StaticText kNativeHalfKernel = "bf16";
// Force this name on an op (CompileOptions::kernels), and the op runs on half by its float32
// kernel, between casts.
inline constexpr std::string_view kWidened = "widened";

class OpRegistry {
 public:
  OpRegistry() = default;
  OpRegistry(const OpRegistry&) = delete;
  OpRegistry& operator=(const OpRegistry&) = delete;

  // Add an op. Throw Error (kAlreadyExists) if the type exists, and (kInvalidArgument) if the
  // definition lacks a shape rule or documentation, or has neither a gradient nor a reason for
  // having none.
  void Add(OpDef&& def);
  void Add(const OpDef& def);
  // Add a kernel of an op that has been added. Throw Error if the op has a kernel of this name,
  // place and dtype.
  void AddKernel(std::string_view type, KernelDef&& kernel);
  void AddKernel(std::string_view type, const KernelDef& kernel);
  // Adds one CPU kernel for each of Ts as the op's reference. The factory is prepare.template
  // operator()<T>(context).
  template <typename... Ts, typename Prepare>
  void AddCpuKernels(std::string_view type, Prepare prepare, StaticText name = "plain") {
    (AddReferenceKernel(type, kDTypeOf<Ts>, FactoryFor<Ts>(prepare), name), ...);
  }

  // Adds the CPU kernel kNativeHalfKernel, which multiplies by the processor's instructions for
  // bfloat16. T is BFloat16.
  template <typename T, typename Prepare>
  void AddNativeKernel(std::string_view type, Prepare prepare) {
    AddNativeKernel(type, kDTypeOf<T>, FactoryFor<T>(prepare));
  }

  // The same for kernels on selected rows, of any place, under the name "selected_rows". Those of
  // the CPU are the reference.
  template <typename... Ts, typename Prepare>
  void AddSelectedRowsKernels(std::string_view type, Prepare prepare,
                              PlaceKind place = PlaceKind::kCpu) {
    (AddSelectedRowsKernel(type, place, kDTypeOf<Ts>, FactoryFor<Ts>(prepare)), ...);
  }

  // Adds the kernel "cuda" of one dtype. `accepts` is KernelDef's: an empty one accepts plain
  // layouts. (cuda_for_each.cuh has AddCudaKernels for several dtypes.)
  void AddCudaKernel(std::string_view type, DType dtype, KernelFactory prepare,
                     std::function<bool(const OpContext&)> accepts = {}) {
    KernelDef kernel;
    kernel.name = "cuda";
    kernel.place = PlaceKind::kCuda;
    kernel.dtype = dtype;
    kernel.prepare = std::move(prepare);
    kernel.accepts = std::move(accepts);
    AddKernel(type, std::move(kernel));
  }

  // Returns nullptr if there is none.
  const OpDef* Find(std::string_view type) const;
  // Throw Error (kNotFound), with the nearest names, if there is no such op.
  const OpDef& Get(std::string_view type) const;
  const std::vector<KernelDef>& Kernels(std::string_view type) const;
  // Returns all types in ascending order.
  std::vector<std::string> Types() const;

  // Returns the dtype that selects the op's kernel: half if its data are (half_arguments.h), else
  // that of OpDef::kernel_dtype_slot, where half that is only measured counts as float32.
  static DType KernelDType(const OpContext& context);
  // Returns the kernel for the context's place, dtype, shapes and layouts, or nullptr if none fits:
  // the candidate named `forced` or, if that is empty, the worthwhile one of the highest priority.
  const KernelDef* FindKernel(const OpContext& context, std::string_view forced = {}) const;
  // Returns whether the op runs with these arguments: a kernel takes the arguments as they are, or
  // widened by the pass widen.
  bool CanRun(const OpContext& context) const;
  // Returns whether the arguments are half and a kernel takes them widened.
  bool CanRunWidened(const OpContext& context) const;
  // Like FindKernel, but throws Error with a list of the candidates if none fits.
  const KernelDef& SelectKernel(const OpContext& context, std::string_view forced = {}) const;
  // Returns all kernels that accept the context's place, dtype, shapes and layouts, whether they
  // pay or not, in the order of registration.
  std::vector<const KernelDef*> AcceptingKernels(const OpContext& context) const;

  // Records the version of a library that kernels call, with the instruction set that the library
  // uses on this machine. Besides the processor, kernel times depend on these.
  void SetLibrary(const std::string& name, std::string version);
  const std::map<std::string, std::string>& libraries() const { return libraries_; }

 private:
  struct Entry {
    OpDef def;
    std::vector<KernelDef> kernels;
  };
  struct TypeHash {
    using is_transparent = void;
    size_t operator()(std::string_view type) const { return std::hash<std::string_view>()(type); }
  };
  template <typename T, typename Prepare>
  static KernelFactory FactoryFor(Prepare prepare) {
    return [prepare](PrepareContext& context) { return prepare.template operator()<T>(context); };
  }
  void AddReferenceKernel(std::string_view type, DType dtype, KernelFactory prepare,
                          StaticText name);
  void AddNativeKernel(std::string_view type, DType dtype, KernelFactory prepare);
  void AddSelectedRowsKernel(std::string_view type, PlaceKind place, DType dtype,
                             KernelFactory prepare);
  const Entry* FindEntry(std::string_view type) const;

  // By type. The addresses of its definitions are stable: plans point to them.
  std::unordered_map<std::string, Entry, TypeHash, std::equal_to<>> entries_;
  std::map<std::string, std::string> libraries_;
};

// Returns whether all tensors whose data the op reads or writes are plain.
bool AllPlain(const OpContext& context);

// Checks an op, runs the shape rule, and sets shape, dtype and LoD level of the output variables.
// Creates missing output variables. Throws Error, naming op and creation site.
void InferOp(const OpRegistry& registry, Block* block, Op* op);

}  // namespace skiff
