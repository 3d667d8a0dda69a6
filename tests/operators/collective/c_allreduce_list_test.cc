// c_allreduce_list on several ranks: the bits of c_allreduce_sum, wherever the tensors lie.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "memory/places.h"
#include "tests/harness/case_op.h"
#include "tests/harness/thread_ranks.h"
#include "tests/operators/collective/rank_lists.h"
#include "tests/operators/collective/rank_run.h"

namespace skiff::harness {
namespace {

using ::testing::Each;
using ::testing::Gt;
using ::testing::IsEmpty;

Op SumsOp(const AttributeMap& attrs) {
  return ListOp("c_allreduce_list", OddShapes().size(), attrs);
}

// Returns what c_allreduce_sum gives rank 0 for tensor i.
Tensor SumOfOne(const std::vector<NamedTensors>& inputs, size_t i, const AttributeMap& attrs) {
  std::vector<NamedTensors> of_one;
  for (const NamedTensors& of_rank : inputs) {
    of_one.push_back({{"X.0", of_rank.at(VariableName("X", i))}});
  }
  return RunOpOnRanks(ListOp("c_allreduce_sum", 1, attrs), of_one, 0).outputs[0].at("Out.0");
}

void ExpectSumsOfSingleOps(const RankRun& run, const std::vector<NamedTensors>& inputs,
                           const AttributeMap& attrs) {
  ASSERT_THAT(run.errors, Each(IsEmpty()));
  for (size_t i = 0; i < OddShapes().size(); ++i) {
    const Tensor expected = SumOfOne(inputs, i, attrs);
    for (const NamedTensors& outputs : run.outputs) {
      EXPECT_TRUE(SameBits(outputs.at(VariableName("Out", i)), expected)) << "tensor " << i;
    }
  }
}

// Does so for drawn numbers.
void ExpectSumsOfSingleOps(int32_t ranks, DType dtype, const AttributeMap& attrs,
                           const OpSettings& settings = {}) {
  SCOPED_TRACE(StrCat(dtype, " on ", ranks, " ranks"));
  const std::vector<NamedTensors> inputs = DrawInputs(ranks, OddShapes(), dtype);
  ExpectSumsOfSingleOps(RunOpOnRanks(SumsOp(attrs), inputs, 1, settings), inputs, attrs);
}

TEST(CAllreduceList, HasTheBitsOfSingleOps) {
  for (int32_t ranks = 1; ranks <= 5; ++ranks) {
    ExpectSumsOfSingleOps(ranks, DType::kFloat32, {});
    ExpectSumsOfSingleOps(ranks, DType::kBFloat16, {{"mean", true}});
  }
  ExpectSumsOfSingleOps(3, DType::kFloat64, {{"mean", true}});
  ExpectSumsOfSingleOps(3, DType::kInt64, {});
}

TEST(CAllreduceList, WidensHalf) {
  for (const DType half : {DType::kFloat16, DType::kBFloat16}) {
    ExpectSumsOfSingleOps(3, half, {{"mean", true}, {"out_dtype", int32_t{5}}});
  }
}

TEST(CAllreduceList, MayReplaceX) {
  VariablePairs every_other;
  for (size_t i = 0; i < OddShapes().size(); i += 2) {
    every_other.emplace_back(VariableName("X", i), VariableName("Out", i));
  }
  ExpectSumsOfSingleOps(3, DType::kFloat32, {}, {.in_place = every_other});
}

// Sums in drawn orders are right within rounding. They are the library's: the op itself sends
// nothing.
TEST(CAllreduceList, AddsInAnyOrderIfThatIsFast) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    const std::vector<NamedTensors> inputs = DrawInputs(3, OddShapes(), dtype);
    const RankRun run =
        RunOpOnRanks(SumsOp({{"order", std::string("fast")}, {"mean", true}}), inputs);
    ASSERT_THAT(run.errors, Each(IsEmpty()));
    EXPECT_THAT(run.bytes_sent, Each(0));
    for (size_t i = 0; i < OddShapes().size(); ++i) {
      const Array expected = ToArray(SumOfOne(inputs, i, {{"mean", true}}));
      const Array found = ToArray(run.outputs[2].at(VariableName("Out", i)));
      EXPECT_EQ(FirstDifference(found, expected, IsHalf(dtype) ? 1e-2 : 1e-5), "");
    }
  }
}

// Passes messages on, and notes where those to other ranks lie.
class Listener final : public Communicator {
 public:
  explicit Listener(Communicator* through) : Communicator(through->world()), through_(*through) {}

  Place place() const override { return through_.place(); }
  void Exchange(std::span<const OutMessage> out, std::span<const InMessage> in,
                DeviceStream* stream) override {
    for (const OutMessage& message : out) sent_.push_back(message);
    through_.Exchange(out, in, stream);
  }
  void Sum(void* data, int64_t count, DType dtype, DeviceStream* stream) override {
    through_.Sum(data, count, dtype, stream);
  }
  void Check() override { through_.Check(); }
  void Abort(const std::string& message) noexcept override { through_.Abort(message); }

  const std::vector<OutMessage>& sent() const { return sent_; }

 private:
  Communicator& through_;
  std::vector<OutMessage> sent_;
};

