// What the stand-in for cuBLASLt refuses. Each test asks for one thing that the library's
// documentation doesn't allow, or that Skiff mustn't ask for, and for the nearest allowed one.
#include "tools/cuda/emulation/libraries/cublas_lt_stand_in.h"

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>

namespace skiff::cuda_emulation {
namespace {

template <typename Function>
Function* Find(std::string_view name) {
  return reinterpret_cast<Function*>(CublasLtFunction(name));
}

#define SKIFF_FUNCTION(name) Find<decltype(name)>(#name)

// A product of column-major matrices, m x k and k x n, as its descriptors say.
struct Request {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType_t scale = CUDA_R_32F;
  cudaDataType_t a = CUDA_R_16BF;
  cudaDataType_t b = CUDA_R_16BF;
  cudaDataType_t c = CUDA_R_16BF;
  int64_t m = 3;
  int64_t n = 5;
  int64_t k = 2;
  int64_t lda = 3;
  bool adds_bias = false;
  const void* bias = nullptr;
  uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  uint32_t alignment = 16;
  uint64_t workspace_bytes = 4096;
};

// The descriptors of a request; nothing is destroyed, since that is tested elsewhere.
struct Described {
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t a = nullptr;
  cublasLtMatrixLayout_t b = nullptr;
  cublasLtMatrixLayout_t c = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;  // the first that isn't a success
};

Described Describe(const Request& request) {
  Described made;
  const auto note = [&](cublasStatus_t status) {
    if (made.status == CUBLAS_STATUS_SUCCESS) made.status = status;
  };
  note(SKIFF_FUNCTION(cublasLtCreate)(&made.handle));
  note(SKIFF_FUNCTION(cublasLtMatmulDescCreate)(&made.product, request.compute, request.scale));
  const auto set_product = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    note(SKIFF_FUNCTION(cublasLtMatmulDescSetAttribute)(made.product, attribute, &value,
                                                        sizeof(value)));
  };
  if (request.adds_bias) {
    set_product(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set_product(CUBLASLT_MATMUL_DESC_BIAS_POINTER, request.bias);
  }
  const auto create_layout = SKIFF_FUNCTION(cublasLtMatrixLayoutCreate);
  const auto size = [](int64_t count) { return static_cast<uint64_t>(count); };
  note(create_layout(&made.a, request.a, size(request.m), size(request.k), request.lda));
  note(create_layout(&made.b, request.b, size(request.k), size(request.n), request.k));
  note(create_layout(&made.c, request.c, size(request.m), size(request.n), request.m));
  note(SKIFF_FUNCTION(cublasLtMatmulPreferenceCreate)(&made.preference));
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    note(SKIFF_FUNCTION(cublasLtMatmulPreferenceSetAttribute)(made.preference, attribute, &value,
                                                              sizeof(value)));
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, request.workspace_bytes);
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, request.reductions);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, request.alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, request.alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, request.alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, request.alignment);
  return made;
}

cublasStatus_t Choose(const Described& made, cublasLtMatmulHeuristicResult_t* result) {
  int count = 0;
  return SKIFF_FUNCTION(cublasLtMatmulAlgoGetHeuristic)(made.handle, made.product, made.a, made.b,
                                                        made.c, made.c, made.preference, 1, result,
                                                        &count);
}

// Returns the status of the first call that fails, up to the choice of an algorithm.
cublasStatus_t AnswerTo(const Request& request) {
  const Described made = Describe(request);
  if (made.status != CUBLAS_STATUS_SUCCESS) return made.status;
  cublasLtMatmulHeuristicResult_t result{};
  return Choose(made, &result);
}

constexpr cublasStatus_t kDone = CUBLAS_STATUS_SUCCESS;
constexpr cublasStatus_t kUnsupported = CUBLAS_STATUS_NOT_SUPPORTED;
constexpr cublasStatus_t kInvalid = CUBLAS_STATUS_INVALID_VALUE;

TEST(CublasLtStandIn, TakesTheTypesThatTheLibraryDocuments) {
  for (const cudaDataType_t half : {CUDA_R_16BF, CUDA_R_16F}) {
    EXPECT_EQ(AnswerTo({.a = half, .b = half, .c = half}), kDone);
    EXPECT_EQ(AnswerTo({.a = half, .b = half, .c = CUDA_R_32F}), kDone);
  }
  Request request{.a = CUDA_R_32F, .b = CUDA_R_32F, .c = CUDA_R_32F};
  EXPECT_EQ(AnswerTo(request), kDone);
  request.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
  EXPECT_EQ(AnswerTo(request), kDone);
  EXPECT_EQ(AnswerTo({.compute = CUBLAS_COMPUTE_64F,
                      .scale = CUDA_R_64F,
                      .a = CUDA_R_64F,
                      .b = CUDA_R_64F,
                      .c = CUDA_R_64F}),
            kDone);
}

TEST(CublasLtStandIn, RefusesHandlesOfAnotherDevice) {
  const Described made = Describe({});
  cublasLtMatmulHeuristicResult_t result{};
  EXPECT_EQ(Choose(made, &result), kDone);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(Choose(made, &result), kInvalid);
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
}

