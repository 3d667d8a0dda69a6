// Turns a program in float16 or bfloat16 (half) into a program that computes the same numbers in
// float32.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/ir/program.h"
#include "framework/op/registry.h"
#include "framework/transpiler/pass_context.h"
#include "tests/harness/array_tensor.h"

namespace skiff::harness {

// Returns the program with float32 in place of half, in which casts round what ops write to a
// variable that was half:
//
//   {Out: [y]} = tanh(X: [x])       {Out: [y.exact]} = tanh(X: [x])
//                               →   {Out: [y.half]} = cast(X: [y.exact])
//                                   {Out: [y]} = cast(X: [y.half])
//
// No op but casts sees half there, and no pass widens anything. What
// a loop adds up over its iterations is rounded after the loop alone. Updates of parameters work on
// the master weights, which are rounded to the parameters after that.
std::unique_ptr<Program> RoundedLikeHalf(const OpRegistry& registry, const Program& program);

// Returns what to force (CompileOptions::kernels) so that every op has the bits of float32, rounded
// once: no op runs its kernel kNativeHalfKernel.
KernelNames WidenedInsteadOfNative(const OpRegistry& registry, PlaceKind place);

// Returns "" if a tensor in half, or of any other dtype, has exactly the numbers of another one,
// which may have float32 in its place; else what differs. Numbers that aren't any (NaN) are alike.
std::string NumberDifference(const Tensor& half, const Tensor& rounded);

}  // namespace skiff::harness
