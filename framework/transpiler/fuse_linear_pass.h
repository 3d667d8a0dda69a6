// Makes one instruction of a product of matrices and a bias.
//
//   before                                     after
//     p = mul(x, w)                              s = linear(x, w, b)
//     s = elementwise_add(p, b)
//
// The product may also be a matmul or matmul_v2 of one matrix w, transposed or not; b has a number
// for each column. The gradients stay: they read the data of neither p nor s. The gradient of the
// addition, which needs the shape of p, takes the shape of s.
//
// This saves a pass over p: the bias is added while p is in registers.
//
// It fuses nothing if any other instruction reads p, or needs the shape of p before the addition,
// if x is transposed or the product scaled, if an instruction in between writes a variable that the
// fused instruction reads, or if a kernel is forced on a fused op. `changes`: instructions made.
#pragma once

#include "framework/transpiler/pass.h"

namespace skiff {

class FuseLinearPass final : public PlanPass {
 public:
  std::string_view name() const override { return "fuse_linear"; }
  // A library may add up a product in another order if it adds a bias.
  double tolerance() const override { return 1e-5; }
  PassReport Apply(const PassContext& context, Plan* plan) const override;
};

}  // namespace skiff
