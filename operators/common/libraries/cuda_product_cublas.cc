// Products by cuBLASLt, cuBLAS's interface that lets the caller choose algorithms and give them
// memory. It is loaded when the first product is made, so that programs run without it as well.
#include <cublasLt.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/shared_library.h"
#include "framework/base/str_cat.h"
#include "operators/common/cuda/cuda_product_parts.h"

namespace skiff {
namespace {

// cuBLASLt asks for this; workspaces of kernels have less, so that some bytes at their begin can't
// be used.
constexpr int64_t kWorkspaceAlignment = 256;
constexpr int64_t kUnusedBytes = kWorkspaceAlignment - 64;
// Of matrices for which the fastest algorithms are chosen: they load 16 bytes at once.
constexpr uint32_t kPackBytes = 16;

struct CublasFunctions {
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtGetStatusName) status_name = nullptr;
  decltype(&cublasLtMatmulDescCreate) create_product = nullptr;
  decltype(&cublasLtMatmulDescDestroy) destroy_product = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) set_product = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) create_layout = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) destroy_layout = nullptr;
  decltype(&cublasLtMatrixLayoutSetAttribute) set_layout = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) create_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) destroy_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) choose = nullptr;
  decltype(&cublasLtMatmul) multiply = nullptr;
};

bool FindAll(SharedLibrary* library, CublasFunctions* functions) {
  return library->Find("cublasLtCreate", &functions->create) &&
         library->Find("cublasLtGetStatusName", &functions->status_name) &&
         library->Find("cublasLtMatmulDescCreate", &functions->create_product) &&
         library->Find("cublasLtMatmulDescDestroy", &functions->destroy_product) &&
         library->Find("cublasLtMatmulDescSetAttribute", &functions->set_product) &&
         library->Find("cublasLtMatrixLayoutCreate", &functions->create_layout) &&
         library->Find("cublasLtMatrixLayoutDestroy", &functions->destroy_layout) &&
         library->Find("cublasLtMatrixLayoutSetAttribute", &functions->set_layout) &&
         library->Find("cublasLtMatmulPreferenceCreate", &functions->create_preference) &&
         library->Find("cublasLtMatmulPreferenceDestroy", &functions->destroy_preference) &&
         library->Find("cublasLtMatmulPreferenceSetAttribute", &functions->set_preference) &&
         library->Find("cublasLtMatmulAlgoGetHeuristic", &functions->choose) &&
         library->Find("cublasLtMatmul", &functions->multiply);
}

const CublasFunctions* Load() {
  static CublasFunctions functions;
  SharedLibrary library(StrCat("libcublasLt.so.", CUBLAS_VER_MAJOR), {kCudaLibraryFolder});
  if (FindAll(&library, &functions)) return &functions;
  std::fprintf(stderr, "warning: products of matrices run on a slower kernel: %s\n",
               library.failure().c_str());
  return nullptr;
}

// The library; nullptr if it is missing.
const CublasFunctions* Library() {
  static const CublasFunctions* const functions = Load();
  return functions;
}

void Check(cublasStatus_t status, const char* call) {
  SKIFF_ENFORCE(status == CUBLAS_STATUS_SUCCESS, kIo, "product of matrices: ", call, ": ",
                Library()->status_name(status));
}

// Handles are never destroyed, since the driver may be gone at exit.
cublasLtHandle_t HandleOf(int device) {
  static std::mutex mutex;
  static auto& handles = *new std::map<int, cublasLtHandle_t>;
  const std::lock_guard lock(mutex);
  cublasLtHandle_t& handle = handles[device];
  if (handle == nullptr) Check(Library()->create(&handle), "cublasLtCreate");
  return handle;
}

// A descriptor of the library, destroyed with the object.
template <class Descriptor>
class Owned {
 public:
  explicit Owned(cublasStatus_t (*destroy)(Descriptor)) : destroy_(destroy) {}
  ~Owned() {
    if (descriptor_ != nullptr) destroy_(descriptor_);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;

  Descriptor get() const { return descriptor_; }
  Descriptor* address() { return &descriptor_; }

 private:
  Descriptor descriptor_ = nullptr;
  cublasStatus_t (*destroy_)(Descriptor);
};

struct ChosenAlgorithm {
  cublasLtMatmulAlgo_t algorithm{};
  size_t workspace_bytes = 0;
};

// What the library is asked for an algorithm.
struct Question {
  friend bool operator==(const Question&, const Question&) = default;

