#include "operators/collective/kernels/all_reduce.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/op/arguments.h"
#include "operators/collective/kernels/array_list.h"
#include "operators/collective/kernels/collective_definition.h"
#include "operators/collective/kernels/fast_sum.h"
#include "operators/collective/kernels/slice_reduction.h"
#include "operators/common/half.h"
#include "operators/common/ranks/messages.h"

namespace skiff {
namespace {

// Returns the dtype of the outputs. Throws Error unless out_dtype fits X.
DType ResultDType(const OpContext& context) {
  const DType dtype = context.Input("X").dtype;
  const int64_t wanted = context.IntAttr("out_dtype");
  if (wanted < 0 || wanted == static_cast<int64_t>(dtype)) return dtype;
  SKIFF_ENFORCE(
      IsHalf(dtype) && wanted == static_cast<int64_t>(DType::kFloat32), kInvalidArgument,
      context.op().type, ": out_dtype = ", wanted, " and X is ", dtype, ", expected -1, ",
      static_cast<int32_t>(dtype), " as X",
      IsHalf(dtype) ? StrCat(" or ", static_cast<int32_t>(DType::kFloat32), ", float32") : "");
  return DType::kFloat32;
}

AttrDef OutDTypeAttr() {
  return {.name = "out_dtype",
          .type = AttrType::kInt,
          .default_value = int32_t{-1},
          .doc = "The dtype of Out: -1, X's, or 5, float32, where X is half."};
}

// Returns the definition of kIsFlatAttr for a list.
AttrDef FlatListAttr() {
  return {.name = kIsFlatAttr,
          .type = AttrType::kBool,
          .default_value = false,
          .doc = "Asks for the tensors of X to be contiguous in memory; the result is the same."};
}

class AllReduce final : public Kernel {
 public:
  AllReduce(PrepareContext& context, const Reducer& reducer, RankReduction reduction)
      : type_(context.op().type),
        reducer_(reducer),
        x_(context.InputCount("X"), context.Input("X").dtype),
        out_(context.InputCount("X"), context.Output("Out").dtype) {
    for (size_t i = 0; i < x_.size(); ++i) {
      inputs_.emplace_back(context, "X", i);
      outputs_.emplace_back(context, "Out", i);
    }
    if (reduction == RankReduction::kSum) {
      skip_ = In<bool>(context, "Skip");
      mean_ = context.Attr<bool>("mean");
    }
    if (context.def().FindAttr("parts") != nullptr) SetParts(context);
    // Sums of integers don't depend on their order.
    const bool is_fast = context.def().FindAttr("order") != nullptr && IsFloat(x_.dtype()) &&
                         context.Attr<std::string>("order") == "fast";
    const int64_t count = std::max(AllElements(context), MostReceived());
    if (is_fast) {
      fast_.emplace(context, reducer, x_.dtype(), out_.dtype(), x_.size(), count);
    } else {
      slices_.emplace(context, reducer, reduction, x_.dtype(), out_.dtype(), x_.size(), count);
    }
  }

  void Run(const KernelContext& run) override {
    x_.SetArrays([&](size_t i) -> const Tensor& { return inputs_[i].tensor(run); });
    out_.SetArrays([&](size_t i) -> Tensor& { return outputs_[i].tensor(run); });
    const World& world = WorldOf(run);
    const int32_t ranks = world.size;
    if (!parts_.empty()) CheckPartCount(run, type_, std::ssize(parts_));
    if (ranks == 1 || (skip_.is_there() && *skip_(run))) return TakeAlone(run);
    const double factor = mean_ ? 1.0 / ranks : 1;
    if (fast_.has_value()) return fast_->Run(run, &x_, factor, &out_);
    if (parts_.empty()) return slices_->AllReduce(run, &x_, factor, &out_);
    const int64_t own = parts_[static_cast<size_t>(world.rank)].begin;
    slices_->ReduceScatter(run, &x_, factor, parts_, own, &out_);
  }

  bool AcceptsFewerRows() const override { return true; }

