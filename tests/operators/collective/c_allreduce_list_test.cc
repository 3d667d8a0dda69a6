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
#include "tests/operators/collective/rank_run.h"

namespace skiff::harness {
namespace {

using ::testing::Each;
using ::testing::Gt;
using ::testing::IsEmpty;

// Odd sizes, tensors without elements, a scalar, and more elements than a piece of messages holds.
const std::vector<Shape>& Shapes() {
  static const auto& shapes = *new std::vector<Shape>{{5, 7}, {0},      {},  {131, 257}, {17},
                                                      {2, 0}, {70'001}, {1}, {200'000},  {0}};
  return shapes;
}

Tensor XOf(size_t i, int32_t rank, DType dtype) {
  Array drawn = Uniform(Shapes()[i], 100 * static_cast<uint64_t>(rank) + i);
  return ToTensor(drawn, dtype);
}

std::vector<NamedTensors> InputsOfRanks(int32_t ranks, DType dtype) {
  std::vector<NamedTensors> inputs(static_cast<size_t>(ranks));
  for (int32_t rank = 0; rank < ranks; ++rank) {
    for (size_t i = 0; i < Shapes().size(); ++i) {
      inputs[static_cast<size_t>(rank)][VariableName("X", i)] = XOf(i, rank, dtype);
    }
  }
  return inputs;
}

// Returns the op with the attributes; `count` tensors of each list.
Op ListOp(size_t count, const AttributeMap& attrs) {
  Op op("c_allreduce_list");
  op.attrs = attrs;
  std::vector<std::string> x;
  std::vector<std::string> out;
  for (size_t i = 0; i < count; ++i) {
    x.push_back(VariableName("X", i));
    out.push_back(VariableName("Out", i));
  }
  op.SetInput("X", x).SetOutput("Out", out);
  return op;
}

// Returns what c_allreduce_sum gives rank 0 for tensor i.
Tensor SumOfOne(size_t i, int32_t ranks, DType dtype, const AttributeMap& attrs) {
  Op op("c_allreduce_sum");
  op.attrs = attrs;
  op.SetInput("X", {"x"}).SetOutput("Out", {"out"});
  std::vector<NamedTensors> inputs;
  for (int32_t rank = 0; rank < ranks; ++rank) inputs.push_back({{"x", XOf(i, rank, dtype)}});
  return RunOpOnRanks(op, inputs, 0).outputs[0].at("out");
}

void ExpectSumsOfSingleOps(const RankRun& run, DType dtype, const AttributeMap& attrs) {
  ASSERT_THAT(run.errors, Each(IsEmpty()));
  const auto ranks = static_cast<int32_t>(run.outputs.size());
  for (size_t i = 0; i < Shapes().size(); ++i) {
    const Tensor expected = SumOfOne(i, ranks, dtype, attrs);
    for (const NamedTensors& outputs : run.outputs) {
      EXPECT_TRUE(SameBits(outputs.at(VariableName("Out", i)), expected)) << "tensor " << i;
    }
  }
}

TEST(CAllreduceList, HasTheBitsOfSingleOps) {
  for (const AttributeMap& attrs : {AttributeMap(), AttributeMap{{"mean", true}}}) {
    for (int32_t ranks = 1; ranks <= 5; ++ranks) {
      for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBFloat16}) {
        SCOPED_TRACE(StrCat(dtype, " on ", ranks, " ranks"));
        const Op op = ListOp(Shapes().size(), attrs);
        ExpectSumsOfSingleOps(RunOpOnRanks(op, InputsOfRanks(ranks, dtype)), dtype, attrs);
      }
    }
  }
}

TEST(CAllreduceList, WidensHalf) {
  const AttributeMap attrs = {{"mean", true}, {"out_dtype", int32_t{5}}};
  const Op op = ListOp(Shapes().size(), attrs);
  for (const DType half : {DType::kFloat16, DType::kBFloat16}) {
    ExpectSumsOfSingleOps(RunOpOnRanks(op, InputsOfRanks(3, half)), half, attrs);
  }
}

TEST(CAllreduceList, MayReplaceX) {
  VariablePairs in_place;
  for (size_t i = 0; i < Shapes().size(); i += 2) {
    in_place.emplace_back(VariableName("X", i), VariableName("Out", i));
  }
  const Op op = ListOp(Shapes().size(), {});
  const RankRun run =
      RunOpOnRanks(op, InputsOfRanks(3, DType::kFloat32), 1, {.in_place = in_place});
  ExpectSumsOfSingleOps(run, DType::kFloat32, {});
}