  CudaProductShape shape;
  CudaProductDTypes dtypes;
  int device = 0;
  uint64_t max_workspace_bytes = 0;
  uint32_t alignment = 0;  // of the matrices, in bytes, but at least that of their elements
};

// Returns ask(), or what it returned for the same question not long ago: a plan that is made again,
// and each layer of a stack, need not ask again. The library answers the same question in the same
// way, so forgetting costs time only.
template <class Ask>
std::optional<ChosenAlgorithm> AnswerTo(const Question& question, const Ask& ask) {
  // Ragged batches have ever new numbers of rows. A model has some dozens of products.
  constexpr size_t kKept = 256;
  using Answers = std::list<std::pair<Question, std::optional<ChosenAlgorithm>>>;
  static std::mutex mutex;
  static auto& answers = *new Answers;  // used last first
  const std::lock_guard lock(mutex);
  const auto found = std::find_if(answers.begin(), answers.end(),
                                  [&](const auto& answer) { return answer.first == question; });
  if (found != answers.end()) {
    answers.splice(answers.begin(), answers, found);
  } else {
    answers.emplace_front(question, ask());
    if (answers.size() > kKept) answers.pop_back();
  }
  return answers.front().second;
}

cudaDataType_t TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return CUDA_R_32F;
    case DType::kFloat64:
      return CUDA_R_64F;
    case DType::kBFloat16:
      return CUDA_R_16BF;
    case DType::kFloat16:
      return CUDA_R_16F;
    default:
      Throw(ErrorCode::kInvalidArgument, "product of matrices: ", dtype, ", expected a float");
  }
}

bool IsAligned(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % kPackBytes == 0;
}

class LtProduct final : public CublasProduct {
 public:
  LtProduct(const CudaProductShape& shape, const CudaProductDTypes& dtypes,
            int64_t max_workspace_bytes)
      : library_(*Library()),
        shape_(shape),
        dtypes_(dtypes),
        max_bytes_(static_cast<uint64_t>(std::max<int64_t>(max_workspace_bytes - kUnusedBytes, 0))),
        product_(library_.destroy_product),
        a_(library_.destroy_layout),
        b_(library_.destroy_layout),
        c_(library_.destroy_layout) {
    const cudaError_t status = cudaGetDevice(&device_);
    SKIFF_ENFORCE(status == cudaSuccess, kIo,
                  "product of matrices: cudaGetDevice: ", cudaGetErrorString(status));
    handle_ = HandleOf(device_);
    Describe();
    aligned_ = Choose(kPackBytes, max_bytes_);
  }

  // Returns whether the library can compute it, of matrices at multiples of kPackBytes.
  bool has_algorithm() const { return aligned_.has_value(); }

  int64_t workspace_bytes() const override {
    if (aligned_->workspace_bytes == 0) return 0;
    return static_cast<int64_t>(aligned_->workspace_bytes) + kUnusedBytes;
  }

  bool Run(CUstream_st* stream, const void* a, const void* b, void* c, void* workspace,
           const void* alpha, const void* beta, const void* bias) const override {
    const bool is_aligned =
        IsAligned(a) && IsAligned(b) && IsAligned(c) && (!shape_.adds_bias || IsAligned(bias));
    const std::optional<ChosenAlgorithm>& chosen = is_aligned ? aligned_ : Unaligned();
    if (!chosen) return false;
    if (shape_.adds_bias) SetBias(bias);
    void* memory = nullptr;
    if (chosen->workspace_bytes > 0) {
      memory = reinterpret_cast<void*>(RoundUp(
          static_cast<int64_t>(reinterpret_cast<uintptr_t>(workspace)), kWorkspaceAlignment));
    }
    // Column by column, what is row by row here is its transpose: C' = op(B)' op(A)'.
    Check(library_.multiply(handle_, product_.get(), alpha, b, b_.get(), a, a_.get(), beta, c,
                            c_.get(), c, c_.get(), &chosen->algorithm, memory,
                            chosen->workspace_bytes, stream),
          "cublasLtMatmul");
    return true;
  }

 private:
  void Describe() {
    const bool is_double = dtypes_.factors == DType::kFloat64;
    Check(library_.create_product(product_.address(), ComputeType(),
                                  is_double ? CUDA_R_64F : CUDA_R_32F),
          "cublasLtMatmulDescCreate");
    const auto set_operation = [&](cublasLtMatmulDescAttributes_t attribute, bool transposes) {
      const cublasOperation_t operation = transposes ? CUBLAS_OP_T : CUBLAS_OP_N;
      Check(library_.set_product(product_.get(), attribute, &operation, sizeof(operation)),
            "cublasLtMatmulDescSetAttribute");
    };
    set_operation(CUBLASLT_MATMUL_DESC_TRANSA, shape_.transpose_b);
    set_operation(CUBLASLT_MATMUL_DESC_TRANSB, shape_.transpose_a);
    if (shape_.adds_bias) {
      // Column by column, the bias belongs to the rows, as the library has it.
      const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
      Check(library_.set_product(product_.get(), CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                 sizeof(epilogue)),
            "cublasLtMatmulDescSetAttribute");
    }
    const auto [m, n, k] = std::tuple(shape_.m, shape_.n, shape_.k);
    const cudaDataType_t of_factors = TypeOf(dtypes_.factors);
    DescribeMatrix(of_factors, shape_.transpose_a ? k : m, shape_.transpose_a ? m : k, shape_.lda,
                   shape_.stride_a, &a_);
    DescribeMatrix(of_factors, shape_.transpose_b ? n : k, shape_.transpose_b ? k : n, shape_.ldb,
                   shape_.stride_b, &b_);
    DescribeMatrix(TypeOf(dtypes_.result), m, n, shape_.ldc, shape_.stride_c, &c_);
  }

