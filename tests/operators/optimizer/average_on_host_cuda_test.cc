// Averages in host memory beside a program on a device have the same bits as on the device, and as
// on the CPU. Skipped if there is no device.
#include <gtest/gtest.h>

#ifdef WITH_CUDA

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/executor/executor.h"
#include "framework/ir/text.h"
#include "memory/cuda_device.h"
#include "operators/optimizer/optimizer_ops.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/cuda_place.h"

namespace skiff::harness {
namespace {

constexpr int kSteps = 13;

struct Setting {
  Place place;
  bool on_host = false;
  bool is_flat = false;
};

// Two parameters, which sgd moves, and both kinds of averages.
class AveragedUpdate {
 public:
  AveragedUpdate(const OpRegistry& registry, const Setting& setting)
      : setting_(setting), executor_(setting.place, nullptr, &registry) {
    AddState("e", DType::kFloat32, 0);
    AddScalar("p", DType::kFloat64, 1);
    for (const char* name : {"a", "b", "c"}) AddState(name, DType::kFloat32, 0);
    for (const char* name : {"i", "j", "k"}) AddScalar(name, DType::kInt64, 0);
    Add("w", {5, 4099}, DType::kFloat32, 1, setting.place, true);
    Add("g", {5, 4099}, DType::kFloat32, 2, setting.place, false);
    AddOne("rate", Tensor::FromValues<float>({1}, {0.25f}));
    AddOne("skip", Tensor::FromValues<bool>({1}, {false}));
    const std::string attrs = StrCat(" {on_host = ", setting.on_host ? "true" : "false",
                                     ", is_flat = ", setting.is_flat ? "true" : "false");
    program_ = ParseProgramText(
        StrCat("program { block 0 { ", vars_,
               "{ParamOut: [w0, w1]} = sgd(Param: [w0, w1], Grad: [g0, g1], LearningRate: [rate]) "
               "{is_flat = ",
               setting.is_flat ? "true" : "false",
               "} "
               "{AverageOut: [e0, e1], DecayProductOut: [p0, p1]} = exponential_moving_average("
               "Param: [w0, w1], Average: [e0, e1], DecayProduct: [p0, p1], SkipUpdate: [skip])",
               attrs,
               ", decay = 0.9} "
               "{out_sum_1: [a0, a1], out_sum_2: [b0, b1], out_sum_3: [c0, c1], "
               "out_num_accumulates: [i0, i1], out_old_num_accumulates: [j0, j1], "
               "out_num_updates: [k0, k1]} = average_accumulates(param: [w0, w1], "
               "in_sum_1: [a0, a1], in_sum_2: [b0, b1], in_sum_3: [c0, c1], "
               "in_num_accumulates: [i0, i1], in_old_num_accumulates: [j0, j1], "
               "in_num_updates: [k0, k1], SkipUpdate: [skip])",
               attrs,
               ", average_window = 0.5, min_average_window = long 2, max_average_window = long 4, "
               "max_num_accumulates = long 3} } }"));
    compiled_ = std::make_unique<CompiledProgram>(executor_.Compile(*program_));
  }

  void Step(int step) {
    executor_.scope().Assign("skip", Tensor::FromValues<bool>({1}, {step % 5 == 2}));
    // Plans of their own, which update the same parameters and averages.
    const FetchList fetches = step % 2 == 0 ? FetchList{} : FetchList{"e1"};
    const std::vector<Tensor> fetched = compiled_->Run({}, fetches);
    if (!fetched.empty()) fetched_.push_back(ToArray(fetched[0]).values);
  }

  // The values of all states, and what was fetched.
  std::map<std::string, std::vector<double>> Values() const {
    std::map<std::string, std::vector<double>> values;
    for (const std::string& name : states_) {
      values[name] = ToArray(CopyToCpu(executor_.scope().Get(name))).values;
    }
    for (size_t i = 0; i < fetched_.size(); ++i) values[StrCat("fetch ", i)] = fetched_[i];
    return values;
  }

 private:
  void Add(const std::string& name, const std::vector<int64_t>& counts, DType dtype, double value,
           Place place, bool is_parameter) {
    for (size_t i = 0; i < counts.size(); ++i) {
      Array array = Uniform({counts[i]}, static_cast<uint64_t>(value) + i);
      // States begin with one number.
      if (value == 0 || counts[i] == 1)
        array = skiff::harness::Values(array.shape,
                                       std::vector<double>(static_cast<size_t>(counts[i]), value));
      const std::string full = StrCat(name, i);
      vars_ += StrCat(is_parameter ? "param " : "var ", full, " ", dtype, " [", counts[i],
                      "] persistable ");
      Tensor held(array.shape, dtype, place);
      CopyTensor(ToTensor(array, dtype), &held);
      executor_.scope().Set(full, std::move(held));
    }
  }
  Place StatePlace() const { return setting_.on_host ? Place::Cpu() : setting_.place; }
  void AddState(const std::string& name, DType dtype, double value) {
    Add(name, {5, 4099}, dtype, value, StatePlace(), false);
    states_.insert(states_.end(), {name + "0", name + "1"});
  }
  void AddScalar(const std::string& name, DType dtype, double value) {
    Add(name, {1, 1}, dtype, value, StatePlace(), false);
    states_.insert(states_.end(), {name + "0", name + "1"});
  }
  void AddOne(const std::string& name, const Tensor& value) {
    vars_ += StrCat("var ", name, " ", value.dtype(), " [1] persistable ");
    Tensor held(value.shape(), value.dtype(), setting_.place);
    CopyTensor(value, &held);
    executor_.scope().Set(name, std::move(held));
  }

  Setting setting_;
  mutable Executor executor_;
  std::string vars_;
  std::vector<std::string> states_;
  std::vector<std::vector<double>> fetched_;
  std::unique_ptr<Program> program_;
  std::unique_ptr<CompiledProgram> compiled_;
};

class AverageOnHost : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasCudaDevice()) GTEST_SKIP() << "no device";
    RegisterOptimizerOps(registry_);
  }

  OpRegistry registry_;
};

TEST_F(AverageOnHost, HasTheBitsOfTheDeviceAndOfTheCpu) {
  for (const bool is_flat : {false, true}) {
    AveragedUpdate on_cpu(registry_, {.place = Place::Cpu(), .on_host = true, .is_flat = is_flat});
    AveragedUpdate on_device(registry_, {.place = CudaPlace(), .is_flat = is_flat});
    AveragedUpdate on_host(registry_, {.place = CudaPlace(), .on_host = true, .is_flat = is_flat});
    for (int step = 0; step < kSteps; ++step) {
      on_cpu.Step(step);
      on_device.Step(step);
      on_host.Step(step);
      // Not always, so that some steps follow each other without a wait.
      if (step % 4 == 3) {
        ASSERT_EQ(on_host.Values(), on_cpu.Values()) << step;
      }
    }
    EXPECT_EQ(on_host.Values(), on_cpu.Values());
    EXPECT_EQ(on_device.Values(), on_cpu.Values());
  }
}

}  // namespace
}  // namespace skiff::harness

#else

TEST(AverageOnHost, IsBuilt) { GTEST_SKIP() << "built without CUDA"; }

#endif
