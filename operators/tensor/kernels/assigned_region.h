// The part of a tensor that set_value sets, and the values that are put there.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/op/kernel.h"
#include "operators/common/cpu/reduce.h"
#include "operators/common/memory_mover.h"
#include "operators/tensor/kernels/strided_selection.h"

namespace skiff {

class AssignedRegion {
 public:
  // Of a tensor of shape `input`. Throws Error if the attributes don't fit it, or if the value,
  // ValueTensor or the attribute, doesn't broadcast to the region.
  AssignedRegion(const OpContext& context, const Shape& input);

  // The number of elements along each axis of the tensor, -1 where it is unknown.
  const Shape& extent() const { return selection_.extent(); }
  // Whether the value has one element along an axis of the tensor for all of the region.
  const AxisFlags& repeats() const { return repeats_; }

  // Return the copy of the value to the region, of one element to all of it, and of the region to a
  // contiguous tensor. The shapes must be known.
  SelectionCopy Assign(DType dtype) const { return selection_.CopyIn(value_strides_, dtype); }
  SelectionCopy Clear(DType dtype) const { return selection_.CopyIn({}, dtype); }
  SelectionCopy CopyOut(DType dtype) const { return selection_.CopyOut(dtype); }

 private:
  // Returns for each dim of the region the axis of the tensor, -1 for an inserted dim.
  std::vector<int> DimsOf(const OpContext& context) const;
  void Broadcast(const OpContext& context, const Shape& value);

  StridedSelection selection_;
  std::array<int64_t, Shape::kMaxRank> value_strides_{};
  AxisFlags repeats_{};
};

// Returns the elements of the attribute `values` in this dtype. Throws Error if the dtype can't
// hold an element, or if `shape` has another number of elements.
std::vector<uint8_t> BytesOfValues(const OpContext& context, DType dtype);

// The kernel of set_value: copies Input to Out, unless both are one tensor, and `values` to the
// region.
class RegionAssignment {
 public:
  explicit RegionAssignment(const OpContext& context);
  void Run(const KernelContext& run, const void* values) const;

 private:
  In<> input_;
  Out<> out_;
  SelectionCopy assign_;
};

// The kernel of set_value_grad. Sums, made of a context, a shape and the axes of it that are
// summed, has Run(run, from, to).
template <typename T, class Sums>
class RegionGradients final : public Kernel {
 public:
  explicit RegionGradients(PrepareContext& context)
      : gradient_(context, "Out@GRAD"),
        input_gradient_(context, "Input@GRAD"),
        value_gradient_(context, "ValueTensor@GRAD") {
    const AssignedRegion region(context, context.Input("Out@GRAD").shape);
    clear_ = region.Clear(kDTypeOf<T>);
    zero_ = context.RequestWorkspace(sizeof(T));
    if (!value_gradient_.is_there()) return;
    copy_out_ = region.CopyOut(kDTypeOf<T>);
    copied_ = context.RequestWorkspace(ByteCount(region.extent().element_count(), kDTypeOf<T>));
    sums_.emplace(context, region.extent(), region.repeats());
  }

  void Run(const KernelContext& run) override {
    const T* gradient = gradient_(run);
    // Input@GRAD comes last, since it may share the storage of Out@GRAD.
    if (sums_) {
      auto* copied = static_cast<T*>(run.workspace(copied_));
      copy_out_.Run(run, gradient, copied);
      sums_->Run(run, copied, value_gradient_(run));
    }
    if (!input_gradient_.is_there()) return;
    const MemoryMover& mover = MemoryMoverOf(run);
    Tensor& to = input_gradient_.tensor(run);
    mover.CopyBytes(run, gradient, to.raw_data(), to.byte_count());
    mover.ZeroBytes(run, run.workspace(zero_), sizeof(T));
    clear_.Run(run, run.workspace(zero_), to.raw_data());
  }

 private:
  In<T> gradient_;
  Out<T> input_gradient_;
  Out<T> value_gradient_;
  SelectionCopy clear_;
  int zero_ = -1;
  SelectionCopy copy_out_;
  int copied_ = -1;
  std::optional<Sums> sums_;
};

}  // namespace skiff
