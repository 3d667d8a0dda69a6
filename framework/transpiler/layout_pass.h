// Keeps activations channel-blocked across neighbouring ops, so that convolution, batch norm, ReLU,
// pooling and their gradients exchange tensors without a reorder.
//
//   before                                   after
//     c = conv2d(x, w)      plain              c = conv2d(x, w)        x plain, c blocked16
//     y = batch_norm(c)     plain              y = batch_norm(c)       blocked16
//     z = relu(y)           plain              z = relu(y)             blocked16
//     p = reshape2(z)       plain              z' = reorder(z)         blocked16 -> plain
//                                              p = reshape2(z')
//
// The pass blocks temporaries of float32 and half on the CPU only: feeds, fetches and scope
// variables stay plain. OpDef's layout rule says what an op can take, and the op's kernels confirm
// it. A tensor with fewer channels than a block stays plain. `changes`: values blocked.
#pragma once

#include "framework/transpiler/pass.h"

namespace skiff {

class LayoutPass final : public PlanPass {
 public:
  std::string_view name() const override { return "layout"; }
  // Blocked and plain kernels sum in different orders, which has moved results by up to 1e-5 of
  // their size. Besides, this may put a rectified unit that is nearly 0 on the other side of 0,
  // which shows in the gradients of its channel: it happened to 2 of 240 small residual networks
  // with other initial weights, where it moved gradients by up to 2e-2.
  double tolerance() const override { return 1e-2; }
  PassReport Apply(const PassContext& context, Plan* plan) const override;
};

}  // namespace skiff
