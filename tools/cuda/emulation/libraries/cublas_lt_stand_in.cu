#include <cublasLt.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <type_traits>

#include "operators/common/half.h"
#include "tools/cuda/emulation/devices.h"
#include "tools/cuda/emulation/libraries/cublas_lt_stand_in.h"
#include "tools/cuda/emulation/libraries/live_objects.h"
#include "tools/cuda/emulation/libraries/tensor_core_factor.cuh"
#include "tools/cuda/emulation/streams.h"

namespace skiff::cuda_emulation {
namespace {

// ---- handles and descriptors

struct Context {
  int device = CurrentDevice();
};

// Whether there is such a context, on the current device.
bool IsContext(const void* handle) {
  const auto found = LiveObjects<Context>::Get(handle);
  return found && found->device == CurrentDevice();
}

struct Product {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  cublasOperation_t op_a = CUBLAS_OP_N;
  cublasOperation_t op_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};

// Column by column.
struct Layout {
  cudaDataType_t type;
  int64_t rows;
  int64_t columns;
  int64_t distance;  // of columns
  int32_t batches = 1;
  int64_t stride = 0;  // of batches
};

struct Preference {
  uint64_t workspace_bytes = 0;
  uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  uint32_t alignments[4] = {256, 256, 256, 256};
};

cublasStatus_t StatusOf(bool is_done) {
  return is_done ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

template <class Object, class Pointer>
cublasStatus_t Make(Pointer* pointer, const Object& object) {
  return StatusOf(LiveObjects<Object>::Make(pointer, object));
}

template <class Object>
cublasStatus_t Destroy(const void* pointer) {
  return StatusOf(LiveObjects<Object>::Destroy(pointer));
}

// Calls change(&object), which returns a status.
template <class Object, class Change>
cublasStatus_t SetIn(const void* pointer, const Change& change) {
  cublasStatus_t status = CUBLAS_STATUS_INVALID_VALUE;
  LiveObjects<Object>::Set(pointer, [&](Object* object) { status = change(object); });
  return status;
}

template <class Value>
cublasStatus_t Set(const void* from, size_t bytes, Value* to) {
  if (from == nullptr || bytes != sizeof(Value)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(to, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t Create(cublasLtHandle_t* handle) { return Make<Context>(handle, {}); }

const char* StatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    default:
      return "unknown";
  }
}

cublasStatus_t CreateProduct(cublasLtMatmulDesc_t* product, cublasComputeType_t compute,
                             cudaDataType_t scale) {
  return Make<Product>(product, {.compute = compute, .scale = scale});
}

cublasStatus_t DestroyProduct(cublasLtMatmulDesc_t product) { return Destroy<Product>(product); }

cublasStatus_t SetProduct(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute,
                          const void* value, size_t bytes) {
  return SetIn<Product>(product, [&](Product* found) {
    switch (attribute) {
      case CUBLASLT_MATMUL_DESC_TRANSA:
        return Set(value, bytes, &found->op_a);
      case CUBLASLT_MATMUL_DESC_TRANSB:
        return Set(value, bytes, &found->op_b);
      case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return Set(value, bytes, &found->epilogue);
      case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return Set(value, bytes, &found->bias);
      default:
        return CUBLAS_STATUS_INVALID_VALUE;
    }
  });
}

cublasStatus_t CreateLayout(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows,
                            uint64_t columns, int64_t distance) {
  if (rows == 0 || columns == 0 || distance < static_cast<int64_t>(rows)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  return Make<Layout>(layout, {.type = type,
                               .rows = static_cast<int64_t>(rows),
                               .columns = static_cast<int64_t>(columns),
                               .distance = distance});
}

cublasStatus_t DestroyLayout(cublasLtMatrixLayout_t layout) { return Destroy<Layout>(layout); }

cublasStatus_t SetLayout(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute,
                         const void* value, size_t bytes) {
  return SetIn<Layout>(layout, [&](Layout* found) {
    switch (attribute) {
      case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
        return Set(value, bytes, &found->batches);
      case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
        return Set(value, bytes, &found->stride);
      default:
        return CUBLAS_STATUS_INVALID_VALUE;
    }
  });
}

cublasStatus_t CreatePreference(cublasLtMatmulPreference_t* preference) {
  return Make<Preference>(preference, {});
}

cublasStatus_t DestroyPreference(cublasLtMatmulPreference_t preference) {
  return Destroy<Preference>(preference);
}

cublasStatus_t SetPreference(cublasLtMatmulPreference_t preference,
                             cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                             size_t bytes) {
  return SetIn<Preference>(preference, [&](Preference* found) {
    switch (attribute) {
      case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        return Set(value, bytes, &found->workspace_bytes);
      case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
        return Set(value, bytes, &found->reductions);
      case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
        return Set(value, bytes, &found->alignments[0]);
      case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
        return Set(value, bytes, &found->alignments[1]);
      case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
        return Set(value, bytes, &found->alignments[2]);
      case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
        return Set(value, bytes, &found->alignments[3]);
      default:
        return CUBLAS_STATUS_INVALID_VALUE;
    }
  });
}

// ---- products

// As a kernel gets it.
struct ProductSizes {
  Layout a;
  Layout b;
  Layout c;  // and D
  bool transposes_a;
  bool transposes_b;
  int64_t k;
  const void* bias;     // of the rows of D; nullptr: none is added
  bool rounds_to_tf32;  // the factors
};

// Products that the library has, of those that it documents for column-major matrices.
struct Types {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  cudaDataType_t factors;  // A and B
  cudaDataType_t result;   // C, D and the bias

  friend bool operator==(const Types&, const Types&) = default;
};

constexpr Types kSupported[] = {
    {CUBLAS_COMPUTE_64F, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F},
    {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
    {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16BF, CUDA_R_16BF},
    {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16BF, CUDA_R_32F},
    {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_16F},
    {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_32F},
    {CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
};

// Of the types above.
uint32_t BytesOf(cudaDataType_t type) {
  return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2;
}

bool Is(cublasOperation_t operation) {
  return operation == CUBLAS_OP_N || operation == CUBLAS_OP_T;
}

bool IsSame(const Layout& c, const Layout& d) {
  return c.type == d.type && c.rows == d.rows && c.columns == d.columns &&
         c.distance == d.distance && c.batches == d.batches && c.stride == d.stride;
}

// Checks all that the descriptors say of each other.
cublasStatus_t SizesOf(const void* product, const void* a, const void* b, const void* c,
                       const void* d, ProductSizes* sizes) {
  const auto found = LiveObjects<Product>::Get(product);
  const auto found_a = LiveObjects<Layout>::Get(a);
  const auto found_b = LiveObjects<Layout>::Get(b);
  const auto found_c = LiveObjects<Layout>::Get(c);
  const auto found_d = LiveObjects<Layout>::Get(d);
  if (!found_a || !found_b || !found_c || !found_d) return CUBLAS_STATUS_INVALID_VALUE;
  if (!found || !Is(found->op_a) || !Is(found->op_b)) return CUBLAS_STATUS_INVALID_VALUE;
  if (found->epilogue == CUBLASLT_EPILOGUE_BIAS) {
    if (found->bias == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  } else if (found->epilogue != CUBLASLT_EPILOGUE_DEFAULT) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  sizes->bias = found->epilogue == CUBLASLT_EPILOGUE_BIAS ? found->bias : nullptr;
  sizes->a = *found_a;
  sizes->b = *found_b;
  sizes->c = *found_c;
  sizes->transposes_a = found->op_a == CUBLAS_OP_T;
  sizes->transposes_b = found->op_b == CUBLAS_OP_T;
  sizes->k = sizes->transposes_a ? sizes->a.rows : sizes->a.columns;
  const bool fits = (sizes->transposes_a ? sizes->a.columns : sizes->a.rows) == sizes->c.rows &&
                    (sizes->transposes_b ? sizes->b.rows : sizes->b.columns) == sizes->c.columns &&
                    (sizes->transposes_b ? sizes->b.columns : sizes->b.rows) == sizes->k &&
                    sizes->a.batches == sizes->c.batches && sizes->b.batches == sizes->c.batches;
  if (!fits || !IsSame(sizes->c, *found_d)) return CUBLAS_STATUS_INVALID_VALUE;
  const Types types{found->compute, found->scale, sizes->a.type, sizes->c.type};
  if (sizes->a.type != sizes->b.type || std::ranges::count(kSupported, types) == 0) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  sizes->rounds_to_tf32 = found->compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  return CUBLAS_STATUS_SUCCESS;
}

// Whether matrices may begin at multiples of so many bytes, which is a power of 2.
bool IsAlignment(uint32_t bytes, cudaDataType_t type) {
  return std::has_single_bit(bytes) && bytes >= BytesOf(type);
}

// What cublasLtMatmulAlgo_t holds.
struct Algorithm {
  uint64_t problem;  // that it was chosen for
  uint64_t workspace_bytes;
  uint64_t alignment;
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

uint64_t ProblemOf(const ProductSizes& sizes) {
  uint64_t hash = 0;
  const auto add = [&hash](int64_t number) {
    hash = (hash ^ static_cast<uint64_t>(number)) * 0x100000001b3 + 1;
  };
  for (const Layout& layout : {sizes.a, sizes.b, sizes.c}) {
    for (const int64_t number : {static_cast<int64_t>(layout.type), layout.rows, layout.columns,
                                 layout.distance, int64_t{layout.batches}, layout.stride}) {
      add(number);
    }
  }
  add(sizes.transposes_a);
  add(sizes.transposes_b);
  add(sizes.bias != nullptr);
  add(sizes.rounds_to_tf32);
  return hash;
}

// By k, so that products of a few sizes meet all answers.
cublasStatus_t Choose(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                      cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                      cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference,
                      int requested, cublasLtMatmulHeuristicResult_t* results, int* count) {
  constexpr uint64_t kWorkspaceBytes = 1040;
  const auto wishes = LiveObjects<Preference>::Get(preference);
  if (!IsContext(handle) || !wishes || requested < 1 || results == nullptr || count == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  ProductSizes sizes;
  const cublasStatus_t status = SizesOf(product, a, b, c, d, &sizes);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  // Sums in place are added in the order in which they are done, which Skiff mustn't allow, and
  // parts in half are rounded.
  uint32_t forbidden = CUBLASLT_REDUCTION_SCHEME_INPLACE;
  if (BytesOf(sizes.c.type) == 2) forbidden |= CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
  if ((wishes->reductions & forbidden) != 0) return CUBLAS_STATUS_INVALID_VALUE;
  const cudaDataType_t types[] = {sizes.a.type, sizes.b.type, sizes.c.type, sizes.c.type};
  for (int i = 0; i < 4; ++i) {
    if (!IsAlignment(wishes->alignments[i], types[i])) return CUBLAS_STATUS_INVALID_VALUE;
  }
  *count = 0;
  const uint32_t alignment = *std::ranges::min_element(wishes->alignments);
  if (sizes.k % 11 == 6) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (sizes.k % 13 == 4 && sizes.bias != nullptr) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (sizes.k % 7 == 5 && alignment < 16) return CUBLAS_STATUS_SUCCESS;  // with no algorithm
  const bool has_workspace = sizes.k % 2 == 1 && wishes->workspace_bytes >= kWorkspaceBytes;
  const Algorithm chosen{.problem = ProblemOf(sizes),
                         .workspace_bytes = has_workspace ? kWorkspaceBytes : 0,
                         .alignment = alignment};
  results[0] = {};
  std::memcpy(&results[0].algo, &chosen, sizeof(chosen));
  results[0].workspaceSize = chosen.workspace_bytes;
  results[0].state = CUBLAS_STATUS_SUCCESS;
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

__global__ void Overwrite(unsigned char* workspace, int64_t bytes) {
  for (int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < bytes; i += gridDim.x * blockDim.x) {
    workspace[i] = 0xFF;
  }
}

// D = alpha · op(A) · op(B) + beta · C + bias. C isn't read if beta is 0.
template <typename T, typename Result>
__global__ void Multiply(ProductSizes sizes, WideType<T> alpha, const T* a, const T* b,
                         WideType<T> beta, const Result* c, Result* d) {
  using Wide = WideType<Result>;
  const int64_t matrix = sizes.c.rows * sizes.c.columns;
  const int64_t count = matrix * sizes.c.batches;
  for (int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    const int64_t batch = i / matrix;
    const int64_t row = i % matrix % sizes.c.rows;
    const int64_t column = i % matrix / sizes.c.rows;
    const T* left =
        a + batch * sizes.a.stride + (sizes.transposes_a ? row * sizes.a.distance : row);
    const T* right =
        b + batch * sizes.b.stride + (sizes.transposes_b ? column : column * sizes.b.distance);
    const int64_t left_step = sizes.transposes_a ? 1 : sizes.a.distance;
    const int64_t right_step = sizes.transposes_b ? sizes.b.distance : 1;
    double sum = 0;
    for (int64_t p = 0; p < sizes.k; ++p) {
      sum += FactorOf(left[p * left_step], sizes.rounds_to_tf32) *
             FactorOf(right[p * right_step], sizes.rounds_to_tf32);
    }
    const int64_t at = batch * sizes.c.stride + column * sizes.c.distance + row;
    sum *= static_cast<double>(alpha);
    if (beta != 0) {
      sum += static_cast<double>(beta) * static_cast<double>(static_cast<Wide>(c[at]));
    }
    if (sizes.bias != nullptr) {
      const Result bias = static_cast<const Result*>(sizes.bias)[row];
      sum += static_cast<double>(static_cast<Wide>(bias));
    }
    d[at] = static_cast<Result>(static_cast<Wide>(sum));
  }
}

template <typename T, typename Result>
cublasStatus_t Launch(const ProductSizes& sizes, const void* alpha, const void* a, const void* b,
                      const void* beta, const void* c, void* d, cudaStream_t stream) {
  constexpr int64_t kThreads = 128;
  constexpr int64_t kMostBlocks = 16;
  const int64_t count = sizes.c.rows * sizes.c.columns * sizes.c.batches;
  const auto blocks =
      static_cast<unsigned>(std::min((count + kThreads - 1) / kThreads, kMostBlocks));
  using Factor = WideType<T>;
  Multiply<T, Result><<<blocks, kThreads, 0, stream>>>(
      sizes, *static_cast<const Factor*>(alpha), static_cast<const T*>(a), static_cast<const T*>(b),
      *static_cast<const Factor*>(beta), static_cast<const Result*>(c), static_cast<Result*>(d));
  return cudaGetLastError() == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

bool IsMultiple(const void* address, uint64_t bytes) {
  return reinterpret_cast<uintptr_t>(address) % bytes == 0;
}

cublasStatus_t Multiply(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void* alpha,
                        const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                        cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                        cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                        const cublasLtMatmulAlgo_t* algorithm, void* workspace, size_t bytes,
                        cudaStream_t stream) {
  ProductSizes sizes;
  const cublasStatus_t status = SizesOf(product, a_layout, b_layout, c_layout, d_layout, &sizes);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  // The library would look for one now, with a workspace of its own choice.
  if (!IsContext(handle) || DeviceOfStream(stream) != CurrentDevice() || algorithm == nullptr ||
      alpha == nullptr || beta == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  Algorithm chosen;
  std::memcpy(&chosen, algorithm, sizeof(chosen));
  if (chosen.problem != ProblemOf(sizes) || bytes < chosen.workspace_bytes) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  // Without a bias, D once more.
  const void* const bias = sizes.bias == nullptr ? d : sizes.bias;
  for (const void* matrix : {a, b, c, static_cast<const void*>(d), bias}) {
    if (matrix == nullptr || !IsMultiple(matrix, chosen.alignment)) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
  }
  if (chosen.workspace_bytes > 0) {
    if (workspace == nullptr || !IsMultiple(workspace, 256)) return CUBLAS_STATUS_INVALID_VALUE;
    Overwrite<<<1, 128, 0, stream>>>(static_cast<unsigned char*>(workspace),
                                     static_cast<int64_t>(chosen.workspace_bytes));
  }
  const auto launch = [&]<typename T, typename Result>() {
    return Launch<T, Result>(sizes, alpha, a, b, beta, c, d, stream);
  };
  const bool is_wide = sizes.c.type == CUDA_R_32F;
  switch (sizes.a.type) {
    case CUDA_R_64F:
      return launch.operator()<double, double>();
    case CUDA_R_32F:
      return launch.operator()<float, float>();
    case CUDA_R_16BF:
      return is_wide ? launch.operator()<BFloat16, float>()
                     : launch.operator()<BFloat16, BFloat16>();
    default:
      return is_wide ? launch.operator()<Float16, float>() : launch.operator()<Float16, Float16>();
  }
}

// The address of a function that has the type of the library's.
template <class Function>
void* AddressOf(std::type_identity_t<Function>* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

void* CublasLtFunction(std::string_view name) {
  const struct {
    std::string_view name;
    void* address;
  } functions[] = {
      {"cublasLtCreate", AddressOf<decltype(cublasLtCreate)>(Create)},
      {"cublasLtGetStatusName", AddressOf<decltype(cublasLtGetStatusName)>(StatusName)},
      {"cublasLtMatmulDescCreate", AddressOf<decltype(cublasLtMatmulDescCreate)>(CreateProduct)},
      {"cublasLtMatmulDescDestroy", AddressOf<decltype(cublasLtMatmulDescDestroy)>(DestroyProduct)},
      {"cublasLtMatmulDescSetAttribute",
       AddressOf<decltype(cublasLtMatmulDescSetAttribute)>(SetProduct)},
      {"cublasLtMatrixLayoutCreate", AddressOf<decltype(cublasLtMatrixLayoutCreate)>(CreateLayout)},
      {"cublasLtMatrixLayoutDestroy",
       AddressOf<decltype(cublasLtMatrixLayoutDestroy)>(DestroyLayout)},
      {"cublasLtMatrixLayoutSetAttribute",
       AddressOf<decltype(cublasLtMatrixLayoutSetAttribute)>(SetLayout)},
      {"cublasLtMatmulPreferenceCreate",
       AddressOf<decltype(cublasLtMatmulPreferenceCreate)>(CreatePreference)},
      {"cublasLtMatmulPreferenceDestroy",
       AddressOf<decltype(cublasLtMatmulPreferenceDestroy)>(DestroyPreference)},
      {"cublasLtMatmulPreferenceSetAttribute",
       AddressOf<decltype(cublasLtMatmulPreferenceSetAttribute)>(SetPreference)},
      {"cublasLtMatmulAlgoGetHeuristic",
       AddressOf<decltype(cublasLtMatmulAlgoGetHeuristic)>(Choose)},
      {"cublasLtMatmul", AddressOf<decltype(cublasLtMatmul)>(Multiply)},
  };
  for (const auto& function : functions) {
    if (function.name == name) return function.address;
  }
  return nullptr;
}

}  // namespace skiff::cuda_emulation
