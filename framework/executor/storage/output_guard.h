// Compares the outputs of a kernel with the plan. For plans with guards.
#pragma once

#include <memory>
#include <vector>

#include "framework/plan/plan.h"
#include "framework/tensor/tensor.h"

namespace skiff {

class OutputGuard {
 public:
  // `outputs`: the tensors of the instruction's outputs. All must outlive the guard.
  OutputGuard(const Plan& plan, const Instruction& instruction, const std::vector<Tensor*>& outputs)
      : plan_(plan), instruction_(instruction), outputs_(outputs) {}

  void BeforeRun();
  // Throws a std::logic_error, which is no mistake of the user, unless each output has the dtype
  // and layout of its value and has kept its address, shape and LoD. Tensors that the kernel makes,
  // and rows that it sets, must fit the value: no other dim may differ, LoDs must be valid, rows
  // within the capacity. Moves memory that the kernel has allocated itself, elements of arrays
  // included, between guards.
  void AfterRun();

 private:
  struct Before {
    const void* data = nullptr;
    Shape shape;
    std::shared_ptr<const LoD> lod;
  };

  void Check(size_t output) const;
  void CheckLoDOf(const PlanValue& value, const Tensor& tensor) const;
  void CheckMade(const PlanValue& value, const Tensor& tensor) const;
  // Throws unless the condition holds.
  template <typename... Texts>
  void Expect(bool condition, const PlanValue& value, const Texts&... texts) const;

  const Plan& plan_;
  const Instruction& instruction_;
  const std::vector<Tensor*>& outputs_;
  std::vector<Before> before_;
};

}  // namespace skiff
