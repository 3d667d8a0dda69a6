// CUDA kernel of token_positions; token_positions.cc has the formula.
#include <memory>

#include "framework/base/error.h"
#include "framework/op/arguments.h"
#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/nn/attention/first_place.h"

namespace skiff {
namespace {

struct WriteTokenPositions {
  __device__ void operator()(int64_t i) const {
    const CudaDivision at = Divide(i, tokens);
    // A start that is refused mustn't lead anywhere.
    out[i] = (starts == nullptr ? 0 : ClampedPlace(starts[at.quotient], last_start)) + at.rest;
  }

  int64_t tokens;
  int64_t last_start;
  const int64_t* starts;
  int64_t* out;
};

struct CheckTokenStarts {
  __device__ void operator()(int64_t n) const {
    if (starts[n] < 0 || starts[n] > last_start) NoteFault(fault, n, starts[n]);
  }

  int64_t last_start;
  const int64_t* starts;
  uint64_t* fault;
};

class TokenPositionsKernel final : public Kernel {
 public:
  explicit TokenPositionsKernel(PrepareContext& context)
      : start_(context, "Start"),
        out_(context, "Out"),
        tokens_(context.Output("Out").shape[1]),
        last_start_(context.IntAttr("limit") - tokens_) {}

  bool AcceptsFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    const int64_t sequences = out_.shape(run)[0];
    if (start_.is_there()) {
      ForEachOnDevice(run, "token_positions", sequences,
                      CheckTokenStarts{last_start_, start_(run), run.fault});
    }
    ForEachOnDevice(run, "token_positions", sequences * tokens_,
                    WriteTokenPositions{tokens_, last_start_, start_(run), out_(run)});
  }

  [[noreturn]] void ThrowFault(const DataFault& fault) const override {
    Throw(ErrorCode::kOutOfRange, "token_positions: Start[", fault.position, "] is ", fault.value,
          ", expected 0 to ", last_start_, " for ", tokens_, " tokens at positions below ",
          last_start_ + tokens_);
  }

 private:
  In<int64_t> start_;
  Out<int64_t> out_;
  int64_t tokens_;
  int64_t last_start_;
};

std::unique_ptr<Kernel> PrepareTokenPositions(PrepareContext& context) {
  return std::make_unique<TokenPositionsKernel>(context);
}

}  // namespace

void RegisterTokenPositionsCuda(OpRegistry& registry) {
  registry.AddCudaKernel("token_positions", DType::kInt64, PrepareTokenPositions);
}

}  // namespace skiff
