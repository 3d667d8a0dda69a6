// c_all_gather_list: each rank has its part of the elements of a list, and all ranks get all parts.
//
// Take the elements of all tensors one after the other. Rank r has elements [parts[r], parts[r +
// 1]); what X holds elsewhere doesn't matter. A part begins and ends anywhere in a tensor. If the
// tensors lie one after the other in memory, messages come from there and go to there; otherwise
// they are collected in scratch memory. Fluid has no counterpart: its c_allgather takes one tensor
// of equal parts.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "framework/op/arguments.h"
#include "operators/collective/kernels/array_list.h"
#include "operators/collective/kernels/collective_definition.h"
#include "operators/collective/kernels/slice_gather.h"
#include "operators/common/all_dtypes.h"
#include "operators/common/memory_mover.h"
#include "operators/common/ranks/messages.h"
#include "operators/common/ranks/scratch.h"

namespace skiff {
namespace {

constexpr const char* kType = "c_all_gather_list";

// The regions of scratch memory: for slices of other ranks, and for this rank's.
enum Region { kReceived, kOwn };

void Infer(OpContext& context) {
  SetOutputsLike(context, "Out", "X");
  CheckParts(context);
}

class AllGatherList final : public Kernel {
 public:
  explicit AllGatherList(PrepareContext& context)
      : parts_(context.Attr<std::vector<int64_t>>("parts")),
        out_(context.InputCount("X"), context.Input("X").dtype),
        scratch_(context, AllElements(context), SizeOf(out_.dtype()), 2) {
    for (size_t i = 0; i < out_.size(); ++i) {
      inputs_.emplace_back(context, "X", i);
      outputs_.emplace_back(context, "Out", i);
    }
  }

  void Run(const KernelContext& run) override {
    CheckPartCount(run, kType, std::ssize(parts_) - 1);
    for (size_t i = 0; i < out_.size(); ++i) {
      const Tensor& x = inputs_[i].tensor(run);
      MemoryMoverOf(run).CopyBytes(run, x.raw_data(), outputs_[i].tensor(run).raw_data(),
                                   x.byte_count());
    }
    const int32_t ranks = WorldOf(run).size;
    if (ranks == 1) return;
    out_.SetArrays([&](size_t i) -> Tensor& { return outputs_[i].tensor(run); });
    const int64_t piece = scratch_.ElementsOfRank(ranks);
    for (int64_t begin = 0; begin < LargestPart(); begin += piece) Gather(run, begin, piece);
  }

 private:
  int64_t LargestPart() const {
    int64_t largest = 0;
    for (size_t r = 0; r + 1 < parts_.size(); ++r) {
      largest = std::max(largest, parts_[r + 1] - parts_[r]);
    }
    return largest;
  }

  // Gathers elements [begin, begin + piece) of each part, as far as the part has them.
  void Gather(const KernelContext& run, int64_t begin, int64_t piece) {
    slices_.clear();
    for (size_t r = 0; r + 1 < parts_.size(); ++r) {
      const int64_t first = parts_[r] + begin;
      slices_.push_back({first, std::clamp(parts_[r + 1] - first, int64_t{0}, piece)});
    }
    const void* own = FindOrCollect(run, slices_[static_cast<size_t>(WorldOf(run).rank)]);
    GatherSlices(run, slices_, own, scratch_.Region(run, kReceived), &messages_, &out_);
  }

  const void* FindOrCollect(const KernelContext& run, const ListSlice& slice) {
    const std::byte* found = out_.Find(slice.begin, slice.count);
    if (found != nullptr || slice.count == 0) return found;
    void* collected = scratch_.Region(run, kOwn);
    out_.CopyTo(run, slice.begin, slice.count, collected);
    return collected;
  }

  const std::vector<int64_t> parts_;
  OutArrays out_;
  Scratch scratch_;
  Messages messages_;
  std::vector<ListSlice> slices_;  // by rank
  std::vector<In<>> inputs_;
  std::vector<Out<>> outputs_;
};

}  // namespace

void RegisterCAllGatherList(OpRegistry& registry) {
  OpDef def;
  def.type = kType;
  def.doc =
      "Out[i] = X[i] with the elements of each rank's part, for a list of tensors whose elements "
      "are taken one after the other.";
  def.inputs = {{.name = "X",
                 .doc = "All of one dtype, and each of one shape on all ranks.",
                 .duplicable = true}};
  def.outputs = {{.name = "Out", .doc = "Like X.", .duplicable = true}};
  def.attrs = RingAttrs();
  def.attrs.push_back(PartsAttr());
  def.infer = Infer;
  def.precision = Precision::kNone;
  def.no_gradient_reason = "ops between ranks are not differentiated";
  def.kernel_dtype_slot = "X";
  def.in_place = {{"X", "Out"}};
  def.collective = true;
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, kType, [](PrepareContext& context) {
    return std::make_unique<AllGatherList>(context);
  });
}

}  // namespace skiff