// Sums in drawn orders are right within rounding.
TEST(CAllreduceList, AddsInAnyOrderIfThatIsFast) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    const Op op = ListOp(Shapes().size(), {{"order", std::string("fast")}, {"mean", true}});
    const RankRun run = RunOpOnRanks(op, InputsOfRanks(3, dtype));
    ASSERT_THAT(run.errors, Each(IsEmpty()));
    for (size_t i = 0; i < Shapes().size(); ++i) {
      const Array expected = ToArray(SumOfOne(i, 3, dtype, {{"mean", true}}));
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
  FlatList(int32_t rank, int64_t gap, const AttributeMap& attrs)
      : op_(ListOp(Shapes().size(), attrs)) {
    std::vector<int64_t> offsets = {0};
    for (const Shape& shape : Shapes()) {
      offsets.push_back(offsets.back() + shape.element_count() + gap);
    }
    const auto bytes = offsets.back() * static_cast<int64_t>(sizeof(float));
    buffer_ = std::make_shared<Buffer>(AllocatorOf(Place::Cpu()), bytes, AllocationOptions{});
    std::fill_n(static_cast<float*>(buffer_->data()), offsets.back(), kGap);
    std::vector<TensorMeta> metas;
    for (size_t i = 0; i < Shapes().size(); ++i) {
      const auto at = offsets[i] * static_cast<int64_t>(sizeof(float));
      tensors_.emplace_back(Shapes()[i], DType::kFloat32, buffer_, at);
      CopyTensor(XOf(i, rank, DType::kFloat32), &tensors_.back());
      metas.push_back({.shape = Shapes()[i]});
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
    RankRun run;
    run.outputs.resize(static_cast<size_t>(ranks));
    run.errors = RunOnThreadRanks(ranks, {.time_limit = 60, .seed = 3}, [&](Communicator* own) {
      const int32_t rank = own->world().rank;
      FlatList list(rank, 0, {{"is_flat", true}});
      Listener listener(own);
      list.Run(&listener);
      EXPECT_THAT(listener.sent().size(), Gt(0u));
      for (const OutMessage& message : listener.sent()) EXPECT_TRUE(list.Holds(message));
      run.outputs[static_cast<size_t>(rank)] = list.Outputs();
    });
    ExpectSumsOfSingleOps(run, DType::kFloat32, {});
  }
}

// Flat lists have gaps where tensors begin at multiples of some bytes.
TEST(CAllreduceList, LeavesGapsBetweenTensorsAlone) {
  RankRun run;
  run.outputs.resize(3);
  run.errors = RunOnThreadRanks(3, {.time_limit = 60, .seed = 3}, [&](Communicator* own) {
    const int32_t rank = own->world().rank;
    FlatList list(rank, 3, {{"is_flat", true}});
    list.Run(own);
    EXPECT_EQ(list.CountGaps(), 3 * static_cast<int64_t>(Shapes().size()));
    run.outputs[static_cast<size_t>(rank)] = list.Outputs();
  });
  ExpectSumsOfSingleOps(run, DType::kFloat32, {});
}

TEST(CAllreduceList, TakesXAloneIfAllRanksSkip) {
  Op op = ListOp(Shapes().size(), {{"mean", true}});
  op.SetInput("Skip", {"skip"});
  std::vector<NamedTensors> inputs = InputsOfRanks(3, DType::kFloat32);
  for (NamedTensors& of_rank : inputs) {
    of_rank["skip"] = ToTensor(Values({1}, {1.0}, DType::kBool), DType::kBool);
  }
  const RankRun run = RunOpOnRanks(op, inputs);
  ASSERT_THAT(run.errors, Each(IsEmpty()));
  EXPECT_THAT(run.bytes_sent, Each(0));
  for (size_t rank = 0; rank < inputs.size(); ++rank) {
    for (size_t i = 0; i < Shapes().size(); ++i) {
      EXPECT_TRUE(SameBits(run.outputs[rank].at(VariableName("Out", i)),
                           inputs[rank].at(VariableName("X", i))));
    }
  }
}

}  // namespace
}  // namespace skiff::harness