// c_allreduce_list in place on tensors in one buffer, each `gap` elements after the last.
class FlatList {
 public:
  FlatList(const NamedTensors& x, int64_t gap) : op_(SumsOp({{"is_flat", true}})) {
    std::vector<int64_t> offsets = {0};
    for (const Shape& shape : OddShapes()) {
      offsets.push_back(offsets.back() + shape.element_count() + gap);
    }
    const auto bytes = offsets.back() * static_cast<int64_t>(sizeof(float));
    buffer_ = std::make_shared<Buffer>(AllocatorOf(Place::Cpu()), bytes, AllocationOptions{});
    std::fill_n(static_cast<float*>(buffer_->data()), offsets.back(), kGap);
    std::vector<TensorMeta> metas;
    for (size_t i = 0; i < OddShapes().size(); ++i) {
      const auto at = offsets[i] * static_cast<int64_t>(sizeof(float));
      tensors_.emplace_back(OddShapes()[i], DType::kFloat32, buffer_, at);
      CopyTensor(x.at(VariableName("X", i)), &tensors_.back());
      metas.push_back({.shape = OddShapes()[i]});
    }
    PrepareContext context(op_, DefaultOpRegistry().Get(op_.type), metas, metas);
    kernel_ = DefaultOpRegistry().SelectKernel(context).prepare(context);
    for (const int64_t of_workspace : context.workspace_bytes()) {
      workspaces_.emplace_back(static_cast<size_t>(of_workspace));
    }
  }

  void Run(Communicator* communicator) {
    const DeviceContext device{.place = Place::Cpu()};
    KernelContext run;
    for (Tensor& tensor : tensors_) {
      run.inputs.push_back(&tensor);
      run.outputs.push_back(&tensor);
    }
    for (std::vector<std::byte>& workspace : workspaces_)
      run.workspaces.push_back(workspace.data());
    run.device_context = &device;
    run.communicator = communicator;
    kernel_->Bind(run);
    kernel_->Run(run);
  }

  // Returns whether the message lies in the buffer.
  bool Holds(const OutMessage& message) const {
    const auto* data = static_cast<const std::byte*>(message.data);
    const auto* begin = static_cast<const std::byte*>(buffer_->data());
    return data >= begin && data + message.bytes <= begin + buffer_->bytes();
  }
  NamedTensors Outputs() const {
    NamedTensors outputs;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      outputs[VariableName("Out", i)] = ToPlain(tensors_[i]);
    }
    return outputs;
  }
  // Returns how many elements between the tensors, and behind the last, still hold kGap.
  int64_t CountGaps() const {
    const std::span<const float> all(static_cast<const float*>(buffer_->data()),
                                     static_cast<size_t>(buffer_->bytes()) / sizeof(float));
    return std::ranges::count(all, kGap);
  }

 private:
  static constexpr float kGap = 77;

  Op op_;
  std::shared_ptr<Buffer> buffer_;
  std::vector<Tensor> tensors_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<std::vector<std::byte>> workspaces_;
};

TEST(CAllreduceList, SendsContiguousTensorsFromWhereTheyLie) {
  for (int32_t ranks = 2; ranks <= 4; ++ranks) {
    const std::vector<NamedTensors> inputs = DrawInputs(ranks, OddShapes(), DType::kFloat32);
    RankRun run;
    run.outputs.resize(inputs.size());
    run.errors = RunOnThreadRanks(ranks, {.time_limit = 60, .seed = 3}, [&](Communicator* own) {
      const auto rank = static_cast<size_t>(own->world().rank);
      FlatList list(inputs[rank], 0);
      Listener listener(own);
      list.Run(&listener);
      EXPECT_THAT(listener.sent().size(), Gt(0u));
      for (const OutMessage& message : listener.sent()) EXPECT_TRUE(list.Holds(message));
      run.outputs[rank] = list.Outputs();
    });
    ExpectSumsOfSingleOps(run, inputs, {});
  }
}

// Flat lists have gaps where tensors begin at multiples of some bytes.
TEST(CAllreduceList, LeavesGapsBetweenTensorsAlone) {
  const std::vector<NamedTensors> inputs = DrawInputs(3, OddShapes(), DType::kFloat32);
  RankRun run;
  run.outputs.resize(3);
  run.errors = RunOnThreadRanks(3, {.time_limit = 60, .seed = 3}, [&](Communicator* own) {
    const auto rank = static_cast<size_t>(own->world().rank);
    FlatList list(inputs[rank], 3);
    list.Run(own);
    EXPECT_EQ(list.CountGaps(), 3 * static_cast<int64_t>(OddShapes().size()));
    run.outputs[rank] = list.Outputs();
  });
  ExpectSumsOfSingleOps(run, inputs, {});
}

TEST(CAllreduceList, TakesXAloneIfAllRanksSkip) {
  Op op = SumsOp({{"mean", true}});
  std::vector<NamedTensors> inputs = DrawInputs(3, OddShapes(), DType::kFloat32);
  AddSkip(true, &op, &inputs);
  const RankRun run = RunOpOnRanks(op, inputs);
  ASSERT_THAT(run.errors, Each(IsEmpty()));
  EXPECT_THAT(run.bytes_sent, Each(0));
  for (size_t rank = 0; rank < inputs.size(); ++rank) {
    for (size_t i = 0; i < OddShapes().size(); ++i) {
      EXPECT_TRUE(SameBits(run.outputs[rank].at(VariableName("Out", i)),
                           inputs[rank].at(VariableName("X", i))));
    }
  }
}

}  // namespace
}  // namespace skiff::harness