TEST(CublasLtStandIn, RefusesOtherTypes) {
  EXPECT_EQ(AnswerTo({.b = CUDA_R_16F}), kUnsupported) << "A and B differ";
  EXPECT_EQ(AnswerTo({.c = CUDA_R_16F}), kUnsupported) << "C is the other half";
  EXPECT_EQ(AnswerTo({.a = CUDA_R_32F, .b = CUDA_R_32F}), kUnsupported) << "C is rounded to half";
  EXPECT_EQ(AnswerTo({.scale = CUDA_R_16BF}), kUnsupported) << "alpha in half";
  EXPECT_EQ(AnswerTo({.scale = CUDA_R_64F}), kUnsupported) << "alpha in float64";
  EXPECT_EQ(AnswerTo({.compute = CUBLAS_COMPUTE_32F_FAST_TF32}), kUnsupported) << "TF32 of half";
  EXPECT_EQ(AnswerTo({.compute = CUBLAS_COMPUTE_64F, .scale = CUDA_R_64F}), kUnsupported)
      << "float64 sums of half";
}

TEST(CublasLtStandIn, RefusesALeadingDimensionBelowTheRows) {
  EXPECT_EQ(AnswerTo({.lda = 2}), kInvalid);
  EXPECT_EQ(AnswerTo({.lda = 4}), kDone);
}

TEST(CublasLtStandIn, RefusesAlignmentsThatElementsDontHave) {
  EXPECT_EQ(AnswerTo({.alignment = 1}), kInvalid);
  EXPECT_EQ(AnswerTo({.alignment = 2}), kDone);
  EXPECT_EQ(AnswerTo({.c = CUDA_R_32F, .alignment = 2}), kInvalid) << "of C";
  EXPECT_EQ(AnswerTo({.alignment = 24}), kInvalid) << "no power of 2";
}

// In place, the order of the parts varies; in half, they are rounded before they are added.
TEST(CublasLtStandIn, RefusesPartsOfSumsInPlaceAndInHalf) {
  constexpr uint32_t kInPlace = CUBLASLT_REDUCTION_SCHEME_INPLACE;
  constexpr uint32_t kOfResult = CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
  EXPECT_EQ(AnswerTo({.reductions = kInPlace}), kInvalid);
  EXPECT_EQ(AnswerTo({.reductions = kOfResult}), kInvalid);
  EXPECT_EQ(AnswerTo({.c = CUDA_R_32F, .reductions = kOfResult}), kDone);
}

TEST(CublasLtStandIn, RefusesABiasThatIsNowhere) {
  EXPECT_EQ(AnswerTo({.adds_bias = true}), kInvalid);
  EXPECT_EQ(AnswerTo({.adds_bias = true, .bias = reinterpret_cast<const void*>(16)}), kDone);
}

// A product on the device, whose matrices begin `offset` bytes after an aligned address.
class CublasLtStandInRun : public testing::Test {
 protected:
  static constexpr int64_t kBytes = 4096;

  void SetUp() override { ASSERT_EQ(cudaMalloc(&memory_, 5 * kBytes), cudaSuccess); }
  void TearDown() override {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaFree(memory_), cudaSuccess);
  }

  char* Block(int i) const { return static_cast<char*>(memory_) + i * kBytes; }

  cublasStatus_t Multiply(const Request& request, const cublasLtMatmulAlgo_t& algorithm,
                          int64_t offset_of_a, void* workspace, size_t workspace_bytes) const {
    const Described made = Describe(request);
    const float alpha = 1;
    const float beta = 0;
    void* const c = Block(2);
    return SKIFF_FUNCTION(cublasLtMatmul)(made.handle, made.product, &alpha, Block(0) + offset_of_a,
                                          made.a, Block(1), made.b, &beta, c, made.c, c, made.c,
                                          &algorithm, workspace, workspace_bytes, nullptr);
  }

  static cublasLtMatmulHeuristicResult_t Chosen(const Request& request) {
    cublasLtMatmulHeuristicResult_t result{};
    EXPECT_EQ(Choose(Describe(request), &result), kDone);
    return result;
  }

  void* memory_ = nullptr;
};

TEST_F(CublasLtStandInRun, RefusesMatricesAtOtherAddressesThanPreferred) {
  const auto algorithm = Chosen({.alignment = 16}).algo;
  EXPECT_EQ(Multiply({}, algorithm, 8, nullptr, 0), kInvalid);
  EXPECT_EQ(Multiply({}, algorithm, 16, nullptr, 0), kDone);
  EXPECT_EQ(Multiply({}, Chosen({.alignment = 2}).algo, 8, nullptr, 0), kDone);
}

TEST_F(CublasLtStandInRun, RefusesAnAlgorithmOfAnotherProduct) {
  const auto of_rounded_factors = Chosen(
      {.compute = CUBLAS_COMPUTE_32F_FAST_TF32, .a = CUDA_R_32F, .b = CUDA_R_32F, .c = CUDA_R_32F});
  const Request in_full{.a = CUDA_R_32F, .b = CUDA_R_32F, .c = CUDA_R_32F};
  EXPECT_EQ(Multiply(in_full, of_rounded_factors.algo, 0, nullptr, 0), kInvalid);
  EXPECT_EQ(Multiply(in_full, Chosen(in_full).algo, 0, nullptr, 0), kDone);
}

TEST_F(CublasLtStandInRun, RefusesAWorkspaceThatIsSmallOrAtAnOddAddress) {
  const Request request{.k = 3};
  const auto chosen = Chosen(request);
  ASSERT_GT(chosen.workspaceSize, 0U);
  EXPECT_EQ(Multiply(request, chosen.algo, 0, Block(3), chosen.workspaceSize - 1), kInvalid);
  EXPECT_EQ(Multiply(request, chosen.algo, 0, Block(3) + 64, chosen.workspaceSize), kInvalid);
  EXPECT_EQ(Multiply(request, chosen.algo, 0, Block(3), chosen.workspaceSize), kDone);
}

}  // namespace
}  // namespace skiff::cuda_emulation