  cublasComputeType_t ComputeType() const {
    if (dtypes_.factors == DType::kFloat64) return CUBLAS_COMPUTE_64F;
    const bool rounds = dtypes_.factors == DType::kFloat32 && shape_.math == MathMode::kTf32;
    return rounds ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  }

  void SetBias(const void* bias) const {
    Check(library_.set_product(product_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias,
                               sizeof(bias)),
          "cublasLtMatmulDescSetAttribute");
  }

  // Of rows x columns, stored row by row.
  void DescribeMatrix(cudaDataType_t type, int64_t rows, int64_t columns, int64_t row_distance,
                      int64_t stride, Owned<cublasLtMatrixLayout_t>* layout) const {
    Check(library_.create_layout(layout->address(), type, static_cast<uint64_t>(columns),
                                 static_cast<uint64_t>(rows), row_distance),
          "cublasLtMatrixLayoutCreate");
    if (shape_.batches == 1) return;
    const auto set = [&](cublasLtMatrixLayoutAttribute_t attribute, const auto& value) {
      Check(library_.set_layout(layout->get(), attribute, &value, sizeof(value)),
            "cublasLtMatrixLayoutSetAttribute");
    };
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(shape_.batches));
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride);
  }

  // Returns the algorithm for addresses that are multiples of an element's size only, if there is
  // one. Matrices inside of tensors may have such addresses, but most products never meet one, so
  // it is chosen when the first does. It gets along with the workspace of the other algorithm.
  const std::optional<ChosenAlgorithm>& Unaligned() const {
    std::call_once(unaligned_once_, [this] {
      unaligned_ =
          Choose(static_cast<uint32_t>(SizeOf(dtypes_.factors)), aligned_->workspace_bytes);
    });
    return unaligned_;
  }

  // Returns the algorithm for matrices that begin at multiples of `alignment` bytes, if there is
  // one.
  std::optional<ChosenAlgorithm> Choose(uint32_t alignment, uint64_t max_workspace_bytes) const {
    const Question question{shape_, dtypes_, device_, max_workspace_bytes, alignment};
    return AnswerTo(question, [&] { return Ask(question); });
  }

  std::optional<ChosenAlgorithm> Ask(const Question& question) const {
    // A float32 C of half begins at a multiple of four bytes.
    const uint32_t of_result =
        std::max(question.alignment, static_cast<uint32_t>(SizeOf(dtypes_.result)));
    // Nobody reads there yet. The library may look at the alignment.
    if (shape_.adds_bias) SetBias(reinterpret_cast<const void*>(uintptr_t{of_result}));
    Owned<cublasLtMatmulPreference_t> preference(library_.destroy_preference);
    Check(library_.create_preference(preference.address()), "cublasLtMatmulPreferenceCreate");
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      Check(library_.set_preference(preference.get(), attribute, &value, sizeof(value)),
            "cublasLtMatmulPreferenceSetAttribute");
    };
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, question.max_workspace_bytes);
    // Parts of a sum are written side by side and added by a second kernel. In place, they would be
    // added in the order in which they are done; in C's type, those of half would be rounded
    // before.
    uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    if (!IsHalf(dtypes_.result)) reductions |= CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
    set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, question.alignment);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, question.alignment);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, of_result);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, of_result);
    cublasLtMatmulHeuristicResult_t result{};
    int count = 0;
    const cublasStatus_t status =
        library_.choose(handle_, product_.get(), b_.get(), a_.get(), c_.get(), c_.get(),
                        preference.get(), 1, &result, &count);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) return std::nullopt;
    Check(status, "cublasLtMatmulAlgoGetHeuristic");
    if (count == 0 || result.state != CUBLAS_STATUS_SUCCESS) return std::nullopt;
    return ChosenAlgorithm{result.algo, result.workspaceSize};
  }

  const CublasFunctions& library_;
  CudaProductShape shape_;
  CudaProductDTypes dtypes_;
  uint64_t max_bytes_;  // of the workspace
  int device_ = 0;
  cublasLtHandle_t handle_ = nullptr;
  Owned<cublasLtMatmulDesc_t> product_;
  Owned<cublasLtMatrixLayout_t> a_;
  Owned<cublasLtMatrixLayout_t> b_;
  Owned<cublasLtMatrixLayout_t> c_;
  std::optional<ChosenAlgorithm> aligned_;
  mutable std::once_flag unaligned_once_;  // copies of a product share this object
  mutable std::optional<ChosenAlgorithm> unaligned_;
};

}  // namespace

std::shared_ptr<const CublasProduct> MakeCublasProduct(const CudaProductShape& shape,
                                                       const CudaProductDTypes& dtypes,
                                                       int64_t max_workspace_bytes) {
  // A batch count is an int32.
  if (Library() == nullptr || shape.batches > std::numeric_limits<int32_t>::max()) return nullptr;
  auto product = std::make_shared<LtProduct>(shape, dtypes, max_workspace_bytes);
  return product->has_algorithm() ? product : nullptr;
}

}  // namespace skiff
