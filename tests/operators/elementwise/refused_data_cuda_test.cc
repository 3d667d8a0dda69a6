// Data that kernels on a device refuse: the Errors are those of the CPU. Skipped if there is no
// device.
#include <gtest/gtest.h>

#ifdef WITH_CUDA

#include <string>

#include "framework/op/registry.h"
#include "memory/cuda_device.h"
#include "operators/elementwise/elementwise_ops.h"
#include "operators/random/random_ops.h"
#include "operators/tensor/tensor_ops.h"
#include "tests/harness/case_op.h"
#include "tests/harness/cuda_place.h"
#include "tests/harness/error_text.h"
#include "tests/harness/op_case.h"
#include "tests/harness/prepared_op.h"

namespace skiff::harness {
namespace {

class RefusedDataOnCuda : public ::testing::Test {
 protected:
  RefusedDataOnCuda() {
    RegisterElementwiseOps(registry_);
    RegisterRandomOps(registry_);
    RegisterTensorOps(registry_);
  }

  void SetUp() override {
    if (!HasCudaDevice()) GTEST_SKIP() << "no device";
  }

  void ExpectErrorOfTheCpu(const OpCase& refused, DType dtype = DType::kFloat32) const {
    const std::string error = ErrorOn(Place::Cpu(), refused, dtype);
    EXPECT_NE(error, "") << refused.type;
    EXPECT_EQ(ErrorOn(CudaPlace(), refused, dtype), error);
  }

 private:
  std::string ErrorOn(Place place, const OpCase& refused, DType dtype) const {
    return ErrorText([&] {
      const NamedTensors inputs = MakeInputs(refused, dtype);
      PreparedOp prepared(registry_, MakeOp(refused), inputs, {.place = place});
      prepared.Load(inputs, 0xFF);
      prepared.Run();
      prepared.Wait();
    });
  }

  OpRegistry registry_;
};

OpCase CaseOf(const std::string& type, const Arrays& inputs, const AttributeMap& attrs = {}) {
  return {.type = type, .inputs = inputs, .attrs = attrs, .outputs = {{"Out", 1}}};
}

TEST_F(RefusedDataOnCuda, IntegerDivisionByZero) {
  for (const char* type : {"elementwise_div", "elementwise_mod", "elementwise_floordiv"}) {
    for (const DType dtype : {DType::kInt32, DType::kInt64}) {
      // The first of two zeros.
      ExpectErrorOfTheCpu(CaseOf(type, {{"X", {Integers({40, 5}, 1, 1, 9, dtype)}},
                                        {"Y", {Values({5}, {3, 1, 0, 2, 0}, dtype)}}}));
    }
  }
}

TEST_F(RefusedDataOnCuda, BoundsOfClip) {
  const Arrays inputs = {
      {"X", {Uniform({3, 4}, 1)}}, {"Min", {Values({1}, {1.5})}}, {"Max", {Values({1}, {-0.25})}}};
  ExpectErrorOfTheCpu(CaseOf("clip", inputs, {{"min", 0.0f}, {"max", 0.0f}}));
}

TEST_F(RefusedDataOnCuda, Probabilities) {
  Array x = Uniform({700}, 1, 0.0, 1.0);
  x.values[650] = -0.5;
  x.values[300] = 1.25;
  ExpectErrorOfTheCpu(CaseOf("bernoulli", {{"X", {x}}}));
}

TEST_F(RefusedDataOnCuda, ValueOfFillConstant) {
  const auto fill = [](double value, DType given, DType dtype) {
    return CaseOf("fill_constant", {{"ValueTensor", {Values({1}, {value}, given)}}},
                  {{"dtype", static_cast<int32_t>(dtype)}, {"shape", std::vector<int64_t>{2}}});
  };
  ExpectErrorOfTheCpu(fill(300, DType::kInt64, DType::kUint8));
  ExpectErrorOfTheCpu(fill(-129, DType::kFloat32, DType::kInt8));
  ExpectErrorOfTheCpu(fill(0x1p31, DType::kFloat64, DType::kInt32));
}

}  // namespace
}  // namespace skiff::harness

#else

TEST(RefusedDataOnCuda, IsBuilt) { GTEST_SKIP() << "built without CUDA"; }

#endif
