// Where the arguments of an update op stand among those of its kernel, and what its attributes say
// for each parameter: what the CPU's kernel and CUDA's have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/op/kernel.h"
#include "operators/optimizer/update_numbers_shared.h"
#include "operators/optimizer/update_range_shared.h"

namespace skiff {

struct UpdateArguments {
  // An input of a list, and the output that is its next value; -1: none.
  struct Pair {
    int in = -1;
    int out = -1;
  };
  // A number of the rule: an input, or (-1) one value for all or one a parameter.
  struct Number {
    int input = -1;
    std::vector<double> values;
  };
  // A scalar of the rule: by parameter, and the number that it is multiplied by; -1: none.
  struct Scalar {
    std::vector<Pair> pairs;
    int factor = -1;
  };

  UpdateArguments(const OpContext& context, const CoefficientRule& rule);

  size_t parameter_count() const { return params.size(); }
  int rate(size_t i) const { return rates.size() == 1 ? rates[0] : rates[i]; }
  // What attributes say of a parameter.
  UpdateNumbers NumbersOf(size_t i) const;

  std::vector<Pair> params;       // what the formula moves: with multi_precision the master weights
  std::vector<Pair> half_params;  // with multi_precision: what these are rounded to; else empty
  std::vector<int> grads;
  std::vector<std::vector<Pair>> states;  // by state, by parameter
  std::vector<int> rates;                 // one, or one a parameter
  std::vector<Number> numbers;
  std::vector<Scalar> scalars;
  int skip = -1;
  int scale = -1;
  std::vector<int64_t> counts;   // elements, by parameter
  DType half = DType::kFloat32;  // with multi_precision: the dtype of the parameters
  bool has_half_grads = false;   // gradients of that dtype
};

// The arguments of an input slot, as KernelContext counts them.
std::vector<int> InputIndices(const OpContext& context, const std::string& slot);

// The arguments of an input slot and of the output slot with their next values.
std::vector<UpdateArguments::Pair> PairsOf(const OpContext& context, const std::string& input,
                                           const std::string& output);

// Of each parameter, but for GradientForm::scale.
template <typename T>
std::vector<GradientForm<T>> GradientFormsOf(const OpContext& context);

}  // namespace skiff
