// Finds multi-head attention that a plan writes as single ops, and its gradient.
//
//   q = transpose2(reshape2(query))    [N, Lq, C] to [N, heads, Lq, C / heads]; k and v alike
//   s = matmul_v2(q · scale, k')       scales anywhere between q or k and the softmax; or matmul
//   w = softmax(s + bias)              the bias is optional
//   d = dropout(w)                     optional, with upscale_in_train
//   out = reshape2(transpose2(matmul_v2(d, v)))
//
// k may be transposed by matmul_v2 or by transpose2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>

#include "framework/transpiler/plan_rewrite.h"

namespace skiff {

// The operands and results are [N, L, C].
struct AttentionForward {
  std::set<size_t> instructions;
  ValueId query;
  ValueId key;
  ValueId value;
  ValueId bias;  // none if there is none
  ValueId out;
  int64_t heads = 0;
  double scale = 1;
  size_t softmax = PlanUses::kNobody;
  size_t dropout = PlanUses::kNobody;  // if there is one

  // What only the search for the gradient needs: the two products, values within, and the factors
  // whose product is the scale, without the factors of the two products themselves.
  size_t score_product = PlanUses::kNobody;
  size_t value_product = PlanUses::kNobody;
  ValueId weights;  // of the softmax
  ValueId mixed;    // what the second product reads: weights, with some dropped or not
  double query_factor = 1;
  double key_factor = 1;
  double score_factor = 1;
};

struct AttentionBackward {
  std::set<size_t> instructions;
  ValueId out_gradient;
  ValueId query_gradient;  // none if no instruction reads it, as below
  ValueId key_gradient;
  ValueId value_gradient;
  size_t value_product = PlanUses::kNobody;  // the gradient of the second product
};

// Returns the attention around the softmax that is instruction `softmax`, if there is one, whoever
// else reads the values within.
std::optional<AttentionForward> FindAttention(const Plan& plan, const PlanRewrite& rewrite,
                                              size_t softmax);

// Returns the gradient of `forward`, if the plan computes it, whoever else reads the values within.
std::optional<AttentionBackward> FindAttentionGradient(const Plan& plan, const PlanRewrite& rewrite,
                                                       const AttentionForward& forward);

}  // namespace skiff
