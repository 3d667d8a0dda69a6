// Replaces cudnn_convolution.cc where the device is emulated.
#include "framework/base/error.h"
#include "operators/common/cudnn_convolution.h"

namespace skiff {

bool CudnnConvolution::IsAvailable() { return false; }
bool CudnnConvolution::Supports(const CudnnConvolutionSpec&) { return false; }
std::unique_ptr<CudnnConvolution> CudnnConvolution::Make(const CudnnConvolutionSpec&) {
  Throw(ErrorCode::kUnimplemented, "cuDNN: not on an emulated device");
}

}  // namespace skiff