 private:
  void SetParts(const OpContext& context) {
    const auto& begins = context.Attr<std::vector<int64_t>>("parts");
    for (size_t r = 0; r + 1 < begins.size(); ++r) {
      parts_.push_back({.begin = begins[r], .count = begins[r + 1] - begins[r]});
    }
  }

  // Returns the most elements that this rank, whichever it is, gets from the other ranks.
  int64_t MostReceived() const {
    if (parts_.empty()) return 0;
    const int64_t largest = std::ranges::max(parts_, {}, &ListSlice::count).count;
    return MultiplyCounts(largest, std::ssize(parts_) - 1);
  }

  // Sets Out to X, converted.
  void TakeAlone(const KernelContext& run) const {
    for (size_t i = 0; i < x_.size(); ++i) {
      if (x_.data(i) == out_.data(i)) continue;
      reducer_.Reduce(run, {.dtype = x_.dtype(),
                            .result_dtype = out_.dtype(),
                            .count = x_.element_count(i),
                            .own = x_.data(i),
                            .result = out_.data(i)});
    }
  }

  const std::string type_;
  const Reducer& reducer_;
  InArrays x_;
  OutArrays out_;
  std::vector<In<>> inputs_;
  std::vector<Out<>> outputs_;
  In<bool> skip_;
  bool mean_ = false;
  std::vector<ListSlice> parts_;  // by rank; empty: each rank gets all
  // One of the two is there.
  std::optional<FastSum> fast_;
  std::optional<SliceReduction> slices_;
};

}  // namespace

OpDef SumDef(StaticText type, StaticText doc, bool takes_lists) {
  OpDef def;
  def.type = type;
  def.doc = doc;
  const char* const x_doc =
      takes_lists ? "Floats, int32 or int64, of one dtype, each of one shape on all ranks."
                  : "Floats, int32 or int64, of one shape on all ranks.";
  def.inputs = {{.name = "X", .doc = x_doc, .duplicable = takes_lists}, SkipSlot()};
  def.outputs = {
      {.name = "Out", .doc = "Like X, or float32 (out_dtype).", .duplicable = takes_lists}};
  def.attrs = RingAttrs();
  def.attrs.push_back(MeanAttr());
  def.attrs.push_back(OutDTypeAttr());
  if (takes_lists) def.attrs.push_back(FlatListAttr());
  def.infer = InferSum;
  // X may be half while Out is float32: InferSum knows.
  def.precision = Precision::kNone;
  def.no_gradient_reason = "it sums gradients";
  def.kernel_dtype_slot = "X";
  def.in_place = {{"X", "Out"}};
  if (takes_lists) def.update = UpdateRule{.lists = {"X"}};
  def.collective = true;
  return def;
}

AttrDef OrderAttr() {
  return ChoiceAttr("order", "ranks", {"ranks", "fast"},
                    "\"ranks\": ((x0 + x1) + x2) + ... in the order of ranks; with `mean`, the "
                    "bits of gradient_merge. \"fast\": as the library adds that moves the bytes; "
                    "half goes out and comes back as float32.");
}

void InferSum(OpContext& context) {
  const DType dtype = context.Input("X").dtype;
  SKIFF_ENFORCE(IsFloat(dtype) || !context.Attr<bool>("mean"), kInvalidArgument, context.op().type,
                ": mean = true and X is ", dtype, ", expected floats");
  const DType result = ResultDType(context);
  CheckSkip(context);
  SetOutputsLike(context, "Out", "X");
  for (size_t i = 0; i < context.InputCount("X"); ++i) {
    context.mutable_outputs()[static_cast<size_t>(context.OutputIndex("Out", i))].dtype = result;
  }
}

std::unique_ptr<Kernel> PrepareAllReduce(PrepareContext& context, const Reducer& reducer,
                                         RankReduction reduction) {
  return std::make_unique<AllReduce>(context, reducer, reduction);
}

void AddCpuAllReduce(OpRegistry& registry, const char* type, RankReduction reduction) {
  registry.AddCpuKernels<float, double, int32_t, int64_t, Float16, BFloat16>(
      type, [reduction]<typename>(PrepareContext& context) {
        return PrepareAllReduce(context, HostReducer(), reduction);
      });
}

}  // namespace skiff
