// Kernels that draw numbers on a device read the step there, so that a graph of them draws others
// in each step. Skipped if there is no device.
#include <gtest/gtest.h>

#ifdef WITH_CUDA

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/registry.h"
#include "memory/cuda_device.h"
#include "memory/places.h"
#include "operators/nn/nn_ops.h"
#include "operators/random/random_ops.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/case_op.h"
#include "tests/harness/cuda_place.h"
#include "tests/harness/guarded_block.h"
#include "tests/harness/prepared_op.h"

namespace skiff::harness {
namespace {

// As in KernelContext.
struct Step {
  uint64_t on_host = 0;
  const uint64_t* on_device = nullptr;
};

// Runs a kernel in a step that it is told.
class KernelInStep final : public Kernel {
 public:
  KernelInStep(std::unique_ptr<Kernel> kernel, const Step* step)
      : kernel_(std::move(kernel)), step_(step) {}

  void Bind(const KernelContext& run) override { kernel_->Bind(InStep(run)); }
  void Run(const KernelContext& run) override { kernel_->Run(InStep(run)); }

 private:
  KernelContext InStep(const KernelContext& run) const {
    KernelContext in_step = run;
    in_step.step = &step_->on_host;
    in_step.device_step = step_->on_device;
    return in_step;
  }

  std::unique_ptr<Kernel> kernel_;
  const Step* step_;
};

// The ops with the kernels of the device, which run in `step`.
std::unique_ptr<OpRegistry> RegistryInStep(const Step* step) {
  OpRegistry registry;
  RegisterNnOps(registry);
  RegisterRandomOps(registry);
  auto made = std::make_unique<OpRegistry>();
  for (const std::string& type : registry.Types()) {
    made->Add(registry.Get(type));
    for (KernelDef kernel : registry.Kernels(type)) {
      if (kernel.place != PlaceKind::kCuda) continue;
      kernel.prepare = [prepare = kernel.prepare, step](PrepareContext& context) {
        return std::make_unique<KernelInStep>(prepare(context), step);
      };
      made->AddKernel(type, std::move(kernel));
    }
  }
  return made;
}

NamedTensors OutputsInStep(const OpCase& op_case, DType dtype, const Step& step) {
  const std::unique_ptr<OpRegistry> registry = RegistryInStep(&step);
  const Op op = MakeOp(op_case);
  const NamedTensors inputs = MakeInputs(op_case, dtype);
  PreparedOp prepared(*registry, op, inputs, {.place = CudaPlace()});
  prepared.Load(inputs, 0xFF);
  prepared.Run();
  prepared.Wait();
  EXPECT_TRUE(prepared.Faults().empty());
  return prepared.Outputs();
}

bool SameOutputs(const NamedTensors& a, const NamedTensors& b) {
  for (const auto& [name, tensor] : a) {
    if (!SameBits(tensor, b.at(name))) return false;
  }
  return a.size() == b.size();
}

OpCase Dropout(const std::string& name) {
  return {.name = name,
          .type = "dropout",
          .inputs = {{"X", {Uniform({5, 41}, 1, 0.5, 1.5)}}},
          .attrs = {{"dropout_prob", 0.5f}},
          .outputs = {{"Out", 1}, {"Mask", 1}}};
}

OpCase RandomTensor(const std::string& type, const AttributeMap& attrs, DType dtype) {
  OpCase made{.name = "tensor", .type = type, .attrs = attrs, .outputs = {{"Out", 1}}};
  made.attrs["shape"] = std::vector<int32_t>{5, 41};
  made.attrs["dtype"] = static_cast<int32_t>(dtype);
  return made;
}

OpCase Attention(const std::string& name, int64_t queries, int64_t keys) {
  return {.name = name,
          .type = "multihead_attention",
          .inputs = {{"Query", {Uniform({2, queries, 6}, 1)}},
                     {"Key", {Uniform({2, keys, 6}, 2)}},
                     {"Value", {Uniform({2, keys, 6}, 3)}}},
          .attrs = {{"num_heads", 2}, {"dropout_prob", 0.3f}},
          .outputs = {{"Out", 1}, {"RowMax", 1}, {"RowSum", 1}, {"DropoutKey", 1}}};
}

OpCase LayerNorm() {
  return {.name = "sum",
          .type = "bias_dropout_residual_layer_norm",
          .inputs = {{"X", {Uniform({7, 37}, 1)}},
                     {"Bias", {Uniform({37}, 2)}},
                     {"Residual", {Uniform({7, 37}, 3)}}},
          .attrs = {{"dropout_prob", 0.25f}},
          .outputs = {{"Y", 1}, {"Sum", 1}, {"Mask", 1}, {"Mean", 1}, {"Variance", 1}}};
}

CaseList RandomOps() {
  CaseList cases = {Dropout("seed_of_its_own"), Dropout("seed_in_a_tensor"),
                    Dropout("seed_of_0_in_a_tensor")};
  cases[1].inputs["Seed"] = {Values({1}, {7}, DType::kInt64)};
  cases[2].inputs["Seed"] = {Values({1}, {0}, DType::kInt32)};
  cases.push_back({.name = "half",
                   .type = "bernoulli",
                   .inputs = {{"X", {Uniform({5, 41}, 1, 0.2, 0.8)}}},
                   .outputs = {{"Out", 1}}});
  cases.push_back(RandomTensor("uniform_random", {{"min", -3.0f}, {"max", 1.0f}}, DType::kFloat32));
  cases.push_back(RandomTensor("gaussian_random", {}, DType::kFloat32));
  cases.push_back(RandomTensor("truncated_gaussian_random", {}, DType::kFloat32));
  cases.push_back(RandomTensor("randint", {{"low", 0}, {"high", 1000}}, DType::kInt64));
  cases.push_back({.name = "order",
                   .type = "randperm",
                   .attrs = {{"n", int32_t{205}}, {"dtype", static_cast<int32_t>(DType::kInt64)}},
                   .outputs = {{"Out", 1}}});
  cases.push_back(Attention("short", 3, 5));
  cases.push_back(Attention("tiles", 19, 67));
  cases.push_back(LayerNorm());
  return cases;
}

TEST(DeviceStep, GoesBeforeThatOfTheHost) {
  if (!HasCudaDevice()) GTEST_SKIP() << "no device";
  constexpr uint64_t kStep = 5;
  const GuardedBlock on_device(sizeof(kStep), CudaPlace());
  CopyBytes(on_device.data(), CudaPlace(), &kStep, Place::Cpu(), sizeof(kStep));
  for (const OpCase& op_case : RandomOps()) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      SCOPED_TRACE(CaseName(op_case) + (dtype == DType::kFloat32 ? ", float32" : ", float64"));
      const NamedTensors expected = OutputsInStep(op_case, dtype, {.on_host = kStep});
      EXPECT_FALSE(SameOutputs(expected, OutputsInStep(op_case, dtype, {.on_host = 0})))
          << "the step doesn't matter";
      const Step step{.on_host = 0, .on_device = static_cast<const uint64_t*>(on_device.data())};
      EXPECT_TRUE(SameOutputs(expected, OutputsInStep(op_case, dtype, step)));
    }
  }
}

}  // namespace
}  // namespace skiff::harness

#else

TEST(DeviceStep, IsBuilt) { GTEST_SKIP() << "built without CUDA"; }

#endif
