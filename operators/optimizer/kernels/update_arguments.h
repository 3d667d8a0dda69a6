// The indices of an update op's arguments and the values of its attributes for each parameter, as
// the CPU kernels and the CUDA kernel need them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "framework/op/kernel.h"
#include "framework/op/update_part.h"
#include "operators/optimizer/kernels/update_numbers.h"
#include "operators/optimizer/kernels/update_range.h"

namespace skiff {

struct UpdateArguments {
  // The indices of an input and of the output that is its next value; -1: there is none.
  struct Pair {
    int in = -1;
    int out = -1;
  };
  // A number of the rule: the index of an input, or -1 and one value for all parameters or for
  // each.
  struct Number {
    int input = -1;
    std::vector<double> values;
  };
  // A scalar of the rule, by parameter, and the index of the number that multiplies it in each
  // step; -1: none does.
  struct Scalar {
    std::vector<Pair> pairs;
    int factor = -1;
  };

  // Throws Error (kFailedPrecondition) if the op has fewer states than the rule or more than
  // kMaxUpdateStates.
  UpdateArguments(const OpContext& context, const CoefficientRule& rule);

  size_t parameter_count() const { return params.size(); }
  int rate(size_t i) const { return rates.size() == 1 ? rates[0] : rates[i]; }
  // Return where the elements of parameter i begin in the parameter's own arrays, in the array of
  // state k, and in the array of params.
  int64_t Begin(size_t i) const { return pieces[i].begin; }
  int64_t BeginInState(size_t k, size_t i) const {
    return sharded_states[k] ? pieces[i].place : pieces[i].begin;
  }
  int64_t BeginInParam(size_t i) const {
    return has_sharded_params ? pieces[i].place : pieces[i].begin;
  }
  // Returns the numbers of parameter i that attributes give.
  UpdateNumbers NumbersOf(size_t i) const;

  std::vector<Pair> params;       // what is updated: with multi_precision the master weights
  std::vector<Pair> half_params;  // with multi_precision: Param and ParamOut; else empty
  std::vector<int> grads;
  std::vector<std::vector<Pair>> states;  // by state, by parameter
  // Whether a shard has the arrays of all parameters: of a state; of `params`.
  std::vector<bool> sharded_states;
  bool has_sharded_params = false;
  std::vector<int> rates;  // for all parameters, or per parameter
  std::vector<Number> numbers;
  std::vector<Scalar> scalars;
  int skip = -1;
  int scale = -1;
  // By parameter: the elements that the op updates, and their number.
  std::vector<PartPiece> pieces;
  std::vector<int64_t> counts;
  bool has_part = false;         // whether there may be other elements
  DType half = DType::kFloat32;  // with multi_precision: the dtype of Param
  bool has_half_grads = false;   // whether gradients have that dtype, too
};

// Returns whether a sparse gradient leaves the rows alone that it lacks.
bool UpdatesOnlyTouchedRows(const OpContext& context, SparseRule rule);

// Returns the indices of the arguments of an input slot, as KernelContext takes them.
std::vector<int> InputIndices(const OpContext& context, std::string_view slot);

// Returns the numbers of elements of the arguments of an input slot.
std::vector<int64_t> ElementCounts(const OpContext& context, std::string_view slot);

// Returns the indices of the arguments of an input slot, each with the index of the next value in
// the output slot.
std::vector<UpdateArguments::Pair> PairsOf(const OpContext& context, std::string_view input,
                                           std::string_view output);

// Copies each input to its next value, unless both share memory or there is no next value.
void CopyToOutputs(const KernelContext& run, std::span<const UpdateArguments::Pair> pairs);

// Returns the form of each parameter's gradient. GradientForm::scale, which an input gives, is 1.
template <typename T>
std::vector<GradientForm<T>> GradientFormsOf(const OpContext& context);

}  // namespace skiff
