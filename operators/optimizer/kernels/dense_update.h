// The update of parameters by dense gradients, each element on its own.
//
// Parameters with the same numbers are updated as one range if they are adjacent in memory: in a
// flat buffer of thousands of small parameters, one loop runs over all of them.
#pragma once

#include <cstdint>
#include <vector>

#include "operators/optimizer/kernels/update_kernel.h"

namespace skiff {

template <typename T>
class DenseUpdate final : public UpdateKernel<T> {
 public:
  DenseUpdate(const OpContext& context, UpdateLoop<T> update, const CoefficientRule& rule);

 private:
  void BindRanges(const KernelContext& run) override;
  void Update(const KernelContext& run) override;
  void JoinByNumbers();
  void JoinRanges();

  std::vector<UpdateRange<T>> parameters_;  // without coefficients
  // By parameter: whether its arrays follow the previous parameter's, with a gradient of the same
  // form.
  std::vector<uint8_t> follows_previous_;
  std::vector<uint8_t> starts_range_;  // by parameter; 0: it is part of the previous one's range
  RangeList<T> ranges_;                // joined as starts_range_ says
};

}  // namespace skiff
