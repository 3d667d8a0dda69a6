// c_broadcast: Out = the X of rank `root`.
//
// Source: Fluid's c_broadcast. The root sends each rank a slice of X, and each rank its slice to
// all: so no rank sends more than two times X.
#include <algorithm>
#include <cstddef>
#include <utility>

#include "framework/base/error.h"
#include "framework/op/arguments.h"
#include "operators/collective/kernels/collective_definition.h"
#include "operators/common/all_dtypes.h"
#include "operators/common/memory_mover.h"
#include "operators/common/ranks/messages.h"

namespace skiff {
namespace {

// The bytes of X, cut into a slice for each rank.
struct Slices {
  std::byte* data = nullptr;
  int64_t bytes = 0;
  int64_t ranks = 1;

  int64_t Begin(int64_t rank) const { return bytes / ranks * rank + std::min(rank, bytes % ranks); }
  std::byte* Slice(int64_t rank) const { return data + Begin(rank); }
  int64_t Bytes(int64_t rank) const { return Begin(rank + 1) - Begin(rank); }
};

class Broadcast final : public Kernel {
 public:
  explicit Broadcast(const OpContext& context)
      : x_(context, "X"), out_(context, "Out"), root_(context.Attr<int32_t>("root")) {}

  void Run(const KernelContext& run) override {
    const World& world = WorldOf(run);
    SKIFF_ENFORCE(root_ < world.size, kOutOfRange, "c_broadcast: root = ", root_,
                  ", expected one of the ", world.size, " ranks, from 0 on");
    const int64_t bytes = x_.tensor(run).byte_count();
    if (world.rank == root_) MemoryMoverOf(run).CopyBytes(run, x_(run), out_(run), bytes);
    if (world.size == 1) return;
    const Slices slices{static_cast<std::byte*>(out_(run)), bytes, world.size};
    Scatter(world, slices);
    messages_.Exchange(run);
    Gather(world, slices);
    messages_.Exchange(run);
  }

  bool AcceptsFewerRows() const override { return true; }

 private:
  void Scatter(const World& world, const Slices& slices) {
    if (world.rank != root_) {
      return messages_.Receive(root_, slices.Slice(world.rank), slices.Bytes(world.rank));
    }
    for (int32_t rank = 0; rank < world.size; ++rank) {
      if (rank != root_) messages_.Send(rank, slices.Slice(rank), slices.Bytes(rank));
    }
  }

  // The root has all of them.
  void Gather(const World& world, const Slices& slices) {
    for (int32_t rank = 0; rank < world.size; ++rank) {
      if (rank == world.rank) continue;
      if (rank != root_) messages_.Send(rank, slices.Slice(world.rank), slices.Bytes(world.rank));
      if (world.rank != root_) messages_.Receive(rank, slices.Slice(rank), slices.Bytes(rank));
    }
  }

  In<> x_;
  Out<> out_;
  int32_t root_;
  Messages messages_;
};

}  // namespace

void RegisterCBroadcast(OpRegistry& registry) {
  OpDef def;
  def.type = "c_broadcast";
  def.doc = "Out = X of rank `root`.";
  def.inputs = {{.name = "X", .doc = "Of one shape and dtype on all ranks."}};
  def.outputs = {{.name = "Out", .doc = "Like X."}};
  def.attrs = RingAttrs();
  def.attrs.push_back(
      {.name = "root",
       .type = AttrType::kInt,
       .default_value = int32_t{0},
       .doc = "The rank whose X all ranks get.",
       .accepts = [](const Attribute& value) { return std::get<int32_t>(value) >= 0; },
       .expected = "at least 0",
       .refusal = ErrorCode::kOutOfRange});
  def.infer = [](OpContext& context) { context.SetOutputLike("Out", "X"); };
  def.precision = Precision::kFollow;
  def.no_gradient_reason = "ops between ranks are not differentiated";
  def.in_place = {{"X", "Out"}};
  def.collective = true;
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "c_broadcast", [](PrepareContext& context) {
    return std::make_unique<Broadcast>(context);
  });
}

}  // namespace skiff
