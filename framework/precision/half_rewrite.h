// Rewrites a program to compute in half, which is float16 or bfloat16.
//
//   {Out: [h]} = mul(X: [x], Y: [w])          {Out: [x.cast_bf16]} = cast(X: [x])
//   {Out: [p]} = softmax(X: [h])         →    {Out: [h]} = mul(X: [x.cast_bf16], Y: [w])
//   {Out: [loss]} = cross_entropy(X: [p])     {Out: [h.cast_fp32]} = cast(X: [h])
//                                             {Out: [p]} = softmax(X: [h.cast_fp32])
//                                             {Out: [loss]} = cross_entropy(X: [p])
//
// Here `w` and `h` have become bfloat16. The program has its casts as ops, so it computes the same
// wherever it runs, and append_backward makes gradients of the same dtypes.
#pragma once

#include <set>
#include <string>

#include "framework/ir/program.h"
#include "framework/op/registry.h"
#include "framework/precision/half_report.h"
#include "framework/precision/precision_options.h"

namespace skiff {

// Gives variables and ops of `main` the dtypes that PrecisionChoice chooses, and inserts casts. Of
// a variable that a single op writes, a single cast serves all readers: it follows the writer. A
// feed or a parameter is cast before its first reader. A variable that several ops write is cast
// before each reader. Results of casts are named <name>.cast_bf16, .cast_fp16 and .cast_fp32, as in
// PaddlePaddle.
//
// The first value of a parameter that becomes half is computed by the ops of `startup` in float32,
// as MasterName; a cast then makes the parameter. Without `startup` (nullptr), and for a parameter
// whose first value no single op of it makes, parameters stay float32, as with
// PrecisionLevel::kCasts.
//
// `results`: variables of the root block that stay float32, such as the loss.
//
// Throws the Errors of PrecisionChoice, and an Error for a program that its shape rules refuse. The
// programs are then unchanged.
HalfReport RewriteToHalf(const OpRegistry& registry, const PrecisionOptions& options,
                         const std::set<std::string>& results, Program* main, Program* startup);

// The same for a program that is only evaluated. Parameters become half with
// PrecisionLevel::kParameters, but have no master weights: whoever loads or saves the program gives
// them rounded values. So become persistables that ops update and that all ops read in half, such
// as caches of keys and values. Entries of keep_float32 that fit nothing are passed over: they may
// name variables of the training alone.
HalfReport RewriteForInference(const OpRegistry& registry, const PrecisionOptions& options,
                               const std::set<std::string>& results, Program* program);

}  // namespace skiff
